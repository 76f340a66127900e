package topiclog_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// The outcome of a transaction over several partitions and a group is one, wherever
// the machine stops: after a crash at every step, what was answered is there, and
// what was not is there in full or not at all.
func TestCrashAtEveryStepOfATransaction(t *testing.T) {
	for _, bump := range []bool{false, true} {
		for _, commit := range []bool{false, true} {
			crashTransaction(t, bump, commit)
		}
	}
}

func crashTransaction(t *testing.T, bump, commit bool) {
	ctx := context.Background()
	mem := vfs.NewMem()
	clock := &manualClock{wall: time.UnixMilli(1_700_000_000_000)}
	type crash struct {
		fs      *vfs.MemFS
		ended   bool // the end was answered
		started bool // the end was asked for
	}
	var mu sync.Mutex
	var crashes []crash
	var ended, started bool
	fault := vfs.NewFault(mem, nil)
	o := small(fault)
	o.Clock = clock.clock()
	s := open(t, o)
	tp := oneTopic(t, s, "t", 3, nil)
	osTopic := oneTopic(t, s, "os", 1, map[string]string{"millrace.durability": "os"})
	parts := append(slices.Clone(tp.Partitions), osTopic.Partitions...)
	check(t, s.CommitCursors(ctx, "g", []topiclog.Cursor{{Partition: parts[0].ID, Offset: 7}}))
	p := newTxnProducer(t, s, "p", bump)
	fault.SetInjector(vfs.InjectorFunc(func(op vfs.Op) error {
		if op.Kind&vfs.OpsMutating != 0 {
			mu.Lock()
			for _, percent := range []int{0, 100} {
				crashes = append(crashes, crash{mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: percent}), ended, started})
			}
			mu.Unlock()
		}
		return nil
	}))
	for _, part := range parts {
		check(t, p.put(part.ID, fmt.Sprint("v", part.ID)))
	}
	check(t, s.AddGroupToTransaction(ctx, "p", p.who, "g"))
	check(t, s.CommitCursorsInTransaction(ctx, "p", p.who, "g", []topiclog.Cursor{{Partition: parts[0].ID, Offset: 9}}, false))
	if !s.PendingCursors("g")[parts[0].ID] || s.Cursors("g")[0].Offset != 7 {
		t.Errorf("before the end: pending %v, cursors %v", s.PendingCursors("g"), s.Cursors("g"))
	}
	mu.Lock()
	started = true
	mu.Unlock()
	check(t, p.end(commit))
	mu.Lock()
	ended = true
	mu.Unlock()
	check(t, s.Flush(ctx))
	check(t, s.Close())
	fault.SetInjector(nil)
	mu.Lock()
	crashes = append(crashes, crash{mem, true, true})
	mu.Unlock()
	outcomes := map[string]int{}
	for i, c := range crashes {
		what := fmt.Sprintf("bump %v, commit %v, crash %d (end asked %v, answered %v)", bump, commit, i, c.started, c.ended)
		o.FS = c.fs
		s, err := topiclog.Open(o)
		check(t, err)
		if info, err := s.Transaction("p"); err == nil && (info.State == topiclog.TransactionPrepareCommit || info.State == topiclog.TransactionPrepareAbort) {
			t.Errorf("%s: opening the store left the transaction in state %s", what, info.State)
		}
		// Nobody ends it: its time goes by.
		clock.pass(2 * time.Minute)
		s.ExpireTransactions()
		there := 0
		for _, part := range parts {
			st, err := s.State(part.ID)
			check(t, err)
			if st.StableEnd != st.HighWatermark {
				t.Errorf("%s: partition %d has a transaction without an end", what, part.ID)
			}
			there += len(readWith(t, s, part.ID, topiclog.Committed))
		}
		offset := s.Cursors("g")[0].Offset
		outcome := fmt.Sprintf("%d records, offset %d", there, offset)
		outcomes[outcome]++
		switch all, none := fmt.Sprintf("%d records, offset 9", len(parts)), "0 records, offset 7"; {
		case c.ended && commit && outcome != all, (c.ended && !commit || !c.started) && outcome != none, outcome != all && outcome != none:
			t.Errorf("%s: %s", what, outcome)
		}
		if len(s.PendingCursors("g")) > 0 {
			t.Errorf("%s: positions are pending for ever", what)
		}
		// The producer's next transaction works.
		q := newTxnProducer(t, s, "p", bump)
		check(t, q.put(parts[0].ID, "next"))
		check(t, q.end(true))
		if got := readWith(t, s, parts[0].ID, topiclog.Committed); len(got) == 0 || got[len(got)-1] != "next" {
			t.Errorf("%s: after it: %v", what, got)
		}
		check(t, s.Close())
		if t.Failed() {
			return
		}
	}
	t.Logf("bump %v, commit %v: %d crashes: %v", bump, commit, len(crashes), outcomes)
	if len(crashes) < 20 || commit && len(outcomes) != 2 {
		t.Errorf("%d crashes with outcomes %v", len(crashes), slices.Collect(maps.Keys(outcomes)))
	}
}

// While the disk is full an outcome that was decided stays decided, and is carried
// out when there is space.
func TestTransactionEndOnFullDisk(t *testing.T) {
	mem := vfs.NewMem()
	limited := vfs.NewLimited(mem, 1<<40)
	o := small(limited)
	o.Shards = 1
	s := open(t, o)
	defer s.Close()
	id := oneTopic(t, s, "t", 1, nil).Partitions[0].ID
	p := newTxnProducer(t, s, "p", true)
	check(t, p.put(id, "v"))
	limited.SetLimit(limited.Used())
	value := strings.Repeat("x", 50_000)
	for {
		_, err := s.Append(context.Background(), topiclog.AppendRequest{Partition: id, Batches: batch(t, value)})
		if errors.Is(err, topiclog.ErrDiskFull) {
			break
		}
		check(t, err)
	}
	err := p.end(true)
	limited.SetLimit(1 << 40)
	s.CheckSpace()
	if err != nil {
		check(t, p.end(true))
	}
	s.ExpireTransactions()
	if got := readWith(t, s, id, topiclog.Committed); len(got) == 0 || got[0] != "v" {
		t.Errorf("%d records are readable", len(got))
	}
}

