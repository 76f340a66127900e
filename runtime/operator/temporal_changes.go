package operator

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
)

// live notes a left row by its hash, so that it can be taken back.
func (j *TemporalJoin) live(row int32) {
	h := j.hashOf(&j.side[0].rows, row)
	j.lives[h] = append(j.lives[h], row)
}

// hashOf is of a whole row.
func (j *TemporalJoin) hashOf(b *batch.Batch, row int32) (hash uint64) {
	j.all = colsAt(b, columnsOf(j.plan.in[0]), j.all)
	hash, j.plan.buf = batch.HashKey(j.plan.buf, j.all, int(row))
	return hash
}

// foldChanges takes left rows of which some take earlier ones back. What was not given
// yet is only forgotten.
func (j *TemporalJoin) foldChanges(ctx *expr.Context, in *KeyedRows, out *Results) error {
	var gone []int32
	for from := 0; from < len(in.Sel); {
		to := from + 1
		back := TakesBack(in.Batch, in.Sel[from])
		for to < len(in.Sel) && TakesBack(in.Batch, in.Sel[to]) == back {
			to++
		}
		if !back {
			j.add(0, in.Batch, in.Sel[from:to], out.Dead)
		} else {
			for _, row := range in.Sel[from:to] {
				if at := j.take(in.Batch, row); at >= 0 {
					gone = append(gone, at)
				}
			}
		}
		from = to
	}
	given := slices.DeleteFunc(gone, func(row int32) bool { return !j.side[0].matched[row] })
	return j.show(ctx, given, j.versionsOf(given), batch.Delete, out)
}

// foldVersions takes versions. Left rows that were given without one that comes late
// are taken back, and given with it.
func (j *TemporalJoin) foldVersions(ctx *expr.Context, in *KeyedRows, out *Results) error {
	rows := j.givenSince(in)
	was := j.versionsOf(rows)
	j.add(1, in.Batch, in.Sel, out.Dead)
	is := j.versionsOf(rows)
	n := 0
	for i, row := range rows {
		if was[i] != is[i] {
			rows[n], was[n], is[n] = row, was[i], is[i]
			n++
		}
	}
	if err := j.show(ctx, rows[:n], was[:n], batch.Delete, out); err != nil {
		return err
	}
	return j.show(ctx, rows[:n], is[:n], batch.Insert, out)
}

// givenSince are the left rows that were given, of the keys of versions and not before
// the first of these. As a rule versions are not late, and there are none.
func (j *TemporalJoin) givenSince(in *KeyedRows) []int32 {
	p, left := j.plan, &j.side[0]
	times := p.take(1, in.Batch, in.Sel, func(*batch.Batch, *batch.ValueError) {})
	since := map[int32]int64{}
	for _, row := range p.good {
		time := wallOf(times, int(row))
		if time > j.given {
			continue
		}
		if slot := j.keys.Slot(p.cols, p.hashes[row], int(row)); slot >= 0 {
			if first, late := since[slot]; !late || time < first {
				since[slot] = time
			}
		}
	}
	if len(since) == 0 {
		return nil
	}
	var out []int32
	for row, slot := range left.slot {
		if first, late := since[slot]; late && left.time[row] >= first && left.matched[row] && !left.gone[row] {
			out = append(out, int32(row))
		}
	}
	return out
}

// versionsOf are the versions of left rows.
func (j *TemporalJoin) versionsOf(rows []int32) []int32 {
	out := make([]int32, len(rows))
	for i, row := range rows {
		out[i] = j.versionOf(row)
	}
	return out
}

// take lets a left row go that is equal to one of a batch, -1: there is none. It stays
// readable.
func (j *TemporalJoin) take(b *batch.Batch, row int32) int32 {
	left, h := &j.side[0], j.hashOf(b, row)
	for i, at := range j.lives[h] {
		if left.gone[at] || !equalRows(&left.rows, at, b, row) {
			continue
		}
		if j.lives[h] = slices.Delete(j.lives[h], i, i+1); len(j.lives[h]) == 0 {
			delete(j.lives, h)
		}
		left.forget(at)
		return at
	}
	return -1
}

// giveChanges gives the left rows, which stay, to whose time the watermark has come.
func (j *TemporalJoin) giveChanges(ctx *expr.Context, time int64, out *Results) error {
	left, right := &j.side[0], &j.side[1]
	j.due = j.due[:0]
	for len(left.ends) > 0 && left.ends[0].end <= time {
		row := left.ends.pop().key
		if left.gone[row] || left.matched[row] {
			continue
		}
		left.matched[row] = true // it is given
		j.given = max(j.given, left.time[row])
		j.due = append(j.due, row)
	}
	if err := j.show(ctx, j.due, j.versionsOf(j.due), batch.Insert, out); err != nil {
		return err
	}
	for len(right.ends) > 0 && right.ends[0].end <= time {
		right.ends.pop() // every version stays
	}
	return nil
}

// show gives left rows with versions, -1: there is none, or takes them back.
func (j *TemporalJoin) show(ctx *expr.Context, rows, versions []int32, kind batch.Kind, out *Results) error {
	if len(rows) == 0 {
		return nil
	}
	m := &matching{joinTable: &joinTable{joinPlan: j.plan}, ctx: ctx, res: out}
	m.side = [2]rowStore{j.side[0].rowStore, j.side[1].rowStore}
	kinds := slices.Repeat([]batch.Kind{kind}, min(len(rows), emitRows))
	alone := batch.Sel{}
	flush := func() error {
		if len(m.li) == 0 {
			return nil
		}
		m.truths()
		m.pass = m.pass[:0]
		for k := range m.li {
			switch m.truthOf(k) {
			case truthTrue:
				m.pass = append(m.pass, int32(k))
			case truthError:
				// The pair is dead, not without a match: nothing is padded for it.
				if kind == batch.Insert {
					e := *m.cond.out[0].Err(k)
					e.Row = int32(k)
					m.res.Dead(&m.pairs, &e)
				}
			default:
				alone = append(alone, m.li[k])
			}
		}
		m.li, m.ri = m.li[:0], m.ri[:0]
		return m.emitKinds(kinds)
	}
	for i, row := range rows {
		v := versions[i]
		if v < 0 {
			alone = append(alone, row)
			continue
		}
		if m.li, m.ri = append(m.li, row), append(m.ri, v); len(m.li) == emitRows {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil || j.plan.op.Kind != graph.LeftJoin {
		return err
	}
	width := len(j.plan.in[0].Fields)
	return m.emitChunks(alone, func(sel batch.Sel, b *batch.Batch) {
		m.pad(b, 0, width, 0, sel)
		m.pad(b, width, len(b.Cols), -1, sel)
		if kind != batch.Insert {
			b.Kinds = kinds[:len(sel)]
		}
	})
}
