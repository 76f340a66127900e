//go:build services

package hive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// TestMetastores does the same on both versions.
func TestMetastores(t *testing.T) {
	for _, old := range []bool{false, true} {
		t.Run(map[bool]string{false: "4.0", true: "2.3"}[old], func(t *testing.T) {
			l := startLake(t, services.MetastoreOptions{Old: old})
			t.Run("acceptance", func(t *testing.T) { acceptance(t, l) })
			t.Run("replacing", func(t *testing.T) { replacing(t, l) })
			t.Run("registration", func(t *testing.T) { registration(t, l) })
			t.Run("policies", func(t *testing.T) { policies(t, l) })
			t.Run("partition of others", func(t *testing.T) { partitionOfOthers(t, l) })
			t.Run("evolution", func(t *testing.T) { evolution(t, l) })
			t.Run("altered underneath", func(t *testing.T) { alteredUnderneath(t, l) })
			t.Run("altered by others", func(t *testing.T) { alteredByOthers(t, l) })
			t.Run("every type", func(t *testing.T) { everyType(t, l) })
			t.Run("lost calls and answers", func(t *testing.T) { lostCalls(t, l) })
			t.Run("hung", func(t *testing.T) { hung(t, l) })
			t.Run("killed", func(t *testing.T) { killed(t, l) })
		})
	}
}

func acceptance(t *testing.T, l *lake) {
	n := 0
	conntest.RunSink(t, func(testing.TB) conntest.World { n++; return l.world(fmt.Sprintf("accepted%d", n), l.URI) })
}

// replaceWorld is a table whose rows are seen through the metastore.
type replaceWorld struct{ *realWorld }

func (w *replaceWorld) ReplaceMode() connector.ReplaceMode { return connector.ReplaceOnRequest }

