package flinktest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/graph"
)

// suite is a list of cases over the same tables.
type suite struct {
	name string
	// settings are those of SET at the head, tables the CREATE statements, rows
	// the INSERTs.
	settings     map[string]string
	tables, rows []string
	queries      []string
	// exprs says that queries are expressions, to be selected.
	exprs bool
	// nullKeys is, by query, the operator that has NULL among its keys.
	nullKeys map[string]string
}

// sql is a query's full text.
func (s *suite) sql(query string) string {
	if s.exprs {
		return "SELECT " + query
	}
	return query
}

func (s *suite) streaming() bool { return s.settings["execution.runtime-mode"] == "streaming" }

// suites are the files of testdata and the generated cases.
func suites(t *testing.T) []*suite {
	t.Helper()
	out := append(generated(t), clauseSuites()...)
	paths, err := filepath.Glob("testdata/*.sql")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, p := range paths {
		s := readSuite(t, p)
		out = append(out, s)
		if s.name == "null_keys" {
			out = append(out, s.streamed())
		}
	}
	paths, err = filepath.Glob("testdata/*.expr")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		s := &suite{name: strings.TrimSuffix(filepath.Base(p), ".expr"), exprs: true}
		for _, line := range strings.Split(readFile(t, p), "\n") {
			if line != "" && !strings.HasPrefix(line, "#") {
				s.queries = append(s.queries, line)
			}
		}
		out = append(out, s)
	}
	for _, s := range out {
		seen := map[string]bool{}
		for _, q := range s.queries {
			if seen[q] {
				t.Errorf("%s: twice: %s", s.name, q)
			}
			seen[q] = true
		}
	}
	return out
}

// streamed is the suite in streaming mode.
func (s *suite) streamed() *suite {
	out := *s
	out.name += "_stream"
	out.settings = maps.Clone(s.settings)
	out.settings["execution.runtime-mode"] = "streaming"
	return &out
}

// nullKey begins the comment above a query that names the operator with NULL among
// its keys.
const nullKey = "-- NULL key: "

// readSuite reads statements separated by empty lines.
func readSuite(t *testing.T, path string) *suite {
	t.Helper()
	s := &suite{name: strings.TrimSuffix(filepath.Base(path), ".sql"), settings: map[string]string{}, nullKeys: map[string]string{}}
	for _, block := range strings.Split(readFile(t, path), "\n\n") {
		var lines []string
		operator := ""
		for _, line := range strings.Split(block, "\n") {
			if name, ok := strings.CutPrefix(line, nullKey); ok {
				operator = name
			}
			if line != "" && !strings.HasPrefix(line, "--") {
				lines = append(lines, line)
			}
		}
		sql := strings.Join(lines, "\n")
		word, _, _ := strings.Cut(sql, " ")
		switch word {
		case "":
		case "SET":
			var key, value string
			if n, err := fmt.Sscanf(strings.ReplaceAll(sql, "'", " "), "SET %s = %s", &key, &value); n != 2 {
				t.Fatalf("%s: %s: %v", path, sql, err)
			}
			s.settings[key] = value
		case "CREATE":
			s.tables = append(s.tables, sql)
		case "INSERT":
			s.rows = append(s.rows, sql)
		default:
			s.queries = append(s.queries, sql)
			if operator != "" {
				s.nullKeys[sql] = operator
			}
		}
	}
	return s
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// answer is what a side says to a query.
type answer struct {
	// fault is why there are no rows, "" if there are.
	fault string
	types []string
	// rows are values joined by '|'.
	rows []string
	// ops are the operators that gave them, of Millrace's answers.
	ops []graph.Op
}

// differs says what differs from a, "" if nothing does.
func (a *answer) differs(b *answer, ordered bool) string {
	switch {
	case a.fault != "" && b.fault != "":
		return ""
	case a.fault != "" || b.fault != "":
		return "failure"
	}
	if x, y := plainTypes(a.types), plainTypes(b.types); x != y {
		return "types"
	}
	if !equalRows(a, b, ordered) {
		return "rows"
	}
	return ""
}

// String is an answer on one line.
func (a *answer) String() string {
	if a.fault != "" {
		return "error " + a.fault
	}
	return strings.Join(append([]string{plainTypes(a.types) + ":"}, a.rows...), " ; ")
}
