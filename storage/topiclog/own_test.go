package topiclog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// promotingStore opens a store of one shard where the first flush promotes.
func promotingStore(t testing.TB, fsys vfs.FS, directBytes int) (*topiclog.Store, topiclog.Options) {
	t.Helper()
	o := small(fsys)
	o.Shards = 1
	o = topiclog.Promoting(o, 1000, 500, directBytes)
	return open(t, o), o
}

func appendTo(t testing.TB, s *topiclog.Store, id topiclog.PartitionID, raw []byte) topiclog.AppendResult {
	t.Helper()
	res, err := s.Append(context.Background(), topiclog.AppendRequest{Partition: id, Batches: raw})
	check(t, err)
	return res
}

func promoted(s *topiclog.Store) int { return s.Status().Shards[0].Promoted }

// It takes much traffic to be promoted and a while with little to be demoted;
// nobody is promoted whose records are acknowledged before they are synced.
func TestPromotionAndDemotion(t *testing.T) {
	ctx := context.Background()
	s, _ := promotingStore(t, vfs.NewMem(), 1)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 2})
	check(t, err)
	fast := osTopic(t, s)
	a, b := tp.Partitions[0].ID, tp.Partitions[1].ID
	large, tiny := batch(t, strings.Repeat("x", 2000)), batch(t, "x")
	appendTo(t, s, a, large)
	appendTo(t, s, b, tiny)
	appendTo(t, s, fast, large)
	check(t, s.Flush(ctx))
	if n := promoted(s); n != 1 {
		t.Fatalf("%d partitions promoted, want the one with 2 KB", n)
	}
	// Between the two bounds it stays what it is.
	for range 5 {
		appendTo(t, s, a, batch(t, strings.Repeat("x", 600)))
		appendTo(t, s, b, batch(t, strings.Repeat("x", 600)))
		check(t, s.Flush(ctx))
	}
	if n := promoted(s); n != 1 {
		t.Errorf("%d partitions promoted after generations of 600 bytes, want 1", n)
	}
	// Some quiet generations are no reason yet, three in a row are.
	for _, raw := range [][]byte{tiny, tiny, large, tiny, tiny} {
		appendTo(t, s, a, raw)
		appendTo(t, s, b, tiny)
		check(t, s.Flush(ctx))
	}
	if n := promoted(s); n != 1 {
		t.Errorf("%d partitions promoted after two quiet generations, want 1", n)
	}
	appendTo(t, s, b, tiny)
	check(t, s.Flush(ctx))
	if n := promoted(s); n != 0 {
		t.Errorf("%d partitions promoted after three quiet generations, want 0", n)
	}
	if got := len(readAll(t, s, a, 0)); got != 11 {
		t.Errorf("%d records, want 11", got)
	}
	check(t, s.Close())
}

// written counts the bytes that are written to files of a kind.
type written struct{ journal, segments atomic.Int64 }

func (w *written) Inject(op vfs.Op) error {
	switch {
	case op.Kind&vfs.OpWrite == 0:
	case strings.HasSuffix(op.Path, ".mrj"):
		w.journal.Add(op.Size)
	case strings.HasSuffix(op.Path, ".mrs"):
		w.segments.Add(op.Size)
	}
	return nil
}

// What goes past the journal is written once, and what is small still goes there;
// both are in one segment in the end, whatever their order, and survive.
func TestWrittenOnce(t *testing.T) {
	ctx := context.Background()
	w := &written{}
	mem := vfs.NewMem()
	fsys := vfs.NewFault(mem, nil)
	s, o := promotingStore(t, fsys, 20_000)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
	check(t, err)
	id := tp.Partitions[0].ID
	appendTo(t, s, id, batch(t, strings.Repeat("0", 2000)))
	check(t, s.Flush(ctx))
	fsys.SetInjector(w)
	var want []string
	size := 0
	put := func(n int) {
		v := fmt.Sprintf("%d-%0*d", len(want), n, 0)
		raw := batch(t, v)
		size += len(raw)
		want = append(want, fmt.Sprintf("%d:%s", appendTo(t, s, id, raw).BaseOffset, v))
	}
	for range 10 {
		put(30_000)
	}
	if got, most := w.journal.Load()+w.segments.Load(), int64(size)*5/4; got > most {
		t.Errorf("%d bytes written for %d appended, want at most %d", got, size, most)
	}
	put(100)
	put(100)
	put(30_000)
	put(100)
	if got := readAll(t, s, id, 1); !slices.Equal(got, want) {
		t.Errorf("from the cache: %d records, want %d", len(got), len(want))
	}
	before := w.segments.Load()
	check(t, s.Flush(ctx))
	if got := w.segments.Load() - before; got > 5000 {
		t.Errorf("the flush wrote %d bytes to segments, want the last record and a footer", got)
	}
	if got := s.Status().Segments; got != 2 {
		t.Errorf("%d segments, want a mixed one and the partition's own", got)
	}
	for range 2 {
		if got := readAll(t, s, id, 1); !slices.Equal(got, want) {
			t.Errorf("from the segment: %d records, want %d", len(got), len(want))
		}
		rep, err := s.Scrub(ctx)
		check(t, err)
		if !rep.Clean() {
			t.Errorf("scrub: %v", rep.Damage)
		}
		check(t, s.Close())
		o.FS = mem
		s = open(t, o)
	}
	if n := len(files(t, mem, "data/segments")); n != 2 {
		t.Errorf("%d files, want 2", n)
	}
	check(t, s.Close())
}

