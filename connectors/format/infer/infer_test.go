package infer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/runtime/batch"
)

func samples(values ...string) (out []Sample) {
	for i, v := range values {
		out = append(out, Sample{Offset: int64(i), Value: []byte(v)})
	}
	return out
}

func reserved(w string) bool {
	switch strings.ToUpper(w) {
	case "REF", "SIZE", "PUBLIC", "TYPE", "DISTINCT", "BEFORE", "ACTION", "USER", "TIME", "TIMESTAMP":
		return true
	}
	return false
}

func draft(t *testing.T, in []Sample) *Draft {
	t.Helper()
	d, err := New(in, Options{Table: "t", Reserved: reserved})
	if err != nil {
		t.Fatal(err)
	}
	decodeAll(t, d, in)
	return d
}

// decodeAll checks the promise that no sample has a value error.
func decodeAll(t *testing.T, d *Draft, in []Sample) {
	t.Helper()
	dec, err := jsonfmt.NewDecoder(format.DecoderConfig{Fields: d.Fields, Options: format.FromMap(map[string]string{"json.timestamp-format.standard": d.Standard})})
	if err != nil {
		t.Fatal(err)
	}
	a, b := format.NewAppender(), new(batch.Batch)
	a.Begin(b, &batch.Schema{Fields: d.Fields})
	a.BeginRun(0, 0)
	for _, s := range in {
		dec.Decode(s.Value, s.Offset, a)
	}
	a.EndRun(int64(len(in)), 0)
	a.Finish()
	for c := range b.Cols {
		for i := range b.Len {
			if e := b.Cols[c].DeepErr(i); e != nil {
				t.Fatalf("row %d: %s %s\n%s", i, e.Where, e.Message, d.DDL)
			}
		}
		if n := a.Counts(c)[format.Rounded]; n > 0 {
			t.Errorf("column %d: %d values are rounded", c, n)
		}
	}
}

func githubEvents(t *testing.T) (out []Sample) {
	t.Helper()
	packed, err := os.ReadFile("../../../examples/github-events/data/events.ndjson.zst")
	if err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	raw, err := z.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range bytes.Split(bytes.TrimSpace(raw), []byte("\n")) {
		out = append(out, Sample{Offset: int64(i), Value: line})
	}
	return out
}

func TestGitHubEvents(t *testing.T) {
	all := githubEvents(t)
	byType := map[string][]Sample{}
	for _, s := range all {
		_, rest, _ := bytes.Cut(s.Value, []byte(`"type":"`))
		name, _, _ := bytes.Cut(rest, []byte(`"`))
		byType[string(name)] = append(byType[string(name)], s)
	}
	if len(byType) != 15 {
		t.Fatalf("%d types", len(byType))
	}
	for name, in := range byType {
		d := draft(t, in)
		if d.EventTime != "created_at" || d.Standard != "ISO-8601" || d.Rows != int64(len(in)) {
			t.Errorf("%s: event time %q, %s, %d rows", name, d.EventTime, d.Standard, d.Rows)
		}
	}
	d := draft(t, all)
	for _, want := range []string{
		"CREATE TABLE t (\n", "  id STRING, ", "  `type` STRING, ", "  actor ROW< ", "    id BIGINT, ", "  `public` BOOLEAN, ",
		"    `ref` STRING,", "    `size` BIGINT,", "  created_at TIMESTAMP_LTZ(3), ", "commits ARRAY<ROW<", "      `distinct` BOOLEAN, ",
		"  WATERMARK FOR created_at AS created_at - INTERVAL '5' SECOND",
		"  'json.timestamp-format.standard' = 'ISO-8601'\n);\n",
	} {
		if !strings.Contains(d.DDL, want) {
			t.Errorf("%q is not in the statement", want)
		}
	}
	if d.DisorderMillis != 3000 {
		t.Errorf("disorder %d ms", d.DisorderMillis)
	}
	if d2 := draft(t, append(all[400:len(all):len(all)], all[:400]...)); d2.DDL != d.DDL {
		t.Error("the order of the samples matters")
	}
}

