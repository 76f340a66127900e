package lane

import (
	"context"
	"errors"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
)

// process gives a batch to the outputs, one after the other.
func (d *drive) process(ctx context.Context, outputs []*output) error {
	in, bytes := d.prepare()
	d.turn += bytes
	needed := d.classify(in, outputs)
	if err := d.evaluate(in, needed); err != nil {
		return err
	}
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
		var rate *DeadRateError
		if errors.As(err, &rate) {
			// Nothing of the batch was taken: what lies before it is committed.
			if err := d.finish(ctx, d.mine()); err != nil {
				return err
			}
			return rate
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
	small := d.batch.Len < min(d.width.rows, 1000) && bytes < 256<<10
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
	if d.ctx.Now = l.cfg.ClockMicros; d.ctx.Now == 0 {
		d.ctx.Now = l.wallMillis() * 1000
	}
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

// evaluate runs the chains. Positions move with an output's rows alone, so that a
// failed lookup, which ends the attempt, skips nothing. Invariant 1.
func (d *drive) evaluate(in *input, sel batch.Sel) error {
	for _, c := range d.chains {
		c.show(in.batch)
		if err := c.chain.Eval(d.ctx, &c.view, sel); err != nil {
			return err
		}
	}
	d.width.became(in.batch.Len, widest(d.chains))
	return nil
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
