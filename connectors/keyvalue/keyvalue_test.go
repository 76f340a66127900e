package keyvalue

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/format/rawfmt"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

var formats = []format.Format{jsonfmt.Format{}, csvfmt.Format{}, rawfmt.Format{}}

func spec(keyed bool) *connector.Spec {
	s := &connector.Spec{Name: "topics", Options: Options(formats, keyed),
		Validate: func(v connector.Values) error { return Validate(v, formats, keyed) }}
	if !keyed {
		s.DefaultFormat = "json"
		for _, f := range formats {
			s.Formats = append(s.Formats, f.Spec())
		}
	}
	return s
}

// table has columns k_id BIGINT, k_region STRING, note STRING and a metadata column
// between them.
func table(t *testing.T, keyed bool, with ...string) *connector.Table {
	t.Helper()
	m := map[string]string{"connector": "topics"}
	for i := 0; i < len(with); i += 2 {
		m[with[i]] = with[i+1]
	}
	v, errs := spec(keyed).Resolve(m)
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	out := &connector.Table{Name: "t", Options: v}
	for _, f := range []types.Field{{Name: "k_id", Type: types.NewBigInt()}, {Name: "k_region", Type: types.NewString()},
		{Name: "at", Type: types.NewBigInt()}, {Name: "note", Type: types.NewString()}} {
		out.Columns = append(out.Columns, connector.Column{Field: f})
	}
	out.Columns[2].Metadata = "timestamp"
	return out
}

type rec struct{ key, value []byte }

func r(key, value string) rec { return rec{[]byte(key), []byte(value)} }

// decoded are the rows of records, with the notes behind them.
func decoded(t *testing.T, tab *connector.Table, columns []int, records ...rec) []string {
	t.Helper()
	l, err := New(tab, formats, len(tab.PrimaryKey) > 0)
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.NewDecoder(columns)
	if err != nil {
		t.Fatal(err)
	}
	a := format.NewAppender()
	var out []string
	for range 2 { // a decoder is used for batch after batch
		out = nil
		b := new(batch.Batch)
		a.Begin(b, tab.Schema(columns))
		d.Begin()
		a.BeginRun(0, 0)
		for i, x := range records {
			n := d.Decode(x.key, x.value, int64(i), a)
			for range n {
				for c, i := range columns {
					if tab.Columns[i].Metadata != "" {
						format.AppendInt64(a.Column(c), 77)
					}
				}
			}
		}
		a.EndRun(int64(len(records)), 0)
		d.Finish(a)
		a.Finish()
		for i := range b.Len {
			var cells []string
			for c := range b.Cols {
				cells = append(cells, cell(&b.Cols[c], i))
			}
			if b.Kinds != nil {
				cells[0] = b.Kinds[i].String() + " " + cells[0]
			}
			out = append(out, strings.Join(cells, "|"))
		}
		for _, n := range b.Notes {
			out = append(out, fmt.Sprintf("%d %s %s", n.Offset, n.Code, n.Message))
		}
	}
	return out
}

func cell(v *batch.Vec, i int) string {
	switch e := v.Err(i); {
	case e != nil:
		return string(e.Code)
	case v.IsNull(i):
		return "NULL"
	case v.Type.IsString():
		return string(v.Bytes(i))
	}
	return fmt.Sprint(v.Int64(i))
}

var everything = []int{0, 1, 2, 3}

func TestKeyAndValue(t *testing.T) {
	tab := table(t, false, "key.format", "json", "key.fields", "k_id;k_region", "key.fields-prefix", "k_", "value.fields-include", "EXCEPT_KEY")
	want := []string{
		"1|eu|77|a",
		"2|NULL|77|b", "2|NULL|77|c", // each row of a record has its key
		"NULL|NULL|77|d", // no key
		"type_mismatch|us|77|e",
		"5|us|77|NULL",
	}
	have := decoded(t, tab, everything, r(`{"id":1,"region":"eu"}`, `{"note":"a","k_id":9}`), r(`{"id":2}`, `[{"note":"b"},{"note":"c"}]`),
		rec{nil, []byte(`{"note":"d"}`)}, r(`{"id":"x","region":"us"}`, `{"note":"e"}`), r(`{"id":5,"region":"us"}`, `{}`))
	if !slices.Equal(have, want) {
		t.Errorf("rows\n%s\nwant\n%s", strings.Join(have, "\n"), strings.Join(want, "\n"))
	}
	// A key that cannot be read makes its record malformed; a value without rows has
	// no use for its key.
	have = decoded(t, tab, everything, r(`{"id":`, `{"note":"a"}`), r(`[{"id":1},{"id":2}]`, `{"note":"b"}`), rec{[]byte(`{"id":3}`), nil}, r(`{"id":4}`, `{`), r(`{"id":5}`, `{"note":"c"}`))
	if len(have) != 5 || have[0] != "5|NULL|77|c" || !strings.HasPrefix(have[1], "0 malformed_record the key: ") ||
		have[2] != "1 malformed_record the key: it holds 2 rows, not one" || !strings.HasPrefix(have[3], "2 empty") || !strings.HasPrefix(have[4], "3 malformed_record") {
		t.Errorf("rows\n%s", strings.Join(have, "\n"))
	}
	for _, x := range []struct {
		columns []int
		want    string
	}{{[]int{3, 1}, "a|eu"}, {[]int{3}, "a"}, {[]int{0}, "1"}, {[]int{2}, "77"}} {
		if have := decoded(t, tab, x.columns, r(`{"id":1,"region":"eu"}`, `{"note":"a"}`)); !slices.Equal(have, []string{x.want}) {
			t.Errorf("columns %v: %v, want %s", x.columns, have, x.want)
		}
	}
}

