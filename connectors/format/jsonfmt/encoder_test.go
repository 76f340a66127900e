package jsonfmt

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func encode(t *testing.T, f *fixture, row int, options map[string]string) string {
	t.Helper()
	e, err := NewEncoder(format.EncoderConfig{Fields: f.fields, Options: format.FromMap(options)})
	if err != nil {
		t.Fatal(err)
	}
	out, err := e.AppendRow([]byte("> "), f.b, row)
	if err != nil {
		t.Fatal(err)
	}
	return string(out[2:])
}

// allTypes has a column of every type with a JSON form.
func allTypes() []types.Field {
	return []types.Field{
		field("bo", types.NewBoolean()), field("ti", types.NewTinyInt()), field("sm", types.NewSmallInt()), field("in", types.NewInt()), field("bi", types.NewBigInt()),
		field("fl", types.NewFloat()), field("do", types.NewDouble()), field("de", types.NewDecimal(10, 2)), field("dw", types.NewDecimal(38, 9)),
		field("st", types.NewString()), field("by", types.NewBytes()), field("da", types.NewDate()), field("tm", types.NewTime(3)),
		field("ts", types.NewTimestamp(3)), field("lt", types.NewTimestampLTZ(9)),
		field("ar", types.NewArray(types.NewRow(field("k", types.NewInt())))), field("ma", types.NewMap(types.NewString(), types.NewDouble())),
		field("ro", types.NewRow(field("x", types.NewString()), field("y\"", types.NewArray(types.NewBoolean())))),
	}
}

const allValues = `{"bo":true,"ti":-128,"sm":32767,"in":-5,"bi":9223372036854775807,"fl":0.1,"do":1.0E7,"de":-0.05,"dw":12345678901234567890123456789.000000027,` +
	`"st":"a\"\\\n\u0001é😀/","by":"AP8=","da":"2024-02-29","tm":"01:02:03.04","ts":"2024-05-01 08:00:00.5","lt":"1969-12-31 23:59:59.000000001Z",` +
	`"ar":[{"k":1},null,{"k":null}],"ma":{"a":1.5,"b":null},"ro":{"x":"y","y\"":[true,false]}}`

func TestEncodeIsReadBack(t *testing.T) {
	f := newFixture(t, allTypes())
	f.decode(allValues, `{}`)
	if got := encode(t, f, 0, nil); got != allValues {
		t.Errorf("got\n%s\nwant\n%s", got, allValues)
	}
	nulls := encode(t, f, 1, nil)
	var m map[string]any
	if err := json.Unmarshal([]byte(nulls), &m); err != nil || len(m) != len(f.fields) {
		t.Errorf("%s: %v", nulls, err)
	}
	if got := encode(t, f, 1, map[string]string{"json.encode.ignore-null-fields": "true"}); got != "{}" {
		t.Error(got)
	}
	iso := map[string]string{"json.timestamp-format.standard": "ISO-8601"}
	two := newFixture(t, f.fields[13:15])
	two.decode(`{"ts":"2024-05-01 08:00:00","lt":"2024-05-01 08:00:00.120Z"}`)
	if got := encode(t, two, 0, iso); got != `{"ts":"2024-05-01T08:00:00","lt":"2024-05-01T08:00:00.12Z"}` {
		t.Error(got)
	}
}

func TestEncodeGitHubEventsAgreesWithReference(t *testing.T) {
	f := newFixture(t, githubFields(), "json.timestamp-format.standard=ISO-8601")
	for i, e := range githubEvents(t) {
		if i%10 != 0 {
			continue
		}
		f.decode(string(e))
		var want, got map[string]any
		if err := json.Unmarshal(e, &want); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(encode(t, f, 0, map[string]string{"json.timestamp-format.standard": "ISO-8601", "json.encode.ignore-null-fields": "true"})), &got); err != nil {
			t.Fatal(err)
		}
		pick := func(m map[string]any, keys ...string) map[string]any {
			out := map[string]any{}
			for _, k := range keys {
				if m[k] != nil {
					out[k] = m[k]
				}
			}
			return out
		}
		w := pick(want, "type", "public", "created_at")
		w["actor"] = pick(want["actor"].(map[string]any), "id", "login")
		w["repo"] = pick(want["repo"].(map[string]any), "id", "name")
		w["payload"] = pick(want["payload"].(map[string]any), "size", "distinct_size", "ref", "action")
		delete(got, "id") // a quoted number in the source
		if !reflect.DeepEqual(got, w) {
			t.Fatalf("got  %v\nwant %v", got, w)
		}
	}
}

