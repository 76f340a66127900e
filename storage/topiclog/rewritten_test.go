package topiclog_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// What the manifest says after it rewrote itself is made of the state in memory,
// which is ahead of what is durable. These tests rewrite it with every commit.

func osTopic(t *testing.T, s *topiclog.Store, config ...string) topiclog.PartitionID {
	t.Helper()
	c := map[string]string{"millrace.durability": "os"}
	for i := 0; i+1 < len(config); i += 2 {
		c[config[i]] = config[i+1]
	}
	tp, err := s.CreateTopic(context.Background(), topiclog.TopicSpec{Name: "os", Partitions: 1, Config: c})
	check(t, err)
	return tp.Partitions[0].ID
}

// More offsets than one reservation are given, then the machine stops: none of
// them is given again.
func TestReservedEndSurvivesRewrite(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	o := topiclog.RewriteAlways(small(mem))
	o.SyncInterval = time.Hour
	s := open(t, o)
	id := osTopic(t, s, "max.message.bytes", "67108864")
	var b record.Builder
	for range 1<<20 + 8 {
		check(t, b.Append(0, nil, nil, nil))
	}
	raw, err := b.Build()
	check(t, err)
	res, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: raw, Trusted: true})
	check(t, err)
	crashed := mem.CrashClone(vfs.CrashOptions{})
	check(t, s.Close())
	o.FS = crashed
	s = open(t, o)
	again, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "x")})
	check(t, err)
	if again.BaseOffset <= res.LastOffset {
		t.Errorf("offset %d was given again, %d is the last that was", again.BaseOffset, res.LastOffset)
	}
	check(t, s.Close())
}

// Records of an os topic are lost with the machine; so is what is said of them.
func TestNotesAndEpochsGoWithTheirRecords(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	o := topiclog.RewriteAlways(small(mem))
	o.SyncInterval = time.Hour
	s := open(t, o)
	id := osTopic(t, s)
	for i := range 2 {
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "kept"), NoteKey: "job", Note: []byte{byte(i)}})
		check(t, err)
	}
	check(t, s.Flush(ctx))
	for i := range 3 {
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "lost"), NoteKey: "job", Note: []byte{byte(10 + i)}})
		check(t, err)
	}
	_, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "other", Partitions: 1}) // rewrites
	check(t, err)
	crashed := mem.CrashClone(vfs.CrashOptions{})
	check(t, s.Close())
	o.FS = crashed
	for round := range 3 {
		s = open(t, o)
		notes, err := s.Notes(id, "job")
		check(t, err)
		if len(notes) != 2 {
			t.Errorf("round %d: %d notes, want those of the two records there are: %+v", round, len(notes), notes)
		}
		if end, err := s.EpochEnd(id, 0); err != nil || end != 2 {
			t.Errorf("round %d: epoch 0 ends at %d, %v; want 2", round, end, err)
		}
		_, err = s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "new")})
		check(t, err)
		check(t, s.Close())
	}
}

func TestCleanCloseSurvivesRewrite(t *testing.T) {
	ctx := context.Background()
	o := topiclog.RewriteAlways(small(vfs.NewMem()))
	s := open(t, o)
	id := osTopic(t, s)
	for round := range 3 {
		res, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, "x")})
		check(t, err)
		if res.BaseOffset != int64(round) || res.LeaderEpoch != 0 {
			t.Errorf("round %d: offset %d in epoch %d", round, res.BaseOffset, res.LeaderEpoch)
		}
		check(t, s.Close())
		s = open(t, o)
		if !s.Status().Recovery.Clean {
			t.Errorf("round %d: not clean", round)
		}
	}
	check(t, s.Close())
}

// Recovery jumps over offsets, and the machine stops again at each step of it:
// the records that only the journal has are still there.
func TestCrashDuringRecovery(t *testing.T) {
	ctx := context.Background()
	mem := vfs.NewMem()
	o := topiclog.RewriteAlways(small(mem))
	s := open(t, o)
	id := osTopic(t, s)
	tp, err := s.CreateTopic(ctx, topiclog.TopicSpec{Name: "sync", Partitions: 3})
	check(t, err)
	for i := range 8 {
		_, err := s.Append(ctx, topiclog.AppendRequest{Partition: id, Batches: batch(t, fmt.Sprint(i))})
		check(t, err)
		for _, p := range tp.Partitions {
			_, err := s.Append(ctx, topiclog.AppendRequest{Partition: p.ID, Batches: batch(t, fmt.Sprint(i)), NoteKey: "n", Note: []byte("n")})
			check(t, err)
			check(t, s.CommitCursors(ctx, "g", []topiclog.Cursor{{Partition: p.ID, Offset: 100}})) // beyond the end
		}
	}
	first := mem.CrashClone(vfs.CrashOptions{})
	check(t, s.Close())

	crashes := 0
	var clones []*vfs.MemFS
	o.FS = vfs.NewFault(first, vfs.InjectorFunc(func(op vfs.Op) error {
		if op.Kind&(vfs.OpSync|vfs.OpSyncDir|vfs.OpRename|vfs.OpWrite|vfs.OpRemove) != 0 {
			clones = append(clones, first.CrashClone(vfs.CrashOptions{}), first.CrashClone(vfs.CrashOptions{UnsyncedPercent: 100}))
		}
		return nil
	}))
	s = open(t, o)
	during := clones
	check(t, s.Close())
	for _, c := range during {
		crashes++
		o.FS = c
		s := open(t, o)
		for _, p := range append(tp.Partitions, topiclog.Partition{ID: id}) {
			if got := readAll(t, s, p.ID, 0); len(got) != 8 && p.ID != id || len(got) < 7 {
				t.Errorf("crash %d: partition %d has %d records of 8: %+v", crashes, p.ID, len(got), s.Status().Recovery)
			}
			res, err := s.Append(ctx, topiclog.AppendRequest{Partition: p.ID, Batches: batch(t, "next")})
			check(t, err)
			if p.ID != id && res.BaseOffset < 100 {
				t.Errorf("crash %d: partition %d goes on at %d below a cursor", crashes, p.ID, res.BaseOffset)
			}
			if notes, err := s.Notes(p.ID, "n"); err != nil || p.ID != id && len(notes) != 8 {
				t.Errorf("crash %d: partition %d has %d notes, %v", crashes, p.ID, len(notes), err)
			}
		}
		check(t, s.Close())
	}
	if crashes < 20 {
		t.Errorf("only %d crashes", crashes)
	}
}
