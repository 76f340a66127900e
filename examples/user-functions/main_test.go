package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/all"
	"github.com/millrace/millrace/jobs/jobtest"
	"github.com/millrace/millrace/jobs/spec"
)

// TestJob runs job.test.yaml, as a program with functions of its own tests its SQL.
func TestJob(t *testing.T) {
	s, err := jobtest.Load("job.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	reg, err := all.Registry(all.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := functions()
	if err != nil {
		t.Fatal(err)
	}
	rs, err := jobtest.Run(context.Background(), s, jobtest.Options{Registry: reg, Vars: spec.Vars{}, Functions: set})
	if err != nil {
		t.Fatal(err)
	}
	if len(rs) < 2 {
		t.Errorf("%d tests", len(rs))
	}
	for _, r := range rs {
		if !r.OK {
			t.Errorf("%s:%d: %s: %+v", s.Name, r.Line, r.Name, r.Problems)
		}
	}
}

// TestRun runs the program over its data, twice: a job that has finished is not
// run again.
func TestRun(t *testing.T) {
	out := t.TempDir()
	for range 2 {
		if err := run(context.Background(), "orders.ndjson", out); err != nil {
			t.Fatal(err)
		}
		for table, want := range map[string][]string{
			"masked": {
				`{"id":1,"email":"a***@example.org","amount":12.50}`,
				`{"id":2,"email":"g***@example.com","amount":7.00}`,
				`{"id":4,"email":"a***@example.org","amount":99.90}`,
				`{"id":5,"email":null,"amount":3.20}`,
			},
			"levels": {
				`{"id":1,"domain":"example.org","level":2}`,
				`{"id":1,"domain":"org","level":1}`,
				`{"id":2,"domain":"com","level":1}`,
				`{"id":2,"domain":"example.com","level":2}`,
				`{"id":4,"domain":"example.org","level":2}`,
				`{"id":4,"domain":"org","level":1}`,
				`{"id":5,"domain":null,"level":null}`,
			},
			"domains": {
				`{"domain":"example.com","orders":1,"days":"Mon"}`,
				`{"domain":"example.org","orders":2,"days":"Mon Fri"}`,
				`{"domain":null,"orders":1,"days":"Sat"}`,
			},
		} {
			if got := lines(t, filepath.Join(out, table)); !slices.Equal(got, want) {
				t.Errorf("table %s holds\n%s\nwant\n%s", table, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

// lines are those of a table's files, sorted.
func lines(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.Split(strings.TrimSpace(string(b)), "\n")...)
	}
	slices.Sort(out)
	return out
}

// TestDocs: the Go code of the documentation is that of this example.
func TestDocs(t *testing.T) {
	var code strings.Builder
	for _, name := range []string{"functions.go", "main.go", "main_test.go"} {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(b)
	}
	b, err := os.ReadFile(filepath.FromSlash("../../docs/sql/user-functions.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(b), "```go\n")[1:]
	if len(blocks) < 5 {
		t.Errorf("%d blocks of Go", len(blocks))
	}
	for _, block := range blocks {
		if block, _, _ = strings.Cut(block, "```"); !strings.Contains(code.String(), block) {
			t.Errorf("not in the example:\n%s", block)
		}
	}
}
