package logtopic

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/connectors/recordmeta"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// reader reads the partitions of one topic in turn. A batch is filled from as
// many of them as it takes; a partition keeps its turn until what was leased of
// it is decoded, so at most one lease is ever partly decoded.
type reader struct {
	s       *source
	store   *topiclog.Store
	watcher *topiclog.Watcher
	schema  *batch.Schema
	decoder *keyvalue.Decoder
	meta    []recordmeta.Column
	a       *format.Appender

	splits map[int32]*split
	byID   map[topiclog.PartitionID]*split
	turn   turns
	ready  []topiclog.PartitionID
	open   int   // splits that have not ended
	err    error // met while a batch had rows already; for the next call

	cur  current
	held []lease // decoded for the last batch; Raw reads them
	find finder

	records record.Decoder
	rec     record.Record
	place   recordmeta.Place
	input   int64 // bytes of records decoded since Open
	notes   int   // in the batch being filled
}

// split is a partition being read.
type split struct {
	number int32
	id     topiclog.PartitionID
	part   connector.Partition
	next   int64
	end    int64
	epoch  int32
	queued bool
	ended  bool
}

func (sp *split) position() connector.Position {
	return connector.Position{Partition: sp.part, LeaderEpoch: sp.epoch, Offset: sp.next}
}

// lease is memory of the log with records of one split.
type lease struct {
	split *split
	*topiclog.Lease
}

// current is the lease being decoded: up to chunk and at whole batches are
// split off, and the records of batch before iter are decoded.
type current struct {
	lease
	chunk, at int
	batch     record.Batch
	iter      record.Iter
	inside    bool // there may be more in iter
}

// turns is a queue of splits that may have records.
type turns struct {
	q    []*split
	head int
}

func (t *turns) push(sp *split) {
	if sp == nil || sp.queued || sp.ended {
		return
	}
	sp.queued = true
	if t.head > 0 && len(t.q) == cap(t.q) {
		t.q = t.q[:copy(t.q, t.q[t.head:])]
		t.head = 0
	}
	t.q = append(t.q, sp)
}

func (t *turns) pop() *split {
	if t.head == len(t.q) {
		t.q, t.head = t.q[:0], 0
		return nil
	}
	sp := t.q[t.head]
	t.head++
	sp.queued = false
	return sp
}

// Open implements connector.Source.
func (s *source) Open(_ context.Context, splits []connector.Split, columns []int, notify func()) (connector.Reader, error) {
	if columns == nil {
		for i := range s.table.Columns {
			columns = append(columns, i)
		}
	}
	r := &reader{s: s, store: s.store, schema: s.table.Schema(columns), a: format.NewAppender(),
		splits: map[int32]*split{}, byID: map[topiclog.PartitionID]*split{}}
	var err error
	if r.meta, err = recordmeta.Columns(s.table, columns, s.zone); err != nil {
		return nil, err
	}
	if r.decoder, err = s.layout.NewDecoder(columns); err != nil {
		return nil, err
	}
	t, err := s.current()
	if err != nil {
		return nil, err
	}
	r.watcher = r.store.Watch(notify)
	for _, x := range splits {
		if err := r.add(&t, x); err != nil {
			r.watcher.Close()
			return nil, err
		}
	}
	return r, nil
}

func (r *reader) add(t *topiclog.Topic, x connector.Split) error {
	at, err := r.s.locate(t, x.From.Partition)
	if err != nil {
		return err
	}
	if r.splits[x.Number] != nil || r.byID[at.id] != nil {
		return fmt.Errorf("BUG: split %d of topic %s partition %d is given twice", x.Number, t.Name, x.From.Partition.ID)
	}
	sp := &split{number: x.Number, id: at.id, part: x.From.Partition, next: x.From.Offset, end: x.End, epoch: x.From.LeaderEpoch}
	r.splits[x.Number], r.byID[at.id] = sp, sp
	if sp.next >= sp.end {
		sp.ended = true
		return nil
	}
	r.open++
	return r.watcher.Add(at.id)
}

