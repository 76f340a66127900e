package diag

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/errors")

const (
	sqlDir  = ".."
	docsDir = "../../docs/errors"
)

// Every code that the SQL packages use has a constant here, and every constant has a page: a message
// never names a code that explain-error does not know.
func TestEveryCodeIsDeclared(t *testing.T) {
	pages := map[string]bool{}
	for _, p := range Pages() {
		if pages[string(p.Code)] {
			t.Errorf("%s has two pages", p.Code)
		}
		pages[string(p.Code)] = true
	}
	declared := constants(t)
	for value := range declared {
		if !pages[value] {
			t.Errorf("%s has no page; add one in pages_*.go", value)
		}
	}
	for value := range pages {
		if !declared[value] {
			t.Errorf("the page %s has no constant", value)
		}
	}
	walkGo(t, sqlDir, func(fset *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 3 {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || fun.Sel.Name != "Errorf" && fun.Sel.Name != "Warnf" && fun.Sel.Name != "Infof" {
				return true
			}
			lit, ok := call.Args[0].(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			code, err := strconv.Unquote(lit.Value)
			if err == nil && !strings.ContainsAny(code, " %:") && !pages[code] {
				t.Errorf("%s: code %q is not declared", fset.Position(lit.Pos()), code)
			}
			return true
		})
	})
}

// constants collects the constants of type Code.
func constants(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	walkGo(t, ".", func(_ *token.FileSet, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Code" {
				return true
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok {
					s, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
					out[s] = true
				}
			}
			return true
		})
	})
	return out
}

func walkGo(t *testing.T, dir string, f func(*token.FileSet, *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f(fset, file)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// docs/errors holds what the pages say; run with -update to write it.
func TestErrorDocs(t *testing.T) {
	want := map[string]string{"README.md": Index(Pages())}
	for _, p := range Pages() {
		want[string(p.Code)+".md"] = p.Markdown()
	}
	if *update {
		if err := os.RemoveAll(docsDir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(docsDir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(docsDir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	found, err := os.ReadDir(docsDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range found {
		if _, ok := want[e.Name()]; !ok {
			t.Errorf("docs/errors/%s belongs to no code", e.Name())
		}
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(docsDir, name))
		if err != nil || string(got) != text {
			t.Errorf("docs/errors/%s is stale; run go test ./sql/diag -run ErrorDocs -update", name)
		}
	}
}

func TestExplain(t *testing.T) {
	p, _, ok := Explain("reserved_word")
	if !ok || !strings.Contains(p.Text(), "Wrong:\n    CREATE TABLE pushes (ref STRING") {
		t.Errorf("page: %s", p.Text())
	}
	if _, near, ok := Explain("reserved_wrod"); ok || near != "reserved_word" {
		t.Errorf("nearest is %q", near)
	}
}