// A crash before a flush leaves an own segment without footer, which only the
// journal names; it is gone when what it has is elsewhere.
func TestUnsealedOwnSegment(t *testing.T) {
	ctx := context.Background()
	for _, crash := range []bool{false, true} {
		mem := vfs.NewMem()
		s, o := promotingStore(t, mem, 1)
		tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 2})
		check(t, err)
		var want [2][]string
		for i := range 6 {
			for k, p := range tp.Partitions {
				v := fmt.Sprintf("%d-%01000d", i, k)
				want[k] = append(want[k], fmt.Sprintf("%d:%s", appendTo(t, s, p.ID, batch(t, v)).BaseOffset, v))
			}
			if i == 2 {
				check(t, s.Flush(ctx))
			}
		}
		gone := tp.Partitions[1].ID
		_, err = s.DeleteRecords(ctx, gone, -1)
		check(t, err)
		if n := len(files(t, mem, "data/segments")); n != 3 {
			t.Errorf("%d segment files before the end, want 3", n)
		}
		if crash {
			o.FS = mem.CrashClone(vfs.CrashOptions{})
		}
		check(t, s.Close())
		s = open(t, o)
		if !crash && !s.Status().Recovery.Clean {
			t.Errorf("not clean after Close: %+v", s.Status().Recovery)
		}
		if got := readAll(t, s, tp.Partitions[0].ID, 0); !slices.Equal(got, want[0]) {
			t.Errorf("crash %v: %d records, want %d", crash, len(got), len(want[0]))
		}
		if st, err := s.State(gone); err != nil || st.Start != 6 || st.HighWatermark != 6 {
			t.Errorf("crash %v: %+v, %v; want it empty at 6", crash, st, err)
		}
		if n, m := len(files(t, o.FS, "data/segments")), s.Status().Segments; n != m {
			t.Errorf("crash %v: %d files for %d segments", crash, n, m)
		}
		check(t, s.Close())
	}
}

// An own segment that is torn anywhere in the region written last costs no record
// that was acknowledged before it, and does not look like rot; one that is gone
// costs what only it had, by name.
func TestTornRegion(t *testing.T) {
	d := buildOwnDamageStore(t, true)
	var path string
	for _, f := range files(t, d.fs, "data/segments") {
		b, err := vfs.ReadFile(d.fs, f)
		check(t, err)
		if bytes.Contains(b, []byte("p2-11-")) {
			path = f
		}
	}
	if path == "" {
		t.Fatal("the last batch is in no segment")
	}
	content, err := vfs.ReadFile(d.fs, path)
	check(t, err)
	end := len(bytes.TrimRight(content, "\x00"))
	start := end &^ (vfs.DirectAlign - 1)
	for cut := start; cut < end; cut += 3 {
		c := d.fs.CrashClone(vfs.CrashOptions{})
		f, err := c.OpenReadWrite(path)
		check(t, err)
		check(t, f.Truncate(int64(cut)))
		check(t, f.Sync())
		check(t, f.Close())
		lost := d.inspect(t, c, fmt.Sprintf("cut at %d", cut))
		if len(lost) > 1 || len(lost) == 1 && lost[0] != "2/22" || len(lost) == 0 && cut < end-100 {
			t.Fatalf("cut at %d of %d to %d: lost %v", cut, start, end, lost)
		}
		s := open(t, damageOptions(c))
		for _, dm := range s.Status().Recovery.Damage {
			if dm.Kind == topiclog.DamageRotten {
				t.Errorf("cut at %d looks like rot: %s", cut, dm)
			}
		}
		check(t, s.Close())
	}
	c := d.fs.CrashClone(vfs.CrashOptions{})
	check(t, c.Remove(path))
	if lost := d.inspect(t, c, "without the file"); len(lost) != 3 {
		t.Errorf("without the file: lost %v, want the three batches of partition 2 that it had", lost)
	}
}

