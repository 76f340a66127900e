package topiclog_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// Many small segments become few, and every record stays at its offset.
func TestMerge(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	o := small(mem)
	o.Shards = 1
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 3})
	check(t, err)
	gone, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "gone", Partitions: 1})
	check(t, err)
	want := make([][]string, 3)
	for i := range 30 {
		for p := range 3 {
			if (i+p)%3 == 0 {
				continue
			}
			v := fmt.Sprintf("%d-%d", p, i)
			res, err := s.Append(ctx, topiclog.AppendRequest{Partition: tp.Partitions[p].ID, Batches: batch(t, v)})
			check(t, err)
			want[p] = append(want[p], fmt.Sprintf("%d:%s", res.BaseOffset, v))
		}
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: gone.Partitions[0].ID, Batches: batch(t, "x")})
		check(t, err)
		check(t, s.Flush(ctx))
	}
	check(t, s.DeleteTopic(ctx, "gone", false))
	_, err = s.DeleteRecords(ctx, tp.Partitions[0].ID, 3)
	check(t, err)
	want[0] = want[0][3:]
	if n := s.Status().Segments; n != 30 {
		t.Fatalf("%d segments before merging, want 30", n)
	}
	rep, err := s.RunRetention(ctx)
	check(t, err)
	if n := s.Status().Segments; n > 9 || rep.Merged == 0 {
		t.Errorf("%d segments after merging: %+v", n, rep)
	}
	if n := len(files(t, mem, "data/segments")); n != s.Status().Segments {
		t.Errorf("%d files for %d segments", n, s.Status().Segments)
	}
	verify := func() {
		t.Helper()
		for p := range 3 {
			st, err := s.State(tp.Partitions[p].ID)
			check(t, err)
			if got := readAll(t, s, tp.Partitions[p].ID, st.Start); fmt.Sprint(got) != fmt.Sprint(want[p]) {
				t.Errorf("partition %d:\n got %v\nwant %v", p, got, want[p])
			}
		}
	}
	verify()
	o.FS = mem.CrashClone(vfs.CrashOptions{})
	check(t, s.Close())
	s = open(t, o)
	verify()
	check(t, s.Close())
}

// Compaction keeps the last record of each key at its offset, drops old null
// values, and keeps the end of the partition.
func TestCompaction(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	clock := &manualClock{wall: time.UnixMilli(1_700_000_000_000)}
	o := small(mem)
	o.Shards = 1
	o.Clock = clock.clock()
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1, Config: map[string]string{
		"cleanup.policy": "compact", "delete.retention.ms": "60000", "retention.ms": "1"}})
	check(t, err)
	id := tp.Partitions[0].ID
	rng := rand.New(rand.NewPCG(1, 1))
	type rec struct {
		offset     int64
		key, value string // value "" is null
		ms         int64
	}
	var all []rec
	var b record.Builder
	next := int64(0)
	for i := range 60 {
		b.Reset()
		b.Codec = record.Codec(i % 2 * 4) // none, zstd
		for range 1 + rng.IntN(5) {
			r := rec{offset: next, key: fmt.Sprintf("k%d", rng.IntN(12)), value: fmt.Sprintf("v%d-%s", next, strings.Repeat("z", 30)), ms: clock.wall.UnixMilli()}
			value := []byte(r.value)
			if rng.IntN(6) == 0 {
				r.value, value = "", nil
			}
			check(t, b.Append(next, []byte(r.key), value, []record.RecordHeader{{Key: []byte("h"), Value: []byte("1")}}))
			all = append(all, r)
			next++
		}
		raw, err := b.Build()
		check(t, err)
		_, err = s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: raw})
		check(t, err)
		if i%10 == 9 {
			check(t, s.Flush(ctx))
		}
		clock.pass(5 * time.Second)
	}
	lastBatch := all[len(all)-1].offset - int64(b.Count()) + 1
	check(t, s.Compact(ctx, "t"))
	latest := map[string]int64{}
	for _, r := range all {
		latest[r.key] = r.offset
	}
	now := clock.wall.UnixMilli()
	var want []string
	for _, r := range all {
		old := now-r.ms >= 60000
		if latest[r.key] == r.offset && (r.value != "" || !old) || r.offset >= lastBatch {
			want = append(want, fmt.Sprintf("%d:%s", r.offset, r.value))
		}
	}
	verify := func(what string) {
		t.Helper()
		got := readAll(t, s, id, 0)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s:\n got %v\nwant %v", what, got, want)
		}
		// From within a gap a fetch gives what comes next, at once.
		for from := range next {
			l, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: id, Offset: from, MaxWait: time.Hour})
			check(t, err)
			if len(l.Chunks) == 0 {
				t.Errorf("%s: nothing from offset %d on", what, from)
			}
			l.Release()
		}
		st, err := s.State(id)
		check(t, err)
		if st.HighWatermark != next || st.Start != 0 {
			t.Errorf("%s: bounds %d..%d, want 0..%d", what, st.Start, st.HighWatermark, next)
		}
	}
	verify("compacted")
	// A second time changes nothing but what has become old.
	check(t, s.Compact(ctx, "t"))
	verify("compacted again")
	// Retention by time does not apply, but a crash and a restart do.
	clock.pass(time.Minute)
	o.FS = mem.CrashClone(vfs.CrashOptions{})
	check(t, s.Close())
	s = open(t, o)
	verify("after a crash")
	res, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "next")})
	check(t, err)
	if res.BaseOffset != next {
		t.Errorf("offset %d, want %d", res.BaseOffset, next)
	}
	check(t, s.Close())
}

