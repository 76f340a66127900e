package exchange

import (
	"context"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/state"
)

// Splitter divides rows among the tasks of a stage by the key groups of key
// columns; no keys: all go to task 0. It belongs to one goroutine.
type Splitter struct {
	// Input is Rows.Input of what it gives.
	Input       int
	Keys        []int
	Parallelism int

	buf  []byte
	cols []*batch.Vec
}

// Split gives, by task, the rows of sel (nil: all) that go there, nil where there
// are none. The rows share the batch, which nobody may write any more.
func (s *Splitter) Split(b *batch.Batch, sel batch.Sel, origin *Origin) []*Rows {
	out := make([]*Rows, s.Parallelism)
	n := b.Len
	if sel != nil {
		n = len(sel)
	}
	if n == 0 {
		return out
	}
	if sel == nil {
		sel = make(batch.Sel, n)
		for i := range sel {
			sel[i] = int32(i)
		}
	}
	hashes := make([]uint64, b.Len)
	bytes := state.BatchBytes(b)
	add := func(task int, sel batch.Sel) {
		out[task] = &Rows{Input: s.Input, Batch: b, Sel: sel, Hashes: hashes, Origin: origin,
			Bytes: bytes*int64(len(sel))/int64(n) + 1}
	}
	if len(s.Keys) == 0 {
		// Hash 0 is of key group 0, which is task 0's.
		add(0, sel)
		return out
	}
	s.cols = s.cols[:0]
	for _, k := range s.Keys {
		s.cols = append(s.cols, &b.Cols[k])
	}
	counts := make([]int, s.Parallelism)
	for _, row := range sel {
		hashes[row], s.buf = batch.HashKey(s.buf, s.cols, int(row))
		counts[state.SubtaskOf(state.GroupOf(hashes[row]), s.Parallelism)]++
	}
	if s.Parallelism == 1 {
		add(0, sel)
		return out
	}
	all := make(batch.Sel, 0, n)
	sels := make([]batch.Sel, s.Parallelism)
	for t, c := range counts {
		at := len(all)
		all = all[:at+c]
		sels[t] = all[at : at : at+c]
	}
	for _, row := range sel {
		t := state.SubtaskOf(state.GroupOf(hashes[row]), s.Parallelism)
		sels[t] = append(sels[t], row)
	}
	for t := range sels {
		if len(sels[t]) > 0 {
			add(t, sels[t])
		}
	}
	return out
}

// Sender is the way from one task to all tasks of another stage.
type Sender struct {
	Splitter
	// Inboxes of those tasks, and the channel of each that is this task's.
	Inboxes []*Inbox
	Channel int
}

// Send gives copies of rows to the tasks they belong to, waiting for room.
func (s *Sender) Send(ctx context.Context, b *batch.Batch, sel batch.Sel) error {
	c := new(batch.Batch)
	c.Take(b, sel)
	c.Runs, c.OffsetDelta, c.RowIndex, c.Notes, c.Watermark = nil, nil, nil, nil, nil
	for t, r := range s.Split(c, nil, nil) {
		if r == nil {
			continue
		}
		if err := s.Inboxes[t].Send(ctx, s.Channel, Message{Kind: Data, Rows: r}); err != nil {
			return err
		}
	}
	return nil
}

// Forward gives a watermark or barrier to all tasks.
func (s *Sender) Forward(ctx context.Context, m Message) error {
	for _, in := range s.Inboxes {
		if err := in.Send(ctx, s.Channel, m); err != nil {
			return err
		}
	}
	return nil
}