// A full disk fails what would go past the journal with an error that may be tried
// again, fences nothing, and leaves nothing behind that looks acknowledged.
func TestDiskFullPastTheJournal(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	fsys := vfs.NewFault(mem, nil)
	s, o := promotingStore(t, fsys, 1)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
	check(t, err)
	id := tp.Partitions[0].ID
	appendTo(t, s, id, batch(t, strings.Repeat("0", 2000)))
	check(t, s.Flush(ctx))
	appendTo(t, s, id, batch(t, strings.Repeat("1", 2000)))
	fsys.SetInjector(&vfs.Nth{Kinds: vfs.OpWrite, Path: "*.mrs", Err: syscall.ENOSPC, Short: 1000, Count: 1})
	_, err = s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, strings.Repeat("lost", 1000))})
	var full *topiclog.DiskFullError
	if !errors.As(err, &full) || !full.Retryable() {
		t.Fatalf("append on a full disk: %v", err)
	}
	if err := s.Status().Shards[0].Fenced; err != nil {
		t.Fatalf("a full disk fenced the shard: %v", err)
	}
	s.CheckSpace()
	if res := appendTo(t, s, id, batch(t, strings.Repeat("2", 2000))); res.BaseOffset != 2 {
		t.Errorf("offset %d, want 2: the one before failed", res.BaseOffset)
	}
	o.FS = mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: 100})
	check(t, s.Flush(ctx))
	rep, err := s.Scrub(ctx)
	check(t, err)
	if !rep.Clean() {
		t.Errorf("scrub: %v", rep.Damage)
	}
	for _, s := range []*topiclog.Store{s, open(t, o)} {
		got := readAll(t, s, id, 0)
		for i, want := range []string{"0:0", "1:1", "2:2"} {
			if len(got) != 3 || !strings.HasPrefix(got[i], want) {
				t.Fatalf("records %.30q", got)
			}
		}
		for _, dm := range s.Status().Recovery.Damage {
			if dm.Kind == topiclog.DamageRotten {
				t.Errorf("a full disk looks like rot: %s", dm)
			}
		}
		check(t, s.Close())
	}
}

// A failed write or sync of an own segment fences the shard like one of the
// journal, and acknowledges nothing.
func TestFailedSyncOfOwnSegmentFences(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []vfs.OpKind{vfs.OpWrite, vfs.OpSync} {
		mem := vfs.NewMem()
		fsys := vfs.NewFault(mem, nil)
		s, o := promotingStore(t, fsys, 1)
		tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
		check(t, err)
		id := tp.Partitions[0].ID
		appendTo(t, s, id, batch(t, strings.Repeat("0", 2000)))
		check(t, s.Flush(ctx))
		appendTo(t, s, id, batch(t, "x"))
		nth := &vfs.Nth{Kinds: kind, Path: "*.mrs", Err: syscall.EIO, Count: 1}
		fsys.SetInjector(nth)
		for range 2 {
			if _, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "y")}); !errors.Is(err, topiclog.ErrFenced) || !errors.Is(err, syscall.EIO) {
				t.Fatalf("append: %v, want ErrFenced because of EIO", err)
			}
		}
		if nth.Fired() != 1 {
			t.Errorf("%d operations failed, want 1", nth.Fired())
		}
		if got := len(readAll(t, s, id, 0)); got != 2 {
			t.Errorf("%d records are visible, want 2", got)
		}
		if err := s.Close(); !errors.Is(err, topiclog.ErrFenced) {
			t.Errorf("closing: %v, want ErrFenced", err)
		}
		o.FS = mem.CrashClone(vfs.CrashOptions{})
		s = open(t, o)
		if got := len(readAll(t, s, id, 0)); got != 2 {
			t.Errorf("%d records after a crash, want 2", got)
		}
		check(t, s.Close())
	}
}

