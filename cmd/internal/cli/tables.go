package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/control"
)

func tablesCommand(e *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tables",
		Short: "tables that jobs write: where they are, move one to its other cluster",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(tablesLs(e), tablesSwitch(e))
	return cmd
}

func tablesLs(e *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "list the tables and their homes",
		Long: `Lists the tables that jobs write. A table with a standby has two homes: HOME is
where its new partitions begin, SWITCHES how often it has moved, MOVING the rows of
partitions that are being written anew there. -o json has the home of each partition.
A home that does not take files is named on stderr.`,
		Example: "  millrace tables ls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				tables, err := api.Homes(ctx)
				if err != nil {
					return err
				}
				return e.result(cmd, output.Count(len(tables), "table"), map[string]any{"tables": tables}, func(r *output.Rows) error {
					for _, t := range tables {
						standby := "no"
						if t.Standby {
							standby = "yes"
						}
						if err := r.Write(output.Text(t.Table), output.Text(t.Job), output.Text(t.Home), output.Text(standby),
							output.Number(int64(t.Switches)), output.Number(t.MovingRows), output.Text(t.Place)); err != nil {
							return err
						}
						if t.FailingSince != nil {
							e.note("table %s: its %s home fails since %s: %s", t.Table, t.Home, t.FailingSince.Format("15:04:05"), t.Why)
						}
					}
					return nil
				}, "TABLE", "JOB", "HOME", "STANDBY", "SWITCHES", "MOVING", "PLACE")
			})
		},
	}
}

func tablesSwitch(e *Env) *cobra.Command {
	var req control.SwitchTable
	cmd := &cobra.Command{
		Use:   "switch TABLE --to main|standby",
		Short: "move a table to its other cluster",
		Long: `Moves a table with a standby to its other home, while its job runs or not.
Partitions that are not announced move with all their rows, which are written anew from
the log; what they had at the old home is void. Announced partitions stay. With --edge
partitions that have begun stay as well, and only new ones begin at the other home: the
way back to a cluster that serves again.`,
		Example: `  millrace tables switch push --to standby
  millrace tables switch push --to main --edge`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			req.Table = args[0]
			if req.To == "" {
				return usage("where to? say --to main or --to standby")
			}
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				s, err := api.SwitchTable(ctx, req)
				if err != nil {
					return err
				}
				return e.done(cmd, switchedLine(&s), s)
			})
		},
	}
	cmd.Flags().StringVar(&req.To, "to", "", "the `HOME` to move to: main or standby")
	cmd.Flags().StringVar(&req.Job, "job", "", "of job `NAME`, when several write a table of that name")
	cmd.Flags().BoolVar(&req.Edge, "edge", false, "leave partitions that have begun where they are")
	cmd.Flags().StringVar(&req.Reason, "reason", "", "why: a `TEXT` for the ledger and the manifest topic")
	return cmd
}

// switchedLine is what a switch did, as a sentence.
func switchedLine(s *control.Switched) string {
	if s.Already {
		return fmt.Sprintf("table %s is at its %s home already", s.Table, s.Home)
	}
	line := fmt.Sprintf("table %s: switch %d: its home is %s now", s.Table, s.Number, s.Home)
	if len(s.Moved) > 0 {
		line += fmt.Sprintf("; %s with %s move: %s", output.Count(len(s.Moved), "partition"), output.Count(s.Rows, "row"), strings.Join(s.Moved, ", "))
	}
	if len(s.Stayed) > 0 {
		line += fmt.Sprintf("; what %s have stays, since the log does not have it any more: %s", output.Count(len(s.Stayed), "partition"), strings.Join(s.Stayed, ", "))
	}
	if !s.Running {
		line += "; its job writes there from its next run on"
	}
	return line
}
