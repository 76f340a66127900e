package lane

import (
	"context"
	"errors"
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
	s := &sinkState{schema: cfg.SinkTable.Schema(nil), index: map[connector.BucketID]int{}}
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

// write puts the rows into the writer's buckets: bucket by bucket, those that
// share a record together.
func (o *output) write(ctx context.Context, d *drive) error {
	s := o.sink
	if err := o.spread(); err != nil {
		return err
	}
	if len(s.touched) == 0 {
		return nil
	}
	info := o.units()
	for root := range s.touched {
		if o.root(root) != root {
			continue
		}
		var members []int
		for k := root; k < len(s.touched); k++ {
			if o.root(k) == root {
				members = append(members, k)
			}
		}
		if err := o.headroom(ctx, d, members); err != nil {
			return err
		}
		if err := o.writeUnit(ctx, d, members); err != nil {
			return err
		}
		o.mu.Lock()
		o.place(members, info[root])
		o.mu.Unlock()
	}
	return o.limitFiles(ctx, d)
}

// spread asks the writer for each row's bucket and links buckets that share a
// record.
func (o *output) spread() error {
	s := o.sink
	for i := range s.touched {
		s.touched[i].id = 0
	}
	s.touched = s.touched[:0]
	clear(s.index)
	s.parent = s.parent[:0]
	s.home = resizeTo(s.home, len(o.rows.fate))
	for i := range s.home {
		s.home[i] = -1
	}
	for k, p := range o.parts {
		sel := o.sels[k]
		if len(sel) == 0 {
			continue
		}
		var err error
		s.ids, err = s.writer.Buckets(o.asTable(p), sel, s.ids[:0])
		if err != nil {
			return fmt.Errorf("finding the partitions of rows: %w", err)
		}
		if len(s.ids) != len(sel) {
			return fmt.Errorf("BUG: the writer gave %d buckets for %d rows", len(s.ids), len(sel))
		}
		last := -1
		for n, row := range sel {
			id := s.ids[n]
			if last < 0 || s.touched[last].id != id {
				last = o.touch(id)
			}
			t := &s.touched[last]
			t.sels[k] = append(t.sels[k], row)
			switch src := p.Source(row); {
			case s.home[src] < 0:
				s.home[src] = int32(last)
			case int(s.home[src]) != last:
				o.join(int(s.home[src]), last)
			}
		}
	}
	if o.rows.in.batch.RowIndex != nil {
		o.joinRecords()
	}
	return nil
}

func (o *output) touch(id connector.BucketID) int {
	s := o.sink
	if k, ok := s.index[id]; ok {
		return k
	}
	k := len(s.touched)
	if k < cap(s.touched) {
		s.touched = s.touched[:k+1]
	} else {
		s.touched = append(s.touched, touched{})
	}
	t := &s.touched[k]
	t.id = id
	for len(t.sels) < len(o.parts) {
		t.sels = append(t.sels, nil)
	}
	for i := range t.sels {
		t.sels[i] = t.sels[i][:0]
		if t.sels[i] == nil {
			t.sels[i] = batch.Sel{}
		}
	}
	s.index[id] = k
	s.parent = append(s.parent, k)
	return k
}

func (o *output) root(k int) int {
	p := o.sink.parent
	for p[k] != k {
		p[k] = p[p[k]]
		k = p[k]
	}
	return k
}

// join puts two buckets into one unit; the lower index is its root.
func (o *output) join(a, b int) {
	a, b = o.root(a), o.root(b)
	if a > b {
		a, b = b, a
	}
	o.sink.parent[b] = a
}

// joinRecords links the buckets of rows of one record.
func (o *output) joinRecords() {
	b, home := o.rows.in.batch, o.sink.home
	for r := range b.Runs {
		run := &b.Runs[r]
		offset, first := int64(-1), int32(-1)
		for i := run.FirstRow; i < run.FirstRow+run.Rows; i++ {
			if at := b.Offset(run, int(i)); at != offset {
				offset, first = at, -1
			}
			switch {
			case home[i] < 0:
			case first < 0:
				first = home[i]
			case first != home[i]:
				o.join(int(first), int(home[i]))
			}
		}
	}
}

// unit is what the records of linked buckets amount to.
type unit struct {
	parts []unitPart
}

type unitPart struct {
	part    int32
	written int64
	odd     []ledger.Odd
}

// units sums up records by unit; the index is the unit's root.
func (o *output) units() []unit {
	b, r := o.rows.in.batch, &o.rows
	out := make([]unit, len(o.sink.touched))
	for k := range b.Runs {
		run := &b.Runs[k]
		end := r.end(k)
		for i := run.FirstRow; i < run.FirstRow+run.Rows; {
			at := b.Offset(run, int(i))
			if at >= end {
				break
			}
			j := i + 1
			for b.RowIndex != nil && j < run.FirstRow+run.Rows && b.Offset(run, int(j)) == at {
				j++
			}
			o.addRecord(out, run.Partition, at, i, j)
			i = j
		}
	}
	return out
}

// addRecord adds the record at an offset, source rows [i, j), to its unit.
func (o *output) addRecord(out []unit, part int32, at int64, i, j int32) {
	r := &o.rows
	var odd ledger.Odd
	home := int32(-1)
	for x := i; x < j; x++ {
		reason := ledger.Reason{Code: string(r.tells[r.why[x]].code), Column: r.tells[r.why[x]].column}
		switch r.fate[x] {
		case written:
			odd.Written++
			odd.Expanded += int64(o.count[x])
			if home < 0 {
				home = o.sink.home[x]
			}
		case filtered:
			odd.Filtered.Add(reason, 1)
		case dead, again:
			if isLate(r.tells[r.why[x]].code) {
				odd.Late++
			} else {
				odd.Dead.Add(reason, 1)
			}
		case late:
			odd.Late++
		}
	}
	if home < 0 {
		return // nothing of it was written: no intent needs to name it
	}
	u := &out[o.root(int(home))]
	if n := len(u.parts); n == 0 || u.parts[n-1].part != part {
		u.parts = append(u.parts, unitPart{part: part})
	}
	p := &u.parts[len(u.parts)-1]
	p.written += odd.Written
	if j-i > 1 || odd.Written != 1 || odd.Expanded != 1 {
		odd.Offset = at
		p.odd = append(p.odd, odd)
	}
}

// writeUnit gives the rows of linked buckets to the writer, all of them, making
// room by sealing groups that are none of the unit's.
func (o *output) writeUnit(ctx context.Context, d *drive, members []int) error {
	s := o.sink
	started := false
	for _, m := range members {
		t := &s.touched[m]
		for k, sel := range t.sels {
			if len(sel) == 0 {
				continue
			}
			for {
				err := s.writer.Write(o.asTable(o.parts[k]), sel, t.id)
				if err == nil {
					started = true
					break
				}
				if !errors.Is(err, connector.ErrFull) {
					return fmt.Errorf("writing rows: %w", err)
				}
				o.lane.fullAt.Store(s.writer.HeldBytes())
				if err := o.makeRoom(ctx, d, members, started); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// headroom seals everything before a unit of several writes when the writer has
// been full at less than twice what it holds: a unit that has begun cannot make
// room by sealing its own groups.
func (o *output) headroom(ctx context.Context, d *drive, members []int) error {
	writes := 0
	for _, m := range members {
		for _, sel := range o.sink.touched[m].sels {
			if len(sel) > 0 {
				writes++
			}
		}
	}
	full := o.lane.fullAt.Load()
	if writes < 2 || full == 0 || 2*o.sink.writer.HeldBytes() <= full {
		return nil
	}
	return o.commit(ctx, d, o.tracker.Due(DueInput{All: true}))
}

// makeRoom seals the group that began first. Once rows of the unit are in the
// writer its own groups are not to be sealed: they hold rows of this batch that
// are not placed yet.
func (o *output) makeRoom(ctx context.Context, d *drive, members []int, started bool) error {
	own := func(g *group) bool {
		for _, m := range members {
			if b := o.tracker.buckets[o.sink.touched[m].id]; b != nil && b.group == g {
				return true
			}
		}
		return false
	}
	if !started {
		own = nil
	}
	g := o.tracker.Oldest(own)
	if g == nil {
		return errTooBig
	}
	return o.commit(ctx, d, []*group{g})
}

// place tells the tracker what the writer has taken.
func (o *output) place(members []int, u unit) {
	s, t := o.sink, o.tracker
	now := o.lane.millis()
	for _, m := range members {
		id := s.touched[m].id
		if t.buckets[id] == nil {
			t.Open(id, o.tablePartition(id), now)
			if o.replaying() {
				t.Carry(id, now-o.carryAge.Milliseconds())
			}
		}
		if m != members[0] {
			t.Link(s.touched[members[0]].id, id)
		}
	}
	for _, m := range members {
		tb := &s.touched[m]
		for k, sel := range tb.sels {
			if len(sel) > 0 {
				o.put(tb.id, o.parts[k], sel)
			}
		}
	}
	for _, p := range u.parts {
		t.PutRecords(s.touched[members[0]].id, p.part, p.written, p.odd)
	}
	if o.openedFirst.IsZero() {
		o.openedFirst = o.lane.now()
	}
}

// put adds the offsets, hashes and times of rows to their bucket.
func (o *output) put(id connector.BucketID, p *operator.Rows, sel batch.Sel) {
	s, t, in := o.sink, o.tracker, o.rows.in
	b := in.batch
	s.cols = s.cols[:0]
	for _, c := range s.hashed {
		s.cols = append(s.cols, &p.Batch.Cols[c])
	}
	lo, hi := noEvent()
	k := 0
	first, end, n := int64(0), int64(-1), int64(0)
	mins := &minuteRun{m: t.GroupMinutes(id)}
	flush := func() {
		if n > 0 {
			t.Put(id, b.Runs[k].Partition, first, end, n)
		}
		n = 0
	}
	lastSrc := int32(-1)
	for _, row := range sel {
		src := p.Source(row)
		if at := o.rows.runOf(src, k); at != k {
			flush()
			mins.flush()
			k = at
		}
		off := b.Offset(&b.Runs[k], int(src))
		switch {
		case n > 0 && off == end:
			end++
		case n > 0 && off == end-1:
		default:
			flush()
			first, end = off, off+1
		}
		n++
		ms, ok := in.event(src)
		if ok {
			lo, hi = min(lo, ms), max(hi, ms)
		}
		if src != lastSrc && int(s.home[src]) == s.index[id] {
			mins.log = b.Runs[k].LogTime
			mins.add(ms, ok, ledger.FateWritten)
			lastSrc = src
		}
	}
	flush()
	mins.flush()
	t.PutHash(id, batch.RowHash(s.cols, p.Batch.Len, sel), lo, hi)
}

// tablePartition is the table partition of an open bucket.
func (o *output) tablePartition(id connector.BucketID) string {
	for _, b := range o.sink.writer.Open() {
		if b.ID == id {
			return b.TablePartition
		}
	}
	return ""
}

// limitFiles keeps the slot's open files within their budget.
func (o *output) limitFiles(ctx context.Context, d *drive) error {
	for d.setOpenFiles() {
		g := o.tracker.Oldest(nil)
		if g == nil {
			return nil
		}
		if err := o.commit(ctx, d, []*group{g}); err != nil {
			return err
		}
	}
	return nil
}
