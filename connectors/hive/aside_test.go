package hive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

func aside() map[string]string { return map[string]string{keyLate: lateSide, keyLateTable: "t_late"} }

// lateIDs are the ids in the table of late rows.
func lateIDs(t testing.TB, w *world) (ids []int64) {
	t.Helper()
	if ok, _ := vfs.Exists(w.mem, "/warehouse/t_late"); !ok {
		return nil
	}
	for _, b := range readDir(t, w.mem, "/warehouse/t_late", conntest.Columns(), nil) {
		ids = append(ids, b.Cols[0].I64[:b.Len]...)
	}
	slices.Sort(ids)
	return ids
}

// sealAside seals ten rows of a day and, of the same records, two late ones.
func sealAside(s connector.Sink, epoch uint64, n int) ([]connector.Artifact, error) {
	ctx := context.Background()
	a := connector.Attempt{ID: connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(9), Lane: connector.LaneID{Topic: conntest.UUID(7)}, Epoch: epoch}}
	x, err := s.OpenWriter(ctx, a)
	if err != nil {
		return nil, err
	}
	defer x.Close()
	w := x.(connector.AsideWriter)
	b := oneDay(int64(n)*10, 10)
	ids, err := w.Buckets(b, nil, nil)
	if err != nil {
		return nil, err
	}
	late := batch.Sel{3, 4}
	if err := errors.Join(w.Write(b, late, w.Aside()), w.Write(b, batch.Sel{0, 1, 2, 5, 6, 7, 8, 9}, ids[0])); err != nil {
		return nil, err
	}
	if w.TablePartition(w.Aside()) != "" || w.TablePartition(ids[0]) != day || len(w.Open()) != 2 {
		return nil, fmt.Errorf("open are %+v", w.Open())
	}
	var reqs []connector.SealRequest
	for _, k := range w.Open() {
		id := a.ID
		id.Sequence = uint64(2*n + len(reqs))
		reqs = append(reqs, connector.SealRequest{Bucket: k.ID, Header: connector.Header{ID: id, TablePartition: k.TablePartition, Rows: k.Rows}})
	}
	// The late rows first, in another order than they are open in.
	slices.Reverse(reqs)
	return w.Seal(ctx, reqs)
}

