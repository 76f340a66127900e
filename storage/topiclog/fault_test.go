package topiclog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// faultRun drives a fixed workload, in which operations may fail, and remembers
// what was acknowledged.
type faultRun struct {
	t      *testing.T
	ids    []topiclog.PartitionID
	acked  map[topiclog.PartitionID][]string // "offset:value"
	cursor int64
	errs   []error
}

func (r *faultRun) note(err error) bool {
	if err != nil {
		r.errs = append(r.errs, err)
	}
	return err == nil
}

func (r *faultRun) run(o topiclog.Options) {
	ctx := context.Background()
	r.acked, r.cursor = map[topiclog.PartitionID][]string{}, -1
	s, err := topiclog.Open(o)
	if !r.note(err) {
		return
	}
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 2})
	if r.note(err) {
		for _, p := range tp.Partitions {
			r.ids = append(r.ids, p.ID)
		}
		for i := range 12 {
			id := r.ids[i%2]
			v := fmt.Sprintf("value-%d-%s", i, strings.Repeat("y", 500))
			res, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(r.t, v)})
			if r.note(err) {
				r.acked[id] = append(r.acked[id], fmt.Sprintf("%d:%s", res.BaseOffset, v))
			}
			if i%5 == 4 {
				r.note(s.Flush(ctx))
			}
			if i == 7 && r.note(s.CommitCursors(ctx, "g", []topiclog.Cursor{{Partition: id, Offset: 2}})) {
				r.cursor = 2
			}
		}
		_, err = s.CreateTopic(ctx, topiclog.TopicSpec{Name: "gone", Partitions: 1})
		if r.note(err) {
			r.note(s.DeleteTopic(ctx, "gone", false))
		}
		_, err = s.RunRetention(ctx)
		r.note(err)
	}
	r.note(s.Close())
}

// check opens a store after the faults are over: everything acknowledged is
// there, at its offset.
func (r *faultRun) check(o topiclog.Options, what string) {
	r.t.Helper()
	s, err := topiclog.Open(o)
	if err != nil {
		r.t.Errorf("%s: opening: %v", what, err)
		return
	}
	for id, want := range r.acked {
		got := readAll(r.t, s, id, 0)
		for _, w := range want {
			if !slices.Contains(got, w) {
				r.t.Errorf("%s: partition %d: acknowledged %.20s is lost; errors were %v", what, id, w, r.errs)
				break
			}
		}
	}
	if cs := s.Cursors("g"); r.cursor >= 0 && (len(cs) != 1 || cs[0].Offset != r.cursor) {
		r.t.Errorf("%s: cursors %v, want %d", what, cs, r.cursor)
	}
	for _, d := range s.Status().Recovery.Damage {
		if d.Kind == topiclog.DamageRotten {
			r.t.Errorf("%s: a failed operation looks like rot: %s", what, d)
		}
	}
	if err := s.Close(); err != nil {
		r.t.Errorf("%s: closing: %v", what, err)
	}
}

func TestFailEachOperation(t *testing.T) {
	for _, fault := range []struct {
		name  string
		err   error
		short int64
		count int64
	}{
		{"EIO", syscall.EIO, 0, 1},
		{"EIO after a part", syscall.EIO, 1000, 1},
		{"EIO from then on", syscall.EIO, 0, -1},
		{"ENOSPC", syscall.ENOSPC, 100, 1},
		{"ENOSPC ten times", syscall.ENOSPC, 0, 10},
	} {
		t.Run(fault.name, func(t *testing.T) { failEachOperation(t, fault.err, fault.short, fault.count, false) })
		t.Run(fault.name+", own segments", func(t *testing.T) { failEachOperation(t, fault.err, fault.short, fault.count, true) })
	}
}