// Producers, readers and flushes at once on partitions that are promoted and
// demoted; run with -race.
func TestConcurrencyOfOwnSegments(t *testing.T) {
	ctx := context.Background()
	o := small(vfs.NewMem())
	o.Shards, o.FlushInterval = 1, time.Hour
	o.JournalFileBytes, o.JournalMaxBytes = 64<<10, 256<<10
	o = topiclog.Promoting(o, 20_000, 10_000, 3000)
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 3})
	check(t, err)
	const perPart = 200
	var wg sync.WaitGroup
	for k, p := range tp.Partitions {
		wg.Go(func() {
			window := make(chan struct{}, 4)
			for i := range perPart {
				window <- struct{}{}
				v := fmt.Sprintf("%d-%0*d", i, 1+(i*7919+k*31)%9000, 0)
				s.AppendAsync(topiclog.AppendRequest{Partition: p.ID, Batches: batch(t, v)}, func(_ topiclog.AppendResult, err error) {
					if err != nil {
						t.Errorf("partition %d: %v", k, err)
					}
					<-window
				})
				if i%40 == 0 {
					if err := s.Flush(ctx); err != nil {
						t.Errorf("flushing: %v", err)
					}
				}
			}
			for range cap(window) {
				window <- struct{}{}
			}
		})
		wg.Go(func() {
			for at := int64(0); at < perPart; {
				l, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: p.ID, Offset: at, MaxWait: time.Minute, MaxBytes: 20_000})
				if err != nil {
					t.Errorf("reading partition %d: %v", k, err)
					return
				}
				eachValue(t, l, at, func(off int64, v string) {
					if off != at || !strings.HasPrefix(v, fmt.Sprintf("%d-", off)) {
						t.Errorf("partition %d: %.20q at offset %d, want offset %d", k, v, off, at)
					}
					at = off + 1
				})
				l.Release()
			}
		})
	}
	wg.Wait()
	check(t, s.Close())
	s = open(t, o)
	for _, p := range tp.Partitions {
		if got := len(readAll(t, s, p.ID, 0)); got != perPart {
			t.Errorf("partition %d has %d records, want %d", p.Index, got, perPart)
		}
	}
	check(t, s.Close())
}

// Mixed segments are merged although a partition has segments of its own between
// them: what the merged file has of it is read in turn with those.
func TestMergeAroundOwnSegments(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	s, o := promotingStore(t, mem, 2000)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 2})
	check(t, err)
	id := tp.Partitions[0].ID
	var want []string
	put := func(n int) {
		v := fmt.Sprintf("%d-%0*d", len(want), n, 0)
		var b record.Builder
		check(t, b.Append(int64(1000*len(want)), []byte(fmt.Sprint(len(want))), []byte(v), nil))
		raw, err := b.Build()
		check(t, err)
		appendTo(t, s, id, raw)
		want = append(want, fmt.Sprintf("%d:%s", len(want), v))
	}
	for range 10 {
		put(3000) // its own
		check(t, s.Flush(ctx))
		put(500) // in a mixed one
		appendTo(t, s, tp.Partitions[1].ID, batch(t, "x"))
		check(t, s.Flush(ctx))
	}
	before := s.Status().Segments
	_, err = s.RunRetention(ctx)
	check(t, err)
	if n := s.Status().Segments; n != before-7 || n != len(files(t, mem, "data/segments")) {
		t.Fatalf("%d segments of %d after merging, want 7 fewer", n, before)
	}
	for _, what := range []string{"merged", "reopened", "repaired"} {
		if got := readAll(t, s, id, 0); !slices.Equal(got, want) {
			t.Errorf("%s: %d records, want %d", what, len(got), len(want))
		}
		for i := range int64(len(want)) {
			if got, at, err := s.OffsetForTimestamp(ctx, id, 1000*i-1); err != nil || got != i || at != 1000*i {
				t.Errorf("%s: time %d: offset %d with time %d, %v", what, 1000*i-1, got, at, err)
			}
		}
		rep, err := s.Scrub(ctx)
		check(t, err)
		if !rep.Clean() {
			t.Errorf("%s: %v", what, rep.Damage)
		}
		check(t, s.Close())
		if what == "reopened" {
			rep, err := topiclog.Verify(ctx, o, true)
			check(t, err)
			if !rep.Clean() {
				t.Errorf("verify: %v", rep.Damage)
			}
		}
		s = open(t, o)
	}
	// Deletion of a part leaves the rest.
	_, err = s.DeleteRecords(ctx, id, 5)
	check(t, err)
	if got := readAll(t, s, id, 5); !slices.Equal(got, want[5:]) {
		t.Errorf("after a deletion: %d records, want %d", len(got), len(want)-5)
	}
	check(t, s.Close())
}

