package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/spec"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
)

// compileOffline compiles files without a data directory.
func (e *Env) compileOffline(job *jobFlags, paths []string, o compile.Options) (spec.Compiled, error) {
	files, err := job.read(paths)
	if err != nil {
		return spec.Compiled{}, err
	}
	set, err := job.variables()
	if err != nil {
		return spec.Compiled{}, err
	}
	if o.Registry, err = connectors(nil, nil); err != nil {
		return spec.Compiled{}, err
	}
	o.Functions = e.Functions.Extra()
	return spec.Compile(files, e.vars(set), o), nil
}

func checkCommand(e *Env) *cobra.Command {
	var job jobFlags
	var strictMode bool
	cmd := &cobra.Command{
		Use:   "check PATH...",
		Short: "parse, bind, type-check and lint; nothing is read or written",
		Long: `Checks SQL files without touching any system: every error of a file in one go,
with its place, its cause and a way out. A path is a file, a folder, or dir/...
for a whole tree. Exit 2 when there are errors (with --strict, also warnings).`,
		Example: `  millrace check job.sql -f ddl/
  millrace check jobs/... --strict -o json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.compileOffline(&job, args, compile.Options{Mode: compile.ModeCheck})
			if err != nil {
				return err
			}
			bad := c.Findings.HasErrors() || strictMode && c.Findings.Count(diag.Warning) > 0
			f, err := e.format()
			if err != nil {
				return err
			}
			if f == output.JSON {
				findings := c.Findings
				if findings == nil {
					findings = diag.List{}
				}
				if err := output.WriteEnvelope(e.Stdout, output.Envelope{Command: commandName(cmd), Ok: !bad, Summary: c.Summary(),
					Result: map[string]any{"findings": findings}}); err != nil {
					return err
				}
			} else {
				if err := (diag.Renderer{Width: e.Width, Color: e.StdoutTerminal}).Render(e.Stdout, c.Findings); err != nil {
					return err
				}
				fmt.Fprintf(e.Stdout, "%s: %s\n", strings.Join(args, " "), c.Summary())
			}
			if bad {
				return exitcode.Printed(exitcode.Input, errors.New(c.Summary()))
			}
			return nil
		},
	}
	job.register(cmd)
	cmd.Flags().BoolVar(&strictMode, "strict", false, "warnings count as errors")
	return cmd
}

func explainCommand(e *Env) *cobra.Command {
	var job jobFlags
	cmd := &cobra.Command{
		Use:   "explain JOB.sql",
		Short: "the plan of a job: its lanes, keyed stages and state",
		Long: `Compiles a job and prints its plan as bound and as optimized, the job graph, the
lanes (one a source table) with what they write and feed, and the state that
keyed stages hold. Nothing is read or written. -o json also has the slot groups.`,
		Example: "  millrace explain job.sql -f ddl/",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := e.compileOffline(&job, args, compile.Options{Mode: compile.ModeRun})
			if err != nil {
				return err
			}
			if err := c.Err(); err != nil {
				return err
			}
			x := c.Unit.Explain
			groups := slotGroups(x)
			f, err := e.format()
			if err != nil {
				return err
			}
			if f == output.JSON {
				return output.WriteEnvelope(e.Stdout, output.Envelope{Command: commandName(cmd), Ok: true,
					Summary: output.Count(len(x.Lanes), "lane") + ", " + output.Count(len(x.State), "stateful operator"),
					Result:  map[string]any{"plan": x.Text, "lanes": x.Lanes, "slot_groups": groups, "state": x.State}})
			}
			_, err = fmt.Fprint(e.Stdout, explainText(x))
			return err
		},
	}
	job.register(cmd)
	return cmd
}

// explainText is the plan and, in words, what runs.
func explainText(x *compile.Explain) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(x.Text, "\n") + "\n\n== Lanes ==\n")
	for _, l := range x.Lanes {
		fmt.Fprintf(&b, "  %s (%s), reads %s\n", l.Table, l.Connector, strings.Join(l.Columns, ", "))
		if l.Watermark != "" {
			fmt.Fprintf(&b, "    watermark %s\n", l.Watermark)
		}
		if len(l.Direct) > 0 {
			fmt.Fprintf(&b, "    writes %s\n", strings.Join(l.Direct, ", "))
		}
		if len(l.Keyed) > 0 {
			fmt.Fprintf(&b, "    feeds %s\n", strings.Join(l.Keyed, ", "))
		}
	}
	if len(x.State) == 0 {
		return b.String()
	}
	b.WriteString("\n== State ==\n")
	for _, s := range x.State {
		fmt.Fprintf(&b, "  %s (%s)", s.Path, s.Kind)
		if s.SinkTable != "" {
			fmt.Fprintf(&b, ", for %s", s.SinkTable)
		}
		b.WriteByte('\n')
		if len(s.Keys) > 0 {
			fmt.Fprintf(&b, "    by %s\n", strings.Join(s.Keys, ", "))
		}
		if s.WindowMs > 0 {
			fmt.Fprintf(&b, "    window of %v\n", time.Duration(s.WindowMs)*time.Millisecond)
		}
		if len(s.Slots) > 0 {
			fmt.Fprintf(&b, "    holds %s\n", strings.Join(s.Slots, ", "))
		}
		if s.Spills {
			b.WriteString("    beyond slot.state-memory on disk\n")
		}
	}
	return b.String()
}

// slotGroup is a group of lanes before any traffic was seen.
type slotGroup struct {
	Group string   `json:"group"`
	Lanes []string `json:"lanes"`
	Why   string   `json:"why"`
}

// slotGroups is the placement at a first start: nothing is known about
// traffic, so all lanes share one group until it is.
func slotGroups(x *compile.Explain) []slotGroup {
	g := slotGroup{Group: "1", Lanes: []string{}, Why: "no traffic seen yet: lanes are packed by their partition counts when the job starts"}
	for _, l := range x.Lanes {
		g.Lanes = append(g.Lanes, l.Table)
	}
	return []slotGroup{g}
}

func explainErrorCommand(e *Env) *cobra.Command {
	return &cobra.Command{
		Use:     "explain-error CODE",
		Short:   "what a code of an error message means, with an example",
		Example: "  millrace explain-error unknown_column",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			page, near, ok := diag.Explain(args[0])
			if !ok {
				err := fmt.Errorf("there is no code %q; a code stands in brackets behind error or warning", args[0])
				if near != "" {
					err = fmt.Errorf("there is no code %q; did you mean %q?", args[0], near)
				}
				return exitcode.With(exitcode.Input, err)
			}
			if e.out == string(output.JSON) {
				b, err := json.Marshal(map[string]string{"code": string(page.Code), "title": page.Title, "explanation": page.Explanation, "wrong": page.Wrong, "right": page.Right})
				if err != nil {
					return err
				}
				return e.done(cmd, page.Title, json.RawMessage(b))
			}
			_, err := fmt.Fprintln(e.Stdout, strings.TrimRight(page.Markdown(), "\n"))
			return err
		},
	}
}