func failEachOperation(t *testing.T, fault error, short, count int64, promoting bool) {
	for i := int64(0); ; i++ {
		mem := vfs.NewMem()
		nth := &vfs.Nth{Kinds: vfs.OpsMutating, From: i, Count: count, Err: fault, Short: short}
		fsys := vfs.NewFault(mem, nth)
		o := small(fsys)
		if promoting { // by the first of the two flushes
			o = topiclog.Promoting(o, 1, 1, 1)
		}
		o.Shards = 1
		o.JournalFileBytes = 16 << 10
		o.JournalMaxBytes = 64 << 10
		o.MarkDelay = time.Hour
		r := &faultRun{t: t}
		r.run(o)
		o.FS = mem
		r.check(o, fmt.Sprintf("operation %d, reopened", i))
		o.FS = mem.CrashClone(vfs.CrashOptions{})
		r.check(o, fmt.Sprintf("operation %d, reopened after a crash", i))
		if t.Failed() {
			return
		}
		if nth.Fired() == 0 {
			t.Logf("%d operations failed in turn", i)
			if len(r.errs) > 0 {
				t.Errorf("errors without a fault: %v", r.errs)
			}
			return
		}
	}
}

// After a failed fsync the shard refuses appends and says why; it does not try
// the fsync again.
func TestFailedFsyncFences(t *testing.T) {
	ctx := context.Background()
	fsys := vfs.NewFault(vfs.NewMem(), nil)
	o := small(fsys)
	o.Shards = 2
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 2})
	check(t, err)
	nth := &vfs.Nth{Kinds: vfs.OpSync, Path: "*.mrj"}
	fsys.SetInjector(nth)
	a, b := tp.Partitions[0].ID, tp.Partitions[1].ID
	for range 2 {
		_, err = s.Append(ctx, topiclog.AppendRequest{Partition: a, Batches: batch(t, "x")})
		if !errors.Is(err, topiclog.ErrFenced) || !errors.Is(err, syscall.EIO) {
			t.Fatalf("append: %v, want ErrFenced because of EIO", err)
		}
	}
	if nth.Fired() != 1 {
		t.Errorf("%d fsyncs failed, want 1", nth.Fired())
	}
	if l, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: a}); err != nil || l.Bytes > 0 {
		t.Errorf("a record that was not acknowledged is visible (error %v)", err)
	}
	// The other shard goes on.
	_, err = s.Append(ctx, topiclog.AppendRequest{Partition: b, Batches: batch(t, "y")})
	check(t, err)
	st := s.Status().Shards
	if st[tp.Partitions[0].Shard].Fenced == nil || st[tp.Partitions[1].Shard].Fenced != nil {
		t.Errorf("status: %+v", st)
	}
	if err := s.Close(); !errors.Is(err, topiclog.ErrFenced) {
		t.Errorf("closing: %v, want ErrFenced", err)
	}
	s = open(t, o)
	if got := readAll(t, s, b, 0); len(got) != 1 {
		t.Errorf("the other shard's record: %v", got)
	}
	check(t, s.Close())
}

