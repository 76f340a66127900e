package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
)

var schema = lanetest.Schema("id", "BIGINT", "hr", "STRING", "ts", "TIMESTAMP")

const hour = int64(3_600_000)

// event is a record of one row in the hour that its time says.
func event(id, ms int64) lanetest.Record {
	return lanetest.Record{Rows: [][]any{{id, fmt.Sprint(ms / hour), ms * 1000}}, LogTime: ms}
}

// world is topics a and b, each into a table of its own and both into "all".
type world struct {
	*lanetest.World
	topics  map[string]*lanetest.Topic
	bounded bool
	latest  bool
	sink    lanetest.SinkOptions
	onError graph.ErrorPolicy
	maxDead *int64
	options map[string]string
	idle    time.Duration
	found   func(ctx context.Context, topic connector.UUID) error
}

func newWorld(names ...string) *world {
	w := &world{World: lanetest.NewWorld(), topics: map[string]*lanetest.Topic{}, bounded: true,
		options: map[string]string{"lane.restart.min-delay": "1 ms", "lane.restart.max-delay": "4 ms", "lane.linger": "0", "lane.quarantine-after": "200"}}
	for _, n := range names {
		w.topics[n] = lanetest.NewTopic(n, schema, 1)
	}
	w.sink = lanetest.SinkOptions{PartitionBy: "hr", Roll: connector.RollPolicy{Bytes: 200},
		Policy: connector.CommitPolicy{Trigger: connector.PartitionTime, Delay: time.Hour, Time: func(tp string) (int64, error) {
			var h int64
			_, err := fmt.Sscanf(tp, "hr=%d", &h)
			return h * hour, err
		}}}
	return w
}

// run starts the job in a process.
func (w *world) run(t *testing.T, p *lanetest.Process) (*engine.Run, error) {
	t.Helper()
	led, err := ledger.OpenLedger(context.Background(), p.Store())
	if err != nil {
		t.Fatal(err)
	}
	c := &lanetest.Connector{Sources: map[string]connector.Source{}, Sinks: map[string]connector.Sink{"all": p.Sink("all", w.sink)}}
	j := &graph.Job{Name: "job", Bounded: w.bounded, Options: w.options}
	add := func(op graph.Op, inputs ...graph.NodeID) graph.NodeID {
		id := graph.NodeID(len(j.Nodes))
		j.Nodes = append(j.Nodes, &graph.Node{ID: id, Op: op, Inputs: inputs, Schema: schema, TimeColumn: 2})
		return id
	}
	names := make([]string, 0, len(w.topics))
	for n := range w.topics {
		names = append(names, n)
	}
	slices.Sort(names)
	var all []graph.NodeID
	for _, n := range names {
		c.Sources["src_"+n] = p.Source(w.topics[n], lanetest.SourceOptions{Bounded: w.bounded, MaxRecords: 5, Latest: w.latest})
		c.Sinks["t_"+n] = p.Sink("t_"+n, w.sink)
		src := add(&graph.Source{Table: lanetest.Table("src_"+n, schema), Connector: c, Columns: []int{0, 1, 2}, IdleTimeout: w.idle,
			Watermark: &expr.Column{Index: 2, Name: "ts", T: schema.Fields[2].Type}})
		add(&graph.Sink{Table: lanetest.Table("t_"+n, schema, 1), Connector: c, OnError: w.onError}, src)
		all = append(all, src)
	}
	union := add(&graph.Union{}, all...)
	add(&graph.Sink{Table: lanetest.Table("all", schema, 1), Connector: c, OnError: w.onError}, union)
	return engine.Start(context.Background(), j, engine.Deps{Ledger: led, Scope: ledger.Scope{Job: connector.UUID{9}},
		DeadLetters: p.DeadLetters(), MaxDead: w.maxDead, Found: w.found})
}

// start is run that must not fail.
func (w *world) start(t *testing.T, p *lanetest.Process) *engine.Run {
	t.Helper()
	r, err := w.run(t, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func wait(t *testing.T, r *engine.Run) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	err := r.Wait(ctx)
	if ctx.Err() != nil {
		t.Fatalf("the run has not ended: %+v", r.Status())
	}
	return err
}

// until waits for a condition of the run's status.
func until(t *testing.T, r *engine.Run, what string, ok func(engine.Status) bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok(r.Status()) {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("no %s after 20 s: %+v", what, r.Status())
		}
	}
}

