package node

import (
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/storage/vfs"
)

// divide is a job whose rows with a = 0 or b = 0 die; guard says which division
// is guarded.
func (w *world) divide(guard string) string {
	div := func(col string) string {
		if strings.Contains(guard, col) {
			return fmt.Sprintf("CASE WHEN %s = 0 THEN 0 ELSE 100 / %s END", col, col)
		}
		return "100 / " + col
	}
	return source("clicks", "clicks") + w.sink("out") +
		fmt.Sprintf("INSERT INTO `out` SELECT id, %s + %s FROM clicks;", div("a"), div("b"))
}

// TestReplayOfSomeRowsOfARecord: only the rows of an array that died are
// written by a replay, and those that die again are what the next one takes.
func TestReplayOfSomeRowsOfARecord(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	w.produce(n, "clicks", `[{"id":1,"a":1,"b":1},{"id":2,"a":0,"b":1},{"id":3,"a":1,"b":0},{"id":4,"a":2,"b":2}]`, `{"id":5,"a":5,"b":5}`, `nothing`)
	w.run(n, w.options("job", w.divide("")))
	w.wantRows("out", row(1, 200), row(4, 100), row(5, 40))
	w.wantLetters(n, "out clicks 0 [1 2] division_by_zero 0", "out clicks 2 [] malformed_record 0")

	if got, want := w.replay(n, "out", w.divide("a")), (control.Replayed{Table: "out", Rows: 3, Written: 1, Dead: 2}); got != want {
		t.Errorf("replayed %+v, want %+v", got, want)
	}
	w.wantRows("out", row(1, 200), row(2, 100), row(4, 100), row(5, 40))
	w.wantLetters(n, "out clicks 0 [2] division_by_zero 1", "out clicks 2 [] malformed_record 1")

	if got, want := w.replay(n, "out", w.divide("ab")), (control.Replayed{Table: "out", Rows: 2, Written: 1, Dead: 1}); got != want {
		t.Errorf("replayed %+v, want %+v", got, want)
	}
	w.wantRows("out", row(1, 200), row(2, 100), row(3, 100), row(4, 100), row(5, 40))
	w.wantLetters(n, "out clicks 0 [2] division_by_zero 1 replayed", "out clicks 2 [] malformed_record 2")
	if l := w.ledger(n, "out"); l.Read != 6 || l.Written != 3 || l.Dead != 3 || l.Replayed != 2 {
		t.Errorf("ledger %+v", l)
	}
	if got := w.replay(n, "out", w.divide("ab")); got.Written != 0 || got.Dead != 1 {
		t.Errorf("nothing was left but what is malformed: %+v", got)
	}
}

// TestReplayThatHelpsSomeRowsOfAnEntry: rows that died of one cause stand in
// one entry; what a replay has written of it does not come again.
func TestReplayThatHelpsSomeRowsOfAnEntry(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	w.produce(n, "clicks", `[{"id":1,"a":0},{"id":2,"a":0},{"id":3,"a":0},{"id":4,"a":4}]`)
	sql := func(unless string) string {
		return source("clicks", "clicks") + w.sink("out") + "INSERT INTO `out` SELECT id, CASE WHEN " + unless + " THEN 0 ELSE 100 / a END FROM clicks;"
	}
	w.run(n, w.options("job", sql("FALSE")))
	w.wantLetters(n, "out clicks 0 [0 1 2] division_by_zero 0")
	for i, want := range []string{"out clicks 0 [1 2] division_by_zero 1", "out clicks 0 [2] division_by_zero 2", "out clicks 0 [2] division_by_zero 2 replayed"} {
		if got := w.replay(n, "out", sql(fmt.Sprintf("id <= %d", i+1))); got.Written != 1 || got.Dead != int64(2-i) {
			t.Errorf("replayed %+v", got)
		}
		w.wantLetters(n, want)
	}
	w.wantRows("out", row(1, 0), row(2, 0), row(3, 0), row(4, 25))
}

