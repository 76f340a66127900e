package topiclog_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// lastValues reads a compacted partition as a ledger does: the last value of each
// key counts, null deletes it.
func lastValues(s *topiclog.Store, id topiclog.PartitionID) (map[string]string, error) {
	out := map[string]string{}
	var dec record.Decoder
	defer dec.Close()
	last := int64(-1)
	for at := int64(0); ; {
		l, err := s.Fetch(context.Background(), topiclog.FetchRequest{Partition: id, Offset: at, MaxBytes: 3000})
		if err != nil {
			return nil, err
		}
		if len(l.Chunks) == 0 {
			l.Release()
			return out, nil
		}
		for _, c := range l.Chunks {
			for len(c) > 0 {
				var b record.Batch
				if b, c, err = record.Split(c); err != nil {
					return nil, err
				}
				it, err := dec.Records(b)
				if err != nil {
					return nil, err
				}
				var r record.Record
				for it.Next(&r) {
					if r.Offset < at {
						continue
					}
					if r.Offset <= last {
						return nil, fmt.Errorf("offset %d after %d", r.Offset, last)
					}
					last = r.Offset
					if r.Value == nil {
						delete(out, string(r.Key))
					} else {
						out[string(r.Key)] = string(r.Value)
					}
				}
				if it.Err() != nil {
					return nil, it.Err()
				}
			}
		}
		at = l.NextOffset
		l.Release()
	}
}

// TestCompactedLedger appends batches of facts to a compacted topic while it is
// flushed, compacted, merged and trimmed of deletions, and lets the machine stop
// at every sync: the last value of every key stays what was acknowledged, and a
// batch is there as a whole or not at all.
func TestCompactedLedger(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { ledgerRun(t, seed, 60) })
	}
}

func TestTortureLedger(t *testing.T) {
	first, runs, steps := longRuns(t)
	for seed := first; seed < first+uint64(runs); seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { ledgerRun(t, seed, steps) })
	}
}

func ledgerRun(t *testing.T, seed uint64, steps int) {
	ctx := context.Background()
	rng, crashRng := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	mem := vfs.NewMem()
	fsys := vfs.NewFault(mem, nil)
	o := small(fsys)
	o.Shards = 1
	o.JournalFileBytes, o.JournalMaxBytes = 32<<10, 256<<10
	if seed%2 == 0 {
		o = topiclog.RewriteAlways(o)
	}
	if seed%4 > 1 {
		o = topiclog.Promoting(o, 1, 1, 1)
	}
	s := open(t, o)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "__ledger", Partitions: 1, Config: map[string]string{
		"cleanup.policy": "compact", "delete.retention.ms": "0"}})
	check(t, err)
	id := tp.Partitions[0].ID

	var mu sync.Mutex
	acked := map[string]string{}
	var pending map[string]string // state with the batch under way; nil if there is none
	crashes, n := 0, 0
	fsys.SetInjector(vfs.InjectorFunc(func(op vfs.Op) error {
		if op.Kind&(vfs.OpSync|vfs.OpSyncDir|vfs.OpRename|vfs.OpRemove) == 0 {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		crashes++
		clone := mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: []int{0, 50, 100}[crashRng.IntN(3)], Rand: crashRng})
		co := o
		co.FS = clone
		after, err := topiclog.Open(co)
		if err != nil {
			t.Errorf("seed %d: crash %d before %s %s: %v", seed, crashes, op.Name, op.Path, err)
			return nil
		}
		got, err := lastValues(after, id)
		if err != nil || !maps.Equal(got, acked) && (pending == nil || !maps.Equal(got, pending)) {
			t.Errorf("seed %d: crash %d before %s %s: %v\n got %v\nwant %v\n  or %v", seed, crashes, op.Name, op.Path, err, got, acked, pending)
		}
		if err := after.Close(); err != nil {
			t.Errorf("seed %d: crash %d: closing: %v", seed, crashes, err)
		}
		return nil
	}))
	for range steps {
		switch r := rng.IntN(10); {
		case r < 6:
			var b record.Builder
			b.Codec = record.Codec(rng.IntN(2) * int(record.Snappy))
			next := maps.Clone(acked)
			for range 1 + rng.IntN(6) {
				n++
				key, value := fmt.Sprintf("key-%d", rng.IntN(20)), fmt.Sprintf("%d-%0*d", n, rng.IntN(200), 0)
				if rng.IntN(4) == 0 {
					delete(next, key)
					check(t, b.Append(int64(n), []byte(key), nil, nil))
				} else {
					next[key] = value
					check(t, b.Append(int64(n), []byte(key), []byte(value), nil))
				}
			}
			raw, err := b.Build()
			check(t, err)
			mu.Lock()
			pending = next
			mu.Unlock()
			done := make(chan error, 1)
			s.AppendAsync(topiclog.AppendRequest{Partition: id, Batches: raw}, func(_ topiclog.AppendResult, err error) {
				mu.Lock()
				acked, pending = next, nil
				mu.Unlock()
				done <- err
			})
			check(t, <-done)
		case r < 8:
			check(t, s.Flush(ctx))
		case r < 9:
			check(t, s.Compact(ctx, "__ledger"))
		default:
			_, err := s.RunRetention(ctx)
			check(t, err)
		}
		if got, err := lastValues(s, id); err != nil || !maps.Equal(got, acked) {
			t.Fatalf("seed %d: running: %v\n got %v\nwant %v", seed, err, got, acked)
		}
		if t.Failed() {
			t.Fatalf("seed %d: stopped after %d crashes", seed, crashes)
		}
	}
	fsys.SetInjector(nil)
	check(t, s.Close())
	t.Logf("seed %d: %d steps, %d crashes", seed, steps, crashes)
}
