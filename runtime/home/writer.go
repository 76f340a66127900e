package home

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
)

// writer writes each bucket at the home of its table partition. It belongs to one
// goroutine at a time.
type writer struct {
	s      *Sink
	active uint8
	inner  [connector.Homes]connector.Writer
	// buckets are the ids that this writer gives; known finds them by those of the
	// writers at the homes.
	buckets []place
	known   [connector.Homes][]connector.BucketID
	homes   map[string]uint8
	ids     []connector.BucketID
	one     batch.Sel
}

// place is a bucket at a home.
type place struct {
	home uint8
	id   connector.BucketID
}

// OpenWriter implements connector.Sink: a writer at the active home, and one at the
// other as long as partitions that are not finished have theirs there.
func (s *Sink) OpenWriter(ctx context.Context, a connector.Attempt) (connector.Writer, error) {
	active, _ := s.cfg.Book.ActiveHome(s.cfg.Table.ID)
	w := &writer{s: s, active: active, homes: map[string]uint8{}, one: batch.Sel{0}}
	wanted := []uint8{active}
	for tp := range s.cfg.Book.Settled(s.cfg.Table.ID) {
		if h := w.homeOf(tp); h != active {
			wanted = append(wanted, h)
			break
		}
	}
	for _, h := range wanted {
		inner := a
		inner.MemoryBytes = a.MemoryBytes / int64(len(wanted))
		x, err := s.At(ctx, h)
		if err == nil {
			w.inner[h], err = x.OpenWriter(ctx, inner)
		}
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

// homeOf is the home of a table partition, the same as long as the writer lives.
func (w *writer) homeOf(tablePartition string) uint8 {
	h, ok := w.homes[tablePartition]
	if !ok {
		h = w.s.cfg.Book.HomeOf(ledger.CloseKey{Table: w.s.cfg.Table.ID, TablePartition: tablePartition})
		w.homes[tablePartition] = h
	}
	return h
}

func name(w connector.Writer, id connector.BucketID) string {
	return w.(connector.PartitionNamer).TablePartition(id)
}

// Buckets implements connector.Writer.
func (w *writer) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	main := w.inner[w.active]
	var err error
	if w.ids, err = main.Buckets(b, sel, w.ids[:0]); err != nil {
		return out, err
	}
	last, given := connector.BucketID(-1), connector.BucketID(-1)
	for k, id := range w.ids {
		if id != last {
			last, given = id, w.at(w.active, id)
			if given < 0 {
				if given, err = w.meet(b, sel, k, name(main, id)); err != nil {
					return out, err
				}
			}
		}
		out = append(out, given)
	}
	return out, nil
}

// at is the bucket for an id of the writer at a home, -1 when it is not known.
func (w *writer) at(home uint8, id connector.BucketID) connector.BucketID {
	if int(id) >= len(w.known[home]) {
		return -1
	}
	return w.known[home][id]
}

// meet makes the bucket of a table partition that is met for the first time, in row
// k of a selection.
func (w *writer) meet(b *batch.Batch, sel batch.Sel, k int, tablePartition string) (connector.BucketID, error) {
	home := w.homeOf(tablePartition)
	if w.inner[home] == nil {
		return -1, fmt.Errorf("BUG: partition %s has its home at %s, where no writer is open", tablePartition, connector.HomeName(home))
	}
	row := int32(k)
	if sel != nil {
		row = sel[k]
	}
	w.one[0] = row
	mine := place{home: home}
	for h := range w.inner {
		if w.inner[h] == nil {
			continue
		}
		// Both know the partition, by ids of their own.
		ids, err := w.inner[h].Buckets(b, w.one, nil)
		if err != nil {
			return -1, err
		}
		for len(w.known[h]) <= int(ids[0]) {
			w.known[h] = append(w.known[h], -1)
		}
		w.known[h][ids[0]] = connector.BucketID(len(w.buckets))
		if h == int(home) {
			mine.id = ids[0]
		}
	}
	w.buckets = append(w.buckets, mine)
	return connector.BucketID(len(w.buckets) - 1), nil
}

// TablePartition implements connector.PartitionNamer.
func (w *writer) TablePartition(id connector.BucketID) string {
	p := w.buckets[id]
	return name(w.inner[p.home], p.id)
}

// Check implements connector.RowChecker.
func (w *writer) Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError {
	if c, ok := w.inner[w.active].(connector.RowChecker); ok {
		return c.Check(b, sel, bad)
	}
	return bad
}

// Write implements connector.Writer.
func (w *writer) Write(b *batch.Batch, sel batch.Sel, bucket connector.BucketID) error {
	p := w.buckets[bucket]
	return w.inner[p.home].Write(b, sel, p.id)
}

// Open implements connector.Writer.
func (w *writer) Open() []connector.Bucket {
	var out []connector.Bucket
	for h, x := range w.inner {
		if x == nil {
			continue
		}
		for _, b := range x.Open() {
			b.ID = w.known[h][b.ID]
			out = append(out, b)
		}
	}
	return out
}

// HeldBytes implements connector.Writer.
func (w *writer) HeldBytes() int64 {
	n := int64(0)
	for _, x := range w.inner {
		if x != nil {
			n += x.HeldBytes()
		}
	}
	return n
}

// Seal implements connector.Writer.
func (w *writer) Seal(ctx context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	out := make([]connector.Artifact, len(req))
	for h, x := range w.inner {
		var mine []connector.SealRequest
		var at []int
		for i, r := range req {
			if p := w.buckets[r.Bucket]; int(p.home) == h {
				r.Bucket = p.id
				mine, at = append(mine, r), append(at, i)
			}
		}
		if len(mine) == 0 {
			continue
		}
		sealed, err := x.Seal(ctx, mine)
		if err != nil {
			return nil, err
		}
		for i, a := range sealed {
			a.Home = uint8(h)
			out[at[i]] = a
		}
	}
	return out, nil
}

// Close implements connector.Writer.
func (w *writer) Close() error {
	var errs []error
	for _, x := range w.inner {
		if x != nil {
			errs = append(errs, x.Close())
		}
	}
	return errors.Join(errs...)
}
