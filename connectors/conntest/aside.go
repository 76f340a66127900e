package conntest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// AsideWorld is a World whose sink, a connector.AsideWriter's, has a place of its own
// for rows that are late.
type AsideWorld interface {
	FaultWorld
	// Late gives the ids of the rows there.
	Late(t testing.TB) []int64
}

// OneDay gives n rows from id first on, all of one table partition.
func OneDay(first int64, n int) *batch.Batch {
	b := Rows(first, n)
	v := &b.Cols[2]
	v.Data, v.Offsets = v.Data[:0], v.Offsets[:1]
	for range n {
		v.Data = append(v.Data, "2024-05-01"...)
		v.Offsets = append(v.Offsets, int32(len(v.Data)))
	}
	return b
}

// SealAside seals round n of ten rows of a day (ids from 10*n on), of which the fourth
// and the fifth are late: two artefacts, the late one first.
func SealAside(s connector.Sink, epoch uint64, n int) ([]connector.Artifact, error) {
	ctx := context.Background()
	a := connector.Attempt{ID: connector.ArtifactID{Job: UUID(1), Table: UUID(9), Lane: connector.LaneID{Topic: UUID(7)}, Epoch: epoch}}
	x, err := s.OpenWriter(ctx, a)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	w, ok := x.(connector.AsideWriter)
	if !ok {
		return nil, fmt.Errorf("its writer, %T, has no place for late rows", x)
	}
	b := OneDay(int64(n)*10, 10)
	ids, err := w.Buckets(b, nil, nil)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(w.Write(b, batch.Sel{3, 4}, w.Aside()), w.Write(b, batch.Sel{0, 1, 2, 5, 6, 7, 8, 9}, ids[0])); err != nil {
		return nil, err
	}
	if w.TablePartition(w.Aside()) != "" || w.TablePartition(ids[0]) == "" || len(w.Open()) != 2 {
		return nil, fmt.Errorf("open are %+v", w.Open())
	}
	var reqs []connector.SealRequest
	for _, k := range w.Open() {
		id := a.ID
		id.Sequence = uint64(2*n + len(reqs))
		reqs = append(reqs, connector.SealRequest{Bucket: k.ID, Header: connector.Header{ID: id, TablePartition: k.TablePartition, Rows: k.Rows}})
	}
	slices.Reverse(reqs) // another order than they are open in
	return w.Seal(ctx, reqs)
}

// asideRun is a job that seals some rounds, each of which gives rows to both places.
type asideRun struct {
	epoch  uint64
	sealed [][]connector.Artifact // the intents
	done   int
}

const asideRounds = 2

// life carries the run on in one process, until an error.
func (r *asideRun) life(ctx context.Context, w AsideWorld) error {
	r.epoch++
	s, err := w.Open(ctx, OwnerOf(1, r.epoch))
	if err != nil {
		return err
	}
	defer s.Close()
	for ; r.done < len(r.sealed); r.done++ {
		out, err := s.Resolve(ctx, r.sealed[r.done])
		if err != nil {
			return err
		}
		for i, o := range out {
			if o == connector.Absent {
				return &lostError{r.sealed[r.done][i].Header.ID}
			}
		}
		if err := errors.Join(s.Publish(ctx, r.sealed[r.done])...); err != nil {
			return err
		}
	}
	for n := r.done; n < asideRounds; n++ {
		r.epoch++
		as, err := SealAside(s, r.epoch, n)
		if err != nil {
			return err
		}
		r.sealed = append(r.sealed, as)
		if err := errors.Join(s.Publish(ctx, as)...); err != nil {
			return err
		}
		r.done++
	}
	return nil
}

