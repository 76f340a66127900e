package topiclog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
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

// Memory that is used again is overwritten at once when it is given back, while all that
// can have a share in it goes on together: groups over several small blocks, past the
// journal and in it, slow flushes, full disks, readers that keep their leases, records
// and topics that are deleted. Whoever gives anything back too early damages records.
func TestMemoryUsedAgain(t *testing.T) { reuseRuns(t, 1, 6, 80) }

func TestTortureMemoryUsedAgain(t *testing.T) {
	first, runs, steps := longRuns(t)
	reuseRuns(t, first, runs, 2*steps)
}

func reuseRuns(t *testing.T, first uint64, runs, appends int) {
	for seed := first; seed < first+uint64(runs); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			u := &reuse{t: t, seed: seed, appends: appends, stop: make(chan struct{}), written: map[topiclog.PartitionID]map[int64]string{}}
			u.run()
		})
	}
}

type reuse struct {
	t       *testing.T
	seed    uint64
	appends int
	s       *topiclog.Store
	fs      *vfs.FaultFS
	stop    chan struct{} // closed when the appends have ended
	streams atomic.Uint64

	mu      sync.Mutex
	written map[topiclog.PartitionID]map[int64]string // acknowledged, by offset
	refused int                                       // by a full disk
	direct  int                                       // writes past the journal or of segments
	leases  int
}

// rng is a source of its own for each goroutine.
func (u *reuse) rng() *rand.Rand { return rand.New(rand.NewPCG(u.seed, u.streams.Add(1))) }

func (u *reuse) run() {
	ctx := context.Background()
	slow := u.rng()
	mem := vfs.NewMem()
	u.fs = vfs.NewFault(mem, vfs.InjectorFunc(func(op vfs.Op) error {
		if op.Kind&(vfs.OpWrite|vfs.OpSync) == 0 || !strings.HasSuffix(op.Path, ".mrs") {
			return nil
		}
		u.mu.Lock()
		turns, full := slow.IntN(300), u.seed%3 == 0 && op.Kind&vfs.OpWrite != 0 && slow.IntN(50) == 0
		u.direct++
		u.mu.Unlock()
		for range turns {
			runtime.Gosched() // what goes on beside a flush goes on
		}
		if full {
			return syscall.ENOSPC
		}
		return nil
	}))
	o := small(u.fs)
	o.Shards, o.GroupBytes, o.JournalMaxBytes = 1, 64<<10, 4<<20
	if u.seed%4 > 0 {
		o = topiclog.Promoting(o, 1, 2000, []int{1, 20_000, 60_000}[u.seed%3])
	}
	o = topiclog.SmallBlocks(o, []int{64 << 10, 128 << 10}[u.seed%2])
	u.s = open(u.t, o)
	tp, err := u.s.CreateTopic(ctx, topiclog.TopicSpec{Name: "t", Partitions: 4})
	check(u.t, err)
	var appending, others sync.WaitGroup
	for _, p := range tp.Partitions {
		u.written[p.ID] = map[int64]string{}
	}
	for _, p := range tp.Partitions {
		appending.Go(func() { u.append(p.ID) })
		for range 2 {
			others.Go(func() { u.read(p.ID) })
		}
	}
	others.Go(u.flush)
	others.Go(func() { u.trim(tp.Partitions[0].ID) })
	others.Go(u.comeAndGo)
	appending.Wait()
	close(u.stop)
	others.Wait()
	u.fs.SetInjector(nil)
	u.s.CheckSpace()
	u.compare("the cache and segments")
	check(u.t, u.s.Flush(ctx))
	u.compare("segments")
	check(u.t, u.s.Close())
	u.s = open(u.t, o)
	u.compare("opened again")
	check(u.t, u.s.Close())
	u.t.Logf("%d writes of segments, %d appends refused, %d leases", u.direct, u.refused, u.leases)
	if u.seed%3 == 0 && u.seed%4 > 0 && u.refused == 0 {
		u.t.Error("no append met a full disk")
	}
}

// append appends in bursts, in memory that is overwritten as soon as the store is done
// with it.
func (u *reuse) append(id topiclog.PartitionID) {
	rng := u.rng()
	for n := 0; n < u.appends; {
		var reqs []topiclog.AppendRequest
		var values [][]string
		for range 1 + rng.IntN(3) {
			var vs []string
			for range 1 + rng.IntN(3) {
				vs = append(vs, fmt.Sprintf("%d.%d.%s", id, n, strings.Repeat(string(rune('a'+n%26)), rng.IntN([]int{200, 5000, 30_000}[rng.IntN(3)]))))
			}
			reqs, values = append(reqs, topiclog.AppendRequest{Partition: id, Batches: batch(u.t, vs...)}), append(values, vs)
			n++
		}
		ended := make(chan struct{})
		u.s.AppendAll(reqs, func(i int, res topiclog.AppendResult, err error) {
			vfs.Poison(reqs[i].Batches)
			u.mu.Lock()
			defer u.mu.Unlock()
			switch {
			case err == nil:
				for k, v := range values[i] {
					u.written[id][res.BaseOffset+int64(k)] = v
				}
			case errors.Is(err, topiclog.ErrDiskFull):
				u.refused++
			default:
				u.t.Errorf("appending to %d: %v", id, err)
			}
		}, func() { close(ended) })
		<-ended
		u.s.CheckSpace()
	}
}

