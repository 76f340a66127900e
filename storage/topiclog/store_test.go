package topiclog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// small are options under which a few kilobytes already flush and recycle.
func small(fsys vfs.FS) topiclog.Options {
	return topiclog.Options{FS: fsys, Dir: "data", CacheBytes: 1 << 20, JournalFileBytes: 64 << 10, JournalMaxBytes: 1 << 20,
		ReserveBytes: -1, RetentionInterval: -1, PoisonReleased: true}
}

// Readers of old records wait for each other, those of new ones for nobody, and all
// get theirs.
func TestColdReadsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		fsys := vfs.NewFault(vfs.NewMem(), nil)
		o := small(fsys)
		o.ColdReads = 2
		s := open(t, o)
		tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 8})
		check(t, err)
		for i, p := range tp.Partitions {
			_, err := s.Append(ctx, topiclog.AppendRequest{Partition: p.ID, Batches: batch(t, fmt.Sprint(i))})
			check(t, err)
			check(t, s.Flush(ctx)) // a segment for each: opening one file is done by one reader
		}
		var reading atomic.Int64
		gate := make(chan struct{})
		fsys.SetInjector(vfs.InjectorFunc(func(op vfs.Op) error {
			if op.Kind&vfs.OpOpen != 0 && strings.HasSuffix(op.Path, ".mrs") {
				reading.Add(1)
				<-gate
				reading.Add(-1)
			}
			return nil
		}))
		var wg sync.WaitGroup
		for _, p := range tp.Partitions {
			wg.Go(func() {
				if got := len(readAll(t, s, p.ID, 0)); got == 0 {
					t.Errorf("partition %d: no records", p.Index)
				}
			})
		}
		synctest.Wait()
		if n := reading.Load(); n != 2 {
			t.Errorf("%d reads at once, want 2", n)
		}
		res, err := s.Append(ctx, topiclog.AppendRequest{Partition: tp.Partitions[0].ID, Batches: batch(t, "new")})
		check(t, err)
		l, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: tp.Partitions[0].ID, Offset: res.BaseOffset})
		if err != nil || l.Bytes == 0 {
			t.Errorf("a new record was not read: %v", err)
		}
		l.Release()
		close(gate)
		wg.Wait()
		check(t, s.Close())
	})
}

func open(t testing.TB, o topiclog.Options) *topiclog.Store {
	t.Helper()
	s, err := topiclog.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// batch builds one batch of records with the given values.
func batch(t testing.TB, values ...string) []byte {
	t.Helper()
	var b record.Builder
	for i, v := range values {
		check(t, b.Append(int64(1000+i), []byte("k"), []byte(v), nil))
	}
	raw, err := b.Build()
	check(t, err)
	return append([]byte(nil), raw...)
}

// readAll returns "offset:value" of all records from an offset on.
func readAll(t testing.TB, s *topiclog.Store, id topiclog.PartitionID, from int64) []string {
	t.Helper()
	var out []string
	var d record.Decoder
	for {
		l, err := s.Fetch(context.Background(), topiclog.FetchRequest{Partition: id, Offset: from})
		check(t, err)
		if len(l.Chunks) == 0 {
			l.Release()
			return out
		}
		for _, c := range l.Chunks {
			for len(c) > 0 {
				var b record.Batch
				b, c, err = record.Split(c)
				check(t, err)
				it, err := d.Records(b)
				check(t, err)
				var r record.Record
				for it.Next(&r) {
					if r.Offset >= from {
						out = append(out, fmt.Sprintf("%d:%s", r.Offset, r.Value))
					}
				}
				check(t, it.Err())
			}
		}
		from = l.NextOffset
		l.Release()
	}
}

func TestAppendFetchReopen(t *testing.T) {
	ctx := context.Background()
	fsys := vfs.NewMem()
	s := open(t, small(fsys))
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "clicks", Partitions: 3})
	check(t, err)
	var want [3][]string
	for i := range 100 {
		p := i % 3
		v := fmt.Sprintf("value-%d", i)
		res, err := s.Append(ctx, topiclog.AppendRequest{Partition: tp.Partitions[p].ID, Batches: batch(t, v, v+"b")})
		check(t, err)
		if res.BaseOffset != int64(len(want[p])) {
			t.Fatalf("base offset %d, want %d", res.BaseOffset, len(want[p]))
		}
		want[p] = append(want[p], fmt.Sprintf("%d:%s", res.BaseOffset, v), fmt.Sprintf("%d:%sb", res.LastOffset, v))
		if i == 50 {
			check(t, s.Flush(ctx))
		}
	}
	verify := func(s *topiclog.Store) {
		t.Helper()
		for p := range 3 {
			got := readAll(t, s, tp.Partitions[p].ID, 0)
			if fmt.Sprint(got) != fmt.Sprint(want[p]) {
				t.Fatalf("partition %d:\n got %v\nwant %v", p, got, want[p])
			}
		}
	}
	verify(s)
	crashed := fsys.CrashClone(vfs.CrashOptions{})
	check(t, s.Close())
	s = open(t, small(fsys))
	if !s.Status().Recovery.Clean {
		t.Errorf("not clean: %+v", s.Status().Recovery)
	}
	verify(s)
	check(t, s.Close())

	c := open(t, small(crashed))
	if r := c.Status().Recovery; r.Clean || len(r.Damage) > 0 {
		t.Errorf("after a crash: %+v", r)
	}
	verify(c)
	check(t, c.Close())
}

func TestLongPoll(t *testing.T) {
	ctx := context.Background()
	s := open(t, small(vfs.NewMem()))
	defer s.Close()
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 1})
	check(t, err)
	id := tp.Partitions[0].ID
	got := make(chan error, 1)
	go func() {
		l, err := s.Fetch(ctx, topiclog.FetchRequest{Partition: id, MaxWait: time.Minute})
		if err == nil && l.Bytes == 0 {
			err = errors.New("empty lease")
		}
		l.Release()
		got <- err
	}()
	_, err = s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "x")})
	check(t, err)
	check(t, <-got)
}

// eachValue calls f with the offset and value of each record of a lease from an
// offset on.
func eachValue(t testing.TB, l *topiclog.Lease, from int64, f func(int64, string)) {
	t.Helper()
	var d record.Decoder
	for _, c := range l.Chunks {
		for len(c) > 0 {
			b, rest, err := record.Split(c)
			if err != nil {
				t.Errorf("a lease holds a bad batch: %v", err)
				return
			}
			c = rest
			it, err := d.Records(b)
			if err != nil {
				t.Errorf("a lease holds a bad batch: %v", err)
				return
			}
			var r record.Record
			for it.Next(&r) {
				if r.Offset >= from {
					f(r.Offset, string(r.Value))
				}
			}
		}
	}
}
