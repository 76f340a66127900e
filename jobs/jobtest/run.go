package jobtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/jobs/spec"
	"github.com/millrace/millrace/jobs/userfunc"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
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
	// Steps are those that were run, in order.
	Steps []StepResult

	actual []*outcome // of the steps, then of the end
}

// StepResult is what became of a step of a test.
type StepResult struct {
	Name string `json:"name"`
	Line int    `json:"line"`
	OK   bool   `json:"ok"`
}

// Problem is one difference between what was wanted and what there is.
type Problem struct {
	// Step is the step of the test after which it was found, "" for the end.
	Step string `json:"step,omitempty"`
	// Table is the sink table, "" for dead rows and failed jobs.
	Table string `json:"table,omitempty"`
	// Line is where the test file says what is wanted.
	Line    int    `json:"line,omitempty"`
	Message string `json:"message"`

	failed bool // the job failed: there is nothing to compare
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
	if !t.wants() && !o.Accept {
		return res, &FileError{s.Name, t.Line, 1, fmt.Sprintf("test %q wants nothing: say want or dead, or take what there is with --update", t.Name)}
	}
	g := newGiven(t)
	job, err := s.compile(t, o, g)
	if err != nil {
		return res, err
	}
	if err := s.checkNames(t, job); err != nil {
		return res, err
	}
	if job.graph.Batch && len(t.steps) > 0 {
		return res, &FileError{s.Name, t.steps[0].line, 1, "a job in batch mode gives its rows when its input has ended: there is nothing to see between steps"}
	}
	var runErr error
	res.actual, runErr = execute(ctx, t, job, g)
	if ctx.Err() != nil {
		return res, ctx.Err()
	}
	var bad *recordError
	if errors.As(runErr, &bad) {
		return res, &FileError{s.Name, bad.line, 1, bad.message}
	}
	if err := s.judge(t, runErr, &res); err != nil {
		return res, err
	}
	res.OK = len(res.Problems) == 0
	res.Seconds = time.Since(began).Seconds()
	return res, nil
}

// judge compares what there was after each step and at the end; runErr is why the last
// of these failed.
func (s *Suite) judge(t *Test, runErr error, res *Result) error {
	for i, e := range t.all() {
		name := ""
		if i < len(t.steps) {
			name = t.steps[i].name
		}
		var problems []Problem
		var notes []string
		var err error
		last := i >= len(res.actual)-1
		if last && runErr != nil {
			problems = []Problem{{Message: "the job failed: " + runErr.Error(), failed: true}}
		} else if problems, notes, err = s.compare(e, t.Ordered, res.actual[i]); err != nil {
			return err
		}
		for _, p := range problems {
			p.Step = name
			res.Problems = append(res.Problems, p)
		}
		for _, n := range notes {
			if name != "" {
				n = "step " + name + ": " + n
			}
			res.Notes = append(res.Notes, n)
		}
		if i < len(t.steps) {
			res.Steps = append(res.Steps, StepResult{name, t.steps[i].line, len(problems) == 0})
		}
		if last {
			break
		}
	}
	return nil
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
		case *graph.WideMerge:
			for i := range op.Offline {
				out.sources = append(out.sources, op.Offline[i].Table.Name)
			}
		case *graph.Sink:
			out.sinks = append(out.sinks, op.Table.Name)
		}
	}
	return out, nil
}

// checkNames refuses tables that the job does not have.
func (s *Suite) checkNames(t *Test, job *compiledJob) error {
	given := slices.Clone(t.given)
	for _, st := range t.steps {
		given = append(given, st.given...)
	}
	for _, x := range given {
		if !slices.Contains(job.sources, x.table) {
			return &FileError{s.Name, x.line, 1, fmt.Sprintf("the job reads no table %q%s", x.table, nearest(x.table, job.sources))}
		}
	}
	sink := func(table string, line int) error {
		if table == "" || slices.Contains(job.sinks, table) {
			return nil
		}
		return &FileError{s.Name, line, 1, fmt.Sprintf("the job writes no table %q%s", table, nearest(table, job.sinks))}
	}
	for _, e := range t.all() {
		for _, x := range e.want {
			if err := sink(x.table, x.line); err != nil {
				return err
			}
		}
		for _, x := range e.dead {
			if err := sink(x.table, x.line); err != nil {
				return err
			}
		}
	}
	return nil
}
