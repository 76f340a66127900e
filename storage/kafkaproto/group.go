package kafkaproto

import (
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/storage/topiclog"
)

// maxMembers bounds a group.
const maxMembers = 5000

// consumerSession and consumerHeartbeat are Kafka's defaults for members of the
// newer protocol, to whom the server tells them.
const (
	consumerSession   = 45 * time.Second
	consumerHeartbeat = 5 * time.Second
)

// groupState is where a group is in its life.
type groupState string

const (
	groupEmpty      groupState = "Empty"
	groupPreparing  groupState = "PreparingRebalance"
	groupCompleting groupState = "CompletingRebalance"
	groupStable     groupState = "Stable"
)

// groups coordinates the members of all groups. What it knows lives as long as
// the process: after a restart members are unknown and join again, and their
// positions are in the store. One mutex guards it; nothing waits under it.
type groups struct {
	store        *topiclog.Store
	initialDelay time.Duration
	// session and heartbeatInterval are those of the newer protocol.
	session, heartbeatInterval time.Duration

	mu     sync.Mutex
	byName map[string]*group
	// consumer are the groups of the newer protocol (consumer_group.go); a name is
	// in one of the two maps at most.
	consumer map[string]*consumerGroup
	view     topicView
	viewed   time.Time

	// See offset_expiry.go: when the server started, when groups lost their last
	// member, and the group whose positions are looked through right now.
	now      func() time.Time
	started  time.Time
	emptied  map[string]time.Time
	expiring string
}

type group struct {
	name         string
	state        groupState
	generation   int32
	protocolType string
	protocol     string
	leader       string
	members      []*member // in the order they came
	// promised are member ids given out and not yet used.
	promised map[string]*time.Timer
	// due ends the wait for members to join; round makes an old one void.
	due   *time.Timer
	round int
	// initial says that the wait is for more members of a new group: it is not cut
	// short when those known have joined.
	initial bool
	// newcomers have come since the wait began or was made longer; it ends by
	// latest all the same.
	newcomers bool
	latest    time.Time
}

type groupProtocol struct {
	name     string
	metadata []byte
}

type member struct {
	id         string
	instance   *string
	clientID   string
	host       string
	protocols  []groupProtocol
	session    time.Duration
	rebalance  time.Duration
	assignment []byte
	seen       time.Time // its last sign of life
	expiry     *time.Timer
	// joining and syncing are where its answer goes while it waits.
	joining chan joined
	syncing chan synced
	// unsynced says that it has joined the generation and not asked for its
	// assignment yet.
	unsynced bool
}

// joined is the answer to a member that joined.
type joined struct {
	code         int16
	generation   int32
	protocolType string
	protocol     string
	leader       string
	member       string
	members      []joinedMember // for the leader
	// skip says that the leader does not assign.
	skip bool
}

type joinedMember struct {
	id       string
	instance *string
	metadata []byte
}

type synced struct {
	code       int16
	protocol   string
	typ        string
	assignment []byte
}

// subscribedByJob says that a job reads by a group's name: its positions are the
// job's own.
func subscribedByJob(store *topiclog.Store, group string) bool {
	return slices.ContainsFunc(store.Subscriptions(), func(s topiclog.Subscription) bool { return s.Group == group })
}

func newGroups(o *Options) *groups {
	return &groups{store: o.Store, initialDelay: max(o.InitialRebalanceDelay, 0), session: o.ConsumerSession, heartbeatInterval: o.ConsumerHeartbeat,
		byName: map[string]*group{}, consumer: map[string]*consumerGroup{}, now: o.now, started: o.now(), emptied: map[string]time.Time{}}
}

func (g *group) member(id string) *member {
	for _, m := range g.members {
		if m.id == id {
			return m
		}
	}
	return nil
}

func (g *group) static(instance *string) *member {
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

// check finds the member that a request claims to be.
func (g *group) check(id string, instance *string) (*member, int16) {
	if s := g.static(instance); s != nil && s.id != id {
		return nil, codeFencedInstance
	}
	if m := g.member(id); m != nil {
		return m, codeNone
	}
	return nil, codeUnknownMemberID
}

// metadata is what a member says for a protocol.
func (m *member) metadata(protocol string) []byte {
	for _, p := range m.protocols {
		if p.name == protocol {
			return p.metadata
		}
	}
	return nil
}

func (m *member) supports(protocol string) bool {
	return slices.ContainsFunc(m.protocols, func(p groupProtocol) bool { return p.name == protocol })
}

func sameProtocols(a, b []groupProtocol) bool {
	return slices.EqualFunc(a, b, func(x, y groupProtocol) bool { return x.name == y.name && string(x.metadata) == string(y.metadata) })
}

func newMemberID(clientID string) string {
	return fmt.Sprintf("%s-%s", clientID, rand.Text())
}

// give answers whatever the member waits for.
func (m *member) give(j joined, s synced) {
	if m.joining != nil {
		m.joining <- j
		m.joining = nil
	}
	if m.syncing != nil {
		m.syncing <- s
		m.syncing = nil
	}
}

// answer is what a member is told of the current generation.
func (g *group) answer(m *member) joined {
	j := joined{generation: g.generation, protocolType: g.protocolType, protocol: g.protocol, leader: g.leader, member: m.id}
	if m.id == g.leader {
		for _, x := range g.members {
			j.members = append(j.members, joinedMember{x.id, x.instance, x.metadata(g.protocol)})
		}
	}
	return j
}

func (gs *groups) forgetPromise(g *group, id string) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	delete(g.promised, id)
	if g.state == groupEmpty {
		gs.dropEmpty(g)
		return
	}
	gs.tryComplete(g)
}

