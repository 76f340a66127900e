package topiclog_test

import (
	"context"
	"testing"

	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// TestDeletedBeginningOfATransaction: records below an offset are deleted while a
// transaction that began before it is open: readers wait behind the new start, and
// the transaction ends as decided, also over a crash.
func TestDeletedBeginningOfATransaction(t *testing.T) {
	ctx := context.Background()
	for _, commit := range []bool{true, false} {
		for _, flushed := range []bool{true, false} {
			mem := vfs.NewMem()
			s := open(t, damageOptions(mem))
			id := oneTopic(t, s, "t", 1, nil).Partitions[0].ID
			p := newTxnProducer(t, s, "p", true)
			check(t, p.put(id, "a"))
			check(t, p.put(id, "b"))
			if flushed {
				check(t, s.Flush(ctx))
			}
			_, err := s.DeleteRecords(ctx, id, 1)
			check(t, err)
			st, err := s.State(id)
			if err != nil || st.Start != 1 || st.StableEnd != 1 {
				t.Fatalf("%+v, %v", st, err)
			}
			wantRead(t, s, id, topiclog.Committed)
			crashed := mem.CrashClone(vfs.CrashOptions{})
			check(t, s.Close())
			s = open(t, damageOptions(crashed))
			p.s = s
			if st, err := s.State(id); err != nil || st.Start != 1 || st.StableEnd != 1 {
				t.Fatalf("after a crash: %+v, %v", st, err)
			}
			check(t, p.put(id, "c"))
			_, err = s.DeleteRecords(ctx, id, 2)
			check(t, err)
			check(t, p.end(commit))
			if commit {
				wantRead(t, s, id, topiclog.Committed, "c")
				wantRead(t, s, id, topiclog.CommittedRaw, "c")
			} else {
				wantRead(t, s, id, topiclog.Committed)
				wantRead(t, s, id, topiclog.CommittedRaw)
			}
			check(t, p.put(id, "d"))
			check(t, p.end(true))
			crashed = crashed.CrashClone(vfs.CrashOptions{})
			check(t, s.Close())
			s = open(t, damageOptions(crashed))
			want := []string{"c", "d"}
			if !commit {
				want = want[1:]
			}
			wantRead(t, s, id, topiclog.Committed, want...)
			wantRead(t, s, id, topiclog.CommittedRaw, want...)
			check(t, s.Close())
		}
	}
}