func TestEncodeDecimals(t *testing.T) {
	f := newFixture(t, []types.Field{field("d", types.NewDecimal(10, 9)), field("n", types.NewBigInt())})
	f.decode(`{"d":0.000000027,"n":9007199254740993}`, `{"d":0.000001,"n":1}`, `{"d":-0.00000012}`, `{"d":0}`)
	for i, want := range []string{`{"d":2.7E-8,"n":9007199254740993}`, `{"d":0.000001000,"n":1}`, `{"d":-1.20E-7,"n":null}`, `{"d":0E-9,"n":null}`} {
		if got := encode(t, f, i, nil); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := encode(t, f, 0, map[string]string{"json.encode.decimal-as-plain-number": "true"}); got != `{"d":0.000000027,"n":9007199254740993}` {
		t.Error(got)
	}
	e, _ := NewEncoder(format.EncoderConfig{Fields: f.fields})
	if got, _ := e.SafeNumbers().AppendRow(nil, f.b, 0); string(got) != `{"d":"0.000000027","n":"9007199254740993"}` {
		t.Error(string(got))
	}
}

func TestEncodeNumbersThatAreNotFinite(t *testing.T) {
	f := newFixture(t, []types.Field{field("d", types.NewDouble()), field("f", types.NewFloat())})
	f.decode(`{"d":"NaN","f":"-Infinity"}`)
	if got := encode(t, f, 0, nil); got != `{"d":"NaN","f":"-Infinity"}` {
		t.Error(got)
	}
	f.decode(encode(t, f, 0, nil))
	if !math.IsNaN(f.b.Cols[0].F64[0]) || !math.IsInf(float64(f.b.Cols[1].F32[0]), -1) {
		t.Error("not read back")
	}
}

func TestEncodeConstAndDictionary(t *testing.T) {
	fields := []types.Field{field("c", types.NewRow(field("x", types.NewInt()))), field("d", types.NewString())}
	f := newFixture(t, fields)
	f.decode(`{"c":{"x":7},"d":"one"}`, `{"d":"two"}`)
	cols := f.b.Cols
	constant := cols[0]
	constant.Enc, constant.Len = batch.Const, 3
	dict := cols[1]
	b := &batch.Batch{Schema: &batch.Schema{Fields: fields}, Len: 3, Cols: []batch.Vec{constant,
		{Type: types.NewString(), Enc: batch.Dict, Len: 3, Codes: []int32{1, 0, 0}, Dict: &dict, Valid: batch.Bitmap{0b011}}}}
	e, err := NewEncoder(format.EncoderConfig{Fields: fields})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`{"c":{"x":7},"d":"two"}`, `{"c":{"x":7},"d":"one"}`, `{"c":{"x":7},"d":null}`} {
		if got, err := e.AppendRow(nil, b, i); err != nil || string(got) != want {
			t.Errorf("%s %v, want %s", got, err, want)
		}
	}
}

func TestEncodeNullMapKeys(t *testing.T) {
	fields := []types.Field{field("m", types.NewMap(types.NewString(), types.NewInt()))}
	f := newFixture(t, fields)
	f.decode(`{"m":{"a":1,"b":2,"c":3}}`)
	f.b.Cols[0].Children[0].SetNull(1)
	e, _ := NewEncoder(format.EncoderConfig{Fields: fields})
	if out, err := e.AppendRow([]byte("x"), f.b, 0); !errors.Is(err, ErrNullMapKey) || string(out) != "x" {
		t.Errorf("%s %v", out, err)
	}
	if got := encode(t, f, 0, map[string]string{"json.map-null-key.mode": "DROP"}); got != `{"m":{"a":1,"c":3}}` {
		t.Error(got)
	}
	if got := encode(t, f, 0, map[string]string{"json.map-null-key.mode": "LITERAL", "json.map-null-key.literal": "none"}); got != `{"m":{"a":1,"none":2,"c":3}}` {
		t.Error(got)
	}
	if _, err := NewEncoder(format.EncoderConfig{Fields: fields, Options: format.FromMap(map[string]string{"json.map-null-key.mode": "SKIP"})}); err == nil {
		t.Error("a bad mode was accepted")
	}
}
