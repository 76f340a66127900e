package lane

import (
	"context"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/runtime/types"
)

// sinkState is an output that writes a table.
type sinkState struct {
	writer     connector.Writer
	checker    connector.RowChecker
	schema     *batch.Schema
	hashed     []int // columns of the row hash
	schemaHash uint64
	notNull    []int // columns that may hold no NULL at some depth
	late       *lateFilter
	aside      connector.AsideWriter // writer, of a table whose late rows are written aside
	closes     map[connector.BucketID]*ledger.Close

	ids     []connector.BucketID
	touched []touched
	index   map[connector.BucketID]int
	home    []int32 // by source row: index into touched of its first bucket, -1
	parent  []int   // union-find over touched
	bad     []batch.ValueError
	cols    []*batch.Vec
}

// touched is a bucket that a batch has rows for.
type touched struct {
	id   connector.BucketID
	sels []batch.Sel // by part
}

func newSinkState(cfg *OutputConfig) *sinkState {
	s := &sinkState{schema: cfg.SinkTable.Schema(nil), index: map[connector.BucketID]int{}, closes: map[connector.BucketID]*ledger.Close{}}
	h := xxhash.New()
	for i, c := range cfg.SinkTable.Columns {
		if holdsNotNull(c.Type) {
			s.notNull = append(s.notNull, i)
		}
		if slices.Contains(cfg.SinkTable.PartitionKeys, i) {
			continue
		}
		s.hashed = append(s.hashed, i)
		fmt.Fprintf(h, "%s %s\n", c.Name, c.Type.WithNullable(true))
	}
	s.schemaHash = h.Sum64()
	return s
}

// holdsNotNull reports NOT NULL at any depth of a type.
func holdsNotNull(t types.Type) bool {
	if !t.Nullable {
		return true
	}
	if t.Elem != nil && holdsNotNull(*t.Elem) {
		return true
	}
	for _, f := range t.Fields {
		if holdsNotNull(f.Type) {
			return true
		}
	}
	return false
}

// processSink takes a batch into the output: classify, check, bury, write,
// count.
func (o *output) processSink(ctx context.Context, d *drive, in *input) error {
	for i := range in.batch.Runs {
		o.observe(in.batch.Runs[i].Partition, false)
	}
	o.failNotes(in)
	o.gather(d)
	o.passLate()
	for _, p := range o.parts {
		o.check(p)
	}
	o.settle(written)
	// Letters are made before the batch moves on and written without the token.
	if err := o.buryDead(ctx, d); err != nil {
		return err
	}
	o.mu.Lock()
	o.rows.begin(o.tracker)
	o.mu.Unlock()
	if err := o.write(ctx, d); err != nil {
		return err
	}
	o.mu.Lock()
	o.rows.finish(o.tracker, o.count, o.note)
	o.mu.Unlock()
	return nil
}

// check rejects the rows of a part that the table cannot hold.
func (o *output) check(p *operator.Rows) {
	s := o.sink
	for c := range p.Batch.Cols {
		v := &p.Batch.Cols[c]
		if !v.HasDeepErrs() {
			continue
		}
		each(p, func(i int32) {
			if e := v.DeepErr(int(i)); e != nil {
				x := *e
				if x.Where == "" {
					x.Where = s.schema.Fields[c].Name
				}
				o.reject(p.Source(i), &x, o.policyOf(e, false))
			}
		})
	}
	for _, c := range s.notNull {
		v, t := &p.Batch.Cols[c], s.schema.Fields[c].Type
		if !v.HasNulls() && !t.IsNested() {
			continue
		}
		name := s.schema.Fields[c].Name
		each(p, func(i int32) {
			if o.rows.fate[p.Source(i)] == live && nullInside(v, int(i), t) {
				e := batch.ValueError{Code: batch.CodeNullInNotNull, Where: name, Message: "NULL in a NOT NULL column"}
				o.reject(p.Source(i), &e, o.policyOf(&e, true))
			}
		})
	}
	if s.checker == nil {
		return
	}
	s.bad = s.checker.Check(o.asTable(p), o.liveOf(p), s.bad[:0])
	for i := range s.bad {
		e := &s.bad[i]
		o.reject(p.Source(e.Row), e, o.policyOf(e, false))
	}
}

// liveOf is the rows of a part that are still live.
func (o *output) liveOf(p *operator.Rows) batch.Sel {
	sel := batch.Sel{}
	each(p, func(i int32) {
		if o.rows.fate[p.Source(i)] == live {
			sel = append(sel, i)
		}
	})
	return sel
}

// asTable is a part's batch under the table's own schema: names and
// nullability are the table's.
func (o *output) asTable(p *operator.Rows) *batch.Batch {
	b := *p.Batch
	b.Schema = o.sink.schema
	return &b
}

// nullInside reports a NULL where a type forbids it, at any depth.
func nullInside(v *batch.Vec, i int, t types.Type) bool {
	if v.Enc == batch.Dict {
		if v.Valid != nil && !v.Valid.Get(i) {
			return !t.Nullable
		}
		return nullInside(v.Dict, int(v.Codes[i]), t)
	}
	if v.IsNull(i) {
		return !t.Nullable
	}
	i = v.Index(i)
	switch t.Kind {
	case types.Row:
		for f := range t.Fields {
			if holdsNotNull(t.Fields[f].Type) && nullInside(v.Children[f], i, t.Fields[f].Type) {
				return true
			}
		}
	case types.Array, types.Map:
		if !holdsNotNull(*t.Elem) {
			return false
		}
		child := v.Children[len(v.Children)-1]
		for j := int(v.Offsets[i]); j < int(v.Offsets[i+1]); j++ {
			if nullInside(child, j, *t.Elem) {
				return true
			}
		}
	}
	return false
}
