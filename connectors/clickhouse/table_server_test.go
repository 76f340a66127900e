//go:build services

package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// openTable opens a sink and a writer of a table with columns.
func openTable(t testing.TB, cols []connector.Column, keys []int, with map[string]string) (connector.Sink, connector.Writer, connector.ArtifactID, error) {
	t.Helper()
	conn := New(vfs.NewOS(), t.TempDir())
	s, err := conn.OpenSink(context.Background(), tableOf(t, conn, cols, keys, with), conntest.OwnerOf(1, 1))
	if err != nil {
		return nil, nil, connector.ArtifactID{}, err
	}
	t.Cleanup(func() { s.Close() })
	id := connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(9), Lane: connector.LaneID{Topic: conntest.UUID(7)}, Epoch: 1}
	w, err := s.OpenWriter(context.Background(), connector.Attempt{ID: id})
	return s, w, id, err
}

func field(name string, typ types.Type) connector.Column {
	return connector.Column{Field: types.Field{Name: name, Type: typ}}
}

// Every block lies in one partition, as the server itself cuts them, over changes of
// daylight saving time, years and months and before 1970.
func TestBlocksLieInOnePartition(t *testing.T) {
	for _, key := range []string{
		"tuple()", "toDate(ts)", "toYYYYMM(ts)", "toYYYYMMDD(ts)", "toStartOfHour(ts)", "toStartOfDay(ts)", "toMonday(ts)", "toStartOfMonth(ts)", "toYear(ts)",
		"toDate(ts, 'America/New_York')", "toStartOfHour(ts, 'Asia/Kolkata')", "d", "toYYYYMM(d)", "toMonday(d)", "(d, k)", "k % 7", "intDiv(k, 10)", "s", "(toDate(ts), s)", "toDate(wall)", "(ts, wall)",
	} {
		t.Run(key, func(t *testing.T) {
			name := newTable(t)
			ask(t, "CREATE TABLE %s (k Int64, ts DateTime64(3, 'Europe/Berlin'), wall DateTime('America/New_York'), d Date, s String, _mr_artifact LowCardinality(String)) "+
				"ENGINE = MergeTree PARTITION BY %s ORDER BY k", name, key)
			s, w, id, err := openTable(t, []connector.Column{field("k", types.NewBigInt()), field("ts", types.NewTimestampLTZ(3)), field("wall", types.NewTimestamp(0)),
				field("d", types.NewDate()), field("s", types.NewString())}, nil, map[string]string{"table-name": name})
			if err != nil {
				t.Fatal(err)
			}
			var k, ts, wall, d, text []any
			for i, at := range []string{"2024-03-30 22:59:59", "2024-03-30 23:00:00", "2024-03-31 00:59:59", "2024-03-31 01:00:00", "2024-10-27 00:30:00", "2024-10-27 01:30:00",
				"2023-12-31 22:59:59", "2023-12-31 23:00:00", "2024-01-01 00:00:00", "2024-02-29 23:30:00", "1999-12-31 23:30:00", "2024-05-05 22:00:00", "2024-05-06 10:10:10"} {
				k, ts, wall, d = append(k, i*7), append(ts, at), append(wall, at), append(d, at[:10])
				text = append(text, fmt.Sprintf("it's %d", i%3))
			}
			b := &batch.Batch{Len: len(k), Cols: []batch.Vec{*vec(t, types.NewBigInt(), k...), *vec(t, types.NewTimestampLTZ(3), ts...), *vec(t, types.NewTimestamp(0), wall...),
				*vec(t, types.NewDate(), d...), *vec(t, types.NewString(), text...)}}
			publishRows(t, s, w, b, nil, id)
			got := ask(t, "SELECT sum(n), max(p) FROM (SELECT count() AS n, uniqExact(_partition_id) AS p FROM %s GROUP BY _mr_artifact)", name)
			if got != fmt.Sprintf("%d\t1", len(k)) {
				t.Errorf("rows, and partitions of a block: %s", got)
			}
		})
	}
	t.Run("unknown functions are refused", func(t *testing.T) {
		name := newTable(t)
		ask(t, "CREATE TABLE %s (k Int64, s String, _mr_artifact LowCardinality(String)) ENGINE = MergeTree PARTITION BY cityHash64(s) ORDER BY k", name)
		_, _, _, err := openTable(t, []connector.Column{field("k", types.NewBigInt()), field("s", types.NewString())}, nil, map[string]string{"table-name": name})
		if err == nil || !strings.Contains(err.Error(), "not_yet: cityHash64(s)") {
			t.Errorf("%v", err)
		}
	})
	t.Run("a key that is not written is refused", func(t *testing.T) {
		name := newTable(t)
		ask(t, "CREATE TABLE %s (k Int64, d Date DEFAULT today(), _mr_artifact LowCardinality(String)) ENGINE = MergeTree PARTITION BY d ORDER BY k", name)
		_, _, _, err := openTable(t, []connector.Column{field("k", types.NewBigInt())}, nil, map[string]string{"table-name": name})
		if err == nil || !strings.Contains(err.Error(), "column d is not written") {
			t.Errorf("%v", err)
		}
	})
}

