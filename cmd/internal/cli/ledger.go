package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/sql/diag"
)

func ledgerCommand(e *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ledger",
		Short: "the account of every row: read = written + folded + filtered + dead + late + open",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(ledgerShow(e))
	return cmd
}

func ledgerShow(e *Env) *cobra.Command {
	var check bool
	var job string
	cmd := &cobra.Command{
		Use:   "show [TABLE]",
		Short: "the equation per table",
		Long: `Shows for each table and topic what became of every row read:

  read = written + folded + filtered + dead + late + open

All of these count rows read from the topic, so that they add up: a row that UNNEST
turned into three is written once. folded rows went into a keyed stage, whose results
are EMITTED; open rows wait in files that are not committed yet; REPLAYED rows were
dead and have been written since; LOST records were gone before they could be read.
--check exits 1 when the equation does not hold.`,
		Example: `  millrace ledger show
  millrace ledger show sales --check -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			table := ""
			if len(args) == 1 {
				table = args[0]
			}
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				tables, err := api.Ledger(ctx, table)
				if err != nil {
					return err
				}
				if job != "" {
					tables = slices.DeleteFunc(tables, func(t control.TableLedger) bool { return t.Job != job })
				}
				switch {
				case len(tables) > 0:
				case table != "" && job != "":
					return usage("the ledger has no table %q of a job %q", table, job)
				case table != "":
					return e.unknownTable(ctx, api, table)
				case job != "":
					return usage("the ledger has no table of a job %q; see: millrace jobs ls", job)
				}
				wrong := 0
				for i := range tables {
					if !tables[i].Balanced() {
						wrong++
						e.note("table %s, topic %s: read %d, accounted for %d", tables[i].Table, tables[i].Topic, tables[i].Read,
							tables[i].Written+tables[i].Folded+tables[i].Filtered+tables[i].Dead+tables[i].Late+tables[i].Open)
					}
				}
				summary := fmt.Sprintf("%d tables and topics, the equation holds for all", len(tables))
				if wrong > 0 {
					summary = fmt.Sprintf("the equation does not hold for %d of %d", wrong, len(tables))
				}
				columns := []string{"TABLE", "TOPIC", "READ", "WRITTEN", "FOLDED", "FILTERED", "DEAD", "LATE", "OPEN", "EMITTED", "REPLAYED", "LOST"}
				// Tables of different jobs may have one name.
				several := slices.ContainsFunc(tables, func(t control.TableLedger) bool { return t.Job != tables[0].Job })
				if several {
					columns = slices.Insert(columns, 0, "JOB")
				}
				if err := e.result(cmd, summary, map[string]any{"tables": tables}, func(r *output.Rows) error {
					for _, t := range tables {
						cells := []output.Cell{output.Text(t.Table), output.Text(t.Topic), output.Number(t.Read), output.Number(t.Written), output.Number(t.Folded),
							output.Number(t.Filtered), output.Number(t.Dead), output.Number(t.Late), output.Number(t.Open),
							output.Number(t.Emitted), output.Number(t.Replayed), output.Number(t.Lost)}
						if several {
							cells = slices.Insert(cells, 0, output.Text(t.Job))
						}
						if err := r.Write(cells...); err != nil {
							return err
						}
					}
					return nil
				}, columns...); err != nil {
					return err
				}
				if check && wrong > 0 {
					return exitcode.Printed(exitcode.Failed, errors.New(summary))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "exit 1 when the equation does not hold")
	cmd.Flags().StringVar(&job, "job", "", "only the tables of job `NAME`")
	return cmd
}

// unknownTable says that the ledger has no such table, and the nearest.
func (e *Env) unknownTable(ctx context.Context, api control.API, table string) error {
	all, err := api.Ledger(ctx, "")
	if err != nil {
		return err
	}
	var names []string
	for _, t := range all {
		names = append(names, t.Table)
	}
	if near, ok := diag.Nearest(table, names); ok {
		return usage("the ledger has no table %q; did you mean %q?", table, near)
	}
	return usage("the ledger has no table %q; see: millrace ledger show", table)
}
