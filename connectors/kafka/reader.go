package kafka

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/connectors/recordmeta"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/record"
)

// reader decodes what its fetcher brings, in the order it comes.
type reader struct {
	s       *source
	fetcher *fetcher
	schema  *batch.Schema
	decoder *keyvalue.Decoder
	meta    []recordmeta.Column
	a       *format.Appender

	splits map[int32]*split
	byFeed map[*feed]*split
	open   int   // splits that have not ended
	err    error // met while a batch had rows already; for the next call

	cur  current
	held []portion // decoded for the last batch; Raw reads them
	find finder

	records record.Decoder
	rec     record.Record
	place   recordmeta.Place
	input   int64 // bytes of records decoded since Open
	notes   int   // in the batch being filled
}

var (
	_ connector.Reader      = (*reader)(nil)
	_ connector.ByteCounter = (*reader)(nil)
	_ connector.EpochLister = (*reader)(nil)
)

// split is a partition being read.
type split struct {
	number int32
	feed   *feed
	next   int64
	end    int64
	epoch  int32
	ended  bool
}

// portion is record batches of one split.
type portion struct {
	split *split
	data  []byte
}

// current is the portion being decoded: rest is not split yet, and the records of
// batch before iter are decoded.
type current struct {
	portion
	rest   []byte
	next   int64
	aborts aborts
	batch  record.Batch
	iter   record.Iter
	inside bool // there may be more in iter
}

// aborts follows the transactions of an answer that were aborted.
type aborts struct {
	ahead  []kmsg.FetchResponseTopicPartitionAbortedTransaction // by first offset
	active map[int64]bool                                       // producers within one
}

// skip reports whether a batch is part of an aborted transaction. marker says
// whether a control batch aborts one.
func (a *aborts) skip(b *record.Batch, marker func() bool) bool {
	for len(a.ahead) > 0 && a.ahead[0].FirstOffset <= b.LastOffset() {
		if a.active == nil {
			a.active = map[int64]bool{}
		}
		a.active[a.ahead[0].ProducerID] = true
		a.ahead = a.ahead[1:]
	}
	if b.Attributes.Control() {
		if a.active[b.ProducerID] && marker() {
			delete(a.active, b.ProducerID)
		}
		return true
	}
	return b.Attributes.Transactional() && a.active[b.ProducerID]
}

// Open implements connector.Source.
func (s *source) Open(_ context.Context, splits []connector.Split, columns []int, notify func()) (connector.Reader, error) {
	if columns == nil {
		for i := range s.table.Columns {
			columns = append(columns, i)
		}
	}
	r := &reader{s: s, schema: s.table.Schema(columns), a: format.NewAppender(),
		splits: map[int32]*split{}, byFeed: map[*feed]*split{}}
	var err error
	if r.meta, err = recordmeta.Columns(s.table, columns, s.zone); err != nil {
		return nil, err
	}
	if r.decoder, err = s.layout.NewDecoder(columns); err != nil {
		return nil, err
	}
	c, err := connect(s.table.Options, s.opts, s.conn.access)
	if err != nil {
		return nil, err
	}
	r.fetcher = newFetcher(s, c, notify)
	for _, x := range splits {
		if x.From.Partition.TopicID != s.id || r.splits[x.Number] != nil {
			c.close()
			return nil, fmt.Errorf("BUG: split %d is of topic id %s partition %d, or given twice", x.Number, x.From.Partition.TopicID, x.From.Partition.ID)
		}
		sp := &split{number: x.Number, next: x.From.Offset, end: x.End, epoch: x.From.LeaderEpoch, feed: r.fetcher.add(x)}
		r.splits[x.Number], r.byFeed[sp.feed] = sp, sp
		if sp.ended = sp.next >= sp.end; !sp.ended {
			r.open++
		}
	}
	r.fetcher.start()
	return r, nil
}

// Next implements connector.Reader.
func (r *reader) Next(ctx context.Context, b *batch.Batch, maxRows, maxBytes int) error {
	r.Release()
	r.a.Begin(b, r.schema)
	r.decoder.Begin()
	r.notes = 0
	began := r.input
	for r.err == nil && ctx.Err() == nil && r.a.Rows()+r.notes < maxRows && r.input-began < int64(maxBytes) {
		if r.cur.split == nil && !r.take() {
			break
		}
		r.decode(b, maxRows, began+int64(maxBytes))
	}
	r.decoder.Finish(r.a)
	r.a.Finish()
	switch {
	case len(b.Runs) > 0:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case r.err != nil:
		return r.err
	case r.open == 0:
		return io.EOF
	}
	return connector.ErrNoData
}

