package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
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
			e.note("%d records, %d rows, %d empty, %d malformed", draft.Records, draft.Rows, draft.Empty, draft.Malformed)
			_, err = fmt.Fprint(e.Stdout, draft.DDL)
			return err
		},
	}
	cmd.Flags().StringVar(&rng, "range", "-1000", "which records of each partition")
	cmd.Flags().StringVar(&table, "table", "", "the table's name; the topic's by default")
	cmd.Flags().Int64Var(&limit, "limit", 100_000, "at most so many records")
	return cmd
}
