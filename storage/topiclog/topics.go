package topiclog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/millrace/millrace/storage/manifest"
)

// MaxPartitions bounds the partitions of one topic.
const MaxPartitions = 100_000

// CreateTopic makes a topic. It is durable when the call returns; the calls of
// several goroutines share one fsync.
func (s *Store) CreateTopic(ctx context.Context, spec TopicSpec) (Topic, error) {
	ts, err := s.CreateTopics(ctx, []TopicSpec{spec})
	if err != nil {
		return Topic{}, err
	}
	return ts[0], nil
}

// CreateTopics makes all of the topics in one commit, or none of them.
func (s *Store) CreateTopics(ctx context.Context, specs []TopicSpec) ([]Topic, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.closed.Load() {
		return nil, ErrClosed
	}
	topics, edits, err := s.prepareTopics(specs)
	if err != nil {
		return nil, err
	}
	out := make([]Topic, len(topics))
	err = s.meta.commit(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, t := range topics {
			s.topics[t.name], s.topicsByID[t.id] = t, t
			for _, p := range t.parts {
				s.setPart(p)
			}
			out[i] = t.describe()
		}
	}, edits...)
	s.mu.Lock()
	for _, t := range topics {
		delete(s.reserved, t.name)
	}
	s.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("creating topics: %w", err)
	}
	return out, nil
}