// end carries the run to its end and looks at both places.
func (r *asideRun) end(t *testing.T, w AsideWorld, what string) {
	t.Helper()
	if err := r.life(t.Context(), w); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	late, ids := w.Late(t), w.Visible(t)
	slices.Sort(late)
	slices.Sort(ids)
	if !slices.Equal(late, []int64{3, 4, 13, 14}) {
		t.Fatalf("%s: late rows %v", what, late)
	}
	if want := []int64{0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 15, 16, 17, 18, 19}; !slices.Equal(ids, want) {
		t.Fatalf("%s: rows %v", what, ids)
	}
}

// RunAside takes a sink with a place for late rows through the commit cycle: both
// artefacts of one intent are found, published and discarded where they belong, a later
// attempt fences both, and each operation fails, or has the power cut before it, while
// both are written.
func RunAside(t *testing.T, open func(t testing.TB) AsideWorld) {
	t.Run("cycle", func(t *testing.T) { asideCycle(t, open(t)) })
	clean := open(t)
	new(asideRun).end(t, clean, "clean")
	n := clean.Operations()
	check := func(err error, what string) {
		t.Helper()
		if lost := new(lostError); errors.As(err, &lost) {
			t.Fatalf("%s: %v", what, err)
		}
	}
	for op := range n {
		w, r, what := open(t), new(asideRun), fmt.Sprintf("error at operation %d of %d", op, n)
		w.FailAt(op)
		check(r.life(t.Context(), w), what)
		w.FailAt(-1)
		r.end(t, w, what)
		w, r, what = open(t), new(asideRun), fmt.Sprintf("crash before operation %d of %d", op, n)
		w.CrashAt(op)
		check(r.life(t.Context(), w), what)
		r.end(t, w.AfterCrash(uint64(op%3)).(AsideWorld), what)
	}
	t.Logf("%d operations", n)
}

func asideCycle(t *testing.T, w AsideWorld) {
	ctx := t.Context()
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	s, err := w.Open(ctx, OwnerOf(1, 1))
	must(err)
	defer s.Close()
	if !s.(connector.PartitionCommitter).CommitPolicy().Aside {
		t.Error("the engine is not told that late rows go aside")
	}
	as, err := SealAside(s, 1, 0)
	must(err)
	if as[0].Header.TablePartition != "" || as[1].Header.TablePartition == "" {
		t.Errorf("artefacts of table partitions %q and %q", as[0].Header.TablePartition, as[1].Header.TablePartition)
	}
	for round, want := range []connector.Outcome{connector.Sealed, connector.Published} {
		out, err := s.Resolve(ctx, as)
		if err != nil || out[0] != want || out[1] != want {
			t.Errorf("outcomes %v, %v, want %v", out, err, want)
		}
		if round == 0 {
			must(s.Publish(ctx, as)...)
			must(s.Publish(ctx, as)...) // once more
		}
	}
	if got := w.Late(t); !slices.Equal(got, []int64{3, 4}) {
		t.Errorf("late rows %v", got)
	}
	gone, err := SealAside(s, 2, 1)
	must(err, s.Discard(ctx, gone))
	if out, err := s.Resolve(ctx, gone); err != nil || out[0] != connector.Absent || out[1] != connector.Absent {
		t.Errorf("after Discard %v, %v", out, err)
	}
	old, err := SealAside(s, 3, 2)
	must(err)
	next, err := w.Open(ctx, OwnerOf(1, 2))
	must(err)
	defer next.Close()
	lane := connector.LaneID{Topic: UUID(7)}
	x, err := next.OpenWriter(ctx, connector.Attempt{ID: connector.ArtifactID{Job: UUID(1), Table: UUID(9), Lane: lane, Epoch: 4}})
	must(err)
	defer x.Close()
	for i, err := range s.Publish(ctx, old) {
		if !errors.Is(err, connector.ErrFenced) {
			t.Errorf("an old process publishes artefact %d: %v", i, err)
		}
	}
	if n, err := next.MaxEpoch(ctx, lane); err != nil || n != 4 {
		t.Errorf("the highest epoch is %d, %v", n, err)
	}
}
