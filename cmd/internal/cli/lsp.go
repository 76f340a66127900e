package cli

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/lsp"
	"github.com/millrace/millrace/sql/compile"
)

func lspCommand(e *Env) *cobra.Command {
	var job jobFlags
	var stdio bool
	cmd := &cobra.Command{
		Use:   "lsp",
		Short: "language server for editors, over stdin and stdout",
		Long: `Speaks the Language Server Protocol 3.17 over stdin and stdout, for an editor that
starts it: what check finds, as you type; hover with types, functions, options and
error codes; completion; go to definition; formatting. Nothing but SQL files is read.

The DDL that a document needs is taken from -f, else from the folder ddl beside the
document, else from the folder ddl of the workspace. docs/sql/editor.md says how to
hook it up.`,
		Example: "  millrace lsp\n  millrace lsp -f tables/ --set TOPIC=clicks",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			set, err := job.variables()
			if err != nil {
				return err
			}
			registry, err := connectors(nil, nil)
			if err != nil {
				return err
			}
			var ddl []string
			for _, p := range job.ddl {
				if _, err := sqlFiles(p); err != nil {
					return err
				}
				// Documents come with absolute paths.
				abs, err := filepath.Abs(p)
				if err != nil {
					return exitcode.With(exitcode.Environment, err)
				}
				ddl = append(ddl, abs)
			}
			err = lsp.Serve(cmd.Context(), e.Stdin, e.Stdout, lsp.Options{
				Version: e.Version, Compile: compile.Options{Registry: registry, Functions: e.Functions.Extra(), Vars: e.vars(set)}, DDL: ddl,
				List: sqlFiles, ReadFile: os.ReadFile, Log: e.Stderr,
			})
			if errors.Is(err, lsp.ErrNoShutdown) {
				return exitcode.With(exitcode.Failed, err)
			}
			return exitcode.With(exitcode.Environment, err)
		},
	}
	job.register(cmd)
	cmd.Flags().BoolVar(&stdio, "stdio", false, "has no effect: editors give it to servers that also speak over sockets")
	return cmd
}
