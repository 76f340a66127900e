package cli

import (
	"context"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/control"
)

func topicsCommand(e *Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topics",
		Short: "list, make, fill, read and remove topics; draft their DDL",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(topicsLs(e), topicsDescribe(e), topicsCreate(e), topicsRm(e), topicsProduce(e), topicsConsume(e), topicsInfer(e))
	return cmd
}

func topicsLs(e *Env) *cobra.Command {
	var internal bool
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "list topics with their numbers of records",
		Example: "  millrace topics ls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				all, err := api.Topics(ctx)
				if err != nil {
					return err
				}
				topics := all[:0]
				for _, t := range all {
					if internal || !t.Internal {
						topics = append(topics, t)
					}
				}
				return e.result(cmd, output.Count(len(topics), "topic"), map[string]any{"topics": topics}, func(r *output.Rows) error {
					for _, t := range topics {
						var records, bytes int64
						for _, p := range t.Partitions {
							records += p.Latest - p.Earliest
							bytes += p.Bytes
						}
						if err := r.Write(output.Text(t.Name), output.Number(len(t.Partitions)), output.Number(records), output.Bytes(bytes)); err != nil {
							return err
						}
					}
					return nil
				}, "TOPIC", "PARTITIONS", "RECORDS", "SIZE")
			})
		},
	}
	cmd.Flags().BoolVar(&internal, "internal", false, "also Millrace's own topics")
	return cmd
}

func topicsDescribe(e *Env) *cobra.Command {
	return &cobra.Command{
		Use:   "describe TOPIC",
		Short: "a topic's partitions, bounds and options",
		Long: `Shows for each partition of a topic the offset of the earliest record that can be
read, the offset that the next record will get, and its size. Options that differ
from the defaults go to stderr.`,
		Example: "  millrace topics describe clicks",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				t, err := api.Topic(ctx, args[0])
				if err != nil {
					return err
				}
				if len(t.Config) > 0 {
					keys := make([]string, 0, len(t.Config))
					for k := range t.Config {
						keys = append(keys, k)
					}
					sort.Strings(keys)
					for _, k := range keys {
						e.note("%s = %s", k, t.Config[k])
					}
				}
				return e.result(cmd, "topic "+t.Name+", "+output.Count(len(t.Partitions), "partition"), t, func(r *output.Rows) error {
					for _, p := range t.Partitions {
						if err := r.Write(output.Number(p.Partition), output.Number(p.Earliest), output.Number(p.Latest), output.Bytes(p.Bytes)); err != nil {
							return err
						}
					}
					return nil
				}, "PARTITION", "EARLIEST", "LATEST", "SIZE")
			})
		},
	}
}

func topicsCreate(e *Env) *cobra.Command {
	var partitions int
	var config []string
	var ifNotExists bool
	cmd := &cobra.Command{
		Use:     "create TOPIC",
		Short:   "make a topic",
		Example: "  millrace topics create clicks --partitions 3 --config retention.ms=604800000",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			set, err := pairs("--config", config)
			if err != nil {
				return err
			}
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				t, err := api.CreateTopic(ctx, control.CreateTopic{Name: args[0], Partitions: partitions, Config: set, IfNotExists: ifNotExists})
				if err != nil {
					return err
				}
				return e.done(cmd, "topic "+t.Name+" has "+output.Count(len(t.Partitions), "partition"), t)
			})
		},
	}
	cmd.Flags().IntVar(&partitions, "partitions", 1, "make `N` partitions")
	cmd.Flags().StringArrayVar(&config, "config", nil, "an option of the topic, `KEY=VALUE`; may be repeated")
	cmd.Flags().BoolVar(&ifNotExists, "if-not-exists", false, "say nothing if it is there already")
	return cmd
}

func topicsRm(e *Env) *cobra.Command {
	var yes, force bool
	cmd := &cobra.Command{
		Use:   "rm TOPIC --yes",
		Short: "remove a topic and its records",
		Long: `Removes a topic with all its records. A topic that a job reads is kept unless
--force is given; a job that runs then reads it to its end and commits first.`,
		Example: "  millrace topics rm clicks --yes",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				return usage("this removes topic %s and every record of it; say --yes", args[0])
			}
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				if err := api.DeleteTopic(ctx, control.DeleteTopic{Name: args[0], Force: force}); err != nil {
					return err
				}
				return e.done(cmd, "topic "+args[0]+" is removed", map[string]string{"topic": args[0]})
			})
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "yes, remove it")
	cmd.Flags().BoolVar(&force, "force", false, "also when a job reads it")
	return cmd
}

// pairs reads KEY=VALUE arguments of a repeatable flag.
func pairs(flag string, list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, nil
	}
	m := make(map[string]string, len(list))
	for _, s := range list {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, usage("%s %s: write KEY=VALUE", flag, s)
		}
		if _, dup := m[k]; dup {
			return nil, usage("%s %s: %s is given twice", flag, s, k)
		}
		m[k] = v
	}
	return m, nil
}