// A full disk fails appends with an error that says so and that they may be
// tried again; internal topics and deletion go on; with space, so does all.
func TestDiskFull(t *testing.T) {
	ctx := context.Background()
	fsys := vfs.NewLimited(vfs.NewMem(), 6<<20)
	o := small(fsys)
	o.Shards = 1
	o.JournalFileBytes, o.JournalMaxBytes = 128<<10, 512<<10
	o.ReserveBytes = 512 << 10
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
	check(t, err)
	in, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "__millrace_ledger", Partitions: 1})
	check(t, err)
	id := tp.Partitions[0].ID
	raw := kilobyteBatch(t, 64)
	n := int64(0)
	for {
		res, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: raw})
		var full *topiclog.DiskFullError
		if errors.As(err, &full) {
			if !full.Retryable() || !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, topiclog.ErrDiskFull) {
				t.Errorf("the error: %v", err)
			}
			break
		}
		check(t, err)
		n = res.LastOffset + 1
		if n > 20000 {
			t.Fatal("the disk never filled")
		}
	}
	if s.Status().Shards[0].Fenced != nil {
		t.Fatalf("a full disk fenced the shard: %v", s.Status().Shards[0].Fenced)
	}
	if s.CheckSpace() {
		t.Error("there is space")
	}
	for i := range 20 {
		if _, err := s.Append(ctx, topiclog.AppendRequest{Partition: in.Partitions[0].ID, Batches: batch(t, "ledger")}); err != nil {
			t.Fatalf("ledger record %d on a full disk: %v", i, err)
		}
	}
	if got := int64(len(readAll(t, s, id, 0))); got != n {
		t.Errorf("%d records, want the %d acknowledged", got, n)
	}
	// Deleting makes space, and appends go on.
	if _, err := s.DeleteRecords(ctx, id, n/2); err != nil {
		t.Fatalf("deleting records: %v", err)
	}
	if _, err := s.DeleteRecords(ctx, id, -1); err != nil {
		t.Fatalf("deleting records: %v", err)
	}
	fsys.SetLimit(20 << 20)
	if !s.CheckSpace() {
		t.Fatal("no space after all")
	}
	res, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: raw})
	check(t, err)
	if res.BaseOffset != n {
		t.Errorf("offset %d, want %d", res.BaseOffset, n)
	}
	check(t, s.Close())
	s = open(t, o)
	if got := len(readAll(t, s, in.Partitions[0].ID, 0)); got != 20 {
		t.Errorf("%d ledger records, want 20", got)
	}
	check(t, s.Close())
}

// A store that was killed on a full disk opens on it, gives up its reserve and
// can delete.
func TestOpenOnFullDisk(t *testing.T) {
	ctx := context.Background()
	for _, torn := range []bool{false, true} {
		mem := vfs.NewMem()
		fsys := vfs.NewLimited(mem, 32<<20)
		o := small(fsys)
		o.Shards = 1
		o.JournalFileBytes, o.JournalMaxBytes = 128<<10, 8<<20
		o.CacheBytes = 8 << 20
		o.ReserveBytes = 4 << 20
		s := open(t, o)
		tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
		check(t, err)
		id := tp.Partitions[0].ID
		raw := kilobyteBatch(t, 64)
		n := int64(0)
		for range 40 { // stays in the journal
			res, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: raw})
			check(t, err)
			n = res.LastOffset + 1
		}
		if torn { // an unclean end that recovery has to rebuild
			check(t, s.CommitCursors(ctx, "g", []topiclog.Cursor{{Partition: id, Offset: n + 5}}))
		}
		crashed := mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: 100})
		check(t, s.Close())
		fsys.FS = crashed
		fsys.SetLimit(fsys.Used())
		s = open(t, o)
		if got := int64(len(readAll(t, s, id, 0))); got != n {
			t.Errorf("%d records, want %d", got, n)
		}
		if _, err := s.DeleteRecords(ctx, id, n/2); err != nil {
			t.Errorf("deleting records: %v", err)
		}
		check(t, s.Close())
	}
}

