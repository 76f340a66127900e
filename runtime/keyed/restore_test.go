package keyed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/storage/vfs"
)

// weighed is a store that measures the heap while state files are read: the most that was
// alive at any time, how much was read, and how often each file was opened.
type weighed struct {
	checkpoint.Store
	most   uint64
	read   int
	opened map[string]int
	// written are the bodies of state files that were written; pace is the least head
	// room of the collector while others were read, in per cent.
	written []weak.Pointer[state.Sections]
	pace    int
}

// weighEvery is after how many bytes of a file the heap is measured.
const weighEvery = 512 << 10

func (w *weighed) Read(ctx context.Context, n uint64, name string) ([]byte, error) {
	if name != checkpoint.ManifestFile {
		return nil, fmt.Errorf("%s is read whole", name)
	}
	return w.Store.Read(ctx, n, name)
}

func (w *weighed) Stream(ctx context.Context, n uint64, name string) (io.ReadCloser, error) {
	f, err := w.Store.Stream(ctx, n, name)
	w.opened[name]++
	return &weighing{f, w, 0}, err
}

type weighing struct {
	io.ReadCloser
	w *weighed
	n int
}

func (r *weighing) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	r.w.read += n
	if r.n += n; r.n >= weighEvery {
		r.n = 0
		r.w.most, r.w.pace = max(r.w.most, alive()), min(r.w.pace, headRoom())
	}
	return n, err
}

// alive is the heap that is in use; what is pooled goes with the second collection.
func alive() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// large is a job with much state, over lives of processes.
type large struct {
	t      *testing.T
	w      *world
	p      *process
	book   *ledger.Book
	fs     vfs.FS
	dir    string
	epoch  uint64
	offset int64
	store  *weighed
}

func newLarge(t *testing.T) *large {
	w := newWorld()
	l := &large{t: t, w: w, p: w.process(0, false), fs: vfs.NewOS(), dir: t.TempDir()}
	led, err := ledger.OpenLedger(context.Background(), memLedger{l.p})
	if err != nil {
		t.Fatal(err)
	}
	l.book = led.Book(ledger.Scope{})
	if err := l.book.Append(context.Background(), &ledger.Lane{ID: at(0).lane(), Topic: "a", Source: "a", Partitions: []int32{0}}); err != nil {
		t.Fatal(err)
	}
	return l
}

// open starts the stages at a parallelism with a budget; without one all stays in memory.
func (l *large) open(parallelism int, budget int64) (*Stages, error) {
	b, g := groupJob(l.t, parallelism, []int{0}, call(l.t, "COUNT(*)", "COUNT", eventSchema), call(l.t, "LAST_VALUE(s)", "LAST_VALUE", eventSchema, 3))
	b.job.Batch = false
	b.job.Nodes[g].Op.(*graph.GroupAggregate).Updates = true
	b.sink("out", g)
	l.epoch++
	f := &Factory{Store: func(ledger.Scope) checkpoint.Store { return l.store }, Options: Options{CheckpointInterval: -1, StateBytes: 1 << 40}}
	if budget > 0 {
		f.Options.StateBytes, f.SpillFS, f.SpillDir = budget, l.fs, l.fs.Join(l.dir, "spill")
	}
	l.store = &weighed{Store: checkpoint.NewLocalStore(l.fs, l.fs.Join(l.dir, "checkpoints")), opened: map[string]int{}, pace: 100}
	return f.OpenStages(context.Background(), b.job, engine.KeyedEnv{Book: l.book, DeadLetters: memDead{l.p}, JobEpoch: l.epoch,
		Sinks:   map[graph.NodeID]engine.SinkHandle{3: {Table: &ledger.Table{Name: "out", ID: connector.UUID{3}}, Sink: &memSink{p: l.p, name: "out"}}},
		Outputs: map[graph.NodeID]connector.UUID{1: {7}}})
}

// give hands rows over and takes a checkpoint.
func (l *large) give(st *Stages, batches ...[]event) {
	l.t.Helper()
	ctx := context.Background()
	ex, err := st.Exchange(1)
	if err != nil {
		l.t.Fatal(err)
	}
	f := at(0)
	cursor := func() ledger.Cursor {
		return ledger.Cursor{Topic: f.topic(), Offset: l.offset, Watermark: batch.NoWatermark}
	}
	in, err := ex.Attach(ctx, lane.Attachment{Lane: f.lane(), Epoch: 1, Topic: "a", Partitions: []connector.Partition{{TopicID: f.topic()}}, Start: []ledger.Cursor{cursor()}})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, events := range batches {
		rows := &batch.Batch{Watermark: slices.Repeat([]int64{batch.NoWatermark}, len(events))}
		fill(rows, events)
		n := int64(len(events))
		rows.Runs = []batch.Run{{Rows: int32(n), BaseOffset: l.offset, EndOffset: l.offset + n}}
		l.offset += n
		h := &lane.Handover{Batch: rows, Moved: []lane.Moved{{Watermark: batch.NoWatermark, Cursor: cursor()}}}
		if err := in.HandOver(ctx, h); err != nil {
			l.t.Fatal(err)
		}
	}
	if err := st.Checkpoint(ctx); err != nil {
		l.t.Fatal(err)
	}
}

