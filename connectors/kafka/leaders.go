package kafka

import (
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/runtime/connector"
)

// unled are the feeds without a leader, and how long to wait before looking.
func (f *fetcher) unled() ([]*feed, time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*feed
	tries := 1 << 30
	for _, d := range f.feeds {
		if d.leader == noLeader && !d.stopped {
			out = append(out, d)
			tries = min(tries, d.tries)
		}
	}
	if tries <= 1 {
		return out, 0
	}
	return out, min(minPause<<min(tries-2, 10), maxPause)
}

// lead finds leaders for feeds that have none.
func (f *fetcher) lead() {
	for f.ctx.Err() == nil {
		lost, pause := f.unled()
		if len(lost) > 0 && pause > 0 {
			timer := time.NewTimer(pause)
			select {
			case <-f.ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			lost, _ = f.unled()
		}
		if len(lost) > 0 {
			f.findLeaders(lost)
			continue
		}
		select {
		case <-f.ctx.Done():
			return
		case <-f.stir:
		}
	}
}

func (f *fetcher) findLeaders(lost []*feed) {
	t, err := f.s.describe(f.ctx)
	switch {
	case f.ctx.Err() != nil:
		return
	case unknownTopic(err), err == nil && t.id != f.s.id:
		for _, d := range lost {
			f.gone(d, f.s.recreated(f.ctx, d.position(), err != nil))
		}
		return
	case err != nil:
		for _, d := range lost {
			f.lose(d, err)
		}
		if e := (connector.Retryable)(nil); errors.As(err, &e) && !e.Retryable() {
			f.fail(err)
		}
		return
	}
	var epochs kadm.OffsetForLeaderEpochRequest
	for _, d := range lost {
		if d.epoch >= 0 {
			epochs.Add(f.s.topic, d.part.ID, d.epoch)
		}
	}
	ends, err := f.s.epochEnds(f.ctx, f.conn, epochs)
	for _, d := range lost {
		p, ok := t.partitions[d.part.ID]
		e, asked := ends[d.part.ID]
		switch {
		case !ok:
			f.lose(d, kerr.UnknownTopicOrPartition)
		case p.err != nil:
			f.lose(d, p.err)
		case p.leader < 0:
			f.lose(d, kerr.LeaderNotAvailable)
		case err != nil:
			f.lose(d, err)
		case asked && e.Err != nil:
			f.lose(d, e.Err)
		case asked && (e.EndOffset < d.next):
			f.suspect(d, p)
		default:
			f.led(d, p)
		}
	}
}

// suspect looks closer at a feed whose leader epoch ends below its position.
func (f *fetcher) suspect(d *feed, p led) {
	m, err := f.s.mismatchAt(f.ctx, d.position())
	switch {
	case err != nil:
		f.lose(d, err)
	case m != nil:
		f.gone(d, m)
	default:
		f.led(d, p)
	}
}

// led lets a broker's goroutine fetch a feed.
func (f *fetcher) led(d *feed, p led) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	d.leader, d.leaderEpoch = p.leader, p.epoch
	if !f.brokers[p.leader] {
		f.brokers[p.leader] = true
		f.wg.Go(func() { f.serve(p.leader) })
	}
	f.changed.Broadcast()
}
