package lane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/runtime/slot"
	"github.com/millrace/millrace/runtime/watermark"
)

// drive is one reader with the outputs it feeds. A lane has one, and a further
// one for each output that was blocked too long.
//
// Its outputs change only under the lane's mutex: when one is blocked, the
// supervisor takes the others away, and they go on with a new drive.
type drive struct {
	lane   *Lane
	att    *attempt
	member *slot.Member
	cancel context.CancelFunc
	base   context.Context

	mu      sync.Mutex
	outputs []*output

	reader   connector.Reader
	counter  connector.ByteCounter
	epochs   connector.EpochLister
	chains   []*sourceChain
	assigner *watermark.Assigner
	ctx      *expr.Context
	batch    batch.Batch
	width    width
	sel      batch.Sel
	read     atomic.Int64 // input bytes
	logEnds  []atomic.Int64
	ends     []Position
	holding  bool
	turn     int64 // bytes computed in this turn
	small    bool  // the last batch was small
	lastRun  time.Time
	ready    atomic.Bool // the lane knows the drive: its reader may wake it
	notified atomic.Bool
	pending  atomic.Bool // input waits for the linger time
	caught   bool        // the last batch was small, or there was none
	eof      bool
	closed   bool
}

// sourceChain is the operators behind one source node, with its columns.
type sourceChain struct {
	chain  *operator.Chain
	cols   []int // index into the reader's columns
	view   batch.Batch
	schema *batch.Schema
}

// open starts reading at the least position of the outputs.
func (d *drive) open(ctx context.Context) error {
	l := d.lane
	splits := make([]connector.Split, len(l.cfg.Partitions))
	d.ends = make([]Position, len(splits))
	d.logEnds = make([]atomic.Int64, len(splits))
	for p := range splits {
		at := d.outputs[0].tracker.Next(int32(p))
		for _, o := range d.outputs[1:] {
			if x := o.tracker.Next(int32(p)); x.Offset < at.Offset {
				at = x
			}
		}
		at.Bytes = 0
		d.ends[p] = at
		d.assigner.Set(int32(p), at.Watermark)
		splits[p] = connector.Split{Number: int32(p), End: l.ends[p], From: connector.Position{
			Partition: l.cfg.Partitions[p], LeaderEpoch: at.LeaderEpoch, Offset: at.Offset}}
	}
	reader, err := l.cfg.Source.Open(ctx, splits, l.columns, d.notify)
	if err != nil {
		return fmt.Errorf("opening topic %s: %w", l.cfg.Fact.Topic, err)
	}
	d.reader = reader
	d.counter, _ = reader.(connector.ByteCounter)
	d.epochs, _ = reader.(connector.EpochLister)
	return nil
}

// begin starts the drive, which the lane knows by now: one that ended before
// would never be missed.
func (d *drive) begin() {
	d.ready.Store(true)
	d.member.Wake()
}

// newDrive makes a drive of outputs; it does not read yet.
func (l *Lane) newDrive(a *attempt, outputs []*output) (*drive, error) {
	d := &drive{lane: l, att: a, outputs: outputs, ctx: expr.NewContext(l.cfg.Zone, l.opts.Seed)}
	d.base, d.cancel = context.WithCancel(a.ctx)
	for _, src := range l.cfg.Sources {
		c, err := operator.NewChain(l.cfg.Job, src, l.cfg.Lookups)
		if err != nil {
			return nil, err
		}
		c.Wait(d.ask)
		op := l.cfg.Job.Nodes[src].Op.(*graph.Source)
		sc := &sourceChain{chain: c, schema: l.cfg.Job.Nodes[src].Schema}
		for _, col := range op.Columns {
			sc.cols = append(sc.cols, slices.Index(l.columns, col))
		}
		d.chains = append(d.chains, sc)
	}
	d.width = newWidth(d.chains, l.opts.BatchRows)
	first := l.cfg.Job.Nodes[l.cfg.Sources[0]]
	var err error
	d.assigner, err = watermark.NewAssigner(first.Op.(*graph.Source).Watermark, first.Schema, len(l.cfg.Partitions))
	return d, err
}

// discard gives back what a drive holds.
func (d *drive) discard() {
	d.member.Leave()
	d.cancel()
	if d.reader != nil {
		d.reader.Close()
	}
}

// notify is called by the reader, from anywhere. Small input waits a little
// for more, so that a trickle does not cost a run for each record.
func (d *drive) notify() {
	d.notified.Store(true)
	if !d.ready.Load() {
		return // begin wakes the drive
	}
	linger := d.lane.opts.Linger
	if linger <= 0 {
		d.member.Wake()
		return
	}
	d.lane.timing.Lock()
	due := d.lastRun.Add(linger)
	small := d.small
	d.lane.timing.Unlock()
	if now := d.lane.now(); !small || !now.Before(due) {
		d.member.Wake()
	} else if d.pending.CompareAndSwap(false, true) {
		d.member.WakeAt(due)
	}
}

// wait does I/O for an output without holding the run token.
func (d *drive) wait(ctx context.Context, o *output, f func(context.Context) error) error {
	held := d.holding
	d.release()
	o.blockedSince.Store(d.lane.millis() + 1)
	// A hung sink must not stop its neighbours: after a while they go on with a
	// drive of their own.
	watch := d.lane.clock.AfterFunc(d.lane.opts.DetachAfter, func() { d.lane.detach(d, o) })
	err := d.member.IO(ctx, f)
	watch.Stop()
	o.blockedSince.Store(0)
	if err == nil && held {
		err = d.acquire(ctx)
	}
	return err
}

