package lane

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/operator"
)

// output is one output of an attempt. Its fields belong to the goroutine of
// its drive, but for what mu guards and the atomics.
type output struct {
	cfg  *OutputConfig
	lane *Lane
	att  *attempt

	mu      sync.Mutex // the tracker's state, for Status
	tracker *Tracker

	rows  rows
	parts []*operator.Rows
	count []int32 // by source row: rows the table got
	sels  []batch.Sel

	sink      *sinkState
	unsettled bool // an intent of the lane is pending that is another's to end
	exch      *exchangeState

	// Heads.
	replayUntil []int64 // by partition: the head of the attempt before
	carryAge    time.Duration
	openedFirst time.Time     // when the first file of a file-less time was opened
	headAt      time.Time     // when the head was last written
	headOpen    bool          // the durable head says that files are open
	headWait    time.Duration // from the last head to the next
	cursorAt    time.Time

	atEnd []time.Time // by partition: since when it has nothing to read; guarded by mu

	// blockedSince is, in ns since the clock's start, when I/O that is under
	// way began; 0: none.
	blockedSince atomic.Int64
	detached     atomic.Bool
	roll         atomic.Bool  // seal everything at the next turn
	files        atomic.Int64 // artefacts committed by this attempt
	openFiles    atomic.Int64
	nextFile     atomic.Int64 // ms of the lane's clock, 0: none
	ended        bool
	deadRate     deadRate

	// moves are table partitions whose rows are to be written anew at another home;
	// rewriting says that it is being done.
	moves     []ledger.Move
	rewriting atomic.Bool
}

func newOutput(l *Lane, a *attempt, cfg *OutputConfig) *output {
	o := &output{cfg: cfg, lane: l, att: a, atEnd: make([]time.Time, len(l.cfg.Partitions)), deadRate: newDeadRate(l.opts.DeadMaxRate, l.now())}
	if cfg.Exchange != nil {
		o.exch = &exchangeState{}
	} else {
		o.sink = newSinkState(cfg)
	}
	return o
}

// note says what a record without rows is for this output.
func (o *output) note(part int32, n *batch.Note) noteAction {
	reason := ledger.Reason{Code: string(n.Code), Column: n.Where}
	switch n.Code {
	case "":
		return noteAction{fate: passed}
	case batch.CodeEmpty:
		return noteAction{fate: filtered, reason: ledger.Reason{Code: string(n.Code)}}
	}
	if d := o.tracker.Dead(part, n.Offset); d != nil && len(d.Rows) > 0 {
		return noteAction{fate: again, reason: ledger.Reason{Code: string(d.Rows[0].Reason), Column: d.Rows[0].Column}}
	}
	if o.lane.decodePolicy == connector.OnErrorDrop {
		return noteAction{fate: filtered, reason: reason}
	}
	return noteAction{fate: dead, reason: reason}
}

// failNotes applies the 'fail' policy to malformed records.
func (o *output) failNotes(in *input) {
	if o.lane.decodePolicy != connector.OnErrorFail {
		return
	}
	b := in.batch
	for k := range b.Runs {
		r := &b.Runs[k]
		for i := r.FirstNote; i < r.FirstNote+r.Notes; i++ {
			n := &b.Notes[i]
			if n.Code == "" || n.Code == batch.CodeEmpty || n.Offset < o.tracker.Next(r.Partition).Offset ||
				o.tracker.Committed(r.Partition).Contains(n.Offset) || o.tracker.Dead(r.Partition, n.Offset) != nil {
				continue
			}
			o.rows.failAt(k, n.Offset, o.cfg.Table.Name, batch.ValueError{Code: n.Code, Where: n.Where, Message: n.Message})
			break
		}
	}
}

// policyOf is what becomes of a row with an error: decoders have their own
// policy, NOT NULL of the sink has its own.
func (o *output) policyOf(e *batch.ValueError, notNull bool) graph.ErrorPolicy {
	switch {
	case notNull:
		return o.cfg.NotNull
	case o.lane.decodeError(string(e.Code)):
		return graph.ErrorPolicy(o.lane.decodePolicy)
	}
	return o.cfg.OnError
}

// reject gives a row that cannot be used its fate.
func (o *output) reject(row int32, e *batch.ValueError, policy graph.ErrorPolicy) {
	r := &o.rows
	if r.fate[row] != live {
		return
	}
	switch policy {
	case graph.Drop:
		r.set(row, filtered, rowReason{code: e.Code, column: e.Where})
	case graph.Fail:
		k := r.runOf(row, 0)
		r.failAt(k, r.in.batch.Offset(&r.in.batch.Runs[k], int(row)), o.cfg.Table.Name, *e)
		r.set(row, dead, rowReason{code: e.Code, column: e.Where})
	default:
		r.set(row, dead, rowReason{code: e.Code, column: e.Where, message: e.Message, letter: true})
	}
}