// Whatever operation of the disk fails, a transaction is read in full or not at all,
// and in full if its commit was answered.
func TestFailEachOperationOfATransaction(t *testing.T) {
	for _, fault := range []struct {
		err   error
		count int64
	}{{syscall.EIO, 1}, {syscall.EIO, -1}, {syscall.ENOSPC, 1}, {syscall.ENOSPC, 20}} {
		for i := int64(0); ; i++ {
			mem := vfs.NewMem()
			o := small(mem)
			o.JournalFileBytes, o.MarkDelay = 32<<10, time.Hour
			s := open(t, o)
			parts := oneTopic(t, s, "t", 3, nil).Partitions
			check(t, s.CommitCursors(context.Background(), "g", []topiclog.Cursor{{Partition: parts[0].ID, Offset: 7}}))
			check(t, s.Close())
			nth := &vfs.Nth{Kinds: vfs.OpsMutating, From: i, Count: fault.count, Err: fault.err}
			o.FS = vfs.NewFault(mem, nth)
			answered := failingTransaction(t, o, parts)
			what := fmt.Sprintf("%v, %d times, operation %d", fault.err, fault.count, i)
			for _, after := range []*vfs.MemFS{mem.CrashClone(vfs.CrashOptions{}), mem} {
				o.FS = after
				s := open(t, o)
				q, err := s.InitTransaction(context.Background(), "p", time.Minute, topiclog.NoProducer) // ends what is open
				check(t, err)
				there := 0
				for _, part := range parts {
					there += len(readWith(t, s, part.ID, topiclog.Committed))
				}
				offset := s.Cursors("g")[0].Offset
				all := there == len(parts) && offset == 9
				if !all && (answered || there != 0 || offset != 7) {
					t.Errorf("%s: answered %v, %d records, offset %d, producer %+v", what, answered, there, offset, q)
				}
				check(t, s.Close())
			}
			if t.Failed() {
				return
			}
			if nth.Fired() == 0 {
				if !answered {
					t.Error("nothing failed, and nothing was committed")
				}
				t.Logf("%v, %d times: %d operations failed in turn", fault.err, fault.count, i)
				break
			}
		}
	}
}

// failingTransaction commits a transaction on a disk that may fail and says whether
// that was answered.
func failingTransaction(t *testing.T, o topiclog.Options, parts []topiclog.Partition) bool {
	ctx := context.Background()
	s, err := topiclog.Open(o)
	if err != nil {
		return false
	}
	defer s.Close()
	who, err := s.InitTransaction(ctx, "p", time.Minute, topiclog.NoProducer)
	if err != nil {
		return false
	}
	p := &txnProducer{t: t, s: s, id: "p", who: who, seq: map[topiclog.PartitionID]int32{}, bump: true}
	for _, part := range parts {
		if p.put(part.ID, "v") != nil {
			return false
		}
	}
	if s.CommitCursorsInTransaction(ctx, "p", p.who, "g", []topiclog.Cursor{{Partition: parts[0].ID, Offset: 9}}, true) != nil {
		return false
	}
	// The answer may be that it is not known yet; asking again tells.
	answered := false
	for range 3 {
		if answered = p.end(true) == nil; answered {
			break
		}
	}
	_ = s.Flush(ctx)
	return answered
}

// What a flush says of very many producers goes in several commits. A crash between two of
// them, wherever it is, makes no aborted record visible and lets each aborted transaction
// be there once.
func TestCrashBetweenCommitsOfProducers(t *testing.T) {
	mem := vfs.NewMem()
	o := small(mem)
	o.Shards = 1
	s := open(t, o)
	parts := oneTopic(t, s, "t", 2, nil).Partitions
	a, b := newTxnProducer(t, s, "a", true), newTxnProducer(t, s, "b", true)
	for _, p := range parts {
		for range 3 {
			check(t, a.put(p.ID, "aborted"))
			check(t, b.put(p.ID, "good"))
			check(t, a.end(false))
			check(t, b.end(true))
		}
	}
	total, err := topiclog.FlushCutShort(s, 0)
	check(t, err)
	if total < 4 {
		t.Fatalf("%d edits", total)
	}
	base := mem.CrashClone(vfs.CrashOptions{})
	check(t, s.Close())
	for n := range total + 1 {
		crashed := base.CrashClone(vfs.CrashOptions{})
		for life := range 3 {
			o := small(crashed)
			o.Shards = 1
			s := open(t, o)
			for _, p := range parts {
				wantRead(t, s, p.ID, topiclog.Committed, "good", "good", "good")
				l, err := s.Fetch(context.Background(), topiclog.FetchRequest{Partition: p.ID, MaxBytes: 1 << 20, Isolation: topiclog.CommittedRaw})
				check(t, err)
				if len(l.Aborted) != 3 {
					t.Errorf("aborted are %+v, want 3", l.Aborted)
				}
				l.Release()
			}
			if life == 0 {
				_, err := topiclog.FlushCutShort(s, n)
				check(t, err)
				crashed = crashed.CrashClone(vfs.CrashOptions{})
			} else {
				check(t, s.Flush(context.Background()))
			}
			check(t, s.Close())
		}
		if t.Failed() {
			t.Fatalf("after %d of %d edits", n, total)
		}
	}
}
