package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/control"
)

func deadCommand(e *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dead",
		Short: "dead letters: list, look at, replay after a fix",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(deadLs(e), deadShow(e), deadReplay(e))
	return cmd
}

func deadFlags(cmd *cobra.Command, q *control.DeadQuery) {
	cmd.Flags().StringVar(&q.Job, "job", "", "only of job `NAME`")
	cmd.Flags().StringVar(&q.Reason, "reason", "", "only with this `REASON`, such as type_mismatch")
	cmd.Flags().Int64Var(&q.Limit, "limit", 0, "at most `N` of them; 0: all")
}

// collectDead reads all matching dead letters; there are few.
func collectDead(ctx context.Context, api control.API, q control.DeadQuery) ([]control.DeadRecord, error) {
	records := []control.DeadRecord{}
	err := api.Dead(ctx, q, func(r *control.DeadRecord) error {
		records = append(records, *r)
		return nil
	})
	return records, err
}

func deadLs(e *Env) *cobra.Command {
	var q control.DeadQuery
	cmd := &cobra.Command{
		Use:   "ls [TABLE]",
		Short: "list dead letters with their reasons",
		Long: `Lists rows that no table could hold, with the record they came from, as
PARTITION:OFFSET of the topic, and the reason. Late rows are listed too; the ledger
counts them apart.`,
		Example: "  millrace dead ls push --reason type_mismatch",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				q.Table = args[0]
			}
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				records, err := collectDead(ctx, api, q)
				if err != nil {
					return err
				}
				return e.result(cmd, output.Count(len(records), "dead letter"), map[string]any{"records": records}, func(r *output.Rows) error {
					for _, d := range records {
						state := ""
						if d.Replayed {
							state = "replayed"
						} else if d.Attempts > 0 {
							state = fmt.Sprintf("failed again (%d)", d.Attempts)
						}
						if err := r.Write(output.Text(d.Table), output.Text(d.Topic), output.Text(fmt.Sprintf("%d:%d", d.Partition, d.Offset)),
							output.Text(d.Reason), output.Text(d.Column), output.Text(d.Message), output.Text(state)); err != nil {
							return err
						}
					}
					return nil
				}, "TABLE", "TOPIC", "RECORD", "REASON", "COLUMN", "MESSAGE", "STATE")
			})
		},
	}
	deadFlags(cmd, &q)
	return cmd
}

func deadShow(e *Env) *cobra.Command {
	var q control.DeadQuery
	cmd := &cobra.Command{
		Use:     "show TABLE [PARTITION:OFFSET]",
		Short:   "dead letters with their records as they came",
		Example: "  millrace dead show push 2:4711",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Table = args[0]
			partition, offset := int32(-1), int64(-1)
			if len(args) == 2 {
				if n, err := fmt.Sscanf(args[1], "%d:%d", &partition, &offset); n != 2 || err != nil {
					return usage("%q: write PARTITION:OFFSET, as dead ls prints it", args[1])
				}
			}
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				all, err := collectDead(ctx, api, q)
				if err != nil {
					return err
				}
				records := all[:0]
				for _, r := range all {
					if partition < 0 || r.Partition == partition && r.Offset == offset {
						records = append(records, r)
					}
				}
				if len(records) == 0 {
					return exitcode.With(exitcode.Input, errors.New("no such dead letter; see: millrace dead ls "+args[0]))
				}
				if e.out == string(output.JSON) {
					return e.done(cmd, output.Count(len(records), "dead letter"), map[string]any{"records": records})
				}
				for _, r := range records {
					printDead(e, &r)
				}
				return nil
			})
		},
	}
	deadFlags(cmd, &q)
	return cmd
}

func printDead(e *Env, r *control.DeadRecord) {
	fmt.Fprintf(e.Stdout, "table %s, topic %s %d:%d, %s\n", r.Table, r.Topic, r.Partition, r.Offset, r.Time.UTC().Format(time.RFC3339))
	if r.Column != "" {
		fmt.Fprintf(e.Stdout, "  %s: %s (%s)\n", r.Column, r.Message, r.Reason)
	} else {
		fmt.Fprintf(e.Stdout, "  %s (%s)\n", r.Message, r.Reason)
	}
	fmt.Fprintf(e.Stdout, "%s\n\n", prettyValue(r.Value))
}

// prettyValue is a record's value for people: indented if it is JSON.
func prettyValue(v []byte) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("  ", "  ")
	if json.Valid(v) && enc.Encode(json.RawMessage(v)) == nil {
		return "  " + strings.TrimRight(b.String(), "\n")
	}
	if utf8.Valid(v) {
		return "  " + string(v)
	}
	return fmt.Sprintf("  %q", v)
}

func deadReplay(e *Env) *cobra.Command {
	var job jobFlags
	var r control.Replay
	cmd := &cobra.Command{
		Use:   "replay TABLE [JOB.sql]",
		Short: "process dead letters again, once",
		Long: `Processes the dead letters of a table again, through the job as it runs or
through a corrected SQL file. A row that can be written now is written exactly
once and counted as replayed; one that fails again stays a dead letter, with
one attempt more. The records themselves come from the dead letter, so that
they can be replayed long after the topic has dropped them.`,
		Example: `  millrace dead replay push
  millrace dead replay push fixed.sql -f ddl/`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Table = args[0]
			if len(args) == 1 && len(job.ddl) > 0 {
				return usage("-f goes with a job file: millrace dead replay %s JOB.sql -f ...", args[0])
			}
			if len(args) == 2 {
				var err error
				if r.Files, err = job.read(args[1:]); err != nil {
					return err
				}
			}
			var err error
			if r.Set, err = job.variables(); err != nil {
				return err
			}
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				got, err := api.Replay(ctx, r)
				if err != nil {
					return err
				}
				return e.done(cmd, fmt.Sprintf("replayed %s of table %s: %d written, %d dead again, %d filtered", output.Count(got.Rows, "row"), got.Table, got.Written, got.Dead, got.Filtered), got)
			})
		},
	}
	job.register(cmd)
	cmd.Flags().StringVar(&r.Job, "job", "", "the `NAME` of the job that writes the table, where several do")
	return cmd
}
