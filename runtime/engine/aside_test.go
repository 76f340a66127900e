package engine_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
)

// newAsideWorld is a world whose late rows are written aside.
func newAsideWorld(names ...string) *world {
	w := newWorld(names...)
	w.sink.Policy.Aside = true
	return w
}

// row is the text of an event's row.
func row(id, ms int64) string {
	return fmt.Sprintf("%d|%d|1970-01-01 %02d:%02d:%02d.000", id, ms/hour, ms/hour, ms%hour/60_000, ms%60_000/1000)
}

// TestLateRowsGoAside: rows for a partition that is announced go aside, count as late,
// and nothing more comes into it nor is it announced again; the others go on. A record
// whose rows lie in both is written whole.
func TestLateRowsGoAside(t *testing.T) {
	w := newAsideWorld("a")
	w.bounded = false
	w.topics["a"].Append(0, event(1, 0), event(2, hour/2), event(3, 2*hour))
	r := w.start(t, w.Process())
	until(t, r, "close", func(engine.Status) bool { return slices.Contains(w.Announced("all"), "hr=0") })
	both := event(5, hour/4)
	both.Rows = append(both.Rows, event(6, 2*hour).Rows...)
	w.topics["a"].Append(0, event(4, hour/4), both, event(7, 2*hour))
	until(t, r, "rows aside", func(engine.Status) bool {
		r.Roll("")
		return len(w.RowsOf("all", "")) == 2 && len(w.Rows("all")) == 7
	})
	if err := r.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got, want := w.RowsOf("all", ""), []string{row(4, hour/4), row(5, hour/4)}; !slices.Equal(got, want) {
		t.Errorf("aside lie %v, want %v", got, want)
	}
	if got, want := w.RowsOf("all", "hr=0"), []string{row(1, 0), row(2, hour/2)}; !slices.Equal(got, want) {
		t.Errorf("the announced partition has %v, want %v", got, want)
	}
	if got := w.Announced("all"); !slices.Equal(got, []string{"hr=0"}) {
		t.Errorf("announced %v, want once", got)
	}
	book := w.check(t, map[string]int{"all": 7})
	for _, x := range book.Rows() {
		if x.Table.Name == "all" && (x.Counts.Late != 2 || x.Counts.Written != 5 || x.Counts.Read != 7) {
			t.Errorf("counts %+v, want 5 written and 2 late", x.Counts)
		}
	}
}

// TestLateRowsAreOpenUntilTheyAreCommitted: a row that goes aside is late once its file
// is there, and open before: a crash in between takes nothing away that was counted.
func TestLateRowsAreOpenUntilTheyAreCommitted(t *testing.T) {
	w := newAsideWorld("a")
	w.bounded = false
	w.topics["a"].Append(0, event(1, 0), event(2, hour/2), event(3, 2*hour))
	p := w.Process()
	r := w.start(t, p)
	until(t, r, "close", func(engine.Status) bool { return slices.Contains(w.Announced("all"), "hr=0") })
	w.topics["a"].Append(0, event(4, hour/4), event(5, 2*hour), event(6, hour/8))
	counted := func(s engine.Status) (read, late, open int64) {
		for _, x := range s.Tables {
			if x.Name == "all" {
				return x.Counts.Read, x.Counts.Late, x.Open
			}
		}
		return 0, 0, 0
	}
	until(t, r, "reading", func(s engine.Status) bool {
		read, late, open := counted(s)
		if late > int64(len(w.RowsOf("all", ""))) {
			t.Fatalf("%d rows are late, and %d lie aside", late, len(w.RowsOf("all", "")))
		}
		return read == 6 && open == 4
	})
	r.Kill()
	// Nothing of them was committed: the ledger knows nothing of late rows.
	for _, x := range w.check(t, nil).Rows() {
		if x.Counts.Late != 0 {
			t.Errorf("after the crash %d rows are late, and none lies aside", x.Counts.Late)
		}
	}
	r = w.start(t, w.Process())
	until(t, r, "rows aside", func(s engine.Status) bool {
		r.Roll("")
		_, late, open := counted(s)
		return late == 2 && open == 0
	})
	if err := r.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	asideOf(t, w, "all", 6)
}

// asideOf checks what must hold of a table at the end: each row once, in its own
// partition or aside; nothing came into a partition that had been announced; what is
// aside is what the ledger has as late.
func asideOf(t *testing.T, w *world, table string, rows int) int {
	t.Helper()
	book := w.check(t, map[string]int{table: rows})
	if n := w.AfterAnnounced(table); n > 0 {
		t.Errorf("table %s: %d artefacts came into partitions that were announced", table, n)
	}
	aside := len(w.RowsOf(table, ""))
	var late int64
	var id connector.UUID
	for _, x := range book.Rows() {
		if x.Table.Name == table {
			late += x.Counts.Late
			id = x.Table.ID
		}
	}
	if late != int64(aside) {
		t.Errorf("table %s: %d rows lie aside, the ledger has %d late ones", table, aside, late)
	}
	for _, c := range book.Closes(id) {
		if c.TablePartition == "" || c.Version != 1 {
			t.Errorf("table %s: %+v", table, c)
		}
	}
	return aside
}

