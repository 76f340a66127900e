package lane_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
)

// until waits for a condition that the lane's goroutines bring about.
func until(t *testing.T, l *life, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			state, err := l.State()
			t.Fatalf("no %s after 20 s: the lane is %s: %v\n%+v", what, state, err, l.Status())
		}
	}
}

var errTimeout = errors.New("i/o timeout")

// failNth makes the n-th operation of a name fail, once.
func failNth(name string, n int, apply bool, err error) lanetest.Fault {
	var mu sync.Mutex
	return func(op string) (error, bool, <-chan struct{}) {
		mu.Lock()
		defer mu.Unlock()
		if op == name {
			if n--; n == 0 {
				return err, apply, nil
			}
		}
		return nil, true, nil
	}
}

func small(topic *lanetest.Topic) setup {
	return setup{topic: topic, tables: []string{"t"}, source: lanetest.SourceOptions{Bounded: true, MaxRecords: 7},
		sink: lanetest.SinkOptions{PartitionBy: "p", Roll: connector.RollPolicy{Bytes: 120}}}
}

// TestEveryOperationFailsOnce lets each operation fail once, with its effect
// (a lost reply) and without, while the process lives on: the next attempt, or
// a look at the outcome, puts it right.
func TestEveryOperationFailsOnce(t *testing.T) {
	topic, parts := filled(3, 40)
	s := small(topic)
	want := expect(parts, false)
	calm := lanetest.NewWorld().Process()
	s.start(t, calm).await(t)
	counts := map[string]int{}
	for _, op := range calm.Operations() {
		counts[op]++
	}
	delete(counts, "ledger") // after an append failed, the process must start anew
	for op, n := range counts {
		for i := 1; i <= n; i++ {
			for _, apply := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s %d effect=%v", op, i, apply), func(t *testing.T) {
					w := lanetest.NewWorld()
					p := w.Process()
					p.SetFault(failNth(op, i, apply, errTimeout))
					l := s.start(t, p)
					l.await(t)
					if state, err := l.State(); state != lane.Finished {
						t.Fatalf("the lane is %s: %v", state, err)
					}
					s.verify(t, w, "t", want)
				})
			}
		}
	}
}

func TestFailedLedgerEndsTheLane(t *testing.T) {
	topic, parts := filled(3, 40)
	s := small(topic)
	appends := 0
	for _, op := range steps(t, &s) {
		if op == "ledger" {
			appends++
		}
	}
	for n := 1; n <= appends; n++ {
		for _, apply := range []bool{false, true} {
			w := lanetest.NewWorld()
			p := w.Process()
			p.SetFault(failNth("ledger", n, apply, errTimeout))
			l := s.start(t, p)
			l.await(t)
			if state, err := l.State(); state != lane.Failed || !errors.Is(err, ledger.ErrBroken) {
				t.Fatalf("append %d: the lane is %s: %v", n, state, err)
			}
			s.start(t, w.Process()).await(t)
			s.verify(t, w, "t", expect(parts, false))
		}
	}
}

// TestZombie lets an old process go on after a new one has taken over.
func TestZombie(t *testing.T) {
	for seed := uint64(1); seed <= 30; seed++ {
		r := rand.New(rand.NewPCG(seed, 5))
		topic, parts := filled(seed, 40)
		s := small(topic)
		w := lanetest.NewWorld()
		old := w.Process()
		op, n := []string{"seal", "publish", "dead"}[r.IntN(3)], 1+r.IntN(3)
		gate, reached := make(chan struct{}), make(chan struct{})
		var once sync.Once
		var mu sync.Mutex
		old.SetFault(func(name string) (error, bool, <-chan struct{}) {
			mu.Lock()
			defer mu.Unlock()
			if name == op {
				n--
			}
			if n <= 0 {
				once.Do(func() { close(reached) })
				return nil, true, gate
			}
			return nil, true, nil
		})
		zombie := s.start(t, old)
		select {
		case <-reached:
		case <-zombie.Done():
			continue // it has not that many operations
		}
		next := s.start(t, w.Process())
		next.await(t)
		close(gate) // the zombie wakes up and goes on
		select {
		case <-zombie.Done():
		default:
			until(t, zombie, "end of the zombie", func() bool {
				state, _ := zombie.State()
				return state != lane.Running && state != lane.Starting
			})
		}
		zombie.Kill()
		// A dead letter that was on its way may come twice; rows may not.
		if got, want := w.Rows("t"), expect(parts, false).rows; !slices.Equal(got, want) {
			t.Errorf("seed %d: table has %d rows, want %d:%s", seed, len(got), len(want), diff(got, want))
		}
		// What the zombie wrote into the ledger is void.
		s.counts(t, w, "t", expect(parts, false))
	}
}