// Writers, readers, flushes and topic changes at once; run with -race.
func TestConcurrency(t *testing.T) {
	ctx := context.Background()
	o := small(vfs.NewMem())
	o.JournalFileBytes, o.JournalMaxBytes = 64<<10, 256<<10
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 4})
	check(t, err)
	const perWriter = 300
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			id := tp.Partitions[w%4].ID
			for i := range perWriter {
				if _, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, fmt.Sprintf("%d/%d-%0500d", w, i, 0))}); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
			}
		})
	}
	for _, p := range tp.Partitions {
		wg.Go(func() {
			last := map[string]int{}
			for at := int64(0); at < 2*perWriter; {
				l, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: p.ID, Offset: at, MaxWait: time.Minute, MaxBytes: 5000})
				if err != nil {
					t.Errorf("reader: %v", err)
					return
				}
				eachValue(t, l, at, func(off int64, v string) {
					var w, i int
					if _, err := fmt.Sscanf(v, "%d/%d-", &w, &i); err != nil {
						t.Errorf("reader: %q", v)
					}
					if off != at {
						t.Errorf("reader: offset %d, want %d", off, at)
					}
					at = off + 1
					// Each writer waits for its acknowledgements, so its values
					// come in order.
					key := fmt.Sprint(w)
					if prev, ok := last[key]; ok && i != prev+1 {
						t.Errorf("writer %d: value %d after %d", w, i, prev)
					}
					last[key] = i
				})
				l.Release()
			}
		})
	}
	stop := make(chan struct{})
	var bg sync.WaitGroup
	bg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			name := fmt.Sprintf("other-%d", i)
			_, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: name, Partitions: 2})
			if err == nil {
				err = s.CommitCursors(ctx, "g", []topiclog.Cursor{{Partition: tp.Partitions[0].ID, Offset: int64(i)}})
			}
			if err == nil && i%4 == 0 {
				err = s.Flush(ctx)
			}
			if err == nil {
				err = s.DeleteTopic(ctx, name, false)
			}
			if err == nil {
				_, err = s.RunRetention(ctx)
			}
			if err != nil {
				t.Errorf("background: %v", err)
				return
			}
		}
	})
	wg.Wait()
	close(stop)
	bg.Wait()
	check(t, s.Close())
	s = open(t, o)
	for _, p := range tp.Partitions {
		if got := len(readAll(t, s, p.ID, 0)); got != 2*perWriter {
			t.Errorf("partition %d has %d records, want %d", p.Index, got, 2*perWriter)
		}
	}
	check(t, s.Close())
}

// Each operation of a recovery that has something to rebuild fails in turn; the
// next try finds everything.
func TestFailEachOperationOfRecovery(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	o := small(mem)
	o.Shards = 1
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 2})
	check(t, err)
	id := osTopic(t, s)
	r := &faultRun{t: t, acked: map[topiclog.PartitionID][]string{}, cursor: 50}
	for i := range 20 {
		p := tp.Partitions[i%2].ID
		res, err := s.Append(ctx, topiclog.AppendRequest{Partition: p, Batches: batch(t, fmt.Sprint(i))})
		check(t, err)
		r.acked[p] = append(r.acked[p], fmt.Sprintf("%d:%d", res.BaseOffset, i))
		_, err = s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, fmt.Sprint(i))})
		check(t, err)
		if i == 9 {
			check(t, s.Flush(ctx))
		}
	}
	// Beyond the end: recovery jumps.
	check(t, s.CommitCursors(ctx, "g", []topiclog.Cursor{{Partition: tp.Partitions[0].ID, Offset: 50}}))
	crashed := mem.CrashClone(vfs.CrashOptions{})
	check(t, s.Close())
	for _, fault := range []struct {
		err   error
		short int64
		count int64
	}{{syscall.EIO, 0, 1}, {syscall.EIO, 100, -1}, {syscall.ENOSPC, 0, 3}} {
		for i := int64(0); ; i++ {
			disk := crashed.CrashClone(vfs.CrashOptions{})
			nth := &vfs.Nth{Kinds: vfs.OpsMutating, From: i, Count: fault.count, Err: fault.err, Short: fault.short}
			o.FS = vfs.NewFault(disk, nth)
			o = topiclog.RewriteAlways(o)
			if s, err := topiclog.Open(o); err == nil {
				_ = s.Close()
			}
			for _, again := range []*vfs.MemFS{disk.CrashClone(vfs.CrashOptions{}), disk.CrashClone(vfs.CrashOptions{UnsyncedPercent: 100})} {
				o.FS = again
				r.check(o, fmt.Sprintf("%v at operation %d of the recovery", fault.err, i))
			}
			if t.Failed() {
				return
			}
			if nth.Fired() == 0 {
				t.Logf("%v: %d operations failed in turn", fault.err, i)
				break
			}
		}
	}
}