// A table that is missing is made as the SQL table says, and one that lacks columns
// gets them; nothing else of it changes.
func TestCreateAndWiden(t *testing.T) {
	name := newTable(t)
	cols := []connector.Column{field("k", types.NewBigInt().NotNull()), field("at", types.NewTimestampLTZ(3)), field("dt", types.NewString()), field("a", types.NewArray(types.NewInt()))}
	with := map[string]string{"table-name": name, keyCreate: "true", keyCreateOrder: "k; dt", keyCompression: "zstd"}
	s, w, id, err := openTable(t, cols, []int{2}, with)
	if err != nil {
		t.Fatal(err)
	}
	rows := func(cols ...batch.Vec) *batch.Batch { return &batch.Batch{Len: cols[0].Len, Cols: cols} }
	first := []batch.Vec{*vec(t, types.NewBigInt(), 1), *vec(t, types.NewTimestampLTZ(3), "2024-05-01 08:00:00.123"), *vec(t, types.NewString(), "2024-05-01"), *vec(t, cols[3].Type, []any{1, nil})}
	publishRows(t, s, w, rows(first...), nil, id)
	if got := ask(t, "SELECT name, type FROM system.columns WHERE database = 'default' AND table = '%s' ORDER BY position", name); got != "k\tInt64\nat\tNullable(DateTime64(3, \\'UTC\\'))\ndt\tString\na\tArray(Nullable(Int32))\n_mr_artifact\tLowCardinality(String)" {
		t.Errorf("columns\n%s", got)
	}
	if got := ask(t, "SELECT partition_key, sorting_key FROM system.tables WHERE name = '%s'", name); got != "(dt)\tk, dt" {
		t.Errorf("keys %s", got)
	}
	wider := append(slices.Clone(cols), field("more", types.NewDecimal(10, 2)))
	if _, _, _, err := openTable(t, wider, []int{2}, map[string]string{"table-name": name}); err == nil || !strings.Contains(err.Error(), "no such column") {
		t.Errorf("a column that is missing: %v", err)
	}
	s, w, id, err = openTable(t, wider, []int{2}, map[string]string{"table-name": name, keyWiden: "true"})
	if err != nil {
		t.Fatal(err)
	}
	id.Epoch = 1
	id.Job = conntest.UUID(1)
	id.Sequence = 100
	publishRows(t, s, w, rows(append(slices.Clone(first), *vec(t, types.NewDecimal(10, 2), "1.25"))...), nil, id)
	if got := ask(t, "SELECT k, at, dt, a, more FROM %s ORDER BY more NULLS FIRST", name); got != "1\t2024-05-01 08:00:00.123\t2024-05-01\t[1,NULL]\t\\N\n1\t2024-05-01 08:00:00.123\t2024-05-01\t[1,NULL]\t1.25" {
		t.Errorf("rows\n%s", got)
	}
	if _, _, _, err := openTable(t, cols, []int{0}, map[string]string{"table-name": name}); err == nil || !strings.Contains(err.Error(), "PARTITIONED BY") {
		t.Errorf("another partition key: %v", err)
	}
}