// A batch that compaction cannot change keeps an old value of a key; the null
// value that hides it stays as long.
func TestCompactionKeepsDeletionOfPinnedKey(t *testing.T) {
	ctx := context.Background()
	clock := &manualClock{wall: time.UnixMilli(1_700_000_000_000)}
	o := small(vfs.NewMem())
	o.Clock = clock.clock()
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1, Config: map[string]string{
		"cleanup.policy": "compact", "delete.retention.ms": "1000"}})
	check(t, err)
	id := tp.Partitions[0].ID
	put := func(stamped bool, key string, value []byte) {
		t.Helper()
		var b record.Builder
		kind := "CreateTime"
		if stamped {
			kind = "LogAppendTime"
		}
		_, err := s.AlterConfig(ctx, "t", map[string]string{"message.timestamp.type": kind}, nil)
		check(t, err)
		check(t, b.Append(1, []byte(key), value, nil))
		raw, err := b.Build()
		check(t, err)
		_, err = s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: raw})
		check(t, err)
	}
	put(false, "free", []byte("old"))
	put(false, "free", nil)
	put(true, "pinned", []byte("old"))
	put(false, "pinned", nil)
	put(false, "end", []byte("end"))
	check(t, s.Flush(ctx))
	clock.pass(time.Hour)
	for range 2 {
		check(t, s.Compact(ctx, "t"))
		if got := fmt.Sprint(readAll(t, s, id, 0)); got != "[2:old 3: 4:end]" {
			t.Errorf("left: %s", got)
		}
	}
	check(t, s.Close())
}

// Large and small segments side by side are merged, with extents of all sizes,
// and each record is copied a few times only.
func TestMergeOfMixedSizes(t *testing.T) {
	ctx := context.Background()
	o := small(vfs.NewMem())
	o.Shards = 1
	o.CacheBytes, o.JournalMaxBytes = 64<<20, 64<<20
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 2})
	check(t, err)
	want := make([][]string, 2)
	rng := rand.New(rand.NewPCG(3, 3))
	merged := 0
	for i := range 40 {
		size := 20_000
		if i%2 == 0 {
			size = 1_000_000
		}
		for n := 0; n < size; {
			v := fmt.Sprintf("%d-%0*d", i, []int{100, 5000, 40_000, 200_000}[rng.IntN(4)], 0)
			p := rng.IntN(2)
			res, err := s.Append(ctx, topiclog.AppendRequest{Partition: tp.Partitions[p].ID, Batches: batch(t, v)})
			check(t, err)
			want[p] = append(want[p], fmt.Sprintf("%d:%s", res.BaseOffset, v))
			n += len(v)
		}
		check(t, s.Flush(ctx))
		rep, err := s.RunRetention(ctx)
		check(t, err)
		merged += rep.Merged
	}
	if n := s.Status().Segments; n > 20 || merged > 3*40 {
		t.Errorf("%d segments are left of 40, %d were merged away", n, merged)
	}
	for p := range 2 {
		if got := readAll(t, s, tp.Partitions[p].ID, 0); !slices.Equal(got, want[p]) {
			t.Errorf("partition %d: %d records, want %d", p, len(got), len(want[p]))
		}
	}
	check(t, s.Close())
}
