package lane_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/lane/lanetest"
)

// filled makes a topic of two partitions with random records.
func filled(seed uint64, n int) (*lanetest.Topic, [][]lanetest.Record) {
	r := rand.New(rand.NewPCG(seed, 1))
	topic := lanetest.NewTopic("clicks", topicSchema, 2)
	next := int64(0)
	parts := make([][]lanetest.Record, 2)
	for p := range parts {
		parts[p] = records(r, n, &next)
		topic.Append(p, parts[p]...)
	}
	return topic, parts
}

func TestBoundedLaneEndsByItself(t *testing.T) {
	topic, parts := filled(1, 60)
	s := setup{topic: topic, tables: []string{"t"}, source: lanetest.SourceOptions{Bounded: true, MaxRecords: 7},
		sink: lanetest.SinkOptions{PartitionBy: "p", Roll: connector.RollPolicy{Bytes: 120}}}
	w := lanetest.NewWorld()
	l := s.start(t, w.Process())
	l.await(t)
	if state, err := l.State(); state != lane.Finished || err != nil {
		t.Fatalf("the lane is %s: %v", state, err)
	}
	s.verify(t, w, "t", expect(parts, false))
}

// TestBoundedEndStandsAfterACrash: what is written after the first start is not
// read, however often the run starts again, unless other options say where it
// ends, or every run has its own end.
func TestBoundedEndStandsAfterACrash(t *testing.T) {
	topic, parts := filled(3, 30)
	s := setup{topic: topic, tables: []string{"t"}, source: lanetest.SourceOptions{Bounded: true, MaxRecords: 6},
		sink: lanetest.SinkOptions{PartitionBy: "p", Roll: connector.RollPolicy{Bytes: 120}}}
	for n := 1; n <= 8; n++ {
		w := lanetest.NewWorld()
		p := w.Process()
		p.CrashAt(3*n, true)
		s.topic, parts = filled(3, 30)
		s.start(t, p).await(t)
		more := records(rand.New(rand.NewPCG(4, 1)), 5, new(int64))
		s.topic.Append(0, more...)
		s.start(t, w.Process()).await(t)
		if got, want := w.Rows("t"), expect(parts, false).rows; !slices.Equal(got, want) {
			t.Errorf("crash %d: the run read on:%s", n, diff(got, want))
		}

		s.endsBy = 1
		s.start(t, w.Process()).await(t)
		parts[0] = append(parts[0], more...)
		s.verify(t, w, "t", expect(parts, false))

		s.topic.Append(0, more...)
		s.newEnds = true
		s.start(t, w.Process()).await(t)
		parts[0] = append(parts[0], more...)
		s.verify(t, w, "t", expect(parts, false))
		s.endsBy, s.newEnds = 0, false
	}
}

// TestCrashAtEveryStep crashes the process before and after each of its
// operations (fence, dead letter, seal, intent, publish, committed and cursor,
// head), starts another, and looks at what is there in the end.
func TestCrashAtEveryStep(t *testing.T) {
	topic, parts := filled(2, 30)
	s := setup{topic: topic, tables: []string{"t"}, source: lanetest.SourceOptions{Bounded: true, MaxRecords: 6},
		sink: lanetest.SinkOptions{PartitionBy: "p", Roll: connector.RollPolicy{Bytes: 120}}}
	want := expect(parts, false)

	calm := lanetest.NewWorld().Process()
	s.start(t, calm).await(t)
	ops := calm.Operations()
	for _, op := range []string{"fence", "dead", "seal", "ledger", "publish"} {
		if !contains(ops, op) {
			t.Fatalf("the scenario has no operation %q among %v", op, ops)
		}
	}
	for n := 1; n <= len(ops); n++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s %d after=%v", ops[n-1], n, after), func(t *testing.T) {
				w := lanetest.NewWorld()
				p := w.Process()
				p.CrashAt(n, after)
				s.start(t, p).await(t)
				if !p.Crashed() {
					t.Fatal("the process did not crash")
				}
				s.start(t, w.Process()).await(t)
				s.verify(t, w, "t", want)
			})
		}
	}
}

func contains(list []string, x string) bool {
	for _, y := range list {
		if x == y {
			return true
		}
	}
	return false
}

