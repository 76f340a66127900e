package jobtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/sql/diag"
)

// Endings are how the names of test files end.
var endings = []string{".test.yaml", ".test.yml"}

// IsTestFile reports whether a name is one of a test file.
func IsTestFile(name string) bool {
	return slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(name, e) })
}

// Suite is a test file.
type Suite struct {
	// Name is the file as messages print it.
	Name string
	// Files are the job's SQL files, DDL first.
	Files []control.SQLFile
	// Set are the variables of all tests.
	Set   map[string]string
	Tests []*Test

	doc yaml.Node
}

// Test is one test of a suite.
type Test struct {
	Name string
	// Line is where it stands in the file, from 1.
	Line int
	Set  map[string]string
	// Ordered: rows are compared in order.
	Ordered bool

	// part is the beginning, and what there is when the input has ended.
	part
	steps []*step
}

// step is a part of the input, with what there is to see when all of it, and of the
// steps before, was processed.
type step struct {
	name string
	line int
	part
}

// part is what a test and each of its steps may say.
type part struct {
	// clock is where the job's clock is put before anything is read; zero: it stays, at
	// the beginning it is the system's.
	clock time.Time
	given []givenTable
	expected
}

// expected is what a test or a step wants to see; nothing at all is not compared.
type expected struct {
	want []wantTable
	dead []wantDead
	// hasDead: the key stands in the file.
	hasDead bool
	node    *yaml.Node
}

func (e *expected) some() bool { return len(e.want) > 0 || e.hasDead }

// all are the expectations of a test: those of its steps, then that of the end.
func (t *Test) all() []*expected {
	var out []*expected
	for _, st := range t.steps {
		out = append(out, &st.expected)
	}
	return append(out, &t.expected)
}

// wants reports whether a test says anywhere what it wants.
func (t *Test) wants() bool { return slices.ContainsFunc(t.all(), (*expected).some) }

// givenTable is the records of a source table.
type givenTable struct {
	table   string
	line    int
	records []givenRecord
}

// givenRecord is a record of a source.
type givenRecord struct {
	line      int
	step      int // the first step that has it
	value     []byte
	object    bool // written as an object, not as text
	partition int32
	timestamp int64 // ms since 1970
	headers   []header
}

// header is one of a record; a nil value is none.
type header struct {
	key   string
	value []byte
}

// wantTable is the rows that a sink table must have.
type wantTable struct {
	table string
	line  int
	rows  []wantRow
	node  *yaml.Node
}

type wantRow struct {
	line   int
	values map[string]json.RawMessage
}

// wantDead is a dead row; "" is any.
type wantDead struct {
	line                  int
	table, reason, column string
}

// FileError is a fault of a test file.
type FileError struct {
	File      string
	Line, Col int
	Message   string
}

func (e *FileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Message)
}

// Load reads a test file and the SQL files that it names. Every error is one
// of the input.
func Load(name string) (*Suite, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	s := &Suite{Name: name}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(&s.doc); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, &FileError{name, 1, 1, "the file is empty; want at least the key tests"}
		}
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var more yaml.Node
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, &FileError{name, max(more.Line, 1), 1, "one document a file"}
	}
	var marked yaml.Node
	if yaml.Unmarshal(markBlank(text), &marked) == nil && same(&marked, &s.doc) {
		s.doc = marked
	}
	r := &fileReader{name: name}
	var sql sqlNames
	r.suite(s, &sql)
	if r.err != nil {
		return nil, r.err
	}
	if s.Files, err = sql.read(name); err != nil {
		return nil, err
	}
	return s, nil
}

// sqlNames are the SQL files that a test file names.
type sqlNames struct {
	job string
	ddl []string
}

// read reads the files; names are relative to the test file. The job file is
// by default the one with the test file's name.
func (n sqlNames) read(test string) ([]control.SQLFile, error) {
	job := n.job
	if job == "" {
		for _, e := range endings {
			if stem, ok := strings.CutSuffix(filepath.Base(test), e); ok {
				job = stem + ".sql"
			}
		}
		if job == "" {
			return nil, &FileError{test, 1, 1, "the key job must name the job's SQL file"}
		}
	}
	var out []control.SQLFile
	for _, p := range append(slices.Clone(n.ddl), job) {
		if !filepath.IsAbs(p) {
			p = filepath.Join(filepath.Dir(test), p)
		}
		names := []string{p}
		if info, err := os.Stat(p); err == nil && info.IsDir() {
			if names, err = filepath.Glob(filepath.Join(p, "*.sql")); err != nil || len(names) == 0 {
				return nil, fmt.Errorf("%s: no .sql file in %s", test, p)
			}
			sort.Strings(names)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", test, err)
			}
			if !slices.ContainsFunc(out, func(f control.SQLFile) bool { return f.Name == name }) {
				out = append(out, control.SQLFile{Name: name, Text: string(b)})
			}
		}
	}
	return out, nil
}

// nearest is a hint at the name that was meant.
func nearest(name string, names []string) string {
	if near, ok := diag.Nearest(name, names); ok {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	if len(names) == 0 {
		return ""
	}
	sort.Strings(names)
	return "; there are " + strings.Join(names, ", ")
}