func (w *world) check(t *testing.T, tables map[string]int) *ledger.Book {
	t.Helper()
	for name, n := range tables {
		rows := w.Rows(name)
		if len(rows) != n {
			t.Errorf("table %s has %d rows, want %d", name, len(rows), n)
		}
		if len(slices.Compact(rows)) != len(rows) {
			t.Errorf("table %s has rows twice", name)
		}
	}
	led, err := ledger.OpenLedger(context.Background(), w.Store)
	if err != nil {
		t.Fatal(err)
	}
	b := led.Book(ledger.Scope{Job: connector.UUID{9}})
	for _, v := range b.Check() {
		t.Errorf("ledger: %s", v)
	}
	return b
}

func TestBoundedJobEndsAndAnnouncesEveryPartition(t *testing.T) {
	w := newWorld("a", "b")
	for i := range int64(40) {
		w.topics["a"].Append(0, event(i, i*hour/10))
		w.topics["b"].Append(0, event(100+i, i*hour/10))
	}
	r := w.start(t, w.Process())
	if err := wait(t, r); err != nil {
		t.Fatal(err)
	}
	w.check(t, map[string]int{"t_a": 40, "t_b": 40, "all": 80})
	for _, table := range []string{"t_a", "t_b", "all"} {
		got := w.Announced(table)
		slices.Sort(got)
		if got = slices.Compact(got); !slices.Equal(got, []string{"hr=0", "hr=1", "hr=2", "hr=3"}) {
			t.Errorf("table %s: announced %v", table, got)
		}
	}
	for _, x := range r.Status().Tables {
		if x.Open != 0 || x.Counts.Open() != 0 || x.Announced != 4 {
			t.Errorf("status of %s: %+v", x.Name, x)
		}
	}
}

// TestCrashAtEveryStepOfACloseAndCommit crashes a whole job at each of its
// operations, the announcements included.
func TestCrashAtEveryStepOfACloseAndCommit(t *testing.T) {
	fill := func() *world {
		w := newWorld("a", "b")
		for i := range int64(12) {
			w.topics["a"].Append(0, event(i, i*hour/6))
			w.topics["b"].Append(0, event(100+i, i*hour/6))
		}
		return w
	}
	calm := fill()
	p := calm.Process()
	if err := wait(t, calm.start(t, p)); err != nil {
		t.Fatal(err)
	}
	n := len(p.Operations())
	step := 1
	if testing.Short() {
		step = 5
	}
	for at := 1; at <= n; at += step {
		for _, after := range []bool{false, true} {
			w := fill()
			p := w.Process()
			p.CrashAt(at, after)
			if r, err := w.run(t, p); err == nil {
				select {
				case <-p.Dying():
					r.Kill()
				case <-r.Done(): // fewer operations this time
				}
			} else if !p.Crashed() {
				t.Fatal(err)
			}
			if err := wait(t, w.start(t, w.Process())); err != nil {
				t.Fatal(err)
			}
			w.check(t, map[string]int{"t_a": 12, "t_b": 12, "all": 24})
			for _, table := range []string{"t_a", "all"} {
				got := w.Announced(table)
				slices.Sort(got)
				if got = slices.Compact(got); !slices.Equal(got, []string{"hr=0", "hr=1"}) {
					t.Errorf("table %s: announced %v", table, got)
				}
			}
			if t.Failed() {
				t.Fatalf("crash at operation %d after=%v", at, after)
			}
		}
	}
}

