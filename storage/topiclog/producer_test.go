package topiclog_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// sequenced builds a batch of a producer.
func sequenced(t testing.TB, id int64, epoch int16, seq int32, transactional bool, values ...string) []byte {
	t.Helper()
	var b record.Builder
	b.SetProducer(id, epoch, seq, transactional)
	for i, v := range values {
		check(t, b.Append(int64(1000+i), []byte("k"), []byte(v), nil))
	}
	raw, err := b.Build()
	check(t, err)
	return slices.Clone(raw)
}

func oneTopic(t testing.TB, s *topiclog.Store, name string, partitions int, config map[string]string) topiclog.Topic {
	t.Helper()
	tp, err := s.CreateTopic(context.Background(), topiclog.TopicSpec{Name: name, Partitions: partitions, Config: config})
	check(t, err)
	return tp
}

// The rules of Kafka 4 for the next batch of a producer.
func TestSequenceRules(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	defer s.Close()
	id := oneTopic(t, s, "t", 1, nil).Partitions[0].ID
	const old = math.MaxInt32
	for i, x := range []struct {
		producer int64
		epoch    int16
		seq      int32
		records  int
		fresh    bool
		base     int64 // what is answered, -1 for the error
		repeated bool
		err      error
	}{
		{1, 0, 0, 2, false, 0, false, nil},
		{1, 0, 2, 1, false, 2, false, nil},
		{1, 0, 4, 1, false, -1, false, topiclog.ErrSequence}, // a gap
		{1, 0, 0, 2, false, 0, true, nil},                    // again
		{1, 0, 2, 1, false, 2, true, nil},
		{1, 0, 0, 1, false, -1, false, topiclog.ErrSequence}, // the same begin, another end
		{1, 0, 3, 1, false, 3, false, nil},
		{1, 0, 4, 1, false, 4, false, nil},
		{1, 0, 5, 1, false, 5, false, nil},
		{1, 0, 6, 1, false, 6, false, nil},
		{1, 0, 0, 2, false, -1, false, topiclog.ErrSequence}, // more than five ago
		{1, 0, 2, 1, false, 2, true, nil},
		{1, 1, 5, 1, false, -1, false, topiclog.ErrSequence}, // a new epoch begins with 0
		{1, 1, 0, 1, false, 7, false, nil},
		{1, 0, 7, 1, false, -1, false, topiclog.ErrProducerEpoch},
		{1, 0, 6, 1, false, -1, false, topiclog.ErrProducerEpoch}, // not even as a duplicate
		{1, 1, 1, 1, false, 8, false, nil},
		{2, 3, 17, 1, false, 9, false, nil}, // unknown: any sequence
		{2, 3, 18, 1, false, 10, false, nil},
		{3, 0, 17, 1, true, -1, false, topiclog.ErrSequence}, // unknown, but new by its own words
		{3, 0, 0, 1, true, 11, false, nil},
		{4, 0, old - 1, 2, false, 12, false, nil}, // sequences wrap
		{4, 0, 0, 1, false, 14, false, nil},
		{4, 0, old - 1, 2, false, 12, true, nil},
		{5, 0, old, 3, false, 15, false, nil}, // and within a batch
		{5, 0, 2, 1, false, 18, false, nil},
		{5, 0, old, 3, false, 15, true, nil},
	} {
		var values []string
		for k := range x.records {
			values = append(values, fmt.Sprint(i, k))
		}
		res, err := s.Append(context.Background(), topiclog.AppendRequest{Partition: id, FreshEpoch: x.fresh,
			Batches: sequenced(t, x.producer, x.epoch, x.seq, false, values...)})
		if !errors.Is(err, x.err) || err == nil && (res.BaseOffset != x.base || res.LastOffset != x.base+int64(x.records)-1 || res.Repeated != x.repeated) {
			t.Errorf("%d: %+v: %+v, %v", i, x, res, err)
		}
	}
	if got := len(readAll(t, s, id, 0)); got != 19 {
		t.Errorf("%d records, want 19", got)
	}
}

