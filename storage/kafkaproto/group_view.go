package kafkaproto

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

// GroupInfo is a group that the server coordinates, for people.
type GroupInfo struct {
	Name string
	// Type is classic or consumer, State as in Kafka's descriptions, Protocol the
	// way by which partitions are shared out, such as range.
	Type, State, Protocol string
	Members               []GroupMember
}

// GroupMember is a member of a group; Instance is "" for one that is not static.
type GroupMember struct {
	ID, Instance, ClientID, Host string
	Partitions                   []GroupPartition
}

// GroupPartition is a partition that a member reads.
type GroupPartition struct {
	Topic string
	Index int32
}

// MembersError says that a group has members, so that nobody else may move its
// positions.
type MembersError struct {
	Group   string
	Members int
}

func (e *MembersError) Error() string {
	return fmt.Sprintf("group %s has %d active members", e.Group, e.Members)
}

// Groups lists the groups that have members, or had some a while ago, by name.
// Groups that only have positions are known to the store alone.
func (s *Server) Groups() []GroupInfo {
	gs := s.groups
	gs.mu.Lock()
	defer gs.mu.Unlock()
	var out []GroupInfo
	for _, g := range gs.byName {
		out = append(out, g.info())
	}
	for _, g := range gs.consumer {
		if gs.dropConsumerGroup(g); gs.consumer[g.name] == g {
			out = append(out, g.info())
		}
	}
	slices.SortFunc(out, func(a, b GroupInfo) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func sortParts(parts []GroupPartition) {
	slices.SortFunc(parts, func(a, b GroupPartition) int {
		return cmp.Or(strings.Compare(a.Topic, b.Topic), cmp.Compare(a.Index, b.Index))
	})
}

// info needs the mutex of groups.
func (g *group) info() GroupInfo {
	out := GroupInfo{Name: g.name, Type: classicGroup, State: string(g.state), Protocol: g.protocol}
	for _, m := range g.members {
		gm := GroupMember{ID: m.id, ClientID: m.clientID, Host: m.host}
		if m.instance != nil {
			gm.Instance = *m.instance
		}
		var a kmsg.ConsumerMemberAssignment
		if g.protocolType == consumerProtocol && a.ReadFrom(m.assignment) == nil {
			for _, t := range a.Topics {
				for _, p := range t.Partitions {
					gm.Partitions = append(gm.Partitions, GroupPartition{t.Topic, p})
				}
			}
			sortParts(gm.Partitions)
		}
		out.Members = append(out.Members, gm)
	}
	return out
}

// info needs the mutex of groups.
func (g *consumerGroup) info() GroupInfo {
	out := GroupInfo{Name: g.name, Type: consumerGroupType, State: string(g.state()), Protocol: g.assignor}
	names := map[topiclog.UUID]string{}
	for _, t := range g.topics {
		names[t.id] = t.name
	}
	for _, m := range g.inOrder() {
		gm := GroupMember{ID: m.id, ClientID: m.clientID, Host: m.host}
		if m.instance != nil {
			gm.Instance = *m.instance
		}
		for p := range m.assigned {
			if name, ok := names[p.topic]; ok {
				gm.Partitions = append(gm.Partitions, GroupPartition{name, p.index})
			}
		}
		sortParts(gm.Partitions)
		out.Members = append(out.Members, gm)
	}
	return out
}

// CommitOffsets durably sets positions of a group as somebody who is no member:
// while there are members that is a *MembersError.
func (s *Server) CommitOffsets(ctx context.Context, group string, cursors []topiclog.Cursor) error {
	gs := s.groups
	gs.mu.Lock()
	members := 0
	if g := gs.byName[group]; g != nil {
		members = len(g.members)
	}
	if g := gs.consumer[group]; g != nil {
		members = len(g.members)
	}
	gs.mu.Unlock()
	if members > 0 {
		return &MembersError{Group: group, Members: members}
	}
	return s.opts.Store.CommitCursors(ctx, group, cursors)
}
