package clickhouse

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// shardedWriter is one attempt of one lane on all shards. It belongs to one goroutine
// at a time.
type shardedWriter struct {
	slots  []int
	key    *shardKey
	shards []*writer

	ids     map[shardBucket]connector.BucketID
	buckets []shardBucket

	s      scratch
	rows   []int32
	values []uint64
	sels   []batch.Sel // by shard
	at     []int32     // shard of each row
	given  [][]connector.BucketID
}

// shardBucket is a bucket of a shard's writer.
type shardBucket struct {
	shard  int
	bucket connector.BucketID
}

var (
	_ connector.Writer     = (*shardedWriter)(nil)
	_ connector.RowChecker = (*shardedWriter)(nil)
)

// split finds the shard of each row.
func (w *shardedWriter) split(b *batch.Batch, sel batch.Sel) {
	w.rows = all(w.rows, sel, b.Len)
	w.values = w.key.values(b, w.rows, &w.s, w.values[:0])
	w.at = w.at[:0]
	for i := range w.sels {
		if w.sels[i] == nil {
			w.sels[i] = batch.Sel{} // nil would be all rows
		}
		w.sels[i] = w.sels[i][:0]
	}
	n := uint64(len(w.slots))
	for k, x := range w.values {
		shard := w.slots[x%n]
		w.at = append(w.at, int32(shard))
		w.sels[shard] = append(w.sels[shard], w.rows[k])
	}
}

// Check implements connector.RowChecker. The tables of the shards may differ, so that
// each is asked about its own rows; a row whose key is bad has no shard, and any of
// them says why.
func (w *shardedWriter) Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError {
	from := len(bad)
	w.split(b, sel)
	for i, s := range w.shards {
		if len(w.sels[i]) > 0 {
			bad = s.Check(b, w.sels[i], bad)
		}
	}
	slices.SortFunc(bad[from:], func(a, b batch.ValueError) int { return int(a.Row - b.Row) })
	return bad
}

// Buckets implements connector.Writer: one bucket a partition and shard.
func (w *shardedWriter) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	w.split(b, sel)
	for len(w.given) < len(w.shards) {
		w.given = append(w.given, nil)
	}
	for i, s := range w.shards {
		w.given[i] = w.given[i][:0]
		if len(w.sels[i]) == 0 {
			continue
		}
		var err error
		if w.given[i], err = s.Buckets(b, w.sels[i], w.given[i]); err != nil {
			return out, err
		}
	}
	next := make([]int, len(w.shards))
	for _, shard := range w.at {
		i := int(shard)
		out = append(out, w.id(shardBucket{i, w.given[i][next[i]]}))
		next[i]++
	}
	return out, nil
}

func (w *shardedWriter) id(k shardBucket) connector.BucketID {
	id, ok := w.ids[k]
	if !ok {
		id = connector.BucketID(len(w.buckets))
		w.ids[k] = id
		w.buckets = append(w.buckets, k)
	}
	return id
}

func (w *shardedWriter) bucket(id connector.BucketID) (shardBucket, error) {
	if int(id) < 0 || int(id) >= len(w.buckets) {
		return shardBucket{}, fmt.Errorf("bucket %d is not of this writer", id)
	}
	return w.buckets[id], nil
}

// Write implements connector.Writer.
func (w *shardedWriter) Write(b *batch.Batch, sel batch.Sel, bucket connector.BucketID) error {
	k, err := w.bucket(bucket)
	if err != nil {
		return err
	}
	if held := w.HeldBytes(); held > 0 && held >= w.shards[0].budget {
		return connector.ErrFull
	}
	return w.shards[k.shard].Write(b, sel, k.bucket)
}

// Open implements connector.Writer.
func (w *shardedWriter) Open() []connector.Bucket {
	var out []connector.Bucket
	for i, s := range w.shards {
		for _, b := range s.Open() {
			b.ID = w.id(shardBucket{i, b.ID})
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b connector.Bucket) int { return int(a.ID - b.ID) })
	return out
}

// HeldBytes implements connector.Writer.
func (w *shardedWriter) HeldBytes() int64 {
	n := int64(0)
	for _, s := range w.shards {
		n += s.HeldBytes()
	}
	return n
}

// Seal implements connector.Writer.
func (w *shardedWriter) Seal(ctx context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	out := make([]connector.Artifact, len(req))
	for i, s := range w.shards {
		var own []connector.SealRequest
		var at []int
		for k, r := range req {
			b, err := w.bucket(r.Bucket)
			if err != nil {
				return nil, err
			}
			if b.shard == i {
				r.Bucket = b.bucket
				own, at = append(own, r), append(at, k)
			}
		}
		if len(own) == 0 {
			continue
		}
		sealed, err := s.Seal(ctx, own)
		if err != nil {
			return nil, err
		}
		for k, a := range sealed {
			out[at[k]] = a
		}
	}
	return out, nil
}

// Close implements connector.Writer.
func (w *shardedWriter) Close() error {
	for _, s := range w.shards {
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}
