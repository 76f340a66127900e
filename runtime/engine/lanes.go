package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/operator"
)

// laneIndex is the ledger's lanes, looked up by source and by topic.
type laneIndex struct {
	bySource map[string][]*ledger.Lane
	nextSet  map[connector.UUID]uint32
	sources  map[connector.UUID][]string
}

func newLaneIndex(lanes []*ledger.Lane) *laneIndex {
	x := &laneIndex{bySource: map[string][]*ledger.Lane{}, nextSet: map[connector.UUID]uint32{}, sources: map[connector.UUID][]string{}}
	for _, f := range lanes {
		x.add(f)
	}
	return x
}

func (x *laneIndex) add(f *ledger.Lane) {
	x.bySource[f.Source] = append(x.bySource[f.Source], f)
	x.nextSet[f.ID.Topic] = max(x.nextSet[f.ID.Topic], f.ID.Set+1)
	if !slices.Contains(x.sources[f.ID.Topic], f.Source) {
		x.sources[f.ID.Topic] = append(x.sources[f.ID.Topic], f.Source)
	}
}

// ambiguous reports whether a lane's topic is read as several tables.
func (x *laneIndex) ambiguous(f *ledger.Lane) bool {
	for _, s := range x.sources[f.ID.Topic] {
		if s != f.Source {
			return true
		}
	}
	return false
}

// findLanes makes lanes: those of the ledger, and new ones of partitions that
// no lane has. The first time any error ends it; later it keeps nobody else's new
// partitions from being read: what the ledger has of them is not looked for again.
func (r *Run) findLanes(ctx context.Context, first bool) error {
	r.finding.Lock()
	defer r.finding.Unlock()
	names := make([]string, 0, len(r.sources))
	for name := range r.sources {
		names = append(names, name)
	}
	slices.Sort(names)
	var made []*laneOf
	var errs []error
	index := newLaneIndex(r.book.Lanes())
	listed := make([][]connector.Partition, len(names))
	for i, name := range names {
		list := func(ctx context.Context) (err error) {
			listed[i], err = r.sources[name].src.Partitions(ctx)
			return err
		}
		var err error
		if first {
			err = r.patiently(ctx, "table "+name, list)
		} else {
			err = list(ctx)
		}
		if err != nil {
			err = fmt.Errorf("listing the partitions of table %s: %w", name, err)
			if first {
				return err
			}
		}
		errs = append(errs, err)
	}
	if first {
		// Before anything is recorded: what is refused leaves nothing behind.
		if err := r.apart(names, listed); err != nil {
			return err
		}
	}
	for i, name := range names {
		if errs[i] != nil {
			continue
		}
		ls, err := r.lanesOf(ctx, r.sources[name], listed[i], index, made, first)
		made = append(made, ls...)
		if err != nil && first {
			return err
		}
		errs[i] = err
	}
	r.place(made)
	r.mu.Lock()
	r.lanes = append(r.lanes, made...)
	all := slices.Clone(r.lanes)
	r.mu.Unlock()
	if first {
		return errors.Join(overlap(all), r.mixed(all))
	}
	if !r.stopping.Load() {
		for _, l := range made {
			r.notice("lane %s: %d new partitions", l.Config().Name, len(l.fact.Partitions))
			l.Start()
		}
	}
	return errors.Join(errs...)
}

