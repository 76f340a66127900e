package kafkaproto

import (
	"slices"
	"time"
)

// How a group of the older protocol goes from one generation to the next. All of
// it needs the mutex of groups.

// rebalance asks all members to join again.
func (gs *groups) rebalance(g *group) {
	if g.state == groupPreparing {
		return
	}
	wait := gs.initialDelay
	g.initial = g.state == groupEmpty
	if g.state != groupEmpty {
		wait = 0
		for _, m := range g.members {
			wait = max(wait, m.rebalance)
			if m.syncing != nil {
				m.syncing <- synced{code: codeRebalanceInProgress}
				m.syncing = nil
			}
		}
	}
	g.state = groupPreparing
	g.round++
	g.newcomers, g.latest = false, time.Time{}
	if g.initial {
		for _, m := range g.members {
			if t := time.Now().Add(m.rebalance); t.After(g.latest) {
				g.latest = t
			}
		}
	}
	gs.waitForMembers(g, wait)
}

// waitForMembers ends the wait of a rebalance after a time. While more members come
// to a new group, it goes on as long, up to their rebalance timeout.
func (gs *groups) waitForMembers(g *group, wait time.Duration) {
	round := g.round
	g.due = time.AfterFunc(wait, func() {
		gs.mu.Lock()
		defer gs.mu.Unlock()
		if g.state != groupPreparing || g.round != round {
			return
		}
		if left := time.Until(g.latest); g.initial && g.newcomers && left > 0 {
			g.newcomers = false
			gs.waitForMembers(g, min(gs.initialDelay, left))
			return
		}
		gs.complete(g)
	})
}

// tryComplete ends the wait early when everybody has come.
func (gs *groups) tryComplete(g *group) {
	if g.state != groupPreparing || g.initial || len(g.promised) > 0 {
		return
	}
	for _, m := range g.members {
		if m.joining == nil {
			return
		}
	}
	g.due.Stop()
	gs.complete(g)
}

// complete begins a generation with the members that have joined. Dynamic
// members that have not are out; static ones stay until their session ends.
func (gs *groups) complete(g *group) {
	var stay []*member
	var first *member
	for _, m := range g.members {
		switch {
		case m.joining != nil && first == nil:
			first = m
			fallthrough
		case m.joining != nil, m.instance != nil:
			stay = append(stay, m)
		default:
			m.expiry.Stop()
		}
	}
	if len(stay) == 0 && len(g.members) > 0 {
		gs.noteEmptied(g.name)
	}
	g.members = stay
	g.initial = false
	g.generation++
	if first == nil {
		// Static members that have not come back join a later generation.
		g.state, g.protocol, g.leader = groupEmpty, "", ""
		gs.dropEmpty(g)
		return
	}
	if l := g.member(g.leader); l == nil || l.joining == nil {
		g.leader = first.id
	}
	g.protocol = g.choose()
	g.state = groupCompleting
	for _, m := range g.members {
		m.assignment = nil
		if m.unsynced = m.joining != nil; m.unsynced {
			m.seen = time.Now()
			m.joining <- g.answer(m)
			m.joining = nil
		}
	}
	gs.watchSync(g)
}

// watchSync removes, when the rebalance timeout is over, members that have joined
// the generation and not asked for their assignment: the others wait for them.
func (gs *groups) watchSync(g *group) {
	var wait time.Duration
	for _, m := range g.members {
		wait = max(wait, m.rebalance)
	}
	generation := g.generation
	time.AfterFunc(wait, func() {
		gs.mu.Lock()
		defer gs.mu.Unlock()
		if g.generation != generation || g.state != groupCompleting && g.state != groupStable {
			return
		}
		for _, m := range slices.Clone(g.members) {
			if m.unsynced && g.generation == generation {
				gs.remove(g, m)
			}
		}
	})
}

// choose picks, of the protocols that all members support, the one that most
// like best.
func (g *group) choose() string {
	votes := map[string]int{}
	for _, m := range g.members {
		for _, p := range m.protocols {
			if !slices.ContainsFunc(g.members, func(x *member) bool { return !x.supports(p.name) }) {
				votes[p.name]++
				break
			}
		}
	}
	best := ""
	for _, p := range g.member(g.leader).protocols {
		if best == "" || votes[p.name] > votes[best] {
			best = p.name
		}
	}
	return best
}
