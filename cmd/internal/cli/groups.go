package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/readrange"
)

func groupsCommand(e *Env) *cobra.Command {
	var cf clusterFlags
	cmd := &cobra.Command{
		Use:   "groups",
		Short: "groups of consumers: who reads, how far, and from where next",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cf.add(cmd)
	cmd.AddCommand(groupsLs(e, &cf), groupsDescribe(e, &cf), groupsReset(e, &cf))
	return cmd
}

func groupsLs(e *Env, cf *clusterFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "list groups with their members and lag",
		Long: `Lists the groups that have members or positions. LAG is how many offsets follow the
positions. A group of type job is one that a job reads by.`,
		Example: "  millrace groups ls",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return e.withGroups(cmd, cf, func(ctx context.Context, api control.Groups) error {
				groups, err := api.Groups(ctx)
				if err != nil {
					return err
				}
				return e.result(cmd, output.Count(len(groups), "group"), map[string]any{"groups": groups}, func(r *output.Rows) error {
					for _, g := range groups {
						if err := r.Write(output.Text(g.Name), output.Text(g.Type), output.Text(g.State), output.Number(g.Members), output.Number(g.Partitions), output.Number(g.Lag)); err != nil {
							return err
						}
					}
					return nil
				}, "GROUP", "TYPE", "STATE", "MEMBERS", "PARTITIONS", "LAG")
			})
		},
	}
}

func groupsDescribe(e *Env, cf *clusterFlags) *cobra.Command {
	var members bool
	cmd := &cobra.Command{
		Use:   "describe GROUP",
		Short: "a group's positions, or its members",
		Long: `Shows for each partition that the group has a position in, or that a member reads,
the next offset to read, the end of the log, and the lag. With --members it shows
the members in place of that; -o json always has both.`,
		Example: "  millrace groups describe billing\n  millrace groups describe billing --members",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withGroups(cmd, cf, func(ctx context.Context, api control.Groups) error {
				g, err := api.Group(ctx, args[0])
				if err != nil {
					return err
				}
				about := fmt.Sprintf("group %s is %s, with %s", g.Name, g.State, output.Count(g.Members, "member"))
				if g.Owner != "" {
					about = fmt.Sprintf("group %s belongs to %s", g.Name, g.Owner)
				}
				if members {
					return e.result(cmd, about, g, func(r *output.Rows) error {
						for _, m := range g.List {
							if err := r.Write(output.Text(m.ID), output.Text(m.Instance), output.Text(m.ClientID), output.Text(m.Host), output.Number(m.Partitions)); err != nil {
								return err
							}
						}
						return nil
					}, "MEMBER", "INSTANCE", "CLIENT", "HOST", "PARTITIONS")
				}
				return e.result(cmd, about, g, func(r *output.Rows) error {
					for _, p := range g.Positions {
						offset, lag := output.Number(p.Offset), output.Number(p.Lag)
						if p.Offset < 0 {
							offset, lag = noNumber(), noNumber()
						}
						if err := r.Write(output.Text(p.Topic), output.Number(p.Partition), offset, output.Number(p.Latest), lag, output.Text(p.Member)); err != nil {
							return err
						}
					}
					return nil
				}, "TOPIC", "PARTITION", "OFFSET", "LATEST", "LAG", "MEMBER")
			})
		},
	}
	cmd.Flags().BoolVar(&members, "members", false, "show who its members are")
	return cmd
}

func groupsReset(e *Env, cf *clusterFlags) *cobra.Command {
	var rng string
	var topics []string
	var execute bool
	cmd := &cobra.Command{
		Use:   "reset GROUP --range R",
		Short: "move a group's positions; a plan unless --execute",
		Long: `Moves the positions of a group to the beginning of a range, in every partition that
it has a position in, or in those given by --topic. Nothing is moved without
--execute: the plan is shown. It is refused while the group has members, and for a
group that a job reads by.

  --range start       the earliest record
  --range end         the end as it is now
  --range -n          n records before the end
  --range o1:         offset o1, or what is nearest to it
  --range @t1         the first record at or after a time: RFC 3339, a date, or -48h`,
		Example: `  millrace groups reset billing --range @-2h
  millrace groups reset billing --range start --topic clicks:0,1 --execute`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("range") {
				return usage("--range is missing: say where to, such as --range start or --range @-2h")
			}
			if _, err := readrange.Parse(rng, e.Now()); err != nil {
				return exitcode.With(exitcode.Input, err)
			}
			req := control.ResetGroup{Group: args[0], Range: rng, Execute: execute}
			for _, s := range topics {
				t, err := topicPartitions(s)
				if err != nil {
					return err
				}
				req.Topics = append(req.Topics, t)
			}
			return e.withGroups(cmd, cf, func(ctx context.Context, api control.Groups) error {
				plan, err := api.ResetGroup(ctx, req)
				if err != nil {
					return err
				}
				return e.showReset(cmd, &plan)
			})
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&rng, "range", "", "to the beginning of `R`")
	fl.StringArrayVar(&topics, "topic", nil, "of `TOPIC`, or TOPIC:0,1 for some of its partitions; may be repeated")
	fl.BoolVar(&execute, "execute", false, "do it")
	return cmd
}

func (e *Env) showReset(cmd *cobra.Command, plan *control.GroupReset) error {
	summary := fmt.Sprintf("plan for group %s, %s; --execute does it", plan.Group, output.Count(len(plan.Changes), "partition"))
	if plan.Executed {
		summary = fmt.Sprintf("group %s reads on from here in %s", plan.Group, output.Count(len(plan.Changes), "partition"))
	}
	err := e.result(cmd, summary, plan, func(r *output.Rows) error {
		for _, c := range plan.Changes {
			from := output.Number(c.From)
			if c.From < 0 {
				from = noNumber()
			}
			if err := r.Write(output.Text(c.Topic), output.Number(c.Partition), from, output.Number(c.To), output.Number(c.Earliest), output.Number(c.Latest)); err != nil {
				return err
			}
		}
		return nil
	}, "TOPIC", "PARTITION", "FROM", "TO", "EARLIEST", "LATEST")
	if err == nil && e.out != string(output.JSON) {
		e.note("%s", summary)
	}
	return err
}

// noNumber stands where a number would.
func noNumber() output.Cell { return output.Cell{Text: "-", JSON: []byte("null"), Right: true} }

// topicPartitions reads TOPIC or TOPIC:0,1.
func topicPartitions(s string) (control.TopicPartitions, error) {
	topic, list, some := strings.Cut(s, ":")
	t := control.TopicPartitions{Topic: topic}
	if topic == "" || some && list == "" {
		return t, usage("--topic %s: write TOPIC or TOPIC:0,1", s)
	}
	if !some {
		return t, nil
	}
	for _, n := range strings.Split(list, ",") {
		p, err := strconv.ParseInt(strings.TrimSpace(n), 10, 32)
		if err != nil || p < 0 {
			return t, usage("--topic %s: %q is no number of a partition", s, n)
		}
		if !slices.Contains(t.Partitions, int32(p)) {
			t.Partitions = append(t.Partitions, int32(p))
		}
	}
	return t, nil
}
