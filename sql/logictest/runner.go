package logictest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

// Way is one of the ways to run a query.
type Way struct {
	Name        string
	Run         RunOptions
	NoOptimizer bool
	// Backfill runs the query in batch mode, whatever the file has set.
	Backfill bool
}

// Ways are the six ways.
func Ways() []Way {
	return []Way{
		{Name: "straight", Run: RunOptions{BatchRows: 1000, Parallelism: 1}},
		{Name: "restart", Run: RunOptions{BatchRows: 3, Parallelism: 1, Restart: true}},
		{Name: "parallel", Run: RunOptions{BatchRows: 1, Parallelism: 4}},
		{Name: "backfill", Run: RunOptions{BatchRows: 1000, Parallelism: 2}, Backfill: true},
		{Name: "optimizer off", Run: RunOptions{BatchRows: 7, Parallelism: 1, NoSharing: true}, NoOptimizer: true},
		{Name: "spilled", Run: RunOptions{BatchRows: 2, Parallelism: 2, Restart: true, Spill: true}},
	}
}

// Runner runs files.
type Runner struct {
	Executor Executor
	Ways     []Way
}

// Run runs the blocks of a file, each query in each way. update, if not nil,
// is given the rows that a query gave where they differ.
func (r *Runner) Run(t *testing.T, name, text string) {
	blocks, err := parse(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	f := &file{r: r, t: t, name: name, given: sqltest.NewGiven(), out: sqltest.NewCollect(), session: compile.NewSession()}
	for _, b := range blocks {
		if b.query {
			f.query(b)
		} else {
			f.statement(b)
		}
	}
}

type file struct {
	r       *Runner
	t       *testing.T
	name    string
	given   *sqltest.Given
	out     *sqltest.Collect
	session *compile.Session
}

func (f *file) errorf(b *block, format string, args ...any) {
	f.t.Helper()
	f.t.Errorf("%s:%d: %s\n%s", f.name, b.line, fmt.Sprintf(format, args...), b.sql)
}

func (f *file) compile(b *block, s *compile.Session, w Way) (*compile.Unit, diag.List) {
	mode := compile.ModeSQL
	if b.job != "" {
		mode = compile.ModeRun
	}
	return compile.Compile([]compile.Source{{Name: "block", Text: b.sql}}, compile.Options{
		Registry: sqltest.Registry(f.given, sqltest.NewGivenUpserts(f.given)), Mode: mode, ResultSink: f.out, Session: s,
		Parallelism: w.Run.Parallelism, NoOptimizer: w.NoOptimizer,
	})
}

func (f *file) statement(b *block) {
	f.t.Helper()
	u, ds := f.compile(b, f.session, f.r.Ways[0])
	if b.wantError != "" {
		f.wantDiagnostic(b, ds)
		return
	}
	if ds.HasErrors() {
		f.errorf(b, "%s", diag.Renderer{}.String(ds))
		return
	}
	for _, s := range u.Statements {
		if s.Job == nil {
			continue
		}
		if _, err := f.r.Executor.Run(context.Background(), s.Job, f.r.Ways[0].Run); err != nil {
			f.errorf(b, "running: %v", err)
		}
	}
}

func (f *file) wantDiagnostic(b *block, ds diag.List) {
	f.t.Helper()
	for _, d := range ds {
		if d.Severity != diag.Error {
			continue
		}
		pos := d.Span.StartPos()
		at := fmt.Sprintf("%d:%d", pos.Line, pos.Col)
		if string(d.Code) != b.wantError || b.errorAt != "" && b.errorAt != at {
			f.errorf(b, "got %s at %s, want %s at %q\n%s", d.Code, at, b.wantError, b.errorAt, diag.Renderer{}.String(ds))
		}
		return
	}
	f.errorf(b, "no error; want %s", b.wantError)
}

func (f *file) query(b *block) {
	f.t.Helper()
	want := slices.Clone(b.want)
	if b.sorted {
		slices.Sort(want)
	}
	for _, w := range f.r.Ways {
		if w.Backfill && b.streaming {
			continue
		}
		f.way(b, w, want)
	}
}

func (f *file) way(b *block, w Way, want []string) {
	f.t.Helper()
	s := &compile.Session{Catalog: f.session.Catalog.Clone(), Settings: f.session.Settings.Clone()}
	if w.Backfill {
		var ds diag.List
		compile.SetBatch(s, &ds)
	}
	u, ds := f.compile(b, s, w)
	if ds.HasErrors() {
		f.errorf(b, "%s: %s", w.Name, diag.Renderer{}.String(ds))
		return
	}
	job := u.Job
	if b.job == "" {
		st := u.Statements[len(u.Statements)-1]
		job = st.Job
		if b.types != "" && st.Schema != nil {
			f.types(b, st.Schema)
		}
	}
	if job == nil {
		f.errorf(b, "%s: there is no job", w.Name)
		return
	}
	f.out.Clear()
	if b.job != "" {
		f.given.Clear(b.job)
	}
	out, err := f.r.Executor.Run(context.Background(), lenient(job, b), w.Run)
	if b.wantError != "" {
		f.wantRowError(b, w, err)
		return
	}
	if err != nil {
		f.errorf(b, "%s: running: %v", w.Name, err)
		return
	}
	rows := f.out.Rows("result")
	if b.job != "" {
		rows = f.given.Rows(b.job)
	}
	got := rows.Text(u.Zone())
	if b.sorted {
		slices.Sort(got)
	}
	if !slices.Equal(got, want) {
		f.errorf(b, "%s: got\n%s\nwant\n%s", w.Name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	dead := map[string]int{}
	for _, d := range out.Dead {
		dead[string(d.Error.Code)]++
	}
	if b.dead == nil && len(dead) > 0 || b.dead != nil && !maps.Equal(dead, b.dead) {
		f.errorf(b, "%s: dead rows %v, want %v", w.Name, dead, b.dead)
	}
	if out.Late != b.late && !(w.Backfill && out.Late == 0) {
		f.errorf(b, "%s: %d late rows, want %d", w.Name, out.Late, b.late)
	}
}

// lenient lets failed rows of a query be counted instead of ending it, where
// the block says how many there are.
func lenient(job *graph.Job, b *block) *graph.Job {
	if b.dead == nil {
		return job
	}
	j := *job
	j.Nodes = slices.Clone(job.Nodes)
	for i, n := range j.Nodes {
		if s, ok := n.Op.(*graph.Sink); ok {
			sink, node := *s, *n
			sink.OnError, sink.NotNull = graph.DeadLetter, graph.DeadLetter
			node.Op = &sink
			j.Nodes[i] = &node
		}
	}
	return &j
}

func (f *file) wantRowError(b *block, w Way, err error) {
	f.t.Helper()
	var re *RowError
	switch {
	case err == nil:
		f.errorf(b, "%s: no row failed, want %s", w.Name, b.wantError)
	case !errors.As(err, &re):
		f.errorf(b, "%s: %v, want a row that fails with %s", w.Name, err, b.wantError)
	case string(re.Failure.Error.Code) != b.wantError:
		f.errorf(b, "%s: a row failed with %s, want %s", w.Name, re.Failure.Error.Code, b.wantError)
	}
}

func (f *file) types(b *block, s *batch.Schema) {
	f.t.Helper()
	var names []string
	for _, field := range s.Fields {
		names = append(names, field.Type.WithNullable(true).String())
	}
	if got := strings.Join(names, ", "); got != b.types {
		f.errorf(b, "types %s, want %s", got, b.types)
	}
}