func TestOtherLayouts(t *testing.T) {
	for name, x := range map[string]struct {
		with   []string
		record rec
		want   string
	}{
		"values alone":          {nil, r(`{"k_id":9}`, `{"k_id":1,"note":"a"}`), "1|NULL|77|a"},
		"value.format":          {[]string{"value.format", "csv", "value.csv.field-delimiter", "|"}, r("", "1|eu|a"), "1|eu|77|a"},
		"ALL reads the value":   {[]string{"key.format", "json", "key.fields", "k_id"}, r(`{"k_id":9}`, `{"k_id":1,"note":"a"}`), "1|NULL|77|a"},
		"a raw key":             {[]string{"key.format", "raw", "key.fields", "k_region", "value.fields-include", "EXCEPT_KEY"}, r("", `{"k_id":1}`), "1||77|NULL"},
		"a raw number":          {[]string{"key.format", "raw", "key.fields", "k_id", "key.raw.endianness", "little-endian", "value.fields-include", "EXCEPT_KEY"}, r("\x01\x00\x00\x00\x00\x00\x00\x00", `{}`), "1|NULL|77|NULL"},
		"faulty keys as values": {[]string{"key.format", "raw", "key.fields", "k_id", "json.on-error", "null", "value.fields-include", "EXCEPT_KEY"}, r("\x01", `{}`), "NULL|NULL|77|NULL"},
	} {
		if have := decoded(t, table(t, false, x.with...), everything, x.record); !slices.Equal(have, []string{x.want}) {
			t.Errorf("%s: %v, want %s", name, have, x.want)
		}
	}
}

func TestEncoder(t *testing.T) {
	for name, x := range map[string]struct {
		keyed      bool
		primary    []int
		with       []string
		key, value string
	}{
		"no key":        {false, nil, nil, "none", `{"k_id":1,"k_region":"eu","note":"a"}`},
		"primary key":   {false, []int{1}, nil, `{"k_region":"eu"}`, `{"k_id":1,"k_region":"eu","note":"a"}`},
		"key.fields":    {false, []int{1}, []string{"key.format", "csv", "key.fields", "k_region;k_id"}, "eu,1", `{"k_id":1,"k_region":"eu","note":"a"}`},
		"EXCEPT_KEY":    {false, nil, []string{"key.format", "json", "key.fields", "k_id", "key.fields-prefix", "k_", "value.fields-include", "EXCEPT_KEY"}, `{"id":1}`, `{"k_region":"eu","note":"a"}`},
		"upsert":        {true, []int{0}, []string{"key.format", "raw", "value.format", "json", "value.fields-include", "EXCEPT_KEY"}, "\x00\x00\x00\x00\x00\x00\x00\x01", `{"k_region":"eu","note":"a"}`},
		"upsert of all": {true, []int{0, 1}, []string{"key.format", "json", "value.format", "csv"}, `{"k_id":1,"k_region":"eu"}`, "1,eu,a"},
	} {
		tab := table(t, x.keyed, x.with...)
		tab.PrimaryKey = x.primary
		l, err := New(tab, formats, x.keyed)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		e, err := l.NewEncoder()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		b := new(batch.Batch)
		a := format.NewAppender()
		a.Begin(b, tab.Schema(nil))
		a.BeginRun(0, 0)
		format.AppendInt64(a.Column(0), 1)
		format.AppendString(a.Column(1), "eu")
		format.AppendInt64(a.Column(2), 77)
		format.AppendString(a.Column(3), "a")
		a.Commit(0, 1)
		a.EndRun(1, 0)
		a.Finish()
		key, value, err := e.Append(nil, nil, b, 0)
		if !e.HasKey() {
			key = []byte("none")
		}
		if err != nil || string(key) != x.key || string(value) != x.value {
			t.Errorf("%s: key %q, value %s, %v; want %q and %s", name, key, value, err, x.key, x.value)
		}
		if n := e.Bound(b, 0, 1); n < len(key)+len(value) {
			t.Errorf("%s: bound %d of %d bytes", name, n, len(key)+len(value))
		}
	}
}

