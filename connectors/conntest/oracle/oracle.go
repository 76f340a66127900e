package oracle

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

//go:embed driver.py
var driver string

// Environment of the Python that has the packages: its path, and the directory
// they are in. .ci/services sets them.
const (
	EnvPython   = "MILLRACE_ORACLE_PYTHON"
	EnvPackages = "MILLRACE_ORACLE_PACKAGES"
)

// Table is what a reader gives.
type Table struct {
	// Columns are the names, Types the reader's own names of the types.
	Columns []string
	Types   []string
	// Rows hold nil, bool, json.Number, string, []any and map[string]any.
	Rows [][]any
}

// Value is the one value of a table of one row and one column, as text.
func (r *Table) Value(t testing.TB) string {
	t.Helper()
	if len(r.Rows) != 1 || len(r.Rows[0]) != 1 {
		t.Fatalf("the reader gave %d rows of %d columns, want one value", len(r.Rows), len(r.Columns))
	}
	return fmt.Sprint(r.Rows[0][0])
}

// Query runs SQL in DuckDB, over nothing but the files that it names. It fails
// the test if DuckDB does, or is not installed.
func Query(t testing.TB, sql string) *Table {
	t.Helper()
	return ask(t, map[string]string{"op": "query", "sql": sql})
}

// Parquet reads a file, or a directory of files, with pyarrow.
func Parquet(t testing.TB, path string) *Table {
	t.Helper()
	return ask(t, map[string]string{"op": "parquet", "path": path})
}

// Quote is a text as an SQL string literal, for paths in queries.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func ask(t testing.TB, req map[string]string) *Table {
	t.Helper()
	python := os.Getenv(EnvPython)
	if python == "" {
		t.Fatalf("%s is not set: readers that are not ours are installed by 'make test-services', which runs this test", EnvPython)
	}
	in, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", driver)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+os.Getenv(EnvPackages), "PYTHONNOUSERSITE=1")
	cmd.Stdin = bytes.NewReader(in)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%srequest: %s", python, err, errs.String(), in)
	}
	r, err := parse(&out)
	if err != nil {
		t.Fatalf("reading the answer of %s: %v", python, err)
	}
	return r
}

func parse(in io.Reader) (*Table, error) {
	d := json.NewDecoder(in)
	d.UseNumber()
	r := new(Table)
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("reading the columns: %w", err)
	}
	for {
		var row []any
		err := d.Decode(&row)
		switch {
		case errors.Is(err, io.EOF):
			return r, nil
		case err != nil:
			return nil, fmt.Errorf("reading row %d: %w", len(r.Rows), err)
		case len(row) != len(r.Columns):
			return nil, fmt.Errorf("row %d has %d values of %d", len(r.Rows), len(row), len(r.Columns))
		}
		r.Rows = append(r.Rows, row)
	}
}
