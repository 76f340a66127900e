//go:build services

package difftest

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

//go:embed driver.py
var driver string

// duckDB is one process that runs statements one after the other. The
// environment variables are those of .ci/services.
type duckDB struct {
	in  io.WriteCloser
	out *bufio.Reader
}

func startDuckDB(t *testing.T, statements []string) *duckDB {
	t.Helper()
	python := os.Getenv("MILLRACE_ORACLE_PYTHON")
	if python == "" {
		t.Fatal("MILLRACE_ORACLE_PYTHON is not set: DuckDB is installed by 'make test-services', which runs this test")
	}
	cmd := exec.Command(python, "-c", driver)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+os.Getenv("MILLRACE_ORACLE_PACKAGES"), "PYTHONNOUSERSITE=1", "PYTHONIOENCODING=utf-8")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("ending DuckDB: %v", err)
		}
	})
	d := &duckDB{in, bufio.NewReader(out)}
	for _, s := range statements {
		if _, failed := d.ask(t, s); failed != "" {
			t.Fatalf("%s\n%s", s, failed)
		}
	}
	return d
}

// ask runs a statement and gives its rows, or DuckDB's error.
func (d *duckDB) ask(t *testing.T, sql string) (rows [][]any, failed string) {
	t.Helper()
	line, err := json.Marshal(sql)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		t.Fatalf("asking DuckDB: %v", err)
	}
	text, err := d.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("DuckDB's answer: %v\n%s", err, sql)
	}
	var answer struct {
		Rows  [][]any
		Error string
	}
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	if err := dec.Decode(&answer); err != nil {
		t.Fatalf("DuckDB's answer: %v\n%s", err, text)
	}
	return answer.Rows, answer.Error
}

// run gives the rows of a query in canonical form, or DuckDB's error.
func (d *duckDB) run(t *testing.T, q *query) (rows [][]string, failed string) {
	t.Helper()
	return d.rows(t, q, q.duck)
}

// failsUnoptimized runs a query without DuckDB's optimizer, which folds operators
// of a constant NULL and leaves out what it can, errors included.
func (d *duckDB) failsUnoptimized(t *testing.T, q *query) bool {
	t.Helper()
	d.ask(t, "PRAGMA disable_optimizer")
	_, failed := d.rows(t, q, q.duck)
	d.ask(t, "PRAGMA enable_optimizer")
	return failed != ""
}

func (d *duckDB) rows(t *testing.T, q *query, sql string) (rows [][]string, failed string) {
	t.Helper()
	raw, failed := d.ask(t, sql)
	for _, r := range raw {
		row := make([]string, len(r))
		for i, v := range r {
			row[i] = "NULL"
			if v != nil {
				row[i] = canonical(fmt.Sprint(v), q.kinds[i])
			}
		}
		rows = append(rows, row)
	}
	return rows, failed
}
