package kafkaproto_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kversion"

	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// oldTransactions makes a client speak the versions before KIP-890.
func oldTransactions() kgo.Opt { return kgo.MaxVersions(kversion.V3_5_0()) }

// readCommitted reads committed records from the beginning to an offset, as this
// process does.
func readCommitted(t testing.TB, s *topiclog.Store, id topiclog.PartitionID, end int64, f func(string)) {
	t.Helper()
	var d record.Decoder
	defer d.Close()
	for from := int64(0); from < end; {
		l, err := s.Fetch(context.Background(), topiclog.FetchRequest{Partition: id, Offset: from})
		if err != nil {
			t.Fatal(err)
		}
		err = client.EachRecord(l, &d, from, func(r *record.Record) error { f(string(r.Value)); return nil })
		if err != nil {
			t.Fatal(err)
		}
		from = l.NextOffset
		l.Release()
	}
}

// lastOffsetOf is the last offset in a row of batches, -1 if there are none.
func lastOffsetOf(t testing.TB, batches []byte) int64 {
	t.Helper()
	last := int64(-1)
	for len(batches) > 0 {
		b, rest, err := record.Split(batches)
		if err != nil {
			t.Fatal(err)
		}
		last, batches = b.LastOffset(), rest
	}
	return last
}

// transactional is a client with a transactional id.
func (r *rig) transactional(t testing.TB, id string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(r.addr), kgo.TransactionalID(id), kgo.ProducerLinger(0),
		kgo.RetryBackoffFn(func(int) time.Duration { return time.Millisecond })}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// consumed reads all records of a topic of one partition up to an offset.
func (r *rig) consumed(t testing.TB, topic string, end int64, level kgo.IsolationLevel) []string {
	t.Helper()
	c := r.client(t, kgo.FetchIsolationLevel(level), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}))
	var out []string
	for next := int64(0); next < end; {
		fs := c.PollFetches(ctxOf(t))
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		fs.EachRecord(func(rec *kgo.Record) {
			if next = rec.Offset + 1; !rec.Attrs.IsControl() {
				out = append(out, string(rec.Value))
			}
		})
	}
	return out
}

func TestTransactionalClient(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(fmt.Sprint("before KIP-890: ", old), func(t *testing.T) {
			r := start(t, kafkaproto.Options{})
			topic := r.topic(t, "t", 1, nil)
			var opts []kgo.Opt
			if old {
				opts = append(opts, oldTransactions())
			}
			p := r.transactional(t, "tx", append(opts, kgo.DefaultProduceTopic("t"))...)
			ctx := ctxOf(t)
			for i, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
				if err := p.BeginTransaction(); err != nil {
					t.Fatal(err)
				}
				for k := range 3 {
					if err := p.ProduceSync(ctx, kgo.StringRecord(fmt.Sprint(i, "-", k))).FirstErr(); err != nil {
						t.Fatal(err)
					}
				}
				if err := p.EndTransaction(ctx, commit); err != nil {
					t.Fatalf("ending %d: %v", i, err)
				}
			}
			st, err := r.store.State(topic.Partitions[0].ID)
			if err != nil || st.HighWatermark != 20 || st.StableEnd != 20 {
				t.Fatalf("%+v %v", st, err)
			}
			committed := []string{"0-0", "0-1", "0-2", "2-0", "2-1", "2-2", "4-0", "4-1", "4-2"}
			if got := r.consumed(t, "t", 20, kgo.ReadCommitted()); !slices.Equal(got, committed) {
				t.Errorf("read committed: %v", got)
			}
			if got := r.consumed(t, "t", 20, kgo.ReadUncommitted()); len(got) != 15 {
				t.Errorf("read uncommitted: %v", got)
			}
			info, err := r.store.Transaction("tx")
			if err != nil {
				t.Fatal(err)
			}
			if raised := info.Producer.Epoch > 0; raised == old {
				t.Errorf("after five transactions the epoch is %d", info.Producer.Epoch)
			}
		})
	}
}

