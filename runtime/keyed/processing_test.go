package keyed

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
	"github.com/millrace/millrace/runtime/types"
)

// clockWorld runs COUNT(*) over windows of processing time by a clock of its own.
type clockWorld struct {
	t      *testing.T
	w      *world
	window graph.Window
	firing graph.Firing
	clock  *slot.ManualClock
	tick   time.Duration // of the checkpoints
	epoch  uint64
	offset int64 // given so far
	st     *Stages
	in     lane.Inlet
}

// start opens the stages, from the last checkpoint if there is one.
func (c *clockWorld) start() {
	c.t.Helper()
	ctx := context.Background()
	c.epoch++
	p := c.w.process(0, false)
	led, err := ledger.OpenLedger(ctx, memLedger{p})
	if err != nil {
		c.t.Fatal(err)
	}
	book := led.Book(ledger.Scope{})
	f := at(0)
	facts := []ledger.Fact{&ledger.Open{Lane: f.lane(), Epoch: c.epoch}}
	if c.epoch == 1 {
		facts = append([]ledger.Fact{&ledger.Lane{ID: f.lane(), Topic: "a", Source: "a", Partitions: []int32{0}}}, facts...)
	}
	if err := book.Append(ctx, facts...); err != nil {
		c.t.Fatal(err)
	}
	job := countJob(c.t, c.window, 0)
	job.Bounded = false
	job.Nodes[2].Op.(*graph.WindowAggregate).Firing = c.firing
	for _, id := range []int{0, 1} {
		job.Nodes[id].Schema = &batch.Schema{Fields: slices.Clone(eventSchema.Fields)}
		job.Nodes[id].Schema.Fields[1].Type = types.NewTimestampLTZ(3)
	}
	factory := &Factory{Store: func(ledger.Scope) checkpoint.Store { return memCheckpoints{p, c.w.checkpoints.Handle()} },
		Options: Options{CheckpointInterval: c.tick}}
	c.st, err = factory.OpenStages(ctx, job, engine.KeyedEnv{Book: book, DeadLetters: memDead{p}, JobEpoch: c.epoch, Clock: c.clock,
		Sinks:   map[graph.NodeID]engine.SinkHandle{3: {Table: &ledger.Table{Name: "out", ID: connector.UUID{3}}, Sink: &memSink{p: p, name: "out"}}},
		Outputs: map[graph.NodeID]connector.UUID{1: {7}}})
	if err != nil {
		c.t.Fatal(err)
	}
	ex, err := c.st.Exchange(1)
	if err != nil {
		c.t.Fatal(err)
	}
	restored, err := ex.Restored(ctx, f.lane())
	if err != nil {
		c.t.Fatal(err)
	}
	from := ledger.Cursor{Topic: f.topic(), Lane: f.lane(), Watermark: batch.NoWatermark}
	if len(restored) > 0 {
		from = restored[0]
	}
	from.Epoch, c.offset = c.epoch, from.Offset
	c.in, err = ex.Attach(ctx, lane.Attachment{Lane: f.lane(), Epoch: c.epoch, Topic: "a", Partitions: []connector.Partition{{TopicID: f.topic()}},
		Start: []ledger.Cursor{from}})
	if err != nil {
		c.t.Fatal(err)
	}
}

// give hands rows over, whose time column and watermarks say something of long ago.
func (c *clockWorld) give(n int, watermark int64) {
	c.t.Helper()
	f := at(0)
	h := &lane.Handover{Batch: &batch.Batch{}, Sel: batch.Sel{}}
	fill(h.Batch, make([]event, n))
	h.Batch.Schema = &batch.Schema{Fields: slices.Clone(eventSchema.Fields)}
	h.Batch.Schema.Fields[1].Type = types.NewTimestampLTZ(3)
	h.Batch.Cols[1].Type = types.NewTimestampLTZ(3)
	h.Batch.Runs = []batch.Run{{Rows: int32(n), BaseOffset: c.offset, EndOffset: c.offset + int64(n)}}
	for i := range n {
		h.Sel, h.Batch.Watermark = append(h.Sel, int32(i)), append(h.Batch.Watermark, 1_000_000)
	}
	c.offset += int64(n)
	h.Moved = []lane.Moved{{Watermark: watermark, Cursor: ledger.Cursor{Topic: f.topic(), Lane: f.lane(), Epoch: c.epoch, Offset: c.offset, Watermark: 1_000_000}}}
	if err := c.in.HandOver(context.Background(), h); err != nil {
		c.t.Fatal(err)
	}
}

func (c *clockWorld) checkpoint() {
	c.t.Helper()
	if err := c.st.Checkpoint(context.Background()); err != nil {
		c.t.Fatal(err)
	}
}

// until waits for what goroutines of the stages do.
func (c *clockWorld) until(what string, ok func() bool) {
	c.t.Helper()
	tick, limit := time.NewTicker(time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			c.t.Fatalf("no %s; rows %v, error %v", what, c.w.rows("out"), c.st.Err())
		}
	}
}

