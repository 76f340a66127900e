package kafkaproto

// ListOffsets (2), versions 0 to 10: offsets by time.
//
//   - -1 is the end, -2 the start, -3 (version 7) the first record with the largest
//     timestamp, -4 (version 8) the start of what is on this node, the same as the
//     start, -5 (version 9) the end of what is on a remote tier: none, so -1.
//   - A time gives the first offset whose timestamp is at least that, or -1.
//   - Version 0 knows -1, -2 and times, and lists so many offsets, the largest first,
//     at which a reader may begin to have nothing from behind the time: see offsetsBefore.
//   - 2 adds the isolation level: for level 1 the end is the last stable offset, and
//     a time finds nothing behind it. 4 adds leader epochs, 6 is flexible, 10 adds a timeout.

import (
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

// Timestamps that are no times.
const (
	timestampEnd        = -1
	timestampStart      = -2
	timestampMax        = -3
	timestampLocalStart = -4
	timestampRemoteEnd  = -5
	versionMaxTimestamp = 7
	versionLocalStart   = 8
	versionRemoteEnd    = 9
)

func serveListOffsets(c *call, req *kmsg.ListOffsetsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	for _, t := range req.Topics {
		rt := kmsg.NewListOffsetsResponseTopic()
		rt.Topic = t.Topic
		ref := topicRef{name: t.Topic}
		topic, code := ref.find(c.s.opts.Store)
		for _, p := range t.Partitions {
			rp := kmsg.NewListOffsetsResponseTopicPartition()
			rp.Partition, rp.ErrorCode = p.Partition, code
			switch {
			case code == codeNone && c.version == 0:
				c.offsetsBefore(&topic, p, &rp)
			case code == codeNone:
				c.listOffset(&topic, p, req.IsolationLevel == 1, &rp)
			}
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

// stateOf is a partition as it is now, or why it cannot be told.
func (c *call) stateOf(t *topiclog.Topic, partition int32) (id topiclog.PartitionID, st topiclog.PartitionState, code int16) {
	id, ok := partitionOf(t, partition)
	if !ok {
		return id, st, codeUnknownTopic
	}
	st, err := c.s.opts.Store.State(id)
	if err != nil {
		return id, st, codeOf(err)
	}
	return id, st, codeNone
}

func (c *call) listOffset(t *topiclog.Topic, p kmsg.ListOffsetsRequestTopicPartition, committed bool, out *kmsg.ListOffsetsResponseTopicPartition) {
	id, st, code := c.stateOf(t, p.Partition)
	if code != codeNone {
		out.ErrorCode = code
		return
	}
	if out.ErrorCode = checkEpoch(p.CurrentLeaderEpoch, st.LeaderEpoch); out.ErrorCode != codeNone {
		return
	}
	// Epoch 0 and above is known of what the log still holds; the current one is
	// right for its end.
	epoch := st.LeaderEpoch
	var err error
	switch {
	case p.Timestamp == timestampEnd:
		if out.Offset = st.HighWatermark; committed {
			out.Offset = st.StableEnd
		}
	case p.Timestamp == timestampStart, p.Timestamp == timestampLocalStart && c.version >= versionLocalStart:
		out.Offset = st.Start
		epoch = c.epochAt(id, st.Start, epoch)
	case p.Timestamp == timestampRemoteEnd && c.version >= versionRemoteEnd:
		epoch = -1
	case p.Timestamp == timestampMax && c.version >= versionMaxTimestamp:
		out.Offset, out.Timestamp, err = c.largestTimestamp(id)
		epoch = c.epochAt(id, out.Offset, epoch)
	case p.Timestamp < 0:
		out.ErrorCode = codeUnsupportedVersion
		return
	default:
		out.Offset, out.Timestamp, err = c.s.opts.Store.OffsetForTimestamp(c.ctx, id, p.Timestamp)
		if err == nil && out.Timestamp < 0 {
			out.Offset, epoch = -1, -1
		} else {
			epoch = c.epochAt(id, out.Offset, epoch)
		}
	}
	if err != nil {
		out.ErrorCode, out.Offset, out.Timestamp = codeOf(err), -1, -1
		return
	}
	if committed && p.Timestamp >= 0 && out.Offset >= st.StableEnd {
		// There is none that the client may read.
		out.Offset, out.Timestamp, epoch = -1, -1, -1
	}
	out.LeaderEpoch = epoch
}

// offsetsBefore answers as version 0 has it: Kafka lists where segments begin that were
// written before the time, and for a time yet to come the end. Here the records before
// the first one of that time count as one segment.
func (c *call) offsetsBefore(t *topiclog.Topic, p kmsg.ListOffsetsRequestTopicPartition, out *kmsg.ListOffsetsResponseTopicPartition) {
	id, st, code := c.stateOf(t, p.Partition)
	if code != codeNone {
		out.ErrorCode = code
		return
	}
	var offsets []int64
	switch {
	case p.Timestamp == timestampStart:
		offsets = []int64{st.Start}
	case p.Timestamp == timestampEnd:
		offsets = []int64{st.HighWatermark, st.Start}
	case p.Timestamp < 0:
		out.ErrorCode = codeUnsupportedVersion
		return
	default:
		first, timestamp, err := c.s.opts.Store.OffsetForTimestamp(c.ctx, id, p.Timestamp)
		if err != nil {
			out.ErrorCode = codeOf(err)
			return
		}
		if timestamp < 0 {
			first = st.HighWatermark // nothing is as late
		}
		if first > st.Start {
			offsets = []int64{first, st.Start}
		}
	}
	offsets = slices.Compact(offsets)
	out.OldStyleOffsets = offsets[:min(len(offsets), int(max(p.MaxNumOffsets, 0)))]
}

// epochAt is the leader epoch of the record at an offset; end if it is none of
// the recorded ones.
func (c *call) epochAt(id topiclog.PartitionID, offset int64, end int32) int32 {
	if offset < 0 {
		return -1
	}
	ranges, err := c.s.opts.Store.EpochHistory(id)
	if err != nil {
		return end
	}
	for _, r := range ranges {
		if offset < r.End {
			return r.LeaderEpoch
		}
	}
	return end
}

// largestTimestamp finds the first record with the largest timestamp; -1, -1 in
// an empty partition. "There is a record at or after t" holds up to the largest
// timestamp and not beyond, so it is searched by halving, upwards from what is
// known to exist.
func (c *call) largestTimestamp(id topiclog.PartitionID) (offset, timestamp int64, err error) {
	offset, timestamp, err = c.s.opts.Store.OffsetForTimestamp(c.ctx, id, 0)
	if err != nil || timestamp < 0 {
		return -1, -1, err
	}
	// Steps double until one finds nothing; then they halve.
	step, growing := int64(1), true
	for step > 0 {
		if timestamp > math.MaxInt64-step {
			step, growing = step/2, false
			continue
		}
		o, t, err := c.s.opts.Store.OffsetForTimestamp(c.ctx, id, timestamp+step)
		if err != nil {
			return -1, -1, err
		}
		switch {
		case t >= 0:
			offset, timestamp = o, t
			if growing {
				step *= 2
			}
		default:
			step, growing = step/2, false
		}
	}
	return offset, timestamp, nil
}
