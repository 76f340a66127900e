package lanetest

import (
	"context"
	"fmt"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

type openFile struct {
	partition string
	rows      []string
}

type writer struct {
	s     *Sink
	epoch uint64
	lane  connector.LaneID
	ids   map[string]connector.BucketID
	names []string
	open  map[connector.BucketID]*openFile
	held  int
}

func (w *writer) Buckets(b *batch.Batch, sel batch.Sel, out []connector.BucketID) ([]connector.BucketID, error) {
	col := -1
	for i, f := range b.Schema.Fields {
		if f.Name == w.s.o.PartitionBy {
			col = i
		}
	}
	for _, row := range sel {
		name := ""
		if col >= 0 {
			name = w.s.o.PartitionBy + "=" + b.Cols[col].Text(int(row))
		}
		id, ok := w.ids[name]
		if !ok {
			id = connector.BucketID(len(w.names))
			w.ids[name] = id
			w.names = append(w.names, name)
		}
		out = append(out, id)
	}
	return out, nil
}

// Check implements connector.RowChecker.
func (w *writer) Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError {
	if w.s.o.Refuse == nil {
		return bad
	}
	for _, row := range sel {
		if w.s.o.Refuse(text(b, int(row))) {
			bad = append(bad, batch.ValueError{Row: row, Code: batch.CodeSinkRefused, Message: "refused"})
		}
	}
	return bad
}

func text(b *batch.Batch, row int) string {
	cells := make([]string, len(b.Cols))
	for c := range b.Cols {
		if b.Cols[c].IsNull(row) {
			cells[c] = "NULL"
		} else {
			cells[c] = b.Cols[c].Text(row)
		}
	}
	return strings.Join(cells, "|")
}

func (w *writer) Write(b *batch.Batch, sel batch.Sel, id connector.BucketID) error {
	if w.s.o.MaxRows > 0 && w.held+len(sel) > w.s.o.MaxRows {
		return connector.ErrFull
	}
	f := w.open[id]
	if f == nil {
		f = &openFile{partition: w.names[id]}
		w.open[id] = f
	}
	for _, row := range sel {
		for c := range b.Cols {
			if b.Cols[c].DeepErr(int(row)) != nil {
				return fmt.Errorf("BUG: row %d has an error in column %d", row, c)
			}
		}
		f.rows = append(f.rows, text(b, int(row)))
	}
	w.held += len(sel)
	return nil
}

func (w *writer) Open() []connector.Bucket {
	var out []connector.Bucket
	for id, f := range w.open {
		out = append(out, connector.Bucket{ID: id, TablePartition: f.partition, Rows: int64(len(f.rows)), Bytes: int64(10 * len(f.rows))})
	}
	return out
}

// Aside implements connector.AsideWriter: rows of table partition "".
func (w *writer) Aside() connector.BucketID {
	id, ok := w.ids[""]
	if !ok {
		id = connector.BucketID(len(w.names))
		w.ids[""] = id
		w.names = append(w.names, "")
	}
	return id
}

// TablePartition implements connector.PartitionNamer.
func (w *writer) TablePartition(id connector.BucketID) string { return w.names[id] }

func (w *writer) HeldBytes() int64 { return int64(10 * w.held) }

func (w *writer) Seal(_ context.Context, req []connector.SealRequest) ([]connector.Artifact, error) {
	var out []connector.Artifact
	for _, r := range req {
		f := w.open[r.Bucket]
		if f == nil || int64(len(f.rows)) != r.Header.Rows {
			return nil, fmt.Errorf("BUG: header of %d rows for bucket %d", r.Header.Rows, r.Bucket)
		}
		err := w.s.op("seal", func() error {
			w.s.t.mu.Lock()
			defer w.s.t.mu.Unlock()
			if w.s.t.fence[w.lane] != w.epoch {
				return connector.ErrFenced
			}
			w.s.t.staged[r.Header.ID] = &file{header: r.Header, rows: f.rows}
			return nil
		})
		if err != nil {
			return nil, err
		}
		delete(w.open, r.Bucket)
		w.held -= len(f.rows)
		out = append(out, connector.Artifact{Header: r.Header, Bytes: int64(10 * len(f.rows)),
			Location: w.s.name + "/" + r.Header.TablePartition + "/" + r.Header.ID.String()})
	}
	return out, nil
}

func (w *writer) Close() error { return nil }
