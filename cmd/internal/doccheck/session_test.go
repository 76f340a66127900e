package doccheck

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseAndMatch(t *testing.T) {
	page := "text\n```console\n$ echo a\n> b\na\n...\nx ... y\n$ true\n```\n```sql\n$ not this\n```\n"
	steps := Parse(page)
	if len(steps) != 2 || steps[0].Command != "echo a\nb" || steps[0].Line != 3 || len(steps[1].Want) != 0 {
		t.Fatalf("%+v", steps)
	}
	for out, want := range map[string]bool{
		"a\nx 1 y\n":         true,
		"a\nfoo\nx 12 34 y":  true,
		"a\nx y\n":           false,
		"b\nx 1 y\n":         false,
		"a\nx 1 y\nand more": false,
	} {
		if got := steps[0].Matches(out); got != want {
			t.Errorf("%q: %v, want %v", out, got, want)
		}
	}
	if !steps[1].Matches("") || steps[1].Matches("x\n") {
		t.Error("no output is expected, and only that")
	}
}

// TestDocumentation runs every console block of README.md, docs and examples. The
// commands of an example run beside copies of its files.
func TestDocumentation(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", filepath.Join(bin, "millrace"), "./cmd/millrace")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building: %v\n%s", err, out)
	}
	pages := []string{filepath.Join(root, "README.md")}
	for _, dir := range []string{"docs", "examples"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(p string, d os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(p, ".md") {
				pages = append(pages, p)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		steps := Parse(string(b))
		if len(steps) == 0 {
			continue
		}
		name, _ := filepath.Rel(root, page)
		t.Run(filepath.ToSlash(name), func(t *testing.T) {
			dir := t.TempDir()
			if strings.HasPrefix(name, "examples") {
				if err := os.CopyFS(dir, os.DirFS(filepath.Dir(page))); err != nil {
					t.Fatal(err)
				}
			}
			runPage(t, root, bin, dir, steps)
		})
	}
}

// stepTimeout is far above what any command of the documentation takes.
const stepTimeout = 2 * time.Minute

func runPage(t *testing.T, root, bin, dir string, steps []Step) {
	for _, s := range steps {
		if strings.HasPrefix(s.Command, "make ") || strings.HasPrefix(s.Command, "git clone") || strings.HasPrefix(s.Command, "cd ") {
			continue // the two commands of the README are run by CI itself
		}
		ctx, cancel := context.WithTimeout(context.Background(), stepTimeout)
		cmd := exec.CommandContext(ctx, "bash", "-c", s.Command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "MILLRACE_ROOT="+root, "TZ=UTC")
		out, err := cmd.CombinedOutput()
		cancel()
		if ctx.Err() == context.DeadlineExceeded {
			t.Fatalf("line %d: %s\ntook more than %v; so far:\n%s", s.Line, s.Command, stepTimeout, out)
		}
		if !s.Matches(string(out)) {
			t.Fatalf("line %d: %s\nprinted (%v)\n%s\nwant\n%s", s.Line, s.Command, err, out, strings.Join(s.Want, "\n"))
		}
	}
}
