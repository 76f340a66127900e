package topiclog

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/wal"
)

// reserveStep is by how much the reserved end of os partitions moves, in
// offsets.
const reserveStep = 1 << 20

// maxNoteBytes bounds a note. Notes go into the manifest with the flush of their
// records, in one commit, which takes no more than manifest.MaxBatchBytes: a
// shard flushes when it has flushNoteBytes, and lets nothing in beyond
// maxFreshNoteBytes.
const (
	maxNoteBytes      = 8 << 20
	flushNoteBytes    = 8 << 20
	maxFreshNoteBytes = 24 << 20
)

// Append appends record batches and returns when they are as durable as the
// topic asks: on an fsync topic after the fdatasync of their group. ctx is only
// looked at before: a request that is queued is never left with an unknown
// outcome, and it does not wait for long.
func (s *Store) Append(ctx context.Context, req AppendRequest) (AppendResult, error) {
	if err := ctx.Err(); err != nil {
		return AppendResult{}, err
	}
	type outcome struct {
		res AppendResult
		err error
	}
	ch := make(chan outcome, 1)
	s.AppendAsync(req, func(res AppendResult, err error) { ch <- outcome{res, err} })
	o := <-ch
	return o.res, o.err
}

// AppendAsync is Append that calls done when it has ended, exactly once, from
// the shard's writer or, if the request is refused at once, from the caller.
// Requests of one goroutine to one partition keep their order. done must not
// block and must not call the store. AppendAsync blocks while more than 32 MiB
// wait for the shard.
func (s *Store) AppendAsync(req AppendRequest, done func(AppendResult, error)) {
	r := &request{done: done}
	s.mu.RLock()
	rules := s.rulesOf(req.Partition)
	s.mu.RUnlock()
	err := s.check(&req, r, &rules)
	if err == nil {
		if req.TransactionalID != "" {
			err = s.appendInTransaction(req.TransactionalID, r)
		} else {
			err = r.part.shard.enqueue(r)
		}
	}
	if err != nil {
		done(AppendResult{}, err)
	}
}

// AppendAll is AppendAsync for many requests at once, which share group commits;
// done is told the request's index, and ended, if it is not nil, is called after the
// last of them. Requests to one partition keep their order, those of a transaction
// and the others each among themselves. The slice is the store's until ended, what it
// points to until each one's done.
func (s *Store) AppendAll(reqs []AppendRequest, done func(i int, res AppendResult, err error), ended func()) {
	all := s.takeRequests(len(reqs))
	all.done, all.ended = done, ended
	all.left.Add(int64(len(reqs)))
	for from := 0; from < len(reqs); from += checkedAtOnce {
		s.checkAll(all, reqs, from, min(from+checkedAtOnce, len(reqs)))
	}
	for n, rs := range all.to {
		if len(rs) == 0 {
			continue
		}
		took, err := s.shards[n].enqueueAll(rs)
		for _, r := range rs[took:] {
			r.finish(AppendResult{}, err)
		}
	}
	all.leave(1)
}

// checkedAtOnce is how many requests are checked under one lock of the store.
const checkedAtOnce = 64

// checkAll checks some of the requests and gives them to their shards.
func (s *Store) checkAll(all *requests, reqs []AppendRequest, from, to int) {
	var rules [checkedAtOnce]appendRules
	s.mu.RLock()
	for i := from; i < to; i++ {
		rules[i-from] = s.rulesOf(reqs[i].Partition)
	}
	s.mu.RUnlock()
	for i := from; i < to; i++ {
		if reqs[i].TransactionalID != "" {
			// It goes in under its transaction's lock.
			s.AppendAsync(reqs[i], func(res AppendResult, err error) {
				all.done(i, res, err)
				all.leave(1)
			})
			continue
		}
		r := &all.list[i]
		r.all, r.index = all, int32(i)
		if err := s.check(&reqs[i], r, &rules[i-from]); err != nil {
			r.finish(AppendResult{}, err)
			continue
		}
		n := r.part.shard.number
		all.to[n] = append(all.to[n], r)
	}
}

// Start returns the first offset that a partition still has.
func (s *Store) Start(id PartitionID) (int64, error) {
	p, err := s.partition(id)
	if err != nil {
		return 0, err
	}
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	return p.start, nil
}

// appendRules are what a partition and its topic say of appends.
type appendRules struct {
	p                                 *partition // nil if there is none
	closing, internal, os, appendTime bool
	maxBytes                          int
}

// rulesOf finds the rules for a partition; mu is held.
func (s *Store) rulesOf(id PartitionID) appendRules {
	p := s.part(id)
	if p == nil {
		return appendRules{}
	}
	t := p.topic
	return appendRules{p: p, closing: t.closing, internal: t.internal(), os: t.settings.Durability == OS,
		appendTime: t.settings.LogAppendTime, maxBytes: t.settings.MaxMessageBytes}
}