// TestReplayOfATableFedByManyTopics: each topic's letters go through the part
// of the job that reads that topic.
func TestReplayOfATableFedByManyTopics(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "x", 1)
	w.topic(n, "y", 1)
	w.produce(n, "x", `{"id":1,"a":0,"b":1}`, `{"id":2,"a":1,"b":1}`)
	w.produce(n, "y", `{"id":3,"a":0,"b":1}`)
	sql := func(div string) string {
		return source("tx", "x") + source("ty", "y") + w.sink("out") +
			"INSERT INTO `out` SELECT id, " + div + " FROM tx UNION ALL SELECT id + 10, " + div + " FROM ty;"
	}
	w.run(n, w.options("job", sql("1 / a")))
	w.wantRows("out", row(2, 1))
	if got := w.replay(n, "out", sql("a")); got.Written != 2 || got.Rows != 2 {
		t.Errorf("replayed %+v", got)
	}
	w.wantRows("out", row(1, 0), row(2, 1), row(13, 0))
	w.wantLetters(n, "out x 0 [0] division_by_zero 0 replayed", "out y 0 [0] division_by_zero 0 replayed")
	if got := w.replay(n, "out", sql("a")); got.Rows != 0 {
		t.Errorf("replayed twice: %+v", got)
	}
}

// TestReplayUnderPowerCuts cuts the power at operations of a replay, again and
// again; whatever is left, replays bring each row exactly once.
func TestReplayUnderPowerCuts(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	var values, want []string
	for i := range int64(40) {
		a := i % 3
		values = append(values, fmt.Sprintf(`{"id":%d,"a":%d,"b":%d}`, i, a, i%4))
		switch {
		case i%4 == 0: // dies in every replay
		case a == 0:
			want = append(want, row(i, 100/(i%4)))
		default:
			want = append(want, row(i, 100/a+100/(i%4)))
		}
	}
	w.produce(n, "clicks", values...)
	w.run(n, w.options("job", w.divide("")))
	w.close(n)
	before := w.mem
	cuts := 0
	// Files that fail stay so after a power cut: the start waits for them in vain.
	impatient := "SET 'start.retry-timeout' = '2 s';\n" + w.divide("a")
	for at := int64(0); ; at += 3 {
		w.mem = before.CrashClone(vfs.CrashOptions{UnsyncedPercent: 100})
		clone, cut := w.cutAt(at)
		n, err := w.tryOpen()
		if err == nil {
			_, err = n.Replay(w.ctx(), control.Replay{Table: "out", Files: []control.SQLFile{{Name: "job.sql", Text: impatient}}})
			_ = n.Close()
		}
		if !cut.Load() {
			if err != nil {
				t.Fatalf("without a cut: %v", err)
			}
			break
		}
		cuts++
		w.mem = clone()
		w.fs = w.mem
		n = w.open()
		w.replay(n, "out", w.divide("a"))
		w.wantRows("out", want...)
		if l := w.ledger(n, "out"); l.Replayed != 10 || l.Dead != 20 {
			t.Errorf("cut at operation %d: ledger %+v", at, l)
		}
		for _, l := range w.letters(n, control.DeadQuery{}) {
			if first := strings.Contains(l, "zero 0"); first != strings.HasSuffix(l, " replayed") {
				t.Errorf("cut at operation %d: letter %s", at, l)
			}
		}
		w.close(n)
		if t.Failed() {
			t.Fatalf("after a cut at operation %d", at)
		}
	}
	if cuts < 5 {
		t.Errorf("only %d cuts", cuts)
	}
}

// cutAt makes the next node lose its power at the n-th change of its files.
// clone is what is there afterwards.
func (w *world) cutAt(n int64) (clone func() *vfs.MemFS, cut *atomic.Bool) {
	var seen atomic.Int64
	var left atomic.Pointer[vfs.MemFS]
	cut = new(atomic.Bool)
	mem := w.mem
	w.fs = vfs.NewFault(mem, vfs.InjectorFunc(func(op vfs.Op) error {
		if op.Kind&vfs.OpsMutating == 0 {
			return nil
		}
		switch k := seen.Add(1) - 1; {
		case k == n:
			left.Store(mem.CrashClone(vfs.CrashOptions{}))
			cut.Store(true)
			return syscall.EIO
		case k > n:
			return syscall.EIO
		}
		return nil
	}))
	return left.Load, cut
}