// ask does a lookup without holding the run token. A table that does not answer
// holds up its own lane alone. Invariant 4.
func (d *drive) ask(f func(context.Context) error) error {
	held := d.holding
	d.release()
	err := d.member.IO(d.base, f)
	if err == nil && held {
		err = d.acquire(d.base)
	}
	return err
}

func (d *drive) acquire(ctx context.Context) error {
	if d.holding {
		return nil
	}
	if err := d.member.Acquire(ctx); err != nil {
		return err
	}
	d.holding = true
	return nil
}

func (d *drive) release() {
	if d.holding {
		d.holding = false
		d.member.Release(d.turn)
		d.turn = 0
	}
}

// yield lets others compute when this turn is used up.
func (d *drive) yield() {
	if d.holding {
		d.holding = d.member.Yield(d.turn)
		d.turn = 0
	}
}

// run is the member's run function: it works until there is nothing to do now.
func (d *drive) run() {
	if d.closed {
		return
	}
	d.pending.Store(false)
	for {
		more, err := d.step(d.base)
		if !more || err != nil || d.closed {
			d.release()
		} else {
			d.yield()
		}
		if err != nil {
			d.closed = true
			d.lane.driveEnded(d, err)
			return
		}
		if d.closed {
			d.lane.driveEnded(d, nil)
			return
		}
		if !more {
			d.lane.timing.Lock()
			d.lastRun = d.lane.now()
			d.lane.timing.Unlock()
			return
		}
	}
}

// mine are the drive's outputs now.
func (d *drive) mine() []*output {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.outputs)
}

// step does one turn; more says whether another may have something to do.
func (d *drive) step(ctx context.Context) (more bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if d.lane.parked(d) {
		return false, nil
	}
	outputs := d.mine()
	if len(outputs) == 0 {
		d.closed = true // all were taken away or have rejoined the main drive
		return false, nil
	}
	if d.lane.stopping.Load() || d.eof {
		return false, d.finish(ctx, outputs)
	}
	for _, o := range outputs {
		if !d.has(o) {
			continue
		}
		if len(o.moves) > 0 {
			if err := o.rewrite(ctx, d); err != nil || d.lane.stopping.Load() {
				return err == nil, err
			}
		}
		if err := o.tick(ctx, d); err != nil {
			return false, err
		}
	}
	if d.lane.adopt(d); d.lane.askToRejoin(d) {
		return false, nil // parked until the main drive has answered
	}
	d.notified.Store(false)
	if err := d.acquire(ctx); err != nil {
		return false, err
	}
	err = d.next(ctx, d.att.shrink)
	switch {
	case errors.Is(err, connector.ErrNoData):
		d.release()
		return d.idle(ctx, outputs)
	case errors.Is(err, io.EOF):
		d.release()
		d.eof = true
		return true, nil
	case err != nil:
		d.release()
		return false, d.unread(ctx, err)
	}
	err = d.process(ctx, outputs)
	d.reader.Release()
	return err == nil, err
}

// next reads a batch, smaller by shrink than it may be.
func (d *drive) next(ctx context.Context, shrink int) error {
	return d.reader.Next(ctx, &d.batch, max(d.width.rows/shrink, 1), max(d.lane.opts.BatchBytes/shrink, 1))
}

// idle does what is left to do when there is no input, and says when to come
// back.
func (d *drive) idle(ctx context.Context, outputs []*output) (more bool, err error) {
	d.caught = true
	for p := range d.logEnds {
		d.logEnds[p].Store(d.reader.LogEnd(int32(p)))
	}
	for _, o := range outputs {
		if !d.has(o) {
			continue
		}
		o.replayUntil = nil // nothing is left to replay
		for p := range d.ends {
			o.observe(int32(p), d.ends[p].Offset >= d.logEnds[p].Load() && d.lane.ends[p] == connector.Unbounded)
		}
		if o.exch != nil {
			if err := o.quiet(ctx, d); err != nil {
				return false, err
			}
		}
		if err := o.tick(ctx, d); err != nil {
			return false, err
		}
	}
	d.lane.progress()
	next := int64(-1)
	for _, o := range d.mine() {
		if at := o.deadline(); at >= 0 && (next < 0 || at < next) {
			next = at
		}
	}
	if next >= 0 {
		d.member.WakeAt(d.lane.start.Add(time.Duration(next) * time.Millisecond))
	}
	return d.notified.Load() && d.lane.opts.Linger <= 0, nil
}

// setOpenFiles tells the slot how many files the drive has open.
func (d *drive) setOpenFiles() (over bool) {
	n := 0
	for _, o := range d.mine() {
		if o.sink == nil {
			continue
		}
		files := o.tracker.OpenFiles()
		o.openFiles.Store(int64(files))
		n += files
	}
	return d.member.SetOpenFiles(n)
}

// unread ends the drive at an error of the reader. Records that are gone stop
// the lane behind everything that could be read, which is committed.
func (d *drive) unread(ctx context.Context, err error) error {
	var m *connector.MismatchError
	if !errors.As(err, &m) {
		return fmt.Errorf("reading topic %s: %w", d.lane.cfg.Fact.Topic, err)
	}
	if err := d.finish(ctx, d.mine()); err != nil {
		return err
	}
	return &LostError{Mismatches: []*connector.MismatchError{m}}
}
