package doccheck

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/all"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// blocks are the fenced blocks of a language, as sources named by their line.
func blocks(page, text, language string) []compile.Source {
	var out []compile.Source
	var open *compile.Source
	for i, line := range strings.Split(text, "\n") {
		switch {
		case open != nil && strings.HasPrefix(line, "```"):
			out, open = append(out, *open), nil
		case open != nil:
			open.Text += line + "\n"
		case line == "```"+language:
			open = &compile.Source{Name: fmt.Sprintf("%s, block of line %d", page, i+1)}
		}
	}
	return out
}

// TestDialectPage compiles the SQL of the dialect's page as one job, without a
// warning, and looks for every setting that works.
func TestDialectPage(t *testing.T) {
	const page = "docs/sql/README.md"
	b, err := os.ReadFile(filepath.Join("..", "..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	files := blocks(page, string(b), "sql")
	if len(files) < 8 {
		t.Fatalf("%d SQL blocks", len(files))
	}
	compileJob(t, files)
	for _, s := range catalog.Known() {
		if !s.Later && !strings.Contains(string(b), "`"+s.Key+"`") {
			t.Errorf("%s does not name the setting %s", page, s.Key)
		}
	}
}

// compileJob compiles blocks as one job, without a warning.
func compileJob(t *testing.T, files []compile.Source) {
	t.Helper()
	reg, err := all.Registry(all.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	u, ds := compile.Compile(files, compile.Options{Registry: reg, Mode: compile.ModeCheck, Vars: syntax.MapVars{}})
	if len(ds) > 0 || u.Job == nil {
		t.Errorf("%s", diag.Renderer{}.String(ds))
	}
}

// TestConnectorPages compiles the jobs that pages of connectors show.
func TestConnectorPages(t *testing.T) {
	for _, page := range []string{"redis", "http"} {
		page = "docs/connectors/" + page + ".md"
		b, err := os.ReadFile(filepath.Join("..", "..", "..", page))
		if err != nil {
			t.Fatal(err)
		}
		compileJob(t, blocks(page, string(b), "sql"))
	}
}

// TestDeviationsAreTested: the test that a row of the deviations page names is
// there.
func TestDeviationsAreTested(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	b, err := os.ReadFile(filepath.Join(root, "docs", "sql", "deviations.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| .* \\| .* \\| `([^`]+)` (.+) \\|$")
	rows := row.FindAllStringSubmatch(string(b), -1)
	if len(rows) < 20 || len(rows) != strings.Count(string(b), "\n| ")-1 {
		t.Errorf("%d rows of the table name a test, of %d", len(rows), strings.Count(string(b), "\n| ")-1)
	}
	for _, r := range rows {
		place, want := filepath.Join(root, filepath.FromSlash(r[1])), r[2]
		if strings.HasSuffix(place, ".slt") {
			want = "# " + want
		} else {
			want = "func " + want + "(t *testing.T)"
			place = filepath.Join(place, "*_test.go")
		}
		files, err := filepath.Glob(place)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(text), want)
		}
		if !found {
			t.Errorf("%s has no %q", r[1], want)
		}
	}
}