// TestTortureRandomCrashes crashes again and again at random operations, with random
// batch sizes, two tables and small memory.
func TestTortureRandomCrashes(t *testing.T) {
	seeds := 150
	switch {
	case os.Getenv("MILLRACE_TORTURE") != "":
		seeds = 5000
	case testing.Short():
		seeds = 20
	}
	for seed := uint64(1); seed <= uint64(seeds); seed++ {
		r := rand.New(rand.NewPCG(seed, 7))
		topic, parts := filled(seed, 40)
		s := setup{topic: topic, tables: []string{"t", "u"},
			source: lanetest.SourceOptions{Bounded: true, MaxRecords: 1 + r.IntN(20), Random: rand.New(rand.NewPCG(seed, 3))},
			sink: lanetest.SinkOptions{PartitionBy: "p", Roll: connector.RollPolicy{Bytes: int64(30 + r.IntN(400))},
				MaxRows: []int{0, 25, 60}[r.IntN(3)]}}
		w := lanetest.NewWorld()
		for range r.IntN(6) {
			p := w.Process()
			p.CrashAt(1+r.IntN(40), r.IntN(2) == 0)
			if r.IntN(2) == 0 {
				// Something fails before the crash, too.
				op := []string{"seal", "publish", "dead", "fence", "resolve", "source open"}[r.IntN(6)]
				p.SetFault(failNth(op, 1+r.IntN(4), r.IntN(2) == 0, errTimeout))
			}
			s.start(t, p).await(t)
			if r.IntN(3) == 0 {
				w.Store.Compact()
			}
		}
		s.start(t, w.Process()).await(t)
		s.verify(t, w, "t", expect(parts, false))
		s.verify(t, w, "u", expect(parts, false))
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestEditedBetweenCrashes drops the WHERE between two lives. What was decided
// durably under the old SQL (committed, dead) stays; everything else is read
// under the new one. No row is written twice.
func TestEditedBetweenCrashes(t *testing.T) {
	for seed := uint64(1); seed <= 40; seed++ {
		r := rand.New(rand.NewPCG(seed, 11))
		topic, parts := filled(seed, 40)
		s := setup{topic: topic, tables: []string{"t"}, source: lanetest.SourceOptions{Bounded: true, MaxRecords: 9},
			sink: lanetest.SinkOptions{PartitionBy: "p", Roll: connector.RollPolicy{Bytes: 100}}}
		w := lanetest.NewWorld()
		p := w.Process()
		p.CrashAt(3+r.IntN(15), r.IntN(2) == 0)
		s.start(t, p).await(t)
		s.noWhere = true
		s.start(t, w.Process()).await(t)

		old, edited := expect(parts, false), expect(parts, true)
		count := map[string]int{}
		for _, row := range w.Rows("t") {
			count[row]++
		}
		for row, n := range count {
			if n > 1 {
				t.Errorf("seed %d: row %s is written %d times", seed, row, n)
			}
		}
		for _, row := range old.rows {
			if count[row] == 0 {
				t.Errorf("seed %d: row %s is lost", seed, row)
			}
			delete(count, row)
		}
		for _, row := range edited.rows {
			delete(count, row)
		}
		if len(count) > 0 {
			t.Errorf("seed %d: rows from nowhere: %v", seed, count)
		}
		s.equation(t, w)
	}
}

// TestPartitionsChangeTheirLane: the table that reads the topic has another name
// in the edited job, so its partitions belong to a new lane. What the old one
// left is resolved and skipped all the same.
func TestPartitionsChangeTheirLane(t *testing.T) {
	topic, parts := filled(9, 30)
	s := setup{topic: topic, tables: []string{"t"}, source: lanetest.SourceOptions{Bounded: true, MaxRecords: 6},
		sink: lanetest.SinkOptions{PartitionBy: "p", Roll: connector.RollPolicy{Bytes: 120}}}
	calm := lanetest.NewWorld().Process()
	s.start(t, calm).await(t)
	for n := range calm.Operations() {
		for _, after := range []bool{false, true} {
			w := lanetest.NewWorld()
			p := w.Process()
			p.CrashAt(n+1, after)
			s.set = 0
			s.start(t, p).await(t)
			s.set = 1
			s.start(t, w.Process()).await(t)
			s.verify(t, w, "t", expect(parts, false))
			if t.Failed() {
				t.Fatalf("crash at operation %d after=%v", n+1, after)
			}
		}
	}
}