func TestStatement(t *testing.T) {
	in := samples(
		`{"id":1,"user":"a","ts":1714521600000,"tags":["x"],"pos":{"lat":1.5,"lon":null}}`,
		`{"id":2,"user":7,"ts":1714521604000,"new col":true,"pos":{"lat":2}}`,
		`{"id":3,"user":"c","ts":1714521602500,"nothing":null}`,
		`{"id":`, ``)
	d, err := New(in, Options{Table: "my topic", With: [][2]string{{"connector", "log"}, {"topic", "it's ${x}"}}, Reserved: reserved})
	if err != nil {
		t.Fatal(err)
	}
	want := `-- Drafted from 5 records with 3 rows. Comments: presence, types seen,
-- partition:offset of an example.
-- Empty records: 1.
-- Malformed records, left out: 1, the first at 0:3: text ends too early, at byte 6.
CREATE TABLE ` + "`my topic`" + ` (
  id BIGINT,                                               -- 100%, integer, 0:0
  ` + "`user`" + ` STRING,                                           -- 100%, string 2 and integer 1 at 0:1, 0:0
  ts BIGINT,                                               -- 100%, integer, 0:0
  tags ARRAY<STRING>,                                      -- 33.3%, array, 0:0
  pos ROW<                                                 -- 66.7%, object, 0:0
    lat DOUBLE,                                            -- 100%, integer 1 and number 1 at 0:0, 0:0
    lon STRING>,                                           -- only null seen
  ` + "`new col`" + ` BOOLEAN,                                       -- 33.3%, boolean, 0:1
  nothing STRING,                                          -- only null seen
  ts_time AS TO_TIMESTAMP_LTZ(ts, 3),                      -- milliseconds since 1970
  WATERMARK FOR ts_time AS ts_time - INTERVAL '5' SECOND   -- a row was up to 1.5 s behind an earlier one of its partition
) WITH (
  'connector' = 'log',
  'topic' = 'it''s $${x}',
  'format' = 'json'
);
`
	if squeeze(d.DDL) != squeeze(want) {
		t.Errorf("got\n%s\nwant\n%s", d.DDL, want)
	}
	decodeAll(t, d, in)
}

// squeeze takes alignment away.
func squeeze(s string) string {
	var out []string
	for _, l := range strings.Split(s, "\n") {
		indent := len(l) - len(strings.TrimLeft(l, " "))
		out = append(out, l[:indent]+strings.Join(strings.Fields(l), " "))
	}
	return strings.Join(out, "\n")
}

func typeOf(t *testing.T, values ...string) string {
	t.Helper()
	var in []string
	for _, v := range values {
		in = append(in, `{"v":`+v+`}`)
	}
	return draft(t, samples(in...)).Fields[0].Type.String()
}

func TestTypes(t *testing.T) {
	for _, c := range []struct {
		want   string
		values []string
	}{
		{"BIGINT", []string{"1", "-9223372036854775808", "null"}},
		{"DECIMAL(38, 0)", []string{"1", "9223372036854775808"}},
		{"STRING", []string{"123456789012345678901234567890123456789"}},
		{"DOUBLE", []string{"1", "1.5"}},
		{"STRING", []string{"1.5", "12345678901234567"}},
		{"STRING", []string{"1e400"}},
		{"BOOLEAN", []string{"true", "false"}},
		{"STRING", []string{`"x"`, "1", "{}", "[1]"}},
		{"STRING", []string{"null"}},
		{"DATE", []string{`"2024-02-29"`, "null"}},
		{"STRING", []string{`"2024-02-29"`, `"2023-02-29"`}},
		{"STRING", []string{`"2024-02-29"`, `""`}},
		{"TIME(0)", []string{`"12:00:00"`}},
		{"TIME(3)", []string{`"12:00:00.5"`}},
		{"TIMESTAMP(3)", []string{`"2024-05-01 08:00:00"`}},
		{"TIMESTAMP(3)", []string{`"2024-05-01T08:00:00.25"`}},
		{"STRING", []string{`"2024-05-01T08:00:00"`, `"2024-05-01T08:00:00Z"`}},
		{"STRING", []string{`"2024-05-01T08:00:00"`, `"2024-05-01 08:00:00"`}},
		{"TIMESTAMP_LTZ(3)", []string{`"2024-05-01T08:00:00Z"`, `"2024-05-01T08:00:00+08:00"`}},
		{"ARRAY<BIGINT>", []string{"[1,null]", "[]", "[2]"}},
		{"ARRAY<STRING>", []string{"[]"}},
		{"ARRAY<STRING>", []string{`[1,"x"]`}},
		{"ARRAY<ARRAY<DOUBLE>>", []string{"[[1.5],[2]]"}},
		{"MAP<STRING, STRING>", []string{"{}"}},
		{"ROW<`a` BIGINT, `b` ROW<`c` BOOLEAN>>", []string{`{"a":1}`, `{"b":{"c":true}}`}},
		{"STRING", []string{`"\ud83d\ude00"`}},
	} {
		if got := typeOf(t, c.values...); got != c.want {
			t.Errorf("%s: %s, want %s", c.values, got, c.want)
		}
	}
}

func TestObjectsOfVeryManyKeysAreMaps(t *testing.T) {
	var counts, mixed, wide []string
	for i := range 100 {
		counts = append(counts, fmt.Sprintf(`{"user-%d":%d,"user-%d":2}`, i, i, i+1))
		mixed = append(mixed, fmt.Sprintf(`{"user-%d":{"n":%d}}`, i, i))
	}
	for range 20 {
		var keys []string
		for k := range 100 {
			keys = append(keys, fmt.Sprintf(`"k%d":1`, k))
		}
		wide = append(wide, "{"+strings.Join(keys, ",")+"}")
	}
	if got := typeOf(t, counts...); got != "MAP<STRING, BIGINT>" {
		t.Error(got)
	}
	if got := typeOf(t, mixed...); got != "MAP<STRING, STRING>" {
		t.Error(got)
	}
	if got := typeOf(t, wide...); !strings.HasPrefix(got, "ROW<`k0` BIGINT,") {
		t.Errorf("%.80s", got)
	}
}

