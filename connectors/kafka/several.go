package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/connector"
)

// several is a table over a list of topics, or over those that match a pattern:
// one source a topic, over one connection. What befalls a topic after it was found
// (it was deleted, created again, is not reachable) is said by its own lane, and
// keeps nobody from reading the others.
type several struct {
	*source // without a topic: what all of them have in common
	wanted  scanrange.Topics

	mu     sync.Mutex
	byName map[string]*source // a topic that is created again keeps its first source
}

var (
	_ connector.Source         = (*several)(nil)
	_ connector.DecodePolicy   = (*several)(nil)
	_ connector.CursorMirror   = (*several)(nil)
	_ connector.StartExplainer = (*several)(nil)
)

// openSeveral looks the topics up. Each topic of a list must be there, and a
// pattern must match one: that it stands for nothing is more often a slip than
// what somebody wants.
func openSeveral(ctx context.Context, common *source, wanted scanrange.Topics) (*several, error) {
	s := &several{source: common, wanted: wanted, byName: map[string]*source{}}
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
	c := s.source
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
	all, err := askTopics(ctx, s.conn, s.wanted.Names)
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
			return nil, failed(t.err, "asking for topic %s", name)
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
	return s.known.list(s.table.Options, func() ([]connector.Partition, error) { return s.look(ctx) })
}

// byTopic asks each topic's source about what is the topic's, and puts the answers
// in the order of the questions.
func byTopic[Q, A any](s *several, ask []Q, topic func(Q) connector.Partition, f func(*source, []Q) ([]A, error)) ([]A, error) {
	places := map[string][]int{}
	var names []string
	for i, q := range ask {
		name := topic(q).Topic
		if places[name] == nil {
			names = append(names, name)
		}
		places[name] = append(places[name], i)
	}
	out := make([]A, len(ask))
	for _, name := range names {
		of := make([]Q, len(places[name]))
		for k, i := range places[name] {
			of[k] = ask[i]
		}
		answers, err := f(s.topicSource(name), of)
		if err != nil {
			return nil, err
		}
		for k, i := range places[name] {
			out[i] = answers[k]
		}
	}
	return out, nil
}

func itself(p connector.Partition) connector.Partition { return p }

// Start implements connector.Source.
func (s *several) Start(ctx context.Context, parts []connector.Partition) ([]connector.Position, error) {
	return byTopic(s, parts, itself, func(m *source, of []connector.Partition) ([]connector.Position, error) { return m.Start(ctx, of) })
}

// End implements connector.Source.
func (s *several) End(ctx context.Context, parts []connector.Partition) ([]int64, error) {
	return byTopic(s, parts, itself, func(m *source, of []connector.Partition) ([]int64, error) { return m.End(ctx, of) })
}

// Check implements connector.Source.
func (s *several) Check(ctx context.Context, saved []connector.Position) ([]error, error) {
	return byTopic(s, saved, func(p connector.Position) connector.Partition { return p.Partition },
		func(m *source, of []connector.Position) ([]error, error) { return m.Check(ctx, of) })
}

// ExplainStart implements connector.StartExplainer.
func (s *several) ExplainStart(parts []connector.Partition) []string {
	out, _ := byTopic(s, parts, itself, func(m *source, of []connector.Partition) ([]string, error) { return m.ExplainStart(of), nil })
	return out
}

// MirrorCursor implements connector.CursorMirror.
func (s *several) MirrorCursor(ctx context.Context, next []connector.Position) error {
	var errs []error
	_, err := byTopic(s, next, func(p connector.Position) connector.Partition { return p.Partition },
		func(m *source, of []connector.Position) ([]struct{}, error) {
			errs = append(errs, m.MirrorCursor(ctx, of))
			return make([]struct{}, len(of)), nil
		})
	return errors.Join(append(errs, err)...)
}

// Open implements connector.Source. A lane reads one topic.
func (s *several) Open(ctx context.Context, splits []connector.Split, columns []int, notify func()) (connector.Reader, error) {
	for _, x := range splits[1:] {
		if x.From.Partition.TopicID != splits[0].From.Partition.TopicID {
			return nil, fmt.Errorf("BUG: a reader is asked for topics %s and %s", splits[0].From.Partition.Topic, x.From.Partition.Topic)
		}
	}
	return s.topicSource(splits[0].From.Partition.Topic).Open(ctx, splits, columns, notify)
}
