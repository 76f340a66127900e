package hive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

func TestAcceptance(t *testing.T) {
	conntest.RunSink(t, func(testing.TB) conntest.World { return newWorld() })
}

// write publishes n rows, ids from first on, and gives the partitions.
func write(t testing.TB, s connector.Sink, epoch uint64, first int64, n int) []string {
	t.Helper()
	return writeBatch(t, s, epoch, first, conntest.Rows(first, n))
}

func writeBatch(t testing.TB, s connector.Sink, epoch uint64, first int64, b *batch.Batch) []string {
	t.Helper()
	ctx := context.Background()
	a := connector.Attempt{ID: connector.ArtifactID{Job: conntest.UUID(1), Table: conntest.UUID(9), Lane: connector.LaneID{Topic: conntest.UUID(7)}, Epoch: epoch}}
	w, err := s.OpenWriter(ctx, a)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ids, err := w.Buckets(b, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		if err := w.Write(b, batch.Sel{int32(i)}, id); err != nil {
			t.Fatal(err)
		}
	}
	var reqs []connector.SealRequest
	var parts []string
	for _, k := range w.Open() {
		id := a.ID
		id.Sequence = uint64(len(reqs))
		reqs = append(reqs, connector.SealRequest{Bucket: k.ID, Header: connector.Header{ID: id, TablePartition: k.TablePartition, Rows: k.Rows}})
		parts = append(parts, k.TablePartition)
	}
	as, err := w.Seal(ctx, reqs)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Publish(ctx, as) {
		if err != nil {
			t.Fatal(err)
		}
	}
	return parts
}

func announce(t testing.TB, s connector.Sink, parts ...string) {
	t.Helper()
	for i, err := range s.(*Sink).CommitPartitions(context.Background(), parts) {
		if err != nil {
			t.Fatalf("announcing %s: %v", parts[i], err)
		}
	}
}

func open(t testing.TB, w *world, epoch uint64) connector.Sink {
	t.Helper()
	s, err := w.Open(context.Background(), conntest.OwnerOf(1, epoch))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// dirBytes is the size of a directory's data files.
func dirBytes(t testing.TB, fsys vfs.FS, dir string) (files, bytes int64) {
	t.Helper()
	names, err := fsys.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if n[0] == '_' || n[0] == '.' {
			continue
		}
		info, err := fsys.Stat(fsys.Join(dir, n))
		if err != nil {
			t.Fatal(err)
		}
		files, bytes = files+1, bytes+info.Size()
	}
	return files, bytes
}

func TestPartitionIsRegisteredWithItsStatistics(t *testing.T) {
	w := newWorld()
	s := open(t, w, 1)
	parts := write(t, s, 1, 0, 11)
	if w.fake.params("t", parts[0]) != nil {
		t.Fatal("a partition is registered before it is announced")
	}
	announce(t, s, parts...)
	check := func(files int64, rows string) {
		t.Helper()
		p := w.fake.params("t", "dt=2024-05-01")
		n, bytes := dirBytes(t, w.mem, "/warehouse/t/dt=2024-05-01")
		if n != files || p["numFiles"] != fmt.Sprint(files) || p["totalSize"] != fmt.Sprint(bytes) || p["numRows"] != rows {
			t.Fatalf("%d files of %d bytes; the metastore has %v", n, bytes, p)
		}
		if p[paramJob] != conntest.UUID(1).String() {
			t.Errorf("the partition's tag is %v", p)
		}
		if ok, err := vfs.Exists(w.mem, "/warehouse/t/dt=2024-05-01/_SUCCESS"); err != nil || !ok {
			t.Errorf("_SUCCESS is there: %v, %v", ok, err)
		}
	}
	check(1, "6")
	// Late rows: a new file beside the old ones, by another process, which
	// learns the old file's rows from its footer.
	s = open(t, w, 2)
	announce(t, s, write(t, s, 2, 100, 4)...)
	check(2, "8")
	if n := w.fake.adds["dt=2024-05-01"]; n != 1 {
		t.Errorf("added %d times", n)
	}
	// Nothing new: nothing is altered.
	w.fake.calls = nil
	announce(t, s, "dt=2024-05-01")
	if got := strings.Join(w.fake.calls, ","); got != "table,partitions" {
		t.Errorf("calls %s", got)
	}
	// A file of a format that tells no rows.
	f, err := w.mem.Create("/warehouse/t/dt=2024-05-01/foreign.txt")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	announce(t, s, "dt=2024-05-01")
	if p := w.fake.params("t", "dt=2024-05-01"); p["numFiles"] != "3" || p["numRows"] != "" {
		t.Errorf("statistics are %v", p)
	}
}

