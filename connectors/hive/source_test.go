package hive

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// rowsOf gives rows as JSON, sorted, with the code of each value's error.
func rowsOf(t testing.TB, batches []*batch.Batch) []string {
	t.Helper()
	var out []string
	for _, b := range batches {
		e, err := jsonfmt.NewEncoder(format.EncoderConfig{Fields: b.Schema.Fields})
		if err != nil {
			t.Fatal(err)
		}
		for i := range b.Len {
			row, err := e.AppendRow(nil, b, i)
			if err != nil {
				t.Fatal(err)
			}
			s := string(row)
			for c := range b.Cols {
				if x := b.Cols[c].DeepErr(i); x != nil {
					s += " " + string(x.Code)
				}
			}
			out = append(out, s)
		}
		for _, n := range b.Notes {
			out = append(out, string(n.Code)+" "+n.Message)
		}
	}
	slices.Sort(out)
	return out
}

func wantRows(t testing.TB, got []string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("read\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// textWorld is a world whose files may also be text.
func textWorld() *world {
	w := newWorld()
	w.conn = New(filesystem.New(w.mem, nil, jsonfmt.Format{}, csvfmt.Format{}))
	w.conn.dial = func(metastore.Options) catalog { return w.fake }
	return w
}

func (w *world) put(t testing.TB, name, text string) {
	t.Helper()
	if err := w.mem.MkdirAll(w.mem.Dir(name)); err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFileAtomic(w.mem, name, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// text registers a table of text files with partitions dt=... at locations.
func (w *world) text(storage metastore.Storage, params map[string]string, columns string, partitions map[string]string) {
	t := &metastore.Table{Database: "default", Name: "t", Type: "EXTERNAL_TABLE", Parameters: params, Storage: storage,
		PartitionKeys: []metastore.Column{{Name: "dt", Type: "string"}}}
	for c := range strings.SplitSeq(columns, ", ") {
		name, kind, _ := strings.Cut(c, " ")
		t.Storage.Columns = append(t.Storage.Columns, metastore.Column{Name: name, Type: kind})
	}
	t.Storage.Location = "file:/warehouse/t"
	w.fake.tables["t"], w.fake.parts["t"] = t, map[string]*metastore.Partition{}
	for dt, location := range partitions {
		p := &metastore.Partition{Values: []string{dt}, Database: "default", Table: "t", Storage: t.Storage.Clone()}
		p.Storage.Location = location
		w.fake.parts["t"]["dt="+dt] = p
	}
}

func openSource(t testing.TB, w *world, table *connector.Table) *Source {
	t.Helper()
	s, err := w.conn.OpenSource(context.Background(), table)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(*Source)
}

// dayFilter wants one value of the first partition column.
type dayFilter string

func (d dayFilter) Wanted(b *batch.Batch) bool {
	v := &b.Cols[0]
	i := v.Index(0)
	return !v.IsNull(0) && string(v.Data[v.Offsets[i]:v.Offsets[i+1]]) == string(d)
}

func (d dayFilter) String() string { return "dt = '" + string(d) + "'" }

// TestReadsWhatItWrote: only registered partitions are there; NULL comes back.
func TestReadsWhatItWrote(t *testing.T) {
	w := newWorld()
	s := open(t, w, 1)
	b := conntest.Rows(0, 3)
	v := &b.Cols[2]
	v.Data, v.Offsets, v.Valid = []byte("aba/b"), []int32{0, 0, 2, 5}, batch.Bitmap(nil).Resize(3, true)
	v.Valid.Clear(0)
	parts := writeBatch(t, s, 1, 0, b)
	announce(t, s, parts[:2]...)
	src := openSource(t, w, w.table(nil))
	got := rowsOf(t, readAll(t, src, []int{0, 2}))
	if len(got) != 2 {
		t.Errorf("%d partitions of 3 are registered, and read are %v", 2, got)
	}
	announce(t, s, parts...)
	src = openSource(t, w, w.table(nil))
	wantRows(t, rowsOf(t, readAll(t, src, []int{0, 2})), `{"id":0,"dt":null}`, `{"id":1,"dt":"ab"}`, `{"id":2,"dt":"a/b"}`)
	src = openSource(t, w, w.table(nil))
	src.Prune(dayFilter("a/b"))
	wantRows(t, rowsOf(t, readAll(t, src, []int{2, 0})), `{"dt":"a/b","id":2}`)
}

// TestTextTables: columns by position in the table's order, whatever the SQL table
// declares; Hive's delimiters; partitions anywhere.
func TestTextTables(t *testing.T) {
	w := textWorld()
	w.text(metastore.Storage{SerDe: textSerDe, InputFormat: textInput, SerDeParameters: map[string]string{"field.delim": "9"}}, nil,
		"id int, name string, xs array<int>, m map<string,int>, price decimal(5,2), late string",
		map[string]string{"a": "file:/else/where", "__HIVE_DEFAULT_PARTITION__": "file:///warehouse/t/null", "gone": "file:/missing"})
	w.put(t, "/else/where/000000_0", "1\tx\"y\t1\x022\tk\x031\t1.50\n2\t\\N\t\\N\t\\N\t-0.01\tz\tmore\n\nbad\tx\t1\t1\t1\tl\n")
	w.put(t, "/else/where/.hidden", "9\n")
	w.put(t, "/warehouse/t/null/f", "3\n")
	table := w.tableOf(cols("late", types.NewString(), "dt", types.NewString(), "Price", types.NewDecimal(6, 3), "ID", types.NewBigInt(), "xs", types.NewArray(types.NewInt())), []int{1}, map[string]string{keyPolicy: ""})
	src := openSource(t, w, table)
	wantRows(t, rowsOf(t, readAll(t, src, nil)),
		`{"late":null,"dt":"a","Price":1.500,"ID":1,"xs":[1,2]}`, `{"late":"z","dt":"a","Price":-0.010,"ID":2,"xs":null}`,
		`{"late":"l","dt":"a","Price":1.000,"ID":null,"xs":[1]} type_mismatch`, `{"late":null,"dt":null,"Price":null,"ID":3,"xs":null}`, "empty ")
	src.Prune(dayFilter("a"))
	wantRows(t, rowsOf(t, readAll(t, src, []int{0}))[1:], `{"late":"l"}`, `{"late":"z"}`, `{"late":null}`)
}

// TestEscapedText: delimiters, line ends and the text of NULL behind an escape character; an
// empty one is Hive's own.
func TestEscapedText(t *testing.T) {
	for _, escape := range []string{"\\", "92", ""} {
		w := textWorld()
		w.text(metastore.Storage{SerDe: textSerDe, InputFormat: textInput, SerDeParameters: map[string]string{"field.delim": ",", "collection.delim": "|", "escape.delim": escape}}, nil,
			"id int, name string, xs array<string>", map[string]string{"a": "file:/e"})
		w.put(t, "/e/1", `1,x\,y,a\|b|c`+"\n"+`2,\N,\\N|\N`+"\n"+`3,two\nlines,`+"\n")
		table := w.tableOf(cols("id", types.NewInt(), "name", types.NewString(), "xs", types.NewArray(types.NewString()), "dt", types.NewString()), []int{3}, map[string]string{keyPolicy: ""})
		wantRows(t, rowsOf(t, readAll(t, openSource(t, w, table), nil)), `{"id":1,"name":"x,y","xs":["a|b","c"],"dt":"a"}`,
			`{"id":2,"name":null,"xs":["\\N",null],"dt":"a"}`, `{"id":3,"name":"two\nlines","xs":[],"dt":"a"}`)
	}
}

// TestHeaderLines: lines that Hive passes over are no rows, in each file of a partition.
func TestHeaderLines(t *testing.T) {
	w := textWorld()
	w.text(metastore.Storage{SerDe: textSerDe, InputFormat: textInput, SerDeParameters: map[string]string{"field.delim": ","}},
		map[string]string{"skip.header.line.count": "2"}, "id int, name string", map[string]string{"a": "file:/h"})
	w.put(t, "/h/1", "id,name\n---,---\n1,x\n2,y\n")
	w.put(t, "/h/2", "id,name\n---,---\n3,z")
	w.put(t, "/h/3", "id,name")
	table := w.tableOf(cols("id", types.NewInt(), "name", types.NewString(), "dt", types.NewString()), []int{2}, map[string]string{keyPolicy: ""})
	wantRows(t, rowsOf(t, readAll(t, openSource(t, w, table), nil)), `{"id":1,"name":"x","dt":"a"}`, `{"id":2,"name":"y","dt":"a"}`, `{"id":3,"name":"z","dt":"a"}`)
}

func TestJSONTables(t *testing.T) {
	w := textWorld()
	w.text(metastore.Storage{SerDe: hcatSerDe, InputFormat: textInput}, nil, "userid bigint, tags array<string>", map[string]string{"a": "file:/j"})
	w.put(t, "/j/f.json", `{"userId":1,"tags":["x"],"other":{"a":[1]}}`+"\n"+`{"userId":"2"}`)
	table := w.tableOf(cols("userId", types.NewBigInt(), "tags", types.NewArray(types.NewString()), "dt", types.NewString()), []int{2}, map[string]string{keyPolicy: ""})
	wantRows(t, rowsOf(t, readAll(t, openSource(t, w, table), nil)), `{"userId":1,"tags":["x"],"dt":"a"}`, `{"userId":2,"tags":null,"dt":"a"}`)
}

// TestUnreadable: what is not read is named, with the reason.
func TestUnreadable(t *testing.T) {
	ctx := context.Background()
	good := func() metastore.Storage {
		return metastore.Storage{SerDe: textSerDe, InputFormat: textInput, SerDeParameters: map[string]string{}}
	}
	for name, x := range map[string]struct {
		storage func(*metastore.Storage)
		table   func(*metastore.Table)
		cols    []connector.Column
		says    string
	}{
		"orc":        {storage: func(s *metastore.Storage) { s.SerDe = "org.apache.hadoop.hive.ql.io.orc.OrcSerde" }, says: "stored as ORC (not_yet: no maintained ORC library"},
		"avro":       {storage: func(s *metastore.Storage) { s.SerDe = "org.apache.hadoop.hive.serde2.avro.AvroSerDe" }, says: "its SerDe is org.apache.hadoop.hive.serde2.avro.AvroSerDe (not_yet"},
		"sequence":   {storage: func(s *metastore.Storage) { s.InputFormat = "org.apache.hadoop.mapred.SequenceFileInputFormat" }, says: "SequenceFileInputFormat"},
		"escaped":    {storage: func(s *metastore.Storage) { s.SerDeParameters["escape.delim"] = "n" }, says: "escape.delim"},
		"header":     {table: func(t *metastore.Table) { t.Parameters["skip.header.line.count"] = "-1" }, says: "skip.header.line.count"},
		"footer":     {table: func(t *metastore.Table) { t.Parameters["skip.footer.line.count"] = "1" }, says: "skip.footer.line.count"},
		"view":       {table: func(t *metastore.Table) { t.Type = "VIRTUAL_VIEW" }, says: "it is a VIRTUAL_VIEW"},
		"iceberg":    {table: func(t *metastore.Table) { t.Parameters["table_type"] = "ICEBERG" }, says: "table of ICEBERG"},
		"acid":       {table: func(t *metastore.Table) { t.Parameters["transactional"] = "true" }, says: "transactional"},
		"narrow":     {cols: cols("id", types.NewSmallInt()), says: "column id is int there, which SMALLINT does not hold"},
		"no column":  {cols: cols("ident", types.NewInt()), says: "it has no column ident (it has id, name, u)"},
		"union type": {cols: cols("u", types.NewString()), says: "uniontype is not read"},
	} {
		t.Run(name, func(t *testing.T) {
			w := textWorld()
			st := good()
			if x.storage != nil {
				x.storage(&st)
			}
			w.text(st, map[string]string{}, "id int, name string, u uniontype<int,string>", nil)
			if x.table != nil {
				x.table(w.fake.tables["t"])
			}
			c := x.cols
			if c == nil {
				c = cols("id", types.NewInt())
			}
			c = append(c, cols("dt", types.NewString())...)
			_, err := w.conn.OpenSource(ctx, w.tableOf(c, []int{len(c) - 1}, map[string]string{keyPolicy: ""}))
			var m *MismatchError
			if !errors.As(err, &m) || !strings.Contains(err.Error(), x.says) || !strings.Contains(err.Error(), "cannot be read") {
				t.Errorf("got %v", err)
			}
		})
	}
	w := textWorld()
	if _, err := w.conn.OpenSource(ctx, w.table(nil)); err == nil || !strings.Contains(err.Error(), "has no table default.t") {
		t.Errorf("a table that is not there: %v", err)
	}
	w.text(good(), nil, "id int", map[string]string{"a": "file:/a"})
	w.fake.parts["t"]["dt=a"].Storage.SerDe = "org.apache.hadoop.hive.ql.io.orc.OrcSerde"
	src := openSource(t, w, w.tableOf(cols("id", types.NewInt(), "dt", types.NewString()), []int{1}, map[string]string{keyPolicy: ""}))
	if _, err := src.Partitions(ctx); err == nil || !strings.Contains(err.Error(), "partition a of table default.t cannot be read: it is stored as ORC") {
		t.Errorf("a partition of another format: %v", err)
	}
	if _, err := w.conn.OpenSource(ctx, w.tableOf(cols("id", types.NewInt()), nil, map[string]string{keyPolicy: ""})); err == nil || !strings.Contains(err.Error(), "it is partitioned by (dt), the table here by ()") {
		t.Errorf("without its partitions: %v", err)
	}
}

// TestTypesThatAreRead: each type as the metastore spells it, and what holds it.
func TestTypesThatAreRead(t *testing.T) {
	for hive, sql := range map[string]string{
		"int": "INT", "decimal": "DECIMAL(10, 0)", "decimal(38, 10)": "DECIMAL(38, 10)", "varchar(5)": "VARCHAR(5)", "char(3)": "CHAR(3)", "timestamp": "TIMESTAMP(9)",
		"array<map<string,struct<a:int,b:array<decimal(5,2)>>>>": "ARRAY<MAP<STRING, ROW<`a` INT, `b` ARRAY<DECIMAL(5, 2)>>>>", "timestamp with local time zone": "TIMESTAMP_LTZ(9)", "struct<>": "ROW<>",
	} {
		got, err := parseType(hive)
		if err != nil || got.String() != sql {
			t.Errorf("%s is %v (%v), want %s", hive, got, err, sql)
		}
	}
	for _, bad := range []string{"array<int", "decimal(39,1)", "decimal(3,4)", "uniontype<int>", "map<int>", "int int2", "struct<a>", "", "interval_day_time"} {
		if got, err := parseType(bad); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
	for _, x := range []struct {
		to    types.Type
		from  string
		holds bool
	}{
		{types.NewBigInt(), "int", true}, {types.NewInt(), "bigint", false}, {types.NewDouble(), "float", true}, {types.NewFloat(), "double", false},
		{types.NewString(), "varchar(10)", true}, {types.NewVarchar(9), "varchar(10)", false}, {types.NewVarchar(10), "char(10)", true}, {types.NewString(), "char(3)", true},
		{types.NewDecimal(12, 2), "decimal(10,2)", true}, {types.NewDecimal(12, 4), "decimal(10,2)", true}, {types.NewDecimal(11, 4), "decimal(10,2)", false},
		{types.NewTimestampLTZ(3), "timestamp", true}, {types.NewString(), "int", false}, {types.NewBinary(3), "binary", false},
		{types.NewRow(types.Field{Name: "B", Type: types.NewBigInt()}), "struct<a:string,b:int>", true}, {types.NewRow(types.Field{Name: "c", Type: types.NewInt()}), "struct<a:string>", false},
	} {
		from, err := parseType(x.from)
		if err != nil || holds(x.to, from) != x.holds {
			t.Errorf("%v holds %s: %v (%v)", x.to, x.from, !x.holds, err)
		}
	}
}
