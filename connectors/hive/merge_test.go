package hive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// mergeRun is a job that appends to a partition and announces it, twice, over a
// world with faults; it remembers what the ledger would.
type mergeRun struct {
	epoch  uint64
	sealed []connector.Artifact // named by an intent
	done   int                  // of them committed
}

const mergeRounds = 4

// life is one process: it resolves what is pending, then goes on. Two artefacts
// make a round, behind which the partition is announced.
func (r *mergeRun) life(t testing.TB, w *faultWorld) error {
	ctx := context.Background()
	r.epoch++
	sink, err := w.Open(ctx, conntest.OwnerOf(1, r.epoch))
	if err != nil {
		return err
	}
	defer sink.Close()
	s := sink.(*Sink)
	if pending := r.sealed[r.done:]; len(pending) > 0 {
		out, err := s.Resolve(ctx, pending)
		if err != nil {
			return err
		}
		if out[0] == connector.Absent {
			t.Fatalf("%s is gone", pending[0].Header.ID)
		}
		if err := s.Publish(ctx, pending)[0]; err != nil {
			return err
		}
		r.done++
	}
	for n := r.done; ; n++ {
		if n > 0 && n%2 == 0 {
			if err := s.CommitPartition(ctx, day); err != nil {
				return err
			}
		}
		if n == mergeRounds {
			return nil
		}
		a, err := trySeal(s, r.epoch, n)
		if err != nil {
			return err
		}
		r.sealed = append(r.sealed, a)
		if err := s.Publish(ctx, []connector.Artifact{a})[0]; err != nil {
			return err
		}
		r.done++
	}
}

// trySeal seals one artefact of ten rows.
func trySeal(s *Sink, epoch uint64, n int) (connector.Artifact, error) {
	ctx := context.Background()
	a := connector.Attempt{ID: connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(9), Lane: connector.LaneID{Topic: conntest.UUID(byte(n))}, Epoch: epoch}}
	w, err := s.OpenWriter(ctx, a)
	if err != nil {
		return connector.Artifact{}, err
	}
	defer w.Close()
	b := conntest.OneDay(int64(n)*10, 10)
	ids, err := w.Buckets(b, nil, nil)
	if err != nil {
		return connector.Artifact{}, err
	}
	if err := w.Write(b, nil, ids[0]); err != nil {
		return connector.Artifact{}, err
	}
	as, err := w.Seal(ctx, []connector.SealRequest{{Bucket: ids[0], Header: connector.Header{ID: a.ID, TablePartition: day, Rows: 10}}})
	if err != nil {
		return connector.Artifact{}, err
	}
	return as[0], nil
}

// whole checks what readers see: each row at most once, and all that is committed.
func (r *mergeRun) whole(t testing.TB, w *faultWorld, what string) {
	t.Helper()
	ids := w.Visible(t)
	slices.Sort(ids)
	if n := len(ids); len(slices.Compact(slices.Clone(ids))) != n || n > len(r.sealed)*10 {
		t.Fatalf("%s: %d rows are visible, %v", what, n, ids)
	}
	// Rows that were appended to a version are seen when the partition is announced.
	for i := range r.done / 2 * 2 {
		if r.done == len(r.sealed) && !slices.Contains(ids, int64(i)*10) && i < r.done-2 {
			t.Fatalf("%s: rows of artefact %d are not visible: %v", what, i, ids)
		}
	}
}

// TestMergingUnderFaults takes the merging of small files through an error, and a
// power cut, at each operation on files and each call of the metastore.
func TestMergingUnderFaults(t *testing.T) {
	clean := newFaultWorld(vfs.NewMem(), merging)
	if err := new(mergeRun).life(t, clean); err != nil {
		t.Fatal(err)
	}
	finish := func(r *mergeRun, w *faultWorld, what string) {
		t.Helper()
		r.whole(t, w, what)
		var err error
		for range 4 {
			if err = r.life(t, w); err == nil {
				break
			}
		}
		if err != nil {
			t.Fatalf("%s: recovery: %v", what, err)
		}
		ids := w.Visible(t)
		slices.Sort(ids)
		want := make([]int64, mergeRounds*10)
		for i := range want {
			want[i] = int64(i)
		}
		if !slices.Equal(ids, want) {
			t.Fatalf("%s: visible are %v", what, ids)
		}
	}
	ops := clean.Operations()
	if at := clean.fake.parts["t"][day].Storage.Location; !strings.Contains(at, "/.versions/"+day+"/c2-") {
		t.Fatalf("the files were not merged twice: %s", at)
	}
	t.Logf("%d operations", ops)
	for op := range ops {
		w, r := newFaultWorld(vfs.NewMem(), merging), new(mergeRun)
		w.FailAt(op)
		_ = r.life(t, w)
		finish(r, w, fmt.Sprint("error at operation ", op))
		w, r = newFaultWorld(vfs.NewMem(), merging), new(mergeRun)
		w.CrashAt(op)
		// The removal of what was replaced may fail without an error.
		if err := r.life(t, w); errors.Is(err, connector.ErrFenced) {
			t.Fatalf("operation %d: %v", op, err)
		}
		finish(r, w.AfterCrash(uint64(op)).(*faultWorld), fmt.Sprint("power cut at operation ", op))
	}
}
