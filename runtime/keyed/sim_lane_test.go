package keyed

import (
	"context"
	"math/rand/v2"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/operator"
)

// simLane is a lane: it decides lateness and hands over in batches of random
// sizes.
type simLane struct {
	s     *scenario
	f     *feed
	ex    lane.Exchange
	st    *Stages
	epoch uint64
	rng   *rand.Rand
	parts []simPart
	ws    *operator.Windows
}

type simPart struct {
	cursor ledger.Cursor
	bound  int64
}

func (l *simLane) run(ctx context.Context) error {
	a := lane.Attachment{Lane: l.f.lane(), Epoch: l.epoch, Topic: l.f.name}
	restored, err := l.ex.Restored(ctx, a.Lane)
	if err != nil {
		return err
	}
	for i := range l.f.parts {
		c := ledger.Cursor{Topic: l.f.topic(), Partition: int32(i), Lane: a.Lane, Epoch: l.epoch, Watermark: batch.NoWatermark}
		for _, r := range restored {
			if r.Partition == int32(i) {
				c = r
			}
		}
		l.parts = append(l.parts, simPart{cursor: c, bound: batch.NoWatermark})
		a.Partitions = append(a.Partitions, connector.Partition{TopicID: l.f.topic(), Topic: l.f.name, ID: int32(i)})
		a.Start = append(a.Start, c)
	}
	if l.s.window != nil {
		if l.ws, err = operator.NewWindows(*l.s.window, eventSchema.Fields[1].Type); err != nil {
			return err
		}
	}
	in, err := l.ex.Attach(ctx, a)
	if err != nil {
		return err
	}
	for i := range l.parts {
		if l.parts[i].bound, err = in.Rejoin(ctx, int32(i)); err != nil {
			return err
		}
	}
	for {
		h := l.next()
		if h == nil {
			break
		}
		if err := in.HandOver(ctx, h); err != nil {
			return err
		}
		if l.rng.IntN(max(l.s.every, 1)) == 0 {
			if err := l.st.Checkpoint(ctx); err != nil {
				return err
			}
		}
	}
	if l.s.hold {
		return nil
	}
	h := &lane.Handover{}
	for i := range l.parts {
		h.Moved = append(h.Moved, lane.Moved{Partition: int32(i), Watermark: batch.MaxWatermark, Cursor: l.parts[i].cursor})
	}
	return in.HandOver(ctx, h)
}

// next is a hand-over of rows of one or two partitions, nil at the end.
func (l *simLane) next() *lane.Handover {
	var left []int
	for i := range l.parts {
		if int(l.parts[i].cursor.Offset) < len(l.f.parts[i]) {
			left = append(left, i)
		}
	}
	if len(left) == 0 {
		return nil
	}
	l.rng.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	left = left[:1+l.rng.IntN(min(2, len(left)))]
	slices.Sort(left)
	h := &lane.Handover{Batch: &batch.Batch{}, Sel: batch.Sel{}}
	b := h.Batch
	var events []event
	for _, i := range left {
		p := &l.parts[i]
		from := int(p.cursor.Offset)
		n := 1 + l.rng.IntN(min(7, len(l.f.parts[i])-from))
		b.Runs = append(b.Runs, batch.Run{Partition: int32(i), FirstRow: int32(len(events)), Rows: int32(n), BaseOffset: int64(from), EndOffset: int64(from + n)})
		c := p.cursor
		c.Counts = c.Counts.Clone()
		for _, e := range l.f.parts[i][from : from+n] {
			b.Watermark = append(b.Watermark, max(c.Watermark, p.bound))
			if l.s.late(l.ws, e, c.Watermark) || l.s.late(l.ws, e, p.bound) {
				c.Counts.Late++
			} else {
				c.Counts.Folded++
				h.Sel = append(h.Sel, int32(len(events)))
			}
			c.Watermark = max(c.Watermark, e.ts-l.s.delay)
			events = append(events, e)
		}
		c.Counts.Records += int64(n)
		c.Counts.Read += int64(n)
		c.Offset += int64(n)
		p.cursor = c
		h.Moved = append(h.Moved, lane.Moved{Partition: int32(i), Watermark: c.Watermark, Cursor: c})
	}
	fill(b, events)
	if l.s.kindOf != nil {
		for _, e := range events {
			b.Kinds = append(b.Kinds, l.s.kindOf(e))
		}
	}
	if l.s.job.Batch {
		b.Watermark = nil
	}
	return h
}
