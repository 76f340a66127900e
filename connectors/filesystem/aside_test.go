package filesystem

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

func late(with map[string]string) map[string]string {
	with["format"], with[keyPolicy], with[keyLate] = "json", "success-file", lateSide
	return with
}

// lateWorld is a table with a directory for late rows.
type lateWorld struct{ *world }

func (w *lateWorld) Open(ctx context.Context, o connector.Owner) (connector.Sink, error) {
	return w.conn.OpenSink(ctx, tableOf(w.conn, conntest.Columns(), []int{2}, late(map[string]string{"path": "/lake/t", keyLatePath: "/lake/t_late"})), o)
}

func (w *lateWorld) AfterCrash(seed uint64) conntest.FaultWorld {
	return &lateWorld{w.world.AfterCrash(seed).(*world)}
}

// Late reads the directory as the table that a user declares over it.
func (w *lateWorld) Late(t testing.TB) (ids []int64) {
	t.Helper()
	if ok, _ := vfs.Exists(w.mem, "/lake/t_late"); !ok {
		return nil
	}
	c := New(w.mem, nil, jsonfmt.Format{}, csvfmt.Format{})
	for _, b := range readTable(t, c, tableOf(c, conntest.Columns(), nil, map[string]string{"path": "/lake/t_late", "format": "json"}), nil) {
		ids = append(ids, b.Cols[0].I64[:b.Len]...)
	}
	return ids
}

func TestLateRowsAside(t *testing.T) {
	conntest.RunAside(t, func(testing.TB) conntest.AsideWorld { return &lateWorld{newWorld(vfs.NewMem(), "json")} })
}

func TestAcceptanceWithLateRowsAside(t *testing.T) {
	conntest.RunSink(t, func(testing.TB) conntest.World { return &lateWorld{newWorld(vfs.NewMem(), "json")} })
}

// TestLateRowsOfNoTable: a job that does not name the directory any more keeps what lies
// there in mind.
func TestLateRowsOfNoTable(t *testing.T) {
	w := &lateWorld{newWorld(vfs.NewMem(), "json")}
	s, err := w.Open(t.Context(), conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	as, err := conntest.SealAside(s, 1, 0)
	if err := errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(as[0].Location, "/lake/t_late/") || !strings.Contains(as[1].Location, "/lake/t/dt=2024-05-01/") {
		t.Errorf("artefacts at %s and %s", as[0].Location, as[1].Location)
	}
	z, err := w.world.Open(t.Context(), conntest.OwnerOf(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	if _, err := z.Resolve(t.Context(), as); err == nil || !strings.Contains(err.Error(), "'sink.late-data' = 'side-table'") {
		t.Errorf("an artefact of a table that is not named: %v", err)
	}
}

func TestLateRowOptions(t *testing.T) {
	c := newWorld(vfs.NewMem(), "json").conn
	for _, x := range []struct {
		with map[string]string
		key  string
	}{
		{map[string]string{keyLate: lateSide}, keyLatePath},
		{map[string]string{keyLatePath: "/u"}, keyLatePath},
		{map[string]string{keyLate: lateAppend, keyLatePath: "/u"}, keyLatePath},
		{map[string]string{keyLate: lateSide, keyLatePath: "s3://u"}, keyLatePath},
		{map[string]string{keyLate: "rewrite"}, keyLate},
	} {
		x.with["connector"], x.with["path"], x.with["format"] = "filesystem", "/lake/t", "json"
		if _, errs := c.Spec().Resolve(x.with); len(errs) != 1 || errs[0].Key != x.key {
			t.Errorf("%v: %v, want one of %s", x.with, errs, x.key)
		}
	}
	var o *connector.OptionError
	for path, keys := range map[string][]int{"/lake/t": {2}, "/lake/t/late": {2}, "/lake/": {2}, "/lake/../lake/t/x": {2}, "/late": nil} {
		table := tableOf(c, conntest.Columns(), keys, late(map[string]string{"path": "/lake/t", keyLatePath: path}))
		if s, err := c.OpenSink(t.Context(), table, conntest.OwnerOf(1, 1)); !errors.As(err, &o) || s != nil || o.Key != keyLatePath && keys != nil || o.Key != keyLate && keys == nil {
			t.Errorf("late rows at %s: %v", path, err)
		}
	}
	table := tableOf(c, conntest.Columns(), []int{2}, late(map[string]string{"path": "/lake/t", keyLatePath: "/lake/t2"}))
	if mode, why := c.ReplaceMode(table); mode != connector.ReplaceNever || !strings.HasPrefix(why, "not_yet: ") {
		t.Errorf("replaced %v: %s", mode, why)
	}
}
