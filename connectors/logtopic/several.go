package logtopic

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/connectors/topicset"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/topiclog"
)

// Internal reports topics that Millrace keeps for itself; no pattern stands for them.
func Internal(name string) bool { return strings.HasPrefix(name, "__millrace_") }

// several is a table over a list of topics, or over those that match a pattern: one
// source a topic. What befalls a topic after it was found is said by its own lane.
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
	_ connector.Holder         = (*several)(nil)
	_ connector.StartExplainer = (*several)(nil)
	_ connector.TopicFinder    = (*several)(nil)
)

// openSeveral looks the topics up. Each topic of a list must be there, and a pattern
// must match one: that it stands for nothing is more often a slip than what somebody
// wants.
func openSeveral(common *source, wanted scanrange.Topics) (*several, error) {
	s := &several{common: common, wanted: wanted, byName: map[string]*source{}}
	s.Of = s.topicSource
	for _, name := range wanted.Names {
		t, err := common.store.Topic(name)
		if err != nil {
			return nil, fmt.Errorf("opening topic %s: %w", name, err)
		}
		s.found(t)
	}
	if wanted.Names == nil && len(s.look()) == 0 {
		return nil, fmt.Errorf("none of the log's topics matches '%s' = '%s'", scanrange.KeyPattern, common.table.Options.String(scanrange.KeyPattern))
	}
	return s, nil
}

// of is the source of one topic.
func (s *source) of(t topiclog.Topic) *source {
	return &source{store: s.store, table: s.table, layout: s.layout, policy: s.policy, zone: s.zone, topic: t}
}

// topicSource is the source of a topic. Of one that was never found it has no id: no
// position belongs to it.
func (s *several) topicSource(name string) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.byName[name]; m != nil {
		return m
	}
	return s.common.of(topiclog.Topic{Name: name})
}

// found is topicSource of a topic that is there.
func (s *several) found(t topiclog.Topic) *source {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byName[t.Name] == nil {
		s.byName[t.Name] = s.common.of(t)
	}
	return s.byName[t.Name]
}

// look lists the partitions of all topics that are there and are still the same ones.
func (s *several) look() []connector.Partition {
	var out []connector.Partition
	for _, t := range Matching(s.common.store, s.wanted) {
		if m := s.found(t); m.topic.ID == t.ID {
			out = append(out, partitionsOf(&t)...)
		}
	}
	return out
}

// Matching are the topics of a log that a table reads, those of a list as far as they
// are there, by name.
func Matching(store *topiclog.Store, wanted scanrange.Topics) []topiclog.Topic {
	var out []topiclog.Topic
	for _, t := range store.Topics() {
		if wanted.Include(t.Name) && (wanted.Names != nil || !Internal(t.Name)) {
			out = append(out, t)
		}
	}
	return out
}

// Partitions implements connector.Source.
func (s *several) Partitions(context.Context) ([]connector.Partition, error) {
	return s.known.List(s.common.table.Options, func() ([]connector.Partition, error) { return s.look(), nil })
}

// Hold implements connector.Holder.
func (s *several) Hold(ctx context.Context, name string, from []connector.Position) error {
	// What is held under a name is set as a whole.
	holds, err := topicset.ByTopic(s.Of, from, topicset.PartitionOf, func(m *source, of []connector.Position) ([]topiclog.Hold, error) { return m.holds(name, of) })
	if err != nil {
		return err
	}
	return s.common.store.SetHolds(ctx, name, holds)
}

// FindsTopics implements connector.TopicFinder.
func (s *several) FindsTopics() bool { return s.wanted.Names == nil }

// DecodeErrors implements connector.DecodePolicy.
func (s *several) DecodeErrors() (connector.OnError, func(string) bool) {
	return s.common.DecodeErrors()
}

// Close implements connector.Source.
func (s *several) Close() error { return nil }
