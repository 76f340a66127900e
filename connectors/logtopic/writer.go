package logtopic

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

const (
	// batchBytes is the size of one record batch before compression.
	batchBytes = 256 << 10
	// maxArtifact bounds one append.
	maxArtifact = 2 << 20
	// maxHeld bounds a writer, whatever memory it is given.
	maxHeld = 16 << 20
)

var errWriterClosed = errors.New("writer is closed")

// writer packs rows into record batches, one bucket a partition.
type writer struct {
	s          *sink
	st         *laneState
	at         point // of the attempt
	topic      topiclog.Topic
	open       []openPartition
	turn       int // partition of rows without a key
	held       int64
	limit      int64
	batchBytes int
	key, value []byte
	closed     bool
}

var (
	_ connector.Writer     = (*writer)(nil)
	_ connector.RowChecker = (*writer)(nil)
)

// openPartition is what one partition's artefact holds so far.
type openPartition struct {
	done    []byte // finished batches
	builder record.Builder
	rows    int64
}

func (o *openPartition) bytes() int64 {
	n := int64(len(o.done))
	if o.builder.Count() > 0 {
		n += int64(o.builder.Size())
	}
	return n
}

// Buckets implements connector.Writer. Without a key all rows go to one
// partition until its artefact is sealed, and then to the next, unless it is fixed: a
// record that gives several rows stays in one append, and batches are large.
func (w *writer) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	if w.closed {
		return out, errWriterClosed
	}
	if !w.s.enc.HasKey() || w.s.partitioner != keyvalue.ByKey || len(w.open) == 1 {
		n := len(sel)
		if sel == nil {
			n = b.Len
		}
		for range n {
			out = append(out, connector.BucketID(w.turn))
		}
		return out, nil
	}
	return out, sel.Each(b.Len, func(i int) error {
		var err error
		if w.key, err = w.s.enc.AppendKey(w.key[:0], b, i); err != nil {
			return err
		}
		out = append(out, connector.BucketID(record.PartitionOf(w.key, len(w.open))))
		return nil
	})
}

// Write implements connector.Writer. After an error that is not ErrFull the
// writer may hold a part of the rows and is of no use.
func (w *writer) Write(b *batch.Batch, sel batch.Sel, bucket connector.BucketID) error {
	if w.closed {
		return errWriterClosed
	}
	o := &w.open[bucket]
	if w.held >= w.limit || o.bytes() >= maxArtifact {
		return connector.ErrFull
	}
	before := o.bytes()
	now := time.Now().UnixMilli()
	err := sel.Each(b.Len, func(i int) error { return w.row(o, b, i, now) })
	w.held += o.bytes() - before
	return err
}

func (w *writer) row(o *openPartition, b *batch.Batch, i int, now int64) error {
	var err error
	if w.key, w.value, err = w.s.enc.Append(w.key, w.value, b, i); err != nil {
		return err
	}
	key := w.key
	if o.builder.Count() > 0 && o.builder.Size()+record.RecordSize(key, w.value, nil) > w.batchBytes {
		if err := o.finish(); err != nil {
			return err
		}
	}
	if c := w.s.timestamp; c >= 0 && !b.Cols[c].IsNull(i) {
		v := &b.Cols[c]
		now = floorDiv(v.Int64(i), v.Type.UnitsPerSecond()/1000)
	}
	if err := o.builder.Append(now, key, w.value, nil); err != nil {
		return fmt.Errorf("adding a record: %w", err)
	}
	o.rows++
	return nil
}

func floorDiv(x, by int64) int64 {
	q := x / by
	if x%by < 0 {
		q--
	}
	return q
}

// finish ends the open batch.
func (o *openPartition) finish() error {
	if o.builder.Count() == 0 {
		return nil
	}
	b, err := o.builder.Build()
	if err != nil {
		return fmt.Errorf("building a record batch: %w", err)
	}
	o.done = append(o.done, b...)
	o.builder.Reset()
	return nil
}

// Open implements connector.Writer.
func (w *writer) Open() []connector.Bucket {
	var out []connector.Bucket
	for i := range w.open {
		if o := &w.open[i]; o.rows > 0 {
			out = append(out, connector.Bucket{ID: connector.BucketID(i), Rows: o.rows, Bytes: o.bytes()})
		}
	}
	return out
}

