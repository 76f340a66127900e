package lane

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
)

// tick does what is due by time or size: it seals files, writes heads and
// moves cursors.
func (o *output) tick(ctx context.Context, d *drive) error {
	if o.sink == nil {
		return nil
	}
	open := o.sink.writer.Open()
	size := func(id connector.BucketID) int64 {
		for i := range open {
			if open[i].ID == id {
				return open[i].Bytes
			}
		}
		return 0
	}
	in := DueInput{Now: o.lane.millis(), Roll: o.cfg.Sink.Roll(), Bytes: size, Replaying: o.replaying(),
		ReadBytes: d.read.Load(), ReplayMax: o.lane.opts.ReplayMaxBytes, All: o.roll.Swap(false)}
	if c := o.cfg.PartitionCloser; c != nil {
		in.Closing = c.Wanted
	}
	if err := o.commit(ctx, d, o.tracker.Due(in)); err != nil {
		return err
	}
	if err := o.moveHead(ctx, d); err != nil {
		return err
	}
	if o.tracker.Behind() && o.lane.now().Sub(o.cursorAt) >= o.lane.opts.CursorEvery {
		if err := o.moveCursors(ctx, d); err != nil {
			return err
		}
	}
	o.shown(in.Roll)
	return nil
}

// shown updates what Status shows of the open files.
func (o *output) shown(roll connector.RollPolicy) {
	at, ok := o.tracker.OldestOpened()
	if !ok || roll.Age == 0 {
		o.nextFile.Store(0)
		return
	}
	o.nextFile.Store(at + roll.Age.Milliseconds())
}

// moveCursors moves the resume positions without a commit.
func (o *output) moveCursors(ctx context.Context, d *drive) error {
	if o.sink == nil || !o.tracker.Behind() {
		return nil
	}
	err := d.wait(ctx, o, func(ctx context.Context) error {
		o.mu.Lock()
		facts := o.tracker.Advance()
		o.mu.Unlock()
		return o.lane.cfg.Book.Append(ctx, facts...)
	})
	if err != nil {
		return fmt.Errorf("moving the cursors of table %s: %w", o.cfg.Table.Name, err)
	}
	o.cursorAt = o.lane.now()
	return nil
}

// headDue is when the head is to be written next, ok is false when it needs
// not be: soon after the first file was opened, then now and then while files
// are open, and once when none is left. The waits of an attempt start short and
// double, so that one that is killed early has noted at least half of its life.
func (o *output) headDue() (at time.Time, ok bool) {
	_, open := o.tracker.OldestOpened()
	switch {
	case !open:
		o.openedFirst = time.Time{}
		return o.lane.now(), o.headOpen
	case !o.headOpen:
		return o.openedFirst.Add(o.lane.opts.HeadDelay), true
	}
	return o.headAt.Add(o.headWait), true
}

// moveHead writes how far the output is and how old its oldest file, so that
// kills that come faster than files fill cannot keep it from ever sealing one.
func (o *output) moveHead(ctx context.Context, d *drive) error {
	at, ok := o.headDue()
	now := o.lane.now()
	if !ok || now.Before(at) {
		return nil
	}
	h := &ledger.Head{Output: o.cfg.Table.ID, Lane: o.lane.cfg.Fact.ID, Epoch: o.att.epoch, OldestAgeMillis: -1}
	for p := range o.tracker.parts {
		// A replay has not lost what was reached before.
		next := o.tracker.Next(int32(p)).Offset
		if p < len(o.replayUntil) {
			next = max(next, o.replayUntil[p])
		}
		h.Next = append(h.Next, ledger.PartitionOffset{Partition: o.lane.cfg.Partitions[p].ID, Offset: next})
	}
	opened, open := o.tracker.OldestOpened()
	if open {
		h.OldestAgeMillis = o.lane.millis() - opened
	}
	if err := d.wait(ctx, o, func(ctx context.Context) error { return o.lane.cfg.Book.Append(ctx, h) }); err != nil {
		return fmt.Errorf("writing the head of table %s: %w", o.cfg.Table.Name, err)
	}
	o.headAt, o.headOpen = now, open
	o.headWait = min(max(2*o.headWait, o.lane.opts.HeadDelay), o.lane.opts.HeadEvery)
	return nil
}

// deadline is when the output has something to do without input, in ms of the
// lane's clock; -1: never.
func (o *output) deadline() int64 {
	if o.exch != nil {
		return o.exch.idle.Next()
	}
	next := int64(-1)
	sooner := func(ms int64) {
		if next < 0 || ms < next {
			next = ms
		}
	}
	if roll := o.cfg.Sink.Roll(); roll.Age > 0 {
		if at, ok := o.tracker.OldestOpened(); ok {
			sooner(at + roll.Age.Milliseconds())
		}
	}
	if at, ok := o.headDue(); ok {
		sooner(at.Sub(o.lane.start).Milliseconds())
	}
	if o.tracker.Behind() {
		sooner(o.cursorAt.Add(o.lane.opts.CursorEvery).Sub(o.lane.start).Milliseconds())
	}
	return next
}

// loadHead takes over how far the attempt before had got.
func (o *output) loadHead() {
	h := o.lane.cfg.Book.Head(o.cfg.Table.ID, o.lane.cfg.Fact.ID)
	if h == nil || h.OldestAgeMillis < 0 {
		return
	}
	o.replayUntil = make([]int64, len(o.lane.cfg.Partitions))
	for _, n := range h.Next {
		for p := range o.lane.cfg.Partitions {
			if o.lane.cfg.Partitions[p].ID == n.Partition {
				o.replayUntil[p] = n.Offset
			}
		}
	}
	o.carryAge = time.Duration(h.OldestAgeMillis) * time.Millisecond
}