// TestCrashAtEveryStepOfRowsAside crashes the job at each of its operations while rows
// come for a partition that is announced.
func TestCrashAtEveryStepOfRowsAside(t *testing.T) {
	// begin closes hour 0 in a first, calm life.
	begin := func() *world {
		w := newAsideWorld("a")
		w.bounded = false
		w.topics["a"].Append(0, event(1, 0), event(2, hour/2), event(3, 2*hour))
		r := w.start(t, w.Process())
		until(t, r, "close", func(engine.Status) bool { return slices.Contains(w.Announced("all"), "hr=0") })
		if err := r.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		for i := range int64(6) {
			w.topics["a"].Append(0, event(10+i, (i%2)*2*hour)) // every other one is late
		}
		w.bounded = true
		return w
	}
	end := func(w *world, what string) {
		t.Helper()
		var minutes ledger.MinuteCounts
		book := w.check(t, nil)
		for _, c := range book.Cursors(connector.UUID{}) {
			for _, h := range book.Hours(ledger.CursorKey{Output: c.Output, Topic: c.Topic, Partition: c.Partition}) {
				if x, ok := book.Table("all"); ok && x.ID == c.Output && h.Kind == ledger.EventMinute {
					for i := range h.Minutes {
						minutes.Add(&h.Minutes[i].Counts)
					}
				}
			}
		}
		if minutes[ledger.FateWritten] != 6 || minutes[ledger.FateLate] != 3 {
			t.Errorf("by minute 6 rows are written and 3 late, the ledger says %v", minutes)
		}
		if aside := asideOf(t, w, "all", 9); aside != 3 {
			t.Errorf("%d rows lie aside, want 3", aside)
		}
		if got := w.RowsOf("all", "hr=0"); !slices.Equal(got, []string{row(1, 0), row(2, hour/2)}) {
			t.Errorf("the announced partition has %v", got)
		}
		if t.Failed() {
			t.Fatal(what)
		}
	}
	calm := begin()
	p := calm.Process()
	if err := wait(t, calm.start(t, p)); err != nil {
		t.Fatal(err)
	}
	end(calm, "calm")
	n := len(p.Operations())
	step := 1
	if testing.Short() {
		step = 5
	}
	for at := 1; at <= n; at += step {
		for _, after := range []bool{false, true} {
			w := begin()
			p := w.Process()
			p.CrashAt(at, after)
			w.crashed(t, p)
			if err := wait(t, w.start(t, w.Process())); err != nil {
				t.Fatal(err)
			}
			end(w, fmt.Sprintf("crash at operation %d after=%v", at, after))
		}
	}
}

// crashed runs a process to its crash, or its end.
func (w *world) crashed(t *testing.T, p *lanetest.Process) {
	t.Helper()
	r, err := w.run(t, p)
	if err != nil {
		if !p.Crashed() {
			t.Fatal(err)
		}
		return
	}
	select {
	case <-p.Dying():
		r.Kill()
	case <-r.Done():
	}
}

// TestTortureRowsAside: rows in no order, of two topics, some of two to a record, and
// crashes at random operations: which rows are late depends on when partitions close,
// what must hold of them does not.
func TestTortureRowsAside(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 10
	}
	total := 0
	for seed := uint64(1); seed <= seeds; seed++ {
		r := rand.New(rand.NewPCG(seed, 11))
		w := newAsideWorld("a", "b")
		w.sink.Roll = connector.RollPolicy{Bytes: int64(30 + r.IntN(300))}
		rows := map[string]int{}
		id := int64(0)
		for _, topic := range []string{"a", "b"} {
			for i := range int64(80) {
				at := max(0, i*hour/10+int64(r.IntN(int(5*hour)))-4*hour)
				rec := event(id, at)
				id++
				rows["t_"+topic]++
				if r.IntN(4) == 0 {
					rec.Rows = append(rec.Rows, event(id, max(0, at-int64(r.IntN(int(3*hour))))).Rows...)
					id++
					rows["t_"+topic]++
				}
				w.topics[topic].Append(0, rec)
			}
		}
		for range r.IntN(5) {
			p := w.Process()
			p.CrashAt(1+r.IntN(120), r.IntN(2) == 0)
			w.crashed(t, p)
			if r.IntN(3) == 0 {
				w.Store.Compact()
			}
		}
		if err := wait(t, w.start(t, w.Process())); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		total += asideOf(t, w, "t_a", rows["t_a"]) + asideOf(t, w, "t_b", rows["t_b"]) + asideOf(t, w, "all", rows["t_a"]+rows["t_b"])
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if total == 0 {
		t.Error("no row was late")
	}
	t.Logf("%d rows aside", total)
}
