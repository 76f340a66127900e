package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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
