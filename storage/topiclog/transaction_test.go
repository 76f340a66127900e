package topiclog_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// txnProducer appends within transactions as a client does.
type txnProducer struct {
	t    testing.TB
	s    *topiclog.Store
	id   string
	who  topiclog.ProducerIdentity
	seq  map[topiclog.PartitionID]int32
	bump bool  // a new epoch with each end
	last int64 // offset of the last append
}

func newTxnProducer(t testing.TB, s *topiclog.Store, id string, bump bool) *txnProducer {
	t.Helper()
	who, err := s.InitTransaction(context.Background(), id, time.Minute, topiclog.NoProducer)
	check(t, err)
	return &txnProducer{t: t, s: s, id: id, who: who, seq: map[topiclog.PartitionID]int32{}, bump: bump}
}

func (p *txnProducer) put(part topiclog.PartitionID, values ...string) error {
	ctx := context.Background()
	if err := p.s.AddToTransaction(ctx, p.id, p.who, []topiclog.PartitionID{part}); err != nil {
		return err
	}
	res, err := p.s.Append(ctx, topiclog.AppendRequest{Partition: part, TransactionalID: p.id, FreshEpoch: p.bump,
		Batches: sequenced(p.t, p.who.ID, p.who.Epoch, p.seq[part], true, values...)})
	if err == nil {
		p.last = res.BaseOffset
		p.seq[part] += int32(len(values))
	}
	return err
}

func (p *txnProducer) end(commit bool) error {
	next, err := p.s.EndTransaction(context.Background(), p.id, p.who, commit, p.bump)
	if err == nil && next != p.who {
		p.who, p.seq = next, map[topiclog.PartitionID]int32{}
	}
	return err
}

// readWith returns the values of data records under an isolation, as a client
// sees them.
func readWith(t testing.TB, s *topiclog.Store, id topiclog.PartitionID, isolation topiclog.Isolation) []string {
	t.Helper()
	st, err := s.State(id)
	check(t, err)
	out := []string{}
	var d record.Decoder
	for from := st.Start; ; {
		l, err := s.Fetch(context.Background(), topiclog.FetchRequest{Partition: id, Offset: from, Isolation: isolation, MaxBytes: 300})
		check(t, err)
		if len(l.Chunks) == 0 {
			if isolation != topiclog.Uncommitted && l.NextOffset != l.ReadEnd {
				t.Errorf("reading ended at %d, could go to %d", l.NextOffset, l.ReadEnd)
			}
			l.Release()
			return out
		}
		for _, c := range l.Chunks {
			for len(c) > 0 {
				var b record.Batch
				b, c, err = record.Split(c)
				check(t, err)
				skip := slices.ContainsFunc(l.Aborted, func(a topiclog.AbortedTransaction) bool {
					return a.ProducerID == b.ProducerID && a.FirstOffset <= b.BaseOffset && b.BaseOffset < a.LastOffset
				})
				if b.Attributes.Control() || skip {
					continue
				}
				it, err := d.Records(b)
				check(t, err)
				for r := (record.Record{}); it.Next(&r); {
					if r.Offset >= from {
						out = append(out, string(r.Value))
					}
				}
				check(t, it.Err())
			}
		}
		from = l.NextOffset
		l.Release()
	}
}

func wantRead(t testing.TB, s *topiclog.Store, id topiclog.PartitionID, isolation topiclog.Isolation, want ...string) {
	t.Helper()
	if got := readWith(t, s, id, isolation); !slices.Equal(got, want) {
		t.Errorf("isolation %d: read %v, want %v", isolation, got, want)
	}
}