// lanesOf makes the lanes of one source table; made are those of tables before it. With
// an error come the lanes that could be made.
func (r *Run) lanesOf(ctx context.Context, s *source, parts []connector.Partition, index *laneIndex, made []*laneOf, first bool) ([]*laneOf, error) {
	byTopic := map[connector.UUID][]connector.Partition{}
	var topics []connector.UUID
	for _, p := range parts {
		if byTopic[p.TopicID] == nil {
			topics = append(topics, p.TopicID)
		}
		byTopic[p.TopicID] = append(byTopic[p.TopicID], p)
	}
	taken := map[connector.UUID]map[int32]bool{}
	held := map[string]*laneOf{} // by topic name: waits for a decision
	if !first {
		for _, l := range r.snapshot() {
			if l.source == s && byTopic[l.fact.ID.Topic] == nil {
				held[l.fact.Topic] = l
			}
		}
	}
	var out []*laneOf
	for _, f := range index.bySource[s.name] {
		if f.Retired {
			continue
		}
		if taken[f.ID.Topic] == nil {
			taken[f.ID.Topic] = map[int32]bool{}
		}
		for _, p := range f.Partitions {
			taken[f.ID.Topic][p] = true
		}
		if !first {
			continue
		}
		l, err := r.known(s, f, index, byTopic, parts)
		if err != nil {
			return nil, err
		}
		if l != nil {
			out = append(out, l)
			if byTopic[f.ID.Topic] == nil {
				held[f.Topic] = l
			}
		}
	}
	// A topic that came since the table is read holds nothing that a start option could
	// pass over. The one topic that a table names is the user's choice, any time.
	later := !first || findsTopics(s.src) && r.readBefore(index.bySource[s.name])
	var errs []error
	for _, id := range topics {
		var fresh []connector.Partition
		for _, p := range byTopic[id] {
			if !taken[id][p.ID] {
				fresh = append(fresh, p)
			}
		}
		if len(fresh) == 0 {
			continue
		}
		if l := held[fresh[0].Topic]; l != nil {
			r.mu.Lock()
			l.heir = fresh
			r.mu.Unlock()
			continue
		}
		var others []*laneOf
		if !first {
			others = slices.Concat(r.snapshot(), made, out)
		}
		l, err := r.newLane(ctx, s, index, fresh, others, later)
		if err != nil && first {
			return nil, err
		}
		errs = append(errs, err)
		if l != nil {
			out = append(out, l)
		}
	}
	return out, errors.Join(errs...)
}

// known makes a lane of the ledger. One whose topic is gone is left out; when
// a topic of the same name is there, the lane stops at its positions, which do
// not match it.
func (r *Run) known(s *source, f *ledger.Lane, index *laneIndex, byTopic map[connector.UUID][]connector.Partition, parts []connector.Partition) (*laneOf, error) {
	have := byTopic[f.ID.Topic]
	if have == nil && !slices.ContainsFunc(parts, func(p connector.Partition) bool { return p.Topic == f.Topic }) {
		if r.deps.Apart == nil || !r.deps.Apart(f.ID.Topic) {
			r.notice("topic %s (table %s) is gone; its lane does not run", f.Topic, s.name)
		}
		return nil, nil
	}
	ps := make([]connector.Partition, len(f.Partitions))
	for i, id := range f.Partitions {
		ps[i] = connector.Partition{TopicID: f.ID.Topic, Topic: f.Topic, ID: id}
	}
	return r.makeLane(s, f, index, ps, false)
}

// findsTopics reports a table over topics that nobody has named.
func findsTopics(s connector.Source) bool {
	f, ok := s.(connector.TopicFinder)
	return ok && f.FindsTopics()
}

// readBefore reports whether some table has a position in a topic of lanes.
func (r *Run) readBefore(lanes []*ledger.Lane) bool {
	for _, t := range r.nodes {
		for _, c := range r.book.Cursors(t.fact.ID) {
			if slices.ContainsFunc(lanes, func(f *ledger.Lane) bool { return f.ID.Topic == c.Topic }) {
				return true
			}
		}
	}
	return false
}

