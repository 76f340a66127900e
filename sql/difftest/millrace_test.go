package difftest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/logictest"
	"github.com/millrace/millrace/sql/sqltest"
)

// engine runs queries in Millrace, over tables in memory.
type engine struct {
	given   *sqltest.Given
	out     *sqltest.Collect
	session *compile.Session
}

// newEngine runs the statements that make the tables.
func newEngine(t *testing.T, statements []string) *engine {
	t.Helper()
	e := &engine{given: sqltest.NewGiven(), out: sqltest.NewCollect(), session: compile.NewSession()}
	var ds diag.List
	compile.SetBatch(e.session, &ds)
	for _, s := range statements {
		u, ds := e.compile(s, e.session, logictest.Way{})
		if ds.HasErrors() {
			t.Fatalf("%s\n%s", s, diag.Renderer{}.String(ds))
		}
		for _, st := range u.Statements {
			if st.Job == nil {
				continue
			}
			if _, err := (logictest.Direct{}).Run(context.Background(), st.Job, logictest.RunOptions{}); err != nil {
				t.Fatalf("%s\n%v", s, err)
			}
		}
	}
	return e
}

func (e *engine) compile(sql string, s *compile.Session, w logictest.Way) (*compile.Unit, diag.List) {
	return compile.Compile([]compile.Source{{Name: "query", Text: sql}}, compile.Options{
		Registry: sqltest.Registry(e.given), Mode: compile.ModeSQL, ResultSink: e.out, Session: s, NoOptimizer: w.NoOptimizer})
}

// notRun begins the code of a query that was refused, or not run to its end.
const notRun = "not run"

// run gives the rows of a query in canonical form, or the code of the row that
// failed; what goes wrong otherwise stands behind notRun.
func (e *engine) run(q *query, w logictest.Way) (rows [][]string, code string) {
	s := &compile.Session{Catalog: e.session.Catalog.Clone(), Settings: e.session.Settings.Clone()}
	u, ds := e.compile(q.ours, s, w)
	if ds.HasErrors() {
		return nil, notRun + ": " + diag.Renderer{}.String(ds)
	}
	st := u.Statements[0]
	for i, f := range st.Schema.Fields {
		got := strings.ReplaceAll(f.Type.WithNullable(true).String(), " NOT NULL", "")
		if q.kinds[i] != 's' && q.kinds[i] != 'V' && got != ourNames[q.kinds[i]] {
			return nil, fmt.Sprintf("%s: column %d is %s, want %s", notRun, i, got, ourNames[q.kinds[i]])
		}
	}
	e.out.Clear()
	_, err := logictest.Direct{}.Run(context.Background(), st.Job, w.Run)
	var failed *logictest.RowError
	if errors.As(err, &failed) {
		return nil, failed.Error()
	} else if err != nil {
		return nil, notRun + ": " + err.Error()
	}
	for _, line := range e.out.Rows("result").Text(u.Zone()) {
		row := strings.Split(line, "|") // no text has a bar
		if len(row) != len(q.kinds) {
			return nil, fmt.Sprintf("%s: a row has %d columns, want %d: %s", notRun, len(row), len(q.kinds), line)
		}
		for i, k := range q.kinds {
			row[i] = canonical(row[i], k)
		}
		rows = append(rows, row)
	}
	return rows, ""
}

// canonical is a value of either side in the form that is compared.
func canonical(s string, k kind) string {
	if s == "NULL" {
		return s
	}
	switch k {
	case 'd', 'f':
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return "not a number: " + s
		}
		if x == 0 || k == 'f' && math.Abs(x) < 1e-9 {
			return "0" // of either sign
		}
		if k == 'f' {
			return strconv.FormatFloat(x, 'g', 10, 64)
		}
		return strconv.FormatFloat(x, 'g', -1, 64)
	case 'F':
		x, err := strconv.ParseFloat(s, 32)
		if err != nil {
			return "not a number: " + s
		}
		return strconv.FormatFloat(x+0, 'g', -1, 32)
	case 'o':
		return strings.ToUpper(s)
	case 't':
		s = strings.Replace(s, "T", " ", 1)
		whole, fraction, _ := strings.Cut(s, ".")
		return whole + "." + fraction + strings.Repeat("0", max(0, 6-len(fraction)))
	}
	return s
}

// show writes the rows of one that are not rows of the other one.
func show(rows, other [][]string) string {
	there := map[string]int{}
	for _, r := range lines(other) {
		there[r]++
	}
	var b strings.Builder
	n := 0
	for _, r := range lines(rows) {
		if there[r]--; there[r] >= 0 {
			continue
		}
		if n++; n <= 12 {
			b.WriteString("  " + r + "\n")
		}
	}
	fmt.Fprintf(&b, "  %d rows, %d of them here alone\n", len(rows), n)
	return b.String()
}

func lines(rows [][]string) []string {
	var out []string
	for _, r := range rows {
		out = append(out, strings.Join(r, "|"))
	}
	return out
}
