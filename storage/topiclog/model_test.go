package topiclog_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// The model test drives a store and an oracle with the same random operations.
// At every sync, and at some other changes of the filesystem, the machine
// "crashes" into a clone that keeps what was synced and a random part of the
// rest; the clone is opened and must agree with the oracle.

// mpart is the oracle's idea of a partition.
type mpart struct {
	id     topiclog.PartitionID
	os     bool
	start  int64
	recs   []mrec // acknowledged and not deleted, by offset
	next   int64  // every offset below was given
	cursor int64  // -1 for none
	notes  []string

	// What the operation under way may or may not have done.
	maybeRecs   []mrec // offset -1: unknown
	maybeStart  int64
	maybeCursor int64
}

type mrec struct {
	offset int64
	value  string
}

type mtopic struct {
	name  string
	id    topiclog.UUID
	parts []*mpart
}

type model struct {
	mu     sync.Mutex
	topics map[string]*mtopic
	// maybeNew and maybeGone are topics being created or deleted.
	maybeNew, maybeGone map[string]bool
}

func (m *model) clone() *model {
	c := &model{topics: map[string]*mtopic{}, maybeNew: maps.Clone(m.maybeNew), maybeGone: maps.Clone(m.maybeGone)}
	for n, t := range m.topics {
		ct := &mtopic{name: t.name, id: t.id}
		for _, p := range t.parts {
			cp := *p
			cp.recs = slices.Clone(p.recs)
			cp.maybeRecs = slices.Clone(p.maybeRecs)
			cp.notes = slices.Clone(p.notes)
			ct.parts = append(ct.parts, &cp)
		}
		c.topics[n] = ct
	}
	return c
}

type driver struct {
	t    *testing.T
	seed uint64
	rng  *rand.Rand
	m    *model
	mem  *vfs.MemFS
	fs   *vfs.FaultFS
	s    *topiclog.Store
	vals int

	crashMu  sync.Mutex
	crashRng *rand.Rand
	crashes  int
	// recoveries counts the crashes during a recovery.
	recoveries int
	ops        int
	log        []string

	// promoting lets partitions have segments of their own.
	promoting bool
	own       int // regions written
}

func (d *driver) fatalf(format string, args ...any) {
	d.t.Helper()
	d.t.Fatalf("seed %d, operation %d: %s\nlast operations: %v", d.seed, d.ops, fmt.Sprintf(format, args...), d.log[max(0, len(d.log)-8):])
}

func (d *driver) options(fsys vfs.FS) topiclog.Options {
	o := small(fsys)
	o.CacheBytes = 1 << 20
	o.JournalFileBytes = 32 << 10
	o.JournalMaxBytes = 256 << 10
	o.GroupBytes = 16 << 10
	if d.promoting {
		// Bursts of a partition have 1 to 30 KB: some go past the journal, some
		// do not, and some of what was promoted falls asleep.
		o = topiclog.Promoting(o, 1, 2000, []int{1, 4000, 8000}[d.seed%3])
	}
	if d.seed%5 > 0 {
		// Blocks of the cache are left in the middle of groups, and used again.
		o = topiclog.SmallBlocks(o, 16<<10)
	}
	if d.seed%2 == 0 {
		// What a rewrite of the manifest writes down is what counts after a
		// crash.
		o = topiclog.RewriteAlways(o)
	}
	return o
}

// inject crashes into a clone before some operations of the filesystem.
func (d *driver) inject(op vfs.Op) error {
	if op.Kind&(vfs.OpSync|vfs.OpSyncDir|vfs.OpRename|vfs.OpWrite|vfs.OpRemove) == 0 {
		return nil
	}
	d.crashMu.Lock()
	defer d.crashMu.Unlock()
	if op.Kind&vfs.OpWrite != 0 && op.Offset > 0 && op.Offset%vfs.DirectAlign == 0 && strings.HasSuffix(op.Path, ".mrs") {
		d.own++
	}
	if op.Kind&(vfs.OpSync|vfs.OpSyncDir) == 0 && d.crashRng.IntN(12) > 0 {
		return nil
	}
	d.m.mu.Lock()
	o := vfs.CrashOptions{UnsyncedPercent: []int{0, 30, 70, 100}[d.crashRng.IntN(4)], Rand: d.crashRng}
	clone := d.mem.CrashClone(o)
	m := d.m.clone()
	d.m.mu.Unlock()
	d.crashes++
	d.verifyCrash(clone, m, fmt.Sprintf("crash %d before %s %s keeping %d%%", d.crashes, op.Name, op.Path, o.UnsyncedPercent))
	return nil
}