// A zombie, whose transactional id a newer producer has taken, can neither write
// nor end anything.
func TestZombieIsFenced(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "t", 1, nil)
	ctx := ctxOf(t)
	for i, opts := range [][]kgo.Opt{nil, {oldTransactions()}} {
		id := fmt.Sprint("tx", i)
		opts = append(opts, kgo.DefaultProduceTopic("t"))
		zombie := r.transactional(t, id, opts...)
		if err := zombie.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := zombie.ProduceSync(ctx, kgo.StringRecord("zombie")).FirstErr(); err != nil {
			t.Fatal(err)
		}
		fresh := r.transactional(t, id, opts...)
		if err := fresh.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := fresh.ProduceSync(ctx, kgo.StringRecord("fresh")).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if err := zombie.ProduceSync(ctx, kgo.StringRecord("zombie")).FirstErr(); !errors.Is(err, kerr.InvalidProducerEpoch) && !errors.Is(err, kerr.ProducerFenced) {
			t.Errorf("a zombie writes: %v", err)
		}
		if err := zombie.EndTransaction(ctx, kgo.TryCommit); err == nil {
			t.Error("a zombie commits")
		}
		if err := fresh.EndTransaction(ctx, kgo.TryCommit); err != nil {
			t.Error(err)
		}
	}
	st, err := r.store.State(topic.Partitions[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.consumed(t, "t", st.HighWatermark, kgo.ReadCommitted()); !slices.Equal(got, []string{"fresh", "fresh"}) {
		t.Errorf("read committed: %v", got)
	}
}

// A chain of consume, transform, produce in transactions gives each record once,
// although its members come and go and transactions are aborted.
func TestExactlyOnceCopy(t *testing.T) {
	r := start(t, kafkaproto.Options{InitialRebalanceDelay: -1})
	r.topic(t, "in", 3, nil)
	out := r.topic(t, "out", 3, nil)
	const total = 900
	p := r.client(t, kgo.DefaultProduceTopic("in"))
	for i := range total {
		p.Produce(ctxOf(t), &kgo.Record{Value: []byte(strconv.Itoa(i)), Key: []byte(strconv.Itoa(i))}, nil)
	}
	if err := p.Flush(ctxOf(t)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	copier := func(n int, transactions int) {
		defer wg.Done()
		s, err := kgo.NewGroupTransactSession(kgo.SeedBrokers(r.addr), kgo.TransactionalID(fmt.Sprint("copy", n)),
			kgo.ConsumerGroup("copiers"), kgo.ConsumeTopics("in"), kgo.RequireStableFetchOffsets(), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DefaultProduceTopic("out"), kgo.ProducerLinger(0),
			kgo.RetryBackoffFn(func(int) time.Duration { return 2 * time.Millisecond }), kgo.FetchMaxBytes(2000), kgo.FetchMaxPartitionBytes(500))
		if err != nil {
			t.Error(err)
			return
		}
		defer s.Close()
		for i := range transactions {
			fs := s.PollRecords(ctx, 20)
			if ctx.Err() != nil {
				return
			}
			if err := s.Begin(); err != nil {
				t.Error(err)
				return
			}
			fs.EachRecord(func(rec *kgo.Record) { s.Produce(ctx, &kgo.Record{Key: rec.Key, Value: rec.Value}, nil) })
			end := kgo.TryCommit
			if i%5 == 3 {
				end = kgo.TryAbort
			}
			if _, err := s.End(ctx, end); err != nil && ctx.Err() == nil {
				t.Errorf("copier %d, transaction %d: %v", n, i, err)
				return
			}
		}
	}
	wg.Add(3)
	go copier(0, 6) // leaves early
	go copier(1, 1_000_000)
	go copier(2, 1_000_000)
	c := r.client(t, kgo.ConsumeTopics("out"), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	seen := map[string]int{}
	for len(seen) < total {
		fs := c.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("only %d of %d records came", len(seen), total)
		}
		fs.EachRecord(func(rec *kgo.Record) { seen[string(rec.Value)]++ })
	}
	cancel()
	wg.Wait()
	// What came after the last one that was missing.
	clear(seen)
	for _, part := range out.Partitions {
		st, err := r.store.State(part.ID)
		if err != nil {
			t.Fatal(err)
		}
		readCommitted(t, r.store, part.ID, st.StableEnd, func(value string) { seen[value]++ })
	}
	for i := range total {
		if n := seen[strconv.Itoa(i)]; n != 1 {
			t.Errorf("record %d was copied %d times", i, n)
		}
	}
}

// A client whose transaction was aborted after its timeout learns of it, and goes on
// after an abort of its own.
func TestTimeoutOfTransactionalClient(t *testing.T) {
	var mu sync.Mutex
	now := time.Now()
	store, err := topiclog.Open(topiclog.Options{FS: vfs.NewMem(), Dir: "data", ReserveBytes: -1, RetentionInterval: -1, TransactionInterval: -1,
		Clock: topiclog.Clock{Wall: func() time.Time { mu.Lock(); defer mu.Unlock(); return now }}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	r := serveStore(t, store, kafkaproto.Options{})
	topic := r.topic(t, "t", 1, nil)
	ctx := ctxOf(t)
	for _, old := range []bool{false, true} {
		opts := []kgo.Opt{kgo.DefaultProduceTopic("t"), kgo.TransactionTimeout(time.Minute)}
		if old {
			opts = append(opts, oldTransactions())
		}
		p := r.transactional(t, fmt.Sprint("old", old), opts...)
		produce := func(value string) error { return p.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr() }
		if err := p.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := produce("late"); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		now = now.Add(time.Minute)
		mu.Unlock()
		if n := store.ExpireTransactions(); n != 1 {
			t.Fatalf("%d transactions aborted, want 1", n)
		}
		if err := produce("later"); !errors.Is(err, kerr.InvalidProducerEpoch) && !errors.Is(err, kerr.ProducerFenced) {
			t.Errorf("old %v: producing after the timeout: %v", old, err)
		}
		if err := p.EndTransaction(ctx, kgo.TryAbort); err != nil {
			t.Fatalf("old %v: aborting after the timeout: %v", old, err)
		}
		if err := p.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := produce("in time"); err != nil {
			t.Errorf("old %v: producing in the next transaction: %v", old, err)
		}
		if err := p.EndTransaction(ctx, kgo.TryCommit); err != nil {
			t.Errorf("old %v: committing the next transaction: %v", old, err)
		}
	}
	var got []string
	st, err := store.State(topic.Partitions[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	readCommitted(t, store, topic.Partitions[0].ID, st.StableEnd, func(v string) { got = append(got, v) })
	if !slices.Equal(got, []string{"in time", "in time"}) || st.StableEnd != st.HighWatermark {
		t.Errorf("read %v, stable end %d of %d", got, st.StableEnd, st.HighWatermark)
	}
}
