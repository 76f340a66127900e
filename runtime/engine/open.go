package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/runtime/slot"
)

// openTables gives every output its id and claims the sink tables.
func (r *Run) openTables(ctx context.Context) error {
	feeds := r.feeds()
	for _, n := range r.job.Nodes {
		switch op := n.Op.(type) {
		case *graph.Sink:
			if err := r.addSink(ctx, n, op); err != nil {
				return err
			}
		case *graph.Exchange:
			stage := r.consumer(n.ID)
			// The name carries the position from run to run, so it must not depend
			// on node numbers where there is something better.
			name := fmt.Sprintf("exchange %d", n.ID)
			if stage != nil && stage.Path != "" {
				name = "exchange " + stage.Path
				if label := graph.InputLabel(stage.Op, slices.Index(stage.Inputs, n.ID)); label != "" {
					name += "[" + label + "]"
				}
			}
			t := &table{nodes: []graph.NodeID{n.ID}, stage: stage}
			fact, err := r.tableFact(ctx, name, true, feeds[n.ID])
			if err != nil {
				return err
			}
			t.fact = fact
			r.tables[name], r.nodes[n.ID] = t, t
		}
	}
	return nil
}

func (r *Run) addSink(ctx context.Context, n *graph.Node, op *graph.Sink) error {
	name := op.Table.Name
	if t := r.tables[name]; t != nil {
		t.nodes = append(t.nodes, n.ID)
		r.nodes[n.ID] = t
		return nil
	}
	fact, err := r.tableFact(ctx, name, false, nil)
	if err != nil {
		return err
	}
	t := &table{fact: fact, nodes: []graph.NodeID{n.ID}, sinkTable: op.Table, onError: op.OnError, notNull: op.NotNull}
	if err := r.openSink(ctx, t, op); err != nil {
		return err
	}
	r.tables[name], r.nodes[n.ID] = t, t
	t.late = op.Late
	if x, ok := t.sink.(connector.SinkExplainer); ok {
		for _, line := range x.ExplainSink() {
			r.notice("table %s: %s", name, line)
		}
	}
	if pc, ok := t.sink.(connector.PartitionCommitter); ok {
		if p := pc.CommitPolicy(); p.Trigger != connector.NoCommit {
			t.closer = newCloser(r.book, fact, pc, p, r.clock, r.deps.Log)
			if t.closer.tell, err = r.told(ctx, t, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// openSink connects to a table's system, or to that of its home.
func (r *Run) openSink(ctx context.Context, t *table, op *graph.Sink) error {
	if sc, ok := op.Connector.(connector.StandbyConnector); ok {
		sb, err := sc.Standby(op.Table)
		if err != nil {
			return fmt.Errorf("table %s: %w", t.fact.Name, err)
		}
		if sb != nil {
			return r.openHomes(ctx, t, op, sc, sb)
		}
	}
	if active, number := r.book.ActiveHome(t.fact.ID); active != connector.MainHome {
		return fmt.Errorf("table %s: its home is its standby since switch %d, and the job names none any more", t.fact.Name, number)
	}
	return r.patiently(ctx, "table "+t.fact.Name, func(ctx context.Context) (err error) {
		t.sink, err = op.Connector.OpenSink(ctx, op.Table, r.owner())
		return err
	})
}

// owner is who this run is to the tables it writes.
func (r *Run) owner() connector.Owner {
	return connector.Owner{Job: r.deps.Scope.Job, DataDirectory: r.deps.DataDirectory, JobEpoch: r.epoch, JobName: r.job.Name, Adopt: r.deps.Adopt}
}

// tableFact finds an output in the ledger, or enters it.
func (r *Run) tableFact(ctx context.Context, name string, exchange bool, feeds []string) (*ledger.Table, error) {
	old, ok := r.book.Table(name)
	if ok && old.Exchange == exchange && slices.Equal(old.Feeds, feeds) {
		return old, nil
	}
	f := &ledger.Table{Name: name, ID: r.deps.NewUUID(), Exchange: exchange, Feeds: feeds}
	if ok {
		f.ID = old.ID
	}
	if err := r.book.Append(ctx, f); err != nil {
		return nil, fmt.Errorf("recording table %s: %w", name, err)
	}
	return f, nil
}

// feeds gives, by exchange, the sink tables behind it.
func (r *Run) feeds() map[graph.NodeID][]string {
	out := map[graph.NodeID][]string{}
	for _, x := range r.job.Nodes {
		if _, ok := x.Op.(*graph.Exchange); !ok {
			continue
		}
		reach := map[graph.NodeID]bool{x.ID: true}
		for _, n := range r.job.Nodes[x.ID+1:] {
			for _, in := range n.Inputs {
				reach[n.ID] = reach[n.ID] || reach[in]
			}
			if s, ok := n.Op.(*graph.Sink); ok && reach[n.ID] && !slices.Contains(out[x.ID], s.Table.Name) {
				out[x.ID] = append(out[x.ID], s.Table.Name)
			}
		}
		slices.Sort(out[x.ID])
	}
	return out
}

// consumer is the stateful node behind an exchange.
func (r *Run) consumer(x graph.NodeID) *graph.Node {
	for _, n := range r.job.Nodes[x+1:] {
		if slices.Contains(n.Inputs, x) {
			return n
		}
	}
	return nil
}

func (r *Run) openKeyed(ctx context.Context) error {
	env := KeyedEnv{Book: r.book, DeadLetters: r.deps.DeadLetters, DataDirectory: r.deps.DataDirectory, JobEpoch: r.epoch, ClockMicros: r.clockMicros(),
		Clock: r.clock, Log: r.deps.Log, Notice: r.deps.Notice, Sinks: map[graph.NodeID]SinkHandle{}, Outputs: map[graph.NodeID]connector.UUID{}}
	needed := false
	for id, t := range r.nodes {
		if t.sink != nil {
			env.Sinks[id] = SinkHandle{Table: t.fact, Sink: t.sink}
		} else {
			env.Outputs[id] = t.fact.ID
			needed = true
		}
	}
	if !needed {
		return nil
	}
	if err := r.asideOfLanes(); err != nil {
		return err
	}
	if r.deps.Keyed == nil {
		return &graph.NotYetError{Feature: "keyed stages (GROUP BY, windows, wide tables) in this kind of run"}
	}
	var err error
	if r.keyed, err = r.deps.Keyed.Open(ctx, r.job, env); err != nil {
		return fmt.Errorf("restoring the keyed stages: %w", err)
	}
	return nil
}

// openSources opens each table that is read, once.
func (r *Run) openSources(ctx context.Context) error {
	for _, n := range r.job.Nodes {
		op, ok := n.Op.(*graph.Source)
		if !ok {
			continue
		}
		if s := r.sources[op.Table.Name]; s != nil {
			s.nodes = append(s.nodes, n.ID)
			continue
		}
		var src connector.Source
		err := r.patiently(ctx, "table "+op.Table.Name, func(ctx context.Context) (err error) {
			src, err = op.Connector.OpenSource(ctx, op.Table)
			return err
		})
		if err != nil {
			return err
		}
		if err := r.prunePartitions(op, src); err != nil {
			return errors.Join(err, src.Close())
		}
		r.sources[op.Table.Name] = &source{name: op.Table.Name, table: op.Table, nodes: []graph.NodeID{n.ID}, src: src, idle: op.IdleTimeout}
	}
	return nil
}

// openLookups opens each table that is looked up, once for all lanes.
func (r *Run) openLookups(ctx context.Context) error {
	for _, n := range r.job.Nodes {
		op, ok := n.Op.(*graph.Lookup)
		if !ok {
			continue
		}
		var keys []int
		for _, k := range op.Keys {
			keys = append(keys, k.Column)
		}
		var l connector.Lookup
		err := r.patiently(ctx, "table "+op.Table.Name+", for lookups", func(ctx context.Context) (err error) {
			l, err = op.Connector.OpenLookup(ctx, op.Table, keys, op.Columns)
			return err
		})
		if err != nil {
			return err
		}
		r.lookups[n.ID] = l
	}
	return nil
}

// overlap refuses what the ledger cannot keep apart: one topic read as two
// tables into one output, whose positions would share a key.
func overlap(lanes []*laneOf) error {
	type key struct {
		topic connector.UUID
		table *table
	}
	seen := map[key]string{}
	for _, l := range lanes {
		for _, t := range l.tables {
			k := key{l.fact.ID.Topic, t}
			if other, ok := seen[k]; ok && other != l.source.name {
				return &graph.NotYetError{Feature: fmt.Sprintf("topic %s read as two tables (%s and %s) into one table (%s)",
					l.fact.Topic, other, l.source.name, t.fact.Name)}
			}
			seen[k] = l.source.name
		}
	}
	return nil
}

// apart is overlap of the lanes that are to be made of tables and what they list.
func (r *Run) apart(names []string, listed [][]connector.Partition) error {
	var lanes []*laneOf
	for i, name := range names {
		s := r.sources[name]
		var tables []*table
		for _, node := range s.nodes {
			c, err := operator.NewChain(r.job, node, r.lookups)
			if err != nil {
				return err
			}
			for _, out := range c.Outputs() {
				tables = append(tables, r.nodes[out])
			}
		}
		seen := map[connector.UUID]bool{}
		for _, p := range listed[i] {
			if !seen[p.TopicID] {
				seen[p.TopicID] = true
				lanes = append(lanes, &laneOf{source: s, tables: tables, fact: &ledger.Lane{ID: connector.LaneID{Topic: p.TopicID}, Topic: p.Topic}})
			}
		}
	}
	return overlap(lanes)
}

// mixed refuses a table whose partitions are announced and that both lanes and
// keyed stages write: neither alone knows when a partition is complete.
func (r *Run) mixed(lanes []*laneOf) error {
	feeds := r.feeds()
	for _, l := range lanes {
		for _, t := range l.tables {
			if t.closer == nil {
				continue
			}
			for _, names := range feeds {
				if slices.Contains(names, t.fact.Name) {
					return &graph.NotYetError{Feature: fmt.Sprintf("table %s with a partition commit, written both directly and by a keyed query", t.fact.Name)}
				}
			}
		}
	}
	return nil
}

// place puts new lanes into slots by their partitions; measured traffic moves
// them later.
func (r *Run) place(made []*laneOf) {
	r.placing.Lock()
	defer r.placing.Unlock()
	r.mu.Lock()
	lanes := append(slices.Clone(r.lanes), made...)
	r.mu.Unlock()
	loads, now := make([]slot.Load, len(lanes)), make([]int, len(lanes))
	total := 0
	for _, l := range lanes {
		total += len(l.fact.Partitions)
	}
	for i, l := range lanes {
		share := l.share
		if share == 0 {
			share = 0.4 * float64(len(l.fact.Partitions)) / float64(max(total, 1))
		}
		loads[i] = slot.Load{Name: l.Config().Name, Share: share, Pin: -1}
		now[i] = l.slot
		if i >= len(lanes)-len(made) {
			now[i] = -1
		}
	}
	for i, at := range slot.Pack(loads, now, slot.PackOptions{Slots: len(r.slots)}) {
		l := lanes[i]
		if at != now[i] {
			l.slot = at
			l.MoveTo(r.slots[at])
		}
	}
}

// retire ends a lane whose topic is gone for good and starts what reads the
// topic of the same name.
func (r *Run) retire(l *laneOf) error {
	r.finding.Lock()
	defer r.finding.Unlock()
	ctx := r.ctx
	f := *l.fact
	f.Retired = true
	if err := r.book.Append(ctx, &f); err != nil {
		return fmt.Errorf("retiring lane %s: %w", l.Config().Name, err)
	}
	_ = l.Stop(ctx) // it is stopped: there is nothing to finish
	r.mu.Lock()
	heir := l.heir
	l.heir = nil
	r.lanes = slices.DeleteFunc(r.lanes, func(x *laneOf) bool { return x == l })
	r.mu.Unlock()
	next, err := r.newLane(ctx, l.source, newLaneIndex(r.book.Lanes()), heir, nil, true)
	if err != nil || next == nil {
		return err
	}
	r.place([]*laneOf{next})
	r.mu.Lock()
	r.lanes = append(r.lanes, next)
	r.mu.Unlock()
	r.notice("lane %s: the old topic's lane is retired; reading the new one", next.Config().Name)
	next.Start()
	return nil
}

// asideOfLanes refuses tables whose late rows are to be written aside behind keyed stages:
// their rows have no offsets that could be late.
func (r *Run) asideOfLanes() error {
	for _, t := range r.tables {
		if t.closer == nil || !t.closer.policy.Aside {
			continue
		}
		for _, x := range r.tables {
			if x.fact.Exchange && slices.Contains(x.fact.Feeds, t.fact.Name) {
				return fmt.Errorf("table %s: %w", t.fact.Name, &graph.NotYetError{Feature: "late rows aside for a table behind GROUP BY, a window, a wide table or INSERT OVERWRITE"})
			}
		}
	}
	return nil
}
