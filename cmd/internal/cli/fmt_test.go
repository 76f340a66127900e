package cli

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// command runs a command line.
func command(t *testing.T, stdin string, args ...string) (code exitcode.Code, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	e := NewEnv("test")
	e.Stdin, e.Stdout, e.Stderr = strings.NewReader(stdin), &out, &errs
	e.StdoutTerminal, e.StderrTerminal = false, false
	e.LookupEnv = func(string) (string, bool) { return "", false }
	code = Run(context.Background(), e, args)
	return code, out.String(), errs.String()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return name
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const (
	untidy = "-- first\n\n\nselect 'a  \n' as x, /* why */ `from`  \n  from t -- last\n where not b"
	tidied = "-- first\n\nSELECT 'a  \n' AS x, /* why */ `from`\n  FROM t -- last\n WHERE NOT b\n"
)

func TestFmt(t *testing.T) {
	dir := t.TempDir()
	name := write(t, filepath.Join(dir, "a.sql"), untidy)
	good := write(t, filepath.Join(dir, "b.sql"), tidied)

	if code, out, errs := command(t, untidy, "fmt", "-"); code != exitcode.OK || out != tidied || errs != "" {
		t.Errorf("stdin: %d %q %q", code, out, errs)
	}
	if code, out, _ := command(t, "", "fmt", name); code != exitcode.OK || out != tidied || read(t, name) != untidy {
		t.Errorf("to stdout: %d %q", code, out)
	}
	if code, out, _ := command(t, "", "fmt", "--check", dir); code != exitcode.Failed || out != name+"\n" || read(t, name) != untidy {
		t.Errorf("--check of an untidy file: %d %q", code, out)
	}
	if code, out, _ := command(t, "", "fmt", "--check", "-o", "json", dir); code != exitcode.Failed || !strings.Contains(out, `"ok": false`) || !strings.Contains(out, name) {
		t.Errorf("--check -o json: %d %q", code, out)
	}
	if code, out, _ := command(t, "", "fmt", "-w", dir); code != exitcode.OK || out != name+"\n" || read(t, name) != tidied || read(t, good) != tidied {
		t.Errorf("--write: %d %q %q", code, out, read(t, name))
	}
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("--write changed the permissions: %v %v", info.Mode(), err)
	}
	if code, out, _ := command(t, "", "fmt", "--check", dir); code != exitcode.OK || out != "" {
		t.Errorf("--check of tidy files: %d %q", code, out)
	}
	bad := write(t, filepath.Join(dir, "c.sql"), "select from")
	write(t, name, untidy)
	if code, out, errs := command(t, "", "fmt", "--write", dir); code != exitcode.Input || out != "" || !strings.Contains(errs, "c.sql:1:8") || read(t, bad) != "select from" || read(t, name) != untidy {
		t.Errorf("a file with errors: %d %q %q", code, out, errs)
	}
	for _, args := range [][]string{{"fmt"}, {"fmt", "-w", "-"}, {"fmt", "-", name}, {"fmt", "--check", "-w", name}, {"fmt", filepath.Join(dir, "none.sql")}} {
		if code, _, errs := command(t, "", args...); code != exitcode.Input || errs == "" {
			t.Errorf("%v: exit %d %q, want 2", args, code, errs)
		}
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 3 {
		t.Errorf("temporary files left: %v", entries)
	}
}

// TestFmtRepository formats every SQL file and every statement of the logic
// tests: comments and tokens are the same, and a second time changes nothing.
func TestFmtRepository(t *testing.T) {
	files, statements := 0, 0
	check := func(name, text string) bool {
		f := diag.NewFile(name, text)
		once, errs := syntax.Format(f)
		if errs.HasErrors() {
			return false
		}
		twice, errs := syntax.Format(diag.NewFile(name, once))
		if errs.HasErrors() || twice != once {
			t.Errorf("%s: formatted twice:\n%s\n%s", name, once, twice)
		}
		before, after := printed(t, f), printed(t, diag.NewFile(name, once))
		if before != after {
			t.Errorf("%s: the statements changed:\n%s\n%s", name, before, after)
		}
		if a, b := comments(text), comments(once); a != b {
			t.Errorf("%s: the comments changed:\n%s\n%s", name, a, b)
		}
		return true
	}
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		switch filepath.Ext(p) {
		case ".sql":
			files++
			check(p, read(t, p))
		case ".slt":
			for _, block := range strings.Split(read(t, p), "\n\n") {
				head, sql, _ := strings.Cut(strings.TrimLeft(block, "\n"), "\n")
				for strings.HasPrefix(head, "#") {
					head, sql, _ = strings.Cut(sql, "\n")
				}
				sql, _, _ = strings.Cut(sql, "\n----")
				if check(p+": "+head, sql) && sql != "" {
					statements++
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 16 || statements < 300 {
		t.Errorf("only %d files and %d statements", files, statements)
	}
	t.Logf("%d files, %d statements", files, statements)
}

// printed is every statement in the printer's form, which knows no layout.
func printed(t *testing.T, f *diag.File) string {
	t.Helper()
	s, errs := syntax.Parse(f, syntax.Options{})
	if errs.HasErrors() {
		t.Fatalf("%s", diag.Renderer{}.String(errs))
	}
	var b strings.Builder
	for _, st := range s.Stmts {
		b.WriteString(syntax.Print(st) + ";\n")
	}
	return b.String()
}

// comments is the text between tokens without its white space.
func comments(text string) string {
	tokens, _ := syntax.Lex(diag.NewFile("f", text), syntax.Options{})
	var b strings.Builder
	for _, k := range tokens {
		b.WriteString(strings.Join(strings.Fields(text[k.Trivia:k.Start]), " ") + "\n")
	}
	return b.String()
}

// The example is formatted.
func TestExampleIsFormatted(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "examples") + "/..."
	if code, out, errs := command(t, "", "fmt", "--check", dir); code != exitcode.OK {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