// A group that has batches of a promoted partition both ways, in any order, leaves
// no hole in its own segment.
func TestBothWaysInOneGroup(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	fsys := vfs.NewFault(mem, nil)
	s, o := promotingStore(t, fsys, 2000)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 2})
	check(t, err)
	id, other := tp.Partitions[0].ID, tp.Partitions[1].ID
	appendTo(t, s, id, batch(t, strings.Repeat("x", 3000)))
	check(t, s.Flush(ctx))
	want := []string{"0:" + strings.Repeat("x", 3000)}
	for _, order := range []string{"JDJD", "DJDJ", "DDJJDD", "JJD", "DJ"} {
		// The own segment of this generation begins with a group of its own.
		v := strings.Repeat("first", 1000)
		appendTo(t, s, id, batch(t, v))
		want = append(want, fmt.Sprintf("%d:%s", len(want), v))
		g := newGate("journal")
		fsys.SetInjector(g)
		acked := make(chan error, len(order)+1)
		done := func(_ topiclog.AppendResult, err error) { acked <- err }
		s.AppendAsync(topiclog.AppendRequest{Partition: other, Batches: batch(t, "held")}, done)
		<-g.reached
		for _, way := range order {
			v := fmt.Sprintf("%c-%d-%s", way, len(want), strings.Repeat("y", 3000))
			want = append(want, fmt.Sprintf("%d:%s", len(want), v))
			req := topiclog.AppendRequest{Partition: id, Batches: batch(t, v)}
			if way == 'J' {
				check(t, topiclog.AppendInJournal(s, req, done))
			} else {
				s.AppendAsync(req, done)
			}
		}
		close(g.opened)
		for range cap(acked) {
			check(t, <-acked)
		}
		fsys.SetInjector(nil)
		if got := readAll(t, s, id, 0); !slices.Equal(got, want) {
			t.Fatalf("%s: %d records from the cache, want %d", order, len(got), len(want))
		}
		c := o
		c.FS = mem.CrashClone(vfs.CrashOptions{})
		crashed := open(t, c)
		if got := readAll(t, crashed, id, 0); !slices.Equal(got, want) {
			t.Fatalf("%s: %d records after a crash, want %d", order, len(got), len(want))
		}
		check(t, crashed.Close())
		check(t, s.Flush(ctx))
		if got := readAll(t, s, id, 0); !slices.Equal(got, want) {
			t.Fatalf("%s: %d records from segments, want %d", order, len(got), len(want))
		}
	}
	check(t, s.Close())
}

// A group goes on to another block of the cache although a flush has let go of
// everything in the one before: what the group has in that one stays.
func TestGroupOverTwoBlocks(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	o := small(mem)
	o.Shards, o.CacheBytes, o.PoisonReleased = 1, 64<<20, true
	o = topiclog.Promoting(o, 1000, 500, 1)
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 2})
	check(t, err)
	a, b := tp.Partitions[0].ID, tp.Partitions[1].ID
	for _, id := range []topiclog.PartitionID{a, b} {
		appendTo(t, s, id, batch(t, strings.Repeat("x", 3000)))
	}
	check(t, s.Flush(ctx)) // promotes both
	// A block has 4 MiB. Three of these and one more fit, a fifth does not.
	large := strings.Repeat("large", 180_000)
	for range 3 {
		appendTo(t, s, a, batch(t, large))
	}
	check(t, s.Flush(ctx))
	acked := make(chan error, 2)
	s.AppendAll([]topiclog.AppendRequest{{Partition: a, Batches: batch(t, large)}, {Partition: b, Batches: batch(t, large)}},
		func(_ int, _ topiclog.AppendResult, err error) { acked <- err }, nil)
	for range cap(acked) {
		check(t, <-acked)
	}
	read := func(s *topiclog.Store, from string) {
		for id, n := range map[topiclog.PartitionID]int64{a: 4, b: 1} {
			if got := readAll(t, s, id, n); len(got) != 1 || got[0] != fmt.Sprintf("%d:%s", n, large) {
				t.Errorf("%s: partition %d has %d records at offset %d that are not what was written", from, id, len(got), n)
			}
		}
	}
	read(s, "the cache")
	c := o
	c.FS = mem.CrashClone(vfs.CrashOptions{})
	crashed := open(t, c)
	read(crashed, "after a crash")
	check(t, crashed.Close())
	check(t, s.Flush(ctx))
	read(s, "a segment")
	check(t, s.Close())
}
