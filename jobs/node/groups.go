package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/topiclog"
)

// Coordinator knows the members of groups: the server of Kafka clients, where there
// is one.
type Coordinator interface {
	Groups() []kafkaproto.GroupInfo
	CommitOffsets(ctx context.Context, group string, cursors []topiclog.Cursor) error
}

// Coordinate tells the node who knows the members of groups; nil for nobody any
// more.
func (n *Node) Coordinate(c Coordinator) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.coordinator = c
}

func (n *Node) coordination() Coordinator {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.coordinator
}

// place is where a partition is in its topic.
type place struct {
	topic string
	index int32
}

// places finds the topics of partitions.
func (n *Node) places() map[topiclog.PartitionID]place {
	out := map[topiclog.PartitionID]place{}
	for _, t := range n.store.Topics() {
		for _, p := range t.Partitions {
			out[p.ID] = place{t.Name, p.Index}
		}
	}
	return out
}

// groupOwners are the jobs that read by groups.
func (n *Node) groupOwners() map[string]string {
	out := map[string]string{}
	for _, s := range n.store.Subscriptions() {
		out[s.Group] = cmp.Or(s.Owner, "group "+s.Group)
	}
	return out
}

// groups lists all groups by name.
func (n *Node) groups() map[string]kafkaproto.GroupInfo {
	out := map[string]kafkaproto.GroupInfo{}
	for _, name := range n.store.Groups() {
		out[name] = kafkaproto.GroupInfo{Name: name, Type: "classic", State: "Empty"}
	}
	for name := range n.groupOwners() {
		out[name] = kafkaproto.GroupInfo{Name: name, Type: "job", State: "Stable"}
	}
	if c := n.coordination(); c != nil {
		for _, g := range c.Groups() {
			out[g.Name] = g
		}
	}
	return out
}

func (n *Node) group(name string) (kafkaproto.GroupInfo, error) {
	all := n.groups()
	g, ok := all[name]
	if !ok {
		var names []string
		for name := range all {
			names = append(names, name)
		}
		return g, notFound("group", name, names)
	}
	return g, nil
}

