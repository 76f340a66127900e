package keyed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/operator"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/runtime/watermark"
	"github.com/millrace/millrace/storage/vfs"
)

// event is an input row: NULL where a pointer is nil.
type event struct {
	uid *int64
	ts  int64 // ms
	v   *int64
	s   string
}

func num(x int64) *int64 { return &x }

// feed is one lane's input: a topic with partitions, read as a table.
type feed struct {
	name  string
	parts [][]event
}

func (f *feed) topic() (u connector.UUID) { copy(u[:], "topic "+f.name); return u }
func (f *feed) lane() connector.LaneID    { return connector.LaneID{Topic: f.topic()} }

var eventSchema = &batch.Schema{Fields: []types.Field{
	{Name: "uid", Type: types.NewBigInt()}, {Name: "ts", Type: types.NewTimestamp(3)},
	{Name: "v", Type: types.NewBigInt()}, {Name: "s", Type: types.NewString()}}}

// builder puts a graph together.
type builder struct{ job *graph.Job }

func newBuilder() *builder {
	return &builder{job: &graph.Job{Name: "test", Bounded: true, Zone: time.UTC}}
}

func (b *builder) add(op graph.Op, schema *batch.Schema, time int, path string, in ...graph.NodeID) graph.NodeID {
	id := graph.NodeID(len(b.job.Nodes))
	b.job.Nodes = append(b.job.Nodes, &graph.Node{ID: id, Op: op, Inputs: in, Schema: schema, Path: path, TimeColumn: time})
	return id
}

func (b *builder) source(name string) graph.NodeID {
	return b.add(&graph.Source{Table: &connector.Table{Name: name}}, eventSchema, 1, "")
}

func (b *builder) exchange(in graph.NodeID, parallelism int, keys ...int) graph.NodeID {
	n := b.job.Nodes[in]
	return b.add(&graph.Exchange{Keys: keys, Parallelism: parallelism}, n.Schema, n.TimeColumn, "", in)
}

func (b *builder) sink(name string, in ...graph.NodeID) graph.NodeID {
	s := b.job.Nodes[in[0]].Schema
	t := &connector.Table{Name: name}
	for _, f := range s.Fields {
		t.Columns = append(t.Columns, connector.Column{Field: f})
	}
	return b.add(&graph.Sink{Table: t}, s, b.job.Nodes[in[0]].TimeColumn, "", in...)
}

