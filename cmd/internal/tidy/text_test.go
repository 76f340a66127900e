package tidy

import (
	"bytes"
	"path"
	"regexp"
	"strings"
	"testing"
)

// maxLines is the hard stop; aim under 400.
const maxLines = 1000

// longFiles may be longer, with the reason.
var longFiles = map[string]string{}

func TestFileLengths(t *testing.T) {
	files(t, func(p string, b []byte) {
		n := bytes.Count(b, []byte("\n"))
		if n > maxLines && longFiles[p] == "" && !bytes.Contains(b[:min(len(b), 200)], []byte("Code generated")) {
			t.Errorf("%s has %d lines, the stop is %d: it is about more than one thing; split it by noun", p, n, maxLines)
		}
	}, ".go")
}

func TestEveryPackageHasDoc(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) == 0 {
			continue
		}
		if p.Name == "main" && layer(p.rel()) != "cmd" {
			continue
		}
		if !contains(p.GoFiles, "doc.go") {
			t.Errorf("%s has no doc.go: say what the package is, what it is not, its invariants and concurrency", p.rel())
		}
	}
}

func TestNames(t *testing.T) {
	vague := regexp.MustCompile(`^(util|utils|common|helper|helpers|base|misc|shared)$`)
	std := regexp.MustCompile(`^(runtime|sql|log|json|csv|context|errors|sync|time|os|io|net|http)$`)
	for _, p := range packages(t) {
		if vague.MatchString(p.Name) {
			t.Errorf("%s: the name %q says nothing; name the package after what it holds", p.rel(), p.Name)
		}
		if std.MatchString(p.Name) && p.rel() != "connectors/http" {
			t.Errorf("%s: the name %q shadows a standard package", p.rel(), p.Name)
		}
		for _, f := range append(append([]string{}, p.GoFiles...), p.TestGoFiles...) {
			stem := strings.TrimSuffix(strings.TrimSuffix(f, ".go"), "_test")
			if vague.MatchString(stem) || f != strings.ToLower(f) {
				t.Errorf("%s/%s: name files in snake_case after the noun they are about", p.rel(), f)
			}
		}
	}
}

// forbidden are texts that have no place in the repository, with what to do.
var forbidden = []struct {
	text   *regexp.Regexp
	only   []string // file endings; nil: every kind
	not    []string // path prefixes that are exempt
	advice string
}{
	{regexp.MustCompile(`\btime\.Sleep\(`), []string{"_test.go"}, nil, "tests wait on conditions, not on time"},
	{regexp.MustCompile(`\b(TODO|FIXME|XXX)\b`), []string{".go"}, nil, "finish it, or say in the documentation that it is not there"},
	{regexp.MustCompile(`panic\("(not implemented|unimplemented)`), []string{".go"}, nil, "return an error that names what is missing"},
	{regexp.MustCompile(`(^|[^a-z])(proxy\.golang\.org|registry\.npmjs\.org|pypi\.org|repo1?\.maven|deb\.debian\.org)`), nil, nil, "name packages, not registry hosts"},
	{regexp.MustCompile(`/work/(main|shared)|/tmp/mr\b`), nil, nil, "no paths of one machine"},
	{regexp.MustCompile(`(?i)\bissue #?[0-9]+\b`), []string{".go", ".md", ".sql"}, nil, "describe the thing, not the ticket"},
	{regexp.MustCompile(`(?i)\b(claude|chatgpt|subagent|llm session)\b`), nil, nil, "the text is about Millrace alone"},
}

func TestForbiddenText(t *testing.T) {
	files(t, func(p string, b []byte) {
		if strings.HasPrefix(p, "cmd/internal/tidy/") {
			return
		}
		for _, f := range forbidden {
			if f.only != nil && !hasEnding(p, f.only) {
				continue
			}
			if loc := f.text.FindIndex(b); loc != nil {
				t.Errorf("%s:%d: %q: %s", p, 1+bytes.Count(b[:loc[0]], []byte("\n")), b[loc[0]:loc[1]], f.advice)
			}
		}
	}, ".go", ".md", ".sql", ".slt", ".sh", "Makefile", "run", ".txt")
}

func hasEnding(p string, endings []string) bool {
	for _, e := range endings {
		if strings.HasSuffix(path.Base(p), e) {
			return true
		}
	}
	return false
}

// TestGlobalState keeps packages free of init functions: whatever a program
// uses is handed to it.
func TestGlobalState(t *testing.T) {
	initFunc := regexp.MustCompile(`(?m)^func init\(\)`)
	files(t, func(p string, b []byte) {
		if loc := initFunc.FindIndex(b); loc != nil && !strings.HasSuffix(p, "_test.go") {
			t.Errorf("%s:%d: no init functions: pass what is needed to a constructor", p, 1+bytes.Count(b[:loc[0]], []byte("\n")))
		}
	}, ".go")
}