// Every call of the metastore fails once before and once after its effect; then
// the announcement is made again, by this process or the next one.
func TestEveryCallFailsBeforeAndAfter(t *testing.T) {
	for _, late := range []bool{false, true} {
		for step := 0; ; step++ {
			w := newWorld()
			s := open(t, w, 1)
			parts := write(t, s, 1, 0, 10)
			if late {
				announce(t, s, parts...)
				write(t, s, 2, 100, 10)
			}
			n, hit := 0, false
			w.fake.fault = func(string, bool) error {
				n++
				if n-1 == step {
					hit = true
					return &metastore.CallError{Method: "fake", Sent: true, Err: errors.New("connection reset")}
				}
				return nil
			}
			for i, err := range s.(*Sink).CommitPartitions(context.Background(), parts) {
				var ce *metastore.CallError
				if hit && !errors.As(err, &ce) || !hit && err != nil {
					t.Fatalf("step %d: announcing %s: %v", step, parts[i], err)
				}
				if ok, _ := vfs.Exists(w.mem, "/warehouse/t/"+parts[i]+"/_SUCCESS"); hit && ok && !late {
					t.Fatalf("step %d: %s has its success file and is not registered for certain", step, parts[i])
				}
			}
			w.fake.fault = nil
			if step%2 == 1 {
				s = open(t, w, 2)
			}
			announce(t, s, parts...)
			want := map[bool]string{false: "5", true: "10"}[late]
			for _, p := range parts {
				if got := w.fake.params("t", p); got["numRows"] != want || w.fake.adds[p] != 1 {
					t.Fatalf("step %d: %s has %v after %d additions", step, p, got, w.fake.adds[p])
				}
			}
			if !hit {
				if step < 6 {
					t.Fatalf("only %d steps", step)
				}
				break
			}
		}
	}
}

func TestPartitionOfOthers(t *testing.T) {
	w := newWorld()
	s := open(t, w, 2)
	parts := write(t, s, 1, 0, 10)
	there := func(location string, params map[string]string) {
		w.fake.parts["t"]["dt=2024-05-01"] = &metastore.Partition{Values: []string{"2024-05-01"}, Database: "default", Table: "t",
			Storage: metastore.Storage{Location: location}, Parameters: params}
	}
	errs := func() []error { return s.(*Sink).CommitPartitions(context.Background(), parts) }

	there("file:/elsewhere/dt=2024-05-01", nil)
	if e := errs(); e[0] == nil || !strings.Contains(e[0].Error(), "file:/elsewhere/dt=2024-05-01") || e[1] != nil {
		t.Errorf("a partition elsewhere: %v", e)
	}
	there("file:///warehouse/t/dt=2024-05-01/", map[string]string{paramJob: conntest.UUID(1).String(), paramEpoch: "3"})
	if e := errs(); !errors.Is(e[0], connector.ErrFenced) || e[1] != nil {
		t.Errorf("a higher epoch: %v", e)
	}
	// Added by hand, by ALTER TABLE ADD PARTITION or MSCK: it is ours from now on.
	there("file:///warehouse/t/dt=2024-05-01/", map[string]string{paramAccurate: `{"BASIC_STATS":"true"}`, "k": "v"})
	if e := errs(); e[0] != nil || e[1] != nil {
		t.Errorf("added by hand: %v", e)
	}
	if p := w.fake.params("t", "dt=2024-05-01"); p[paramJob] == "" || p[paramAccurate] != "" || p["k"] != "v" || p["numRows"] != "5" {
		t.Errorf("the partition has %v", p)
	}
}

// One partition that the metastore refuses does not hold up the others of its
// batch.
func TestOneRefusedPartition(t *testing.T) {
	for _, late := range []bool{false, true} {
		w := newWorld()
		s := open(t, w, 1)
		parts := write(t, s, 1, 0, 10)
		if late {
			announce(t, s, parts...)
			write(t, s, 2, 100, 10)
		}
		w.fake.refuse = "2024-05-01"
		errs := s.(*Sink).CommitPartitions(context.Background(), parts)
		if !errors.Is(errs[0], metastore.ErrMeta) || errs[1] != nil {
			t.Errorf("late %v: %v", late, errs)
		}
		if got, want := w.fake.params("t", "dt=2024-05-02")["numRows"], map[bool]string{false: "5", true: "10"}[late]; got != want {
			t.Errorf("late %v: %s rows, want %s", late, got, want)
		}
		w.fake.refuse = ""
		announce(t, s, parts...)
	}
}

