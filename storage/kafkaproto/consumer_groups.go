package kafkaproto

import (
	"maps"
	"regexp"
	"slices"
	"time"
)

// beat is a heartbeat of a member of a consumer group; nil says "as before".
type beat struct {
	group, member  string
	epoch          int32
	instance, rack *string
	clientID, host string
	rebalance      time.Duration // negative: as before
	names          []string
	regex          *string
	visible        func(topic string) bool
	assignor       *string
	owned          partSet
}

// full says that the member told everything, as it does when it joins or is not
// sure what arrived.
func (b *beat) full() bool {
	return b.epoch == 0 || b.rebalance >= 0 && (b.names != nil || b.regex != nil) && b.owned != nil
}

// beaten is the answer.
type beaten struct {
	err    error
	member string
	epoch  int32
	// assigned is nil if it is as before.
	assigned []topicPart
}

// topics is what topics the store has, as they were at most a fifth of a heartbeat
// ago, or now; it needs the mutex.
func (gs *groups) topics(now bool) *topicView {
	v := &gs.view
	if !now && v.round > 0 && time.Since(gs.viewed) < gs.heartbeatInterval/5 {
		return v
	}
	gs.viewed = time.Now()
	var all []topicInfo
	for _, t := range gs.store.Topics() {
		if !t.Closing {
			all = append(all, topicInfo{t.Name, t.ID, int32(len(t.Partitions))})
		}
	}
	if v.round > 0 && slices.Equal(all, v.all) {
		return v
	}
	*v = topicView{all: all, byName: make(map[string]topicInfo, len(all)), round: v.round + 1}
	for _, t := range all {
		v.byName[t.name] = t
	}
	return v
}

// beat handles a heartbeat: joins, leaves, moves the member towards the group's
// assignment.
func (gs *groups) beat(b *beat) beaten {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	out := beaten{member: b.member, epoch: b.epoch}
	var pattern *regexp.Regexp
	if b.regex != nil && *b.regex != "" {
		var err error
		if pattern, err = regexp.Compile(`^(?:` + *b.regex + `)$`); err != nil {
			out.err = coded(codeInvalidRegexp, "regular expression %q: %w", *b.regex, err)
			return out
		}
	}
	g, err := gs.consumerGroupFor(b)
	if err == nil && b.epoch < 0 {
		out.err = gs.consumerLeaves(g, b)
		return out
	}
	var m *consumerMember
	if err == nil {
		m, err = gs.consumerMemberFor(g, b)
	}
	if err != nil {
		out.err = err
		if g != nil {
			gs.dropConsumerGroup(g)
		}
		return out
	}
	m.seen = time.Now()
	changed := m.update(b, pattern)
	if g.members[m.id] != m {
		g.members[m.id] = m
		changed = changed || m.target == nil
	}
	if gs.watchConsumer(g, m); g.refresh(gs.topics(changed), changed) {
		g.epoch++
	}
	if g.assignmentEpoch < g.epoch {
		g.assign()
	}
	before := maps.Clone(m.assigned)
	g.reconcile(m, b.owned)
	gs.watchRevoking(g, m)
	out.member, out.epoch = m.id, m.epoch
	if b.full() || !maps.Equal(before, m.assigned) {
		if out.assigned = m.assigned.sorted(); out.assigned == nil {
			out.assigned = []topicPart{}
		}
	}
	return out
}

// consumerGroupFor finds the group, or makes it for one who joins. A group of the
// older kind without members becomes one of the newer.
func (gs *groups) consumerGroupFor(b *beat) (*consumerGroup, error) {
	if g := gs.consumer[b.group]; g != nil {
		return g, nil
	}
	classic := gs.byName[b.group]
	switch {
	case b.epoch != 0:
		return nil, coded(codeGroupNotFound, "there is no group %s", b.group)
	case classic != nil && (len(classic.members) > 0 || len(classic.promised) > 0), subscribedByJob(gs.store, b.group):
		return nil, coded(codeGroupNotFound, "group %s has members of another kind", b.group)
	}
	delete(gs.byName, b.group)
	g := newConsumerGroup(b.group)
	gs.consumer[b.group] = g
	return g, nil
}

