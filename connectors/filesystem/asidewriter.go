package filesystem

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// asideBucket is the id of the bucket of late rows: no partition of the table has it.
const asideBucket connector.BucketID = math.MaxInt32

// NewAsideWriter makes one writer of a table's and that of the table of its late rows,
// which has no partitions; together they keep to the budget of bytes, 0: none.
func NewAsideWriter(main, side connector.Writer, budget int64) connector.AsideWriter {
	return &asideWriter{Writer: main, side: side, budget: budget}
}

// asideWriter is a writer of a table and of the table of its late rows.
type asideWriter struct {
	connector.Writer // of the table
	side             connector.Writer
	inner            connector.BucketID // side's own for all its rows
	known            bool
	budget           int64
}

var (
	_ connector.AsideWriter = (*asideWriter)(nil)
	_ connector.RowChecker  = (*asideWriter)(nil)
)

// Aside implements connector.AsideWriter.
func (w *asideWriter) Aside() connector.BucketID { return asideBucket }

// TablePartition implements connector.PartitionNamer.
func (w *asideWriter) TablePartition(id connector.BucketID) string {
	if id == asideBucket {
		return ""
	}
	return w.Writer.(connector.PartitionNamer).TablePartition(id)
}

// Check implements connector.RowChecker. What a partition's name can hold its column
// can, too.
func (w *asideWriter) Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError {
	return w.Writer.(connector.RowChecker).Check(b, sel, bad)
}

// Write implements connector.Writer.
func (w *asideWriter) Write(b *batch.Batch, sel batch.Sel, bucket connector.BucketID) error {
	// Each of the two keeps to the budget; so do both together.
	if main, side := w.Writer.HeldBytes(), w.side.HeldBytes(); w.budget > 0 && main > 0 && side > 0 && main+side > w.budget {
		return connector.ErrFull
	}
	if bucket != asideBucket {
		return w.Writer.Write(b, sel, bucket)
	}
	if !w.known {
		one := batch.Sel{0}
		if len(sel) > 0 {
			one[0] = sel[0]
		}
		ids, err := w.side.Buckets(b, one, nil)
		if err != nil {
			return err
		}
		w.inner, w.known = ids[0], true
	}
	return w.side.Write(b, sel, w.inner)
}

// Open implements connector.Writer.
func (w *asideWriter) Open() []connector.Bucket {
	out := w.Writer.Open()
	for _, b := range w.side.Open() {
		b.ID = asideBucket
		out = append(out, b)
	}
	return out
}

// HeldBytes implements connector.Writer.
func (w *asideWriter) HeldBytes() int64 { return w.Writer.HeldBytes() + w.side.HeldBytes() }

// Seal implements connector.Writer.
func (w *asideWriter) Seal(ctx context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	out := make([]connector.Artifact, len(req))
	var main, side []connector.SealRequest
	var mainAt, sideAt []int
	for i, r := range req {
		if r.Bucket == asideBucket {
			r.Bucket = w.inner
			side, sideAt = append(side, r), append(sideAt, i)
		} else {
			main, mainAt = append(main, r), append(mainAt, i)
		}
	}
	seal := func(x connector.Writer, req []connector.SealRequest, at []int) error {
		if len(req) == 0 {
			return nil
		}
		sealed, err := x.Seal(ctx, req)
		for i := range sealed {
			out[at[i]] = sealed[i]
		}
		return err
	}
	if err := seal(w.Writer, main, mainAt); err != nil {
		return nil, err
	}
	if err := seal(w.side, side, sideAt); err != nil {
		return nil, fmt.Errorf("the table of late rows: %w", err)
	}
	return out, nil
}

// Close implements connector.Writer.
func (w *asideWriter) Close() error { return errors.Join(w.Writer.Close(), w.side.Close()) }