// Batches that wait together, and the same ones again while they wait, take their
// offsets once.
func TestRepeatedInOneGroup(t *testing.T) {
	mem := vfs.NewMem()
	block, release := make(chan struct{}), make(chan struct{})
	var syncs atomic.Int32
	fault := vfs.NewFault(mem, nil)
	o := small(fault)
	o.Shards = 1
	s := open(t, o)
	defer s.Close()
	id := oneTopic(t, s, "t", 1, nil).Partitions[0].ID
	fault.SetInjector(vfs.InjectorFunc(func(op vfs.Op) error {
		if op.Kind&vfs.OpSync != 0 && strings.Contains(op.Path, "journal") {
			if syncs.Add(1) <= 2 {
				block <- struct{}{}
				<-release
			}
		}
		return nil
	}))
	type outcome struct {
		res topiclog.AppendResult
		err error
	}
	var outs []chan outcome
	send := func(seq int32) {
		ch := make(chan outcome, 1)
		outs = append(outs, ch)
		s.AppendAsync(topiclog.AppendRequest{Partition: id, Batches: sequenced(t, 9, 0, seq, false, fmt.Sprint(seq))},
			func(res topiclog.AppendResult, err error) { ch <- outcome{res, err} })
	}
	send(0)
	<-block // the first is being synced; the rest makes one group
	for _, seq := range []int32{1, 2, 0, 1, 2, 4, 3, 3} {
		send(seq)
	}
	release <- struct{}{}
	<-block
	// The second group is being synced: only what the first one has is known, and
	// what will never be.
	for i, ch := range outs {
		if known := i == 0 || i == 3 || i == 6; known != (len(ch) == 1) {
			t.Errorf("%d: answered %v before the sync of its group", i, len(ch) == 1)
		}
	}
	release <- struct{}{}
	for i, want := range []int64{0, 1, 2, 0, 1, 2, -1, 3, 3} {
		got := <-outs[i]
		if want < 0 {
			if !errors.Is(got.err, topiclog.ErrSequence) {
				t.Errorf("%d: %v", i, got.err)
			}
		} else if got.err != nil || got.res.BaseOffset != want {
			t.Errorf("%d: %+v, want %d", i, got, want)
		}
	}
	if got := fmt.Sprint(readAll(t, s, id, 0)); got != "[0:0 1:1 2:2 3:3]" {
		t.Error(got)
	}
}

// A request of which a later batch is refused leaves nothing of its earlier ones: what
// comes then, in the same group or in the next, is no repetition of them.
func TestRefusedBatchLeavesNothingOfEarlierOnes(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	defer s.Close()
	tp := oneTopic(t, s, "t", 2, nil)
	id, other := tp.Partitions[0].ID, tp.Partitions[1].ID
	refused := slices.Concat(sequenced(t, 9, 0, 0, false, "a"), sequenced(t, 9, 0, 5, false, "b"))
	errs, results := make([]error, 4), make([]topiclog.AppendResult, 4)
	ended := make(chan struct{})
	s.AppendAll([]topiclog.AppendRequest{
		{Partition: id, Batches: refused},
		{Partition: other, Batches: refused},
		{Partition: other, Batches: sequenced(t, 9, 0, 0, false, "0")},
		{Partition: other, Batches: sequenced(t, 9, 0, 1, false, "1")},
	}, func(i int, res topiclog.AppendResult, err error) { results[i], errs[i] = res, err }, func() { close(ended) })
	<-ended
	for i, err := range errs {
		if i < 2 != errors.Is(err, topiclog.ErrSequence) || i >= 2 && (err != nil || results[i].Repeated) {
			t.Errorf("request %d: %+v, %v", i, results[i], err)
		}
	}
	res, err := s.Append(context.Background(), topiclog.AppendRequest{Partition: id, Batches: sequenced(t, 9, 0, 0, false, "0")})
	if err != nil || res.Repeated {
		t.Errorf("the batch that follows: %+v, %v", res, err)
	}
	for p, want := range map[topiclog.PartitionID]string{id: "[0:0]", other: "[0:0 1:1]"} {
		if got := fmt.Sprint(readAll(t, s, p, 0)); got != want {
			t.Errorf("partition %d has %s, want %s", p, got, want)
		}
	}
}

// A group that fails for want of space changes nothing of what is known of
// producers.
func TestSequencesAfterFailedGroup(t *testing.T) {
	mem := vfs.NewMem()
	limited := vfs.NewLimited(mem, 1<<40)
	o := small(limited)
	o.Shards = 1
	s := open(t, o)
	defer s.Close()
	id := oneTopic(t, s, "t", 1, nil).Partitions[0].ID
	value := strings.Repeat("x", 50_000)
	put := func(seq int32) error {
		_, err := s.Append(context.Background(), topiclog.AppendRequest{Partition: id, Batches: sequenced(t, 9, 0, seq, false, value)})
		return err
	}
	check(t, put(0))
	limited.SetLimit(0)
	var seq int32 = 1
	for {
		err := put(seq)
		if errors.Is(err, topiclog.ErrDiskFull) {
			break
		}
		check(t, err)
		seq++
	}
	limited.SetLimit(1 << 40)
	s.CheckSpace()
	check(t, put(seq))
	check(t, put(seq+1))
	if got := len(readAll(t, s, id, 0)); got != int(seq)+2 {
		t.Errorf("%d records, want %d", got, seq+2)
	}
}

// lastBatches is the oracle: what each producer appended in each partition.
type lastBatches struct {
	epoch   int16
	next    int32
	batches []sentBatch // of the epoch
}

