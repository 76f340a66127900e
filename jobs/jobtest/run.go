package jobtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/millrace/millrace/jobs/spec"
	"github.com/millrace/millrace/jobs/userfunc"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/keyed"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/sql/compile"
)

// Options of a run.
type Options struct {
	// Registry has the connectors that the job's tables name. Required. None
	// of them is opened.
	Registry *connector.Registry
	// Functions are the program's own functions; nil: none.
	Functions *userfunc.Set
	// Vars looks variables up that neither the file nor the test sets.
	Vars spec.Vars
	// Accept takes what a test gives as what it wants: tests without
	// expectations are no error. It is for Update.
	Accept bool
}

// Result is what became of a test.
type Result struct {
	Name    string
	Line    int
	OK      bool
	Seconds float64
	// Problems are the differences.
	Problems []Problem
	// Notes say what was not compared.
	Notes []string

	actual *outcome
}

// Problem is one difference between what was wanted and what there is.
type Problem struct {
	// Table is the sink table, "" for dead rows and failed jobs.
	Table string `json:"table,omitempty"`
	// Line is where the test file says what is wanted.
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`

	failed bool // the job failed: there is nothing to compare
}

// outcome is what a job wrote.
type outcome struct {
	tables map[string]*collected
	dead   []deadRow
}

// Run runs every test of a suite. The error is one of the input: SQL that does
// not compile (a *control.Error), a test that names what is not there (a
// *FileError); a job that fails is a failed test.
func Run(ctx context.Context, s *Suite, o Options) ([]Result, error) {
	var out []Result
	for _, t := range s.Tests {
		r, err := s.run(ctx, t, o)
		if err != nil {
			return out, err
		}
		out = append(out, r)
	}
	return out, nil
}

func (s *Suite) run(ctx context.Context, t *Test, o Options) (Result, error) {
	began := time.Now()
	res := Result{Name: t.Name, Line: t.Line}
	if len(t.want) == 0 && !t.hasDead && !o.Accept {
		return res, &FileError{s.Name, t.Line, 1, fmt.Sprintf("test %q wants nothing: say want or dead, or take what there is with --update", t.Name)}
	}
	g := &given{tables: map[string]*givenTable{}}
	for i := range t.given {
		g.tables[t.given[i].table] = &t.given[i]
	}
	job, err := s.compile(t, o, g)
	if err != nil {
		return res, err
	}
	if err := s.checkNames(t, job); err != nil {
		return res, err
	}
	out, runErr := execute(ctx, job)
	if ctx.Err() != nil {
		return res, ctx.Err()
	}
	var bad *recordError
	if errors.As(runErr, &bad) {
		return res, &FileError{s.Name, bad.line, 1, bad.message}
	}
	res.actual = out
	if runErr != nil {
		res.Problems = append(res.Problems, Problem{Message: "the job failed: " + runErr.Error(), failed: true})
	} else if res.Problems, res.Notes, err = s.compare(t, job, out); err != nil {
		return res, err
	}
	res.OK = len(res.Problems) == 0
	res.Seconds = time.Since(began).Seconds()
	return res, nil
}

// compiledJob is a job with the collector of its sinks.
type compiledJob struct {
	graph   *graph.Job
	collect *collector
	// sources and sinks are the tables that the job reads and writes.
	sources, sinks []string
}

// compile compiles the job with its ends replaced.
func (s *Suite) compile(t *Test, o Options, g *given) (*compiledJob, error) {
	registry, err := g.registry(o.Registry)
	if err != nil {
		return nil, err
	}
	vars := o.Vars
	vars.Set = maps.Clone(vars.Set)
	if vars.Set == nil {
		vars.Set = map[string]string{}
	}
	maps.Copy(vars.Set, s.Set)
	maps.Copy(vars.Set, t.Set)
	collect := &collector{tables: map[string]*collected{}}
	c := spec.Compile(s.Files, vars, compile.Options{Registry: registry, Functions: o.Functions.Extra(), Mode: compile.ModePreview, ResultSink: collect})
	if err := c.Err(); err != nil {
		return nil, err
	}
	out := &compiledJob{graph: c.Unit.Job, collect: collect}
	for _, n := range c.Unit.Job.Nodes {
		switch op := n.Op.(type) {
		case *graph.Source:
			out.sources = append(out.sources, op.Table.Name)
		case *graph.Lookup:
			out.sources = append(out.sources, op.Table.Name)
		case *graph.Sink:
			out.sinks = append(out.sinks, op.Table.Name)
		}
	}
	return out, nil
}

// checkNames refuses tables that the job does not have.
func (s *Suite) checkNames(t *Test, job *compiledJob) error {
	for _, x := range t.given {
		if !slices.Contains(job.sources, x.table) {
			return &FileError{s.Name, x.line, 1, fmt.Sprintf("the job reads no table %q%s", x.table, nearest(x.table, job.sources))}
		}
	}
	for _, x := range t.want {
		if !slices.Contains(job.sinks, x.table) {
			return &FileError{s.Name, x.line, 1, fmt.Sprintf("the job writes no table %q%s", x.table, nearest(x.table, job.sinks))}
		}
	}
	for _, x := range t.dead {
		if x.table != "" && !slices.Contains(job.sinks, x.table) {
			return &FileError{s.Name, x.line, 1, fmt.Sprintf("the job writes no table %q%s", x.table, nearest(x.table, job.sinks))}
		}
	}
	return nil
}

// execute runs a bounded job of which nothing is kept but its rows.
func execute(ctx context.Context, c *compiledJob) (*outcome, error) {
	l, err := ledger.OpenLedger(ctx, ledger.NewMemStore())
	if err != nil {
		return nil, err
	}
	job := *c.graph
	job.Bounded = true // given records end, whatever the connector's would do
	job.Options = maps.Clone(job.Options)
	if job.Options == nil {
		job.Options = map[string]string{}
	}
	// All input is there from the start, and an error will not go away.
	maps.Copy(job.Options, map[string]string{"lane.linger": "0", "lane.quarantine-after": "1", "lane.restart.min-delay": "1 ms", "lane.restart.max-delay": "1 ms"})
	dead := &deadLetters{behind: behindExchanges(&job)}
	store := checkpoint.NewMemStore().Handle()
	run, err := engine.Start(ctx, &job, engine.Deps{
		Ledger: l, Scope: ledger.Scope{Job: connector.UUID(uuid.New())}, DeadLetters: dead,
		Keyed: &keyed.Factory{Store: func(ledger.Scope) checkpoint.Store { return store }},
	})
	if err != nil {
		return nil, err
	}
	if err = run.Wait(ctx); err != nil {
		if ctx.Err() != nil {
			err = errors.Join(err, run.Stop(context.WithoutCancel(ctx)))
		}
	}
	c.collect.mu.Lock()
	defer c.collect.mu.Unlock()
	for name, tab := range c.collect.tables {
		if lost := tab.rows.Err(); err == nil && lost != nil {
			err = fmt.Errorf("table %s: %w", name, lost)
		}
	}
	return &outcome{tables: c.collect.tables, dead: dead.all()}, err
}