func TestDeepObjectsEndInStrings(t *testing.T) {
	deep := strings.Repeat(`{"x":`, 900) + "1" + strings.Repeat("}", 900)
	d := draft(t, samples(deep, deep))
	if n := strings.Count(d.Fields[0].Type.String(), "ROW"); n != maxDepth-1 {
		t.Errorf("%d levels", n)
	}
}

func TestEpochs(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"event_time", "1714521600", "TO_TIMESTAMP_LTZ(event_time, 0)"},
		{"createdAt", "1714521600123", "TO_TIMESTAMP_LTZ(createdAt, 3)"},
		{"ts_us", "1714521600123456", "TO_TIMESTAMP_LTZ(ts_us / 1000, 3)"},
		{"timestamp", "1714521600123456789", "TO_TIMESTAMP_LTZ(`timestamp` / 1000000, 3)"},
		{"id", "1714521600", ""},
		{"time", "17", ""},
		{"status", "1714521600", ""},
	} {
		d := draft(t, samples(`{"`+c.name+`":`+c.value+`}`))
		_, rest, ok := strings.Cut(d.DDL, " AS TO_")
		if !ok && c.want != "" || ok && !strings.HasPrefix("TO_"+rest, c.want) || ok && c.want == "" {
			t.Errorf("%s %s:\n%s", c.name, c.value, d.DDL)
		}
		if (c.want != "") != (d.EventTime == c.name+"_time") {
			t.Errorf("%s: event time %q", c.name, d.EventTime)
		}
	}
}

func TestDisorderIsPerPartition(t *testing.T) {
	at := func(p int32, o int64, clock string) Sample {
		return Sample{p, o, []byte(`{"t":"2024-05-01T` + clock + `Z"}`)}
	}
	d := draft(t, []Sample{at(1, 0, "10:00:00"), at(0, 2, "08:00:20"), at(0, 1, "08:01:00"), at(0, 0, "08:00:00"), at(1, 1, "10:00:00")})
	if d.DisorderMillis != 40000 || !strings.Contains(d.DDL, "t - INTERVAL '1' MINUTE") {
		t.Errorf("%d\n%s", d.DisorderMillis, d.DDL)
	}
	d = draft(t, []Sample{at(0, 0, "23:59:59"), {0, 1, []byte(`{"t":"2024-04-28T00:00:00Z"}`)}})
	if !strings.Contains(d.DDL, "t - INTERVAL '4' DAY") {
		t.Error(d.DDL)
	}
}

func TestEventTimeIsCutToMilliseconds(t *testing.T) {
	d := draft(t, samples(`{"a":"2024-05-01T08:00:00.123456Z","b":"2024-05-01T08:00:00.123456Z"}`))
	if d.Fields[0].Type.String() != "TIMESTAMP_LTZ(3)" || d.Fields[1].Type.String() != "TIMESTAMP_LTZ(6)" || d.EventTime != "a" {
		t.Error(d.DDL)
	}
}

func TestSeveralStandards(t *testing.T) {
	d := draft(t, samples(`{"a":"2024-05-01T08:00:00Z","b":"2024-05-01T08:00:00+08:00","c":"2024-05-01 08:00:00"}`))
	var got []string
	for _, f := range d.Fields {
		got = append(got, f.Type.String())
	}
	if d.Standard != "ISO-8601-WITH-OFFSET" || strings.Join(got, " ") != "TIMESTAMP_LTZ(3) TIMESTAMP_LTZ(3) STRING" {
		t.Errorf("%s %v", d.Standard, got)
	}
}

func TestRecordsOfSeveralRows(t *testing.T) {
	d := draft(t, samples("{\"a\":1}\n{\"a\":2}", `[{"a":3},{"a":4,"":1}]`, "\ufeff{\"a\":5,\"a\":6}", "[]"))
	if d.Rows != 5 || d.Empty != 1 || len(d.Fields) != 1 || !strings.Contains(d.DDL, "a key is empty") {
		t.Error(d.DDL)
	}
	if _, err := New(samples("", "x"), Options{}); !errors.Is(err, ErrNoRows) {
		t.Error(err)
	}
}

func TestTreeAgreesWithTheDecoder(t *testing.T) {
	text := `{"s":"a\"\\\/\b\f\n\r\t\u0041\u65e5\ud83d\ude00\uD83D","n":-1.5e+3,"o":{"k":[true,false,null,{}]}}`
	v := rows([]byte(" \n" + text + "\t" + text))
	if len(v) != 2 {
		t.Fatal(len(v))
	}
	if got, want := string(v[1].fields["s"].text), "a\"\\/\b\f\n\r\tA日😀\ufffd"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if string(v[0].fields["n"].text) != "-1.5e+3" || len(v[0].fields["o"].fields["k"].elems) != 4 {
		t.Error("number or array")
	}
}
