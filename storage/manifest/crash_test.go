package manifest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/millrace/millrace/storage/vfs"
)

// workload appends, syncs and rewrites; it tells acked and appended after each
// step and stops at the first error.
func workload(fsys vfs.FS, acked, appended *uint64) error {
	var s state
	l, _, err := Open(fsys, dir, Options{}, s.apply)
	if err != nil {
		return err
	}
	for step := range uint64(24) {
		batch := edits(*appended, 1+step%3)
		*appended += uint64(len(batch))
		if err := l.AppendNoSync(batch...); err != nil {
			return err
		}
		for _, e := range batch {
			_ = s.apply(e.Kind, e.Payload)
		}
		switch {
		case step%7 == 6:
			if err := l.Snapshot(s.write); err != nil {
				return err
			}
			*acked = *appended
		case step%2 == 1:
			if err := l.Sync(); err != nil {
				return err
			}
			*acked = *appended
		}
	}
	if err := l.Close(); err != nil {
		return err
	}
	*acked = *appended
	return nil
}

// reopen checks that a crashed filesystem opens with a prefix, that it can be
// written on, and that it holds both afterwards.
func reopen(t *testing.T, what string, fsys *vfs.MemFS, acked, appended uint64) {
	t.Helper()
	var s state
	l, _, err := Open(fsys, dir, Options{}, s.apply)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	checkPrefix(t, what, &s, acked, appended)
	n := uint64(len(s.values))
	if err := l.Append(edits(n, 2)...); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	again := fsys.CrashClone(vfs.CrashOptions{}) // what Open read must be durable now
	l.Close()
	s = state{}
	l, _, err = Open(again, dir, Options{MustExist: true}, s.apply)
	if err != nil {
		t.Fatalf("%s, second time: %v", what, err)
	}
	l.Close()
	checkPrefix(t, what+", second time", &s, n+2, n+2)
}

func TestCrashAtEveryOperation(t *testing.T) {
	seed := uint64(20240607)
	rng := rand.New(rand.NewPCG(seed, 1))
	mem := vfs.NewMem()
	var acked, appended uint64
	points := 0
	fsys := vfs.NewFault(mem, vfs.InjectorFunc(func(op vfs.Op) error {
		if op.Kind&vfs.OpsMutating == 0 {
			return nil
		}
		points++
		for _, percent := range []int{0, 20, 50, 80, 100} {
			clone := mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: percent, Rand: rng})
			what := fmt.Sprintf("seed %d, crash before operation %d (%s %s), %d%% unsynced kept", seed, points, op.Name, op.Path, percent)
			reopen(t, what, clone, acked, appended)
		}
		return nil
	}))
	if err := workload(fsys, &acked, &appended); err != nil {
		t.Fatal(err)
	}
	if points < 40 {
		t.Fatalf("only %d crash points", points)
	}
}

func TestFailEveryOperation(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, short := range []int64{0, 13} {
		for i := int64(0); ; i++ {
			mem := vfs.NewMem()
			inj := &vfs.Nth{Kinds: vfs.OpsMutating, From: i, Short: short}
			var acked, appended uint64
			err := workload(vfs.NewFault(mem, inj), &acked, &appended)
			if inj.Fired() == 0 {
				if i < 40 {
					t.Fatalf("only %d operations", i)
				}
				break
			}
			// A failed removal of an old file is no error; all else is.
			what := fmt.Sprintf("operation %d fails (%v)", i, err)
			for _, percent := range []int{0, 50, 100} {
				reopen(t, what, mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: percent, Rand: rng}), acked, appended)
			}
		}
	}
}

func TestFailedSyncIsFinal(t *testing.T) {
	inj := &vfs.Nth{Kinds: vfs.OpSync, Path: "manifest-*", From: 1}
	l, _, err := Open(vfs.NewFault(vfs.NewMem(), inj), dir, Options{}, (&state{}).apply)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(edits(0, 1)...); err == nil {
		t.Fatal("append succeeded without its sync")
	}
	for range 2 {
		if err := l.Append(edits(0, 1)...); !errors.Is(err, ErrFailed) {
			t.Fatalf("got %v", err)
		}
	}
	if err := l.Snapshot((&state{}).write); !errors.Is(err, ErrFailed) {
		t.Fatalf("got %v", err)
	}
	if inj.Seen() != 2 {
		t.Fatalf("%d syncs of the file, the failed one was tried again", inj.Seen())
	}
}

// TestWhatOpenReadIsDurable kills the process, not the machine, with edits in
// the page cache only; the state that the next Open hands out must survive a
// power cut right after.
func TestWhatOpenReadIsDurable(t *testing.T) {
	mem := vfs.NewMem()
	l, _ := mustOpen(t, mem, &state{})
	n := uint64(0)
	for l.Stats().Bytes < 3*maxBufferBytes {
		if err := l.AppendNoSync(edits(n, 1000)...); err != nil {
			t.Fatal(err)
		}
		n += 1000
	}
	var s state // l is left as a killed process leaves it
	l, _ = mustOpen(t, mem, &s)
	read := uint64(len(s.values))
	if read == 0 {
		t.Fatal("nothing was written without a sync")
	}
	clone := mem.CrashClone(vfs.CrashOptions{})
	l.Close()
	s = state{}
	l, _ = mustOpen(t, clone, &s)
	l.Close()
	checkPrefix(t, "after the power cut", &s, read, read)
}

// TestUnfinishedRewriteCannotComeBack has a rewrite cut short between the whole
// new file and CURRENT. The old file grows on; if CURRENT is then damaged, the
// unfinished rewrite must not be taken for the newest state.
func TestUnfinishedRewriteCannotComeBack(t *testing.T) {
	mem := vfs.NewMem()
	var crashed *vfs.MemFS
	fsys := vfs.NewFault(mem, vfs.InjectorFunc(func(op vfs.Op) error {
		if op.Kind == vfs.OpRename && crashed == nil {
			if ok, _ := vfs.Exists(mem, dir+"/manifest-000002"); ok {
				crashed = mem.CrashClone(vfs.CrashOptions{UnsyncedPercent: 100})
			}
		}
		return nil
	}))
	var s state
	l, _ := mustOpen(t, fsys, &s)
	if err := l.Append(edits(0, 2)...); err != nil {
		t.Fatal(err)
	}
	s.values = []uint64{0, 1}
	if err := l.Snapshot(s.write); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if crashed == nil {
		t.Fatal("no rename seen")
	}
	s = state{}
	l, rec := mustOpen(t, crashed, &s)
	if rec.File != "manifest-000001" {
		t.Fatalf("recovery %+v", rec)
	}
	if err := l.Append(edits(2, 3)...); err != nil {
		t.Fatal(err)
	}
	again := crashed.CrashClone(vfs.CrashOptions{})
	l.Close()
	flip(t, again, dir+"/"+currentName, 9)
	s = state{}
	l, rec = mustOpen(t, again, &s)
	l.Close()
	checkPrefix(t, "with CURRENT damaged", &s, 5, 5)
	if !rec.CurrentRebuilt {
		t.Fatalf("recovery %+v", rec)
	}
}