// TestGenerationsAreKeptApart: a fresh run reads everything again, so letters
// of the run before are not replayed into it.
func TestGenerationsAreKeptApart(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	w.produce(n, "clicks", `{"id":1,"a":0,"b":1}`, `{"id":2,"a":1,"b":1}`)
	o := w.options("job", w.divide(""))
	w.run(n, o)
	o.Fresh = true
	_, err := n.Start(w.ctx(), o)
	wantInput(t, err, "holds 1 rows of an earlier run")
	o.Append = true
	w.run(n, o)
	w.wantRows("out", row(2, 200), row(2, 200))
	w.wantLetters(n, "out clicks 0 [0] division_by_zero 0")
	if got := w.replay(n, "out", w.divide("a")); got.Written != 1 {
		t.Errorf("replayed %+v", got)
	}
	w.wantRows("out", row(1, 100), row(2, 200), row(2, 200))
}

// TestSharedDeadTopic: two jobs with a table of one name share a topic of dead
// letters and get each their own.
func TestSharedDeadTopic(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	w.produce(n, "clicks", `{"id":1,"a":0,"b":1}`)
	sql := func(dir string) string {
		return "SET 'dead.topic' = 'graveyard';\n" + strings.ReplaceAll(w.divide(""), "/out'", dir+"'")
	}
	w.run(n, w.options("one", sql("/out1")))
	w.run(n, w.options("two", sql("/out2")))
	if got := w.letters(n, control.DeadQuery{Job: "one"}); len(got) != 1 {
		t.Errorf("job one has %v", got)
	}
	_, err := n.Replay(w.ctx(), control.Replay{Table: "out"})
	wantInput(t, err, "2 jobs have a table out")
	_, err = n.Replay(w.ctx(), control.Replay{Table: "out", Job: "two", Files: []control.SQLFile{{Name: "job.sql", Text: strings.ReplaceAll(w.divide("a"), "/out'", "/out2'")}}})
	if err != nil {
		t.Fatal(err)
	}
	w.wantRows("out1")
	w.wantRows("out2", row(1, 100))
	if got := w.letters(n, control.DeadQuery{Job: "one"}); strings.Contains(got[0], "replayed") {
		t.Errorf("job one has %v", got)
	}
	_, err = n.Start(w.ctx(), w.options("one", w.divide("")))
	wantInput(t, err, "cannot change")
	w.topic(n, "compacted", 1, "cleanup.policy", "compact")
	_, err = n.Start(w.ctx(), w.options("three", "SET 'dead.topic' = 'compacted';\n"+w.divide("")))
	wantInput(t, err, "cannot take dead letters")
}

// TestReplayNeedsTheJobToStand: a table has one writer.
func TestReplayNeedsTheJobToStand(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "clicks", 1)
	w.produce(n, "clicks", `{"id":1,"a":0,"b":1}`)
	sql := strings.ReplaceAll(w.divide(""), "'scan.bounded.mode'='latest-offset', ", "")
	r, err := n.Start(w.ctx(), w.options("job", sql))
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.Replay(w.ctx(), control.Replay{Table: "out", Job: "job"})
	wantInput(t, err, "job job is running")
	_, err = n.Start(w.ctx(), w.options("job", sql))
	wantInput(t, err, "job job is running")
	if err := r.Stop(w.ctx()); err != nil {
		t.Fatal(err)
	}
	done, err := n.reserve("job")
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.Start(w.ctx(), w.options("job", sql))
	wantInput(t, err, "are being replayed")
	_, err = n.Replay(w.ctx(), control.Replay{Table: "out", Job: "job"})
	wantInput(t, err, "are being replayed")
	done()
	_, err = n.Replay(w.ctx(), control.Replay{Table: "nowhere"})
	wantInput(t, err, `no table "nowhere"`)
}
