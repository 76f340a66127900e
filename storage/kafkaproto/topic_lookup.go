package kafkaproto

import (
	"fmt"

	"github.com/millrace/millrace/storage/topiclog"
)

// topicRef names a topic as a request does: by name, or by id in the versions
// that use ids.
type topicRef struct {
	name string
	id   topiclog.UUID
	byID bool
}

// read takes a reference off a request.
func (t *topicRef) read(r *reader, byID bool) {
	if t.byID = byID; byID {
		t.id = r.uuid()
		return
	}
	t.name = r.string()
}

// write puts the reference into a response.
func (t *topicRef) write(w *writer) {
	if t.byID {
		w.cur = append(w.cur, t.id[:]...)
		return
	}
	w.string(t.name)
}

// find returns the topic or the code that says why not.
func (t *topicRef) find(s *topiclog.Store) (topiclog.Topic, int16) {
	var topic topiclog.Topic
	var err error
	if t.byID {
		if topic, err = s.TopicByID(t.id); err != nil {
			return topic, codeUnknownTopicID
		}
		return topic, codeNone
	}
	if topic, err = s.Topic(t.name); err != nil {
		return topic, codeUnknownTopic
	}
	return topic, codeNone
}

// target is find for a request that reads or writes the topic.
func (t *topicRef) target(s *topiclog.Store) (topiclog.Target, int16) {
	if t.byID {
		target, err := s.TargetByID(t.id)
		if err != nil {
			return target, codeUnknownTopicID
		}
		return target, codeNone
	}
	target, err := s.Target(t.name)
	if err != nil {
		return target, codeUnknownTopic
	}
	return target, codeNone
}

// partitionOf finds a partition of a topic by its index.
func partitionOf(t *topiclog.Topic, index int32) (topiclog.PartitionID, bool) {
	if index < 0 || int(index) >= len(t.Partitions) {
		return 0, false
	}
	return t.Partitions[index].ID, true
}

// partition finds a partition by its topic's name.
func (c *call) partition(topic string, index int32) (topiclog.PartitionID, int16) {
	ref := topicRef{name: topic}
	t, code := ref.find(c.s.opts.Store)
	if code != codeNone {
		return 0, code
	}
	id, ok := partitionOf(&t, index)
	if !ok {
		return 0, codeUnknownTopic
	}
	return id, codeNone
}

// checkEpoch compares the leader epoch that a client believes in, -1 for none,
// with the partition's.
func checkEpoch(current, have int32) int16 {
	switch {
	case current < 0 || current == have:
		return codeNone
	case current < have:
		return codeFencedLeaderEpoch
	default:
		return codeUnknownLeaderEpoch
	}
}

// notYet names what is not served.
func notYet(what string) error { return fmt.Errorf("not_yet: %s", what) }