// What a table does not allow is refused when it is opened, with what to do.
func TestRefusedTables(t *testing.T) {
	k := []connector.Column{field("k", types.NewBigInt())}
	for name, c := range map[string]struct {
		columns, engine string
		cols            []connector.Column
		with            map[string]string
		says            []string
	}{
		"no method":        {"k Int64", "MergeTree ORDER BY k", k, nil, []string{"MODIFY SETTING non_replicated_deduplication_window = 1000", "ADD COLUMN _mr_artifact LowCardinality(String)", "at-least-once"}},
		"token by name":    {"k Int64", "MergeTree ORDER BY k", k, map[string]string{keyMethod: "token"}, []string{"method token", "MODIFY SETTING"}},
		"column by name":   {"k Int64", "MergeTree ORDER BY k", k, map[string]string{keyMethod: "column"}, []string{"method column", "ADD COLUMN"}},
		"rows are folded":  {"k Int64, _mr_artifact String", "ReplacingMergeTree ORDER BY k", k, nil, []string{"removes or folds rows"}},
		"upsert elsewhere": {"k Int64", "MergeTree ORDER BY k", k, map[string]string{keyMethod: "upsert", keyGuarantee: "at-least-once"}, []string{"not a ReplacingMergeTree"}},
		"memory":           {"k Int64", "Memory", k, nil, []string{"engine Memory"}},
		"every column": {"k Int64, m Int64 MATERIALIZED 1, T String", "MergeTree ORDER BY k", []connector.Column{field("k", types.NewString()), field("m", types.NewBigInt()), field("t", types.NewString())}, nil,
			[]string{"column k: STRING cannot be written as Int64", "column m: it is MATERIALIZED", "column t", "there is T"}},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable(t)
			ask(t, "CREATE TABLE %s (%s) ENGINE = %s", table, c.columns, c.engine)
			with := map[string]string{"table-name": table}
			for k, v := range c.with {
				with[k] = v
			}
			_, _, _, err := openTable(t, c.cols, nil, with)
			if err == nil {
				t.Fatal("it was opened")
			}
			for _, text := range c.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
		})
	}
}

// Copies of a block are merged by a ReplacingMergeTree.
func TestUpsert(t *testing.T) {
	name := newTable(t)
	ask(t, "CREATE TABLE %s (k Int64) ENGINE = ReplacingMergeTree ORDER BY k", name)
	s, w, id, err := openTable(t, []connector.Column{field("k", types.NewBigInt())}, nil,
		map[string]string{"table-name": name, keyMethod: "upsert", keyGuarantee: "at-least-once"})
	if err != nil {
		t.Fatal(err)
	}
	b := &batch.Batch{Len: 3, Cols: []batch.Vec{*vec(t, types.NewBigInt(), 1, 2, 3)}}
	publishRows(t, s, w, b, nil, id)
	id.Sequence = 10
	publishRows(t, s, w, b, nil, id)
	// Copies in one block are merged before it is written.
	id.Sequence = 20
	publishRows(t, s, w, &batch.Batch{Len: 4, Cols: []batch.Vec{*vec(t, types.NewBigInt(), 1, 2, 2, 2)}}, nil, id)
	if got := ask(t, "SELECT count() FROM %s FINAL", name); got != "3" {
		t.Errorf("%s rows", got)
	}
}

// A materialized view writes rows, too; those of the table are the ones that count.
func TestViewsOverATable(t *testing.T) {
	name := newTable(t)
	ask(t, "CREATE TABLE %s (k Int64) ENGINE = MergeTree ORDER BY k SETTINGS non_replicated_deduplication_window = 100", name)
	for _, view := range []string{"twice", "none"} {
		ask(t, "CREATE MATERIALIZED VIEW %[1]s_%[2]s ENGINE = MergeTree ORDER BY k AS SELECT k FROM %[1]s ARRAY JOIN if('%[2]s' = 'twice', [1, 2], emptyArrayUInt8()) AS x", name, view)
		t.Cleanup(func() { ask(t, "DROP TABLE %s_%s", name, view) })
	}
	s, w, id, err := openTable(t, []connector.Column{field("k", types.NewBigInt())}, nil, map[string]string{"table-name": name})
	if err != nil {
		t.Fatal(err)
	}
	publishRows(t, s, w, &batch.Batch{Len: 3, Cols: []batch.Vec{*vec(t, types.NewBigInt(), 1, 2, 3)}}, nil, id)
	if got := ask(t, "SELECT count() FROM %s", name); got != "3" {
		t.Errorf("%s rows", got)
	}
	if got := ask(t, "SELECT count() FROM %s_twice", name); got != "6" {
		t.Errorf("%s rows in the view", got)
	}
}
