package flinktest

import (
	"context"
	"errors"
	"testing"

	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/logictest"
	"github.com/millrace/millrace/sql/sqltest"
)

// millrace answers queries over the tables of a suite.
type millrace struct {
	given   *sqltest.Given
	out     *sqltest.Collect
	session *compile.Session
}

// newMillrace makes the tables and fills them.
func newMillrace(t *testing.T, s *suite) *millrace {
	t.Helper()
	m := &millrace{given: sqltest.NewGiven(), out: sqltest.NewCollect(), session: compile.NewSession()}
	if !s.streaming() {
		var ds diag.List
		compile.SetBatch(m.session, &ds)
	}
	// SUM keeps its type, as in Flink; differs_from_flink.slt is about the other way.
	setup := []string{"SET 'millrace.sum-widening' = 'false'"}
	for k, v := range s.settings {
		setup = append(setup, "SET '"+k+"' = '"+v+"'")
	}
	setup = append(append(setup, s.tables...), s.rows...)
	for _, sql := range setup {
		u, ds := m.compile(sql, m.session, false)
		if ds.HasErrors() {
			t.Fatalf("%s: %s\n%s", s.name, sql, diag.Renderer{}.String(ds))
		}
		for _, st := range u.Statements {
			if st.Job == nil {
				continue
			}
			if _, err := (logictest.Direct{}).Run(context.Background(), st.Job, logictest.RunOptions{}); err != nil {
				t.Fatalf("%s: %s\n%v", s.name, sql, err)
			}
		}
	}
	return m
}

func (m *millrace) compile(sql string, s *compile.Session, noOptimizer bool) (*compile.Unit, diag.List) {
	return compile.Compile([]compile.Source{{Name: "query", Text: sql}}, compile.Options{
		Registry: sqltest.Registry(m.given, sqltest.NewGivenUpserts(m.given)), Mode: compile.ModeSQL, ResultSink: m.out, Session: s, NoOptimizer: noOptimizer})
}

// ask runs a query one way. Faults are the code of a diagnostic or of the row
// that failed.
func (m *millrace) ask(t *testing.T, sql string, ex logictest.Executor, way logictest.Way) *answer {
	t.Helper()
	s := &compile.Session{Catalog: m.session.Catalog.Clone(), Settings: m.session.Settings.Clone()}
	u, ds := m.compile(sql, s, way.NoOptimizer)
	for _, d := range ds {
		if d.Severity == diag.Error {
			return &answer{fault: string(d.Code)}
		}
	}
	st := u.Statements[len(u.Statements)-1]
	a := &answer{}
	for _, f := range st.Schema.Fields {
		a.types = append(a.types, f.Type.String())
	}
	for _, n := range st.Job.Nodes {
		a.ops = append(a.ops, n.Op)
	}
	m.out.Clear()
	_, err := ex.Run(context.Background(), st.Job, way.Run)
	var failed *logictest.RowError
	if errors.As(err, &failed) {
		return &answer{fault: string(failed.Failure.Error.Code)}
	} else if err != nil {
		t.Errorf("%s\n%v", sql, err)
		return &answer{fault: "not run"}
	}
	a.rows = m.out.Rows("result").Text(u.Zone())
	return a
}
