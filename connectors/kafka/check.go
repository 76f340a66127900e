package kafka

import (
	"context"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/runtime/connector"
)

// Check implements connector.Source.
func (s *source) Check(ctx context.Context, saved []connector.Position) ([]error, error) {
	t, err := s.describe(ctx)
	out := make([]error, len(saved))
	if err != nil && !unknownTopic(err) {
		return nil, err
	}
	gone := err != nil
	var epochs kadm.OffsetForLeaderEpochRequest
	for i, p := range saved {
		if gone || t.id != p.Partition.TopicID || p.Partition.TopicID != s.id {
			out[i] = s.recreated(ctx, p, gone)
		} else if p.LeaderEpoch >= 0 {
			epochs.Add(s.topic, p.Partition.ID, p.LeaderEpoch)
		}
	}
	if gone {
		return out, nil
	}
	b, err := s.bounds(ctx)
	if err != nil {
		return nil, err
	}
	ends, err := s.epochEnds(ctx, s.conn, epochs)
	if err != nil {
		return nil, err
	}
	for i, p := range saved {
		if out[i] != nil {
			continue
		}
		first, err := s.at(b.start, p.Partition)
		if err != nil {
			return nil, err
		}
		end, err := s.at(b.end, p.Partition)
		if err != nil {
			return nil, err
		}
		at, asked := ends[p.Partition.ID]
		if asked && at.Err != nil {
			return nil, s.conn.failed(at.Err, s.topic, "asking for the end of leader epoch %d of topic %s partition %d", p.LeaderEpoch, s.topic, p.Partition.ID)
		}
		if m := compare(p, first.Offset, end.Offset, at, asked, t.partitions[p.Partition.ID].epoch); m != nil {
			out[i] = m
		}
	}
	return out, nil
}

// epochEnds asks where leader epochs end.
func (s *source) epochEnds(ctx context.Context, c *conn, r kadm.OffsetForLeaderEpochRequest) (map[int32]kadm.OffsetForLeaderEpoch, error) {
	if len(r) == 0 {
		return nil, nil
	}
	all, err := c.admin.OffsetForLeaderEpoch(ctx, r)
	if err != nil {
		return nil, s.conn.failed(err, s.topic, "asking for the leader epochs of topic %s", s.topic)
	}
	return all[s.topic], nil
}

// compare says whether a position belongs to a log: its bounds, where the
// position's leader epoch ends in it (asked), and the leader epoch it is in now.
// A risen epoch alone is no mismatch.
func compare(p connector.Position, first, end int64, epoch kadm.OffsetForLeaderEpoch, asked bool, now int32) *connector.MismatchError {
	m := &connector.MismatchError{Position: p, Earliest: first, Latest: end, Lost: -1}
	switch {
	case p.Offset < first:
		m.Lost = first - p.Offset
		m.Reason = fmt.Sprintf("%d offsets were removed before they were read", m.Lost)
	case p.Offset > end:
		m.Reason = "the log ends before the position: what was read there is gone"
	case asked && epoch.EndOffset >= 0 && p.Offset > epoch.EndOffset:
		// What lies above was written by a leader that did not have what was
		// read: other records, all of them unread.
		m.Earliest = max(first, epoch.EndOffset)
		m.Reason = fmt.Sprintf("leader epoch %d ends at %d: what was read above it is gone (an unclean leader election)", p.LeaderEpoch, epoch.EndOffset)
	case asked && epoch.EndOffset < 0 && p.LeaderEpoch > now:
		m.Reason = fmt.Sprintf("the log is in leader epoch %d and was read in %d: it was put back to an earlier state", now, p.LeaderEpoch)
	default:
		return nil
	}
	return m
}

// recreated says that a position's topic is gone, with the bounds of the topic
// that has its name now.
func (s *source) recreated(ctx context.Context, p connector.Position, gone bool) *connector.MismatchError {
	m := &connector.MismatchError{Position: p, Lost: -1, Recreated: true, Reason: "the topic was deleted"}
	if gone {
		return m
	}
	m.Reason = "the topic was deleted and created again"
	b, err := s.bounds(ctx)
	if err != nil {
		return m
	}
	first, err := s.at(b.start, p.Partition)
	end, endErr := s.at(b.end, p.Partition)
	if err == nil && endErr == nil {
		m.Earliest, m.Latest = first.Offset, end.Offset
	}
	return m
}

// mismatchAt says why a partition cannot be read on from a position: nil when it
// can after all.
func (s *source) mismatchAt(ctx context.Context, p connector.Position) (*connector.MismatchError, error) {
	errs, err := s.Check(ctx, []connector.Position{p})
	if err != nil || errs[0] == nil {
		return nil, err
	}
	var m *connector.MismatchError
	if errors.As(errs[0], &m) {
		return m, nil
	}
	return nil, errs[0]
}

// moved reports errors that say that a partition is led by another broker, or is
// about to be.
func moved(err error) bool {
	for _, e := range []error{kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch, kerr.UnknownLeaderEpoch, kerr.LeaderNotAvailable,
		kerr.ReplicaNotAvailable, kerr.KafkaStorageError, kerr.OffsetNotAvailable} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
