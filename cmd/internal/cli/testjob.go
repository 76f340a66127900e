package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/jobtest"
)

func testCommand(e *Env) *cobra.Command {
	var o testOptions
	cmd := &cobra.Command{
		Use:   "test PATH...",
		Short: "unit tests of jobs: given rows in, wanted rows out",
		Long: `Runs the tests of *.test.yaml files. A file stands beside a job file and says,
test by test, which records the source tables hold, which rows the tables must
get and which rows must die, at the end and after each step of the input. The
job itself runs as it does in production, over rows in memory: no topic, table
or folder is touched. The form of the files is in docs/sql/testing.md. A path is
a file, a folder, or dir/... for a whole tree.

--update writes what the tests gave as what they want; read the difference
before you keep it. Exit 1 when a test fails, 2 when a file is faulty.`,
		Example: `  millrace test job.test.yaml
  millrace test jobs/... --junit report.xml
  millrace test job.test.yaml --update`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return e.testJobs(cmd, args, o) },
	}
	cmd.Flags().BoolVar(&o.update, "update", false, "write the actual rows into the files as the wanted ones")
	cmd.Flags().StringVar(&o.junit, "junit", "", "also write a JUnit report to `FILE`")
	return cmd
}

type testOptions struct {
	update bool
	junit  string
}

// testFile is the report of one file.
type testFile struct {
	File    string       `json:"file"`
	Tests   []testReport `json:"tests"`
	Error   string       `json:"error,omitempty"`
	Updated bool         `json:"updated,omitempty"`

	err error
}

// testReport is the report of one test.
type testReport struct {
	Name     string            `json:"name"`
	Line     int               `json:"line"`
	OK       bool              `json:"ok"`
	Seconds  float64           `json:"seconds"`
	Problems []jobtest.Problem `json:"problems"`
	Notes    []string          `json:"notes,omitempty"`
	// Steps are those that were run; Problems name theirs.
	Steps []jobtest.StepResult `json:"steps,omitempty"`
}

func (e *Env) testJobs(cmd *cobra.Command, args []string, o testOptions) error {
	f, err := e.format()
	if err != nil {
		return err
	}
	names, err := testFiles(args)
	if err != nil {
		return err
	}
	var files []testFile
	var passed, failed, faulty, updated int
	code := exitcode.OK
	for _, name := range names {
		file := e.testFile(cmd.Context(), name, o.update)
		if cmd.Context().Err() != nil {
			return cmd.Context().Err()
		}
		for _, t := range file.Tests {
			if t.OK || file.Updated {
				passed++
			} else {
				failed++
			}
		}
		if file.Updated {
			updated++
		}
		if file.err != nil {
			faulty++
			if c := exitCodeOf(file.err); code == exitcode.OK || c > code {
				code = c
			}
		}
		files = append(files, file)
		if f != output.JSON {
			e.printTests(file)
		}
	}
	summary := fmt.Sprintf("%d passed, %d failed", passed, failed)
	if faulty > 0 {
		summary += ", " + output.Count(faulty, "faulty file")
	}
	if updated > 0 {
		summary += ", " + output.Count(updated, "file") + " updated"
	}
	if failed > 0 && code == exitcode.OK {
		code = exitcode.Failed
	}
	if o.junit != "" {
		if err := writeJUnit(o.junit, files); err != nil {
			return exitcode.With(exitcode.Environment, err)
		}
	}
	if f == output.JSON {
		if err := output.WriteEnvelope(e.Stdout, output.Envelope{Command: commandName(cmd), Ok: code == exitcode.OK, Summary: summary, Result: map[string]any{"files": files}}); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(e.Stdout, summary)
	}
	if code != exitcode.OK {
		return exitcode.Printed(code, errors.New(summary))
	}
	return nil
}