// TestUnknownOutcomeStopsTheLane: a sink that cannot say what became of an
// artefact. Nothing is written again before it can.
func TestUnknownOutcomeStopsTheLane(t *testing.T) {
	topic, parts := filled(4, 30)
	s := small(topic)
	w := lanetest.NewWorld()
	p := w.Process()
	p.CrashAt(1+slices.Index(steps(t, &s), "publish"), true)
	s.start(t, p).await(t)
	before := w.Rows("t")

	p = w.Process()
	p.SetUnknown(true)
	l := s.start(t, p)
	until(t, l, "stop", func() bool { state, _ := l.State(); return state == lane.Stopped })
	_, err := l.State()
	var amb *lane.AmbiguousError
	if !errors.As(err, &amb) || len(amb.Intents) == 0 || amb.Gone {
		t.Fatalf("stopped by %v", err)
	}
	if got := w.Rows("t"); !slices.Equal(got, before) {
		t.Errorf("rows changed while the outcome is unknown")
	}
	p.SetUnknown(false)
	if err := l.Resume(lane.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	l.await(t)
	s.verify(t, w, "t", expect(parts, false))
}

func steps(t *testing.T, s *setup) []string {
	p := lanetest.NewWorld().Process()
	s.start(t, p).await(t)
	return p.Operations()
}

// TestVanishedArtefact: a cleaner took a sealed file whose intent stands. The
// lane names it and its offsets, and rebuilds them only when told to.
func TestVanishedArtefact(t *testing.T) {
	topic, parts := filled(4, 30)
	s := small(topic)
	w := lanetest.NewWorld()
	p := w.Process()
	p.CrashAt(1+slices.Index(steps(t, &s), "publish"), false)
	s.start(t, p).await(t)
	w.Unstage("t")

	l := s.start(t, w.Process())
	until(t, l, "stop", func() bool { state, _ := l.State(); return state == lane.Stopped })
	_, err := l.State()
	var amb *lane.AmbiguousError
	if !errors.As(err, &amb) || !amb.Gone || !strings.Contains(err.Error(), "offsets") {
		t.Fatalf("stopped by %v", err)
	}
	if err := l.Resume(lane.ResumeOptions{Rebuild: true}); err != nil {
		t.Fatal(err)
	}
	l.await(t)
	s.verify(t, w, "t", expect(parts, false))
}

// TestRefusedArtefactIsVoidAndWrittenAgain: a definite refusal ends the intent;
// the rows come again under a new id, and a crash at each step of that changes
// nothing.
func TestRefusedArtefactIsVoidAndWrittenAgain(t *testing.T) {
	topic, parts := filled(5, 60)
	s := small(topic)
	s.sink.PartitionBy = "" // one file an intent: a part of a group may not be refused alone
	want := expect(parts, false)
	refuse := func(p *lanetest.Process) { p.SetFault(failNth("publish", 2, false, connector.ErrRefused)) }
	calm := lanetest.NewWorld()
	p := calm.Process()
	refuse(p)
	s.start(t, p).await(t)
	s.verify(t, calm, "t", want)
	voided := s.equation(t, calm).Intents(func(e *ledger.Entry) bool { return e.Result == ledger.Void })
	if len(voided) != 1 {
		t.Errorf("%d intents are void, want 1", len(voided))
	}
	for n := range p.Operations() {
		w := lanetest.NewWorld()
		p := w.Process()
		refuse(p)
		p.CrashAt(n+1, n%2 == 0)
		s.start(t, p).await(t)
		s.start(t, w.Process()).await(t)
		s.verify(t, w, "t", want)
		if t.Failed() {
			t.Fatalf("crash at operation %d", n+1)
		}
	}
}

// TestRefusedPartOfAGroupStopsTheLane: files that share records stand and fall
// together; with one published and one refused neither way is open.
func TestRefusedPartOfAGroupStopsTheLane(t *testing.T) {
	topic := lanetest.NewTopic("arrays", topicSchema, 1)
	topic.Append(0, lanetest.Record{Rows: [][]any{{int64(1), "p0", true, int64(1)}, {int64(2), "p1", true, int64(2)}}})
	s := small(topic)
	p := lanetest.NewWorld().Process()
	p.SetFault(failNth("publish", 2, false, connector.ErrRefused))
	l := s.start(t, p)
	until(t, l, "stop", func() bool { state, _ := l.State(); return state == lane.Stopped })
	_, err := l.State()
	var amb *lane.AmbiguousError
	if !errors.As(err, &amb) || !amb.Partly {
		t.Errorf("stopped by %v", err)
	}
	l.Kill()
}

// TestKillsFasterThanFiles: files roll by age only, and the process is killed
// long before they reach it, each time. Their age counts on, so that they are
// committed all the same.
func TestKillsFasterThanFiles(t *testing.T) {
	topic := lanetest.NewTopic("slow", topicSchema, 1)
	clock := slot.NewManualClock(time.UnixMilli(1_700_000_000_000))
	s := setup{topic: topic, tables: []string{"t"}, clock: clock,
		sink: lanetest.SinkOptions{Roll: connector.RollPolicy{Age: time.Minute}}}
	w := lanetest.NewWorld()
	id := int64(0)
	for life := 0; life < 30; life++ {
		id++
		topic.Append(0, lanetest.Record{Rows: [][]any{{id, "p", true, id}}})
		l := s.start(t, w.Process())
		until(t, l, "rows", func() bool {
			for _, r := range l.Rows() {
				return r.Counts.Read == id
			}
			return false
		})
		// Seven seconds of life: a head soon after the first file, another after
		// five, no roll.
		for range 28 {
			clock.Advance(250 * time.Millisecond)
			l.Wake()
			l.Quiesce()
		}
		l.Kill()
		if len(w.Rows("t")) > 0 {
			if life < 5 {
				t.Fatalf("committed in life %d: too early for files of a minute", life)
			}
			return
		}
	}
	t.Fatal("30 lives of 7 s and nothing is committed though files are a minute old at most")
}

// TestBlockedTableDoesNotHoldItsNeighbour: table u hangs in a publish; table t
// goes on, and u catches up afterwards.
func TestBlockedTableDoesNotHoldItsNeighbour(t *testing.T) {
	topic, parts := filled(6, 60)
	s := small(topic)
	s.tables = []string{"u", "t"}
	s.source.Bounded = false
	s.sink.Roll.Bytes = 50
	s.options = lane.Options{DetachAfter: 20 * time.Millisecond}
	w := lanetest.NewWorld()
	p := w.Process()
	gate := make(chan struct{})
	p.SetTableFault("u", "publish", gate)
	l := s.start(t, p)
	want := expect(parts, false)
	until(t, l, "rows of t", func() bool {
		l.Roll("t")
		return len(w.Rows("t")) == len(want.rows)
	})
	if n := len(w.Rows("u")); n >= len(want.rows) {
		t.Fatalf("u has %d rows though it hangs", n)
	}
	detached := false
	for _, o := range l.Status().Outputs {
		detached = detached || o.Detached && o.Table == "u"
	}
	if !detached {
		t.Error("u is not shown as detached")
	}
	close(gate)
	until(t, l, "rows of u", func() bool {
		l.Roll("u")
		return len(w.Rows("u")) == len(want.rows)
	})
	more := []lanetest.Record{{Rows: [][]any{{int64(100000), "p0", true, int64(1)}}}}
	until(t, l, "rejoining", func() bool {
		for _, o := range l.Status().Outputs {
			if o.Detached {
				l.Wake()
				return false
			}
		}
		return true
	})
	topic.Append(0, more...)
	parts[0] = append(parts[0], more...)
	until(t, l, "a row after rejoining", func() bool {
		l.Roll("")
		return len(w.Rows("u")) == len(want.rows)+1 && len(w.Rows("t")) == len(want.rows)+1
	})
	if err := l.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.verify(t, w, "t", expect(parts, false))
	s.verify(t, w, "u", expect(parts, false))
}

func TestQuarantineAndResume(t *testing.T) {
	topic, parts := filled(7, 30)
	s := small(topic)
	s.options = lane.Options{QuarantineAfter: 3, RestartMin: time.Millisecond, RestartMax: time.Millisecond}
	w := lanetest.NewWorld()
	p := w.Process()
	p.SetFault(func(op string) (error, bool, <-chan struct{}) {
		if op == "seal" {
			return errTimeout, false, nil
		}
		return nil, true, nil
	})
	l := s.start(t, p)
	until(t, l, "quarantine", func() bool { state, _ := l.State(); return state == lane.Quarantined })
	if _, err := l.State(); !errors.Is(err, errTimeout) {
		t.Errorf("quarantined by %v", err)
	}
	p.SetFault(nil)
	if err := l.Resume(lane.ResumeOptions{}); err != nil {
		t.Fatal(err)
	}
	l.await(t)
	s.verify(t, w, "t", expect(parts, false))
}

// TestPositionBelowTheLog: retention took records that were not read. The lane
// says how many and goes on behind them only when told to; they stand beside
// the equation.
func TestPositionBelowTheLog(t *testing.T) {
	topic := lanetest.NewTopic("short", topicSchema, 1)
	row := func(id int64) lanetest.Record { return lanetest.Record{Rows: [][]any{{id, "p", true, id}}} }
	for i := int64(0); i < 50; i++ {
		topic.Append(0, row(i))
	}
	s := small(topic)
	s.newEnds = true
	w := lanetest.NewWorld()
	s.start(t, w.Process()).await(t)
	for i := int64(50); i < 150; i++ {
		topic.Append(0, row(i))
	}
	topic.Truncate(0, 80)
	l := s.start(t, w.Process())
	until(t, l, "stop", func() bool { state, _ := l.State(); return state == lane.Stopped })
	_, err := l.State()
	var lost *lane.LostError
	if !errors.As(err, &lost) || len(lost.Mismatches) != 1 || lost.Mismatches[0].Lost != 30 {
		t.Fatalf("stopped by %v", err)
	}
	if err := l.Resume(lane.ResumeOptions{SkipLost: true}); err != nil {
		t.Fatal(err)
	}
	l.await(t)
	if n := len(w.Rows("t")); n != 120 {
		t.Errorf("%d rows, want the 50 and the 70 that are left", n)
	}
	book := s.equation(t, w)
	c := book.Cursors(tableID("t"))
	if len(c) != 1 || c[0].Counts.Lost != 30 || c[0].LostRanges.String() != "50-79" {
		t.Errorf("cursor %+v", c)
	}
}

// TestResultDoesNotDependOnBatches: 1,000 messages, every 10th broken, at batch
// sizes 1, 100, 1000. Dropped: 900 rows and 100 filtered in every run; strict:
// what lies before the first broken one.
func TestResultDoesNotDependOnBatches(t *testing.T) {
	topic := lanetest.NewTopic("tenth", topicSchema, 1)
	for i := int64(1); i <= 1000; i++ {
		if i%10 == 0 {
			topic.Append(0, lanetest.Record{Note: batch.CodeMalformed})
		} else {
			topic.Append(0, lanetest.Record{Rows: [][]any{{i, "p", true, i}}})
		}
	}
	for _, size := range []int{1, 100, 1000} {
		s := small(topic)
		s.sink.Roll.Bytes = 3000
		s.source.MaxRecords, s.source.OnError = size, connector.OnErrorDrop
		w := lanetest.NewWorld()
		s.start(t, w.Process()).await(t)
		rows := s.equation(t, w).Rows()
		if n := len(w.Rows("t")); n != 900 || rows[0].Counts.Filtered.Sum() != 100 || len(w.Dead()) != 0 {
			t.Errorf("batches of %d, lenient: %d rows, filtered %v", size, n, rows[0].Counts.Filtered)
		}

		s.source.OnError = connector.OnErrorFail
		w = lanetest.NewWorld()
		l := s.start(t, w.Process())
		l.await(t)
		var f *lane.FailError
		state, err := l.State()
		if n := len(w.Rows("t")); n != 9 || state != lane.Failed || !errors.As(err, &f) || f.Offset != 9 {
			t.Errorf("batches of %d, strict: %d rows, the lane is %s: %v", size, n, state, err)
		}
		s.equation(t, w)
	}
}

func TestNotNullAndRefusedRows(t *testing.T) {
	topic, _ := filled(8, 0)
	topic.Append(0, lanetest.Record{Rows: [][]any{{int64(1), "p", true, int64(1)}}},
		lanetest.Record{Rows: [][]any{{int64(2), "p", true, nil}}},
		lanetest.Record{Rows: [][]any{{int64(3), "p", true, int64(666)}}})
	s := small(topic)
	s.required = true
	s.sink.Refuse = func(row string) bool { return strings.HasSuffix(row, "|666") }
	w := lanetest.NewWorld()
	s.start(t, w.Process()).await(t)
	if got := w.Rows("t"); !slices.Equal(got, []string{"1|p|1"}) {
		t.Errorf("rows %v", got)
	}
	var reasons []string
	for _, d := range w.Dead() {
		reasons = append(reasons, fmt.Sprintf("%d %s %s", d.Offset, d.Reason, d.Column))
	}
	if want := []string{"1 null_in_not_null v", "2 sink_refused "}; !slices.Equal(reasons, want) {
		t.Errorf("dead letters %q, want %q", reasons, want)
	}
	s.notNull = graph.Drop
	w = lanetest.NewWorld()
	s.start(t, w.Process()).await(t)
	if f := s.equation(t, w).Rows()[0].Counts.Filtered; len(w.Dead()) != 1 || len(f) != 1 || f[0].Code != "null_in_not_null" {
		t.Errorf("dropped: filtered %v, %d dead letters", f, len(w.Dead()))
	}
}