// prepareTopics checks the specs, gives the ids and keeps the names from others
// until the commit is over.
func (s *Store) prepareTopics(specs []TopicSpec) ([]*topic, []manifest.Edit, error) {
	topics := make([]*topic, 0, len(specs))
	seen := map[string]bool{}
	for _, spec := range specs {
		if err := checkSpec(spec); err != nil {
			return nil, nil, err
		}
		settings, err := ParseConfig(spec.Config)
		if err != nil {
			return nil, nil, fmt.Errorf("topic %s: %w", spec.Name, err)
		}
		if seen[spec.Name] {
			return nil, nil, fmt.Errorf("%w: %s is named twice", ErrInvalidTopic, spec.Name)
		}
		seen[spec.Name] = true
		t := &topic{name: spec.Name, createdMs: s.nowMs(), config: maps.Clone(spec.Config), settings: settings}
		if _, err := rand.Read(t.id[:]); err != nil {
			return nil, nil, fmt.Errorf("making the id of topic %s: %w", spec.Name, err)
		}
		// A version 4 UUID, so that other tools read it as one.
		t.id[6], t.id[8] = t.id[6]&0x0f|0x40, t.id[8]&0x3f|0x80
		topics = append(topics, t)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range topics {
		if s.topics[t.name] != nil || s.reserved[t.name] {
			return nil, nil, fmt.Errorf("%w: %s", ErrTopicExists, t.name)
		}
	}
	var edits []manifest.Edit
	for i, t := range topics {
		s.reserved[t.name] = true
		parts, more := s.grow(t, specs[i].Partitions)
		t.parts = parts
		edits = append(edits, more...)
	}
	return topics, edits, nil
}

// newPart makes the partition of an index, with a new id, and the edits that
// must follow the topic's; Store.mu is held for writing.
func (s *Store) newPart(t *topic, index int) (*partition, []manifest.Edit) {
	id := s.nextPart
	s.nextPart++
	// The shard is stored, never computed again.
	p := &partition{topic: t, id: id, index: int32(index), shard: s.shards[int(id)%len(s.shards)]}
	if t.settings.Durability != OS {
		return p, nil
	}
	p.reserved = reserveStep
	return p, []manifest.Edit{partitionEdit(id, 0, 0, p.reserved)}
}

// grow returns a topic's partitions and new ones up to total, and the edits that
// make them durable; Store.mu is held for writing. The new ones are not in
// Store.parts yet: a partition takes appends only when it is durable.
func (s *Store) grow(t *topic, total int) ([]*partition, []manifest.Edit) {
	with := *t
	with.parts = slices.Clone(t.parts)
	var more []manifest.Edit
	for i := len(t.parts); i < total; i++ {
		p, edits := s.newPart(t, i)
		with.parts = append(with.parts, p)
		more = append(more, edits...)
	}
	return with.parts, append([]manifest.Edit{with.edit()}, more...)
}

func checkSpec(spec TopicSpec) error {
	if n := len(spec.Name); n == 0 || n > 249 || spec.Name == "." || spec.Name == ".." {
		return fmt.Errorf("%w: the name %q must have 1 to 249 characters and not be . or ..", ErrInvalidTopic, spec.Name)
	}
	for _, c := range []byte(spec.Name) {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
		if !ok {
			return fmt.Errorf("%w: the name %q may only have letters, digits, dot, underscore and hyphen", ErrInvalidTopic, spec.Name)
		}
	}
	if spec.Partitions < 1 || spec.Partitions > MaxPartitions {
		return fmt.Errorf("%w: topic %s with %d partitions, want 1 to %d", ErrInvalidTopic, spec.Name, spec.Partitions, MaxPartitions)
	}
	return nil
}

// Topic describes a topic by name.
func (s *Store) Topic(name string) (Topic, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.topics[name]
	if t == nil {
		return Topic{}, fmt.Errorf("%w: %s", ErrTopicNotFound, name)
	}
	return t.describe(), nil
}

// Target finds a topic by name.
func (s *Store) Target(name string) (Target, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.topics[name]
	if t == nil {
		return Target{}, fmt.Errorf("%w: %s", ErrTopicNotFound, name)
	}
	return Target{t.name, t.settings, t.parts}, nil
}

// TargetByID finds a topic by id.
func (s *Store) TargetByID(id UUID) (Target, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.topicsByID[id]
	if t == nil {
		return Target{}, fmt.Errorf("%w: %v", ErrTopicNotFound, id)
	}
	return Target{t.name, t.settings, t.parts}, nil
}

// TopicByID describes a topic by id.
func (s *Store) TopicByID(id UUID) (Topic, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.topicsByID[id]
	if t == nil {
		return Topic{}, fmt.Errorf("%w: %s", ErrTopicNotFound, id)
	}
	return t.describe(), nil
}

// Topics describes all topics in the order of their names.
func (s *Store) Topics() []Topic {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := make([]Topic, 0, len(s.topics))
	for _, t := range s.sortedTopics() {
		out = append(out, t.describe())
	}
	return out
}

// change commits a changed copy of a topic's metadata. prepare gets the copy,
// with Store.mu held; apply runs when it is durable, with Store.mu held too. One
// change of a topic at a time.
func (s *Store) change(ctx context.Context, name string, prepare func(t *topic) ([]manifest.Edit, error), apply func(t *topic)) (Topic, error) {
	if err := ctx.Err(); err != nil {
		return Topic{}, err
	}
	if s.closed.Load() {
		return Topic{}, ErrClosed
	}
	s.mu.Lock()
	t := s.topics[name]
	switch {
	case t == nil:
		s.mu.Unlock()
		return Topic{}, fmt.Errorf("%w: %s", ErrTopicNotFound, name)
	case s.reserved[name]:
		s.mu.Unlock()
		return Topic{}, fmt.Errorf("topic %s: %w", name, errBusy)
	}
	edits, err := prepare(t)
	if err != nil {
		s.mu.Unlock()
		return Topic{}, err
	}
	s.reserved[name] = true
	s.mu.Unlock()
	var out Topic
	err = s.meta.commit(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		apply(t)
		out = t.describe()
	}, edits...)
	s.mu.Lock()
	delete(s.reserved, name)
	s.mu.Unlock()
	if err != nil {
		return Topic{}, fmt.Errorf("changing topic %s: %w", name, err)
	}
	return out, nil
}

// errBusy is met by callers that change one topic at the same time.
var errBusy = errors.New("another change of the topic is under way")

