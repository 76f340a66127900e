package kafkaproto

// Fetch (1), versions 4 to 18: reads record batches of many partitions.
//
//   - The answer waits until min bytes are there over all partitions, a partition
//     has an error, or max wait is over.
//   - The first batch of the first partition that has any is returned whole even
//     if it is larger than the bounds; after that max bytes and each partition's
//     own bound hold.
//   - 7 adds sessions (fetch_session.go): a request names what changes, an answer
//     what is new.
//   - Isolation level 1 reads up to the last stable offset, and the answer names
//     the aborted transactions whose records the client skips.
//   - 9 adds the leader epoch check; 12 is flexible; 13 names topics by id; 18 has a
//     follower say what it knows, and there are none.
//   - Records that are lost to damage are answered with error 2 (corrupt message),
//     and the damage is named in the server's log.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/quota"
	"github.com/millrace/millrace/storage/topiclog"
)

// maxFetchWait bounds how long a client may ask to wait.
const maxFetchWait = 5 * time.Minute

type fetchRequest struct {
	wait               time.Duration
	minBytes, maxBytes int
	isolation          topiclog.Isolation
	session, epoch     int32
	topics             []fetchTopic
	// forgotten leave the session; byID says that topics are named by id;
	// incremental that the session knows what the client was told.
	forgotten   []fetchKey
	byID        bool
	incremental bool
}

type fetchTopic struct {
	topicRef
	partitions []fetchPartition
}

type fetchPartition struct {
	index       int32
	leaderEpoch int32
	offset      int64
	maxBytes    int

	id    topiclog.PartitionID
	code  int16
	lease *topiclog.Lease
}

// parse decodes a request of a version.
func (f *fetchRequest) parse(version int16, b []byte) error {
	r := reader{b: b, flexible: version >= 12}
	if version <= 14 {
		r.int32() // the follower that asks; clients send -1
	}
	f.wait = time.Duration(r.int32()) * time.Millisecond
	f.minBytes, f.maxBytes = int(r.int32()), int(r.int32())
	f.isolation = topiclog.Uncommitted
	if r.int8() == 1 {
		f.isolation = topiclog.CommittedRaw
	}
	f.epoch, f.byID = finalEpoch, version >= 13
	if version >= 7 {
		f.session, f.epoch = r.int32(), r.int32()
	}
	f.topics = make([]fetchTopic, r.arrayLen(3))
	for i := range f.topics {
		t := &f.topics[i]
		t.read(&r, version >= 13)
		t.partitions = make([]fetchPartition, r.arrayLen(16))
		for j := range t.partitions {
			p := &t.partitions[j]
			p.index, p.leaderEpoch = r.int32(), -1
			if version >= 9 {
				p.leaderEpoch = r.int32()
			}
			p.offset = r.int64()
			if version >= 12 {
				r.int32() // epoch of the last record fetched: offsets never name two records here
			}
			if version >= 5 {
				r.int64() // the follower's log start
			}
			p.maxBytes = int(r.int32())
			r.tags()
		}
		r.tags()
		if r.bad {
			break
		}
	}
	if version >= 7 {
		for n := r.arrayLen(3); n > 0 && !r.bad; n-- {
			var t topicRef
			t.read(&r, version >= 13)
			for k := r.arrayLen(4); k > 0; k-- {
				f.forgotten = append(f.forgotten, fetchKey{t, r.int32()})
			}
			r.tags()
		}
	}
	if version >= 11 {
		r.nullableString() // the client's rack
	}
	r.tags()
	return r.end()
}

func serveFetch(c *call) (*reply, error) {
	var req fetchRequest
	if err := req.parse(c.version, c.body); err != nil {
		return nil, fmt.Errorf("fetch version %d: %w", c.version, err)
	}
	c.body = nil
	c.settled()
	code := c.s.sessions.begin(&req)
	if code == codeNone {
		req.resolve(c)
		if err := req.collect(c); err != nil {
			req.release()
			return nil, err
		}
		c.s.sessions.end(&req)
		c.throttle = max(c.throttle, c.spend(quota.FetchRate, req.bytes()))
	}
	return &reply{build: func() (net.Buffers, error) { return req.answer(c, code), nil }, release: req.release}, nil
}

// resolve finds the partitions.
func (f *fetchRequest) resolve(c *call) {
	for i := range f.topics {
		t := &f.topics[i]
		topic, code := c.topicFor(&t.topicRef, acl.Read)
		for j := range t.partitions {
			p := &t.partitions[j]
			var ok bool
			if p.code = code; code != codeNone {
				continue
			}
			if p.id, ok = topic.Partition(p.index); !ok {
				p.code = codeUnknownTopic
				continue
			}
			st, err := c.s.opts.Store.State(p.id)
			if err != nil {
				p.code = codeOf(err)
				continue
			}
			p.code = checkEpoch(p.leaderEpoch, st.LeaderEpoch)
		}
	}
}

