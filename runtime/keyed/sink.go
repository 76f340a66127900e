package keyed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/runtime/watermark"
)

// sinkPart is one task's way into a table: a writer whose buckets are sealed at
// each barrier, or when it is full.
type sinkPart struct {
	t       *task
	op      *graph.Sink
	handle  engine.SinkHandle
	schema  *batch.Schema
	id      connector.ArtifactID // without manifest and sequence
	writer  connector.Writer
	checker connector.RowChecker

	hashed     []int
	schemaHash uint64
	time       int // row time column, -1

	open   map[connector.BucketID]*openBucket
	sealed []connector.Artifact // since the last barrier
	seq    uint64
	counts emitted // since the last barrier

	ids  []connector.BucketID
	sels map[connector.BucketID]batch.Sel
	good batch.Sel
	bad  []batch.ValueError
	// suspects are the columns that may hold what the table cannot.
	suspects []int
	cols     []*batch.Vec
	// upsert: the table takes changes by its key. lost are the rows of the batch at
	// hand that died, kinds its kinds where some had to change.
	upsert bool
	lost   batch.Sel
	kinds  []batch.Kind
}

type openBucket struct {
	rows     int64
	hash     uint64
	min, max int64
	timed    bool
}

// emitted are results of a table.
type emitted struct {
	rows int64
	dead ledger.Tallies
}

func newSinkPart(t *task, n *graph.Node, h engine.SinkHandle, id connector.ArtifactID) *sinkPart {
	op := n.Op.(*graph.Sink)
	s := &sinkPart{t: t, op: op, handle: h, schema: op.Table.Schema(nil), id: id, time: n.TimeColumn,
		open: map[connector.BucketID]*openBucket{}, sels: map[connector.BucketID]batch.Sel{}}
	s.upsert = op.Connector != nil && op.Connector.Spec().Changelog == connector.Upsert
	x := xxhash.New()
	for i, c := range op.Table.Columns {
		if slices.Contains(op.Table.PartitionKeys, i) {
			continue
		}
		s.hashed = append(s.hashed, i)
		fmt.Fprintf(x, "%s %s\n", c.Name, c.Type.WithNullable(true))
	}
	s.schemaHash = x.Sum64()
	return s
}

func (s *sinkPart) start(ctx context.Context, memory int64) error {
	w, err := s.handle.Sink.OpenWriter(ctx, connector.Attempt{ID: s.id, MemoryBytes: memory,
		Replace: s.t.r.tables[s.handle.Table.ID].replacer != nil})
	if err != nil {
		return fmt.Errorf("table %s: opening a writer: %w", s.handle.Table.Name, err)
	}
	s.writer = w
	s.checker, _ = w.(connector.RowChecker)
	return nil
}

// write takes result rows; failed ones among them are of root.
func (s *sinkPart) write(ctx context.Context, r *operator.Rows, root *batch.Batch) error {
	s.lost = s.lost[:0]
	for i := range r.Failed {
		if operator.TakesBack(root, r.Failed[i].Row) {
			continue // it never came here
		}
		if err := s.reject(root, &r.Failed[i], s.op.OnError); err != nil {
			return err
		}
	}
	b := *r.Batch
	b.Schema = s.schema
	if err := s.check(&b, r.Sel); err != nil {
		return err
	}
	if len(s.good) == 0 {
		return nil
	}
	s.complete(&b)
	ids, err := s.writer.Buckets(&b, s.good, s.ids[:0])
	if err != nil {
		return fmt.Errorf("table %s: finding buckets: %w", s.handle.Table.Name, err)
	}
	s.ids = ids
	for id := range s.sels {
		s.sels[id] = s.sels[id][:0]
	}
	for i, id := range ids {
		s.sels[id] = append(s.sels[id], s.good[i])
	}
	for id, sel := range s.sels {
		if len(sel) == 0 {
			continue
		}
		if err := s.put(ctx, &b, sel, id); err != nil {
			return fmt.Errorf("table %s: %w", s.handle.Table.Name, err)
		}
	}
	return s.roll(ctx)
}

