package kafkaproto

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/storage/topiclog"
)

// A consumer group is one of the newer protocol (KIP-848): its members only say
// what they subscribe to and own, and the server shares out the partitions.
//
// Three epochs: that of the group rises when members, subscriptions or topics
// change; that of the assignment is the group's for which partitions were shared
// out last; that of a member is the assignment's that it has arrived at. A member
// that owns what the assignment gives to another keeps its epoch until it says
// that it has let go; who is to get it waits. So no partition is ever read by two.

// memberState is how far a member is on its way to the assignment.
type memberState uint8

const (
	memberStable     memberState = iota // at the assignment's epoch
	memberRevoking                      // still owns what it must let go
	memberUnreleased                    // waits for what others still own
)

// memberLeft is the epoch of a static member that went away to come back.
const memberLeft int32 = -2

type consumerMember struct {
	id             string
	instance, rack *string
	clientID, host string
	rebalance      time.Duration
	names          []string
	regex          string
	pattern        *regexp.Regexp // nil without regex
	// visible says which topics the pattern may find: those that the member may
	// describe.
	visible  func(topic string) bool
	assignor string // that it asks for, "" for any

	epoch, previous int32
	state           memberState
	target          partSet
	// assigned it may read; revoking it must let go. Both are its own until then.
	assigned, revoking partSet
	// since is the epoch from which on it has had what is assigned.
	since map[topicPart]int32

	seen   time.Time
	expiry *time.Timer
	// deadline ends the time for letting go; round makes an old one void.
	deadline *time.Timer
	round    int
}

func (m *consumerMember) orderName() string {
	if m.instance != nil {
		return "1" + *m.instance
	}
	return "0" + m.id
}

// subscribes says whether it reads a topic.
func (m *consumerMember) subscribes(t *topicInfo) bool {
	return slices.Contains(m.names, t.name) || m.matches(t)
}

// matches takes internal topics as well, as Kafka does: leaving them out is the client's.
func (m *consumerMember) matches(t *topicInfo) bool {
	return m.pattern != nil && m.pattern.MatchString(t.name) && m.visible(t.name)
}

// topicInfo is what groups need to know of a topic.
type topicInfo struct {
	name       string
	id         topiclog.UUID
	partitions int32
}

type consumerGroup struct {
	name            string
	epoch           int32
	assignmentEpoch int32
	assignor        string
	members         map[string]*consumerMember
	owners          map[topicPart]*consumerMember
	// topics are those that members subscribe to, as they were at this epoch.
	topics map[string]topicInfo
	round  int
}

func newConsumerGroup(name string) *consumerGroup {
	return &consumerGroup{name: name, assignor: assignorUniform, members: map[string]*consumerMember{}, owners: map[topicPart]*consumerMember{}}
}

func (g *consumerGroup) static(instance *string) *consumerMember {
	if instance == nil {
		return nil
	}
	for _, m := range g.members {
		if m.instance != nil && *m.instance == *instance {
			return m
		}
	}
	return nil
}

// inOrder lists the members by id.
func (g *consumerGroup) inOrder() []*consumerMember {
	return slices.SortedFunc(maps.Values(g.members), func(a, b *consumerMember) int { return strings.Compare(a.id, b.id) })
}

// groupState of a consumer group, beside those of the older kind.
const (
	groupAssigning   groupState = "Assigning"
	groupReconciling groupState = "Reconciling"
)

func (g *consumerGroup) state() groupState {
	switch {
	case len(g.members) == 0:
		return groupEmpty
	case g.epoch > g.assignmentEpoch:
		return groupAssigning
	}
	for _, m := range g.members {
		if m.state != memberStable || m.epoch != g.assignmentEpoch && m.epoch != memberLeft {
			return groupReconciling
		}
	}
	return groupStable
}

// topicView is what topics there are.
type topicView struct {
	all    []topicInfo
	byName map[string]topicInfo
	// round is another number after every change.
	round int
}

