package kafka

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/connectors/topicset"
	"github.com/millrace/millrace/runtime/connector"
)

// several is a table over a list of topics, or over those that match a pattern:
// one source a topic, over one connection. What befalls a topic after it was found
// (it was deleted, created again, is not reachable) is said by its own lane, and
// keeps nobody from reading the others.
type several struct {
	topicset.Set[*source]
	common *source // without a topic: what all of them have in common
	wanted scanrange.Topics
	known  topicset.Listing

	mu     sync.Mutex
	byName map[string]*source // a topic that is created again keeps its first source
}

var (
	_ connector.Source         = (*several)(nil)
	_ connector.DecodePolicy   = (*several)(nil)
	_ connector.CursorMirror   = (*several)(nil)
	_ connector.StartExplainer = (*several)(nil)
	_ connector.TopicFinder    = (*several)(nil)
)

// openSeveral looks the topics up. Each topic of a list must be there, and a
// pattern must match one: that it stands for nothing is more often a slip than
// what somebody wants.
func openSeveral(ctx context.Context, common *source, wanted scanrange.Topics) (*several, error) {
	s := &several{common: common, wanted: wanted, byName: map[string]*source{}}
	s.Of = s.topicSource
	for _, name := range wanted.Names {
		m := s.topicSource(name)
		if err := m.enter(ctx, name); err != nil {
			return nil, err
		}
		s.byName[name] = m
	}
	if wanted.Names == nil {
		all, err := s.look(ctx)
		if err != nil {
			return nil, err
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("none of the cluster's topics matches '%s' = '%s'", scanrange.KeyPattern, common.table.Options.String(scanrange.KeyPattern))
		}
	}
	return s, nil
}

// topicSource is the source of a topic. Of one that was never found it has no id:
// no position belongs to it.
func (s *several) topicSource(name string) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.byName[name]; m != nil {
		return m
	}
	c := s.common
	return &source{table: c.table, layout: c.layout, policy: c.policy, zone: c.zone, opts: c.opts, conn: c.conn, topic: name, patience: c.patience}
}

// found is topicSource of a topic that is there.
func (s *several) found(name string, t described) (*source, error) {
	m := s.topicSource(name)
	if m.id != (connector.UUID{}) {
		return m, nil
	}
	if err := m.found(t); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName[name] = m
	return m, nil
}

// look lists the partitions of all topics that are there and are still the same
// ones.
func (s *several) look(ctx context.Context) ([]connector.Partition, error) {
	all, err := askTopics(ctx, s.common.conn, s.wanted.Names)
	if err != nil {
		return nil, err
	}
	var out []connector.Partition
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t := all[name]
		if s.wanted.Names == nil && (t.internal || !s.wanted.Include(name)) || unknownTopic(t.err) {
			continue
		}
		if t.err != nil {
			// Left out it would be taken for gone.
			return nil, s.common.conn.failed(t.err, name, "asking for topic %s", name)
		}
		m, err := s.found(name, t)
		if err != nil {
			return nil, err
		}
		if m.id == t.id {
			out = append(out, m.partitions(t)...)
		}
	}
	return out, nil
}

// Partitions implements connector.Source.
func (s *several) Partitions(ctx context.Context) ([]connector.Partition, error) {
	return s.known.List(s.common.table.Options, func() ([]connector.Partition, error) { return s.look(ctx) })
}

// FindsTopics implements connector.TopicFinder.
func (s *several) FindsTopics() bool { return s.wanted.Names == nil }

// DecodeErrors implements connector.DecodePolicy.
func (s *several) DecodeErrors() (connector.OnError, func(string) bool) {
	return s.common.DecodeErrors()
}

// Close implements connector.Source.
func (s *several) Close() error { return s.common.Close() }
