package hive

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
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

// TestLateRowsOfTheirOwnTable: the table of late rows is made without partitions, with
// all columns; the rows of the partition are registered without them.
func TestLateRowsOfTheirOwnTable(t *testing.T) {
	ctx := context.Background()
	w := newWorld()
	x, err := w.conn.OpenSink(ctx, w.table(aside()), conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	s := x.(*Sink)
	side := w.fake.tables["t_late"]
	if side == nil || len(side.PartitionKeys) != 0 || len(side.Storage.Columns) != len(conntest.Columns()) {
		t.Fatalf("the table of late rows is %+v", side)
	}
	as, err := conntest.SealAside(s, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(as[0].Location, "/t_late/") || !strings.Contains(as[1].Location, "/t/"+day+"/") {
		t.Errorf("artefacts at %s and %s", as[0].Location, as[1].Location)
	}
	noErrors(t, s.Publish(ctx, as)...)
	noErrors(t, s.CommitPartition(ctx, day))
	if w.fake.params("t", day)["numRows"] != "8" {
		t.Errorf("the partition is registered with %v", w.fake.params("t", day))
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

// asideFaults is a world with faults of files and of the metastore.
type asideFaults struct{ *faultWorld }

func (w *asideFaults) Late(t testing.TB) []int64 { return lateIDs(t, w.world) }

func (w *asideFaults) AfterCrash(seed uint64) conntest.FaultWorld {
	return &asideFaults{w.faultWorld.AfterCrash(seed).(*faultWorld)}
}

func TestLateRowsUnderFaults(t *testing.T) {
	conntest.RunAside(t, func(testing.TB) conntest.AsideWorld { return &asideFaults{newFaultWorld(vfs.NewMem(), aside())} })
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