// read keeps leases for a while and looks whether they stay what they were.
func (u *reuse) read(id topiclog.PartitionID) {
	rng := u.rng()
	type held struct {
		l    *topiclog.Lease
		copy []byte
	}
	var kept []held
	letGo := func(h held) {
		if got := bytes.Join(h.l.Chunks, nil); !bytes.Equal(got, h.copy) {
			u.t.Errorf("seed %d: partition %d: a lease changed while it was held", u.seed, id)
		}
		h.l.Release()
	}
	offset := int64(0)
	for {
		select {
		case <-u.stop:
			for _, h := range kept {
				letGo(h)
			}
			return
		default:
		}
		l, err := u.s.Fetch(context.Background(), topiclog.FetchRequest{Partition: id, Offset: offset, MaxBytes: 1 + rng.IntN(200_000), MaxWait: 20 * time.Millisecond})
		var out *topiclog.OffsetError
		switch {
		case errors.Is(err, topiclog.ErrPartitionNotFound):
			offset = -1
		case errors.As(err, &out):
			offset = out.Start
			continue
		case err != nil:
			u.t.Errorf("seed %d: reading partition %d at %d: %v", u.seed, id, offset, err)
		}
		if err != nil {
			for _, h := range kept {
				letGo(h)
			}
			return
		}
		all := bytes.Join(l.Chunks, nil)
		for rest := all; len(rest) > 0; {
			var b record.Batch
			if b, rest, err = record.Split(rest); err != nil {
				u.t.Errorf("seed %d: partition %d from %d: %v", u.seed, id, offset, err)
				break
			}
			if b.LastOffset() < offset {
				u.t.Errorf("seed %d: partition %d: a batch that ends at %d, read from %d", u.seed, id, b.LastOffset(), offset)
			}
		}
		u.mu.Lock()
		u.leases++
		u.mu.Unlock()
		if kept = append(kept, held{l, all}); len(kept) > 4 {
			at := rng.IntN(len(kept))
			letGo(kept[at])
			kept[at] = kept[len(kept)-1]
			kept = kept[:len(kept)-1]
		}
		if offset = l.NextOffset; rng.IntN(20) == 0 {
			offset = l.Start + rng.Int64N(l.HighWatermark-l.Start+1)
		}
	}
}

// flush flushes all the time: every group meets one.
func (u *reuse) flush() {
	for {
		select {
		case <-u.stop:
			return
		default:
			if err := u.s.Flush(context.Background()); err != nil && !errors.Is(err, topiclog.ErrDiskFull) && !errors.Is(err, syscall.ENOSPC) {
				u.t.Errorf("flushing: %v", err)
				return
			}
			runtime.Gosched()
		}
	}
}

// trim deletes the older half of a partition's records now and then.
func (u *reuse) trim(id topiclog.PartitionID) {
	rng := u.rng()
	for {
		select {
		case <-u.stop:
			return
		default:
		}
		if rng.IntN(50) > 0 {
			runtime.Gosched()
			continue
		}
		st, err := u.s.State(id)
		if err == nil {
			_, err = u.s.DeleteRecords(context.Background(), id, (st.Start+st.HighWatermark)/2)
		}
		if err != nil && !errors.Is(err, topiclog.ErrDiskFull) {
			u.t.Errorf("deleting records: %v", err)
			return
		}
	}
}

// comeAndGo makes topics, and deletes them while they are written and read.
func (u *reuse) comeAndGo() {
	ctx := context.Background()
	rng := u.rng()
	for {
		select {
		case <-u.stop:
			return
		default:
		}
		tp, err := u.s.CreateTopic(ctx, topiclog.TopicSpec{Name: "gone", Partitions: 1})
		if err != nil {
			u.t.Errorf("creating a topic: %v", err)
			return
		}
		id := tp.Partitions[0].ID
		var reading sync.WaitGroup
		reading.Go(func() { u.read(id) })
		for range rng.IntN(8) {
			if _, err := u.s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(u.t, strings.Repeat("x", rng.IntN(30_000)))}); err != nil && !errors.Is(err, topiclog.ErrDiskFull) {
				u.t.Errorf("appending to a topic that goes: %v", err)
			}
		}
		left := make(chan error, 1)
		u.s.AppendAsync(topiclog.AppendRequest{Partition: id, Batches: batch(u.t, strings.Repeat("x", 30_000))}, func(_ topiclog.AppendResult, err error) { left <- err })
		if err := u.s.DeleteTopic(ctx, "gone", false); err != nil {
			u.t.Errorf("deleting a topic: %v", err)
			return
		}
		if err := <-left; err != nil && !errors.Is(err, topiclog.ErrDiskFull) && !errors.Is(err, topiclog.ErrPartitionNotFound) {
			u.t.Errorf("appending to a topic that is gone: %v", err)
		}
		reading.Wait()
	}
}

// compare reads everything.
func (u *reuse) compare(from string) {
	u.t.Helper()
	for id, want := range u.written {
		st, err := u.s.State(id)
		check(u.t, err)
		n := 0
		for _, r := range readAll(u.t, u.s, id, st.Start) {
			var offset int64
			_, err := fmt.Sscanf(r, "%d:", &offset)
			check(u.t, err)
			_, value, _ := strings.Cut(r, ":")
			if want[offset] != value {
				u.t.Fatalf("seed %d, %s: partition %d has other %d bytes at %d than were written", u.seed, from, id, len(value), offset)
			}
			n++
		}
		for offset := range want {
			if offset < st.Start {
				n++
			}
		}
		if n != len(want) {
			u.t.Fatalf("seed %d, %s: partition %d has %d records, %d were written", u.seed, from, id, n, len(want))
		}
	}
}