func TestTransactionIsolation(t *testing.T) {
	for _, flush := range []bool{false, true} {
		for _, bump := range []bool{false, true} {
			mem := vfs.NewMem()
			o := small(mem)
			s := open(t, o)
			id := oneTopic(t, s, "t", 1, nil).Partitions[0].ID
			ctx := context.Background()
			a, b := newTxnProducer(t, s, "a", bump), newTxnProducer(t, s, "b", bump)
			check(t, a.put(id, "a1", "a2"))
			_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "plain")})
			check(t, err)
			check(t, b.put(id, "b1"))
			step := func(stable int64, raw string, committed ...string) {
				t.Helper()
				if flush {
					check(t, s.Flush(ctx))
				}
				st, err := s.State(id)
				check(t, err)
				if st.StableEnd != stable {
					t.Errorf("stable end %d, want %d", st.StableEnd, stable)
				}
				wantRead(t, s, id, topiclog.Committed, committed...)
				wantRead(t, s, id, topiclog.CommittedRaw, committed...)
				wantRead(t, s, id, topiclog.Uncommitted, strings.Fields(raw)...)
			}
			step(0, "a1 a2 plain b1")
			check(t, b.end(false)) // marker at 4
			step(0, "a1 a2 plain b1")
			check(t, a.put(id, "a3"))
			check(t, b.put(id, "b2")) // 6
			check(t, a.end(true))     // 7
			step(6, "a1 a2 plain b1 a3 b2", "a1", "a2", "plain", "a3")
			check(t, b.end(true))
			step(9, "a1 a2 plain b1 a3 b2", "a1", "a2", "plain", "a3", "b2")
			check(t, b.put(id, "b3"))
			check(t, b.end(false))
			step(11, "a1 a2 plain b1 a3 b2 b3", "a1", "a2", "plain", "a3", "b2")
			// The same after a crash, and after a restart.
			o.FS = mem.CrashClone(vfs.CrashOptions{})
			check(t, s.Close())
			s = open(t, o)
			step(11, "a1 a2 plain b1 a3 b2 b3", "a1", "a2", "plain", "a3", "b2")
			check(t, s.Close())
			s = open(t, o)
			step(11, "a1 a2 plain b1 a3 b2 b3", "a1", "a2", "plain", "a3", "b2")
			// What is known of aborted transactions goes with their records.
			_, err = s.DeleteRecords(ctx, id, 5)
			check(t, err)
			step(11, "a3 b2 b3", "a3", "b2")
			check(t, s.Close())
		}
	}
}

// The coordinator's rules, for producers with and without a new epoch at each end.
func TestTransactionRules(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	defer s.Close()
	ctx := context.Background()
	tp := oneTopic(t, s, "t", 2, nil)
	id := tp.Partitions[0].ID
	want := func(what string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	end := func(p *txnProducer, who topiclog.ProducerIdentity, commit, bump bool) error {
		_, err := s.EndTransaction(ctx, p.id, who, commit, bump)
		return err
	}
	for _, timeout := range []time.Duration{0, -1, 15*time.Minute + 1} {
		_, err := s.InitTransaction(ctx, "x", timeout, topiclog.NoProducer)
		want(fmt.Sprint(timeout), err, topiclog.ErrTransactionTimeout)
	}
	_, err := s.InitTransaction(ctx, "", time.Minute, topiclog.NoProducer)
	want("no name", err, topiclog.ErrInvalidTransaction)
	want("unknown id", s.AddToTransaction(ctx, "x", topiclog.ProducerIdentity{}, nil), topiclog.ErrTransactionUnknown)

	p := newTxnProducer(t, s, "old", false)
	want("commit of nothing", p.end(true), topiclog.ErrTransactionState)
	want("abort of nothing", p.end(false), topiclog.ErrTransactionState)
	want("another producer", s.AddToTransaction(ctx, "old", topiclog.ProducerIdentity{ID: p.who.ID + 1}, nil), topiclog.ErrTransactionUnknown)
	want("another epoch", s.AddToTransaction(ctx, "old", topiclog.ProducerIdentity{ID: p.who.ID, Epoch: 3}, nil), topiclog.ErrProducerFenced)
	raw := func(part topiclog.PartitionID, p *txnProducer, epoch int16) error {
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: part, TransactionalID: p.id, Batches: sequenced(t, p.who.ID, epoch, p.seq[part], true, "v")})
		return err
	}
	want("append without a transaction", raw(id, p, 0), topiclog.ErrNotInTransaction)
	check(t, p.put(id, "v"))
	want("append to a partition that was not added", raw(tp.Partitions[1].ID, p, 0), topiclog.ErrNotInTransaction)
	want("append of another epoch", raw(id, p, 1), topiclog.ErrProducerFenced)
	_, err = s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: sequenced(t, p.who.ID, 0, 1, false, "v")})
	want("outside the open transaction", err, topiclog.ErrTransactionState)
	check(t, end(p, p.who, true, false))
	check(t, end(p, p.who, true, false)) // again
	want("abort of what was committed", end(p, p.who, false, false), topiclog.ErrTransactionState)
	want("offsets of a group that was not added", s.CommitCursorsInTransaction(ctx, "old", p.who, "g", []topiclog.Cursor{{Partition: id}}, false), topiclog.ErrTransactionState)

	// With a new epoch at each end.
	p = newTxnProducer(t, s, "new", true)
	first := p.who
	check(t, p.put(id, "w"))
	check(t, p.end(true))
	if p.who.Epoch != first.Epoch+1 || p.who.ID != first.ID {
		t.Errorf("after the end: %+v, before %+v", p.who, first)
	}
	again, err := s.EndTransaction(ctx, "new", first, true, true)
	if err != nil || again != p.who {
		t.Errorf("the same end again: %+v, %v", again, err)
	}
	want("abort of what was committed", end(p, first, false, true), topiclog.ErrTransactionState)
	want("commit of nothing", end(p, p.who, true, true), topiclog.ErrTransactionState)
	want("a late append", func() error {
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, TransactionalID: "new", Batches: sequenced(t, first.ID, first.Epoch, 1, true, "late")})
		return err
	}(), topiclog.ErrProducerFenced)
	epoch := p.who.Epoch
	check(t, p.end(false)) // of nothing: raises the epoch
	if p.who.Epoch != epoch+1 {
		t.Errorf("an abort without a transaction: epoch %d, want %d", p.who.Epoch, epoch+1)
	}
	check(t, p.put(id, "x"))
	want("an end with the epoch before", end(p, topiclog.ProducerIdentity{ID: p.who.ID, Epoch: p.who.Epoch - 1}, false, true), topiclog.ErrProducerFenced)
	check(t, p.end(true))
	wantRead(t, s, id, topiclog.Committed, "v", "w", "x")
}