func call(t testing.TB, text, name string, schema *batch.Schema, cols ...int) graph.Aggregate {
	t.Helper()
	lib, err := fn.NewLibrary(fn.LibraryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, ok := lib.Aggregate(name)
	if !ok {
		t.Fatalf("no aggregate %s", name)
	}
	a := graph.Aggregate{Name: text, Text: text}
	var args []fn.Arg
	for _, c := range cols {
		col := expr.NewColumn(schema, c)
		a.Args, args = append(a.Args, col), append(args, fn.Arg{Type: col.T})
	}
	if a.Bound, err = f.Bind(args, fn.AggOptions{}); err != nil {
		t.Fatal(err)
	}
	return a
}

func outSchema(keys []types.Field, aggs []graph.Aggregate, window bool) *batch.Schema {
	s := &batch.Schema{Fields: slices.Clone(keys)}
	for _, a := range aggs {
		s.Fields = append(s.Fields, types.Field{Name: a.Name, Type: a.Bound.Return})
	}
	if window {
		for _, n := range []string{"window_start", "window_end", "window_time"} {
			s.Fields = append(s.Fields, types.Field{Name: n, Type: types.NewTimestamp(3)})
		}
	}
	return s
}

// spillDir is where the stages' state goes.
const spillDir = "/data/spill/run"

// scenario is a job with its input, to be run in processes of a world.
type scenario struct {
	t     testing.TB
	job   *graph.Job
	feeds []*feed
	// delay is that of the WATERMARK, ms.
	delay int64
	// window and lateness are what lanes need to decide lateness; nil: nothing is.
	window   *graph.Window
	lateness int64
	sinks    map[string]sinkOptions
	// every is after how many hand-overs, on average, a checkpoint is taken; 0: each.
	every int
	opts  Options
	// spill is where state goes, all of it with every message; nil: nowhere.
	spill vfs.FS
	// kindOf says what a row does to its table; nil: all are new.
	kindOf func(event) batch.Kind
	// hold: the lanes do not say that their partitions have ended, and the stages
	// are stopped when they have handed over.
	hold bool
	// spilled is what went to disk.
	spilled int64
	// wrap replaces the sinks, notice is told what the start does, epoch is the
	// least job epoch.
	wrap   func(*memSink) connector.Sink
	notice func(string)
	epoch  uint64
}

// run is one life: it ends when the job is done or the process has died.
func (s *scenario) run(p *process, seed uint64) (*ledger.Book, error) {
	ctx := context.Background()
	l, err := ledger.OpenLedger(ctx, memLedger{p})
	if err != nil {
		return nil, err
	}
	scope := ledger.Scope{Job: connector.UUID{9}, Generation: 1}
	book := l.Book(scope)
	epoch := max(book.JobEpoch(), s.epoch) + 1
	if err := book.Append(ctx, &ledger.Start{Epoch: epoch}); err != nil {
		return book, err
	}
	env := engine.KeyedEnv{Notice: s.notice, Book: book, DeadLetters: memDead{p}, JobEpoch: epoch, Sinks: map[graph.NodeID]engine.SinkHandle{},
		Outputs: map[graph.NodeID]connector.UUID{}}
	for _, n := range s.job.Nodes {
		switch op := n.Op.(type) {
		case *graph.Exchange:
			id := connector.UUID{0xe, byte(n.ID)}
			env.Outputs[n.ID] = id
			if err := book.Append(ctx, &ledger.Table{Name: fmt.Sprintf("exchange %d", n.ID), ID: id, Exchange: true}); err != nil {
				return book, err
			}
		case *graph.Sink:
			tab := &ledger.Table{Name: op.Table.Name}
			copy(tab.ID[:], "table "+op.Table.Name)
			sink := &memSink{p: p, name: op.Table.Name, o: s.sinks[op.Table.Name]}
			env.Sinks[n.ID] = engine.SinkHandle{Table: tab, Sink: sink}
			if s.wrap != nil {
				env.Sinks[n.ID] = engine.SinkHandle{Table: tab, Sink: s.wrap(sink)}
			}
			if err := book.Append(ctx, tab); err != nil {
				return book, err
			}
		}
	}
	for _, f := range s.feeds {
		parts := make([]int32, len(f.parts))
		for i := range parts {
			parts[i] = int32(i)
		}
		if err := book.Append(ctx, &ledger.Lane{ID: f.lane(), Topic: f.name, Source: f.name, Partitions: parts},
			&ledger.Open{Lane: f.lane(), Epoch: epoch}); err != nil {
			return book, err
		}
	}
	opts := s.opts
	opts.CheckpointInterval, opts.RetryMin = -1, time.Millisecond
	if s.spill != nil {
		opts.SpillBytes, opts.MeasureEvery = 1, 1
	}
	factory := &Factory{Store: func(ledger.Scope) checkpoint.Store { return memCheckpoints{p, p.w.checkpoints.Handle()} }, Options: opts,
		SpillFS: s.spill, SpillDir: spillDir}
	st, err := factory.OpenStages(ctx, s.job, env)
	if err != nil {
		return book, err
	}
	for _, k := range st.tasks {
		if k.spill != nil {
			defer func() { s.spilled += k.spill.Written() }()
		}
	}
	s.lanes(st, epoch, seed)
	if s.hold {
		return book, st.Stop(ctx)
	}
	select {
	case <-st.Done():
	case <-p.dying:
		st.Kill()
	case <-time.After(20 * time.Second):
		status := st.Status()
		st.Kill()
		return book, fmt.Errorf("the stages do not end: %+v", status)
	}
	return book, st.Err()
}

// lanes hands everything over and comes back when that is done or refused.
func (s *scenario) lanes(st *Stages, epoch uint64, seed uint64) {
	var wg sync.WaitGroup
	for id, n := range s.job.Nodes {
		if _, ok := n.Op.(*graph.Exchange); !ok {
			continue
		}
		for k, f := range s.feeds {
			if !slices.Contains(st.stageOf(graph.NodeID(id)).sourcesOf(graph.NodeID(id)), f.name) {
				continue
			}
			e, err := st.Exchange(graph.NodeID(id))
			if err != nil {
				s.t.Fatal(err)
			}
			wg.Add(1)
			go func() {
				defer wg.Done()
				l := &simLane{s: s, f: f, ex: e, st: st, epoch: epoch, rng: rand.New(rand.NewPCG(seed, uint64(k*100+id)))}
				if err := l.run(context.Background()); err != nil {
					select {
					case <-st.Done():
					default:
						if st.Err() == nil && !errors.Is(err, ErrStopped) {
							s.t.Errorf("lane %s: %v", f.name, err)
							st.Kill()
						}
					}
				}
			}()
		}
	}
	wg.Wait()
}

func (s *stagePlan) sourcesOf(id graph.NodeID) []string {
	for _, in := range s.inputs {
		if in.to.node == id && in.lanes {
			return in.sources
		}
	}
	return nil
}

// late is the one rule: by the row's own partition's watermark before it.
func (s *scenario) late(ws *operator.Windows, e event, wm int64) bool {
	if ws == nil || s.job.Batch {
		return false
	}
	return watermark.Late(wm, ws.Latest(e.ts*1000).EndTime, s.lateness)
}

func fill(b *batch.Batch, events []event) {
	b.Schema, b.Len, b.Cols = eventSchema, len(events), make([]batch.Vec, 4)
	for i := range b.Cols {
		b.Cols[i].Reset(eventSchema.Fields[i].Type, len(events))
	}
	put := func(v *batch.Vec, i int, x *int64) {
		if x == nil {
			v.SetNull(i)
		} else {
			v.I64[i] = *x
		}
	}
	for i, e := range events {
		put(&b.Cols[0], i, e.uid)
		b.Cols[1].I64[i] = e.ts * 1000
		put(&b.Cols[2], i, e.v)
		if e.s == "" {
			b.Cols[3].NullRow(i)
		} else {
			b.Cols[3].PutString(i, e.s)
		}
	}
	b.Cols[3].PadOffsets()
}

func ts(ms int64) string {
	return string(types.AppendTimestamp(nil, ms*1000, types.NewTimestamp(3), ' '))
}

func text(x *int64) string {
	if x == nil {
		return "NULL"
	}
	return fmt.Sprint(*x)
}

func diff(got, want []string) string {
	var b []byte
	for _, r := range want {
		if !slices.Contains(got, r) {
			b = fmt.Appendf(b, "  missing  %s\n", r)
		}
	}
	for _, r := range got {
		if !slices.Contains(want, r) {
			b = fmt.Appendf(b, "  too much %s\n", r)
		}
	}
	if len(b) == 0 {
		b = fmt.Appendf(b, "  %d rows, want %d (some twice)\n", len(got), len(want))
	}
	return string(b)
}

// randomFeed makes events with some disorder, NULLs and equal times.
func randomFeed(rng *rand.Rand, name string, parts, n int, span int64) *feed {
	f := &feed{name: name, parts: make([][]event, parts)}
	for p := range f.parts {
		base := -span / 3
		for i := range n {
			e := event{ts: base + int64(i)*span/int64(n) + rng.Int64N(span/5) - span/10, s: fmt.Sprintf("%s%d.%d", name, p, i)}
			if rng.IntN(8) > 0 {
				e.uid = num(rng.Int64N(5))
			}
			if rng.IntN(6) > 0 {
				e.v = num(rng.Int64N(1000) - 500)
			}
			if rng.IntN(6) == 0 {
				e.s = ""
			}
			f.parts[p] = append(f.parts[p], e)
		}
	}
	return f
}

// batchVec makes BIGINT literals.
type batchVec struct{ v batch.Vec }

func (b *batchVec) of(x int64) expr.Expr {
	b.v.Reset(types.NewBigInt().NotNull(), 1)
	b.v.I64[0] = x
	c := new(batch.Vec)
	c.SetConst(&b.v, 0, 1)
	return expr.NewLiteral(c)
}
