package lane

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/ledger"
)

// noteAction is what a record without rows means for an output.
type noteAction struct {
	fate   fate // filtered, dead, again, or passed: no row at all
	reason ledger.Reason
}

// noteFunc says what a record without rows of a partition means.
type noteFunc func(part int32, n *batch.Note) noteAction

// begin starts the stretches of the partitions that have something for the
// output; finish ends them.
func (r *rows) begin(t *Tracker) {
	for k := range r.in.batch.Runs {
		if part := r.in.batch.Runs[k].Partition; r.end(k) > t.Next(part).Offset {
			t.Begin(part)
		}
	}
}

// finish counts the batch and moves the output behind it, or to where a record
// fails the lane.
func (r *rows) finish(t *Tracker, rowsOf []int32, notes noteFunc) {
	runs := r.in.batch.Runs
	for k := range runs {
		r.account(t, k, rowsOf, notes)
	}
	for k := range runs {
		part := runs[k].Partition
		last := true
		for j := k + 1; j < len(runs); j++ {
			last = last && runs[j].Partition != part
		}
		if !last {
			continue
		}
		at := r.in.end[part]
		for j := range runs[:k+1] {
			if runs[j].Partition == part && r.limit[j] < maxOffset {
				at.Offset = r.limit[j]
				at.Watermark = r.watermarkAt(j, r.limit[j], at.Watermark)
				break
			}
		}
		if at.Offset > t.Next(part).Offset {
			t.End(part, at)
		}
	}
}

// watermarkAt is the watermark of a run before an offset.
func (r *rows) watermarkAt(k int, offset, end int64) int64 {
	b := r.in.batch
	run := &b.Runs[k]
	for i := int(run.FirstRow); b.Watermark != nil && i < int(run.FirstRow+run.Rows); i++ {
		if b.Offset(run, i) >= offset {
			return b.Watermark[i]
		}
	}
	return end
}

// account counts a run for an output. rowsOf gives, by source row, how many
// rows the table got for it.
func (r *rows) account(t *Tracker, k int, rowsOf []int32, notes noteFunc) {
	b := r.in.batch
	run := &b.Runs[k]
	part := run.Partition
	next, end := t.Next(part).Offset, r.end(k)
	for j := range k {
		if b.Runs[j].Partition == part {
			next = max(next, b.Runs[j].EndOffset)
		}
	}
	if end <= next {
		return
	}
	c := ledger.Counts{}
	// Committed offsets count as their intents say, also where the record is
	// no longer there.
	if skip := t.Committed(part); !skip.Empty() {
		for _, in := range t.parts[part].inputs {
			x := in.Counts(next, end)
			c.Add(&x)
		}
	}
	mins := &minuteRun{m: t.Minutes(part), log: run.LogTime}
	tally := make([]int64, 2*len(r.tells)) // filtered, then dead, by reason
	last := int64(-1)
	for i := run.FirstRow; i < run.FirstRow+run.Rows; i++ {
		o := b.Offset(run, int(i))
		if o >= end {
			break
		}
		if r.fate[i] == passed {
			if o >= next {
				r.passedMinute(mins, i, t.aside && t.isLate(part, o))
			}
			continue
		}
		if o != last {
			c.Records++
			last = o
		}
		c.Read++
		event, ok := r.in.event(i)
		switch r.fate[i] {
		case written:
			c.Written++
			c.Expanded += int64(rowsOf[i])
			mins.add(event, ok, ledger.FateWritten)
		case folded:
			c.Folded++
			c.Expanded += int64(rowsOf[i])
			mins.add(event, ok, ledger.FateFolded)
		case filtered:
			tally[2*r.why[i]]++
			mins.add(event, ok, ledger.FateFiltered)
		case late:
			c.Late++
			mins.add(event, ok, ledger.FateLate)
		case again, dead:
			if w := r.why[i]; isLate(r.tells[w].code) {
				c.Late++
				mins.add(event, ok, ledger.FateLate)
			} else {
				tally[2*w+1]++
				mins.add(event, ok, ledger.FateDead)
			}
		}
	}
	for w := range r.tells {
		reason := ledger.Reason{Code: string(r.tells[w].code), Column: r.tells[w].column}
		c.Filtered.Add(reason, tally[2*w])
		c.Dead.Add(reason, tally[2*w+1])
	}
	r.accountNotes(t, k, &c, mins, notes, next, end)
	mins.flush()
	t.Account(part, &c)
}

// passedMinute counts the minute of a row that a committed artefact holds: the
// minutes of an intent are not kept by offset, and such a row was written, or is late
// where it was written aside, but for records of several rows, whose others are counted
// by their first.
func (r *rows) passedMinute(m *minuteRun, row int32, aside bool) {
	event, ok := r.in.event(row)
	if aside {
		m.add(event, ok, ledger.FateLate)
		return
	}
	m.add(event, ok, ledger.FateWritten)
}