func TestPartitionClosesWhenEveryTopicHasPassedIt(t *testing.T) {
	w := newWorld("a", "b")
	w.bounded = false
	w.topics["a"].Append(0, event(1, 0), event(2, hour/2), event(3, 2*hour))
	w.topics["b"].Append(0, event(101, 0))
	r := w.start(t, w.Process())
	until(t, r, "close of t_a", func(engine.Status) bool { return slices.Contains(w.Announced("t_a"), "hr=0") })
	if got := w.Announced("all"); len(got) > 0 {
		t.Errorf("announced %v though topic b has not passed it", got)
	}
	w.topics["b"].Append(0, event(102, 2*hour))
	until(t, r, "close of all", func(engine.Status) bool { return slices.Contains(w.Announced("all"), "hr=0") })
	if got := w.Rows("all"); len(got) != 3 {
		t.Errorf("announced with rows %v, want the three of the hour", got)
	}
	// A late row is written and the partition announced once more.
	w.topics["b"].Append(0, event(103, hour/4))
	r.Roll("")
	until(t, r, "second announcement", func(s engine.Status) bool {
		r.Roll("")
		return len(w.Announced("all")) > 1 && slices.Contains(w.Announced("all")[1:], "hr=0")
	})
	if err := r.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.check(t, map[string]int{"all": 6})
}

func TestIdlePartitionDoesNotHoldAClose(t *testing.T) {
	w := newWorld("a", "b")
	w.bounded, w.idle = false, 20*time.Millisecond
	w.topics["a"].Append(0, event(1, 0), event(3, 2*hour))
	w.topics["b"].Append(0, event(101, 0))
	r := w.start(t, w.Process())
	until(t, r, "close of all", func(engine.Status) bool { return slices.Contains(w.Announced("all"), "hr=0") })
	r.Kill()
}

func TestMaxDeadEndsTheRun(t *testing.T) {
	w := newWorld("a")
	limit := int64(3)
	w.maxDead = &limit
	for range 10 {
		w.topics["a"].Append(0, lanetest.Record{Note: batch.CodeMalformed})
	}
	var e *engine.MaxDeadError
	if err := wait(t, w.start(t, w.Process())); !errors.As(err, &e) || e.Dead <= 3 {
		t.Errorf("the run ended with %v", err)
	}
}

// TestDeadRateStopsTheLaneAlone: the lane with the poisoned topic stops before
// those rows become dead letters, with what lies before them committed; the other
// one finishes. The lane resumed, with the rows in its bounds, loses nothing.
func TestDeadRateStopsTheLaneAlone(t *testing.T) {
	w := newWorld("a", "b")
	w.options["dead.max-rate"] = "1"
	for i := range int64(10) {
		w.topics["a"].Append(0, event(i, 0))
		w.topics["b"].Append(0, event(100+i, 0))
	}
	for range 14 { // the source gives five records a batch
		w.topics["a"].Append(0, lanetest.Record{Note: batch.CodeMalformed})
	}
	w.topics["a"].Append(0, event(10, 0))
	err := wait(t, w.start(t, w.Process()))
	var e *lane.DeadRateError
	if !errors.As(err, &e) || e.PerSecond != 1 || e.First.Topic != "a" || e.First.Reason != batch.CodeMalformed {
		t.Fatalf("the run ended with %v", err)
	}
	b := w.check(t, map[string]int{"t_a": 10, "t_b": 10, "all": 20})
	for _, row := range b.Rows() {
		if dead := row.Counts.Dead.Sum(); row.TopicName == "a" && dead != 10 || row.TopicName == "b" && dead != 0 {
			t.Errorf("table %s, topic %s: %d dead rows", row.Table.Name, row.TopicName, dead)
		}
	}
	if err := wait(t, w.start(t, w.Process())); err != nil {
		t.Fatal(err)
	}
	w.check(t, map[string]int{"t_a": 11, "t_b": 10, "all": 21})
}

// TestFailPolicy: what lies before the failing record is committed, it is
// named, and the other topic's lane finishes.
func TestFailPolicy(t *testing.T) {
	w := newWorld("a", "b")
	w.onError = graph.Fail
	bad := event(4, 0)
	bad.Rows[0][0] = lanetest.Bad{Code: batch.CodeOverflow, Message: "too large"}
	w.topics["a"].Append(0, event(1, 0), event(2, 0), event(3, 0), bad, event(5, 0))
	w.topics["b"].Append(0, event(101, 0), event(102, 0))
	err := wait(t, w.start(t, w.Process()))
	var f *lane.FailError
	if !errors.As(err, &f) || f.Offset != 3 || f.Reason != batch.CodeOverflow {
		t.Fatalf("the run ended with %v", err)
	}
	w.check(t, map[string]int{"t_a": 3, "t_b": 2})
}