// with changes the oracle under its lock.
func (d *driver) with(f func()) {
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	f()
}

func (d *driver) pick() (*mtopic, *mpart) {
	names := slices.Sorted(maps.Keys(d.m.topics))
	if len(names) == 0 {
		return nil, nil
	}
	t := d.m.topics[names[d.rng.IntN(len(names))]]
	return t, t.parts[d.rng.IntN(len(t.parts))]
}

func (d *driver) step() {
	ctx := context.Background()
	d.ops++
	r := d.rng.IntN(100)
	note := func(format string, args ...any) { d.log = append(d.log, fmt.Sprintf(format, args...)) }
	switch t, p := d.pick(); {
	case t == nil || r < 4 && len(d.m.topics) < 6:
		d.createTopic(ctx)
		note("create")
	case r < 6 && len(d.m.topics) > 1:
		note("delete %s", t.name)
		d.with(func() { d.m.maybeGone[t.name] = true })
		if err := d.s.DeleteTopic(ctx, t.name, false); err != nil {
			d.fatalf("deleting: %v", err)
		}
		d.with(func() { delete(d.m.topics, t.name); delete(d.m.maybeGone, t.name) })
	case r < 55:
		note("append to %s", t.name)
		d.appendBurst()
	case d.promoting && r < 63:
		// What had traffic before the flush is promoted, and goes on.
		note("append, flush, append")
		d.appendBurst()
		if err := d.s.Flush(ctx); err != nil {
			d.fatalf("flushing: %v", err)
		}
		d.appendBurst()
	case r < 65:
		note("cursor")
		off := d.rng.Int64N(p.next + 1)
		d.with(func() { p.maybeCursor = off })
		if err := d.s.CommitCursors(ctx, "group", []topiclog.Cursor{{Partition: p.id, Offset: off}}); err != nil {
			d.fatalf("committing a cursor: %v", err)
		}
		d.with(func() { p.cursor = off })
	case r < 70:
		note("flush")
		if err := d.s.Flush(ctx); err != nil {
			d.fatalf("flushing: %v", err)
		}
	case r < 75:
		note("delete records")
		st, err := d.s.State(p.id)
		if err != nil {
			d.fatalf("%v", err)
		}
		before := st.Start + d.rng.Int64N(st.HighWatermark-st.Start+1)
		d.with(func() { p.maybeStart = before })
		if _, err := d.s.DeleteRecords(ctx, p.id, before); err != nil {
			d.fatalf("deleting records: %v", err)
		}
		d.with(func() {
			p.start, p.maybeStart = before, before
			p.recs = slices.DeleteFunc(p.recs, func(r mrec) bool { return r.offset < before })
		})
	case r < 78:
		note("retention")
		if _, err := d.s.RunRetention(ctx); err != nil {
			d.fatalf("retention: %v", err)
		}
	case r < 83:
		note("reopen")
		if err := d.s.Close(); err != nil {
			d.fatalf("closing: %v", err)
		}
		d.s = open(d.t, d.options(d.fs))
		if !d.s.Status().Recovery.Clean {
			d.fatalf("not clean after Close: %+v", d.s.Status().Recovery)
		}
		d.compare(d.s, d.m.clone(), "reopened")
	default:
		note("compare")
		d.compare(d.s, d.m.clone(), "running")
	}
}

func (d *driver) createTopic(ctx context.Context) {
	d.vals++
	name := fmt.Sprintf("topic-%d", d.vals)
	n := 1 + d.rng.IntN(3)
	// Only what is synced before it is acknowledged goes past the journal.
	isOS := d.rng.IntN(4) == 0 && (!d.promoting || len(d.m.topics) > 0)
	config := map[string]string{}
	if isOS {
		config["millrace.durability"] = "os"
	}
	d.with(func() { d.m.maybeNew[name] = true })
	tp, err := d.s.CreateTopic(ctx, topiclog.TopicSpec{Name: name, Partitions: n, Config: config})
	if err != nil {
		d.fatalf("creating: %v", err)
	}
	mt := &mtopic{name: name, id: tp.ID}
	for _, p := range tp.Partitions {
		mt.parts = append(mt.parts, &mpart{id: p.ID, os: isOS, cursor: -1, maybeCursor: -1})
	}
	d.with(func() { d.m.topics[name] = mt; delete(d.m.maybeNew, name) })
}