// Next implements connector.Reader.
func (r *reader) Next(ctx context.Context, b *batch.Batch, maxRows, maxBytes int) error {
	r.Release()
	r.a.Begin(b, r.schema)
	r.decoder.Begin()
	r.notes = 0
	began := r.input
	left := func() int { return maxBytes - int(r.input-began) }
	for r.err == nil && r.a.Rows()+r.notes < maxRows && left() > 0 {
		if r.cur.Lease == nil {
			sp := r.nextTurn()
			if sp == nil {
				break
			}
			if r.err = r.fetch(ctx, sp, left()); r.err != nil || r.cur.Lease == nil {
				continue
			}
		}
		r.decode(b, maxRows, began+int64(maxBytes))
	}
	r.decoder.Finish(r.a)
	r.a.Finish()
	if len(b.Runs) > 0 {
		return nil
	}
	r.Release() // nobody asks for records of no batch
	switch {
	case r.err != nil:
		err := r.err
		if ctx.Err() != nil {
			r.err = nil // it says nothing about the log
		}
		return err
	case r.open == 0:
		return io.EOF
	}
	return connector.ErrNoData
}

// nextTurn takes the split that has waited longest. The watcher is asked each
// time: what comes up after that makes it notify again, so that nothing is
// missed by a reader that finds nothing.
func (r *reader) nextTurn() *split {
	r.ready = r.watcher.Ready(r.ready[:0])
	for _, id := range r.ready {
		r.turn.push(r.byID[id])
	}
	return r.turn.pop()
}

// fetch leases what there is of a split. Without anything new it leaves
// r.cur.Lease nil.
func (r *reader) fetch(ctx context.Context, sp *split, maxBytes int) error {
	l, err := r.store.Fetch(ctx, topiclog.FetchRequest{Partition: sp.id, Offset: sp.next, MaxBytes: maxBytes, Durable: true})
	if err != nil {
		r.turn.push(sp)
		return r.explain(sp, err)
	}
	if len(l.Chunks) == 0 {
		l.Release()
		if l.NextOffset > sp.next {
			r.passOver(sp, l.NextOffset)
			return nil
		}
		if sp.next < l.ReadEnd {
			return fmt.Errorf("reading topic %s partition %d: the log gives nothing at offset %d and ends at %d", sp.part.Topic, sp.part.ID, sp.next, l.ReadEnd)
		}
		return nil
	}
	r.cur = current{lease: lease{sp, l}}
	return nil
}

// passOver makes a run without records of offsets of which compaction has left
// nothing.
func (r *reader) passOver(sp *split, next int64) {
	r.a.BeginRun(sp.number, sp.next)
	sp.next = min(next, sp.end)
	r.a.EndRun(sp.next, 0)
	if sp.next >= sp.end {
		sp.ended = true
		r.open--
		r.watcher.Remove(sp.id)
	}
}

// explain turns what is known about lost records into a MismatchError.
func (r *reader) explain(sp *split, err error) error {
	var rot *topiclog.CorruptError
	var gone *topiclog.OffsetError
	at := sp.position()
	st, _ := r.store.State(sp.id)
	switch {
	case errors.As(err, &rot):
		return damaged(at, st, rot)
	case errors.As(err, &gone) && sp.next < gone.Start:
		st.Start = gone.Start
		return below(at, st)
	case errors.As(err, &gone):
		return mismatch(at, st, "the log ends before the position: what was read there is gone")
	case errors.Is(err, topiclog.ErrPartitionNotFound):
		m := r.s.recreated(at)
		m.Err = err
		return m
	}
	return fmt.Errorf("reading topic %s partition %d at offset %d: %w", sp.part.Topic, sp.part.ID, sp.next, err)
}

// decode decodes a run from the current lease until the batch has enough.
func (r *reader) decode(b *batch.Batch, maxRows int, maxInput int64) {
	c, sp := &r.cur, r.cur.split
	base := sp.next
	r.a.BeginRun(sp.number, base)
	var logTime int64
	for r.a.Rows()+r.notes < maxRows && r.input < maxInput && sp.next < sp.end {
		if !c.inside && !r.nextBatch() {
			break
		}
		logTime = max(logTime, c.batch.MaxTimestamp)
		sp.epoch = c.batch.LeaderEpoch
		r.decodeBatch(maxRows, maxInput)
	}
	r.a.EndRun(sp.next, logTime)
	if sp.next == base {
		b.Runs = b.Runs[:len(b.Runs)-1] // the end of a batch of which all was given
	}
	if sp.next >= sp.end || !c.inside && c.chunk == len(c.Chunks) {
		r.endLease()
	}
}

