package flinktest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/logictest"
)

// outcome is a case with both answers.
type outcome struct {
	suite, query    string
	ours, flinks    *answer
	differs, cause  string // cause is the heading that explains the difference
	expr, streaming bool
	nullKey         string // the operator that has NULL among its keys
}

// line names a query on one line of differences.txt.
func line(query string) string { return strings.ReplaceAll(query, "\n", " ") }

// ordered reports a query whose rows come in order; in streaming mode the result
// changes, and what is left of it has none.
func (s *suite) ordered(query string) bool {
	if s.streaming() {
		return false
	}
	at := strings.LastIndex(query, "ORDER BY")
	return at >= 0 && strings.Count(query[at:], "(") >= strings.Count(query[at:], ")")
}

// evaluate runs every case of a suite; the ways must agree.
func evaluate(t *testing.T, s *suite) []*outcome {
	t.Helper()
	m := newMillrace(t, s)
	answers := readAnswers(t, s.name)
	if answers.version == "" {
		t.Errorf("%s has no answers of Flink: make oracle", s.name)
	}
	ways := logictest.Ways()
	var out []*outcome
	for _, q := range s.queries {
		sql := s.sql(q)
		ours := m.ask(t, sql, logictest.Direct{}, ways[0])
		others := map[string]*answer{"optimizer off": m.ask(t, sql, logictest.Direct{}, ways[len(ways)-1])}
		if !s.exprs {
			others["engine"] = m.ask(t, sql, &logictest.Engine{}, ways[0])
			others["engine, parallel"] = m.ask(t, sql, &logictest.Engine{}, ways[2])
		}
		for name, other := range others {
			if d := ours.differs(other, s.ordered(q)); d != "" {
				t.Errorf("%s: %s: %s: other %s:\n%s\n%s", s.name, name, q, d, ours, other)
			}
		}
		o := &outcome{suite: s.name, query: q, ours: ours, flinks: answers.answers[q], expr: s.exprs, streaming: s.streaming(), nullKey: s.nullKeys[q]}
		if o.flinks == nil {
			t.Errorf("%s: Flink was not asked (make oracle): %s", s.name, q)
			continue
		}
		o.differs = o.flinks.differs(ours, s.ordered(q))
		out = append(out, o)
	}
	for q := range answers.answers {
		if !slices.Contains(s.queries, q) {
			t.Errorf("%s: an answer without a query (make oracle): %s", s.name, q)
		}
	}
	return out
}

const differencesPath = "differences.txt"

// difference is a line of differences.txt.
type difference struct {
	heading, ours string
	line          int
	used          bool
}

// readDifferences reads headings, "## text", each with lines "suite: query => our
// answer".
func readDifferences(t *testing.T) map[string]*difference {
	t.Helper()
	out := map[string]*difference{}
	heading := ""
	for i, l := range strings.Split(readFile(t, differencesPath), "\n") {
		if h, ok := strings.CutPrefix(l, "## "); ok {
			heading = h
			continue
		}
		if l == "" || l[0] == '#' {
			continue
		}
		at := strings.LastIndex(l, " => ")
		if at < 0 || heading == "" {
			t.Fatalf("%s:%d: want suite: query => answer, below a heading", differencesPath, i+1)
		}
		if out[l[:at]] != nil {
			t.Errorf("%s:%d: twice: %s", differencesPath, i+1, l[:at])
		}
		out[l[:at]] = &difference{heading: heading, ours: l[at+4:], line: i + 1}
	}
	return out
}

const known = "Known: "

// deviations are the first cells of docs/sql/deviations.md.
func deviations(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for _, l := range strings.Split(readFile(t, "../../docs/sql/deviations.md"), "\n") {
		if cells := strings.Split(l, " | "); strings.HasPrefix(l, "| ") && len(cells) >= 3 {
			out[strings.TrimPrefix(cells[0], "| ")] = true
		}
	}
	return out
}

// TestAgreesWithFlink compares every case with the stored answer of Flink.
func TestAgreesWithFlink(t *testing.T) {
	var all []*outcome
	for _, s := range suites(t) {
		all = append(all, evaluate(t, s)...)
	}
	listed, named := readDifferences(t), deviations(t)
	list := os.Getenv("MILLRACE_ORACLE_LIST")
	var unlisted strings.Builder
	for _, o := range all {
		key := o.suite + ": " + line(o.query)
		d := listed[key]
		if d != nil {
			d.used = true
		}
		switch {
		case o.differs == "" && d == nil:
		case o.differs == "":
			t.Errorf("%s:%d: Flink answers the same: %s", differencesPath, d.line, key)
		case d == nil:
			fmt.Fprintf(&unlisted, "%s => %s\n\tFLINK %s\n", key, o.ours, o.flinks)
			if list == "" {
				t.Errorf("%s differs from Flink: %s\nMillrace %s\nFlink    %s", o.differs, key, o.ours, o.flinks)
			}
		default:
			o.cause = d.heading
			if d.ours != o.ours.String() {
				t.Errorf("%s:%d: %s\nMillrace %s\nlisted   %s", differencesPath, d.line, key, o.ours, d.ours)
			}
			if !named[d.heading] && !strings.HasPrefix(d.heading, known) {
				t.Errorf("%s:%d: %q is no row of docs/sql/deviations.md, and does not begin with %q", differencesPath, d.line, d.heading, known)
			}
		}
	}
	for key, d := range listed {
		if !d.used {
			t.Errorf("%s:%d: there is no such case: %s", differencesPath, d.line, key)
		}
	}
	if list != "" {
		if err := os.WriteFile(list, []byte(unlisted.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	checkCoverage(t, all)
}