// appendBurst appends to several partitions at once, so that groups hold several
// entries, also of one partition.
func (d *driver) appendBurst() {
	type outcome struct {
		res topiclog.AppendResult
		err error
	}
	type job struct {
		p    *mpart
		vals []string
		note string
		ch   chan outcome
	}
	var jobs []job
	for range 1 + d.rng.IntN(6) {
		_, p := d.pick()
		j := job{p: p, ch: make(chan outcome, 1)}
		for range 1 + d.rng.IntN(3) {
			d.vals++
			j.vals = append(j.vals, fmt.Sprintf("%d-%0*d", d.vals, 1+d.rng.IntN(3000), 0))
		}
		if d.rng.IntN(5) == 0 {
			j.note = "note of " + j.vals[0][:4]
		}
		jobs = append(jobs, j)
	}
	d.with(func() {
		for _, j := range jobs {
			for _, v := range j.vals {
				j.p.maybeRecs = append(j.p.maybeRecs, mrec{-1, v})
			}
		}
	})
	for _, j := range jobs {
		req := topiclog.AppendRequest{Partition: j.p.id, Batches: batch(d.t, j.vals...)}
		if j.note != "" {
			req.NoteKey, req.Note = "job", []byte(j.note)
		}
		d.s.AppendAsync(req, func(res topiclog.AppendResult, err error) {
			if err == nil {
				d.with(func() { d.acked(j.p, res, j.vals, j.note) })
			}
			j.ch <- outcome{res, err}
		})
	}
	for _, j := range jobs {
		if o := <-j.ch; o.err != nil {
			d.fatalf("appending: %v", o.err)
		}
	}
}

// acked moves an append from what may be there to what must be.
func (d *driver) acked(p *mpart, res topiclog.AppendResult, vals []string, note string) {
	for i, v := range vals {
		p.recs = append(p.recs, mrec{res.BaseOffset + int64(i), v})
	}
	p.next = res.LastOffset + 1
	p.maybeRecs = p.maybeRecs[len(vals):]
	if note != "" {
		p.notes = append(p.notes, note)
	}
}

// longRuns are the first seed, the number of runs and their steps in make
// torture, or with MILLRACE_MODEL_RUNS that many runs.
func longRuns(t *testing.T) (first uint64, runs, steps int) {
	t.Helper()
	if os.Getenv("MILLRACE_TORTURE") == "" {
		t.Skip("set MILLRACE_TORTURE=1 for the long run")
	}
	runs = 40
	if v := os.Getenv("MILLRACE_MODEL_RUNS"); v != "" {
		var err error
		runs, err = strconv.Atoi(v)
		check(t, err)
	}
	return 1000, runs, 150
}

func TestModel(t *testing.T) { modelRuns(t, 1, 4, 60, false) }

// The same with partitions that have segments of their own.
func TestModelOwnSegments(t *testing.T) { modelRuns(t, 1, 4, 50, true) }

func TestTortureModel(t *testing.T) {
	first, runs, steps := longRuns(t)
	modelRuns(t, first, runs, steps, false)
}

func TestTortureModelOwnSegments(t *testing.T) {
	first, runs, steps := longRuns(t)
	modelRuns(t, first, runs, steps, true)
}

func modelRuns(t *testing.T, first uint64, runs, steps int, promoting bool) {
	for seed := first; seed < first+uint64(runs); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			mem := vfs.NewMem()
			d := &driver{t: t, seed: seed, promoting: promoting, rng: rand.New(rand.NewPCG(seed, 1)), crashRng: rand.New(rand.NewPCG(seed, 2)), mem: mem,
				m: &model{topics: map[string]*mtopic{}, maybeNew: map[string]bool{}, maybeGone: map[string]bool{}}}
			d.fs = vfs.NewFault(mem, vfs.InjectorFunc(d.inject))
			d.s = open(t, d.options(d.fs))
			for range steps {
				d.step()
				if t.Failed() {
					d.fatalf("stopped")
				}
			}
			check(t, d.s.Close())
			t.Logf("seed %d: %d operations, %d crashes, %d more during recoveries, %d writes past the journal", seed, d.ops, d.crashes, d.recoveries, d.own)
			if promoting && d.own == 0 {
				t.Error("nothing went past the journal")
			}
		})
	}
}
