package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/connectors/kafka"
	"github.com/millrace/millrace/jobs/control"
)

// withGroups runs f with who knows the groups: the owner of the data directory, or
// a cluster.
func (e *Env) withGroups(cmd *cobra.Command, cf *clusterFlags, f func(context.Context, control.Groups) error) error {
	return e.withAccess(cmd, cf, func(ctx context.Context, a control.Access) error {
		switch a := a.(type) {
		case cluster:
			return f(ctx, clusterGroups{a.admin, e.Now})
		case control.API:
			return f(ctx, a)
		}
		return fmt.Errorf("groups of %T are not known", a)
	})
}

// clusterGroups is a Kafka cluster as control.Groups.
type clusterGroups struct {
	admin *kafka.Admin
	now   func() time.Time
}

// Groups implements control.Groups.
func (c clusterGroups) Groups(ctx context.Context) ([]control.Group, error) {
	listed, err := c.admin.Groups(ctx)
	if err != nil {
		return nil, err
	}
	out := []control.Group{}
	for _, l := range listed {
		g, err := c.Group(ctx, l.Name)
		if errors.Is(err, kafka.ErrNoGroup) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		out = append(out, g.Group)
	}
	return out, nil
}

// Group implements control.Groups.
func (c clusterGroups) Group(ctx context.Context, name string) (control.GroupDetail, error) {
	g, err := c.admin.Group(ctx, name)
	if err != nil {
		return control.GroupDetail{}, noGroup(err)
	}
	out := control.GroupDetail{Group: control.Group{Name: g.Name, Type: g.Type, State: g.State, Members: len(g.Members)},
		Protocol: g.Protocol, List: []control.GroupMember{}, Positions: []control.GroupPosition{}}
	positions, err := c.admin.Positions(ctx, name)
	if err != nil {
		return out, err
	}
	at := map[kafka.TopicPartition]control.GroupPosition{}
	for _, p := range positions {
		at[p.TopicPartition] = control.GroupPosition{Topic: p.Topic, Partition: p.Partition, Offset: p.Offset, Metadata: p.Metadata}
	}
	for _, m := range g.Members {
		out.List = append(out.List, control.GroupMember{ID: m.ID, Instance: m.Instance, ClientID: m.ClientID, Host: m.Host, Partitions: len(m.Partitions)})
		for _, tp := range m.Partitions {
			p, ok := at[tp]
			if !ok {
				p = control.GroupPosition{Topic: tp.Topic, Partition: tp.Partition, Offset: -1, Lag: -1}
			}
			p.Member = m.ID
			at[tp] = p
		}
	}
	var topics []string
	for tp := range at {
		topics = append(topics, tp.Topic)
	}
	slices.Sort(topics)
	bounds, err := c.admin.Bounds(ctx, slices.Compact(topics)...)
	if err != nil {
		return out, err
	}
	for tp, p := range at {
		b, ok := bounds[tp]
		if !ok {
			continue // of a topic that is gone
		}
		if p.Latest = b.Latest; p.Offset >= 0 {
			p.Lag = max(b.Latest-p.Offset, 0)
			out.Partitions++
			out.Lag += p.Lag
		}
		out.Positions = append(out.Positions, p)
	}
	slices.SortFunc(out.Positions, func(a, b control.GroupPosition) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return out, nil
}

// noGroup makes a group that is not there an input error.
func noGroup(err error) error {
	if errors.Is(err, kafka.ErrNoGroup) {
		return exitcode.With(exitcode.Input, err)
	}
	return err
}

// clusterLog is a partition of a cluster as readrange.Log.
type clusterLog struct {
	ctx    context.Context
	admin  *kafka.Admin
	part   kafka.TopicPartition
	bounds kafka.Bounds
}

func (l clusterLog) Bounds() (int64, int64, error) { return l.bounds.Earliest, l.bounds.Latest, nil }

func (l clusterLog) OffsetForTime(t time.Time) (int64, error) {
	return l.admin.OffsetAfter(l.ctx, l.part, t)
}

// ResetGroup implements control.Groups.
func (c clusterGroups) ResetGroup(ctx context.Context, req control.ResetGroup) (control.GroupReset, error) {
	var none control.GroupReset
	g, err := c.admin.Group(ctx, req.Group)
	switch {
	case errors.Is(err, kafka.ErrNoGroup) && len(req.Topics) > 0: // its first positions
	case err != nil:
		return none, noGroup(err)
	case len(g.Members) > 0:
		return none, exitcode.With(exitcode.Failed, fmt.Errorf("group %s has %d active members: stop its consumers first", req.Group, len(g.Members)))
	}
	parts, err := c.resetParts(ctx, req)
	if err != nil {
		return none, err
	}
	out, err := control.PlanReset(req, c.now(), parts)
	if err != nil || !req.Execute || len(out.Changes) == 0 {
		return out, err
	}
	positions := make([]kafka.GroupPosition, len(out.Changes))
	for i, ch := range out.Changes {
		positions[i] = kafka.GroupPosition{TopicPartition: kafka.TopicPartition{Topic: ch.Topic, Partition: ch.Partition}, Offset: ch.To}
	}
	if err := c.admin.SetPositions(ctx, req.Group, positions); err != nil {
		return none, err
	}
	out.Executed = true
	return out, nil
}

// resetParts are the partitions that a reset is about.
func (c clusterGroups) resetParts(ctx context.Context, req control.ResetGroup) ([]control.ResetPartition, error) {
	positions, err := c.admin.Positions(ctx, req.Group)
	if err != nil {
		return nil, err
	}
	from := map[kafka.TopicPartition]int64{}
	var topics []string
	for _, p := range positions {
		from[p.TopicPartition] = p.Offset
		topics = append(topics, p.Topic)
	}
	wanted := map[string][]int32{}
	if len(req.Topics) > 0 {
		topics = nil
		for _, t := range req.Topics {
			topics, wanted[t.Topic] = append(topics, t.Topic), t.Partitions
		}
	}
	slices.Sort(topics)
	bounds, err := c.admin.Bounds(ctx, slices.Compact(topics)...)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	var parts []control.ResetPartition
	for tp, b := range bounds {
		known[tp.Topic] = true
		at, has := from[tp]
		only := wanted[tp.Topic]
		if len(req.Topics) == 0 && !has || len(only) > 0 && !slices.Contains(only, tp.Partition) {
			continue
		}
		if !has {
			at = -1
		}
		parts = append(parts, control.ResetPartition{Topic: tp.Topic, Partition: tp.Partition, From: at, Log: clusterLog{ctx, c.admin, tp, b}})
	}
	for topic, only := range wanted {
		if !known[topic] {
			return nil, usage("there is no topic %q", topic)
		}
		for _, p := range only {
			if _, ok := bounds[kafka.TopicPartition{Topic: topic, Partition: p}]; !ok {
				return nil, usage("topic %s has no partition %d", topic, p)
			}
		}
	}
	slices.SortFunc(parts, func(a, b control.ResetPartition) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return parts, nil
}
