package lane

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/operator"
)

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
	clear(s.closes)
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
		if s.aside != nil {
			o.divert(p, sel)
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
	odd     ledger.Odds
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
			if home < 0 {
				home = o.sink.home[x] // it is written aside
			}
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
		p.odd.Add(&odd)
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
			became := ledger.FateWritten
			if o.rows.fate[src] == late {
				became = ledger.FateLate
			}
			mins.add(ms, ok, became)
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