func TestPartitionValues(t *testing.T) {
	w := newWorld()
	s := open(t, w, 1)
	b := conntest.Rows(0, 4)
	v := &b.Cols[2]
	v.Data, v.Offsets, v.Valid = nil, v.Offsets[:1], batch.Bitmap(nil).Resize(4, true)
	for _, x := range []string{"", "null", "a:b/c", ""} {
		v.Data = append(v.Data, x...)
		v.Offsets = append(v.Offsets, int32(len(v.Data)))
	}
	v.Valid.Clear(0)
	announce(t, s, writeBatch(t, s, 1, 0, b)...)
	for name, want := range map[string]string{"dt=__HIVE_DEFAULT_PARTITION__": "2", "dt=null": "1", "dt=a%3Ab%2Fc": "1"} {
		if p := w.fake.params("t", name); p["numRows"] != want {
			t.Errorf("%s: %v, want %s rows", name, p, want)
		}
	}
	if p := w.fake.parts["t"]["dt=a%3Ab%2Fc"]; p.Values[0] != "a:b/c" || p.Storage.Location != "file:/warehouse/t/dt=a%3Ab%2Fc" {
		t.Errorf("registered %v at %s", p.Values, p.Storage.Location)
	}
}

func TestTableAlteredUnderneath(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fakeCatalog)
		want   string
	}{
		"dropped": {func(f *fakeCatalog) { delete(f.tables, "t") }, "it was dropped"},
		"moved":   {func(f *fakeCatalog) { f.tables["t"].Storage.Location = "file:/other" }, "it was moved to file:/other"},
		"type":    {func(f *fakeCatalog) { f.tables["t"].Storage.Columns[0].Type = "date" }, "column id is date there and bigint here"},
		"column":  {func(f *fakeCatalog) { f.tables["t"].Storage.Columns = f.tables["t"].Storage.Columns[:1] }, "column name (string) was dropped there"},
		"orc":     {func(f *fakeCatalog) { f.tables["t"].Storage.SerDe = "org.apache.hadoop.hive.ql.io.orc.OrcSerde" }, "ORC"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			s := open(t, w, 1)
			parts := write(t, s, 1, 0, 10)
			c.change(w.fake)
			for _, err := range s.(*Sink).CommitPartitions(context.Background(), parts) {
				var m *MismatchError
				if !errors.As(err, &m) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			}
			if len(w.fake.parts["t"]) > 0 {
				t.Errorf("registered %v", w.fake.parts["t"])
			}
			if got := len(w.Visible(t)); got != 10 {
				t.Errorf("%d rows are there, want 10: files do not wait for the metastore", got)
			}
		})
	}
}

func cols(spec ...any) []connector.Column {
	var out []connector.Column
	for i := 0; i < len(spec); i += 2 {
		out = append(out, connector.Column{Field: types.Field{Name: spec[i].(string), Type: spec[i+1].(types.Type)}})
	}
	return out
}

