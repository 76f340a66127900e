package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// rowsOf makes rows of JSON objects, by the names of the columns.
func rowsOf(t testing.TB, columns []connector.Column, objects ...string) *batch.Batch {
	t.Helper()
	table := &connector.Table{Columns: columns}
	d, err := jsonfmt.NewDecoder(format.DecoderConfig{Fields: table.Schema(nil).Fields})
	if err != nil {
		t.Fatal(err)
	}
	a, b := format.NewAppender(), new(batch.Batch)
	a.Begin(b, table.Schema(nil))
	a.BeginRun(0, 0)
	for i, o := range objects {
		if n := d.Decode([]byte(o), int64(i), a); n != 1 {
			t.Fatalf("%s is %d rows", o, n)
		}
	}
	a.EndRun(int64(len(objects)), 0)
	a.Finish()
	for c := range b.Cols {
		if b.Cols[c].HasDeepErrs() {
			t.Fatalf("column %s of %s", columns[c].Name, objects)
		}
	}
	return b
}

// found gives, of each key, the texts of the rows found.
func found(l connector.Lookup, cols ...batch.Vec) ([][]string, error) {
	keys := &connector.LookupKeys{Cols: cols, Hashes: make([]uint64, cols[0].Len)}
	at := make([]*batch.Vec, len(cols))
	for i := range cols {
		at[i] = &cols[i]
	}
	batch.HashRows(keys.Hashes, at, nil)
	var f connector.Found
	if err := l.Find(context.Background(), keys, &f); err != nil {
		return nil, err
	}
	out := make([][]string, keys.Len())
	for k := range out {
		for _, r := range f.Sel[f.First[k]:f.First[k+1]] {
			out[k] = append(out[k], text(f.Rows.Cols, int(r)))
		}
		slices.Sort(out[k])
	}
	return out, nil
}

func text(cols []batch.Vec, row int) string {
	var out []string
	for c := range cols {
		out = append(out, cols[c].Text(row))
	}
	return strings.Join(out, "|")
}

// dim is a table that is written into a fake and looked up there.
type dim struct {
	t       testing.TB
	server  *fake
	conn    *Connector
	columns []connector.Column
	table   *connector.Table
}

func newDim(t testing.TB, server *fake, columns []connector.Column, key []int, with map[string]string) *dim {
	t.Helper()
	c := New(vfs.NewMem(), "/staging")
	all := maps.Clone(with)
	if all == nil {
		all = map[string]string{}
	}
	all["url"] = server.url()
	for _, k := range key {
		columns[k].Type = columns[k].Type.NotNull()
	}
	return &dim{t: t, server: server, conn: c, columns: columns, table: tableWith(t, c, columns, key, all)}
}

// write encodes rows as the sink does and carries the commands out.
func (d *dim) write(b *batch.Batch) {
	d.t.Helper()
	l, err := newLayout(d.table)
	if err != nil {
		d.t.Fatal(err)
	}
	e := &encoder{layout: l, wrong: newWrongKeys(nil)}
	if bad := e.Check(b, nil, nil); len(bad) > 0 {
		d.t.Fatal(bad)
	}
	var body []byte
	for i := range b.Len {
		if body, _, err = e.Append(body, b, i); err != nil {
			d.t.Fatal(err)
		}
	}
	d.server.put(body)
}

func (d *dim) open(keys, columns []int) connector.Lookup {
	d.t.Helper()
	l, err := d.conn.OpenLookup(context.Background(), d.table, keys, columns)
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { l.Close() })
	return l
}

// expect looks up the keys of rows and compares.
func (d *dim) expect(l connector.Lookup, asked *batch.Batch, keys []int, want ...[]string) {
	d.t.Helper()
	var cols []batch.Vec
	for _, k := range keys {
		cols = append(cols, asked.Cols[k])
	}
	got, err := found(l, cols...)
	if err != nil || fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		d.t.Errorf("found %q (%v), want %q", got, err, want)
	}
}

// everyType are columns of each type that a field of a hash can have, and rows with
// their extremes.
func everyType() ([]connector.Column, []string) {
	columns := []connector.Column{column("id", types.NewBigInt()), column("b", types.NewBoolean()), column("i8", types.NewTinyInt()), column("i16", types.NewSmallInt()),
		column("i32", types.NewInt()), column("i64", types.NewBigInt()), column("f32", types.NewFloat()), column("f64", types.NewDouble()),
		column("dec", types.NewDecimal(9, 2)), column("big", types.NewDecimal(38, 10)), column("s", types.NewString()), column("bin", types.NewBytes()),
		column("day", types.NewDate()), column("tod", types.NewTime(3)), column("ts", types.NewTimestamp(3)), column("nano", types.NewTimestamp(9)), column("ltz", types.NewTimestampLTZ(6))}
	return columns, []string{
		`{"id":1,"b":true,"i8":-128,"i16":-32768,"i32":-2147483648,"i64":-9223372036854775808,"f32":3.4028235e38,"f64":5e-324,"dec":-9999999.99,"big":9999999999999999999999999999.9999999999,` +
			`"s":"a \"b\"\n日本","bin":"AP8KDQ==","day":"0001-01-01","tod":"23:59:59.999","ts":"1969-12-31 23:59:59.999","nano":"2024-05-01 08:00:00.123456789","ltz":"2024-05-01 08:00:00.123456Z"}`,
		`{"id":2,"b":false,"i8":127,"i16":32767,"i32":2147483647,"i64":9223372036854775807,"f32":"NaN","f64":"-Infinity","dec":0.01,"big":-0.0000000001,` +
			`"s":"","bin":"","day":"9999-12-31","tod":"00:00:00","ts":"2024-02-29 00:00:00","nano":"1970-01-01 00:00:00","ltz":"1969-12-31 23:59:59.999999Z"}`,
		`{"id":3,"s":"NULL"}`}
}