// refresh compares the topics that members subscribe to with what there is.
func (g *consumerGroup) refresh(v *topicView, changed bool) bool {
	if !changed && g.round == v.round {
		return false
	}
	g.round = v.round
	now := map[string]topicInfo{}
	for _, m := range g.members {
		for _, name := range m.names {
			if t, ok := v.byName[name]; ok {
				now[name] = t
			}
		}
		if m.pattern == nil {
			continue
		}
		for i := range v.all {
			if t := &v.all[i]; m.matches(t) {
				now[t.name] = *t
			}
		}
	}
	changed = changed || !maps.Equal(now, g.topics)
	g.topics = now
	return changed
}

// assign shares out the partitions for the group's epoch.
func (g *consumerGroup) assign() {
	g.assignor = g.chooseAssignor()
	partitions := map[topiclog.UUID]int32{}
	for _, t := range g.topics {
		partitions[t.id] = t.partitions
	}
	members := g.inOrder()
	as := make([]*assignee, len(members))
	for i, m := range members {
		as[i] = &assignee{name: m.orderName(), topics: map[topiclog.UUID]bool{}, had: m.target}
		for _, t := range g.topics {
			if m.subscribes(&t) {
				as[i].topics[t.id] = true
			}
		}
	}
	byMember := slices.Clone(as)
	shareOut(g.assignor, as, partitions)
	for i, m := range members {
		m.target = byMember[i].got
	}
	g.assignmentEpoch = g.epoch
}

// chooseAssignor is the one that most members ask for, uniform without a wish.
func (g *consumerGroup) chooseAssignor() string {
	votes := map[string]int{}
	for _, m := range g.members {
		votes[m.assignor]++
	}
	if votes[assignorRange] > votes[assignorUniform] {
		return assignorRange
	}
	return assignorUniform
}

// reconcile moves a member towards its target. owned is what it says that it owns,
// nil if it says nothing.
func (g *consumerGroup) reconcile(m *consumerMember, owned partSet) {
	if m.state == memberStable && m.epoch == g.assignmentEpoch {
		return
	}
	if m.state == memberRevoking && (owned == nil || intersects(owned, m.revoking)) {
		return // it must let go first
	}
	g.release(m, m.revoking)
	m.revoking = partSet{}
	for p := range m.assigned {
		if !m.target.has(p) && (owned == nil || owned.has(p)) {
			m.revoking[p] = struct{}{}
		}
	}
	for p := range m.assigned {
		if !m.target.has(p) {
			delete(m.assigned, p)
			delete(m.since, p)
			if !m.revoking.has(p) {
				delete(g.owners, p) // it never took it up
			}
		}
	}
	if len(m.revoking) > 0 {
		m.state = memberRevoking
		return
	}
	m.state = memberStable
	for p := range m.target {
		switch o := g.owners[p]; {
		case o == nil:
			g.owners[p] = m
			m.assigned[p] = struct{}{}
			m.since[p] = g.assignmentEpoch
		case o != m:
			m.state = memberUnreleased
		}
	}
	if m.epoch != g.assignmentEpoch {
		m.previous, m.epoch = m.epoch, g.assignmentEpoch
	}
}

// release lets others have partitions of a member.
func (g *consumerGroup) release(m *consumerMember, parts partSet) {
	for p := range parts {
		if g.owners[p] == m {
			delete(g.owners, p)
		}
	}
}

func intersects(a, b partSet) bool {
	for p := range a {
		if b.has(p) {
			return true
		}
	}
	return false
}

func subset(a, b partSet) bool {
	for p := range a {
		if !b.has(p) {
			return false
		}
	}
	return true
}

// checkEpochOf applies the rule for a member's epoch in a heartbeat: its own, or
// the one before if it shows that it only missed the answer.
func (m *consumerMember) checkEpochOf(epoch int32, owned partSet) int16 {
	switch {
	case epoch == m.epoch:
		return codeNone
	case epoch < m.epoch && epoch == m.previous && owned != nil && subset(owned, m.assigned):
		return codeNone
	}
	return codeFencedMemberEpoch
}