// Groups implements control.Groups.
func (n *Node) Groups(context.Context) ([]control.Group, error) {
	owners, places := n.groupOwners(), n.places()
	out := []control.Group{}
	for _, g := range n.groups() {
		cg := control.Group{Name: g.Name, Type: g.Type, State: g.State, Members: len(g.Members), Owner: owners[g.Name]}
		for _, p := range n.positions(g, places) {
			if p.Offset >= 0 {
				cg.Partitions++
				cg.Lag += p.Lag
			}
		}
		out = append(out, cg)
	}
	slices.SortFunc(out, func(a, b control.Group) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Group implements control.Groups.
func (n *Node) Group(_ context.Context, name string) (control.GroupDetail, error) {
	g, err := n.group(name)
	if err != nil {
		return control.GroupDetail{}, err
	}
	out := control.GroupDetail{Group: control.Group{Name: g.Name, Type: g.Type, State: g.State, Members: len(g.Members), Owner: n.groupOwners()[name]},
		Protocol: g.Protocol, List: []control.GroupMember{}, Positions: n.positions(g, n.places())}
	for _, m := range g.Members {
		out.List = append(out.List, control.GroupMember{ID: m.ID, Instance: m.Instance, ClientID: m.ClientID, Host: m.Host, Partitions: len(m.Partitions)})
	}
	for _, p := range out.Positions {
		if p.Offset >= 0 {
			out.Partitions++
			out.Lag += p.Lag
		}
	}
	return out, nil
}

// positions lists where a group is, and what its members read without a position.
func (n *Node) positions(g kafkaproto.GroupInfo, places map[topiclog.PartitionID]place) []control.GroupPosition {
	readers := map[place]string{}
	for _, m := range g.Members {
		for _, p := range m.Partitions {
			readers[place{p.Topic, p.Index}] = m.ID
		}
	}
	out := []control.GroupPosition{}
	for _, c := range n.store.Cursors(g.Name) {
		at, ok := places[c.Partition]
		st, err := n.store.State(c.Partition)
		if !ok || err != nil {
			continue // deleted meanwhile
		}
		committed := c.CommitTime
		out = append(out, control.GroupPosition{Topic: at.topic, Partition: at.index, Offset: c.Offset, Latest: st.HighWatermark,
			Lag: max(st.HighWatermark-c.Offset, 0), Committed: &committed, Metadata: c.Metadata, Member: readers[at]})
		delete(readers, at)
	}
	for at, member := range readers {
		p := control.GroupPosition{Topic: at.topic, Partition: at.index, Offset: -1, Lag: -1, Member: member}
		if t, err := n.store.Topic(at.topic); err == nil && int(at.index) < len(t.Partitions) {
			if st, err := n.store.State(t.Partitions[at.index].ID); err == nil {
				p.Latest = st.HighWatermark
			}
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b control.GroupPosition) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return out
}

// ResetGroup implements control.Groups.
func (n *Node) ResetGroup(ctx context.Context, req control.ResetGroup) (control.GroupReset, error) {
	var none control.GroupReset
	g, err := n.group(req.Group)
	// A group may be given its first positions, of topics that are named.
	if err != nil && len(req.Topics) == 0 {
		return none, err
	}
	if owner := n.groupOwners()[req.Group]; owner != "" {
		return none, &control.Error{Kind: "failed", Message: fmt.Sprintf("group %s belongs to %s", req.Group, owner),
			Hint: "a job keeps its own positions: run it with --fresh to begin anew"}
	}
	if len(g.Members) > 0 {
		return none, membersError(&kafkaproto.MembersError{Group: req.Group, Members: len(g.Members)})
	}
	parts, ids, err := n.resetParts(ctx, req)
	if err != nil {
		return none, err
	}
	out, err := control.PlanReset(req, n.opts.Now(), parts)
	if err != nil || !req.Execute {
		return out, err
	}
	cursors := make([]topiclog.Cursor, len(ids))
	for i, id := range ids {
		cursors[i] = topiclog.Cursor{Partition: id, Offset: out.Changes[i].To, LeaderEpoch: -1}
	}
	commit := n.store.CommitCursors
	if c := n.coordination(); c != nil {
		commit = c.CommitOffsets
	}
	var members *kafkaproto.MembersError
	if err := commit(ctx, req.Group, cursors); errors.As(err, &members) {
		return none, membersError(members)
	} else if err != nil {
		return none, err
	}
	out.Executed = true
	return out, nil
}

func membersError(e *kafkaproto.MembersError) error {
	return &control.Error{Kind: "failed", Message: e.Error(), Hint: "stop its consumers first"}
}

// resetParts are the partitions that a reset is about, with their ids.
func (n *Node) resetParts(ctx context.Context, req control.ResetGroup) (parts []control.ResetPartition, ids []topiclog.PartitionID, err error) {
	at := map[topiclog.PartitionID]int64{}
	for _, c := range n.store.Cursors(req.Group) {
		at[c.Partition] = c.Offset
	}
	add := func(p place, id topiclog.PartitionID) {
		from, ok := at[id]
		if !ok {
			from = -1
		}
		parts = append(parts, control.ResetPartition{Topic: p.topic, Partition: p.index, From: from, Log: partitionLog{ctx, n.store, id}})
		ids = append(ids, id)
	}
	for _, want := range req.Topics {
		t, err := n.findTopic(want.Topic)
		if err != nil {
			return nil, nil, err
		}
		for _, index := range want.Partitions {
			if index < 0 || int(index) >= len(t.Partitions) {
				return nil, nil, inputError(fmt.Errorf("topic %s has no partition %d: it has %d", t.Name, index, len(t.Partitions)))
			}
		}
		for _, p := range t.Partitions {
			if len(want.Partitions) == 0 || slices.Contains(want.Partitions, p.Index) {
				add(place{t.Name, p.Index}, p.ID)
			}
		}
	}
	if len(req.Topics) > 0 {
		return parts, ids, nil
	}
	places := n.places()
	order := make([]topiclog.PartitionID, 0, len(at))
	for id := range at {
		if _, ok := places[id]; ok {
			order = append(order, id)
		}
	}
	slices.SortFunc(order, func(a, b topiclog.PartitionID) int {
		return cmp.Or(strings.Compare(places[a].topic, places[b].topic), cmp.Compare(places[a].index, places[b].index))
	})
	for _, id := range order {
		add(places[id], id)
	}
	return parts, ids, nil
}