func (r *rows) accountNotes(t *Tracker, k int, c *ledger.Counts, m *minuteRun, act noteFunc, next, end int64) {
	b := r.in.batch
	run := &b.Runs[k]
	skip := t.Committed(run.Partition)
	for i := run.FirstNote; i < run.FirstNote+run.Notes; i++ {
		n := &b.Notes[i]
		if n.Offset < next || n.Offset >= end || skip.Contains(n.Offset) {
			continue
		}
		c.Records++
		a := act(run.Partition, n)
		switch a.fate {
		case filtered:
			c.Read++
			c.Filtered.Add(a.reason, 1)
			m.add(0, false, ledger.FateFiltered)
		case dead, again:
			c.Read++
			c.Dead.Add(a.reason, 1)
			m.add(0, false, ledger.FateDead)
		}
	}
}

func isLate(c batch.Code) bool { return c == batch.CodeLate || c == batch.CodeLateIdle }

// minuteRun counts rows by minute; rows of a minute nearly always lie
// together.
type minuteRun struct {
	m         minutes
	log       int64 // ms
	minute    int64
	have      bool
	event     ledger.MinuteCounts
	logCounts ledger.MinuteCounts
}

func (m *minuteRun) add(event int64, ok bool, f ledger.Fate) {
	m.logCounts[f]++
	if !ok {
		return
	}
	minute := eventMinute(event, m.log)
	if minute != m.minute || !m.have {
		m.flushEvent()
		m.minute, m.have = minute, true
	}
	m.event[f]++
}

func (m *minuteRun) flushEvent() {
	if m.have && m.event != (ledger.MinuteCounts{}) {
		k := minuteKey{ledger.EventMinute, m.minute}
		sum := m.m[k]
		sum.Add(&m.event)
		m.m[k] = sum
		m.event = ledger.MinuteCounts{}
	}
}

func (m *minuteRun) flush() {
	m.flushEvent()
	if m.log > 0 && m.logCounts != (ledger.MinuteCounts{}) {
		k := minuteKey{ledger.LogMinute, floorDiv(m.log, minuteMillis)}
		sum := m.m[k]
		sum.Add(&m.logCounts)
		m.m[k] = sum
	}
	m.logCounts = ledger.MinuteCounts{}
}

// letters makes the dead letters of a batch: rows whose reason asks for one,
// those of one record with equal reason and column in one entry, and notes.
func (r *rows) letters(proto DeadEntry, notes noteFunc, t *Tracker) []DeadEntry {
	b := r.in.batch
	var out []DeadEntry
	for k := range b.Runs {
		run := &b.Runs[k]
		p := r.in.parts[run.Partition]
		next, end := t.Next(run.Partition).Offset, r.end(k)
		first := len(out)
		for i := run.FirstRow; i < run.FirstRow+run.Rows; i++ {
			w := r.why[i]
			if w == 0 || !r.tells[w].letter || r.fate[i] == passed || r.fate[i] == again {
				continue
			}
			o, tell := b.Offset(run, int(i)), &r.tells[w]
			if n := len(out); n > first && out[n-1].Offset == o && out[n-1].Reason == tell.code && out[n-1].Column == tell.column {
				out[n-1].Rows = append(out[n-1].Rows, b.Index(int(i)))
				continue
			}
			e := proto
			e.TopicID, e.Topic, e.Partition, e.Offset = p.TopicID, p.Topic, p.ID, o
			e.Rows = []int32{b.Index(int(i))}
			e.Reason, e.Column, e.Message = tell.code, tell.column, tell.message
			e.Raw, _ = r.in.raw(run.Partition, o)
			out = append(out, e)
		}
		for i := run.FirstNote; i < run.FirstNote+run.Notes; i++ {
			n := &b.Notes[i]
			if n.Offset < next || n.Offset >= end || t.Committed(run.Partition).Contains(n.Offset) {
				continue
			}
			if a := notes(run.Partition, n); a.fate == dead {
				e := proto
				e.TopicID, e.Topic, e.Partition, e.Offset = p.TopicID, p.Topic, p.ID, n.Offset
				e.Reason, e.Column, e.Message = n.Code, n.Where, n.Message
				e.Raw, _ = r.in.raw(run.Partition, n.Offset)
				out = append(out, e)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b DeadEntry) int {
		if a.Partition != b.Partition {
			return int(a.Partition) - int(b.Partition)
		}
		switch {
		case a.Offset < b.Offset:
			return -1
		case a.Offset > b.Offset:
			return 1
		}
		return 0
	})
	return out
}