func TestWrongOptions(t *testing.T) {
	key := []string{"key.format", "json", "key.fields", "k_id"}
	for _, x := range []struct {
		keyed     bool
		with      []string
		key, want string
	}{
		{false, []string{"format", "json", "value.format", "json"}, "value.format", "keep one"},
		{false, []string{"key.fields", "k_id"}, "key.fields", "no effect"},
		{false, []string{"key.format", "json"}, "key.format", "needs \"key.fields\""},
		{false, []string{"value.fields-include", "EXCEPT_KEY"}, "value.fields-include", "no effect"},
		{false, append([]string{"key.fields-prefix", "k_"}, key...), "key.fields-prefix", "EXCEPT_KEY"},
		{false, []string{"key.format", "json", "key.fields", "k_id;k_id"}, "key.fields", "twice"},
		{false, append([]string{"key.csv.field-delimiter", ";"}, key...), "key.csv.field-delimiter", "no effect"},
		{false, append([]string{"key.json.on-error", "drop"}, key...), "key.json.on-error", "said by the value's"},
		{false, append([]string{"key.json.fail-on-missing", "true"}, key...), "key.json.fail-on-missing", "unknown option"},
		{false, append([]string{"key.json.fail-on-missing-field", "yes"}, key...), "key.json.fail-on-missing-field", "neither true nor false"},
		{false, []string{"value.json.fail-on-missing-field", "true"}, "value.json.fail-on-missing-field", "no effect"},
		{false, []string{"key.format", "avro", "key.fields", "k_id"}, "key.format", "none of json, csv, raw"},
		{true, []string{"value.format", "json"}, "key.format", "needs option"},
		{true, []string{"value.format", "json", "key.format", "json", "key.fields", "k_id"}, "key.fields", "unknown option"},
	} {
		m := map[string]string{"connector": "topics"}
		for i := 0; i < len(x.with); i += 2 {
			m[x.with[i]] = x.with[i+1]
		}
		_, errs := spec(x.keyed).Resolve(m)
		if len(errs) != 1 || errs[0].Key != x.key || !strings.Contains(errs[0].Message, x.want) {
			t.Errorf("%v: %+v, want %q at %q", x.with, errs, x.want, x.key)
		}
	}
	for _, x := range []struct {
		with []string
		want string
	}{
		{[]string{"key.format", "json", "key.fields", "id"}, `no physical column "id"`},
		{[]string{"key.format", "json", "key.fields", "at"}, `no physical column "at"`},
		{[]string{"key.format", "json", "key.fields", "note", "key.fields-prefix", "k_", "value.fields-include", "EXCEPT_KEY"}, `does not begin with "k_"`},
	} {
		if _, err := New(table(t, false, x.with...), formats, false); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v: %v, want %q", x.with, err, x.want)
		}
	}
	l, err := New(table(t, false, "key.format", "raw", "key.fields", "k_id;k_region", "value.fields-include", "EXCEPT_KEY"), formats, false)
	if err == nil {
		_, err = l.NewDecoder(everything)
	}
	if err == nil || !strings.Contains(err.Error(), "format raw holds one column, not 2") {
		t.Errorf("two columns in a raw key: %v", err)
	}
}

// Newest rows: a record without a value is a deletion, of which the key alone is known,
// wherever the key's columns are read from otherwise.
func TestUpserts(t *testing.T) {
	for include, values := range map[string][]string{
		"ALL":        {`{"k_id":1,"k_region":"eu","note":"a"}`, `{"k_id":3,"k_region":"us","note":"b"}`},
		"EXCEPT_KEY": {`{"note":"a"}`, `{"note":"b"}`},
	} {
		tab := table(t, true, "key.format", "json", "value.format", "json", "value.fields-include", include)
		tab.PrimaryKey = []int{0, 1}
		for _, i := range tab.PrimaryKey {
			tab.Columns[i].Type = tab.Columns[i].Type.NotNull()
		}
		have := decoded(t, tab, everything, r(`{"k_id":1,"k_region":"eu"}`, values[0]), rec{[]byte(`{"k_id":2,"k_region":"eu"}`), nil},
			rec{nil, []byte(values[0])}, rec{nil, nil}, rec{[]byte(`{"k_id":`), nil}, rec{[]byte(`{"k_id":"x","k_region":"eu"}`), nil}, r(`{"k_id":3,"k_region":"us"}`, values[1]))
		want := []string{"+U 1|eu|77|a", "-D 2|eu|77|NULL", "-D type_mismatch|eu|77|NULL", "+U 3|us|77|b",
			"2 key_null the record has no key", "3 key_null the record has no key", "4 malformed_record the key: "}
		same := len(have) == len(want)
		for i := range want {
			same = same && strings.HasPrefix(have[i], want[i])
		}
		if !same {
			t.Errorf("%s: rows\n%s\nwant\n%s", include, strings.Join(have, "\n"), strings.Join(want, "\n"))
		}
	}
}