func TestTableIsMatched(t *testing.T) {
	base := cols("id", types.NewInt(), "name", types.NewString(), "dt", types.NewString())
	for name, c := range map[string]struct {
		columns []connector.Column
		with    map[string]string
		alter   func(*metastore.Table)
		want    string // "" opens
	}{
		"same":                     {columns: base},
		"upper case":               {columns: cols("ID", types.NewInt(), "Name", types.NewString(), "DT", types.NewString())},
		"fewer columns here":       {columns: cols("name", types.NewString(), "dt", types.NewString())},
		"missing there":            {columns: cols("id", types.NewInt(), "x", types.NewDate(), "dt", types.NewString()), want: "column x (date) is missing there ('sink.schema-evolution' = 'add-columns' adds it)"},
		"wider here":               {columns: cols("id", types.NewBigInt(), "name", types.NewString(), "dt", types.NewString()), want: "column id is int there and bigint here ('sink.schema-evolution' = 'widen' widens it)"},
		"other type":               {columns: cols("id", types.NewDate(), "name", types.NewInt(), "dt", types.NewString()), want: "column id is int there and date here; column name is string there and int here"},
		"narrower here":            {columns: cols("id", types.NewSmallInt(), "name", types.NewString(), "dt", types.NewString()), want: "column id is int there and smallint here"},
		"text of bounded length":   {columns: cols("id", types.NewInt(), "name", types.NewVarchar(10), "dt", types.NewChar(10))},
		"partitioned by another":   {columns: cols("id", types.NewInt(), "name", types.NewString(), "day", types.NewString()), want: "it is partitioned by (dt), the table here by (day)"},
		"same name twice":          {columns: cols("id", types.NewInt(), "ID", types.NewString(), "dt", types.NewString()), want: "Hive does not tell upper from lower case"},
		"a type that Hive lacks":   {columns: cols("id", types.NewTime(3), "name", types.NewString(), "dt", types.NewString()), want: "column id: Hive has no type TIME"},
		"nanoseconds":              {columns: cols("id", types.NewTimestamp(9), "name", types.NewString(), "dt", types.NewString()), want: "declare TIMESTAMP(6)"},
		"transactional":            {columns: base, alter: func(t *metastore.Table) { t.Parameters["transactional"] = "true" }, want: "transactional"},
		"a view":                   {columns: base, alter: func(t *metastore.Table) { t.Type = "VIRTUAL_VIEW" }, want: "it is a VIRTUAL_VIEW"},
		"Iceberg":                  {columns: base, alter: func(t *metastore.Table) { t.Parameters["table_type"] = "ICEBERG" }, want: "ICEBERG"},
		"buckets":                  {columns: base, alter: func(t *metastore.Table) { t.Storage.Buckets, t.Storage.BucketColumns = 4, []string{"id"} }, want: "bucketed by id"},
		"text files":               {columns: base, alter: func(t *metastore.Table) { t.Storage.SerDe = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe" }, want: "LazySimpleSerDe"},
		"columns by position":      {columns: base, alter: func(t *metastore.Table) { t.Parameters["parquet.column.index.access"] = "true" }, want: "by position"},
		"another directory":        {columns: base, with: map[string]string{keyPath: "/other"}, want: "lies at file:/warehouse/t, not at /other"},
		"the directory, spelled":   {columns: base, with: map[string]string{keyPath: "file:///warehouse//t/"}},
		"no table":                 {columns: base, with: map[string]string{keyTable: "u", keyCreate: ""}, want: "the metastore has no table default.u"},
		"no database":              {columns: base, with: map[string]string{keyDatabase: "nope", keyTable: "u"}, want: "the metastore has no database nope"},
		"no policy":                {columns: base, with: map[string]string{keyPolicy: ""}, want: keyPolicy},
		"columns that Spark wrote": {columns: cols("id", types.NewBigInt(), "name", types.NewString(), "dt", types.NewString()), with: map[string]string{keyEvolution: "widen"}, alter: func(t *metastore.Table) { t.Parameters["spark.sql.sources.schema"] = "{}" }, want: "properties that Spark wrote"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			s, err := w.conn.OpenSink(context.Background(), w.tableOf(base, []int{2}, nil), conntest.OwnerOf(1, 1))
			if err != nil {
				t.Fatal(err)
			}
			s.Close()
			if c.alter != nil {
				c.alter(w.fake.tables["t"])
			}
			before := w.fake.tables["t"].Clone()
			s, err = w.conn.OpenSink(context.Background(), w.tableOf(c.columns, []int{len(c.columns) - 1}, c.with), conntest.OwnerOf(1, 2))
			switch {
			case c.want == "" && err != nil:
				t.Fatal(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Fatalf("got %v, want %q", err, c.want)
			}
			if err == nil {
				s.Close()
			}
			if fmt.Sprint(before.Storage.Columns) != fmt.Sprint(w.fake.tables["t"].Storage.Columns) {
				t.Errorf("the table was altered to %v", w.fake.tables["t"].Storage.Columns)
			}
		})
	}
}

func TestSchemaEvolution(t *testing.T) {
	w := newWorld()
	first := cols("id", types.NewInt(), "name", types.NewVarchar(5), "dt", types.NewString())
	s, err := w.conn.OpenSink(context.Background(), w.tableOf(first, []int{2}, nil), conntest.OwnerOf(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	w.fake.parts["t"]["dt=a"] = &metastore.Partition{Values: []string{"a"}, Storage: w.fake.tables["t"].Storage.Clone()}
	second := cols("id", types.NewBigInt(), "name", types.NewString(), "extra", types.NewDecimal(10, 2), "dt", types.NewString())
	with := map[string]string{keyEvolution: evolveAdd}
	if _, err := w.conn.OpenSink(context.Background(), w.tableOf(second, []int{3}, with), conntest.OwnerOf(1, 2)); err == nil {
		t.Fatal("a column was widened though columns may only be added")
	}
	with[keyEvolution] = evolveWiden
	// Another job's table is not altered.
	var owned *connector.OwnedError
	if _, err := w.conn.OpenSink(context.Background(), w.tableOf(second, []int{3}, with), conntest.OwnerOf(2, 1)); !errors.As(err, &owned) {
		t.Fatalf("got %v, want the owner", err)
	}
	if got := fmt.Sprint(w.fake.tables["t"].Storage.Columns); strings.Contains(got, "extra") {
		t.Fatalf("another job altered the table: %s", got)
	}
	s, err = w.conn.OpenSink(context.Background(), w.tableOf(second, []int{3}, with), conntest.OwnerOf(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	want := "[{id bigint } {name string } {extra decimal(10,2) }]"
	for _, got := range []string{fmt.Sprint(w.fake.tables["t"].Storage.Columns), fmt.Sprint(w.fake.parts["t"]["dt=a"].Storage.Columns)} {
		if got != want {
			t.Errorf("columns are %s, want %s", got, want)
		}
	}
}