type sentBatch struct {
	seq  int32
	base int64
	n    int
}

type producerKey struct {
	part topiclog.PartitionID
	id   int64
}

// What is known of producers survives crashes and restarts exactly, whether it is
// in the journal, in the manifest or in both, and whatever is trimmed.
func TestProducersAfterCrashes(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 77))
		mem := vfs.NewMem()
		o := small(mem)
		o.CacheBytes, o.JournalFileBytes = 1<<20, 32<<10
		if seed%2 == 0 {
			o = topiclog.RewriteAlways(o)
		}
		if seed%4 > 1 {
			o = topiclog.Promoting(o, 1, 1, 1)
		}
		s := open(t, o)
		tp := oneTopic(t, s, "t", 3, nil)
		known := map[producerKey]*lastBatches{}
		ctx := context.Background()
		for op := range 300 {
			id := tp.Partitions[rng.IntN(3)].ID
			switch k := rng.IntN(40); {
			case k == 0:
				check(t, s.Flush(ctx))
			case k == 1:
				st, err := s.State(id)
				check(t, err)
				_, err = s.DeleteRecords(ctx, id, st.Start+rng.Int64N(st.HighWatermark-st.Start+1))
				check(t, err)
			case k == 2, k == 3:
				next := mem.CrashClone(vfs.CrashOptions{})
				if k == 3 {
					check(t, s.Close())
					next = mem
				} else {
					defer s.Close()
				}
				mem, o.FS = next, next
				s = open(t, o)
				compareProducers(t, s, known, fmt.Sprintf("seed %d, operation %d", seed, op))
			default:
				key := producerKey{id, int64(rng.IntN(4))}
				x := known[key]
				if x == nil {
					x = &lastBatches{}
					known[key] = x
				}
				if rng.IntN(20) == 0 {
					*x = lastBatches{epoch: x.epoch + 1}
				}
				values := slices.Repeat([]string{fmt.Sprint(op)}, 1+rng.IntN(3))
				res, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: sequenced(t, key.id, x.epoch, x.next, false, values...)})
				if err != nil || res.Repeated {
					t.Fatalf("seed %d, operation %d: %+v %v", seed, op, res, err)
				}
				x.batches = append(x.batches, sentBatch{x.next, res.BaseOffset, len(values)})
				x.next += int32(len(values))
			}
			if t.Failed() {
				return
			}
		}
		check(t, s.Close())
	}
}

func compareProducers(t *testing.T, s *topiclog.Store, known map[producerKey]*lastBatches, what string) {
	t.Helper()
	for key, x := range known {
		for back := 1; back <= min(6, len(x.batches)); back++ {
			b := x.batches[len(x.batches)-back]
			res, err := s.Append(context.Background(), topiclog.AppendRequest{Partition: key.part,
				Batches: sequenced(t, key.id, x.epoch, b.seq, false, make([]string, b.n)...)})
			if back <= 5 && (err != nil || !res.Repeated || res.BaseOffset != b.base) {
				t.Errorf("%s: partition %d producer %d: the batch %d from the end: %+v %v, want offset %d", what, key.part, key.id, back, res, err, b.base)
			}
			if back == 6 && !errors.Is(err, topiclog.ErrSequence) {
				t.Errorf("%s: partition %d producer %d: the sixth from the end: %v", what, key.part, key.id, err)
			}
		}
		if len(x.batches) == 0 {
			continue
		}
		if x.epoch > 0 {
			_, err := s.Append(context.Background(), topiclog.AppendRequest{Partition: key.part, Batches: sequenced(t, key.id, x.epoch-1, 0, false, "old")})
			if !errors.Is(err, topiclog.ErrProducerEpoch) {
				t.Errorf("%s: partition %d producer %d: an old epoch: %v", what, key.part, key.id, err)
			}
		}
	}
	for key, x := range known {
		if len(x.batches) == 0 {
			continue
		}
		ps, err := s.Producers(key.part)
		check(t, err)
		i := slices.IndexFunc(ps, func(p topiclog.ProducerInfo) bool { return p.ProducerID == key.id })
		if i < 0 || ps[i].Epoch != x.epoch || ps[i].LastSequence != x.next-1 || ps[i].TransactionStart != -1 {
			t.Errorf("%s: partition %d producer %d: %+v, want epoch %d, last sequence %d", what, key.part, key.id, ps, x.epoch, x.next-1)
		}
	}
}