// collect reads until there is enough, something is wrong, or the time is over.
func (f *fetchRequest) collect(c *call) error {
	enough, err := f.read(c)
	wait := min(f.wait, maxFetchWait)
	if enough || err != nil || wait <= 0 {
		return err
	}
	woken := make(chan struct{}, 1)
	w := c.s.opts.Store.Watch(func() {
		select {
		case woken <- struct{}{}:
		default:
		}
	})
	defer w.Close()
	for i := range f.topics {
		for j := range f.topics[i].partitions {
			// A partition deleted meanwhile is found by the next read.
			if err := w.Add(f.topics[i].partitions[j].id); err != nil && !errors.Is(err, topiclog.ErrPartitionNotFound) {
				return nil
			}
		}
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		last := false
		select {
		case <-woken:
			w.Ready(nil)
		case <-timer.C:
			last = true
		case <-c.ctx.Done():
			last = true
		}
		f.release()
		if enough, err = f.read(c); enough || err != nil || last {
			return err
		}
	}
}

// read takes what there is within the bounds and reports whether the answer need
// not wait. When the answer is full the other partitions are not read any more: it
// has their bounds.
func (f *fetchRequest) read(c *call) (enough bool, err error) {
	left := min(f.maxBytes, c.s.opts.MaxFetchBytes)
	bytes, full := 0, false
	for i := range f.topics {
		for j := range f.topics[i].partitions {
			p := &f.topics[i].partitions[j]
			if p.code != codeNone {
				enough = true
				continue
			}
			bound := min(p.maxBytes, left)
			req := topiclog.FetchRequest{Partition: p.id, Offset: p.offset, MaxBytes: max(bound, 1), Isolation: f.isolation,
				BoundsOnly: full || bytes > 0 && bound <= 0}
			l, err := c.s.opts.Store.Fetch(context.Background(), req)
			if err != nil {
				if p.code = codeOf(err); p.code == codeCorruptMessage || p.code == codeUnknown {
					c.s.opts.Logger.Error("reading for a client failed", "topic", f.topics[i].name, "partition", p.index, "offset", p.offset, "error", err)
				}
				enough = true
				continue
			}
			if l.Bytes > bound && bytes > 0 {
				// Only the first batch of an answer may pass the bounds. Without the
				// chunks the lease still tells the partition's bounds.
				full = full || bound == left
				l.Release()
				l.Chunks, l.Bytes, l.Aborted = nil, 0, nil
			}
			p.lease = l
			bytes += l.Bytes
			left -= l.Bytes
			full = full || bytes > 0 && left <= 0
		}
	}
	return enough || full || bytes >= f.minBytes || len(f.topics) == 0, nil
}

// bytes is the size of what was read.
func (f *fetchRequest) bytes() int {
	n := 0
	for i := range f.topics {
		for j := range f.topics[i].partitions {
			if l := f.topics[i].partitions[j].lease; l != nil {
				n += l.Bytes
			}
		}
	}
	return n
}

// release gives the leases back.
func (f *fetchRequest) release() {
	for i := range f.topics {
		for j := range f.topics[i].partitions {
			f.topics[i].partitions[j].giveBack()
		}
	}
}

func (p *fetchPartition) giveBack() {
	if p.lease != nil {
		p.lease.Release()
		p.lease = nil
	}
}

// answer encodes the response around the leases' bytes.
func (f *fetchRequest) answer(c *call, code int16) net.Buffers {
	w := newWriter(c.correlation, c.flexible, c.flexible)
	w.int32(c.throttleMillis())
	topics := f.topics
	if c.version >= 7 {
		if w.int16(code); code != codeNone {
			f.session, topics = 0, nil
		}
		w.int32(f.session)
	}
	w.arrayLen(len(topics))
	for i := range topics {
		t := &topics[i]
		t.write(w)
		w.arrayLen(len(t.partitions))
		for j := range t.partitions {
			t.partitions[j].write(w, c.version, f.isolation)
		}
		w.tags()
	}
	w.tags()
	return w.frame()
}

// bounds are the high watermark, the last stable offset and the first offset.
func (p *fetchPartition) bounds() (high, stable, start int64) {
	if p.lease == nil {
		return -1, -1, -1
	}
	return p.lease.HighWatermark, p.lease.StableEnd, p.lease.Start
}

func (p *fetchPartition) write(w *writer, version int16, isolation topiclog.Isolation) {
	high, stable, start := p.bounds()
	w.int32(p.index)
	w.int16(p.code)
	w.int64(high)
	w.int64(stable)
	if version >= 5 {
		w.int64(start)
	}
	p.writeAborted(w, isolation)
	if version >= 11 {
		w.int32(-1) // no replica that would be better to read from
	}
	if p.lease == nil {
		w.length(0, true)
	} else {
		w.length(p.lease.Bytes, true)
		for _, chunk := range p.lease.Chunks {
			w.raw(chunk)
		}
	}
	w.tags()
}

// writeAborted names the transactions whose records the client skips; null for one
// that reads everything.
func (p *fetchPartition) writeAborted(w *writer, isolation topiclog.Isolation) {
	switch {
	case isolation == topiclog.Uncommitted:
		w.length(-1, true)
		return
	case p.lease == nil:
		w.length(0, true)
		return
	}
	w.length(len(p.lease.Aborted), true)
	for i := range p.lease.Aborted {
		w.int64(p.lease.Aborted[i].ProducerID)
		w.int64(p.lease.Aborted[i].FirstOffset)
		w.tags()
	}
}
