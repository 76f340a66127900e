package csvfmt

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func field(name string, t types.Type) types.Field { return types.Field{Name: name, Type: t} }

func options(pairs ...string) format.Options {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return format.FromMap(m)
}

// decode gives the rows as JSON, errors as `code message`, and notes.
func decode(t *testing.T, fields []types.Field, o format.Options, records ...string) (rows, notes []string, b *batch.Batch, a *format.Appender) {
	t.Helper()
	d, err := NewDecoder(format.DecoderConfig{Fields: fields, Options: o})
	if err != nil {
		t.Fatal(err)
	}
	a, b = format.NewAppender(), new(batch.Batch)
	a.Begin(b, &batch.Schema{Fields: fields})
	a.BeginRun(0, 0)
	for i, r := range records {
		d.Decode([]byte(r), int64(i), a)
	}
	a.EndRun(int64(len(records)), 0)
	a.Finish()
	e, err := jsonfmt.NewEncoder(format.EncoderConfig{Fields: fields})
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
				s += " " + string(x.Code) + ": " + x.Message
			}
		}
		rows = append(rows, s)
	}
	for _, n := range b.Notes {
		notes = append(notes, strings.TrimSpace(string(n.Code)+" "+n.Message))
	}
	return rows, notes, b, a
}

var three = []types.Field{field("n", types.NewInt()), field("s", types.NewString()), field("d", types.NewDecimal(10, 2))}

func TestFields(t *testing.T) {
	rows, notes, _, _ := decode(t, three, nil,
		`1,abc,1.5`, `2,"a,b ""q"" c",2`, "3,\"two\nlines\",3\r\n", "4, padded ,4\n5,x,5\n", "\ufeff6,,6", `7,"" ,7`, `8,a"b,8`, "", "\r\n", `#9,x,9`)
	want := []string{`{"n":1,"s":"abc","d":1.50}`, `{"n":2,"s":"a,b \"q\" c","d":2.00}`, `{"n":3,"s":"two\nlines","d":3.00}`,
		`{"n":4,"s":" padded ","d":4.00}`, `{"n":5,"s":"x","d":5.00}`, `{"n":6,"s":"","d":6.00}`, `{"n":7,"s":"","d":7.00}`, `{"n":8,"s":"a\"b","d":8.00}`,
		`{"n":null,"s":"x","d":9.00} type_mismatch: "#9" is not INT`}
	if !reflect.DeepEqual(rows, want) {
		t.Errorf("got\n%s", strings.Join(rows, "\n"))
	}
	if !reflect.DeepEqual(notes, []string{"empty", "empty"}) {
		t.Error(notes)
	}
}

func TestMalformedLines(t *testing.T) {
	bad := []string{`1,"x,1`, `1,"x"y,1`, `1,x`, `1,x,1,2`, "1,\xff,1", "1,x,1\n2,y"}
	rows, notes, _, _ := decode(t, three, nil, bad...)
	want := []string{"malformed_record the quote is not closed, at byte 2", "malformed_record text behind a closing quote, at byte 5",
		"malformed_record the line has 2 fields, the table 3 columns, at byte 0", "malformed_record the line has 4 fields, the table 3 columns, at byte 0",
		"malformed_record invalid UTF-8, at byte 2", "malformed_record the line has 2 fields, the table 3 columns, at byte 6"}
	if len(rows) != 0 || !reflect.DeepEqual(notes, want) {
		t.Errorf("rows %v\nnotes %s", rows, strings.Join(notes, "\n"))
	}
	rows, notes, _, a := decode(t, three, options("csv.ignore-parse-errors", "true"), `x,y`, `1,x,1,2`, `1,"x`)
	if !reflect.DeepEqual(rows, []string{`{"n":null,"s":"y","d":null}`, `{"n":1,"s":"x","d":1.00}`}) || len(notes) != 1 {
		t.Errorf("rows %v notes %v", rows, notes)
	}
	if a.Counts(0)[format.Nulled] != 1 || a.Counts(2)[format.Missing] != 1 {
		t.Error("not counted")
	}
}

