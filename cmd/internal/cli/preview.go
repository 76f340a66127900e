package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/jobs/control"
)

func previewCommand(e *Env) *cobra.Command {
	var job jobFlags
	var p control.Preview
	cmd := &cobra.Command{
		Use:   "preview JOB.sql",
		Short: "run a job on a sample; rows go to the terminal instead of the tables",
		Long: `Runs the whole job over a stretch of its topics and prints what each table would
get. Nothing is written, and the job's own positions do not move.`,
		Example: "  millrace preview job.sql -f ddl/ --range +1000 --limit 20",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if p.Files, err = job.read(args); err != nil {
				return err
			}
			if p.Set, err = job.variables(); err != nil {
				return err
			}
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				out := &resultPrinter{e: e}
				err := api.Preview(ctx, p, out)
				if cerr := out.close(); err == nil {
					err = cerr
				}
				return err
			})
		},
	}
	job.register(cmd)
	cmd.Flags().StringVar(&p.Range, "range", "+1000", "run on this `RANGE` of each partition; see: millrace topics consume --help")
	cmd.Flags().Int64Var(&p.Limit, "limit", 20, "print at most `N` rows of each table; 0: all")
	return cmd
}