// gather takes what the chains gave to the output and the failures on the way.
func (o *output) gather(d *drive) {
	o.parts = o.parts[:0]
	for _, c := range d.chains {
		for _, node := range o.cfg.Nodes {
			o.parts = c.chain.Result(node, o.parts)
		}
	}
	for _, p := range o.parts {
		for i := range p.Failed {
			e := &p.Failed[i]
			o.reject(e.Row, e, o.policyOf(e, false))
		}
	}
}

// settle gives every row that is still live its fate, and each part its
// selection: a row that is in some part becomes hit, others were filtered.
func (o *output) settle(hit fate) {
	r := &o.rows
	r.cut()
	o.count = resizeTo(o.count, len(r.fate))
	clear(o.count)
	for len(o.sels) < len(o.parts) {
		o.sels = append(o.sels, nil)
	}
	for k, p := range o.parts {
		sel := o.sels[k][:0]
		if sel == nil {
			sel = batch.Sel{}
		}
		each(p, func(i int32) {
			if s := p.Source(i); r.fate[s] == live {
				sel = append(sel, i)
				o.count[s]++
			}
		})
		o.sels[k] = sel
	}
	var empty []int32
	for _, p := range o.parts {
		empty = append(empty, p.Empty...)
	}
	where, unnest := rowReason{code: ledger.ReasonWhere}, rowReason{code: ledger.ReasonUnnest}
	for _, s := range empty {
		if r.fate[s] == live && o.count[s] == 0 {
			r.set(s, filtered, unnest)
		}
	}
	var w uint16
	for i := range r.fate {
		switch {
		case r.fate[i] != live:
		case o.count[i] > 0:
			r.fate[i] = hit
		default:
			if w == 0 {
				w = r.reason(where)
			}
			r.fate[i], r.why[i] = filtered, w
		}
	}
	r.live = 0
}

// each calls f for the rows of a part.
func each(p *operator.Rows, f func(int32)) {
	if p.Sel == nil {
		for i := range int32(p.Batch.Len) {
			f(i)
		}
		return
	}
	for _, i := range p.Sel {
		f(i)
	}
}

// buryDead writes the dead letters of the batch and waits for their
// acknowledgement. Invariant 1: nothing that names or passes their offsets is
// written before.
func (o *output) buryDead(ctx context.Context, d *drive) error {
	l := o.lane
	proto := DeadEntry{Job: l.scope.Job, Generation: l.scope.Generation, Table: o.cfg.Table.ID, TableName: o.cfg.Table.Name}
	letters := o.rows.letters(proto, o.note, o.tracker)
	if len(letters) == 0 {
		return nil
	}
	n, first := int64(0), -1
	for i := range letters {
		if !isLate(letters[i].Reason) {
			n += int64(max(len(letters[i].Rows), 1))
			if first < 0 {
				first = i
			}
		}
	}
	if n > 0 && !o.deadRate.take(n, l.now()) {
		return &DeadRateError{Table: o.cfg.Table.Name, PerSecond: l.opts.DeadMaxRate, Rows: n, First: letters[first]}
	}
	err := d.wait(ctx, o, func(ctx context.Context) error { return l.cfg.DeadLetters.Write(ctx, letters) })
	if err != nil {
		return fmt.Errorf("writing %d dead letters: %w", len(letters), err)
	}
	if l.cfg.Dead != nil && n > 0 {
		l.cfg.Dead(o.cfg.Table.Name, n)
	}
	return nil
}

// replaying reports whether the head of the attempt before is not reached.
func (o *output) replaying() bool {
	for p, until := range o.replayUntil {
		if o.tracker.Next(int32(p)).Offset < until {
			return true
		}
	}
	return false
}

// observe says whether a partition has nothing to read now.
func (o *output) observe(part int32, atEnd bool) {
	o.mu.Lock()
	switch {
	case !atEnd:
		o.atEnd[part] = time.Time{}
	case o.atEnd[part].IsZero():
		o.atEnd[part] = o.lane.now()
	}
	o.mu.Unlock()
	if o.exch != nil {
		o.exch.idle.Observe(part, atEnd, o.lane.millis())
	}
}