func TestNullLiteral(t *testing.T) {
	rows, _, _, _ := decode(t, three, options("csv.null-literal", `\N`), `\N,\N,\N`, `1,,1`)
	if !reflect.DeepEqual(rows, []string{`{"n":null,"s":null,"d":null}`, `{"n":1,"s":"","d":1.00}`}) {
		t.Error(rows)
	}
	rows, _, _, _ = decode(t, three, options("csv.null-literal", ""), `,,`)
	if rows[0] != `{"n":null,"s":null,"d":null}` {
		t.Error(rows)
	}
	rows, _, _, _ = decode(t, three, nil, `,,`)
	if rows[0] != `{"n":null,"s":"","d":null} type_mismatch: "" is not INT type_mismatch: "" is not DECIMAL(10, 2)` {
		t.Error(rows)
	}
}

func TestDelimitersQuotesEscapesComments(t *testing.T) {
	rows, notes, _, _ := decode(t, three, options("csv.field-delimiter", `\t`, "csv.quote-character", "'", "csv.escape-character", `\`, "csv.allow-comments", "true"),
		"1\t'it\\'s'\t2", "# a\tcomment", "2\ta\\tb\\\\\t3", "3\t'x''y'\t4")
	if !reflect.DeepEqual(rows, []string{`{"n":1,"s":"it's","d":2.00}`, `{"n":2,"s":"a\tb\\","d":3.00}`, `{"n":3,"s":"x'y","d":4.00}`}) || len(notes) != 1 {
		t.Errorf("%s %v", rows, notes)
	}
	rows, _, _, _ = decode(t, three, options("csv.disable-quote-character", "true", "csv.field-delimiter", `\u0001`), "1\x01\"x\x012")
	if !reflect.DeepEqual(rows, []string{`{"n":1,"s":"\"x","d":2.00}`}) {
		t.Error(rows)
	}
}

func TestTypes(t *testing.T) {
	fields := []types.Field{field("b", types.NewBoolean()), field("t", types.NewTinyInt()), field("f", types.NewDouble()), field("d", types.NewDate()), field("ts", types.NewTimestamp(3)),
		field("l", types.NewTimestampLTZ(3)), field("x", types.NewBytes()), field("a", types.NewArray(types.NewInt())), field("w", types.NewDecimal(38, 3))}
	rows, _, _, a := decode(t, fields, nil, `true, 12 ,1e2,2024-02-29,2024-05-01 08:00:00.1234,2024-05-01 08:00:00Z,aGk=,1;2;3,1.0005`,
		`yes,128,1e400,2023-02-29,2024-05-01T08:00:00,2024-05-01 08:00:00,?,1;x,1`)
	if rows[0] != `{"b":true,"t":12,"f":100.0,"d":"2024-02-29","ts":"2024-05-01 08:00:00.123","l":"2024-05-01 08:00:00Z","x":"aGk=","a":[1,2,3],"w":1.001}` {
		t.Error(rows[0])
	}
	if strings.Count(rows[1], "type_mismatch") != 8 || !strings.Contains(rows[1], `"a":[1,null]`) {
		t.Error(rows[1])
	}
	if a.Counts(8)[format.Rounded] != 1 {
		t.Error("rounding is not counted")
	}
	if _, err := NewDecoder(format.DecoderConfig{Fields: []types.Field{field("m", types.NewMap(types.NewString(), types.NewInt()))}}); err == nil {
		t.Error("a map was accepted")
	}
}

func TestWrittenLinesAreReadBack(t *testing.T) {
	const seed = 5
	r := rand.New(rand.NewPCG(seed, 1))
	fields := []types.Field{field("a", types.NewString()), field("b", types.NewString())}
	for _, o := range []format.Options{options("csv.null-literal", "NULL"), options("csv.null-literal", "NULL", "csv.escape-character", `\`),
		options("csv.null-literal", "NULL", "csv.disable-quote-character", "true", "csv.escape-character", `\`)} {
		e, err := NewEncoder(format.EncoderConfig{Fields: fields, Options: o})
		if err != nil {
			t.Fatal(err)
		}
		split := (Format{}).Split(o)
		for range 3000 {
			b := &batch.Batch{Schema: &batch.Schema{Fields: fields}, Cols: make([]batch.Vec, 2), Len: 1}
			want := make([]string, 2)
			for i := range fields {
				v := &b.Cols[i]
				v.Reset(fields[i].Type, 0)
				var s strings.Builder
				for range r.IntN(6) {
					s.WriteString([]string{"a", ",", `"`, "\n", "\r", `\`, "#", " ", "é", "n"}[r.IntN(10)])
				}
				want[i] = s.String()
				format.AppendString(v, want[i])
			}
			line, err := e.AppendRow(nil, b, 0)
			if err != nil {
				t.Fatal(err)
			}
			file := append(append([]byte(nil), line...), "\nnext,line\n"...)
			_, record := split(file, true)
			_, notes, got, _ := decode(t, fields, o, string(record))
			if len(notes) > 0 || got.Len != 1 || string(got.Cols[0].Bytes(0)) != want[0] || string(got.Cols[1].Bytes(0)) != want[1] {
				t.Fatalf("seed %d: %q was written as %q, read back with notes %v", seed, want, line, notes)
			}
		}
	}
}

