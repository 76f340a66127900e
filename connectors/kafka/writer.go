package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

const (
	// maxArtifact bounds one transaction.
	maxArtifact = 4 << 20
	// maxHeld bounds a writer, whatever memory it is given.
	maxHeld = 16 << 20
)

var errWriterClosed = errors.New("writer is closed")

// writer encodes rows. It has one bucket, whatever partition they go to: what a
// lane writes is visible together.
type writer struct {
	s           *sink
	st          *laneState
	at          point // of the attempt
	records     []byte
	rows        int64
	limit       int64
	recordLimit int
	key, value  []byte
	closed      bool
}

var (
	_ connector.Writer     = (*writer)(nil)
	_ connector.RowChecker = (*writer)(nil)
)

// Buckets implements connector.Writer.
func (w *writer) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	if w.closed {
		return out, errWriterClosed
	}
	n := len(sel)
	if sel == nil {
		n = b.Len
	}
	for range n {
		out = append(out, 0)
	}
	return out, nil
}

// Write implements connector.Writer. After an error that is not ErrFull the
// writer may hold a part of the rows and is of no use.
func (w *writer) Write(b *batch.Batch, sel batch.Sel, _ connector.BucketID) error {
	if w.closed {
		return errWriterClosed
	}
	if n := int64(len(w.records)); n >= w.limit || n >= maxArtifact {
		return connector.ErrFull
	}
	now := time.Now().UnixMilli()
	return sel.Each(b.Len, func(i int) error {
		kind := b.KindOf(i)
		if kind == batch.UpdateBefore {
			w.rows++
			return nil // the row after it overwrites what it stands for
		}
		if err := w.encode(b, i); err != nil {
			return err
		}
		if kind == batch.Delete {
			w.value = nil
		}
		at := now
		if c := w.s.timestamp; c >= 0 && !b.Cols[c].IsNull(i) {
			v := &b.Cols[c]
			at = floorDiv(v.Int64(i), v.Type.UnitsPerSecond()/1000)
		}
		w.records = appendRecord(w.records, at, w.key, w.value)
		w.rows++
		return nil
	})
}

// encode fills key and value with a row.
func (w *writer) encode(b *batch.Batch, i int) (err error) {
	w.key, w.value, err = w.s.enc.Append(w.key, w.value, b, i)
	return err
}

func floorDiv(x, by int64) int64 {
	q := x / by
	if x%by < 0 {
		q--
	}
	return q
}

// Open implements connector.Writer.
func (w *writer) Open() []connector.Bucket {
	if w.rows == 0 {
		return nil
	}
	return []connector.Bucket{{Rows: w.rows, Bytes: int64(len(w.records))}}
}

// HeldBytes implements connector.Writer.
func (w *writer) HeldBytes() int64 { return int64(len(w.records)) }

// Seal implements connector.Writer. Nothing becomes durable: see the package's
// doc about what is carried in the payload.
func (w *writer) Seal(ctx context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	if w.closed {
		return nil, errWriterClosed
	}
	if err := w.st.lock(ctx); err != nil {
		return nil, err
	}
	defer w.st.unlock()
	if w.at.before(w.st.high) {
		return nil, fmt.Errorf("lane epoch %d, now %d: %w", w.at.epoch, w.st.high.epoch, connector.ErrFenced)
	}
	if len(req) == 0 {
		return nil, nil
	}
	if len(req) > 1 {
		return nil, fmt.Errorf("BUG: %d buckets are to be sealed, and there is one", len(req))
	}
	h := req[0].Header
	p := &payload{topic: w.s.id, txn: w.st.txn, rows: uint64(w.rows)}
	if w.s.commits != nil {
		p.commits = w.s.commits.id
	}
	if h.ID.Keyed {
		p.records = w.records
	} else {
		w.st.sealed[pointOf(h.ID)] = w.records
	}
	a := connector.Artifact{Header: h, Bytes: int64(len(w.records)), Location: "topic " + w.s.topic, Payload: p.encode()}
	w.records, w.rows = nil, 0
	return []connector.Artifact{a}, nil
}

// Close implements connector.Writer.
func (w *writer) Close() error {
	w.records, w.rows, w.closed = nil, 0, true
	return nil
}

// Check implements connector.RowChecker: what cannot become a record is found
// before the row is counted as taken. Most batches are told good by the size of
// their columns.
func (w *writer) Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError {
	if !w.s.enc.MayRefuse() && w.s.enc.Bound(b, 0, b.Len) <= w.recordLimit {
		return bad
	}
	_ = sel.Each(b.Len, func(i int) error { // the callback returns no error
		if !w.s.enc.MayRefuse() && w.s.enc.Bound(b, i, i+1) <= w.recordLimit {
			return nil
		}
		msg := ""
		if err := w.encode(b, i); err != nil {
			msg = err.Error()
		} else if n := len(w.key) + len(w.value); n > w.recordLimit {
			msg = fmt.Sprintf("the record has %d bytes, and max.message.bytes of topic %s and '%s' allow %d", n, w.s.topic, keyMaxRequest, w.recordLimit)
		}
		if msg != "" {
			bad = append(bad, batch.ValueError{Row: int32(i), Code: batch.CodeSinkRefused, Message: msg})
		}
		return nil
	})
	return bad
}
