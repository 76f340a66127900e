package lane

import (
	"context"
	"fmt"
	"hash"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
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
		if op.Condition != nil {
			fmt.Fprintln(h, op.Condition)
		}
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