// AlterConfig sets and resets options of a topic, durably, all or none.
func (s *Store) AlterConfig(ctx context.Context, name string, set map[string]string, reset []string) (Topic, error) {
	var config map[string]string
	var settings Settings
	reserved := map[*partition]int64{}
	return s.change(ctx, name, func(t *topic) ([]manifest.Edit, error) {
		if t.closing {
			return nil, fmt.Errorf("%w: %s", ErrTopicClosing, name)
		}
		config = maps.Clone(t.config)
		if config == nil {
			config = map[string]string{}
		}
		for _, k := range reset {
			if _, err := ParseConfig(map[string]string{k: ""}); err != nil {
				var ce *ConfigError
				if errors.As(err, &ce) && ce.Reason == "" {
					return nil, fmt.Errorf("topic %s: %w", name, err)
				}
			}
			delete(config, k)
		}
		maps.Copy(config, set)
		var err error
		if settings, err = ParseConfig(config); err != nil {
			return nil, fmt.Errorf("topic %s: %w", name, err)
		}
		with := *t
		with.config = config
		edits := []manifest.Edit{with.edit()}
		if settings.Durability == OS && t.settings.Durability != OS {
			for _, p := range t.parts {
				p.shard.mu.Lock()
				reserved[p] = p.next + reserveStep
				edits = append(edits, partitionEdit(p.id, p.start, p.floor, reserved[p]))
				p.shard.mu.Unlock()
			}
		}
		return edits, nil
	}, func(t *topic) {
		t.config, t.settings = config, settings
		for p, r := range reserved {
			p.shard.mu.Lock()
			p.reserved = max(p.reserved, r)
			p.shard.mu.Unlock()
		}
	})
}

// AddPartitions raises the number of a topic's partitions to total.
func (s *Store) AddPartitions(ctx context.Context, name string, total int) (Topic, error) {
	var parts []*partition
	return s.change(ctx, name, func(t *topic) (edits []manifest.Edit, err error) {
		if t.closing {
			return nil, fmt.Errorf("%w: %s", ErrTopicClosing, name)
		}
		if total <= len(t.parts) || total > MaxPartitions {
			return nil, fmt.Errorf("%w: topic %s has %d partitions, cannot have %d", ErrInvalidTopic, name, len(t.parts), total)
		}
		parts, edits = s.grow(t, total)
		return edits, nil
	}, func(t *topic) {
		for _, p := range parts[len(t.parts):] {
			s.setPart(p)
		}
		t.parts = parts
	})
}

// DeleteTopic deletes a topic and its records. While groups subscribe to it,
// that is refused with *SubscribedError; force marks it as closing instead: it
// takes no appends, and it is deleted with its last subscription.
func (s *Store) DeleteTopic(ctx context.Context, name string, force bool) error {
	closing := false
	var gone *topic
	_, err := s.change(ctx, name, func(t *topic) ([]manifest.Edit, error) {
		gone = t
		owners := s.subscribers(t)
		if len(owners) > 0 && !force {
			return nil, &SubscribedError{Topic: name, Owners: owners}
		}
		if len(owners) > 0 {
			closing = true
			with := *t
			with.closing = true
			return []manifest.Edit{with.edit()}, nil
		}
		t.deleting = true
		return []manifest.Edit{topicDeletedEdit(t.id)}, nil
	}, func(t *topic) {
		if closing {
			t.closing = true
			return
		}
		s.removeTopic(t)
		for _, p := range t.parts {
			p.shard.bury(p)
		}
	})
	if err != nil {
		if gone != nil {
			s.mu.Lock()
			gone.deleting = false
			s.mu.Unlock()
		}
		return err
	}
	if closing {
		// The last reader may have gone while that was committed.
		return s.finishClosing(ctx, gone.id)
	}
	for _, p := range gone.parts {
		p.wake() // readers see that it is gone
	}
	if _, err := s.collectSegments(); err != nil {
		s.opts.Logger.Warn("removing segments failed", "error", err)
	}
	return nil
}

// subscribers lists who subscribes to a topic; Store.mu is held.
func (s *Store) subscribers(t *topic) []string {
	var owners []string
	for k, sub := range s.subs {
		if k.topic == t.id {
			owner := sub.Owner
			if owner == "" {
				owner = "group " + sub.Group
			}
			owners = append(owners, owner)
		}
	}
	sort.Strings(owners)
	owners = slices.Compact(owners)
	if len(owners) == 0 && t.joining > 0 {
		owners = append(owners, "a group that subscribes right now")
	}
	return owners
}