func (w *replaceWorld) Visible(t testing.TB) []int64 {
	t.Helper()
	ctx := context.Background()
	names, err := w.lake.client.PartitionNames(ctx, "default", w.name)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{}
	for _, n := range names {
		at[n] = strings.TrimPrefix(normal(w.partition(t, n).Storage.Location), "file:")
	}
	own, err := filepath.Glob(filepath.Join(w.dir(), "dt=*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range own {
		if n := filepath.Base(dir); at[n] == "" {
			at[n] = dir
		}
	}
	var ids []int64
	for _, dir := range at {
		for _, b := range readDir(t, vfs.NewOS(), dir, conntest.Columns()[:2], nil) {
			ids = append(ids, b.Cols[0].I64[:b.Len]...)
		}
	}
	return ids
}

func replacing(t *testing.T, l *lake) {
	n := 0
	conntest.RunReplacer(t, func(testing.TB) conntest.ReplaceWorld {
		n++
		return &replaceWorld{l.world(fmt.Sprintf("replaced%d", n), l.URI)}
	})
}

func registration(t *testing.T, l *lake) {
	w := l.world("registered", l.URI)
	s := w.open(t, 1)
	announce(t, s, write(t, s, 1, 0, 11)...)
	w.wantPartitions(t, map[string]int{"dt=2024-05-01": 6, "dt=2024-05-02": 5})
	// Late rows, by another process.
	s = w.open(t, 2)
	announce(t, s, write(t, s, 2, 100, 4)...)
	w.wantPartitions(t, map[string]int{"dt=2024-05-01": 8, "dt=2024-05-02": 7})
	// Names that are escaped in paths, NULL and the empty text.
	b := conntest.Rows(0, 5)
	v := &b.Cols[2]
	v.Data, v.Offsets, v.Valid = nil, v.Offsets[:1], batch.Bitmap(nil).Resize(5, true)
	for _, x := range []string{"", "null", "a:b/c %20=?", "", "数据"} {
		v.Data = append(v.Data, x...)
		v.Offsets = append(v.Offsets, int32(len(v.Data)))
	}
	v.Valid.Clear(0)
	announce(t, s, writeBatch(t, s, 3, 0, b)...)
	w.wantPartitions(t, map[string]int{"dt=2024-05-01": 8, "dt=2024-05-02": 7,
		"dt=__HIVE_DEFAULT_PARTITION__": 2, "dt=null": 1, "dt=a%3Ab%2Fc %2520%3D%3F": 1, "dt=数据": 1})
	// The same through the metastore: all but the partitions that nobody registered.
	src, err := w.conn.OpenSource(context.Background(), w.table(conntest.Columns(), []int{2}, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	n := map[string]int{}
	for _, row := range rowsOf(t, readAll(t, src, []int{2})) {
		n[row]++
	}
	want := map[string]int{`{"dt":"2024-05-01"}`: 8, `{"dt":"2024-05-02"}`: 7, `{"dt":null}`: 2, `{"dt":"null"}`: 1, `{"dt":"a:b/c %20=?"}`: 1, `{"dt":"数据"}`: 1}
	if !maps.Equal(n, want) {
		t.Errorf("the source reads %v, want %v", n, want)
	}
	if p := w.partition(t, "dt=a%3Ab%2Fc %2520%3D%3F"); p != nil && p.Values[0] != "a:b/c %20=?" {
		t.Errorf("the metastore has the value %q", p.Values[0])
	}
}

func partitionOfOthers(t *testing.T, l *lake) {
	w := l.world("shared", l.URI)
	s := w.open(t, 1)
	parts := write(t, s, 1, 0, 10)
	table, err := l.client.Table(context.Background(), "default", "shared")
	if err != nil {
		t.Fatal(err)
	}
	add := func(dt, location string) {
		p := &metastore.Partition{Values: []string{dt}, Database: "default", Table: "shared", Storage: table.Storage.Clone()}
		p.Storage.Location = location
		if _, err := l.client.AddPartitions(context.Background(), "default", "shared", []*metastore.Partition{p}); err != nil {
			t.Fatal(err)
		}
	}
	add("2024-05-01", "file://"+t.TempDir())
	add("2024-05-02", "file://"+filepath.Join(w.dir(), "dt=2024-05-02"))
	errs := s.CommitPartitions(context.Background(), parts)
	if errs[0] == nil || !strings.Contains(errs[0].Error(), "lies at") || errs[1] != nil {
		t.Errorf("announcing %v: %v", parts, errs)
	}
	if p := w.partition(t, "dt=2024-05-02"); p.Parameters["numRows"] != "5" || p.Parameters[paramJob] == "" {
		t.Errorf("the partition that was added by hand has %v", p.Parameters)
	}
}

func evolution(t *testing.T, l *lake) {
	w := l.world("evolved", l.URI)
	first := cols("id", types.NewInt(), "f", types.NewFloat(), "name", types.NewVarchar(5), "dt", types.NewString())
	second := cols("id", types.NewBigInt(), "f", types.NewDouble(), "name", types.NewString(), "extra", types.NewDecimal(10, 2), "dt", types.NewString())
	s, err := w.conn.OpenSink(context.Background(), w.table(first, []int{3}, nil), conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(w.dir(), "dt=a"), 0o755); err != nil {
		t.Fatal(err)
	}
	announce(t, s, "dt=a")
	s.Close()
	if _, err := w.conn.OpenSink(context.Background(), w.table(second, []int{4}, nil), conntest.OwnerOf(1, 2)); err == nil {
		t.Fatal("a table with other columns was opened")
	}
	s, err = w.conn.OpenSink(context.Background(), w.table(second, []int{4}, map[string]string{keyEvolution: evolveWiden}), conntest.OwnerOf(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const want = "[{id bigint } {f double } {name string } {extra decimal(10,2) }]"
	table, err := l.client.Table(context.Background(), "default", "evolved")
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []string{fmt.Sprint(table.Storage.Columns), fmt.Sprint(w.partition(t, "dt=a").Storage.Columns)} {
		if got != want {
			t.Errorf("columns %s, want %s", got, want)
		}
	}
}

func alteredUnderneath(t *testing.T, l *lake) {
	w := l.world("altered", l.URI)
	s := w.open(t, 1)
	parts := write(t, s, 1, 0, 10)
	announce(t, s, parts[0])
	ctx := context.Background()
	table, err := l.client.Table(ctx, "default", "altered")
	if err != nil {
		t.Fatal(err)
	}
	changed := table.Clone()
	changed.Storage.Columns = append(changed.Storage.Columns, metastore.Column{Name: "more", Type: "int"})
	if err := l.client.AlterTable(ctx, changed, true); err != nil {
		t.Fatal(err)
	}
	announce(t, s, parts[1]) // a column that we do not write is NULL
	changed.Storage.Columns = changed.Storage.Columns[:1]
	if err := l.client.AlterTable(ctx, changed, true); err != nil {
		t.Fatal(err)
	}
	err = s.CommitPartition(ctx, parts[1])
	var m *MismatchError
	if !errors.As(err, &m) || !strings.Contains(err.Error(), "column name (string) was dropped there") {
		t.Errorf("got %v", err)
	}
	if err := l.client.DropTable(ctx, "default", "altered", false); err != nil {
		t.Fatal(err)
	}
	if err := s.CommitPartition(ctx, parts[1]); !errors.As(err, &m) || !strings.Contains(err.Error(), "it was dropped") {
		t.Errorf("got %v", err)
	}
	// As the message says: created again, its partitions come back.
	w.open(t, 2)
	announce(t, w.open(t, 3), parts...)
	w.wantPartitions(t, map[string]int{parts[0]: 5, parts[1]: 5})
}

// alteredByOthers: a column gets another type, and the table is dropped and made anew at
// another place, while a job writes it.
func alteredByOthers(t *testing.T, l *lake) {
	ctx := context.Background()
	for name, x := range map[string]struct {
		change func(*metastore.Table)
		says   string
	}{
		"retyped":   {func(n *metastore.Table) { n.Storage.Columns[0].Type = "string" }, "column id is string there and bigint here"},
		"recreated": {func(n *metastore.Table) { n.Storage.Location = "file://" + t.TempDir() }, "it was moved to file:"},
	} {
		w := l.world(name, l.URI)
		s := w.open(t, 1)
		parts := write(t, s, 1, 0, 10)
		announce(t, s, parts[0])
		changed, err := l.client.Table(ctx, "default", name)
		if err != nil {
			t.Fatal(err)
		}
		x.change(changed)
		if err := l.client.DropTable(ctx, "default", name, false); err != nil {
			t.Fatal(err)
		}
		if err := l.client.CreateTable(ctx, changed); err != nil {
			t.Fatal(err)
		}
		for _, err := range s.CommitPartitions(ctx, parts) {
			var m *MismatchError
			if !errors.As(err, &m) || !strings.Contains(err.Error(), x.says) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if names, err := l.client.PartitionNames(ctx, "default", name); err != nil || len(names) > 0 {
			t.Errorf("%s: %v, %v are registered in a table that does not fit", name, names, err)
		}
		if _, err := w.Open(ctx, conntest.OwnerOf(1, 2)); err == nil && name == "retyped" {
			t.Error("a table that does not fit was opened")
		}
		if err := l.client.DropTable(ctx, "default", name, false); err != nil {
			t.Fatal(err)
		}
		w.open(t, 3) // makes it as it was
		announce(t, w.open(t, 4), parts...)
		w.wantPartitions(t, map[string]int{parts[0]: 5, parts[1]: 5})
	}
}

// everyType creates a table with a column of each type and compares it with what
// the metastore gives back.
func everyType(t *testing.T, l *lake) {
	w := l.world("types", l.URI)
	str := types.NewString()
	all := cols("c1", types.NewBoolean(), "c2", types.NewTinyInt(), "c3", types.NewSmallInt(), "c4", types.NewInt(), "c5", types.NewBigInt(),
		"c6", types.NewFloat(), "c7", types.NewDouble(), "c8", types.NewDecimal(38, 10), "c9", types.NewChar(10), "c10", types.NewVarchar(65535), "c11", str,
		"c12", types.NewBytes(), "c13", types.NewDate(), "c14", types.NewTimestamp(3), "c15", types.NewTimestampLTZ(6),
		"c16", types.NewArray(types.NewArray(types.NewDecimal(5, 2))), "c17", types.NewMap(str, types.NewArray(types.NewDate())),
		"c18", types.NewRow(types.Field{Name: "A", Type: types.NewInt()}, types.Field{Name: "b", Type: types.NewRow(types.Field{Name: "x", Type: str})}),
		"p1", types.NewInt(), "p2", types.NewDate(), "p3", types.NewBigInt(), "p4", types.NewBoolean(), "p5", types.NewTinyInt())
	keys := []int{18, 19, 20, 21, 22}
	for epoch := range uint64(2) { // created, then matched
		s, err := w.conn.OpenSink(context.Background(), w.table(all, keys, nil), conntest.OwnerOf(1, epoch))
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
}

// TestManyPartitions registers 500 partitions, as a backfill or the first hour
// after a metastore's absence does.
func TestManyPartitions(t *testing.T) {
	l := startLake(t, services.MetastoreOptions{})
	w := l.world("many", l.URI)
	s := w.open(t, 1)
	const n = 500
	var parts []string
	for first := 0; first < n; first += 250 { // the writer's open files are bounded
		sel := conntest.Rows(0, 250)
		d := &sel.Cols[2]
		d.Data, d.Offsets = nil, d.Offsets[:1]
		for i := range 250 {
			d.Data = fmt.Appendf(d.Data, "2024-%03d", first+i)
			d.Offsets = append(d.Offsets, int32(len(d.Data)))
		}
		parts = append(parts, writeBatch(t, s, uint64(first+1), 0, sel)...)
	}
	began := time.Now()
	for first := 0; first < n; first += 100 {
		announce(t, s, parts[first:first+100]...)
	}
	took := time.Since(began)
	t.Logf("%d partitions registered in %.1f s", n, took.Seconds())
	names, err := l.client.PartitionNames(context.Background(), "default", "many")
	if err != nil || len(names) != n {
		t.Errorf("%d are registered: %v", len(names), err)
	}
}