// consumerMemberFor finds the member, or makes it for one who joins; it is not in
// the group yet.
func (gs *groups) consumerMemberFor(g *consumerGroup, b *beat) (*consumerMember, error) {
	m := g.members[b.member]
	if b.instance != nil {
		s := g.static(b.instance)
		switch {
		case b.epoch != 0 && s == nil:
			return nil, coded(codeUnknownMemberID, "group %s has no member with instance id %s", g.name, *b.instance)
		case b.epoch != 0 && s.id != b.member:
			return nil, coded(codeFencedInstance, "instance id %s belongs to another member", *b.instance)
		case s != nil && s.id != b.member && s.epoch != memberLeft:
			return nil, coded(codeUnreleasedInstance, "instance id %s belongs to another member, which has not left", *b.instance)
		case s != nil && s.id != b.member:
			return gs.replaceStatic(g, s, b), nil
		}
		m = s
	}
	switch {
	case m == nil && b.epoch != 0:
		return nil, coded(codeUnknownMemberID, "group %s has no member %s", g.name, b.member)
	case m == nil && len(g.members) >= maxMembers:
		return nil, coded(codeGroupMaxSize, "group %s has %d members", g.name, len(g.members))
	case m == nil:
		id := b.member
		if id == "" {
			id = newMemberID(b.clientID)
		}
		return &consumerMember{id: id, instance: b.instance, assigned: partSet{}, revoking: partSet{}, since: map[topicPart]int32{}}, nil
	case b.epoch == 0:
		// It starts again and owns nothing.
		g.forgetOwned(m)
		return m, nil
	}
	if code := m.checkEpochOf(b.epoch, b.owned); code != codeNone {
		return nil, coded(code, "member %s is at epoch %d, not %d", m.id, m.epoch, b.epoch)
	}
	return m, nil
}

// forgetOwned puts a member at the beginning.
func (g *consumerGroup) forgetOwned(m *consumerMember) {
	g.release(m, m.assigned)
	g.release(m, m.revoking)
	m.assigned, m.revoking = partSet{}, partSet{}
	clear(m.since)
	m.epoch, m.previous, m.state = 0, 0, memberStable
}

// replaceStatic puts a member in the place of the one with its instance id that
// has left: it gets that one's work without a change of the group.
func (gs *groups) replaceStatic(g *consumerGroup, s *consumerMember, b *beat) *consumerMember {
	s.stop()
	g.forgetOwned(s)
	delete(g.members, s.id)
	id := b.member
	if id == "" {
		id = newMemberID(b.clientID)
	}
	m := &consumerMember{id: id, instance: s.instance, names: s.names, regex: s.regex, pattern: s.pattern, assignor: s.assignor, target: s.target,
		assigned: partSet{}, revoking: partSet{}, since: map[topicPart]int32{}}
	g.members[id] = m
	return m
}

// update notes what a heartbeat says of its member; changed means that the
// partitions must be shared out anew.
func (m *consumerMember) update(b *beat, pattern *regexp.Regexp) (changed bool) {
	if b.regex != nil && *b.regex != m.regex {
		m.regex, m.pattern, changed = *b.regex, pattern, true
	}
	if b.names != nil {
		names := slices.Compact(slices.Sorted(slices.Values(b.names)))
		changed = changed || !slices.Equal(names, m.names)
		m.names = names
	}
	if b.assignor != nil {
		changed = changed || *b.assignor != m.assignor
		m.assignor = *b.assignor
	}
	if b.rack != nil {
		m.rack = b.rack
	}
	if b.rebalance >= 0 {
		m.rebalance = b.rebalance
	}
	m.clientID, m.host, m.visible = b.clientID, b.host, b.visible
	return changed
}