// HeldBytes implements connector.Writer.
func (w *writer) HeldBytes() int64 { return w.held }

// Seal implements connector.Writer. Nothing becomes durable: see the package's
// doc about what is carried in the payload.
func (w *writer) Seal(ctx context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	if w.closed {
		return nil, errWriterClosed
	}
	if err := w.s.lanes.fenced(w.topic.ID, w.s.owner); err != nil {
		return nil, err
	}
	if err := w.st.lock(ctx); err != nil {
		return nil, err
	}
	defer w.st.unlock()
	if w.at.before(w.st.high) {
		return nil, fmt.Errorf("lane epoch %d, now %d: %w", w.at.epoch, w.st.high.epoch, connector.ErrFenced)
	}
	shared := sharing(req)
	out := make([]connector.Artifact, 0, len(req))
	for i, r := range req {
		a, err := w.seal(&r, shared[i] || r.Header.ID.Keyed)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

func (w *writer) seal(r *connector.SealRequest, carry bool) (connector.Artifact, error) {
	o := &w.open[r.Bucket]
	before := o.bytes()
	if err := o.finish(); err != nil {
		return connector.Artifact{}, err
	}
	part := w.topic.Partitions[r.Bucket]
	p := &payload{topic: w.topic.ID, index: part.Index, partition: part.ID, rows: o.rows, batches: o.done}
	a := connector.Artifact{Header: r.Header, Bytes: int64(len(o.done)),
		Location: fmt.Sprintf("topic %s partition %d", w.topic.Name, part.Index)}
	if carry {
		a.Payload = p.encode()
	} else {
		w.st.sealed[pointOf(r.Header.ID)] = p
		bare := *p
		bare.batches = nil
		a.Payload = bare.encode()
	}
	o.done, o.rows = nil, 0
	w.held -= before
	if int(r.Bucket) == w.turn && w.s.partitioner != keyvalue.Fixed {
		w.turn = (w.turn + 1) % len(w.open)
	}
	return a, nil
}

// sharing finds the requests that share an offset with another one: they are
// visible together or not at all, which several appends cannot promise.
func sharing(req []connector.SealRequest) []bool {
	out := make([]bool, len(req))
	for i := range req {
		for k := range i {
			if share(req[i].Header.Inputs, req[k].Header.Inputs) {
				out[i], out[k] = true, true
			}
		}
	}
	return out
}

func share(a, b []connector.Input) bool {
	for i := range a {
		for k := range b {
			x, y := &a[i], &b[k]
			if x.Topic == y.Topic && x.Partition == y.Partition && !x.Offsets.Intersect(y.Offsets).Empty() {
				return true
			}
		}
	}
	return false
}

// Close implements connector.Writer.
func (w *writer) Close() error {
	w.open, w.closed, w.held = nil, true, 0
	return nil
}

// Check implements connector.RowChecker: what cannot become a record is found
// before the row is counted as taken. Most batches are told good by the size of
// their columns.
func (w *writer) Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError {
	limit := w.topic.Settings.MaxMessageBytes - record.HeaderSize - 64
	suspect := w.s.enc.MayRefuse() || w.s.enc.Bound(b, 0, b.Len) > limit
	if !suspect {
		return bad
	}
	_ = sel.Each(b.Len, func(i int) error { // the callback returns no error
		if !w.s.enc.MayRefuse() && w.s.enc.Bound(b, i, i+1) <= limit {
			return nil
		}
		if msg := w.refuses(b, i, limit); msg != "" {
			bad = append(bad, batch.ValueError{Row: int32(i), Code: batch.CodeSinkRefused, Message: msg})
		}
		return nil
	})
	return bad
}

// refuses says why a row cannot be written, or "".
func (w *writer) refuses(b *batch.Batch, i, limit int) string {
	var err error
	if w.key, w.value, err = w.s.enc.Append(w.key, w.value, b, i); err != nil {
		return err.Error()
	}
	if n := len(w.key) + len(w.value); n > limit {
		return fmt.Sprintf("the record has %d bytes, max.message.bytes of topic %s is %d", n, w.topic.Name, w.topic.Settings.MaxMessageBytes)
	}
	return ""
}
