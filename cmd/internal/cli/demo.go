package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	githubevents "github.com/millrace/millrace/examples/github-events"
)

func demoCommand(e *Env) *cobra.Command {
	var events int
	var keep string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "the main job on shipped data: topics, a job that is killed, tables, the proof",
		Long: `Runs the shipped job on real GitHub events: 15 topics into 15 tables, a table of
all events, and an hourly wide table per actor. Some records are spoilt on
purpose, and the job is killed (SIGKILL) in its middle, to show that nothing is
lost or doubled. Every figure that is printed is of this run.

--keep DIR leaves the data directory, the tables and the SQL files in DIR.`,
		Example: `  millrace demo
  millrace demo --events 200000 --keep demo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if events < 1 {
				return usage("--events %d: at least 1", events)
			}
			return e.demo(cmd.Context(), events, keep)
		},
	}
	cmd.Flags().IntVar(&events, "events", 20000, "make `N` events, hour by hour")
	cmd.Flags().StringVar(&keep, "keep", "", "leave everything in `DIR`, which must be new or empty")
	return cmd
}

// demoRun is one run of the demo.
type demoRun struct {
	e      *Env
	events int
	dir    string // everything lies below it
	data   string
	lake   string
	job    string
	ddl    string
	spoilt map[githubevents.Spoilt]int
}

func (e *Env) demo(ctx context.Context, events int, keep string) (err error) {
	d := &demoRun{e: e, events: events, spoilt: map[githubevents.Spoilt]int{}}
	if keep == "" {
		if d.dir, err = os.MkdirTemp("", "millrace-demo-"); err != nil {
			return exitcode.With(exitcode.Environment, err)
		}
		defer func() { err = errors.Join(err, os.RemoveAll(d.dir)) }()
	} else if d.dir, err = demoFolder(keep); err != nil {
		return err
	}
	d.data, d.lake = filepath.Join(d.dir, "data"), filepath.Join(d.dir, "lake")
	d.job, d.ddl = filepath.Join(d.dir, "job.sql"), filepath.Join(d.dir, "ddl")
	e.data = d.data
	if err := d.writeFiles(); err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	for i, step := range []struct {
		title string
		run   func(context.Context) error
	}{
		{"Fill the log", d.produce},
		{"Check the job", d.check},
		{"Run it, and kill it", d.runAndKill},
		{"What it wrote", d.written},
		{"The proof", d.proof},
	} {
		fmt.Fprintf(e.Stdout, "%d. %s\n", i+1, step.title)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("step %d, %s: %w", i+1, strings.ToLower(step.title), err)
		}
		fmt.Fprintln(e.Stdout)
	}
	d.next(keep != "")
	return nil
}

// demoFolder makes --keep's folder; one with something in it is refused.
func demoFolder(keep string) (string, error) {
	dir, err := filepath.Abs(keep)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", exitcode.With(exitcode.Environment, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", exitcode.With(exitcode.Environment, err)
	}
	if len(entries) > 0 {
		return "", usage("--keep %s: the folder is not empty", keep)
	}
	return dir, nil
}

// writeFiles puts the shipped SQL files into the demo's folder.
func (d *demoRun) writeFiles() error {
	files := githubevents.Files()
	return fs.WalkDir(files, ".", func(p string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(p, ".sql") {
			return err
		}
		b, err := files.ReadFile(p)
		if err != nil {
			return err
		}
		target := filepath.Join(d.dir, filepath.FromSlash(p))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, b, 0o644)
	})
}

// say prints a line of a step.
func (d *demoRun) say(format string, args ...any) {
	fmt.Fprintf(d.e.Stdout, "   "+format+"\n", args...)
}

// quote shows a command as typed.
func (d *demoRun) command(args ...string) string {
	rel := make([]string, len(args))
	for i, a := range args {
		if wd, err := os.Getwd(); err == nil {
			if r, err := filepath.Rel(wd, a); err == nil && filepath.IsAbs(a) && !strings.HasPrefix(r, "..") {
				a = r
			}
		}
		rel[i] = a
	}
	return "millrace " + strings.Join(rel, " ")
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