// TestLateRowsOfTheirOwnTable: the table of late rows is made without partitions, with
// all columns; its artefacts are published, found and discarded there.
func TestLateRowsOfTheirOwnTable(t *testing.T) {
	ctx := context.Background()
	w := newWorld()
	x, err := w.conn.OpenSink(ctx, w.table(aside()), conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	s := x.(*Sink)
	if !s.CommitPolicy().Aside {
		t.Error("the engine is not told that late rows go aside")
	}
	side := w.fake.tables["t_late"]
	if side == nil || len(side.PartitionKeys) != 0 || len(side.Storage.Columns) != len(conntest.Columns()) {
		t.Fatalf("the table of late rows is %+v", side)
	}
	as, err := sealAside(s, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if as[0].Header.TablePartition != "" || !strings.Contains(as[0].Location, "/t_late/") || !strings.Contains(as[1].Location, "/t/"+day+"/") {
		t.Errorf("artefacts at %s and %s", as[0].Location, as[1].Location)
	}
	for round, want := range []connector.Outcome{connector.Sealed, connector.Published} {
		out, err := s.Resolve(ctx, as)
		if err != nil || out[0] != want || out[1] != want {
			t.Errorf("outcomes %v, %v, want %v", out, err, want)
		}
		if round == 0 {
			noErrors(t, s.Publish(ctx, as)...)
			noErrors(t, s.Publish(ctx, as)...) // once more
		}
	}
	if got := lateIDs(t, w); !slices.Equal(got, []int64{3, 4}) {
		t.Errorf("late rows %v", got)
	}
	noErrors(t, s.CommitPartition(ctx, day))
	if w.fake.params("t", day)["numRows"] != "8" {
		t.Errorf("the partition is registered with %v", w.fake.params("t", day))
	}
	gone, err := sealAside(s, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	noErrors(t, s.Discard(ctx, gone))
	if out, err := s.Resolve(ctx, gone); err != nil || out[0] != connector.Absent || out[1] != connector.Absent {
		t.Errorf("after Discard %v, %v", out, err)
	}
	// Another attempt fences the files of both tables.
	old, err := sealAside(s, 3, 2)
	if err != nil {
		t.Fatal(err)
	}
	s.OpenWriter(ctx, connector.Attempt{ID: connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(9), Lane: connector.LaneID{Topic: conntest.UUID(7)}, Epoch: 4}})
	y, err := w.conn.OpenSink(ctx, w.table(aside()), conntest.OwnerOf(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	for i, err := range s.Publish(ctx, old) {
		if !errors.Is(err, connector.ErrFenced) {
			t.Errorf("an old process publishes artefact %d: %v", i, err)
		}
	}
	if n, err := y.MaxEpoch(ctx, connector.LaneID{Topic: conntest.UUID(7)}); err != nil || n != 4 {
		t.Errorf("the highest epoch is %d, %v", n, err)
	}
	// The job does not name the table any more.
	z, err := w.conn.OpenSink(ctx, w.table(nil), conntest.OwnerOf(1, 3))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if _, err := z.Resolve(ctx, as[:1]); err == nil || !strings.Contains(err.Error(), "'sink.late-data' = 'side-table'") {
		t.Errorf("an artefact of a table that is not named: %v", err)
	}
}

// TestLateRowsUnderFaults makes each operation on files and each call of the metastore
// fail, and cuts the power before each, while two tables are written by one commit.
func TestLateRowsUnderFaults(t *testing.T) {
	const rounds = 2
	with := aside()
	type run struct {
		epoch  uint64
		sealed [][]connector.Artifact
		done   int
	}
	life := func(r *run, w *faultWorld) error {
		r.epoch++
		s, err := w.Open(t.Context(), conntest.OwnerOf(1, r.epoch))
		if err != nil {
			return err
		}
		defer s.Close()
		for ; r.done < len(r.sealed); r.done++ {
			out, err := s.Resolve(t.Context(), r.sealed[r.done])
			if err != nil {
				return err
			}
			for i, o := range out {
				if o == connector.Absent {
					t.Fatalf("%s is lost", r.sealed[r.done][i].Location)
				}
			}
			if err := errors.Join(s.Publish(t.Context(), r.sealed[r.done])...); err != nil {
				return err
			}
		}
		for n := r.done; n < rounds; n++ {
			r.epoch++
			as, err := sealAside(s, r.epoch, n)
			if err != nil {
				return err
			}
			r.sealed = append(r.sealed, as) // the intent
			if err := errors.Join(s.Publish(t.Context(), as)...); err != nil {
				return err
			}
			r.done++
		}
		return nil
	}
	end := func(r *run, w *faultWorld, what string) {
		t.Helper()
		if err := life(r, w); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := lateIDs(t, w.world); !slices.Equal(got, []int64{3, 4, 13, 14}) {
			t.Fatalf("%s: late rows %v", what, got)
		}
		ids := w.world.Visible(t)
		slices.Sort(ids)
		if want := []int64{0, 1, 2, 5, 6, 7, 8, 9, 10, 11, 12, 15, 16, 17, 18, 19}; !slices.Equal(ids, want) {
			t.Fatalf("%s: rows %v", what, ids)
		}
	}
	clean := newFaultWorld(vfs.NewMem(), with)
	end(new(run), clean, "clean")
	n := clean.Operations()
	for op := range n {
		w, r := newFaultWorld(vfs.NewMem(), with), new(run)
		w.FailAt(op)
		_ = life(r, w) // it is told below what must hold
		w.FailAt(-1)
		end(r, w, fmt.Sprintf("error at operation %d of %d", op, n))
		w, r = newFaultWorld(vfs.NewMem(), with), new(run)
		w.CrashAt(op)
		_ = life(r, w)
		end(r, w.AfterCrash(uint64(op%3)).(*faultWorld), fmt.Sprintf("crash before operation %d of %d", op, n))
	}
	t.Logf("%d operations", n)
}

// TestLateTableOptions: what contradicts itself is refused by key.
func TestLateTableOptions(t *testing.T) {
	w := newWorld()
	for _, x := range []struct {
		with map[string]string
		key  string
	}{
		{map[string]string{keyLate: lateSide}, keyLateTable},
		{map[string]string{keyLateTable: "u"}, keyLateTable},
		{map[string]string{keyLate: lateAppend, keyLatePath: "/u"}, keyLatePath},
		{map[string]string{keyLate: lateSide, keyLateTable: ""}, keyLateTable},
		{map[string]string{keyLate: lateSide, keyLateTable: "T", keyTable: "t"}, keyLateTable},
	} {
		with := map[string]string{"connector": "hive", keyURIs: "thrift://h:1", keyPolicy: "metastore"}
		for k, v := range x.with {
			with[k] = v
		}
		if _, errs := w.conn.Spec().Resolve(with); len(errs) != 1 || errs[0].Key != x.key {
			t.Errorf("%v: %v, want one of %s", x.with, errs, x.key)
		}
	}
	var o *connector.OptionError
	if _, err := w.conn.OpenSink(t.Context(), w.tableOf(conntest.Columns(), nil, aside()), conntest.OwnerOf(1, 1)); !errors.As(err, &o) || o.Key != keyLate {
		t.Errorf("a table without partitions: %v", err)
	}
	if _, err := w.conn.OpenSink(t.Context(), w.table(map[string]string{keyLate: lateSide, keyLateTable: "T"}), conntest.OwnerOf(1, 1)); !errors.As(err, &o) || o.Key != keyLateTable {
		t.Errorf("late rows into the same table: %v", err)
	}
	for _, at := range []string{"/lake/t", "/lake/t/late", "/lake"} {
		with := aside()
		with[keyPath], with[keyLatePath] = "/lake/t", at
		w := newWorld()
		if s, err := w.conn.OpenSink(t.Context(), w.table(with), conntest.OwnerOf(1, 1)); !errors.As(err, &o) || o.Key != keyLateTable || s != nil {
			t.Errorf("late rows at %s: %v", at, err)
		}
	}
	beside := aside()
	beside[keyPath], beside[keyLatePath] = "/lake/t", "/lake/t_late"
	s, err := newWorld().conn.OpenSink(t.Context(), w.table(beside), conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	noErrors(t, s.Close())
	if mode, why := w.conn.ReplaceMode(w.table(aside())); mode != connector.ReplaceNever || !strings.HasPrefix(why, "not_yet: ") {
		t.Errorf("replaced %v: %s", mode, why)
	}
}

func TestAcceptanceWithATableOfLateRows(t *testing.T) {
	conntest.RunSink(t, func(testing.TB) conntest.World { return &asideWorld{newWorld()} })
}

// asideWorld is a world whose table has one for late rows.
type asideWorld struct{ *world }

func (w *asideWorld) Open(ctx context.Context, o connector.Owner) (connector.Sink, error) {
	return w.conn.OpenSink(ctx, w.table(aside()), o)
}
