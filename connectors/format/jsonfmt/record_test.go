package jsonfmt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

var intA = []types.Field{field("a", types.NewInt())}

const (
	lenient = "json.ignore-parse-errors=true"
	strict  = "json.ignore-parse-errors=false"
)

func TestSeveralDocumentsInOneRecord(t *testing.T) {
	f := newFixture(t, intA)
	f.want([]string{"{\"a\":1}\n{\"a\":2}\n{\"a\":3}"}, "1", "2", "3")
	if fmt.Sprint(f.b.RowIndex) != "[0 1 2]" || fmt.Sprint(f.b.OffsetDelta) != "[0 0 0]" {
		t.Errorf("row index %v, offset delta %v", f.b.RowIndex, f.b.OffsetDelta)
	}
	f.want([]string{`{"a":1} garbage`, `{"a":1}{"a":2}`, "{\"a\":1}\t {\"a\":2}\r\n", `{"a":7}`},
		"!malformed_record unexpected 'g' at byte 8",
		"!malformed_record unexpected '{' at byte 7",
		"1", "2", "7")
}

func TestArrayOfObjectsInOneRecord(t *testing.T) {
	f := newFixture(t, []types.Field{field("col1", types.NewInt()), field("col2", types.NewString())})
	f.want([]string{`[{"col1":123,"col2":"a"},{"col1":456,"col2":"b"}]`, `[]`, " [ ] ", `[{"col1":1},7]`, `[{"col1":9}]`, `[{}]`},
		"123 | 'a'", "456 | 'b'", "!empty", "!empty",
		"!malformed_record unexpected '7' at byte 12", "9 | NULL", "NULL | NULL")
	f.want([]string{`[{"col1":1},]`, `[[{"col1":1}]]`, `[{"col1":1}`, `[{"col1":1}] []`, `[null]`, `[{"col1":1} {"col1":2}]`},
		"!malformed_record unexpected ']' at byte 12", "!malformed_record unexpected '[' at byte 1",
		"!malformed_record text ends too early, at byte 11", "!malformed_record unexpected '[' at byte 13",
		"!malformed_record unexpected 'n' at byte 1", "!malformed_record unexpected '{' at byte 12")
}

func TestEmptyRecords(t *testing.T) {
	f := newFixture(t, intA)
	f.want([]string{"", " \n", "\ufeff", `{}`}, "!empty", "!empty", "!empty", "NULL")
	if n := f.d.Decode(nil, 9, f.begin()); n != 0 || f.b.Notes[0].Code != batch.CodeEmpty {
		t.Errorf("a null value gave %d rows, notes %v", n, f.b.Notes)
	}
}

func (f *fixture) begin() *format.Appender {
	f.a.Begin(f.b, &batch.Schema{Fields: f.fields})
	f.a.BeginRun(0, 0)
	return f.a
}

func TestNotAnObject(t *testing.T) {
	f := newFixture(t, intA)
	for _, r := range []string{"null", "7", `"x"`, "true", "{", "}", "nul"} {
		if got := f.decode(r); !strings.HasPrefix(got[0], "!malformed_record") {
			t.Errorf("%s gave %s", r, got)
		}
	}
}

func TestByteOrderMark(t *testing.T) {
	f := newFixture(t, []types.Field{field("a", types.NewString())})
	f.want([]string{"\xef\xbb\xbf{\"a\":1}", "{\"a\":\"\ufeffx\"}", "\ufeff\ufeff{}", "{\"a\":1}\ufeff"},
		"'1'", "'\ufeffx'", "!malformed_record unexpected '\\ufeff' at byte 3", "!malformed_record unexpected '\\ufeff' at byte 7")
}

func TestCarriageReturnsAndPrettyPrinting(t *testing.T) {
	f := newFixture(t, []types.Field{field("a", types.NewInt()), field("s", types.NewString())})
	f.want([]string{"{\r\n  \"a\": 1,\r\n  \"s\": \"x\"\r\n}\r\n", "{\"a\" : 2 , \"s\"\t:\n\"y\" }\r"}, "1 | 'x'", "2 | 'y'")
}