// put writes rows into one bucket, sealing others when the writer is full.
func (s *sinkPart) put(ctx context.Context, b *batch.Batch, sel batch.Sel, id connector.BucketID) error {
	for {
		err := s.writer.Write(b, sel, id)
		if err == nil {
			break
		}
		if !errors.Is(err, connector.ErrFull) {
			return fmt.Errorf("writing rows: %w", err)
		}
		if len(s.open) > 0 {
			if err := s.seal(ctx, nil); err != nil {
				return err
			}
			continue
		}
		if len(sel) == 1 {
			return fmt.Errorf("a row does not fit an empty writer: %w", err)
		}
		// Not even an empty writer takes them at once.
		if err := s.put(ctx, b, sel[:len(sel)/2], id); err != nil {
			return err
		}
		sel = sel[len(sel)/2:]
	}
	o := s.open[id]
	if o == nil {
		o = &openBucket{}
		s.open[id] = o
	}
	s.cols = s.cols[:0]
	for _, c := range s.hashed {
		s.cols = append(s.cols, &b.Cols[c])
	}
	o.rows += int64(len(sel))
	o.hash += batch.RowHash(s.cols, b.Len, sel)
	s.counts.rows += int64(len(sel))
	if s.time >= 0 && s.time < len(b.Cols) && b.Cols[s.time].Type.IsTimestamp() {
		o.times(&b.Cols[s.time], sel)
	}
	return nil
}

func (o *openBucket) times(v *batch.Vec, sel batch.Sel) {
	units := v.Type.UnitsPerSecond()
	for _, row := range sel {
		if v.IsNull(int(row)) {
			continue
		}
		x, i := v, int(row)
		for x.Enc == batch.Dict {
			x, i = x.Dict, int(x.Codes[i])
		}
		ms := watermark.Millis(x.Int64(i), units)
		if !o.timed {
			o.min, o.max, o.timed = ms, ms, true
		}
		o.min, o.max = min(o.min, ms), max(o.max, ms)
	}
}

// check puts the rows that the table can hold into s.good.
func (s *sinkPart) check(b *batch.Batch, sel batch.Sel) error {
	s.good = s.good[:0]
	if s.good == nil {
		s.good = batch.Sel{}
	}
	s.suspects = s.suspects[:0]
	for i := range b.Cols {
		v, t := &b.Cols[i], s.schema.Fields[i].Type
		if v.HasDeepErrs() || holdsNotNull(t) && (v.HasNulls() || t.IsNested()) {
			s.suspects = append(s.suspects, i)
		}
	}
	n := b.Len
	if sel != nil {
		n = len(sel)
	}
	for k := range n {
		row := int32(k)
		if sel != nil {
			row = sel[k]
		}
		if len(s.suspects) == 0 {
			s.good = append(s.good, row)
			continue
		}
		e, policy := s.fault(b, int(row))
		if e == nil {
			s.good = append(s.good, row)
			continue
		}
		if operator.TakesBack(b, row) {
			continue // as a new row it died, and is not there to be taken back
		}
		x := *e
		x.Row = row
		if err := s.reject(b, &x, policy); err != nil {
			return err
		}
	}
	if s.checker == nil || len(s.good) == 0 {
		return nil
	}
	s.bad = s.checker.Check(b, s.good, s.bad[:0])
	for i := range s.bad {
		if operator.TakesBack(b, s.bad[i].Row) {
			continue
		}
		if err := s.reject(b, &s.bad[i], s.op.OnError); err != nil {
			return err
		}
	}
	s.good = slices.DeleteFunc(s.good, func(row int32) bool {
		return slices.ContainsFunc(s.bad, func(e batch.ValueError) bool { return e.Row == row })
	})
	return nil
}

// fault is why the table cannot hold a row, nil: it can.
func (s *sinkPart) fault(b *batch.Batch, row int) (*batch.ValueError, graph.ErrorPolicy) {
	for _, i := range s.suspects {
		v := &b.Cols[i]
		if v.HasDeepErrs() {
			if e := v.DeepErr(row); e != nil {
				x := *e
				if x.Where == "" {
					x.Where = s.schema.Fields[i].Name
				}
				return &x, s.op.OnError
			}
		}
		if t := s.schema.Fields[i].Type; holdsNotNull(t) && nullInside(v, row, t) {
			return &batch.ValueError{Code: batch.CodeNullInNotNull, Where: s.schema.Fields[i].Name,
				Message: "NULL in a NOT NULL column"}, s.op.NotNull
		}
	}
	return nil, 0
}