// check validates an append and describes it for the writer in r.
func (s *Store) check(req *AppendRequest, r *request, rules *appendRules) error {
	p := rules.p
	switch {
	case s.closed.Load():
		return ErrClosed
	case p == nil:
		return fmt.Errorf("%w: %d", ErrPartitionNotFound, req.Partition)
	case rules.closing:
		return fmt.Errorf("%w: %s", ErrTopicClosing, p.topic.name)
	case s.full.Load() && !rules.internal:
		return &DiskFullError{Dir: s.opts.Dir, Err: errNoSpace}
	}
	r.part, r.kind, r.batches, r.maxTs = p, wal.KindBatch, req.Batches, record.NoTimestamp
	r.os, r.stamp, r.freshEpoch = rules.os, rules.appendTime, req.FreshEpoch
	if err := r.checkBatches(req, rules.maxBytes); err != nil {
		return fmt.Errorf("appending to topic %s partition %d: %w", p.topic.name, p.index, err)
	}
	if len(req.Note) > 0 {
		if req.NoteKey == "" || len(req.NoteKey) > 1<<10 || len(req.Note) > maxNoteBytes {
			return fmt.Errorf("appending to topic %s partition %d: %w: a note needs a key of 1 to 1024 bytes and has at most %d",
				p.topic.name, p.index, ErrInvalidBatch, maxNoteBytes)
		}
		r.noteKey, r.rawNote = req.NoteKey, append([]byte(nil), req.Note...)
		r.note = encodeNote(req.NoteKey, req.Note)
	}
	return nil
}

func (r *request) checkBatches(req *AppendRequest, maxBytes int) error {
	if len(r.batches) == 0 {
		return fmt.Errorf("%w: nothing to append", ErrInvalidBatch)
	}
	if len(r.batches) > maxBatchLimit {
		return fmt.Errorf("%w: %d bytes in one request, at most %d", ErrTooLarge, len(r.batches), maxBatchLimit)
	}
	if h := req.Header; h != nil {
		if h.Size() != len(r.batches) {
			return fmt.Errorf("%w: a header of %d bytes for %d", ErrInvalidBatch, h.Size(), len(r.batches))
		}
		r.head = h
		return r.countIn(h, maxBytes)
	}
	var first record.Header
	for rest := r.batches; len(rest) > 0; {
		var b record.Batch
		var err error
		if req.Trusted {
			b, rest, err = record.SplitUnverified(rest)
		} else {
			b, rest, err = record.Split(rest)
		}
		if err == nil {
			err = b.CheckProduced()
		}
		if err != nil {
			return fmt.Errorf("%w: %w", ErrInvalidBatch, err)
		}
		if r.count == 0 {
			first = b.Header
		}
		if b.ProducerID != first.ProducerID || b.ProducerEpoch != first.ProducerEpoch {
			return fmt.Errorf("%w: batches of producers %d and %d in one request", ErrInvalidBatch, first.ProducerID, b.ProducerID)
		}
		if err := r.countIn(&b.Header, maxBytes); err != nil {
			return err
		}
	}
	r.head = &first
	return nil
}

// countIn counts one batch in.
func (r *request) countIn(h *record.Header, maxBytes int) error {
	if h.Size() > maxBytes {
		return fmt.Errorf("%w: %d bytes, max.message.bytes is %d", ErrTooLarge, h.Size(), maxBytes)
	}
	r.producers = r.producers || h.ProducerID != record.NoProducerID
	r.records += int64(h.LastOffsetDelta) + 1
	r.count++
	r.maxTs = max(r.maxTs, h.MaxTimestamp)
	return nil
}

func encodeNote(key string, data []byte) []byte {
	b := binary.AppendUvarint(make([]byte, 0, len(key)+len(data)+3), uint64(len(key)))
	b = append(b, key...)
	return append(b, data...)
}

func decodeNote(b []byte) (key string, data []byte, ok bool) {
	n, w := binary.Uvarint(b)
	if w <= 0 || n > uint64(len(b)-w) {
		return "", nil, false
	}
	b = b[w:]
	return string(b[:n]), b[n:], true
}

// addNote keeps a note unless it was trimmed.
func (p *partition) addNote(key string, n Note, fresh bool) {
	l := p.notes[key]
	if l == nil {
		if p.notes == nil {
			p.notes = map[string]*noteList{}
		}
		l = &noteList{}
		p.notes[key] = l
	}
	if n.LastOffset < l.below {
		return
	}
	if k := len(l.notes); k > 0 && l.notes[k-1].LastOffset >= n.LastOffset {
		return // already known from the manifest
	}
	l.notes = append(l.notes, n)
	if fresh {
		l.fresh++
		if !p.noted {
			p.noted = true
			p.shard.freshNotes = append(p.shard.freshNotes, p)
		}
	}
}

func (p *partition) trimNotes(key string, below int64) {
	l := p.notes[key]
	if l == nil {
		if p.notes == nil {
			p.notes = map[string]*noteList{}
		}
		l = &noteList{}
		p.notes[key] = l
	}
	l.below = max(l.below, below)
	n := 0
	for n < len(l.notes) && l.notes[n].LastOffset < l.below {
		n++
	}
	l.notes = append([]Note(nil), l.notes[n:]...)
	l.fresh = min(l.fresh, len(l.notes))
}

// Notes returns what appends with the key have left in the partition, in order.
// The data must not be changed.
func (s *Store) Notes(id PartitionID, key string) ([]Note, error) {
	p, err := s.partition(id)
	if err != nil {
		return nil, err
	}
	p.shard.mu.Lock()
	defer p.shard.mu.Unlock()
	if l := p.notes[key]; l != nil {
		return append([]Note(nil), l.notes...), nil
	}
	return nil, nil
}

// TrimNotes durably forgets the key's notes whose last offset is below the given
// one.
func (s *Store) TrimNotes(ctx context.Context, id PartitionID, key string, below int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := s.partition(id)
	if err != nil {
		return err
	}
	return s.meta.commit(func() {
		p.shard.mu.Lock()
		defer p.shard.mu.Unlock()
		p.trimNotes(key, below)
	}, notesTrimmedEdit(id, key, below))
}