// newLane enters a lane for partitions that none has, unless it may not run beside
// others; later: their topic came after the table was first read.
func (r *Run) newLane(ctx context.Context, s *source, index *laneIndex, parts []connector.Partition, others []*laneOf, later bool) (*laneOf, error) {
	slices.SortFunc(parts, func(a, b connector.Partition) int { return cmp.Compare(a.ID, b.ID) })
	topic := parts[0].TopicID
	f := &ledger.Lane{ID: connector.LaneID{Topic: topic, Set: index.nextSet[topic]}, Topic: parts[0].Topic, Source: s.name, Later: later}
	for _, p := range parts {
		f.Partitions = append(f.Partitions, p.ID)
	}
	l, err := r.makeLane(s, f, index, parts, later)
	if err != nil || l == nil {
		return nil, err
	}
	if others != nil {
		if err := overlap(append(others, l)); err != nil {
			return nil, err
		}
	}
	if r.deps.Found != nil {
		if err := r.deps.Found(ctx, topic); err != nil {
			return nil, err
		}
	}
	if err := r.book.Append(ctx, f); err != nil {
		return nil, fmt.Errorf("recording a lane of topic %s: %w", f.Topic, err)
	}
	index.add(f)
	return l, nil
}

// makeLane puts a lane together; nil when its source feeds nothing. young: it was found
// after all tables that it feeds.
func (r *Run) makeLane(s *source, f *ledger.Lane, index *laneIndex, parts []connector.Partition, young bool) (*laneOf, error) {
	l := &laneOf{fact: f, source: s}
	name := f.Topic
	if index.ambiguous(f) {
		name += "/" + s.name
	}
	if f.ID.Set > 0 {
		name = fmt.Sprintf("%s#%d", name, f.ID.Set)
	}
	cfg := lane.Config{Name: name, Fact: f, Young: young, Partitions: parts, Job: r.job, Sources: s.nodes, Source: s.src, Lookups: r.lookups, Book: r.book,
		DeadLetters: r.deps.DeadLetters, Slot: r.slots[0], Zone: r.zone, Log: r.deps.Log, Notice: r.deps.Notice,
		EndsBy: endsBy(s.table), NewEnds: r.deps.NewEnds, ClockMicros: r.clockMicros(), Changed: func() { r.stir(l) }, Dead: r.countDead, Options: r.opts.Lane}
	cfg.Options.Seed = uint64(f.ID.Topic[0])<<8 | uint64(f.ID.Set)
	cfg.Committed = r.committed
	for _, node := range s.nodes {
		c, err := operator.NewChain(r.job, node, r.lookups)
		if err != nil {
			return nil, err
		}
		for _, out := range c.Outputs() {
			if err := r.addOutput(&cfg, l, s, out); err != nil {
				return nil, err
			}
		}
	}
	if len(cfg.Outputs) == 0 {
		return nil, nil
	}
	var err error
	l.Lane, err = lane.New(cfg)
	return l, err
}

// endsBy is the hash of a table's options that say where reading ends.
func endsBy(t *connector.Table) uint64 {
	set := t.Options.Family("scan.bounded.")
	h := xxhash.New()
	for _, k := range slices.Sorted(maps.Keys(set)) {
		fmt.Fprintf(h, "%s=%q\n", k, set[k])
	}
	return h.Sum64()
}

func (r *Run) addOutput(cfg *lane.Config, l *laneOf, s *source, node graph.NodeID) error {
	t := r.nodes[node]
	for i := range cfg.Outputs {
		if cfg.Outputs[i].Table == t.fact {
			if !slices.Contains(cfg.Outputs[i].Nodes, node) {
				cfg.Outputs[i].Nodes = append(cfg.Outputs[i].Nodes, node)
			}
			return nil
		}
	}
	o := lane.OutputConfig{Table: t.fact, Nodes: []graph.NodeID{node}, IdleTimeout: s.idle}
	if t.sink != nil {
		o.Sink, o.SinkTable, o.OnError, o.NotNull, o.Late = t.sink, t.sinkTable, t.onError, t.notNull, t.late
		if t.closer != nil {
			o.PartitionCloser, o.Aside = t.closer, t.closer.policy.Aside
		}
	} else {
		x, err := r.keyed.Exchange(node)
		if err != nil {
			return fmt.Errorf("exchange of %s: %w", t.fact.Name, err)
		}
		o.Exchange, o.Stage = x, t.stage
	}
	cfg.Outputs = append(cfg.Outputs, o)
	l.tables = append(l.tables, t)
	return nil
}