// A producer that starts with a transactional id fences the one that had it.
func TestInitTransactionFences(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	defer s.Close()
	ctx := context.Background()
	id := oneTopic(t, s, "t", 1, nil).Partitions[0].ID
	for _, bump := range []bool{false, true} {
		name := fmt.Sprint("id", bump)
		old := newTxnProducer(t, s, name, bump)
		check(t, old.put(id, "zombie"))
		fresh := newTxnProducer(t, s, name, bump)
		if fresh.who.ID != old.who.ID || fresh.who.Epoch <= old.who.Epoch {
			t.Errorf("%+v after %+v", fresh.who, old.who)
		}
		for what, err := range map[string]error{"put": old.put(id, "zombie"), "commit": old.end(true), "abort": old.end(false)} {
			// The abort of a producer with new epochs may be taken for one that
			// was answered before: nothing happens by it.
			if !errors.Is(err, topiclog.ErrProducerFenced) {
				t.Errorf("%s: %s of a fenced producer: %v", name, what, err)
			}
		}
		_, err := s.InitTransaction(ctx, name, time.Minute, old.who)
		if !errors.Is(err, topiclog.ErrProducerFenced) {
			t.Errorf("%s: a fenced producer asks for a new epoch: %v", name, err)
		}
		check(t, fresh.put(id, name))
		check(t, fresh.end(true))
		// One that says who it is gets the next epoch, also when it asks again.
		next, err := s.InitTransaction(ctx, name, time.Minute, fresh.who)
		check(t, err)
		again, err := s.InitTransaction(ctx, name, time.Minute, fresh.who)
		if err != nil || again != next || next.Epoch != fresh.who.Epoch+1 {
			t.Errorf("%s: %+v, again %+v, %v, was %+v", name, next, again, err, fresh.who)
		}
		// So does one with an open transaction, which is aborted by that.
		fresh.who, fresh.seq = next, map[topiclog.PartitionID]int32{}
		check(t, fresh.put(id, "given up"))
		next, err = s.InitTransaction(ctx, name, time.Minute, fresh.who)
		check(t, err)
		again, err = s.InitTransaction(ctx, name, time.Minute, fresh.who)
		if err != nil || again != next || next.Epoch <= fresh.who.Epoch {
			t.Errorf("%s, with an open transaction: %+v, again %+v, %v, was %+v", name, next, again, err, fresh.who)
		}
		if err := fresh.put(id, "given up"); !errors.Is(err, topiclog.ErrProducerFenced) {
			t.Errorf("%s: with its former epoch: %v", name, err)
		}
	}
	wantRead(t, s, id, topiclog.Committed, "idfalse", "idtrue")
	wantRead(t, s, id, topiclog.Uncommitted, "zombie", "idfalse", "given up", "zombie", "idtrue", "given up")
}

