package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/connectors/format/infer"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/sql/syntax"
)

func topicsInfer(e *Env) *cobra.Command {
	var rng, table string
	var limit int64
	cmd := &cobra.Command{
		Use:   "infer TOPIC",
		Short: "draft a CREATE TABLE from what is in the topic",
		Long: `Reads records and prints a CREATE TABLE that runs: types as wide as the values
asked for, a comment a column with how often it is there and an example offset.
It is a draft to be read and edited; schemas are never guessed while a job runs.`,
		Example: "  millrace topics infer clicks > ddl/clicks.sql",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var samples []infer.Sample
			err := e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				return api.Consume(ctx, control.Consume{Topic: args[0], Range: rng, Limit: limit}, func(r *control.Record) error {
					samples = append(samples, infer.Sample{Partition: r.Partition, Offset: r.Offset, Value: bytes.Clone(r.Value)})
					return nil
				})
			})
			if err != nil {
				return err
			}
			if table == "" {
				table = args[0]
			}
			draft, err := infer.New(samples, infer.Options{
				Table: table, Reserved: syntax.NeedsQuotes,
				With: [][2]string{{"connector", "log"}, {"topic", args[0]}, {"scan.startup.mode", "earliest-offset"}},
			})
			if errors.Is(err, infer.ErrNoRows) {
				return exitcode.With(exitcode.Input, fmt.Errorf("topic %s, range %s: %w", args[0], rng, err))
			}
			if err != nil {
				return err
			}
			summary := fmt.Sprintf("%s, %s, %d empty, %d malformed", output.Count(draft.Records, "record"), output.Count(draft.Rows, "row"), draft.Empty, draft.Malformed)
			if e.out == string(output.JSON) {
				return e.done(cmd, summary, map[string]any{"table": table, "ddl": draft.DDL, "records": draft.Records, "rows": draft.Rows, "empty": draft.Empty, "malformed": draft.Malformed})
			}
			e.note("%s", summary)
			_, err = fmt.Fprint(e.Stdout, draft.DDL)
			return err
		},
	}
	cmd.Flags().StringVar(&rng, "range", "-1000", "look at this `RANGE` of each partition; see: millrace topics consume --help")
	cmd.Flags().StringVar(&table, "table", "", "call the table `NAME`; by default as the topic")
	cmd.Flags().Int64Var(&limit, "limit", 100_000, "look at no more than `N` records")
	return cmd
}
