package kafkaproto

import (
	"slices"
	"time"
)

// join takes a member in, or in again. The answer comes on the channel, at once
// or when the group is complete. needID asks for a first call that only gives
// out an id; skips says that the client can be told not to assign.
func (gs *groups) join(name, protocolType string, m *member, needID, skips bool) <-chan joined {
	out := make(chan joined, 1)
	gs.mu.Lock()
	defer gs.mu.Unlock()
	refuse := func(code int16, id string) <-chan joined {
		out <- joined{code: code, generation: -1, member: id}
		return out
	}
	if len(m.protocols) == 0 || protocolType == "" {
		return refuse(codeInconsistentProtocol, m.id)
	}
	if cg := gs.consumer[name]; cg != nil && len(cg.members) > 0 {
		return refuse(codeInconsistentProtocol, m.id)
	}
	g := gs.byName[name]
	if g == nil {
		if m.id != "" {
			return refuse(codeUnknownMemberID, m.id)
		}
		// One of the newer kind without members becomes one of the older.
		delete(gs.consumer, name)
		g = &group{name: name, state: groupEmpty, promised: map[string]*time.Timer{}}
		gs.byName[name] = g
	}
	if len(g.members) > 0 && (protocolType != g.protocolType || !slices.ContainsFunc(m.protocols, func(p groupProtocol) bool { return g.supported(p.name, m) })) {
		return refuse(codeInconsistentProtocol, m.id)
	}
	old := g.static(m.instance)
	switch {
	case old == nil && g.member(m.id) == nil && len(g.members)+len(g.promised) >= maxMembers:
		return refuse(codeGroupMaxSize, m.id)
	case m.id == "" && m.instance == nil && needID:
		id := newMemberID(m.clientID)
		g.promised[id] = time.AfterFunc(m.session, func() { gs.forgetPromise(g, id) })
		return refuse(codeMemberIDRequired, id)
	case m.id == "":
		m.id = newMemberID(m.clientID)
	case old != nil && old.id != m.id:
		return refuse(codeFencedInstance, m.id)
	case g.member(m.id) != nil:
		old = g.member(m.id)
	case g.promised[m.id] != nil:
		g.promised[m.id].Stop()
		delete(g.promised, m.id)
	default:
		return refuse(codeUnknownMemberID, m.id)
	}
	g.protocolType = protocolType
	gs.admit(g, old, m, out, skips)
	return out
}

// supported says whether all members but one, who is about to be replaced,
// support a protocol.
func (g *group) supported(protocol string, but *member) bool {
	for _, x := range g.members {
		if x.id != but.id && (but.instance == nil || x.instance == nil || *x.instance != *but.instance) && !x.supports(protocol) {
			return false
		}
	}
	return true
}

// admit puts a member in, in the place of its former self if there is one, and
// starts a rebalance unless nothing has changed.
func (gs *groups) admit(g *group, old, m *member, out chan joined, skips bool) {
	if old == nil {
		g.members = append(g.members, m)
		g.newcomers = true
	} else {
		same := sameProtocols(old.protocols, m.protocols)
		sameID := old.id == m.id
		old.give(joined{code: codeFor(sameID), generation: -1, member: old.id}, synced{code: codeFor(sameID)})
		old.expiry.Stop()
		wasLeader := g.leader == old.id
		m.assignment = old.assignment
		g.members[slices.Index(g.members, old)] = m
		if wasLeader {
			g.leader = m.id
		}
		if same && g.settled(sameID, wasLeader) {
			gs.watch(g, m)
			a := g.answer(m)
			if !sameID && wasLeader {
				// It does not assign: the group has its assignment. Before version 9 a
				// client cannot be told so and must not take itself for the leader.
				if a.skip = skips; !skips {
					a.leader, a.members = old.id, nil
				}
			}
			out <- a
			return
		}
	}
	m.joining = out
	gs.watch(g, m)
	gs.rebalance(g)
	gs.tryComplete(g)
}

// settled says that a member that joins as it was before needs no rebalance. The
// same member that asks again is told again, but for a leader in a stable group:
// it wants a rebalance. A static one in the place of its former self gets that
// one's assignment, once there is one; before, the leader may be assigning to the
// former.
func (g *group) settled(sameID, leader bool) bool {
	if sameID {
		return g.state == groupCompleting || g.state == groupStable && !leader
	}
	return g.state == groupStable
}

// codeFor answers a request that another of the same member has replaced.
func codeFor(sameID bool) int16 {
	if sameID {
		return codeRebalanceInProgress
	}
	return codeFencedInstance
}
