package lane

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/watermark"
)

// input is a source batch as all outputs of a drive see it.
type input struct {
	batch *batch.Batch
	parts []connector.Partition
	raw   func(part int32, offset int64) (connector.RawRecord, bool)
	// end is, by partition, the position behind the batch; only partitions
	// with a run in it.
	end []Position
	// time is the row time column of the source, -1: none.
	time  int
	units int64
	// now is the wall clock in ms.
	now int64
}

// event is the row time of a source row in milliseconds.
func (in *input) event(row int32) (ms int64, ok bool) {
	if in.time < 0 {
		return 0, false
	}
	v := &in.batch.Cols[in.time]
	if v.IsNull(int(row)) {
		return 0, false
	}
	return watermark.Millis(v.Int64(int(row)), in.units), true
}

// fate is what became of a source row for one output.
type fate uint8

const (
	// live: to be evaluated.
	live fate = iota
	// passed: not for this output: below its position, in a committed artefact
	// (counted from there), or at or behind a record that fails the lane.
	passed
	// again: its dead letter is durable; counted, not written a second time.
	again
	written
	folded
	filtered
	dead
	late
)

// rows is one output's view of a source batch.
type rows struct {
	in    *input
	fate  []fate
	why   []uint16 // index into reasons, for again, filtered, dead and late rows
	tells []rowReason
	live  int
	// limit is, by run, the offset from which the lane fails, or maxOffset.
	limit []int64
	fail  *FailError
}

// rowReason is a reason with its message; index 0 is no reason.
type rowReason struct {
	code    batch.Code
	column  string
	message string
	letter  bool // gets a dead letter
}

const maxOffset = int64(1<<63 - 1)

// reset classifies the rows of a batch: what the output has to take.
// Invariant 2: the skip set is tested before anything is evaluated.
func (r *rows) reset(in *input, t *Tracker) {
	b := in.batch
	r.in, r.fail = in, nil
	r.fate = resizeTo(r.fate, b.Len)
	r.why = resizeTo(r.why, b.Len)
	clear(r.fate)
	clear(r.why)
	r.tells = append(r.tells[:0], rowReason{})
	r.limit = r.limit[:0]
	r.live = b.Len
	for i := range b.Runs {
		run := &b.Runs[i]
		r.limit = append(r.limit, maxOffset)
		next := t.Next(run.Partition).Offset
		skip := t.Committed(run.Partition)
		skipFrom, skips := skip.First()
		some := run.BaseOffset < next || skips && skipFrom < run.EndOffset ||
			t.HasDead(run.Partition, run.BaseOffset, run.EndOffset)
		if some {
			r.skip(run, t, next)
		}
	}
}

func (r *rows) skip(run *batch.Run, t *Tracker, next int64) {
	b, skip := r.in.batch, t.Committed(run.Partition)
	for i := int(run.FirstRow); i < int(run.FirstRow+run.Rows); i++ {
		o := b.Offset(run, i)
		if o < next || skip.Contains(o) {
			r.fate[i] = passed
			r.live--
			continue
		}
		d := t.Dead(run.Partition, o)
		if d == nil {
			continue
		}
		for k := range d.Rows {
			if x := &d.Rows[k]; d.Whole || x.Index == b.Index(i) {
				r.fate[i] = again
				r.why[i] = r.reason(rowReason{code: x.Reason, column: x.Column})
				r.live--
				break
			}
		}
	}
}

// reason interns a reason of the batch. Letters are not shared: each has its
// own message.
func (r *rows) reason(x rowReason) uint16 {
	if !x.letter {
		for i := 1; i < len(r.tells); i++ {
			if t := &r.tells[i]; !t.letter && t.code == x.code && t.column == x.column {
				return uint16(i)
			}
		}
	}
	if len(r.tells) == 1<<16-1 {
		// More different reasons than a batch can hold: the last one stands
		// for all others of its code.
		return uint16(len(r.tells) - 1)
	}
	r.tells = append(r.tells, x)
	return uint16(len(r.tells) - 1)
}

// set gives a live row its fate.
func (r *rows) set(row int32, f fate, why rowReason) {
	if r.fate[row] != live {
		return
	}
	r.fate[row] = f
	r.why[row] = r.reason(why)
	r.live--
}

// sel is the live rows; nil: all.
func (r *rows) sel(buf batch.Sel) batch.Sel {
	if r.live == len(r.fate) {
		return nil
	}
	if buf == nil {
		buf = batch.Sel{}
	}
	for i, f := range r.fate {
		if f == live {
			buf = append(buf, int32(i))
		}
	}
	return buf
}

// runOf finds the run of a row, starting the search at run k.
func (r *rows) runOf(row int32, k int) int {
	runs := r.in.batch.Runs
	for k < len(runs)-1 && row >= runs[k].FirstRow+runs[k].Rows {
		k++
	}
	return k
}

// failAt makes the lane fail at a record: it and what follows in its partition
// is not taken.
func (r *rows) failAt(run int, offset int64, table string, e batch.ValueError) {
	if offset >= r.limit[run] {
		return
	}
	r.limit[run] = offset
	p := r.in.parts[r.in.batch.Runs[run].Partition]
	if r.fail == nil || r.fail.Partition == p.ID || p.ID < r.fail.Partition {
		r.fail = &FailError{Table: table, Topic: p.Topic, Partition: p.ID, Offset: offset,
			Reason: e.Code, Column: e.Where, Message: e.Message}
	}
}

// cut passes over everything at or behind the failing records.
func (r *rows) cut() {
	if r.fail == nil {
		return
	}
	b := r.in.batch
	for k := range b.Runs {
		run := &b.Runs[k]
		// A later run of the same partition lies behind the record, too.
		for j := range k {
			if b.Runs[j].Partition == run.Partition && r.limit[j] < maxOffset {
				r.limit[k] = min(r.limit[k], run.BaseOffset)
			}
		}
		if r.limit[k] == maxOffset {
			continue
		}
		for i := int(run.FirstRow); i < int(run.FirstRow+run.Rows); i++ {
			if b.Offset(run, i) >= r.limit[k] {
				if r.fate[i] == live {
					r.live--
				}
				r.fate[i] = passed
			}
		}
	}
}

// end is the offset up to which a run is taken.
func (r *rows) end(run int) int64 { return min(r.in.batch.Runs[run].EndOffset, r.limit[run]) }

func resizeTo[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