// reject gives a row that cannot be written to the policy.
func (s *sinkPart) reject(b *batch.Batch, e *batch.ValueError, policy graph.ErrorPolicy) error {
	s.lost = append(s.lost, e.Row)
	if policy == graph.Fail {
		return &FailError{Table: s.handle.Table.Name, Stage: s.t.st.name, Reason: e.Code, Column: e.Where, Message: e.Message,
			Row: appendRow(nil, b, int(e.Row))}
	}
	s.counts.dead.Add(ledger.Reason{Code: string(e.Code), Column: e.Where}, 1)
	if policy == graph.Drop {
		return nil
	}
	return s.t.bury(s.handle.Table, b, e)
}

// roll seals the buckets that are large enough.
func (s *sinkPart) roll(ctx context.Context) error {
	limit := s.handle.Sink.Roll().Bytes
	if limit <= 0 {
		return nil
	}
	var due []connector.BucketID
	for _, b := range s.writer.Open() {
		if b.Bytes >= limit {
			due = append(due, b.ID)
		}
	}
	if len(due) == 0 {
		return nil
	}
	return s.seal(ctx, due)
}

// seal finishes buckets (nil: all), under the number of the next manifest.
// Invariant 2: that manifest will list them.
func (s *sinkPart) seal(ctx context.Context, only []connector.BucketID) error {
	var req []connector.SealRequest
	buckets := s.writer.Open()
	slices.SortFunc(buckets, func(x, y connector.Bucket) int { return cmp.Compare(x.ID, y.ID) })
	for _, b := range buckets {
		o := s.open[b.ID]
		if o == nil || only != nil && !slices.Contains(only, b.ID) {
			continue
		}
		id := s.id
		id.Manifest, id.Sequence = s.t.next, s.seq
		s.seq++
		req = append(req, connector.SealRequest{Bucket: b.ID, Header: connector.Header{ID: id, TablePartition: b.TablePartition,
			Rows: o.rows, RowHash: o.hash, SchemaHash: s.schemaHash, MinEventTime: o.min, MaxEventTime: o.max}})
	}
	if len(req) == 0 {
		return nil
	}
	done, err := s.writer.Seal(ctx, req)
	if err != nil {
		return fmt.Errorf("table %s: sealing: %w", s.handle.Table.Name, err)
	}
	if len(done) != len(req) {
		return fmt.Errorf("BUG: table %s: %d artefacts for %d buckets", s.handle.Table.Name, len(done), len(req))
	}
	for i := range req {
		delete(s.open, req[i].Bucket)
	}
	s.sealed = append(s.sealed, done...)
	return nil
}

// cut seals everything at a barrier and gives what was sealed and counted since
// the last one.
func (s *sinkPart) cut(ctx context.Context) ([]connector.Artifact, emitted, error) {
	if err := s.seal(ctx, nil); err != nil {
		return nil, emitted{}, err
	}
	sealed, counts := s.sealed, s.counts
	s.sealed, s.counts, s.seq = nil, emitted{}, 0
	clear(s.sels)
	return sealed, counts, nil
}

func (s *sinkPart) close() {
	if s.writer != nil {
		// What it holds is in no manifest; the next epoch's fence drops it.
		_ = s.writer.Close()
	}
}

// holdsNotNull reports NOT NULL at any depth of a type.
func holdsNotNull(t types.Type) bool {
	return !t.Nullable || t.Elem != nil && holdsNotNull(*t.Elem) ||
		slices.ContainsFunc(t.Fields, func(f types.Field) bool { return holdsNotNull(f.Type) })
}

// nullInside reports a NULL where a type forbids it, at any depth.
func nullInside(v *batch.Vec, i int, t types.Type) bool {
	if v.IsNull(i) {
		return !t.Nullable
	}
	for v.Enc == batch.Dict {
		v, i = v.Dict, int(v.Codes[i])
	}
	i = v.Index(i)
	switch t.Kind {
	case types.Row:
		for f := range t.Fields {
			if ft := t.Fields[f].Type; holdsNotNull(ft) && nullInside(v.Children[f], i, ft) {
				return true
			}
		}
	case types.Array, types.Map:
		if !holdsNotNull(*t.Elem) {
			return false
		}
		child := v.Children[len(v.Children)-1]
		for k, to := v.Range(i); k < to; k++ {
			if nullInside(child, k, *t.Elem) {
				return true
			}
		}
	}
	return false
}
