package logtopic

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/topiclog"
)

// Check implements connector.Source.
func (s *source) Check(ctx context.Context, saved []connector.Position) ([]error, error) {
	t, err := s.current()
	deleted := errors.Is(err, topiclog.ErrTopicNotFound)
	if err != nil && !deleted {
		return nil, err
	}
	out := make([]error, len(saved))
	for i, p := range saved {
		if deleted || topiclog.UUID(p.Partition.TopicID) != s.topic.ID {
			out[i] = s.recreated(p)
			continue
		}
		m, err := s.check(ctx, &t, p)
		if err != nil {
			return nil, err
		}
		if m != nil {
			out[i] = m
		}
	}
	return out, nil
}

func (s *source) check(ctx context.Context, t *topiclog.Topic, p connector.Position) (*connector.MismatchError, error) {
	at, err := s.locate(t, p.Partition)
	if err != nil {
		return nil, err
	}
	switch {
	case p.Offset < at.state.Start:
		return below(p, at.state), nil
	case p.Offset > at.state.CommittedEnd():
		return mismatch(p, at.state, "the log ends before the position: what was read there is gone"), nil
	case p.LeaderEpoch >= 0:
		end, err := s.store.EpochEnd(at.id, p.LeaderEpoch)
		if err != nil {
			return nil, err
		}
		if p.Offset > end {
			return mismatch(p, at.state, fmt.Sprintf("leader epoch %d ends at %d: what was read above it is gone", p.LeaderEpoch, end)), nil
		}
	}
	if p.Offset >= at.state.CommittedEnd() {
		return nil, nil
	}
	// A position in front of damage can only go on behind it. What is read here
	// will be read again in a moment.
	l, err := s.store.Fetch(ctx, topiclog.FetchRequest{Partition: at.id, Offset: p.Offset, MaxBytes: 1, Durable: true})
	l.Release()
	var rot *topiclog.CorruptError
	var gone *topiclog.OffsetError
	switch {
	case errors.As(err, &rot):
		return damaged(p, at.state, rot), nil
	case errors.As(err, &gone): // retention was faster
		at.state.Start = gone.Start
		return below(p, at.state), nil
	case err != nil:
		return nil, fmt.Errorf("checking offset %d of topic %s partition %d: %w", p.Offset, p.Partition.Topic, p.Partition.ID, err)
	}
	return nil, nil
}

func mismatch(p connector.Position, st topiclog.PartitionState, reason string) *connector.MismatchError {
	return &connector.MismatchError{Position: p, Earliest: st.Start, Latest: st.CommittedEnd(), Lost: -1, Reason: reason}
}

func below(p connector.Position, st topiclog.PartitionState) *connector.MismatchError {
	m := mismatch(p, st, "")
	m.Lost = st.Start - p.Offset
	m.Reason = fmt.Sprintf("%d offsets were removed before they were read", m.Lost)
	return m
}

func damaged(p connector.Position, st topiclog.PartitionState, rot *topiclog.CorruptError) *connector.MismatchError {
	m := mismatch(p, st, "")
	m.Damaged, m.Err = true, rot
	m.Earliest, m.Latest = rot.To+1, max(st.CommittedEnd(), rot.To+1)
	from := max(rot.From, p.Offset)
	m.Lost = m.Earliest - from
	m.Reason = fmt.Sprintf("offsets %d to %d are damaged and cannot be read", from, rot.To)
	return m
}

// recreated says that a position's topic is gone, with the bounds of the topic
// that has its name now.
func (s *source) recreated(p connector.Position) *connector.MismatchError {
	m := &connector.MismatchError{Position: p, Lost: -1, Recreated: true, Reason: "the topic was deleted"}
	t, err := s.store.Topic(p.Partition.Topic)
	if err != nil {
		return m
	}
	m.Reason = "the topic was deleted and created again"
	if p.Partition.ID >= 0 && int(p.Partition.ID) < len(t.Partitions) {
		if st, err := s.store.State(t.Partitions[p.Partition.ID].ID); err == nil {
			m.Earliest, m.Latest = st.Start, st.CommittedEnd()
		}
	}
	return m
}