// When its epochs are used up a producer goes on with a new id.
func TestEpochsExhausted(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	defer s.Close()
	p := newTxnProducer(t, s, "p", true)
	first := p.who
	for p.who.ID == first.ID {
		check(t, p.end(false))
		if p.who.Epoch == math.MaxInt16 {
			t.Fatal("the last epoch was given to a producer")
		}
	}
	if p.who.Epoch != 0 {
		t.Errorf("a new id begins with epoch %d", p.who.Epoch)
	}
	again, err := s.EndTransaction(context.Background(), "p", topiclog.ProducerIdentity{ID: first.ID, Epoch: math.MaxInt16 - 1}, false, true)
	if err != nil || again != p.who {
		t.Errorf("the end that changed the id, again: %+v, %v", again, err)
	}
}

// A transaction past its timeout is aborted and its producer fenced; the time is
// that of the clock given.
func TestTransactionTimeout(t *testing.T) {
	mem := vfs.NewMem()
	clock := &manualClock{wall: time.UnixMilli(1_700_000_000_000)}
	o := small(mem)
	o.Clock = clock.clock()
	s := open(t, o)
	id := oneTopic(t, s, "t", 1, nil).Partitions[0].ID
	p := newTxnProducer(t, s, "p", false)
	check(t, p.put(id, "v"))
	clock.pass(59 * time.Second)
	if n := s.ExpireTransactions(); n != 0 {
		t.Errorf("%d transactions aborted before their time", n)
	}
	// It outlives a crash, and its time goes on.
	o.FS = mem.CrashClone(vfs.CrashOptions{})
	check(t, s.Close())
	s = open(t, o)
	defer s.Close()
	p.s = s
	check(t, p.put(id, "w"))
	clock.pass(time.Second)
	if n := s.ExpireTransactions(); n != 1 {
		t.Errorf("%d transactions aborted, want 1", n)
	}
	info, err := s.Transaction("p")
	if err != nil || info.State != topiclog.TransactionCompleteAbort || len(info.Partitions) != 0 {
		t.Errorf("%+v %v", info, err)
	}
	for what, err := range map[string]error{"put": p.put(id, "x"), "commit": p.end(true)} {
		if !errors.Is(err, topiclog.ErrProducerFenced) {
			t.Errorf("%s after the timeout: %v", what, err)
		}
	}
	wantRead(t, s, id, topiclog.Committed)
	wantRead(t, s, id, topiclog.Uncommitted, "v", "w")
	clock.pass(8 * 24 * time.Hour)
	s.ExpireTransactions()
	if ts := s.Transactions(); len(ts) != 0 {
		t.Errorf("an id that nobody used for a week is still there: %+v", ts)
	}
}

