package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// ErrNoGroup says that a cluster has no such group.
var ErrNoGroup = errors.New("there is no such group")

// GroupInfo is a group of a cluster. Listed ones have no protocol and members.
type GroupInfo struct {
	Name string
	// Type is classic or consumer, State as the brokers say, Protocol how partitions
	// are shared out, such as range.
	Type, State, Protocol string
	Members               []GroupMember
}

// GroupMember is a member of a group; Instance is "" for one that is not static.
type GroupMember struct {
	ID, Instance, ClientID, Host string
	Partitions                   []TopicPartition
}

// TopicPartition names a partition.
type TopicPartition struct {
	Topic     string
	Partition int32
}

// GroupPosition is a committed position.
type GroupPosition struct {
	TopicPartition
	Offset   int64
	Metadata string
}

// Bounds are the first offset of a partition that can be read and the end.
type Bounds struct{ Earliest, Latest int64 }

// patient bounds a call.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, adminPatience)
}

// groupType is what a cluster calls a group; older ones have one type and do not
// say it.
func groupType(g kadm.ListedGroup) string {
	if g.GroupType == "" {
		return "classic"
	}
	return strings.ToLower(g.GroupType)
}

// Groups lists the groups by name.
func (a *Admin) Groups(ctx context.Context) ([]GroupInfo, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	listed, err := kadm.NewClient(a.client).ListGroups(ctx)
	if err != nil {
		return nil, failed(err, "listing groups")
	}
	var out []GroupInfo
	for _, g := range listed.Sorted() {
		out = append(out, GroupInfo{Name: g.Group, Type: groupType(g), State: g.State})
	}
	return out, nil
}

// Group describes a group with its members.
func (a *Admin) Group(ctx context.Context, name string) (GroupInfo, error) {
	all, err := a.Groups(ctx)
	if err != nil {
		return GroupInfo{}, err
	}
	at := slices.IndexFunc(all, func(g GroupInfo) bool { return g.Name == name })
	if at < 0 {
		return GroupInfo{}, fmt.Errorf("%w: %s", ErrNoGroup, name)
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	switch all[at].Type {
	case "classic":
		return a.classicGroup(ctx, all[at])
	case "consumer":
		return a.consumerGroup(ctx, all[at])
	}
	return all[at], nil // share and streams groups: as listed
}

func (a *Admin) classicGroup(ctx context.Context, g GroupInfo) (GroupInfo, error) {
	described, err := kadm.NewClient(a.client).DescribeGroups(ctx, g.Name)
	d := described[g.Name]
	if err = errors.Join(err, d.Err); err != nil {
		return g, failed(err, "describing group %s", g.Name)
	}
	g.State, g.Protocol = d.State, d.Protocol
	for _, m := range d.Members {
		gm := GroupMember{ID: m.MemberID, ClientID: m.ClientID, Host: m.ClientHost}
		if m.InstanceID != nil {
			gm.Instance = *m.InstanceID
		}
		if as, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range as.Topics {
				for _, p := range t.Partitions {
					gm.Partitions = append(gm.Partitions, TopicPartition{t.Topic, p})
				}
			}
		}
		g.Members = append(g.Members, gm)
	}
	return g, nil
}

func (a *Admin) consumerGroup(ctx context.Context, g GroupInfo) (GroupInfo, error) {
	described, err := kadm.NewClient(a.client).DescribeConsumerGroups(ctx, g.Name)
	d := described[g.Name]
	if err = errors.Join(err, d.Err); err != nil {
		return g, failed(err, "describing group %s", g.Name)
	}
	g.State, g.Protocol = d.State, d.AssignorName
	for _, m := range d.Members {
		gm := GroupMember{ID: m.MemberID, ClientID: m.ClientID, Host: m.ClientHost}
		if m.InstanceID != nil {
			gm.Instance = *m.InstanceID
		}
		for topic, parts := range m.Assignment {
			for p := range parts {
				gm.Partitions = append(gm.Partitions, TopicPartition{topic, p})
			}
		}
		g.Members = append(g.Members, gm)
	}
	return g, nil
}

// Positions are a group's committed positions.
func (a *Admin) Positions(ctx context.Context, group string) ([]GroupPosition, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	got, err := kadm.NewClient(a.client).FetchOffsets(ctx, group)
	if err == nil {
		err = got.Error()
	}
	if err != nil {
		return nil, failed(err, "reading positions of group %s", group)
	}
	var out []GroupPosition
	for _, o := range got.Sorted() {
		if o.At >= 0 {
			out = append(out, GroupPosition{TopicPartition{o.Topic, o.Partition}, o.At, o.Metadata})
		}
	}
	return out, nil
}

// Bounds are those of all partitions of topics. A topic that does not exist is
// left out.
func (a *Admin) Bounds(ctx context.Context, topics ...string) (map[TopicPartition]Bounds, error) {
	out := map[TopicPartition]Bounds{}
	if len(topics) == 0 {
		return out, nil // no topics would mean all
	}
	ctx, cancel := patient(ctx)
	defer cancel()
	adm := kadm.NewClient(a.client)
	starts, err := adm.ListStartOffsets(ctx, topics...)
	if err != nil {
		return nil, failed(err, "finding the bounds of topics")
	}
	ends, err := adm.ListEndOffsets(ctx, topics...)
	if err != nil {
		return nil, failed(err, "finding the bounds of topics")
	}
	var faults []error
	ends.Each(func(e kadm.ListedOffset) {
		s, _ := starts.Lookup(e.Topic, e.Partition)
		switch err := errors.Join(e.Err, s.Err); {
		case errors.Is(err, kerr.UnknownTopicOrPartition):
		case err != nil:
			faults = append(faults, failed(err, "finding the bounds of topic %s partition %d", e.Topic, e.Partition))
		default:
			out[TopicPartition{e.Topic, e.Partition}] = Bounds{s.Offset, e.Offset}
		}
	})
	return out, errors.Join(faults...)
}

// OffsetAfter is the first offset of a partition with a timestamp at or after t, the
// end if there is none.
func (a *Admin) OffsetAfter(ctx context.Context, p TopicPartition, t time.Time) (int64, error) {
	ctx, cancel := patient(ctx)
	defer cancel()
	got, err := kadm.NewClient(a.client).ListOffsetsAfterMilli(ctx, t.UnixMilli(), p.Topic)
	o, _ := got.Lookup(p.Topic, p.Partition)
	if err == nil {
		err = o.Err
	}
	if err != nil {
		return 0, failed(err, "finding a time in topic %s partition %d", p.Topic, p.Partition)
	}
	return o.Offset, nil
}

// SetPositions commits positions of a group as somebody who is no member. While it
// has members the brokers refuse.
func (a *Admin) SetPositions(ctx context.Context, group string, positions []GroupPosition) error {
	ctx, cancel := patient(ctx)
	defer cancel()
	var os kadm.Offsets
	for _, p := range positions {
		os.Add(kadm.Offset{Topic: p.Topic, Partition: p.Partition, At: p.Offset, LeaderEpoch: -1, Metadata: p.Metadata})
	}
	if err := kadm.NewClient(a.client).CommitAllOffsets(ctx, group, os); err != nil {
		return failed(err, "committing positions of group %s", group)
	}
	return nil
}