// consumerLeaves takes a member out, or notes that a static one will be back.
func (gs *groups) consumerLeaves(g *consumerGroup, b *beat) error {
	m := g.members[b.member]
	if b.instance != nil {
		if m = g.static(b.instance); m != nil && m.id != b.member {
			return coded(codeFencedInstance, "instance id %s belongs to another member", *b.instance)
		}
	}
	if m == nil {
		return coded(codeUnknownMemberID, "group %s has no member %s", g.name, b.member)
	}
	if b.epoch == memberLeft && m.instance == nil {
		return coded(codeInvalidRequest, "only static members leave to come back")
	}
	if b.epoch == memberLeft {
		// Its partitions wait for it until its session ends.
		m.epoch = memberLeft
		return nil
	}
	gs.removeConsumer(g, m)
	return nil
}

func (m *consumerMember) stop() {
	if m.expiry != nil {
		m.expiry.Stop()
	}
	if m.deadline != nil {
		m.deadline.Stop()
	}
	m.round++
}

// removeConsumer takes a member out; the others get its work with their next
// heartbeats.
func (gs *groups) removeConsumer(g *consumerGroup, m *consumerMember) {
	m.stop()
	g.forgetOwned(m)
	delete(g.members, m.id)
	if len(g.members) == 0 {
		gs.noteEmptied(g.name)
	}
	g.epoch++
	gs.dropConsumerGroup(g)
}

// dropConsumerGroup forgets a group that has neither members nor positions.
func (gs *groups) dropConsumerGroup(g *consumerGroup) {
	if len(g.members) == 0 && len(gs.store.Cursors(g.name)) == 0 && gs.consumer[g.name] == g {
		delete(gs.consumer, g.name)
	}
}

// watchConsumer starts, once, to wait for a member's silence.
func (gs *groups) watchConsumer(g *consumerGroup, m *consumerMember) {
	if m.expiry != nil {
		return
	}
	m.expiry = time.AfterFunc(gs.session, func() {
		gs.mu.Lock()
		defer gs.mu.Unlock()
		if g.members[m.id] != m {
			return
		}
		if left := gs.session - time.Since(m.seen); left > 0 {
			m.expiry.Reset(left)
			return
		}
		gs.removeConsumer(g, m)
	})
}

// watchRevoking gives a member that must let go its rebalance timeout to do so.
func (gs *groups) watchRevoking(g *consumerGroup, m *consumerMember) {
	if m.state != memberRevoking {
		if m.deadline != nil {
			m.deadline.Stop()
			m.deadline = nil
			m.round++
		}
		return
	}
	if m.deadline != nil {
		return
	}
	m.round++
	round := m.round
	m.deadline = time.AfterFunc(m.rebalance, func() {
		gs.mu.Lock()
		defer gs.mu.Unlock()
		if g.members[m.id] == m && m.round == round && m.state == memberRevoking {
			gs.removeConsumer(g, m)
		}
	})
}

// checkConsumer says whether a member of a consumer group is who it claims to be,
// at its epoch.
func (g *consumerGroup) checkConsumer(id string, epoch int32) int16 {
	m := g.members[id]
	switch {
	case m == nil:
		return codeUnknownMemberID
	case epoch != m.epoch:
		return codeStaleMemberEpoch
	}
	return codeNone
}

// checkCommit is checkConsumer for positions (KIP-1251): a commit that crossed the
// member's next epoch counts for the partitions that were its own before and still
// are. So since, if not nil, has the epoch that a commit needs for each.
func (g *consumerGroup) checkCommit(id string, epoch int32) (since map[topicPart]int32, code int16) {
	code = g.checkConsumer(id, epoch)
	if code == codeStaleMemberEpoch && epoch > 0 && epoch < g.members[id].epoch {
		return maps.Clone(g.members[id].since), codeNone
	}
	return nil, code
}
