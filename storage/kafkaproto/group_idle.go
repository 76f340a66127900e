package kafkaproto

import "maps"

// maxIdleGroups is how many groups may be known before those without members go at
// once.
const maxIdleGroups = 10_000

// idle says that a group has neither members nor promises.
func (g *group) idle() bool { return len(g.members) == 0 && len(g.promised) == 0 }

// dropEmpty forgets an idle group that never had members. One that had some is Empty,
// as in Kafka: it can be seen and deleted until forgetIdle comes by.
func (gs *groups) dropEmpty(g *group) {
	if g.idle() && gs.byName[g.name] == g && (g.generation == 0 || len(gs.byName) > maxIdleGroups) {
		delete(gs.byName, g.name)
	}
}

// forgetIdle forgets all idle groups; the store knows those with positions.
func (gs *groups) forgetIdle() {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	maps.DeleteFunc(gs.byName, func(_ string, g *group) bool { return g.idle() })
}