// watch notes a sign of life and, once, starts to wait for the next.
func (gs *groups) watch(g *group, m *member) {
	m.seen = time.Now()
	if m.expiry == nil {
		m.expiry = time.AfterFunc(m.session, func() { gs.expire(g, m) })
	}
}

// expire removes a member that has been silent. One that waits for an answer
// cannot say anything.
func (gs *groups) expire(g *group, m *member) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if g.member(m.id) != m {
		return
	}
	left := m.session - time.Since(m.seen)
	if m.joining != nil || m.syncing != nil {
		left = m.session
	}
	if left > 0 {
		m.expiry.Reset(left)
		return
	}
	gs.remove(g, m)
}

// remove takes a member out and lets the others share its work.
func (gs *groups) remove(g *group, m *member) {
	m.expiry.Stop()
	m.give(joined{code: codeUnknownMemberID, generation: -1, member: m.id}, synced{code: codeUnknownMemberID})
	g.members = slices.DeleteFunc(g.members, func(x *member) bool { return x == m })
	if len(g.members) == 0 {
		gs.noteEmptied(g.name)
	}
	switch g.state {
	case groupEmpty:
		gs.dropEmpty(g)
	case groupPreparing:
		gs.tryComplete(g)
	default:
		gs.rebalance(g)
		gs.tryComplete(g)
	}
}

// find is the group and the member of a request in a generation.
func (gs *groups) find(name, id string, instance *string, generation int32) (*group, *member, int16) {
	g := gs.byName[name]
	if g == nil {
		return nil, nil, codeUnknownMemberID
	}
	m, code := g.check(id, instance)
	if code == codeNone && generation != g.generation {
		code = codeIllegalGeneration
	}
	return g, m, code
}

// sync hands out assignments: at once if the leader has given them, else when it
// does.
func (gs *groups) sync(name, id string, instance *string, generation int32, typ, protocol *string, assignments map[string][]byte) <-chan synced {
	out := make(chan synced, 1)
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g, m, code := gs.find(name, id, instance, generation)
	switch {
	case code != codeNone:
	case typ != nil && *typ != g.protocolType, protocol != nil && *protocol != g.protocol:
		code = codeInconsistentProtocol
	case g.state == groupPreparing:
		code = codeRebalanceInProgress
	case g.state == groupEmpty:
		code = codeUnknownMemberID
	}
	if code != codeNone {
		out <- synced{code: code}
		return out
	}
	m.seen, m.unsynced = time.Now(), false
	if g.state == groupStable {
		out <- synced{protocol: g.protocol, typ: g.protocolType, assignment: m.assignment}
		return out
	}
	if m.syncing != nil {
		m.syncing <- synced{code: codeRebalanceInProgress}
	}
	m.syncing = out
	if id != g.leader {
		return out
	}
	g.state = groupStable
	for _, x := range g.members {
		x.assignment = assignments[x.id]
		if x.syncing != nil {
			x.seen = time.Now()
			x.syncing <- synced{protocol: g.protocol, typ: g.protocolType, assignment: x.assignment}
			x.syncing = nil
		}
	}
	return out
}

// heartbeat notes a sign of life and says whether the member must join again.
func (gs *groups) heartbeat(name, id string, instance *string, generation int32) int16 {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g, m, code := gs.find(name, id, instance, generation)
	if code != codeNone {
		return code
	}
	m.seen = time.Now()
	if g.state == groupPreparing {
		return codeRebalanceInProgress
	}
	return codeNone
}

// leave removes a member, named by its id or, for a static one, its instance.
func (gs *groups) leave(name, id string, instance *string) int16 {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	g := gs.byName[name]
	if g == nil {
		return codeUnknownMemberID
	}
	if t := g.promised[id]; t != nil {
		t.Stop()
		delete(g.promised, id)
		gs.tryComplete(g)
		gs.dropEmpty(g)
		return codeNone
	}
	m := g.static(instance)
	if m == nil || id != "" {
		var code int16
		if m, code = g.check(id, instance); code != codeNone {
			return code
		}
	}
	gs.remove(g, m)
	return codeNone
}

// mayCommit says whether a request may commit positions: a member of the current
// generation, or anybody while the group has no members. since, if not nil, limits
// it to the partitions that are in it with at most the request's generation.
func (gs *groups) mayCommit(version int16, name, id string, instance *string, generation int32) (since map[topicPart]int32, code int16) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	if name == gs.expiring {
		return nil, codeCoordinatorNotAvailable // for a moment
	}
	if cg := gs.consumer[name]; cg != nil && len(cg.members) > 0 {
		if version < 9 && cg.members[id] != nil {
			return nil, codeUnsupportedVersion
		}
		return cg.checkCommit(id, generation)
	}
	g := gs.byName[name]
	empty := g == nil || len(g.members) == 0
	switch {
	case generation < 0 && empty:
		// Consumers of the newer protocol give themselves an id, also those that join
		// no group.
		return nil, codeNone
	case generation < 0 && id == "" && instance == nil:
		return nil, codeUnknownMemberID
	}
	_, m, code := gs.find(name, id, instance, generation)
	if code == codeNone {
		m.seen = time.Now()
		if g.state == groupCompleting {
			return nil, codeRebalanceInProgress
		}
	}
	return nil, code
}
