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
	sel      batch.Sel
	read     atomic.Int64 // input bytes
	logEnds  []atomic.Int64
	ends     []Position
	holding  bool
	turn     int64 // bytes computed in this turn
	small    bool  // the last batch was small
	lastRun  time.Time
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

// newDrive makes a drive of outputs; it does not read yet.
func (l *Lane) newDrive(a *attempt, outputs []*output) (*drive, error) {
	d := &drive{lane: l, att: a, outputs: outputs, ctx: expr.NewContext(l.cfg.Zone, l.opts.Seed)}
	d.base, d.cancel = context.WithCancel(a.ctx)
	for _, src := range l.cfg.Sources {
		c, err := operator.NewChain(l.cfg.Job, src)
		if err != nil {
			return nil, err
		}
		op := l.cfg.Job.Nodes[src].Op.(*graph.Source)
		sc := &sourceChain{chain: c, schema: l.cfg.Job.Nodes[src].Schema}
		for _, col := range op.Columns {
			sc.cols = append(sc.cols, slices.Index(l.columns, col))
		}
		d.chains = append(d.chains, sc)
	}
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
	err = d.reader.Next(ctx, &d.batch, max(d.lane.opts.BatchRows/d.att.shrink, 1), max(d.lane.opts.BatchBytes/d.att.shrink, 1))
	switch {
	case errors.Is(err, connector.ErrNoData):
		d.release()
		return d.idle(ctx, outputs)
	case errors.Is(err, io.EOF):
		d.release()
		d.eof = true
		return true, nil
	case err != nil:
		return false, fmt.Errorf("reading topic %s: %w", d.lane.cfg.Fact.Topic, err)
	}
	err = d.process(ctx, outputs)
	d.reader.Release()
	return err == nil, err
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

// process gives a batch to the outputs, one after the other.
func (d *drive) process(ctx context.Context, outputs []*output) error {
	in, bytes := d.prepare()
	d.turn += bytes
	needed := d.classify(in, outputs)
	d.evaluate(in, needed)
	for _, o := range outputs {
		if !d.has(o) {
			continue // it was taken away while another was blocked
		}
		var err error
		if o.exch != nil {
			err = o.processExchange(ctx, d, in)
		} else {
			err = o.processSink(ctx, d, in)
		}
		if err != nil {
			return err
		}
		if o.rows.fail != nil {
			return d.failed(ctx, o.rows.fail)
		}
		if err := d.acquire(ctx); err != nil {
			return err
		}
	}
	small := d.batch.Len < 1000 && bytes < 256<<10
	d.caught = small
	d.lane.timing.Lock()
	d.small = small
	d.lane.timing.Unlock()
	d.lane.progress()
	return nil
}

func (d *drive) has(o *output) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Contains(d.outputs, o)
}

// prepare advances watermarks and positions over the batch.
func (d *drive) prepare() (*input, int64) {
	l, b := d.lane, &d.batch
	before := d.read.Load()
	if d.counter != nil {
		d.read.Store(d.counter.InputBytes())
	} else {
		d.read.Add(estimateBytes(b))
	}
	read := d.read.Load()
	d.ctx.Now = l.wallMillis() * 1000
	first := d.chains[0]
	first.show(b)
	d.assigner.Advance(d.ctx, &first.view)
	b.Watermark = first.view.Watermark
	for i := range b.Runs {
		p := b.Runs[i].Partition
		at := &d.ends[p]
		at.Offset, at.Watermark, at.Bytes = b.Runs[i].EndOffset, d.assigner.Current(p), read
		if d.epochs != nil {
			at.LeaderEpoch = d.epochs.LeaderEpoch(p)
		}
	}
	in := &input{batch: b, parts: l.cfg.Partitions, raw: d.reader.Raw, end: d.ends, time: -1, now: l.wallMillis()}
	if n := l.cfg.Job.Nodes[l.cfg.Sources[0]]; n.TimeColumn >= 0 {
		in.time = first.cols[n.TimeColumn]
		in.units = n.Schema.Fields[n.TimeColumn].Type.UnitsPerSecond()
	}
	for p := range d.logEnds {
		d.logEnds[p].Store(d.reader.LogEnd(int32(p)))
	}
	return in, read - before
}

// estimateBytes stands in for the input's size when the reader does not count.
func estimateBytes(b *batch.Batch) int64 {
	n := int64(b.Len) * 16
	for i := range b.Cols {
		n += int64(len(b.Cols[i].Data)) + int64(b.Cols[i].Len)*8
	}
	return n
}

// classify lets each output say which rows it takes, and gives those that any
// of them does.
func (d *drive) classify(in *input, outputs []*output) batch.Sel {
	all := true
	for _, o := range outputs {
		o.rows.reset(in, o.tracker)
		all = all && o.rows.live == in.batch.Len
	}
	if all {
		return nil
	}
	if d.sel == nil {
		d.sel = batch.Sel{}
	}
	d.sel = d.sel[:0]
	for i := range in.batch.Len {
		for _, o := range outputs {
			if o.rows.fate[i] == live {
				d.sel = append(d.sel, int32(i))
				break
			}
		}
	}
	return d.sel
}

func (d *drive) evaluate(in *input, sel batch.Sel) {
	for _, c := range d.chains {
		c.show(in.batch)
		c.chain.Eval(d.ctx, &c.view, sel)
	}
}

// show makes the view the source node's columns of a batch.
func (c *sourceChain) show(b *batch.Batch) {
	cols := c.view.Cols[:0]
	for _, i := range c.cols {
		cols = append(cols, b.Cols[i])
	}
	c.view = *b
	c.view.Schema, c.view.Cols = c.schema, cols
}

// failed ends the lane at a failing record: what lies before it is committed.
func (d *drive) failed(ctx context.Context, fail *FailError) error {
	if err := d.finish(ctx, d.mine()); err != nil {
		return err
	}
	return fail
}

// finish seals and commits what is open and moves the cursors as far as they
// go.
func (d *drive) finish(ctx context.Context, outputs []*output) error {
	for _, o := range outputs {
		if !d.has(o) {
			continue
		}
		if o.exch != nil {
			if d.eof && !d.lane.stopping.Load() {
				if err := o.finishExchange(ctx, d); err != nil {
					return err
				}
			}
			continue
		}
		o.replayUntil = nil
		if err := o.commit(ctx, d, o.tracker.Due(DueInput{All: true})); err != nil {
			return err
		}
		if err := o.moveCursors(ctx, d); err != nil {
			return err
		}
		o.mu.Lock()
		o.ended = d.eof
		o.mu.Unlock()
	}
	d.closed = true
	d.lane.progress()
	return nil
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
