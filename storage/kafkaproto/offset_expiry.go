package kafkaproto

import (
	"context"
	"time"

	"github.com/millrace/millrace/storage/topiclog"
)

// Positions of groups that nobody uses are forgotten, by Kafka's rule (KIP-211): a
// group without members loses a position when the retention has passed since its
// last member went and since the commit; a group of consumers loses positions of
// topics that no member subscribes to when it has passed since the commit. The
// group of a job keeps all.
//
// A group of the older protocol that has no members, and no positions, is forgotten
// when this looks the next time.
//
// When the last member went is not kept over a restart: it counts as the start of
// the server, so that nothing goes earlier than in Kafka.

const (
	defaultOffsetsRetention = 7 * 24 * time.Hour
	offsetsExpiryInterval   = 10 * time.Minute
)

// runExpiry looks for positions to forget until the server drains.
func (s *Server) runExpiry() {
	defer s.conns.Done()
	t := time.NewTicker(offsetsExpiryInterval)
	defer t.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-t.C:
			s.groups.forgetIdle()
			s.expireOffsets()
		}
	}
}

func (s *Server) expireOffsets() {
	if s.opts.OffsetsRetention < 0 {
		return
	}
	store, gs := s.opts.Store, s.groups
	jobs := groupsOfJobs(store)
	names := map[topiclog.PartitionID]string{}
	for _, t := range store.Topics() {
		for _, p := range t.Partitions {
			names[p.ID] = t.Name
		}
	}
	for _, group := range store.Groups() {
		if jobs[group] != "" {
			continue
		}
		before := s.opts.now().Add(-s.opts.OffsetsRetention)
		keep, ok := gs.beginExpiry(group, before)
		if !ok {
			continue
		}
		var gone []topiclog.Cursor
		for _, c := range store.Cursors(group) {
			if c.CommitTime.Before(before) && !keep(names[c.Partition]) {
				gone = append(gone, topiclog.Cursor{Partition: c.Partition, Offset: -1})
			}
		}
		var err error
		if len(gone) > 0 {
			err = store.CommitCursors(context.Background(), group, gone)
		}
		gs.endExpiry(group)
		switch {
		case err != nil:
			s.opts.Logger.Warn("forgetting old positions failed", "group", group, "error", err)
		case len(gone) > 0:
			s.opts.Logger.Info("old positions are forgotten", "group", group, "positions", len(gone))
		}
	}
}

// beginExpiry says which topics' positions of a group stay, and holds commits off:
// one that comes now must not be forgotten with what it replaces. ok is false if
// all stay.
func (gs *groups) beginExpiry(name string, before time.Time) (keep func(topic string) bool, ok bool) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	keep = func(string) bool { return false }
	g, cg := gs.byName[name], gs.consumer[name]
	switch {
	case cg != nil && len(cg.members) > 0:
		topics := cg.topics
		keep = func(topic string) bool { _, ok := topics[topic]; return ok }
	case g != nil && len(g.members) > 0:
		if g.protocolType != consumerProtocol {
			return nil, false
		}
		topics := g.subscribedTopics()
		keep = func(topic string) bool { return topics[topic] }
	default:
		emptied, known := gs.emptied[name]
		if !known {
			emptied = gs.started
		}
		if !emptied.Before(before) {
			return nil, false
		}
	}
	gs.expiring = name
	return keep, true
}

func (gs *groups) endExpiry(name string) {
	gs.mu.Lock()
	defer gs.mu.Unlock()
	gs.expiring = ""
	if len(gs.store.Cursors(name)) == 0 {
		delete(gs.emptied, name)
	}
}

// noteEmptied notes when the last member of a group with positions went.
func (gs *groups) noteEmptied(name string) {
	if len(gs.store.Cursors(name)) > 0 {
		gs.emptied[name] = gs.now()
	}
}