func TestRecreatedTopicStopsUntilTold(t *testing.T) {
	w := newWorld("a")
	w.bounded = false
	w.topics["a"].Append(0, event(1, 0), event(2, 0))
	r := w.start(t, w.Process())
	until(t, r, "rows", func(engine.Status) bool { r.Roll(""); return len(w.Rows("t_a")) == 2 })
	if err := r.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}

	old := w.topics["a"]
	w.topics["a"] = lanetest.NewTopic("a", schema, 1)
	w.topics["a"].ID[15] = 'x'
	w.topics["a"].Append(0, event(7, 0))
	_ = old
	r = w.start(t, w.Process())
	until(t, r, "stop", func(s engine.Status) bool {
		return len(s.Lanes) == 1 && s.Lanes[0].State == lane.Stopped && strings.Contains(s.Lanes[0].Error, "created again")
	})
	if err := r.Resume("a", lane.ResumeOptions{SkipLost: true}); err != nil {
		t.Fatal(err)
	}
	until(t, r, "new topic's row", func(engine.Status) bool { r.Roll(""); return len(w.Rows("t_a")) == 3 })
	if err := r.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.check(t, map[string]int{"t_a": 3, "all": 3})
}

// TestPartitionsAddedWhileTheJobRuns: start mode latest holds for what was
// there; a new partition is read from its first record.
func TestPartitionsAddedWhileTheJobRuns(t *testing.T) {
	w := newWorld("a")
	w.bounded, w.latest = false, true
	w.options["source.monitor-interval"] = "10 ms"
	w.topics["a"].Append(0, event(1, 0))
	r := w.start(t, w.Process())
	until(t, r, "first lane", func(s engine.Status) bool { return len(s.Lanes) == 1 && s.Lanes[0].State == lane.Running })
	w.topics["a"].AddPartition()
	w.topics["a"].Append(1, event(2, 0), event(3, 0))
	until(t, r, "rows of the new partition", func(engine.Status) bool { r.Roll(""); return len(w.Rows("t_a")) == 2 })
	if err := r.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.check(t, map[string]int{"t_a": 2})
}

// TestFoundPartitionsDoNotWaitForOthers: what cannot be taken yet of one topic keeps
// nobody from reading what was found of another, and is taken later.
func TestFoundPartitionsDoNotWaitForOthers(t *testing.T) {
	w := newWorld("a", "b", "c")
	w.bounded, w.latest = false, true
	w.options["source.monitor-interval"] = "10 ms"
	var refuse atomic.Bool
	w.found = func(_ context.Context, topic connector.UUID) error {
		if refuse.Load() && topic == w.topics["b"].ID {
			return errors.New("not now")
		}
		return nil
	}
	r := w.start(t, w.Process())
	until(t, r, "first lanes", func(s engine.Status) bool { return len(s.Lanes) == 3 })
	refuse.Store(true)
	for i, name := range []string{"a", "b", "c"} {
		w.topics[name].AddPartition()
		w.topics[name].Append(1, event(int64(i), 0))
	}
	rows := func(names ...string) func(engine.Status) bool {
		return func(engine.Status) bool {
			r.Roll("")
			return !slices.ContainsFunc(names, func(n string) bool { return len(w.Rows("t_"+n)) != 1 })
		}
	}
	until(t, r, "rows of the topics that are not refused", rows("a", "c"))
	refuse.Store(false)
	until(t, r, "row of the topic that was refused", rows("b"))
	if err := r.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.check(t, map[string]int{"t_a": 1, "t_b": 1, "t_c": 1, "all": 3})
}

func TestStatusEquationHoldsAtEveryMoment(t *testing.T) {
	w := newWorld("a", "b")
	w.bounded = false
	r := w.start(t, w.Process())
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := range int64(2000) {
			w.topics["a"].Append(0, event(i, i*hour/300))
		}
	}()
	until(t, r, "all rows read", func(s engine.Status) bool {
		for _, row := range s.Rows {
			if row.Counts.Open() != row.Open {
				t.Fatalf("the equation does not hold: %+v", row)
			}
		}
		for _, x := range s.Tables {
			if x.Name == "all" {
				return x.Counts.Read == 2000
			}
		}
		return false
	})
	wg.Wait()
	if err := r.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.check(t, map[string]int{"t_a": 2000, "all": 2000})
}
