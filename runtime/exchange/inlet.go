package exchange

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
)

// ErrRejoin is returned by HandOver for a partition that has to Rejoin first: it
// was idle, or is new, and the stage's watermark has gone past it.
var ErrRejoin = errors.New("the partition has to rejoin first")

// Inlet is a lane.Inlet.
type Inlet struct {
	e      *Entrance
	lane   *laneState
	id     connector.LaneID
	origin *Origin
	split  Splitter
	closed bool
}

var _ lane.Inlet = (*Inlet)(nil)

// check says why the attempt may not go on; under the gate's lock.
func (in *Inlet) check() error {
	switch {
	case in.e.gate.shut != nil:
		return in.e.gate.shut
	case in.e.lanes[in.id] != in.lane:
		return fmt.Errorf("lane epoch %d: %w", in.lane.epoch, connector.ErrFenced)
	case in.closed:
		return errors.New("BUG: the inlet is closed")
	}
	return nil
}

// checkRejoined refuses rows of a partition that has not been told the bound.
// Positions and watermarks alone may move.
func (in *Inlet) checkRejoined(h *lane.Handover) error {
	for i := range h.Moved {
		if m := &h.Moved[i]; m.Partition < 0 || int(m.Partition) >= len(in.lane.parts) {
			return fmt.Errorf("BUG: partition %d of %d moved", m.Partition, len(in.lane.parts))
		}
	}
	if h.Batch == nil {
		return nil
	}
	sel := h.Sel
	for i := range h.Batch.Runs {
		r := &h.Batch.Runs[i]
		rows := r.Rows
		if sel != nil {
			rows = 0
			for len(sel) > 0 && sel[0] < r.FirstRow+r.Rows {
				sel, rows = sel[1:], rows+1
			}
		}
		if rows == 0 {
			continue
		}
		if r.Partition < 0 || int(r.Partition) >= len(in.lane.parts) {
			return fmt.Errorf("BUG: a row of partition %d of %d", r.Partition, len(in.lane.parts))
		}
		if p := &in.lane.parts[r.Partition]; p.rejoin || p.idle {
			return fmt.Errorf("topic %s partition %d: %w", in.lane.topic, p.id.partition, ErrRejoin)
		}
	}
	return nil
}

// HandOver implements lane.Inlet.
func (in *Inlet) HandOver(ctx context.Context, h *lane.Handover) error {
	var rows []*Rows
	if h.Batch != nil && h.Batch.Len > 0 && (h.Sel == nil || len(h.Sel) > 0) {
		rows = in.split.Split(h.Batch, h.Sel, in.origin)
	}
	for {
		wait, err := in.try(h, rows)
		if err != nil || wait == nil {
			return err
		}
		select {
		case <-wait:
		case <-in.e.gate.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// try hands everything over when there is room in all channels, or gives what to
// wait for.
func (in *Inlet) try(h *lane.Handover, rows []*Rows) (<-chan struct{}, error) {
	g, s := in.e.gate, in.e.stage
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := in.check(); err != nil {
		return nil, err
	}
	if err := in.checkRejoined(h); err != nil {
		return nil, err
	}
	if g.ended && rows != nil {
		return nil, fmt.Errorf("topic %s: rows after the end of the input: %w", in.lane.topic, ErrClosed)
	}
	for t, r := range rows {
		if r == nil {
			continue
		}
		// Nobody else fills channel 0, so that room seen under the gate's lock
		// is still there below.
		if wait, err := s.Inboxes[t].room(0); wait != nil || err != nil {
			return wait, err
		}
	}
	if len(h.Moved) > 0 || rows != nil {
		g.changes++
	}
	for t, r := range rows {
		if r != nil {
			s.Inboxes[t].put(0, Message{Kind: Data, Rows: r})
		}
	}
	for i := range h.Moved {
		m := &h.Moved[i]
		p := &in.lane.parts[m.Partition]
		p.time = max(p.time, m.Watermark)
		c := m.Cursor
		c.Output, c.Lane, c.Counts = in.e.cfg.Output, in.id, c.Counts.Clone()
		c.Topic, c.Partition = p.id.topic, p.id.partition
		in.e.cursors[p.id] = c
	}
	if len(h.Moved) > 0 && !g.ended {
		s.advance(g)
	}
	return nil, nil
}

func (in *Inlet) part(partition int32) (*partState, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	if partition < 0 || int(partition) >= len(in.lane.parts) {
		return nil, fmt.Errorf("BUG: partition %d of %d", partition, len(in.lane.parts))
	}
	return &in.lane.parts[partition], nil
}

// Idle implements lane.Inlet.
func (in *Inlet) Idle(_ context.Context, partition int32) error {
	g := in.e.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	p, err := in.part(partition)
	if err != nil {
		return err
	}
	p.idle = true
	in.e.stage.advance(g)
	return nil
}

// Rejoin implements lane.Inlet.
func (in *Inlet) Rejoin(_ context.Context, partition int32) (int64, error) {
	g := in.e.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	p, err := in.part(partition)
	if err != nil {
		return 0, err
	}
	p.idle, p.rejoin = false, false
	return in.e.stage.pushed, nil
}

// Close implements lane.Inlet.
func (in *Inlet) Close() error {
	in.e.gate.mu.Lock()
	defer in.e.gate.mu.Unlock()
	in.closed = true
	return nil
}