// due waits for a timer at a time.
func (c *clockWorld) due(at time.Time) {
	c.t.Helper()
	c.until("timer", func() bool { next, ok := c.clock.Next(); return ok && next.Equal(at) })
}

func counted(n string, start, end int64) string {
	return n + "|" + ts(start) + "|" + ts(end) + "|" + ts(end-1)
}

// base is 2 minutes after the beginning of an hour.
var clockBase = time.UnixMilli(3_720_000)

func newClockWorld(t *testing.T, w graph.Window) *clockWorld {
	w.Processing, w.Zone = true, time.UTC
	return &clockWorld{t: t, w: newWorld(), window: w, clock: slot.NewManualClock(clockBase), tick: 10 * time.Hour}
}

// TestProcessingTimeEndsByTheClock: a window ends when the clock passes its end,
// without input; rows count where the clock stands, whatever their column, their
// watermark and the stage's say, and the result is published by a checkpoint of its
// own though nothing has come in.
func TestProcessingTimeEndsByTheClock(t *testing.T) {
	c := newClockWorld(t, graph.Window{Size: minute})
	c.tick = 45 * time.Second
	c.start()
	defer func() { c.st.Kill() }()
	c.clock.Advance(10 * time.Second)
	c.give(3, 2_000_000_000_000)
	c.give(2, batch.NoWatermark)
	c.checkpoint()
	if got := c.w.rows("out"); len(got) != 0 {
		t.Fatalf("before the end: %v", got)
	}
	before := c.st.Completed()
	for range 20 {
		var next time.Time
		c.until("timer", func() bool { var ok bool; next, ok = c.clock.Next(); return ok })
		c.clock.Advance(next.Sub(c.clock.Now()))
		c.until("timer", func() bool { at, ok := c.clock.Next(); return ok && at.After(c.clock.Now()) })
		if len(c.w.rows("out")) > 0 {
			break
		}
	}
	want := []string{counted("5", 3_720_000, 3_780_000)}
	c.until("window", func() bool { return slices.Equal(c.w.rows("out"), want) })
	if n := c.st.Completed(); n != before+1 {
		t.Errorf("%d checkpoints for one window", n-before)
	}
}

// TestProcessingTimeThroughACrash: rows behind the last checkpoint are taken again, at
// the time of then; those before it keep theirs, a window that was over meanwhile ends
// at once, and a clock that was set back reopens none.
func TestProcessingTimeThroughACrash(t *testing.T) {
	c := newClockWorld(t, graph.Window{Size: minute})
	c.start()
	c.give(3, batch.NoWatermark)
	c.checkpoint()
	c.give(2, batch.NoWatermark)
	c.st.Kill()
	c.clock.Advance(90 * time.Second)
	c.start()
	if c.offset != 3 {
		t.Fatalf("it goes on at %d", c.offset)
	}
	c.give(2, batch.NoWatermark)
	c.checkpoint()
	want := []string{counted("3", 3_720_000, 3_780_000)}
	c.until("first window", func() bool { return slices.Equal(c.w.rows("out"), want) })
	c.st.Kill()

	c.clock = slot.NewManualClock(clockBase.Add(30 * time.Second)) // back in the first window
	c.start()
	defer func() { c.st.Kill() }()
	c.give(4, batch.NoWatermark)
	c.checkpoint()
	c.due(clockBase.Add(2 * time.Minute))
	c.clock.Advance(90 * time.Second)
	c.until("end of the window", func() bool { return c.st.stirred.Load() })
	c.checkpoint()
	want = append(want, counted("6", 3_780_000, 3_840_000))
	c.until("second window", func() bool { return slices.Equal(c.w.rows("out"), want) })
}

// TestProcessingTimeOfEveryKind: windows that overlap, and sessions, which end the gap
// after their last row and not later.
func TestProcessingTimeOfEveryKind(t *testing.T) {
	for _, k := range []struct {
		name   string
		window graph.Window
		end    time.Duration
		want   []string
	}{
		{"hop", graph.Window{Kind: graph.Hop, Step: minute, Size: 2 * minute}, 2 * time.Minute,
			[]string{counted("3", 3_660_000, 3_780_000), counted("3", 3_720_000, 3_840_000)}},
		{"cumulate", graph.Window{Kind: graph.Cumulate, Step: minute, Size: 2 * minute}, 2 * time.Minute,
			[]string{counted("3", 3_720_000, 3_780_000), counted("3", 3_720_000, 3_840_000)}},
		{"session", graph.Window{Kind: graph.Session, Size: minute}, time.Minute, []string{counted("3", 3_720_000, 3_780_000)}},
	} {
		t.Run(k.name, func(t *testing.T) {
			c := newClockWorld(t, k.window)
			c.start()
			defer func() { c.st.Kill() }()
			c.give(3, batch.NoWatermark)
			c.due(clockBase.Add(time.Minute))
			c.clock.Advance(k.end)
			c.until("end of the windows", func() bool { return c.st.stirred.Load() })
			c.checkpoint()
			c.until("windows", func() bool { got := c.w.rows("out"); slices.Sort(got); return slices.Equal(got, k.want) })
		})
	}
}