func TestProducerExpiration(t *testing.T) {
	mem := vfs.NewMem()
	clock := &manualClock{wall: time.UnixMilli(1_700_000_000_000)}
	o := small(mem)
	o.Clock, o.ProducerExpiration = clock.clock(), time.Hour
	s := open(t, o)
	id := oneTopic(t, s, "t", 1, nil).Partitions[0].ID
	put := func(producer int64, seq int32) error {
		_, err := s.Append(context.Background(), topiclog.AppendRequest{Partition: id, Batches: sequenced(t, producer, 0, seq, false, "v")})
		return err
	}
	check(t, put(1, 0))
	check(t, s.Flush(context.Background()))
	clock.pass(40 * time.Minute)
	check(t, put(2, 0))
	clock.pass(40 * time.Minute)
	if n := s.ExpireProducers(); n != 1 {
		t.Errorf("%d producers expired, want 1", n)
	}
	if err := put(2, 5); !errors.Is(err, topiclog.ErrSequence) {
		t.Errorf("a gap of a producer that is known: %v", err)
	}
	check(t, put(2, 1))
	check(t, put(1, 7)) // nothing is known of it any more
	o.FS = mem.CrashClone(vfs.CrashOptions{})
	check(t, s.Close())
	s = open(t, o)
	s.ExpireProducers()
	check(t, put(1, 8))
	if err := put(2, 5); !errors.Is(err, topiclog.ErrSequence) {
		t.Errorf("after a crash, a gap of a producer that is known: %v", err)
	}
	check(t, s.Close())
}

// Producers beyond the bound push the idlest out, so that memory is bounded.
func TestProducerBound(t *testing.T) {
	clock := &manualClock{wall: time.UnixMilli(1_700_000_000_000)}
	o := small(vfs.NewMem())
	o.Shards, o.MaxProducers, o.Clock = 1, 50, clock.clock()
	s := open(t, o)
	defer s.Close()
	id := oneTopic(t, s, "t", 1, nil).Partitions[0].ID
	for i := range 200 {
		clock.pass(time.Minute)
		_, err := s.Append(context.Background(), topiclog.AppendRequest{Partition: id, Batches: sequenced(t, int64(i), 0, 0, false, "v")})
		check(t, err)
	}
	ps, err := s.Producers(id)
	check(t, err)
	if len(ps) > 51 || ps[len(ps)-1].ProducerID != 199 {
		t.Errorf("%d producers are known, want at most 51 with the last", len(ps))
	}
}

// Producer ids are never given again, whatever a crash takes away.
func TestProducerIDsAfterCrashes(t *testing.T) {
	mem := vfs.NewMem()
	seen := map[int64]bool{}
	var mu sync.Mutex
	var clones []*vfs.MemFS
	var given []int
	fault := vfs.NewFault(mem, vfs.InjectorFunc(func(op vfs.Op) error {
		if op.Kind&(vfs.OpSync|vfs.OpSyncDir|vfs.OpWrite) != 0 {
			mu.Lock()
			clones, given = append(clones, mem.CrashClone(vfs.CrashOptions{})), append(given, len(seen))
			mu.Unlock()
		}
		return nil
	}))
	s := open(t, small(fault))
	var ids []int64
	for range 2500 {
		id, err := s.AllocateProducerID(context.Background())
		check(t, err)
		mu.Lock()
		if seen[id] {
			t.Fatalf("id %d was given twice", id)
		}
		seen[id] = true
		ids = append(ids, id)
		mu.Unlock()
	}
	check(t, s.Close())
	for i, c := range clones {
		s, err := topiclog.Open(small(c))
		check(t, err)
		id, err := s.AllocateProducerID(context.Background())
		check(t, err)
		if slices.Contains(ids[:given[i]], id) {
			t.Errorf("crash %d: id %d was given before", i, id)
		}
		check(t, s.Close())
	}
	if len(clones) < 6 {
		t.Errorf("only %d crashes", len(clones))
	}
}

// Compaction drops what newer records of the key replace from batches of
// idempotent producers, too, and keeps their sequences.
func TestCompactionOfSequencedBatches(t *testing.T) {
	ctx := context.Background()
	s := open(t, small(vfs.NewMem()))
	defer s.Close()
	id := oneTopic(t, s, "t", 1, map[string]string{"cleanup.policy": "compact"}).Partitions[0].ID
	for seq := range int32(6) {
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: sequenced(t, 7, 2, 2*seq, false, fmt.Sprint("a", seq), fmt.Sprint("b", seq))})
		check(t, err)
	}
	check(t, s.Flush(ctx))
	check(t, s.Compact(ctx, "t"))
	// The last batch stays whole.
	if got := fmt.Sprint(readAll(t, s, id, 0)); got != "[10:a5 11:b5]" {
		t.Error(got)
	}
	res, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: sequenced(t, 7, 2, 4, false, "a2", "b2")})
	if err != nil || !res.Repeated || res.BaseOffset != 4 {
		t.Errorf("a batch that compaction dropped, again: %+v %v", res, err)
	}
}