func TestAlmostJSONIsMalformed(t *testing.T) {
	bad := []string{`{"a":1,}`, `{"a":1/*x*/}`, `{'a':1}`, `{"a":01}`, `{"a":+1}`, `{"a":.5}`, `{"a":1`}
	for _, option := range []string{"json.on-error=dead-letter", lenient} {
		f := newFixture(t, intA, option)
		var records, want []string
		for _, r := range bad {
			records = append(records, r, `{"a":2}`)
		}
		records = append(records, bad...)
		for i, got := range f.decode(records...) {
			if i < 2*len(bad) && i%2 == 1 {
				if got != "2" {
					t.Errorf("neighbor of %s: %s", records[i-1], got)
				}
			} else if !strings.HasPrefix(got, "!malformed_record") {
				t.Errorf("%s: %s", records[i], got)
			}
		}
		_ = want
		if len(f.b.Notes) != 2*len(bad) {
			t.Errorf("%d notes", len(f.b.Notes))
		}
	}
	// The same text in a field nobody needs, and further faults.
	f := newFixture(t, intA)
	for _, v := range []string{"01", "+1", ".5", "1.", "-", "1e", "1e+", "--1", "00", "-01", "1.e3", "0x1", "NaN", "nan", "Infinity", "tru", "True",
		"nul", "falsee", `'x'`, "[1,]", "[,1]", "[1 2]", "{,}", `{"b":}`, `{"b"}`, `{"b":1,}`, `{b:1}`, `{"b":1]`, `[1}`, `"\x"`, `"\u12g4"`, `"\u12`, `"`, ``, "\x00"} {
		for _, key := range []string{"a", "z"} {
			r := `{"` + key + `":` + v + `}`
			if got := f.decode(r); !strings.HasPrefix(got[0], "!malformed_record") {
				t.Errorf("%s: %s", r, got)
			}
		}
	}
}

func TestRawControlCharactersInStrings(t *testing.T) {
	fields := []types.Field{field("a", types.NewString()), field("b", types.NewInt())}
	f := newFixture(t, fields)
	f.want([]string{"{\"a\":\"x\ty\",\"b\":2}", "{\"a\":\"x\n\x00y\",\"b\":3,\"c\":\"\x1f\"}"}, "'x\ty' | 2", "'x\n\x00y' | 3")
	e, err := NewEncoder(format.EncoderConfig{Fields: fields})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`{"a":"x\ty","b":2}`, `{"a":"x\n\u0000y","b":3}`} {
		if got, err := e.AppendRow(nil, f.b, i); err != nil || string(got) != want {
			t.Errorf("written as %s, %v", got, err)
		}
	}
}

func TestFaultyRecordsDoNotDependOnBatches(t *testing.T) {
	var records []string
	for i := range 1000 {
		if i%10 == 9 {
			records = append(records, `{"a":1,,}`)
		} else {
			records = append(records, fmt.Sprintf(`{"a":%d}`, i))
		}
	}
	f := newFixture(t, intA, lenient)
	whole := f.decode(records...)
	for _, size := range []int{1, 7, 100, 1000} {
		var got []string
		bad := 0
		for i := 0; i < len(records); i += size {
			got = append(got, f.decode(records[i:min(i+size, len(records))]...)...)
			bad += len(f.b.Notes)
		}
		if bad != 100 || strings.Join(got, "\n") != strings.Join(whole, "\n") {
			t.Errorf("batches of %d: %d bad", size, bad)
		}
	}
}

