package exchange

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
)

type partition struct {
	topic     connector.UUID
	partition int32
}

// Entrance is a lane.Exchange.
type Entrance struct {
	gate  *Gate
	stage *gateStage
	cfg   EntranceConfig
	// Under the gate's lock.
	lanes    map[connector.LaneID]*laneState
	complete bool // every lane of the start has attached
	cursors  map[partition]ledger.Cursor
}

type laneState struct {
	epoch uint64
	inlet *Inlet // the attempt that may hand over
	topic string
	parts []partState
}

type partState struct {
	id   partition
	time int64
	idle bool
	// rejoin: nothing is taken before Rejoin: the stage may have fired what the
	// partition's rows belong to.
	rejoin bool
}

var _ lane.Exchange = (*Entrance)(nil)

// missing names a lane that has to attach before watermarks move, "" when there
// is none.
func (e *Entrance) missing() string {
	if e.complete {
		return ""
	}
	seen := map[string]bool{}
	for _, l := range e.gate.cfg.Lanes() {
		if l.Retired || !slices.Contains(e.cfg.Sources, l.Source) {
			continue
		}
		if e.gate.expected != nil && !e.gate.expected[l.ID] {
			continue
		}
		seen[l.Source] = true
		if e.lanes[l.ID] == nil {
			return fmt.Sprintf("topic %s is not read yet", l.Topic)
		}
	}
	if e.gate.expected == nil {
		for _, s := range e.cfg.Sources {
			if !seen[s] {
				return fmt.Sprintf("table %s is not read yet", s)
			}
		}
	}
	e.complete = true // lanes of new partitions rejoin
	return ""
}

// Restored implements lane.Exchange.
func (e *Entrance) Restored(_ context.Context, id connector.LaneID) ([]ledger.Cursor, error) {
	e.gate.mu.Lock()
	defer e.gate.mu.Unlock()
	// By what the lane holds: a partition may have been another's before.
	mine := func(c *ledger.Cursor) bool { return c.Lane == id }
	for _, l := range e.gate.cfg.Lanes() {
		if l.ID == id {
			mine = func(c *ledger.Cursor) bool { return c.Topic == id.Topic && slices.Contains(l.Partitions, c.Partition) }
		}
	}
	var out []ledger.Cursor
	for _, c := range e.cursors {
		if mine(&c) {
			c.Counts = c.Counts.Clone()
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(x, y ledger.Cursor) int { return cmp.Compare(x.Partition, y.Partition) })
	return out, nil
}

// ErrBehind is returned by Attach when a lane would hand rows over again.
var ErrBehind = errors.New("the lane goes on below what it has handed over")

// Attach implements lane.Exchange.
func (e *Entrance) Attach(_ context.Context, a lane.Attachment) (lane.Inlet, error) {
	e.gate.mu.Lock()
	defer e.gate.mu.Unlock()
	if e.gate.shut != nil {
		return nil, e.gate.shut
	}
	e.gate.dropRetired()
	l := e.lanes[a.Lane]
	if l != nil && l.epoch > a.Epoch {
		return nil, fmt.Errorf("attaching lane epoch %d, now %d: %w", a.Epoch, l.epoch, connector.ErrFenced)
	}
	if len(a.Start) != len(a.Partitions) {
		return nil, fmt.Errorf("BUG: %d start positions for %d partitions", len(a.Start), len(a.Partitions))
	}
	old := map[partition]partState{}
	if l != nil {
		for _, p := range l.parts {
			old[p.id] = p
		}
	}
	l = &laneState{epoch: a.Epoch, topic: a.Topic}
	origin := &Origin{Topic: a.Topic}
	for i, p := range a.Partitions {
		id := partition{p.TopicID, p.ID}
		if c, ok := e.cursors[id]; ok && a.Start[i].Offset < c.Offset {
			return nil, fmt.Errorf("topic %s partition %d: offset %d, handed over up to %d: %w", a.Topic, p.ID, a.Start[i].Offset, c.Offset, ErrBehind)
		}
		st := partState{id: id, time: batch.NoWatermark}
		if o, ok := old[id]; ok {
			st.time = o.time
		}
		st.rejoin = e.stage.pushed != batch.NoWatermark && max(st.time, a.Start[i].Watermark) < e.stage.pushed
		l.parts = append(l.parts, st)
		origin.Partitions = append(origin.Partitions, p.ID)
	}
	for i := range a.Start {
		c := a.Start[i]
		c.Output, c.Lane, c.Counts = e.cfg.Output, a.Lane, c.Counts.Clone()
		e.cursors[l.parts[i].id] = c
	}
	l.inlet = &Inlet{e: e, lane: l, id: a.Lane, origin: origin,
		split: Splitter{Input: e.cfg.Input, Keys: e.cfg.Keys, Parallelism: len(e.stage.Inboxes)}}
	e.lanes[a.Lane] = l
	e.gate.changes++
	e.stage.advance(e.gate)
	return l.inlet, nil
}