// testFile runs the tests of one file.
func (e *Env) testFile(ctx context.Context, name string, update bool) testFile {
	out := testFile{File: name, Tests: []testReport{}}
	fail := func(err error) testFile {
		if err != nil {
			out.err, out.Error = exitcode.With(exitcode.Input, err), err.Error()
			var remote *control.Error
			if errors.As(err, &remote) {
				out.err = err
				if remote.Rendered != "" {
					out.Error = strings.TrimRight(remote.Rendered, "\n")
				}
			}
		}
		return out
	}
	suite, err := jobtest.Load(name)
	if err != nil {
		return fail(err)
	}
	registry, err := connectors(nil, nil)
	if err != nil {
		return fail(err)
	}
	results, err := jobtest.Run(ctx, suite, jobtest.Options{Registry: registry, Functions: e.Functions, Vars: e.vars(nil), Accept: update})
	for _, r := range results {
		t := testReport{Name: r.Name, Line: r.Line, OK: r.OK, Seconds: r.Seconds, Problems: r.Problems, Notes: r.Notes, Steps: r.Steps}
		if t.Problems == nil {
			t.Problems = []jobtest.Problem{}
		}
		out.Tests = append(out.Tests, t)
	}
	if err != nil || !update {
		return fail(err)
	}
	text, changed, err := suite.Update(results)
	if err != nil {
		return fail(exitcode.With(exitcode.Failed, err))
	}
	if changed {
		if err := replaceFile(name, string(text)); err != nil {
			return fail(exitcode.With(exitcode.Environment, err))
		}
		out.Updated = true
	}
	return out
}

// printTests prints a file's report for people.
func (e *Env) printTests(f testFile) {
	for _, t := range f.Tests {
		verdict := "ok"
		if f.Updated && !t.OK {
			verdict = "updated"
		} else if !t.OK {
			verdict = "FAILED"
		}
		fmt.Fprintf(e.Stdout, "%s: %s: %s\n", f.File, t.Name, verdict)
		step, table := "", ""
		for _, p := range t.Problems {
			if p.Step != step {
				step, table = p.Step, ""
				fmt.Fprintf(e.Stdout, "  %s\n", after(step))
			}
			if p.Table != table {
				table = p.Table
				fmt.Fprintf(e.Stdout, "  table %s\n", table)
			}
			indent, at := "  ", ""
			if p.Table != "" {
				indent = "    "
			}
			if p.Line > 0 {
				at = fmt.Sprintf("line %d: ", p.Line)
			}
			fmt.Fprintln(e.Stdout, indent+at+p.Message)
		}
		for _, n := range t.Notes {
			fmt.Fprintf(e.Stdout, "  note: %s\n", n)
		}
	}
	if f.Error != "" {
		fmt.Fprintln(e.Stderr, f.Error)
	}
}

// after says when something was found: after a step, or at the end of a test with steps.
func after(step string) string {
	if step == "" {
		return "at the end"
	}
	return "after step " + step
}

// testFiles are the test files that the arguments name.
func testFiles(args []string) ([]string, error) {
	var out []string
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	for _, arg := range args {
		path, deep := strings.CutSuffix(arg, "...")
		if path = filepath.Clean(path); deep && path == "" {
			path = "."
		}
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usage("no file or folder %s", path)
		}
		if err != nil {
			return nil, exitcode.With(exitcode.Environment, err)
		}
		if !info.IsDir() {
			if strings.HasSuffix(path, ".sql") {
				return nil, usage("%s is no test file; its tests stand in NAME.test.yaml", path)
			}
			add(path)
			continue
		}
		var names []string
		err = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() && p != path && !deep {
				return filepath.SkipDir
			}
			if err == nil && !d.IsDir() && jobtest.IsTestFile(p) {
				names = append(names, p)
			}
			return err
		})
		if err != nil {
			return nil, exitcode.With(exitcode.Environment, err)
		}
		if len(names) == 0 {
			return nil, usage("no *.test.yaml file in %s", arg)
		}
		sort.Strings(names)
		for _, n := range names {
			add(n)
		}
	}
	return out, nil
}
