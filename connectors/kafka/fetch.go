package kafka

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/record"
)

const (
	// damageTries is how often a batch with a wrong checksum is fetched before
	// it is the log's damage and not the network's.
	damageTries = 3
	topicIDs    = 13 // the first version of Fetch that names topics by id
)

// serve fetches from one broker.
func (f *fetcher) serve(broker int32) {
	for turn := 0; ; turn++ {
		feeds, ok := f.due(broker)
		if !ok {
			return
		}
		// Answers are filled in the order of the request: each comes first in
		// its turn.
		k := turn % len(feeds)
		feeds = append(feeds[k:len(feeds):len(feeds)], feeds[:k]...)
		if err := f.ask(broker, feeds); err != nil {
			for _, d := range feeds {
				f.lose(d, err)
			}
		}
	}
}

// due waits until a broker is to be asked.
func (f *fetcher) due(broker int32) ([]*feed, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for !f.closed {
		var out []*feed
		waiting := false
		for _, d := range f.feeds {
			if d.leader == broker {
				waiting = waiting || d.waiting
				if !d.stopped {
					out = append(out, d)
				}
			}
		}
		// Invariant 8: bounded.
		if len(out) > 0 && !waiting && f.err == nil {
			slices.SortFunc(out, func(a, b *feed) int { return cmp.Compare(a.part.ID, b.part.ID) })
			return out, true
		}
		f.changed.Wait()
	}
	return nil, false
}

// ask fetches once; the error is of all feeds.
func (f *fetcher) ask(broker int32, feeds []*feed) error {
	req := f.fetch
	topic := kmsg.NewFetchRequestTopic()
	topic.Topic, topic.TopicID = f.s.topic, f.s.id
	byID := make(map[int32]*feed, len(feeds))
	for _, d := range feeds {
		p := kmsg.NewFetchRequestTopicPartition()
		p.Partition, p.CurrentLeaderEpoch, p.FetchOffset, p.PartitionMaxBytes = d.part.ID, d.leaderEpoch, d.next, f.part
		topic.Partitions = append(topic.Partitions, p)
		byID[d.part.ID] = d
	}
	req.Topics = []kmsg.FetchRequestTopic{topic}
	raw, err := f.conn.client.Broker(int(broker)).Request(f.ctx, &req)
	if err != nil {
		return err
	}
	resp := raw.(*kmsg.FetchResponse)
	if resp.Version < topicIDs {
		// By name alone a topic that was made again would be read on.
		f.fail(fmt.Errorf("reading topic %s: broker %d fetches by name only: Kafka 3.1 or later is needed", f.s.topic, broker))
		return nil
	}
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return err
	}
	for i := range resp.Topics {
		for k := range resp.Topics[i].Partitions {
			p := &resp.Topics[i].Partitions[k]
			if d := byID[p.Partition]; d != nil {
				delete(byID, p.Partition)
				f.answer(d, p)
			}
		}
	}
	for _, d := range byID {
		f.lose(d, errors.New("the broker left the partition out of its answer"))
	}
	return nil
}

// answer takes what a broker said about one partition.
func (f *fetcher) answer(d *feed, p *kmsg.FetchResponseTopicPartition) {
	err := kerr.ErrorForCode(p.ErrorCode)
	switch {
	case err == nil:
		f.records(d, p)
	case errors.Is(err, kerr.OffsetOutOfRange):
		m, cause := f.s.mismatchAt(f.ctx, d.position())
		switch {
		case m != nil:
			f.gone(d, m)
		case cause != nil:
			f.lose(d, cause)
		default:
			f.lose(d, err)
		}
	case moved(err) || unknownTopic(err) || kerr.IsRetriable(err):
		f.lose(d, err)
	default:
		f.fail(f.conn.failed(err, f.s.topic, "reading topic %s partition %d at offset %d", f.s.topic, d.part.ID, d.next))
	}
}

// records cuts an answer into whole batches: brokers end it where it has the
// size asked for.
func (f *fetcher) records(d *feed, p *kmsg.FetchResponseTopicPartition) {
	rest, next, epoch := p.RecordBatches, d.next, d.epoch
	var err error
	for len(rest) > 0 && next < d.end {
		var b record.Batch
		var after []byte
		if b, after, err = record.Split(rest); err != nil {
			break
		}
		next, epoch, rest = max(next, b.LastOffset()+1), b.LeaderEpoch, after
	}
	data := p.RecordBatches[:len(p.RecordBatches)-len(rest)]
	if next == d.next && err != nil {
		f.unreadable(d, p.RecordBatches, err)
		return
	}
	f.mu.Lock()
	d.tries, d.damaged = 0, 0
	d.answered, d.logEnd = true, max(p.HighWatermark, next)
	moved := next > d.next
	d.next, d.epoch = next, epoch
	d.stopped = d.stopped || next >= d.end
	f.mu.Unlock()
	if moved {
		f.push(&chunk{feed: d, data: data, aborted: p.AbortedTransactions, next: next})
	}
}

// unreadable handles an answer whose first batch cannot be used.
func (f *fetcher) unreadable(d *feed, data []byte, err error) {
	h, bad := record.ParseHeader(data)
	if bad != nil || !errors.Is(err, record.ErrChecksum) {
		f.lose(d, fmt.Errorf("the broker's answer is no record batch: %w", err))
		return
	}
	if d.damaged++; d.damaged < damageTries {
		f.lose(d, err)
		return
	}
	at := d.position()
	f.gone(d, &connector.MismatchError{Position: at, Earliest: h.LastOffset() + 1, Latest: max(d.logEnd, h.LastOffset()+1),
		Lost: h.LastOffset() + 1 - at.Offset, Damaged: true, Err: err,
		Reason: fmt.Sprintf("offsets %d to %d are damaged and cannot be read", at.Offset, h.LastOffset())})
}
