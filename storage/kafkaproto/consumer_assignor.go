package kafkaproto

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/storage/topiclog"
)

// The assignors of the newer consumer group protocol share out the partitions of
// a group's topics on the server. They are pure: the same members and topics give
// the same assignment.
//
//	uniform  numbers of partitions that differ by one at most, as far as the
//	         subscriptions allow, and as few moves as that takes
//	range    of each topic a stretch to each member in the order of their names, so
//	         that topics with equally many partitions fall to members alike
const (
	assignorUniform = "uniform"
	assignorRange   = "range"
)

// topicPart is a partition of a topic.
type topicPart struct {
	topic topiclog.UUID
	index int32
}

func compareParts(a, b topicPart) int {
	if c := strings.Compare(string(a.topic[:]), string(b.topic[:])); c != 0 {
		return c
	}
	return cmp.Compare(a.index, b.index)
}

// partSet is a set of partitions.
type partSet map[topicPart]struct{}

func (s partSet) has(p topicPart) bool { _, ok := s[p]; return ok }

func (s partSet) sorted() []topicPart { return slices.SortedFunc(maps.Keys(s), compareParts) }

// assignee is a member as the assignors see it.
type assignee struct {
	// name orders the members: the instance of a static one, else the id.
	name string
	// topics that it subscribes to and that exist.
	topics map[topiclog.UUID]bool
	// had is its last assignment, which uniform keeps as far as it can.
	had partSet
	got partSet
}

// shareOut gives every partition of the topics (with their numbers of partitions)
// that somebody subscribes to to one assignee.
func shareOut(assignor string, members []*assignee, partitions map[topiclog.UUID]int32) {
	slices.SortFunc(members, func(a, b *assignee) int { return strings.Compare(a.name, b.name) })
	for _, m := range members {
		m.got = partSet{}
	}
	topics := slices.SortedFunc(maps.Keys(partitions), func(a, b topiclog.UUID) int { return strings.Compare(string(a[:]), string(b[:])) })
	if assignor == assignorRange {
		for _, t := range topics {
			shareRange(members, t, partitions[t])
		}
		return
	}
	shareUniform(members, topics, partitions)
}

func shareRange(members []*assignee, topic topiclog.UUID, partitions int32) {
	var takers []*assignee
	for _, m := range members {
		if m.topics[topic] {
			takers = append(takers, m)
		}
	}
	if len(takers) == 0 {
		return
	}
	each, extra := partitions/int32(len(takers)), partitions%int32(len(takers))
	next := int32(0)
	for i, m := range takers {
		n := each
		if int32(i) < extra {
			n++
		}
		for ; n > 0; n-- {
			m.got[topicPart{topic, next}] = struct{}{}
			next++
		}
	}
}

func shareUniform(members []*assignee, topics []topiclog.UUID, partitions map[topiclog.UUID]int32) {
	// What each keeps for now; free is the rest.
	taken := partSet{}
	for _, m := range members {
		for _, p := range m.had.sorted() {
			if m.topics[p.topic] && p.index < partitions[p.topic] && !taken.has(p) {
				taken[p] = struct{}{}
				m.got[p] = struct{}{}
			}
		}
	}
	var free []topicPart
	for _, t := range topics {
		for i := range partitions[t] {
			if p := (topicPart{t, i}); !taken.has(p) {
				free = append(free, p)
			}
		}
	}
	takers := map[topiclog.UUID][]*assignee{}
	for _, m := range members {
		for t := range m.topics {
			takers[t] = append(takers[t], m)
		}
	}
	// What few can take goes first, so that it does not pile up on them at the end.
	slices.SortStableFunc(free, func(a, b topicPart) int { return cmp.Compare(len(takers[a.topic]), len(takers[b.topic])) })
	for _, p := range free {
		if m := leastLoaded(takers[p.topic]); m != nil {
			m.got[p] = struct{}{}
		}
	}
	level(members, takers)
}

// leastLoaded is the one with the fewest partitions, the first among equals.
func leastLoaded(members []*assignee) *assignee {
	var best *assignee
	for _, m := range members {
		if best == nil || len(m.got) < len(best.got) {
			best = m
		}
	}
	return best
}

// level moves partitions from those who have more to those who have at least two
// fewer, until there are none. Each gives one at a time, so that none gives away
// more than it must. Each move lowers the sum of the squares of the loads, so it
// ends.
func level(members []*assignee, takers map[topiclog.UUID][]*assignee) {
	order := slices.Clone(members)
	for moved := true; moved; {
		moved = false
		slices.SortStableFunc(order, func(a, b *assignee) int { return cmp.Compare(len(b.got), len(a.got)) })
		for _, from := range order {
			if p, to := from.giveaway(takers); to != nil {
				delete(from.got, p)
				to.got[p] = struct{}{}
				moved = true
			}
		}
	}
}

// giveaway is a partition that somebody with at least two fewer can take, the last
// one of its topic; to is nil if there is none.
func (m *assignee) giveaway(takers map[topiclog.UUID][]*assignee) (p topicPart, to *assignee) {
	last := map[topiclog.UUID]int32{}
	for q := range m.got {
		last[q.topic] = max(last[q.topic], q.index)
	}
	for _, t := range slices.SortedFunc(maps.Keys(last), func(a, b topiclog.UUID) int { return strings.Compare(string(a[:]), string(b[:])) }) {
		if x := leastLoaded(takers[t]); x != nil && len(x.got)+2 <= len(m.got) {
			return topicPart{t, last[t]}, x
		}
	}
	return p, nil
}