// nextBatch splits the next batch off the lease.
func (r *reader) nextBatch() bool {
	c, sp := &r.cur, r.cur.split
	if c.chunk == len(c.Chunks) {
		return false
	}
	chunk := c.Chunks[c.chunk]
	rb, rest, err := record.SplitUnverified(chunk[c.at:])
	if err != nil {
		// The log checked the header; a lease of something else must not be
		// taken for records.
		r.err = fmt.Errorf("BUG: leased bytes of topic %s partition %d at offset %d are no batch: %w", sp.part.Topic, sp.part.ID, sp.next, err)
		c.chunk = len(c.Chunks)
		return false
	}
	if c.at = len(chunk) - len(rest); len(rest) == 0 {
		c.chunk, c.at = c.chunk+1, 0
	}
	c.batch, c.iter, c.inside = rb, record.Iter{}, true
	if rb.Attributes.Control() {
		return true // an iterator without records
	}
	if c.iter, err = r.records.Records(rb); err != nil {
		r.unreadable(err)
		c.iter = record.Iter{}
	}
	return true
}

// decodeBatch decodes records of the current batch. The reader's record is not a
// local variable so that it is not allocated for each batch.
func (r *reader) decodeBatch(maxRows int, maxInput int64) {
	c, sp := &r.cur, r.cur.split
	r.place.Topic, r.place.Partition, r.place.Record, r.place.Batch = sp.part.Topic, sp.part.ID, &r.rec, &c.batch
	for r.a.Rows()+r.notes < maxRows && r.input < maxInput {
		if !c.iter.Next(&r.rec) {
			if err := c.iter.Err(); err != nil {
				r.unreadable(err)
			}
			c.inside = false
			sp.next = min(max(sp.next, c.batch.LastOffset()+1), sp.end)
			return
		}
		if r.rec.Offset < sp.next {
			continue
		}
		if r.rec.Offset >= sp.end {
			sp.next = sp.end
			return
		}
		r.input += int64(len(r.rec.Value) + len(r.rec.Key))
		n := r.decoder.Decode(r.rec.Key, r.rec.Value, r.rec.Offset, r.a)
		if n == 0 {
			r.notes++
		}
		for range n {
			for i := range r.meta {
				m := &r.meta[i]
				m.Append(r.a.Column(m.Index), &r.place)
			}
		}
		sp.next = r.rec.Offset + 1
	}
}

// unreadable notes that the rest of the current batch cannot be unpacked. The
// log has it as its producer made it, so it is one malformed record, whatever
// its header says about how many there are.
func (r *reader) unreadable(err error) {
	sp, rb := r.cur.split, &r.cur.batch
	first := max(sp.next, rb.BaseOffset)
	if first > rb.LastOffset() || first >= sp.end {
		return
	}
	sp.next = first + 1
	r.a.Note(first, batch.CodeMalformed, "", fmt.Sprintf("offsets %d to %d are in a record batch that cannot be unpacked: %v", first, rb.LastOffset(), err))
	r.notes++
}

// endLease puts the current lease aside for Raw, and the split back into the
// queue if there is more of it.
func (r *reader) endLease() {
	sp := r.cur.split
	more := sp.next < r.cur.ReadEnd
	r.held = append(r.held, r.cur.lease)
	r.cur = current{}
	switch {
	case sp.next >= sp.end:
		sp.ended = true
		r.open--
		r.watcher.Remove(sp.id)
	case more:
		r.turn.push(sp)
	}
}

// LogEnd implements connector.Reader: topics with `os` durability end at what is
// durable, and all of them before the first transaction without an end.
func (r *reader) LogEnd(number int32) int64 {
	sp := r.splits[number]
	if sp == nil {
		return 0
	}
	st, err := r.store.State(sp.id)
	if err != nil {
		return sp.next // deleted: nothing more to read
	}
	return st.CommittedEnd()
}

// LeaderEpoch implements connector.EpochLister.
func (r *reader) LeaderEpoch(number int32) int32 {
	if sp := r.splits[number]; sp != nil {
		return sp.epoch
	}
	return -1
}

// InputBytes implements connector.ByteCounter.
func (r *reader) InputBytes() int64 { return r.input }

// Release implements connector.Reader. A lease that is partly decoded stays: the
// next batch goes on with it.
func (r *reader) Release() {
	for i := range r.held {
		r.held[i].Release()
		r.held[i] = lease{}
	}
	r.held = r.held[:0]
	r.find.forget()
}

// Close implements connector.Reader.
func (r *reader) Close() error {
	r.Release()
	r.cur.Lease.Release()
	r.cur = current{}
	r.watcher.Close()
	r.records.Close()
	r.find.decoder.Close()
	return nil
}