func TestDeepNesting(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{"x":`, n) + "1" + strings.Repeat("}", n) }
	f := newFixture(t, intA)
	f.want([]string{`{"x":` + deep(900) + `,"a":1}`, `{"x":` + deep(999) + `,"a":1}`, `{"x":` + objects(999) + `,"a":1}`}, "1", "1", "1")
	for _, r := range []string{`{"x":` + deep(1000) + `,"a":1}`, `{"x":` + deep(20000) + `,"a":1}`, `{"a":` + deep(20000) + `}`, objects(1001), `[` + objects(1000) + `]`, `{"x":` + strings.Repeat("[", 2000000)} {
		if got := f.decode(r, `{"a":2}`); !strings.HasPrefix(got[0], "!malformed_record nested deeper than 1000") || got[1] != "2" {
			t.Errorf("%.60s: %s", r, got)
		}
	}
	// Nesting inside selected values counts from the outside.
	f = newFixture(t, []types.Field{field("r", types.NewRow(field("v", types.NewArray(types.NewString()))))})
	if got := f.decode(`{"r":{"v":[` + deep(997) + `]}}`)[0]; got != "(['"+deep(997)+"'])" {
		t.Error(got[:80])
	}
	if got := f.decode(`{"r":{"v":[` + deep(998) + `]}}`)[0]; !strings.HasPrefix(got, "!malformed") {
		t.Error(got[:80])
	}
}

func TestInvalidUTF8(t *testing.T) {
	f := newFixture(t, []types.Field{field("a", types.NewString()), field("b", types.NewInt())})
	bad := []string{"\xff", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\x80", "\xe4\xb8", "\xf0\x9f\x98"}
	for _, s := range bad {
		for _, r := range []string{
			"{\"a\":\"x" + s + "y\",\"b\":2}",
			"{\"b\":2,\"a\":\"ok\",\"unused\":\"x" + s + "y\"}",
			"{\"b\":2,\"x" + s + "\":1}",
			"{\"a\":[{\"k\":[\"" + s + "\"]}],\"b\":2}",
			"{\"b\":2}" + s,
			"{\"b\":2,\"a\":\"" + s,
		} {
			got := f.decode(r)
			if !strings.HasPrefix(got[0], "!malformed_record") {
				t.Errorf("%q: %s", r, got)
			}
		}
	}
	good := strings.Repeat("x", 4095) + "\u201d\u00e9\U0001f600\u65e5"
	f.want([]string{`{"a":"` + good + `","b":1}`, `{"` + good + `":"` + good + `","b":1}`}, "'"+good+"' | 1", "NULL | 1")
	for n := range 80 {
		s := strings.Repeat("x", n) + "\u201d" + strings.Repeat("y", n%9)
		f.want([]string{`{"a":"` + s + `","b":1}`}, "'"+s+"' | 1")
	}
}

func TestEscapes(t *testing.T) {
	f := newFixture(t, []types.Field{field("a", types.NewString()), field("日本", types.NewInt()), field(`q"\`, types.NewInt())})
	f.want([]string{`{"a":"\"\\\/\b\f\n\r\t\u0041\u00e9\u65E5\ud83d\ude00","\u65e5\u672c":1,"q\"\\":2}`, `{"日本":3,"a":"","q\"\\":4}`, `{"\u0061":"x"}`},
		"'\"\\/\b\f\n\r\tAé日😀' | 1 | 2", "'' | 3 | 4", "'x' | NULL | NULL")
	for _, half := range []string{`\ud83d`, `\ude00`, `\ud83dx`, `\ud83d\n`, `\ud83d\u0041`, `\ude00\ud83d`} {
		got := f.decode(`{"a":"` + half + `","\ud83d":1,"日本":5}`)[0]
		if !strings.HasPrefix(got, "E(type_mismatch a: ") || !strings.HasSuffix(got, ") | 5 | NULL") {
			t.Error(got)
		}
	}
}

func TestEveryTruncationIsMalformed(t *testing.T) {
	docs := []string{
		`{"a":-12,"s":"x\u00e9\"日本","r":{"x":[1.5e3,null],"y":{"k":true}},"z":[{"q":false},"\\",0]}`,
		`[{"a":1,"s":null},{"a":2,"r":{"x":[],"y":{}}}]`,
		"\ufeff { \"a\" : 1 , \"z\" : [ ] } ",
	}
	f := newFixture(t, mixed())
	for _, doc := range docs {
		if got := f.decode(doc); strings.HasPrefix(got[0], "!") {
			t.Fatal(got)
		}
		end := len(strings.TrimRight(doc, " "))
		for n := 1; n < end; n++ {
			got := f.decode(doc[:n], `{"a":5}`)
			if bom := strings.TrimSpace(strings.TrimPrefix(doc[:n], "\ufeff")) == ""; bom {
				continue
			}
			if !strings.HasPrefix(got[0], "!malformed_record") || !strings.HasPrefix(got[1], "5 | ") {
				t.Errorf("%q: %s", doc[:n], got)
			}
		}
	}
}

// mixed is a schema with a bit of everything.
func mixed() []types.Field {
	return []types.Field{field("a", types.NewInt()), field("s", types.NewString()),
		field("r", types.NewRow(field("x", types.NewArray(types.NewDouble())), field("y", types.NewMap(types.NewString(), types.NewBoolean())))),
		field("d", types.NewDecimal(20, 3)), field("b", types.NewBoolean())}
}

func TestRollbackLeavesNothingBehind(t *testing.T) {
	f := newFixture(t, mixed())
	good := `{"a":1,"s":"k","r":{"x":[1,null,2],"y":{"k":true,"l":null}},"d":1.5,"b":true}`
	want := "1 | 'k' | ([1, NULL, 2], {'k': true, 'l': NULL}) | 1.500 | true"
	bad := []string{
		`{"a":"e","s":null,"r":{"x":["e",null],"y":{"k":7,"k":8}},"d":1.23456,"b":false,"a":3} x`,
		`[{"a":1},{"r":{"x":[1,2`, `{"r":{"y":{"k":true,"l`, `{"r":{"x":null`, `{"r":7`, "{\"s\":\"\xff\"}", `{"b":true,"d":null,"s":"a\"b"`,
	}
	for _, b := range bad {
		f.want([]string{good, b, good, `{}`}, want, f.decode(b)[0], want, "NULL | NULL | NULL | NULL | NULL")
		for c := range f.fields {
			if f.b.Cols[c].HasErrs() {
				t.Errorf("%s left errors in column %d", b, c)
			}
		}
		if got := f.count(3, format.Rounded) + f.count(0, format.Mismatch) + f.count(0, format.DuplicateKey); got != 0 {
			t.Errorf("%s left counts", b)
		}
	}
}

func TestProjection(t *testing.T) {
	fields := []types.Field{field("a", types.NewInt()), field("b", types.NewInt()), field("c", types.NewString())}
	d, err := NewDecoder(format.DecoderConfig{Fields: fields, Columns: []int{-1, 1, 0}})
	if err != nil {
		t.Fatal(err)
	}
	a, b := format.NewAppender(), new(batch.Batch)
	a.Begin(b, &batch.Schema{Fields: []types.Field{fields[2], fields[1], field("offset", types.NewBigInt())}})
	a.BeginRun(3, 100)
	for i, r := range []string{`{"a":"not a number","b":1,"c":"x"}`, `{"a":1,"b":2}{`, `{"c":"y"}`} {
		for range d.Decode([]byte(r), int64(100+i), a) {
			format.AppendInt64(&b.Cols[2], int64(100+i))
		}
	}
	a.EndRun(103, 77)
	a.Finish()
	if b.Len != 2 || show(&b.Cols[0], 0) != "'x'" || show(&b.Cols[1], 0) != "1" || show(&b.Cols[0], 1) != "'y'" || show(&b.Cols[1], 1) != "NULL" || show(&b.Cols[2], 1) != "102" {
		t.Errorf("rows %d: %s", b.Len, show(&b.Cols[0], 0))
	}
	r := b.Runs[0]
	if r.Partition != 3 || r.Rows != 2 || r.Notes != 1 || r.BaseOffset != 100 || r.EndOffset != 103 || r.LogTime != 77 || b.Offset(&r, 1) != 102 || b.Notes[0].Offset != 101 {
		t.Errorf("run %+v", r)
	}
}

func TestNoColumnIsNeeded(t *testing.T) {
	f := newFixture(t, nil)
	f.want([]string{`{"a":1}`, `[{"a":1},{}]`, `{"a":}`}, "", "", "", "!malformed_record unexpected '}' at byte 5")
}

func TestKeysInAnyOrder(t *testing.T) {
	f := newFixture(t, []types.Field{field("a", types.NewInt()), field("b", types.NewInt()), field("ab", types.NewInt())})
	f.want([]string{`{"a":1,"b":2,"ab":3}`, `{"ab":3,"b":2,"a":1}`, `{"x":0,"a":1,"xx":{},"b":2}`, `{"a":1,"ab":3}`, `{"b":2,"a":1,"ab":3}`, `{"":9,"a":1,"A":5}`},
		"1 | 2 | 3", "1 | 2 | 3", "1 | 2 | NULL", "1 | NULL | 3", "1 | 2 | 3", "1 | NULL | NULL")
	// Far more unknown keys than are learned.
	for i := range 3000 {
		f.want([]string{fmt.Sprintf(`{"u%d":1,"a":%d,"%s":2}`, i, i, strings.Repeat("k", i%100))}, fmt.Sprintf("%d | NULL | NULL", i))
	}
	if n := len(f.d.root.keys); n > maxLearnedKeys+5 {
		t.Errorf("%d keys learned", n)
	}
}