// take makes the chunk that has waited longest the current one.
func (r *reader) take() bool {
	if r.open == 0 {
		return false
	}
	c, err := r.fetcher.take()
	if err == nil && c != nil {
		err = c.err
	}
	if err != nil || c == nil {
		r.err = err
		return false
	}
	slices.SortFunc(c.aborted, func(x, y kmsg.FetchResponseTopicPartitionAbortedTransaction) int {
		return int(min(max(x.FirstOffset-y.FirstOffset, -1), 1))
	})
	r.cur = current{portion: portion{r.byFeed[c.feed], c.data}, rest: c.data, next: c.next, aborts: aborts{ahead: c.aborted}}
	return true
}

// decode decodes a run from the current portion until the batch has enough.
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
	done := sp.next >= sp.end || !c.inside && len(c.rest) == 0
	if done {
		sp.next = min(max(sp.next, c.next), sp.end)
	}
	r.a.EndRun(sp.next, logTime)
	if sp.next == base {
		b.Runs = b.Runs[:len(b.Runs)-1] // the end of a batch of which all was given
	}
	if done {
		r.held = append(r.held, c.portion)
		r.cur = current{}
		if sp.next >= sp.end && !sp.ended {
			sp.ended = true
			r.open--
		}
	}
}

// nextBatch splits the next batch off the portion.
func (r *reader) nextBatch() bool {
	c := &r.cur
	if len(c.rest) == 0 {
		return false
	}
	rb, rest, err := record.SplitUnverified(c.rest)
	if err != nil {
		// The fetcher has split it before.
		r.err = fmt.Errorf("BUG: fetched bytes of topic %s partition %d at offset %d are no batch: %w", r.s.topic, c.split.feed.part.ID, c.split.next, err)
		c.rest = nil
		return false
	}
	c.rest = rest
	c.batch, c.iter, c.inside = rb, record.Iter{}, true
	if c.aborts.skip(&rb, func() bool { return r.aborting(rb) }) {
		return true // an iterator without records
	}
	if c.iter, err = r.records.Records(rb); err != nil {
		r.unreadable(err)
		c.iter = record.Iter{}
	}
	return true
}

// aborting reports whether a control batch ends a transaction as aborted.
func (r *reader) aborting(rb record.Batch) bool {
	it, err := r.records.Records(rb)
	if err != nil || !it.Next(&r.rec) {
		return false
	}
	kind, _, err := record.ParseControl(&r.rec)
	return err == nil && kind == record.ControlAbort
}

// decodeBatch decodes records of the current batch. The reader's record is not a
// local variable so that it is not allocated for each batch.
func (r *reader) decodeBatch(maxRows int, maxInput int64) {
	c, sp := &r.cur, r.cur.split
	r.place.Topic, r.place.Partition, r.place.Record, r.place.Batch = r.s.topic, sp.feed.part.ID, &r.rec, &c.batch
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

// unreadable notes that the rest of the current batch cannot be unpacked. Its
// checksum is right, so the log has it as its producer made it: it is one
// malformed record, whatever its header says about how many there are.
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

// LogEnd implements connector.Reader: the high watermark. A partition whose last
// records are of an open transaction is therefore never at its end.
func (r *reader) LogEnd(number int32) int64 {
	sp := r.splits[number]
	if sp == nil {
		return 0
	}
	return r.fetcher.logEnd(sp.feed, sp.next)
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

// Release implements connector.Reader. A portion that is partly decoded stays:
// the next batch goes on with it.
func (r *reader) Release() {
	clear(r.held)
	r.held = r.held[:0]
	r.find.forget()
}

// Close implements connector.Reader.
func (r *reader) Close() error {
	if r.fetcher == nil {
		return nil
	}
	r.fetcher.close()
	r.Release()
	r.cur = current{}
	r.records.Close()
	r.find.decoder.Close()
	r.fetcher = nil
	return nil
}