func TestWhatCannotBeWrittenIsAnError(t *testing.T) {
	fields := []types.Field{field("s", types.NewString()), field("a", types.NewArray(types.NewString()))}
	e, err := NewEncoder(format.EncoderConfig{Fields: fields, Options: options("csv.disable-quote-character", "true")})
	if err != nil {
		t.Fatal(err)
	}
	_, _, b, _ := decode(t, fields, nil, `"x,y",a`, "plain,b")
	var u *UnquotableError
	if out, err := e.AppendRow([]byte("k"), b, 0); !errors.As(err, &u) || string(out) != "k" {
		t.Errorf("%s %v", out, err)
	}
	if out, err := e.AppendRow(nil, b, 1); err != nil || string(out) != "plain,b" {
		t.Errorf("%s %v", out, err)
	}
	v := &b.Cols[1]
	v.Reset(fields[1].Type, 0)
	format.AppendString(v.Children[0], "p;q")
	format.CloseList(v)
	if _, err := e.AppendRow(nil, b, 0); !errors.As(err, &u) {
		t.Error(err)
	}
}

func TestOptions(t *testing.T) {
	for _, bad := range [][]string{{"csv.field-delimiter", ",,"}, {"csv.field-delimiter", `"`}, {"csv.quote-character", "'", "csv.disable-quote-character", "true"},
		{"csv.allow-comments", "yes"}, {"csv.escape-character", `\n`}, {"csv.array-element-delimiter", ""}, {"csv.on-error", "skip"}} {
		if _, err := NewDecoder(format.DecoderConfig{Fields: three, Options: options(bad...)}); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

func TestSplitNeedsMore(t *testing.T) {
	split := (Format{}).Split(nil)
	if n, _ := split([]byte("1,\"a\nb"), false); n != 0 {
		t.Error(n)
	}
	if n, rec := split([]byte("1,\"a\nb\",2\r\n3"), false); n != 11 || string(rec) != "1,\"a\nb\",2" {
		t.Error(n, string(rec))
	}
	if n, rec := split([]byte("1,a\"b\n"), false); n != 6 || string(rec) != "1,a\"b" {
		t.Error(n, string(rec))
	}
	if n, rec := split([]byte("tail\r"), true); n != 5 || string(rec) != "tail" {
		t.Error(n, string(rec))
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("1,\"a\"\"\n\",2\n#x\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		rows, notes, _, _ := decode(t, three, options("csv.escape-character", `\`), string(b))
		if (len(rows) == 0) != (len(notes) == 1) {
			t.Fatalf("%d rows, notes %v", len(rows), notes)
		}
	})
}

// TestFieldCount: lines of another number of fields, as text tables of Hive have
// them after a column was added or dropped.
func TestFieldCount(t *testing.T) {
	fields := []types.Field{field("a", types.NewInt()), field("b", types.NewString()), field("c", types.NewInt())}
	rows, notes, _, _ := decode(t, fields, options(keyFieldCount, "true", keyDelimiter, `\u0001`, keyDisableQuote, "true", keyNull, `\N`),
		"1\x01x\x013", "2", "3\x01\"y\x014\x015\x016", "\\N\x01\\N")
	want := `{"a":1,"b":"x","c":3} {"a":2,"b":null,"c":null} {"a":3,"b":"\"y","c":4} {"a":null,"b":null,"c":null}`
	if got := strings.Join(rows, " "); got != want || len(notes) != 0 {
		t.Errorf("got %s, notes %v, want %s", got, notes, want)
	}
	if _, notes, _, _ := decode(t, fields, nil, "1,x", "1,x,3,4"); len(notes) != 2 {
		t.Errorf("without the option: %v", notes)
	}
}