// rowOf is a row of a key, with a value of 100 bytes.
func rowOf(k int64, s string) event { return event{uid: num(k), s: fmt.Sprintf("%0100d%s", k, s)} }

// rowsOf are rows of keys, one each.
func rowsOf(keys int64) [][]event {
	var all [][]event
	for k := int64(0); k < keys; k += 5000 {
		var rows []event
		for i := range int64(5000) {
			rows = append(rows, rowOf(k+i, "a"))
		}
		all = append(all, rows)
	}
	return all
}

// TestLargeStateIsReadInParts: a restart never holds more than the budget of its tasks and
// a little beside, at any parallelism; each file is read once; groups go on as they were;
// damage in the middle is said with its place.
func TestLargeStateIsReadInParts(t *testing.T) {
	const keys, budget = 60_000, 1 << 20
	l := newLarge(t)
	st, err := l.open(2, 0)
	if err != nil {
		t.Fatal(err)
	}
	l.give(st, rowsOf(keys)...)
	st.Kill()
	var want []string
	counts := map[int64]int{}
	value := "a"
	for i, parallelism := range []int{1, 3, 2} {
		st, base := l.weigh(parallelism, budget)
		if n, limit := int64(l.store.most)-int64(base), int64(parallelism)*budget*5/4+1<<20; l.store.most == 0 || n > limit {
			t.Errorf("parallelism %d: %d bytes were held, at most %d may be", parallelism, n, limit)
		}
		if l.store.read < 6*budget {
			t.Errorf("parallelism %d: there are %d bytes of state in all", parallelism, l.store.read)
		}
		for name, n := range l.store.opened {
			if n != 1 {
				t.Errorf("%s was read %d times", name, n)
			}
		}
		var rows []event
		last := value
		value = string(rune('b' + i))
		for k := int64(0); k < keys; k += 997 {
			rows = append(rows, rowOf(k, value))
			counts[k]++
			want = append(want, fmt.Sprintf("-U %d|%d|%0100d%s", k, counts[k], k, last), fmt.Sprintf("+U %d|%d|%0100d%s", k, counts[k]+1, k, value))
		}
		l.give(st, rows)
		l.published(want, keys)
		st.Kill()
	}
	l.damaged(budget)
}

// weigh opens the stages and gives the heap before it.
func (l *large) weigh(parallelism int, budget int64) (*Stages, uint64) {
	l.t.Helper()
	base := alive()
	st, err := l.open(parallelism, budget)
	if err != nil {
		l.t.Fatal(err)
	}
	return st, base
}

// published waits for rows that change beside those of new keys.
func (l *large) published(want []string, keys int) {
	l.t.Helper()
	slices.Sort(want)
	tick, limit := time.NewTicker(5*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for {
		rows := l.w.rows("out")
		got := slices.DeleteFunc(rows, func(s string) bool { return !strings.HasPrefix(s, "-U") && !strings.HasPrefix(s, "+U") })
		if slices.Equal(got, want) && len(rows) == keys+len(want) {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			l.t.Fatalf("%d rows, %d of them changes, want %d:\n%s", len(rows), len(got), len(want), diff(got, want))
		}
	}
}

// damaged has the next start fail.
func (l *large) damaged(budget int64) {
	l.t.Helper()
	l.damage()
	_, err := l.open(2, budget)
	var abandoned *checkpoint.AbandonedError
	if !errors.As(err, &abandoned) {
		l.t.Fatalf("got %v", err)
	}
	var e *state.CorruptError
	if !errors.As(errors.Join(abandoned.Unreadable...), &e) || e.Section != "out/group" || e.Part < 2 || !strings.Contains(err.Error(), "state file s0-1: ") {
		l.t.Errorf("%v", err)
	}
	if there, err := vfs.Exists(l.fs, l.fs.Join(l.dir, "spill")); there || err != nil {
		l.t.Errorf("the refused start has left state on disk (%v)", err)
	}
}

// damage changes one byte in the middle of a state file.
func (l *large) damage() {
	l.t.Helper()
	ns, err := l.store.List(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	f, err := l.fs.OpenReadWrite(l.fs.Join(l.dir, "checkpoints", fmt.Sprintf("c%d", ns[len(ns)-1]), "s0-1"))
	if err != nil {
		l.t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		l.t.Fatal(err)
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], info.Size()/2); err != nil {
		l.t.Fatal(err)
	}
	b[0] ^= 1
	if _, err := f.WriteAt(b[:], info.Size()/2); err != nil {
		l.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		l.t.Fatal(err)
	}
}