// A marker by a tool ends what no coordinator knows.
func TestMarkerOfHangingTransaction(t *testing.T) {
	s := open(t, small(vfs.NewMem()))
	defer s.Close()
	ctx := context.Background()
	id := oneTopic(t, s, "t", 1, nil).Partitions[0].ID
	_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: sequenced(t, 77, 3, 0, true, "hangs")})
	check(t, err)
	_, err = s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "behind")})
	check(t, err)
	wantRead(t, s, id, topiclog.Committed)
	ps, err := s.Producers(id)
	check(t, err)
	if len(ps) != 1 || ps[0].TransactionStart != 0 || ps[0].Epoch != 3 {
		t.Errorf("%+v", ps)
	}
	if err := s.AppendMarker(ctx, id, topiclog.ProducerIdentity{ID: 77, Epoch: 2}, false, 0); !errors.Is(err, topiclog.ErrProducerEpoch) {
		t.Errorf("a marker of an old epoch: %v", err)
	}
	check(t, s.AppendMarker(ctx, id, topiclog.ProducerIdentity{ID: 77, Epoch: 3}, false, 5))
	check(t, s.AppendMarker(ctx, id, topiclog.ProducerIdentity{ID: 77, Epoch: 3}, true, 5)) // nothing is open
	if err := s.AppendMarker(ctx, id, topiclog.ProducerIdentity{ID: 77, Epoch: 3}, false, 4); !errors.Is(err, topiclog.ErrCoordinatorEpoch) {
		t.Errorf("a marker of an old coordinator: %v", err)
	}
	wantRead(t, s, id, topiclog.Committed, "behind")
	if st, _ := s.State(id); st.HighWatermark != 3 {
		t.Errorf("the log ends at %d, want 3", st.HighWatermark)
	}
}

// Compaction drops aborted records, which hide nothing, and leaves everything from
// the first open transaction on.
func TestCompactionOfTransactions(t *testing.T) {
	ctx := context.Background()
	s := open(t, small(vfs.NewMem()))
	defer s.Close()
	id := oneTopic(t, s, "t", 1, map[string]string{"cleanup.policy": "compact"}).Partitions[0].ID
	a, b := newTxnProducer(t, s, "a", true), newTxnProducer(t, s, "b", false)
	check(t, a.put(id, "a1")) // all records have the same key
	check(t, a.end(true))
	check(t, b.put(id, "b1"))
	check(t, b.end(true))
	check(t, a.put(id, "aborted"))
	check(t, a.end(false))
	check(t, a.put(id, "open"))
	check(t, b.put(id, "b2"))
	check(t, b.end(true))
	check(t, s.Flush(ctx))
	for range 2 {
		check(t, s.Compact(ctx, "t"))
		wantRead(t, s, id, topiclog.Uncommitted, "b1", "open", "b2")
		wantRead(t, s, id, topiclog.Committed, "b1")
	}
	check(t, a.end(false))
	check(t, b.put(id, "b3"))
	check(t, b.end(true))
	check(t, s.Flush(ctx))
	check(t, s.Compact(ctx, "t"))
	wantRead(t, s, id, topiclog.Uncommitted, "b3")
	wantRead(t, s, id, topiclog.Committed, "b3")
}

// What is known of transactions is bounded.
func TestTransactionBounds(t *testing.T) {
	ctx := context.Background()
	clock := &manualClock{wall: time.UnixMilli(1_700_000_000_000)}
	o := small(vfs.NewMem())
	o.MaxTransactionalIDs, o.Clock = 3, clock.clock()
	s := open(t, o)
	defer s.Close()
	id := oneTopic(t, s, "t", 1, nil).Partitions[0].ID
	p := newTxnProducer(t, s, "p0", true)
	newTxnProducer(t, s, "p1", true)
	newTxnProducer(t, s, "p2", true)
	if _, err := s.InitTransaction(ctx, "p3", time.Minute, topiclog.NoProducer); !errors.Is(err, topiclog.ErrTooManyTransactions) {
		t.Errorf("one too many: %v", err)
	}
	metadata := strings.Repeat("m", 4096)
	var err error
	for i := 0; err == nil && i < 4000; i++ {
		var cursors []topiclog.Cursor
		for k := range 50 {
			cursors = append(cursors, topiclog.Cursor{Partition: id + topiclog.PartitionID(k), Metadata: metadata})
		}
		err = s.CommitCursorsInTransaction(ctx, "p0", p.who, fmt.Sprint("group", i), cursors, true)
	}
	if !errors.Is(err, topiclog.ErrInvalidTransaction) {
		t.Errorf("a transaction without bounds: %v", err)
	}
	check(t, p.end(true))
	if cs := s.Cursors("group0"); len(cs) != 1 || cs[0].Metadata != metadata {
		t.Errorf("%d positions were committed, want the one of a partition that exists", len(cs))
	}
	clock.pass(8 * 24 * time.Hour)
	s.ExpireTransactions()
	newTxnProducer(t, s, "p3", true)
}
