package keyed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
)

// captured keeps the stages that a factory makes, to be killed with the process.
type captured struct {
	*Factory
	st *Stages
}

func (c *captured) Open(ctx context.Context, job *graph.Job, env engine.KeyedEnv) (engine.Keyed, error) {
	st, err := c.OpenStages(ctx, job, env)
	c.st = st
	if err != nil {
		return nil, err
	}
	return st, nil
}

// runEngine is one life of the whole engine: lanes of the scenario's feeds and
// the keyed stages behind them.
func (s *scenario) runEngine(p *process, topics map[string]*lanetest.Topic, seed uint64) (*ledger.Book, error) {
	ctx := context.Background()
	led, err := ledger.OpenLedger(ctx, memLedger{p})
	if err != nil {
		return nil, err
	}
	scope := ledger.Scope{Job: connector.UUID{9}, Generation: 1}
	lt := lanetest.NewWorld().Process()
	c := &lanetest.Connector{Sources: map[string]connector.Source{}, Sinks: map[string]connector.Sink{}}
	for name, topic := range topics {
		c.Sources[name] = lt.Source(topic, lanetest.SourceOptions{Bounded: s.job.Bounded, MaxRecords: 1 + int(seed%6)})
	}
	s.job.Options = map[string]string{"lane.restart.min-delay": "1 ms", "lane.restart.max-delay": "4 ms", "lane.linger": "0",
		"lane.quarantine-after": "200"}
	for _, n := range s.job.Nodes {
		switch op := n.Op.(type) {
		case *graph.Source:
			op.Connector, op.Watermark = c, &expr.Column{Index: 1, Name: "ts", T: eventSchema.Fields[1].Type}
			op.Table.Columns, op.Columns = nil, nil
			for i, f := range eventSchema.Fields {
				op.Table.Columns, op.Columns = append(op.Table.Columns, connector.Column{Field: f}), append(op.Columns, i)
			}
		case *graph.Sink:
			op.Connector = c
			c.Sinks[op.Table.Name] = &memSink{p: p, name: op.Table.Name, o: s.sinks[op.Table.Name]}
		}
	}
	opts := s.opts
	opts.CheckpointInterval, opts.RetryMin = 2*time.Millisecond, time.Millisecond
	k := &captured{Factory: &Factory{Store: func(ledger.Scope) checkpoint.Store { return memCheckpoints{p, p.w.checkpoints.Handle()} }, Options: opts}}
	n := byte(0)
	r, err := engine.Start(ctx, s.job, engine.Deps{Ledger: led, Scope: scope, DeadLetters: memDead{p}, Keyed: k,
		NewUUID: func() connector.UUID { n++; return connector.UUID{byte(led.Book(scope).JobEpoch()), n} }})
	if err != nil {
		return led.Book(scope), err
	}
	select {
	case <-r.Done():
	case <-p.dying:
		k.st.Kill()
		r.Kill()
	case <-time.After(20 * time.Second):
		status := r.Status()
		k.st.Kill()
		r.Kill()
		return led.Book(scope), fmt.Errorf("the run does not end: %+v", status)
	}
	return led.Book(scope), r.Err()
}

func topicsOf(feeds []*feed) map[string]*lanetest.Topic {
	out := map[string]*lanetest.Topic{}
	cell := func(x *int64) any {
		if x == nil {
			return nil
		}
		return *x
	}
	for _, f := range feeds {
		topic := lanetest.NewTopic(f.name, eventSchema, len(f.parts))
		for p, rows := range f.parts {
			for _, e := range rows {
				var str any
				if e.s != "" {
					str = e.s
				}
				topic.Append(p, lanetest.Record{Rows: [][]any{{cell(e.uid), e.ts * 1000, cell(e.v), str}}, LogTime: e.ts})
			}
		}
		out[f.name] = topic
	}
	return out
}

// TestEngineWithLanes runs real lanes in front of the stages, through crashes.
func TestEngineWithLanes(t *testing.T) {
	for seed := uint64(1); seed <= 12; seed++ {
		rng := rand.New(rand.NewPCG(seed, 11))
		s := &scenario{t: t, lateness: 20_000, window: &graph.Window{Size: minute},
			feeds: []*feed{randomFeed(rng, "a", 2, 25, 5*minute), randomFeed(rng, "b", 1, 20, 5*minute)},
			sinks: map[string]sinkOptions{"out": {maxRows: 5}}}
		topics := topicsOf(s.feeds)
		w := newWorld()
		var book *ledger.Book
		for life, at := range []int{10 + rng.IntN(40), 10 + rng.IntN(40), 0} {
			s.job = windowJob(t, 1+(int(seed)+life)%3, s.lateness, "a", "b")
			p := w.process(at, seed%2 == 0)
			b, err := s.runEngine(p, topics, seed+uint64(life))
			if !p.dead && err != nil {
				t.Fatalf("seed %d, life %d: %v", seed, life, err)
			}
			book = b
		}
		s.proof(w, book, windowOracle(s), fmt.Sprintf("seed %d", seed))
	}
}

// TestEngineAnnouncesPartitionsOfStages: the checkpoint's watermark closes a
// table partition, and it is announced once, with all of its rows, through
// crashes too.
func TestEngineAnnouncesPartitionsOfStages(t *testing.T) {
	policy := connector.CommitPolicy{Trigger: connector.PartitionTime, Delay: 0, Time: func(tp string) (int64, error) {
		x, err := time.Parse("window_start=2006-01-02 15:04:05.000", tp)
		return x.UnixMilli() + minute, err
	}}
	rows := map[int64]int{}
	f := &feed{name: "a", parts: make([][]event, 2)}
	for i := range int64(60) {
		e := event{uid: num(i), ts: i * 7000}
		f.parts[i%2] = append(f.parts[i%2], e)
		rows[e.ts/minute*minute]++
	}
	for seed := uint64(1); seed <= 6; seed++ {
		s := &scenario{t: t, window: &graph.Window{Size: minute}, feeds: []*feed{f},
			sinks: map[string]sinkOptions{"out": {partitionBy: "window_start", policy: policy, maxRows: 4}}}
		topics := topicsOf(s.feeds)
		w := newWorld()
		for life, at := range []int{int(seed) * 12, 0} {
			s.job = windowJob(t, 1+life, 0, "a")
			p := w.process(at, seed%2 == 0)
			if _, err := s.runEngine(p, topics, seed); err != nil && !p.dead {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
		seen := map[string]int{}
		for _, a := range w.table("out").announced {
			seen[a]++
		}
		for start, n := range rows {
			want := fmt.Sprintf("window_start=%s: %d rows", ts(start), n)
			if seen[want] == 0 {
				t.Errorf("seed %d: not announced: %s", seed, want)
			}
			delete(seen, want)
		}
		if len(seen) > 0 {
			t.Errorf("seed %d: announced before all rows were there: %v", seed, seen)
		}
	}
}
