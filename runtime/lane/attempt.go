package lane

import (
	"context"
	"errors"
	"fmt"
	"hash"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/offsets"
	"github.com/millrace/millrace/runtime/watermark"
)

// open starts an attempt: a new epoch that is durable before anything else,
// fences, pending intents resolved by looking, positions, skip sets, readers.
func (l *Lane) open(a *attempt) (*drive, error) {
	ctx := a.ctx
	l.mu.Lock()
	skipLost, rebuild := l.skipLost, l.rebuild
	l.mu.Unlock()
	if err := l.newEpoch(ctx, a); err != nil {
		return nil, err
	}
	for i := range l.cfg.Outputs {
		a.outputs = append(a.outputs, newOutput(l, a, &l.cfg.Outputs[i]))
	}
	cursors, err := l.positions(ctx, a, skipLost)
	if err != nil {
		return nil, err
	}
	opened := &ledger.Open{Lane: l.cfg.Fact.ID, Epoch: a.epoch, Fingerprint: l.fingerprint(), TimeMillis: l.wallMillis()}
	if err := l.findEnds(ctx, opened); err != nil {
		return nil, err
	}
	facts := []ledger.Fact{opened}
	for i := range cursors {
		for p := range cursors[i] {
			// Each epoch has its cursors under its own keys: those of a process
			// that lost its lane can supersede nothing.
			facts = append(facts, &cursors[i][p])
		}
	}
	// Invariant 9: the epoch is durable before the first write, and so is
	// where each partition starts, and ends, before its first fetch.
	if err := l.cfg.Book.Append(ctx, facts...); err != nil {
		return nil, fmt.Errorf("recording lane epoch %d: %w", a.epoch, err)
	}
	for i, o := range a.outputs {
		if err := l.openOutput(ctx, a, o, cursors[i], rebuild); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	l.skipLost, l.rebuild = false, false
	l.mu.Unlock()
	return l.startDrive(ctx, a, a.outputs)
}

// findEnds resolves where a bounded run stops: where it was to stop when it
// first started, so that a crash lets it read no more than it would have
// (Invariant 7), nor more than is there.
func (l *Lane) findEnds(ctx context.Context, opened *ledger.Open) error {
	ends, err := l.cfg.Source.End(ctx, l.cfg.Partitions)
	if err != nil {
		return fmt.Errorf("finding the end of topic %s: %w", l.cfg.Fact.Topic, err)
	}
	before := l.cfg.Book.LaneOpen(l.cfg.Fact.ID)
	opened.EndsBy = l.cfg.EndsBy
	for p, part := range l.cfg.Partitions {
		if ends[p] == connector.Unbounded {
			continue
		}
		if at, ok := before.End(part.ID, l.cfg.EndsBy); ok && !l.cfg.NewEnds {
			ends[p] = min(ends[p], at)
		}
		opened.Ends = append(opened.Ends, ledger.PartitionOffset{Partition: part.ID, Offset: ends[p]})
	}
	l.ends = ends
	return nil
}

// startDrive makes a drive that reads for outputs; the caller wakes it.
func (l *Lane) startDrive(ctx context.Context, a *attempt, outputs []*output) (*drive, error) {
	d, err := l.newDrive(a, outputs)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	s := l.cfg.Slot
	l.mu.Unlock()
	d.member = s.Join(l.cfg.Name, d.run)
	if err := d.open(ctx); err != nil {
		d.member.Leave()
		return nil, err
	}
	return d, nil
}

// newEpoch chooses an epoch above every one that the ledger or a sink knows.
func (l *Lane) newEpoch(ctx context.Context, a *attempt) error {
	epoch, _ := l.cfg.Book.LaneEpoch(l.cfg.Fact.ID)
	for i := range l.cfg.Outputs {
		sink := l.cfg.Outputs[i].Sink
		if sink == nil {
			continue
		}
		e, err := sink.MaxEpoch(ctx, l.cfg.Fact.ID)
		if err != nil {
			return fmt.Errorf("table %s: looking for earlier epochs: %w", l.cfg.Outputs[i].Table.Name, err)
		}
		epoch = max(epoch, e)
	}
	a.epoch = epoch + 1
	return nil
}

// positions gives, by output and partition, where the lane goes on.
func (l *Lane) positions(ctx context.Context, a *attempt, skipLost bool) ([][]ledger.Cursor, error) {
	out := make([][]ledger.Cursor, len(a.outputs))
	var lost LostError
	for i, o := range a.outputs {
		cs, err := l.saved(ctx, o)
		if err != nil {
			return nil, err
		}
		if err := l.check(ctx, o, cs, skipLost, &lost); err != nil {
			return nil, err
		}
		out[i] = make([]ledger.Cursor, len(cs))
		for p := range cs {
			c := cs[p].Cursor
			c.Lane, c.Epoch = l.cfg.Fact.ID, a.epoch
			out[i][p] = c
		}
		for _, line := range startLines(o.cfg.Table.Name, l.cfg.Fact.Topic, cs) {
			l.notice("%s", line)
		}
	}
	if len(lost.Mismatches) > 0 {
		return nil, &lost
	}
	return out, nil
}

// savedCursor is a position and where it comes from.
type savedCursor struct {
	ledger.Cursor
	from  string
	fresh bool // by the table's own start option: it needs no check
	young bool // a partition that came later: from its first record on
}

// saved finds the positions of an output: the restored checkpoint's, the
// ledger's, or the start.
func (l *Lane) saved(ctx context.Context, o *output) ([]savedCursor, error) {
	out := make([]savedCursor, len(l.cfg.Partitions))
	var restored []ledger.Cursor
	if x := o.cfg.Exchange; x != nil {
		var err error
		if restored, err = x.Restored(ctx, l.cfg.Fact.ID); err != nil {
			return nil, fmt.Errorf("reading the checkpoint of %s: %w", o.cfg.Table.Name, err)
		}
	}
	var missing []int
	for p, part := range l.cfg.Partitions {
		at := slices.IndexFunc(restored, func(c ledger.Cursor) bool { return c.Topic == part.TopicID && c.Partition == part.ID })
		if at >= 0 {
			out[p] = savedCursor{Cursor: restored[at], from: "checkpoint"}
			continue
		}
		if c, ok := l.cfg.Book.Cursor(ledger.CursorKey{Output: o.cfg.Table.ID, Topic: part.TopicID, Partition: part.ID}); ok {
			out[p] = savedCursor{Cursor: *c, from: "ledger"}
			continue
		}
		missing = append(missing, p)
	}
	return out, l.starts(ctx, o, out, missing)
}

// starts resolves the start of partitions without a position. One that is new
// in a topic that the output has read before is read from its first record.
func (l *Lane) starts(ctx context.Context, o *output, out []savedCursor, missing []int) error {
	if len(missing) == 0 {
		return nil
	}
	topic := l.cfg.Partitions[0].TopicID
	known := slices.ContainsFunc(l.cfg.Book.Cursors(o.cfg.Table.ID), func(c *ledger.Cursor) bool { return c.Topic == topic })
	parts := make([]connector.Partition, len(missing))
	for i, p := range missing {
		parts[i] = l.cfg.Partitions[p]
	}
	at := make([]connector.Position, len(missing))
	from := "first record of a new partition"
	if !known {
		from = "start of the table"
		var err error
		if at, err = l.cfg.Source.Start(ctx, parts); err != nil {
			return fmt.Errorf("finding the start of topic %s: %w", l.cfg.Fact.Topic, err)
		}
	}
	reasons := slices.Repeat([]string{from}, len(missing))
	if e, ok := l.cfg.Source.(connector.StartExplainer); ok && !known {
		reasons = e.ExplainStart(parts)
	}
	for i, p := range missing {
		out[p] = savedCursor{from: reasons[i], fresh: !known, young: known, Cursor: ledger.Cursor{
			Output: o.cfg.Table.ID, Topic: topic, Partition: parts[i].ID,
			Offset: at[i].Offset, LeaderEpoch: at[i].LeaderEpoch, Watermark: batch.NoWatermark}}
	}
	return nil
}

// check asks the source whether positions still belong to the log. What is
// gone stops the lane, or is counted as lost when the user has said so.
func (l *Lane) check(ctx context.Context, o *output, cs []savedCursor, skipLost bool, lost *LostError) error {
	var at []connector.Position
	var index []int
	for p := range cs {
		if !cs[p].fresh {
			at = append(at, connector.Position{Partition: l.cfg.Partitions[p], LeaderEpoch: cs[p].LeaderEpoch, Offset: cs[p].Offset})
			index = append(index, p)
		}
	}
	if len(at) == 0 {
		return nil
	}
	errs, err := l.cfg.Source.Check(ctx, at)
	if err != nil {
		return fmt.Errorf("checking positions in topic %s: %w", l.cfg.Fact.Topic, err)
	}
	for i, e := range errs {
		if e == nil {
			continue
		}
		var m *connector.MismatchError
		if !errors.As(e, &m) {
			return fmt.Errorf("checking positions in topic %s: %w", l.cfg.Fact.Topic, e)
		}
		c := &cs[index[i]]
		switch {
		case c.young && !m.Recreated:
			c.Offset = m.Earliest
		case skipLost:
			l.skip(o, c, m)
		default:
			lost.add(m)
		}
	}
	return nil
}

func (e *LostError) add(m *connector.MismatchError) {
	for _, x := range e.Mismatches {
		if x.Position == m.Position {
			return // another output of the lane has said so
		}
	}
	e.Mismatches = append(e.Mismatches, m)
}

// skip goes on behind what is gone.
func (l *Lane) skip(o *output, c *savedCursor, m *connector.MismatchError) {
	from, to := c.Offset, m.Earliest
	if from > m.Latest {
		to = m.Latest // the log ends below the position: nothing was lost to us
	}
	if to > from {
		c.Counts = c.Counts.Clone()
		c.Counts.Lost += to - from
		c.LostRanges = offsets.Set{}.Union(c.LostRanges)
		c.LostRanges.Add(from, to)
	}
	c.Offset, c.from = to, "behind lost records"
	l.notice("table %s: topic %s partition %d: offsets %d to %d are lost", o.cfg.Table.Name, l.cfg.Fact.Topic,
		c.Partition, from, max(from, to)-1)
}

// openOutput fences lower epochs, resolves what they left and loads the skip
// set.
func (l *Lane) openOutput(ctx context.Context, a *attempt, o *output, cursors []ledger.Cursor, rebuild bool) error {
	id := connector.ArtifactID{Job: l.scope.Job, Generation: l.scope.Generation, Table: o.cfg.Table.ID,
		Lane: l.cfg.Fact.ID, Epoch: a.epoch}
	o.tracker = NewTracker(id, l.cfg.Partitions, cursors)
	o.cursorAt = l.now()
	if o.exch != nil {
		return l.attach(ctx, a, o, cursors)
	}
	o.tracker.hour = func(part int32, kind ledger.MinuteKind, hour int64) *ledger.Hour {
		p := l.cfg.Partitions[part]
		return l.cfg.Book.Hour(ledger.CursorKey{Output: o.cfg.Table.ID, Topic: p.TopicID, Partition: p.ID}, kind, hour)
	}
	l.mu.Lock()
	memory := l.cfg.Slot.MemoryShare() / int64(len(l.cfg.Outputs))
	l.mu.Unlock()
	w, err := o.cfg.Sink.OpenWriter(ctx, connector.Attempt{ID: id, MemoryBytes: memory})
	if err != nil {
		return fmt.Errorf("table %s: opening a writer: %w", o.cfg.Table.Name, err)
	}
	o.sink.writer = w
	o.sink.checker, _ = w.(connector.RowChecker)
	if o.cfg.Aside {
		var ok bool
		if o.sink.aside, ok = w.(connector.AsideWriter); !ok {
			return fmt.Errorf("BUG: table %s: a %T has no place for late rows", o.cfg.Table.Name, w)
		}
		o.tracker.aside = true
	}
	if f := o.cfg.Late; f != nil {
		if o.sink.late, err = newLateFilter(f, o.sink.schema, l.cfg.Job.Batch); err != nil {
			return fmt.Errorf("table %s: %w", o.cfg.Table.Name, err)
		}
	}
	if err := o.resolve(ctx, rebuild); err != nil {
		return err
	}
	o.settleBefore(ctx)
	if err := l.skipSet(ctx, o); err != nil {
		return err
	}
	o.loadHead()
	o.loadMoves()
	return nil
}

func (l *Lane) attach(ctx context.Context, a *attempt, o *output, cursors []ledger.Cursor) error {
	n, err := newNeed(l.cfg.Job, o.cfg.Nodes[0], o.cfg.Stage)
	if err != nil {
		return err
	}
	o.exch.need = n
	o.exch.idle = watermark.NewIdleness(o.cfg.IdleTimeout.Milliseconds(), len(l.cfg.Partitions))
	o.exch.bound = make([]int64, len(l.cfg.Partitions))
	for p := range o.exch.bound {
		o.exch.bound[p] = batch.NoWatermark
	}
	o.exch.inlet, err = o.cfg.Exchange.Attach(ctx, Attachment{Lane: l.cfg.Fact.ID, Epoch: a.epoch, Topic: l.cfg.Fact.Topic,
		Partitions: l.cfg.Partitions, Start: cursors})
	if err != nil {
		return fmt.Errorf("attaching to %s: %w", o.cfg.Table.Name, err)
	}
	// A partition that was idle before, or is new, may lie behind what the stage
	// has fired: each asks, and a bound that its own watermark has passed says
	// nothing.
	for p := range o.exch.bound {
		if o.exch.bound[p], err = o.exch.inlet.Rejoin(ctx, int32(p)); err != nil {
			return fmt.Errorf("attaching to %s: %w", o.cfg.Table.Name, err)
		}
	}
	return l.deadSet(ctx, o)
}

// skipSet loads committed artefacts and durable dead letters above the
// positions. Invariant 2.
func (l *Lane) skipSet(ctx context.Context, o *output) error {
	n := 0
	above := make([][]*ledger.Input, len(l.cfg.Partitions))
	for _, e := range l.cfg.Book.IntentsOf(o.cfg.Table.ID, func(e *ledger.Entry) bool { return e.Result == ledger.Committed && !e.Rewrite }) {
		for p, part := range l.cfg.Partitions {
			in := e.Input(part.TopicID, part.ID)
			if in != nil && in.Offsets.End() > o.tracker.Cursor(int32(p)).Offset {
				above[p] = append(above[p], in)
				n++
			}
		}
	}
	for p := range above {
		o.tracker.AddCommitted(int32(p), above[p]...)
	}
	if n > 0 {
		l.notice("table %s: %d committed artefacts lie above the resume positions", o.cfg.Table.Name, n)
	}
	return l.deadSet(ctx, o)
}

func (l *Lane) deadSet(ctx context.Context, o *output) error {
	from := map[int32]int64{}
	index := map[int32]int32{}
	for p, part := range l.cfg.Partitions {
		from[part.ID] = o.tracker.Cursor(int32(p)).Offset
		index[part.ID] = int32(p)
	}
	records, err := l.cfg.DeadLetters.Durable(ctx, o.cfg.Table.ID, l.cfg.Partitions[0].TopicID, from)
	if err != nil {
		return fmt.Errorf("table %s: reading its dead letters: %w", o.cfg.Table.Name, err)
	}
	for _, d := range records {
		if p, ok := index[d.Partition]; ok {
			o.tracker.AddDead(p, d)
		}
	}
	return nil
}

// fingerprint is the hash of the lane's chains, so that an edited job is
// noticed where that matters.
func (l *Lane) fingerprint() uint64 {
	h := xxhash.New()
	for _, src := range l.cfg.Sources {
		reach := map[graph.NodeID]bool{src: true}
		for _, n := range l.cfg.Job.Nodes[src:] {
			if n.ID != src && !slices.ContainsFunc(n.Inputs, func(in graph.NodeID) bool { return reach[in] }) {
				continue
			}
			switch n.Op.(type) {
			case *graph.Exchange, *graph.Sink:
			default:
				reach[n.ID] = true
			}
			describe(h, n)
		}
	}
	return h.Sum64()
}

func describe(h hash.Hash, n *graph.Node) {
	fmt.Fprintf(h, "%d %s %v\n", n.ID, graph.OpName(n.Op), n.Inputs)
	switch op := n.Op.(type) {
	case *graph.Project:
		for _, e := range op.Exprs {
			fmt.Fprintln(h, e)
		}
	case *graph.Filter:
		fmt.Fprintln(h, op.Predicate)
	case *graph.Unnest:
		fmt.Fprintln(h, op.Value, op.Outer, op.Ordinality)
	case *graph.Lookup:
		fmt.Fprintln(h, op.Table.Name, op.Columns, op.Outer, op.Condition)
		for _, k := range op.Keys {
			fmt.Fprintln(h, k.Column, k.Value)
		}
	}
	for _, v := range n.UserFunctions() {
		fmt.Fprintln(h, v)
	}
	for _, f := range n.Schema.Fields {
		fmt.Fprintln(h, f.Name, f.Type)
	}
}
