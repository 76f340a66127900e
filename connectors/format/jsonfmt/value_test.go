package jsonfmt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/types"
)

func TestArraysKeepPositions(t *testing.T) {
	v := []types.Field{field("v", types.NewArray(types.NewInt()))}
	records := []string{`{"v":[1,null,"3",4.7,"x"]}`, `{"v":[1,null,"3",4.7,"x",[5]]}`, `{"v":[]}`, `{"v":null}`, `{"v":{"a":1}}`}
	newFixture(t, v, lenient).want(records,
		"[1, NULL, 3, NULL, NULL]", "[1, NULL, 3, NULL, NULL, NULL]", "[]", "NULL", "NULL")
	newFixture(t, v).want(records[:2],
		`[1, NULL, 3, E(type_mismatch v[]: 4.7 is not INT), E(type_mismatch v[]: "x" is not INT)]`,
		`[1, NULL, 3, E(type_mismatch v[]: 4.7 is not INT), E(type_mismatch v[]: "x" is not INT), E(type_mismatch v[]: [5] is not INT)]`)
}

func TestErrorsOfNestedValuesAreFound(t *testing.T) {
	f := newFixture(t, []types.Field{field("r", types.NewRow(field("v", types.NewArray(types.NewMap(types.NewString(), types.NewInt()))), field("w", types.NewInt())))})
	f.decode(`{"r":{"v":[{"k":1},{"k":2,"l":"x"}],"w":1}}`, `{"r":{"v":[],"w":"y"}}`, `{"r":{"v":[null],"w":2}}`, `{"r":7}`, `{}`)
	for i, want := range []string{`r.v[][]`, `r.w`, "", "r", ""} {
		got := ""
		if e := f.b.Cols[0].DeepErr(i); e != nil {
			got = e.Where
		}
		if got != want {
			t.Errorf("row %d: error at %q, want %q", i, got, want)
		}
	}
}

func TestJSONInsideAString(t *testing.T) {
	r := []string{`{"payload":"{\"id\":1,\"q\":\"a\\\"b\",\"tags\":[\"x\"]}"}`}
	newFixture(t, []types.Field{field("payload", types.NewString())}).want(r, `'{"id":1,"q":"a\"b","tags":["x"]}'`)
	row := []types.Field{field("payload", types.NewRow(field("id", types.NewInt())))}
	newFixture(t, row, lenient).want(r, "NULL")
	if got := newFixture(t, row).decode(r...)[0]; !strings.HasPrefix(got, "E(type_mismatch payload: ") {
		t.Error(got)
	}
}

func TestIntegersAreExact(t *testing.T) {
	f := newFixture(t, []types.Field{field("id", types.NewBigInt()), field("s", types.NewString())})
	f.want([]string{`{"id":9007199254740993,"s":12345678901234567890}`, `{"id":"9223372036854775807"}`,
		`{"u":123456789012345678901234567890,"id":-9223372036854775808}`, `{"id":9223372036854775808}`, `{"id":-9223372036854775809}`,
		`{"id":0}`, `{"id":-0}`, `{"id":"-9223372036854775808"}`, `{"id":999999999999999999}`, `{"id":1000000000000000000}`},
		"9007199254740993 | '12345678901234567890'", "9223372036854775807 | NULL", "-9223372036854775808 | NULL",
		"E(type_mismatch id: 9223372036854775808 is out of range for BIGINT) | NULL",
		"E(type_mismatch id: -9223372036854775809 is out of range for BIGINT) | NULL",
		"0 | NULL", "0 | NULL", "-9223372036854775808 | NULL", "999999999999999999 | NULL", "1000000000000000000 | NULL")
}

func TestIntegerWidths(t *testing.T) {
	f := newFixture(t, []types.Field{field("t", types.NewTinyInt()), field("s", types.NewSmallInt()), field("i", types.NewInt())})
	f.want([]string{`{"t":127,"s":32767,"i":2147483647}`, `{"t":-128,"s":-32768,"i":-2147483648}`, `{"t":128,"s":-32769,"i":2147483648}`, `{"t":"128","s":"1","i":1e3}`},
		"127 | 32767 | 2147483647", "-128 | -32768 | -2147483648",
		"E(type_mismatch t: 128 is out of range for TINYINT) | E(type_mismatch s: -32769 is out of range for SMALLINT) | E(type_mismatch i: 2147483648 is out of range for INT)",
		`E(type_mismatch t: "128" is not TINYINT) | 1 | 1000`)
}

func TestNumbersAsStringsAndStringsAsNumbers(t *testing.T) {
	f := newFixture(t, []types.Field{field("n", types.NewBigInt()), field("d", types.NewDouble()), field("m", types.NewDecimal(10, 2)), field("s", types.NewString())})
	f.want([]string{`{"n":"12","d":"1.5","m":"12 ","s":1.10}`, `{"n":" -7 ","d":2,"m":"+1.5","s":1e2}`, `{"s":true}`, `{"s":-0.0}`, `{"s": [1, {"a" : null}] }`, `{"s":false,"n":"+5"}`},
		"12 | 1.5 | 12.00 | '1.10'", "-7 | 2 | 1.50 | '1e2'", "NULL | NULL | NULL | 'true'", "NULL | NULL | NULL | '-0.0'", `NULL | NULL | NULL | '[1, {"a" : null}]'`, "5 | NULL | NULL | 'false'")
	for _, bad := range []string{`"1,5"`, `"1_000"`, `""`, `"0x10"`, `"one"`, `"1 2"`, `true`, `[1]`, `{"a":1}`, `"--1"`, `"1e"`, `"\u0031\ud800"`} {
		got := f.decode(`{"n":` + bad + `,"d":` + bad + `,"m":` + bad + `}`)[0]
		if strings.Count(got, "E(type_mismatch") != 3 {
			t.Errorf("%s: %s", bad, got)
		}
	}
}

func TestDiffersFromFlinkFractionIntoInteger(t *testing.T) {
	f := newFixture(t, intA)
	f.want([]string{`{"a":3.7}`, `{"a":12.0}`, `{"a":1.5e1}`, `{"a":1e-1}`, `{"a":"3.7"}`, `{"a":1e400}`},
		"E(type_mismatch a: 3.7 is not INT)", "12", "15", "E(type_mismatch a: 1e-1 is not INT)", `E(type_mismatch a: "3.7" is not INT)`, "E(type_mismatch a: 1e400 is not INT)")
	newFixture(t, intA, lenient).want([]string{`{"a":3.7}`}, "NULL")
}

func TestDiffersFromFlinkBoolean(t *testing.T) {
	f := newFixture(t, []types.Field{field("b", types.NewBoolean())})
	f.want([]string{`{"b":true}`, `{"b":false}`, `{"b":"TRUE"}`, `{"b":" false "}`, `{"b":"yes"}`, `{"b":1}`, `{"b":""}`, `{"b":null}`},
		"true", "false", "true", "false", `E(type_mismatch b: "yes" is not BOOLEAN)`, "E(type_mismatch b: 1 is not BOOLEAN)", `E(type_mismatch b: "" is not BOOLEAN)`, "NULL")
}

func TestDecimalRoundingAndOverflow(t *testing.T) {
	m := []types.Field{field("m", types.NewDecimal(10, 2))}
	in := []string{"1.005", "-0.005", "99999999.994", "99999999.995", "123456789.995", "1e-3", "1.500", "0e99999999999", "1e9999999999", "-1e-9999999999", "12345678.90", "4.995e0", "0.0049999"}
	var records []string
	for _, x := range in {
		records = append(records, `{"m":`+x+`}`)
	}
	f := newFixture(t, m)
	f.want(records, "1.01", "-0.01", "99999999.99", "E(type_mismatch m: 99999999.995 is not DECIMAL(10, 2))",
		"E(type_mismatch m: 123456789.995 is not DECIMAL(10, 2))", "0.00", "1.50", "0.00",
		"E(type_mismatch m: 1e9999999999 is not DECIMAL(10, 2))", "0.00", "12345678.90", "5.00", "0.00")
	if f.count(0, format.Rounded) != 7 || f.count(0, format.Mismatch) != 3 {
		t.Errorf("rounded %d, type mismatch %d", f.count(0, format.Rounded), f.count(0, format.Mismatch))
	}
	f = newFixture(t, m, lenient)
	f.want(records[3:5], "NULL", "NULL")
	if f.count(0, format.Nulled) != 2 {
		t.Error("values made NULL are not counted")
	}
	newFixture(t, m, "json.decimal-scale=error").want([]string{`{"m":1.005}`, `{"m":1.500}`},
		"E(type_mismatch m: 1.005 has more digits behind the point than DECIMAL(10, 2))", "1.50")
	wide := newFixture(t, []types.Field{field("m", types.NewDecimal(38, 0)), field("n", types.NewDecimal(38, 38))})
	nines := strings.Repeat("9", 38)
	wide.want([]string{`{"m":` + nines + `,"n":0.` + nines + `}`, `{"m":-` + nines + `,"n":-0.` + nines + `}`},
		nines+" | 0."+nines, "-"+nines+" | -0."+nines)
	if got := wide.decode(`{"m":1` + nines + `,"n":1}`)[0]; strings.Count(got, "E(") != 2 {
		t.Error(got)
	}
}

func TestDoubles(t *testing.T) {
	f := newFixture(t, []types.Field{field("d", types.NewDouble())})
	f.want([]string{`{"d":1e400}`, `{"d":NaN}`, `{"d":"NaN"}`, `{"d":"Infinity"}`, `{"d":"-inf"}`, `{"d":"-Infinity"}`, `{"d":"1e400"}`, `{"d":0.1}`, `{"d":-1.7976931348623157e308}`, `{"d":123456789012345678}`, `{"d":5e-324}`, `{"d":1e-400}`, `{"d":"0x1p3"}`},
		"E(type_mismatch d: 1e400 is not DOUBLE)", "!malformed_record unexpected 'N' at byte 5", "NaN", "+Inf",
		`E(type_mismatch d: "-inf" is not DOUBLE)`, "-Inf", `E(type_mismatch d: "1e400" is not DOUBLE)`, "0.1", "-1.7976931348623157e+308", "1.2345678901234568e+17", "5e-324", "0", `E(type_mismatch d: "0x1p3" is not DOUBLE)`)
	newFixture(t, []types.Field{field("f", types.NewFloat())}).want([]string{`{"f":0.1}`, `{"f":1e39}`, `{"f":16777217}`}, "0.1", "E(type_mismatch f: 1e39 is not FLOAT)", "1.6777216e+07")
}

func TestTimestampForms(t *testing.T) {
	fields := []types.Field{field("t", types.NewTimestamp(3)), field("l", types.NewTimestampLTZ(3))}
	values := []string{"2024-05-01 08:00:00", "2024-05-01T08:00:00", "2024-05-01T08:00:00Z", "2024-05-01 08:00:00Z",
		"2024-05-01T08:00:00+08:00", "2024-05-01T08:00Z", "2024-05-01 8:00:00", "2024-05-01 08:00", "2024-05-01T08:00"}
	const (
		t8  = "2024-05-01 08:00:00"
		l8  = "2024-05-01T08:00:00Z"
		l0  = "2024-05-01T00:00:00Z"
		bad = "bad"
	)
	for standard, want := range map[string][][2]string{
		"SQL":                  {{t8, bad}, {bad, bad}, {bad, bad}, {bad, l8}, {bad, bad}, {bad, bad}, {bad, bad}, {bad, bad}, {bad, bad}},
		"ISO-8601":             {{bad, bad}, {t8, bad}, {bad, l8}, {bad, bad}, {bad, bad}, {bad, l8}, {bad, bad}, {bad, bad}, {t8, bad}},
		"ISO-8601-WITH-OFFSET": {{bad, bad}, {t8, bad}, {bad, l8}, {bad, bad}, {bad, l0}, {bad, l8}, {bad, bad}, {bad, bad}, {t8, bad}},
	} {
		f := newFixture(t, fields, "json.timestamp-format.standard="+standard)
		for i, v := range values {
			got := f.decode(fmt.Sprintf(`{"t":%q,"l":%q}`, v, v))[0]
			for _, c := range []string{"t", "l"} {
				typ := map[string]string{"t": "TIMESTAMP(3)", "l": "TIMESTAMP_LTZ(3)"}[c]
				got = strings.ReplaceAll(got, fmt.Sprintf("E(type_mismatch %s: %q is not %s)", c, v, typ), bad)
			}
			if got != want[i][0]+" | "+want[i][1] {
				t.Errorf("%s %s: %s, want %s", standard, v, got, want[i])
			}
		}
	}
	f := newFixture(t, fields, "json.timestamp-format.standard=ISO-8601-WITH-OFFSET")
	f.want([]string{`{"l":"2024-05-01T00:30:00.5-03:30"}`, `{"l":"1969-12-31T23:59:59.999Z"}`}, "NULL | 2024-05-01T04:00:00.5Z", "NULL | 1969-12-31T23:59:59.999Z")
	for _, v := range []string{`"2024-05-01T08:00:00+8"`, `"2024-05-01T08:00:00+08"`, `"2024-05-01T08:00:00+0800"`, `"2024-05-01T08:00:00+19:00"`, `"2024-05-01T08:00:00z"`, "1714521600", `"2024-05-01T08:00:00.Z5"`} {
		if got := f.decode(`{"l":` + v + `}`)[0]; !strings.Contains(got, "E(type_mismatch l") {
			t.Errorf("%s: %s", v, got)
		}
	}
}

func TestFractionsAreCut(t *testing.T) {
	f := newFixture(t, []types.Field{field("t3", types.NewTimestamp(3)), field("t0", types.NewTimestamp(0)), field("t6", types.NewTimestamp(6)), field("t9", types.NewTimestamp(9)), field("tm", types.NewTime(3)), field("tm0", types.NewTime(0))})
	v := "2024-05-01 23:59:59.999999999"
	f.want([]string{fmt.Sprintf(`{"t3":"2024-05-01 23:59:59.9999","t0":%q,"t6":%q,"t9":%q,"tm":"12:34:56.7899","tm0":"12:34:56.789"}`, v, v, v),
		`{"t3":"1969-12-31 23:59:59.9999999","t0":"1969-12-31 23:59:59.9","t6":"1969-12-31 23:59:59.9999995"}`},
		"2024-05-01 23:59:59.999 | 2024-05-01 23:59:59 | 2024-05-01 23:59:59.999999 | 2024-05-01 23:59:59.999999999 | 12:34:56.789 | 12:34:56",
		"1969-12-31 23:59:59.999 | 1969-12-31 23:59:59 | 1969-12-31 23:59:59.999999 | NULL | NULL | NULL")
	if got := f.decode(`{"t3":"2024-05-01 23:59:59.0000000001"}`)[0]; !strings.HasPrefix(got, "E(") {
		t.Error("ten fraction digits are not of the form:", got)
	}
}

func TestDiffersFromFlinkImpossibleDatesAndTimes(t *testing.T) {
	f := newFixture(t, []types.Field{field("d", types.NewDate()), field("t", types.NewTimestamp(3)), field("c", types.NewTime(0))})
	for _, v := range []string{"2023-02-29", "2023-04-31", "2023-13-01", "2023-00-10", "2023-01-00", "1900-02-29", "2023-1-1", "2023/01/01", "20230101", "2023-01-01 ", "", "abcdefghij"} {
		got := f.decode(fmt.Sprintf(`{"d":%q,"t":%q}`, v, v+" 00:00:00"))[0]
		if strings.Count(got, "E(type_mismatch") != 2 {
			t.Errorf("%s: %s", v, got)
		}
	}
	for _, v := range []string{"24:00:01", "24:00:00", "23:60:00", "23:59:60", "1:00:00", "12:00", "12:00:00Z", "12-00-00"} {
		got := f.decode(fmt.Sprintf(`{"c":%q,"t":%q}`, v, "2023-01-01 "+v))[0]
		if strings.Count(got, "E(type_mismatch") != 2 {
			t.Errorf("%s: %s", v, got)
		}
	}
	f.want([]string{`{"d":"2024-02-29"}`, `{"d":"0001-01-01"}`, `{"d":"9999-12-31"}`, `{"d":"2000-02-29","c":"23:59:59","t":"1600-02-29 00:00:00"}`},
		"2024-02-29 | NULL | NULL", "0001-01-01 | NULL | NULL", "9999-12-31 | NULL | NULL", "2000-02-29 | 1600-02-29 00:00:00 | 23:59:59")
	n := newFixture(t, []types.Field{field("n", types.NewTimestamp(9))})
	n.want([]string{`{"n":"1677-09-22 00:00:00"}`, `{"n":"2262-04-11 23:47:15"}`, `{"n":"2263-01-01 00:00:00"}`, `{"n":"1600-01-01 00:00:00"}`},
		"1677-09-22 00:00:00", "2262-04-11 23:47:15", `E(type_mismatch n: "2263-01-01 00:00:00" is out of range for TIMESTAMP(9))`, `E(type_mismatch n: "1600-01-01 00:00:00" is out of range for TIMESTAMP(9))`)
}

func TestBytesAreBase64(t *testing.T) {
	f := newFixture(t, []types.Field{field("x", types.NewBytes())})
	f.want([]string{`{"x":"aGk="}`, `{"x":""}`, `{"x":"aGk"}`, `{"x":"a-_="}`, `{"x":7}`, `{"x":"\u0061Gk\u003d"}`},
		"x6869", "x", `E(type_mismatch x: "aGk" is not BYTES)`, `E(type_mismatch x: "a-_=" is not BYTES)`, "E(type_mismatch x: 7 is not BYTES)", "x6869")
	newFixture(t, []types.Field{field("x", types.NewBinary(1))}).want([]string{`{"x":"aGk="}`, `{"x":"aA=="}`}, `E(type_mismatch x: "aGk=" is too long for BINARY(1))`, "x68")
}

func TestLengthsAreCodePoints(t *testing.T) {
	f := newFixture(t, []types.Field{field("s", types.NewVarchar(3)), field("c", types.NewChar(2))})
	f.want([]string{`{"s":"日本語","c":"x"}`, `{"s":"abcd","c":"日本語"}`, `{"s":1234,"c":12}`},
		"'日本語' | 'x'", `E(type_mismatch s: "abcd" is too long for VARCHAR(3)) | E(type_mismatch c: "日本語" is too long for CHAR(2))`, "E(type_mismatch s: 1234 is too long for VARCHAR(3)) | '12'")
}

func TestDiffersFromFlinkDuplicateKeys(t *testing.T) {
	f := newFixture(t, []types.Field{field("a", types.NewString()), field("b", types.NewInt()), field("r", types.NewRow(field("x", types.NewInt()), field("y", types.NewInt())))})
	f.want([]string{`{"a":1,"a":2,"b":3}`, `{"a":"x","b":"e","a":null,"b":4,"a":"y"}`, `{"r":{"x":1,"y":2},"r":{"x":3},"b":1}`, `{"r":{"x":1,"x":2}}`, `{"r":{"x":1},"r":null}`, `{"z":1,"z":2}`},
		"'2' | 3 | NULL", "'y' | 4 | NULL", "NULL | 1 | (3, NULL)", "NULL | NULL | (2, NULL)", "NULL | NULL | NULL", "NULL | NULL | NULL")
	if a, b, r := f.count(0, format.DuplicateKey), f.count(1, format.DuplicateKey), f.count(2, format.DuplicateKey); a != 3 || b != 1 || r != 3 {
		t.Errorf("duplicate keys counted: %d %d %d", a, b, r)
	}
}

func TestMaps(t *testing.T) {
	f := newFixture(t, []types.Field{field("m", types.NewMap(types.NewString(), types.NewInt()))})
	f.want([]string{`{"m":{"b":1,"a":null,"c":"x"}}`, `{"m":{}}`, `{"m":[]}`, `{"m":{"a":1,"b":2,"a":3,"c":4,"b":5,"a":6}}`, `{"m":{"\u0061":1,"a":"e","a":2}}`, `{"m":{"\ud800":1}}`},
		`{'b': 1, 'a': NULL, 'c': E(type_mismatch m[]: "x" is not INT)}`, "{}", "E(type_mismatch m: [] is not MAP<STRING, INT>)",
		"{'c': 4, 'b': 5, 'a': 6}", "{'a': 2}", `E(type_mismatch m: {"\ud800":1} has a key that does not fit MAP<STRING, INT>)`)
	if n := f.count(0, format.DuplicateKey); n != 5 {
		t.Errorf("%d duplicate keys", n)
	}
	var in, want []string
	for i := range 500 {
		in = append(in, fmt.Sprintf(`"k%d":%d`, i%400, i))
		if i >= 100 {
			want = append(want, fmt.Sprintf("'k%d': %d", i%400, i))
		}
	}
	f.want([]string{`{"m":{` + strings.Join(in, ",") + `}}`, `{"m":{` + strings.Join(in[:400], ",") + `}}`}, "{"+strings.Join(want, ", ")+"}",
		"{"+strings.ReplaceAll(strings.ReplaceAll(strings.Join(in[:400], ", "), `"`, "'"), ":", ": ")+"}")
	if _, err := NewDecoder(format.DecoderConfig{Fields: []types.Field{field("m", types.NewMap(types.NewInt(), types.NewInt()))}}); err == nil {
		t.Error("integer keys were accepted")
	}
}

func TestDiffersFromFlinkNoLeakOfNestedFields(t *testing.T) {
	f := newFixture(t, []types.Field{field("a", types.NewInt()), field("b", types.NewInt())}, lenient)
	f.want([]string{`{"a":{"b":7},"b":1}`, `{"a":[{"b":7}]}`, `{"x":{"a":1,"b":2}}`}, "NULL | 1", "NULL | NULL", "NULL | NULL")
}

func TestOldAndNewVersionsInOneTopic(t *testing.T) {
	fields := []types.Field{field("id", types.NewInt()), field("amt", types.NewDecimal(10, 2)), field("cur", types.NewString())}
	records := []string{`{"id":1,"amt":"12.30"}`, `{"id":2,"amt":12.3,"cur":"EUR"}`, `{"id":3,"amt":{"v":12.3,"cur":"EUR"}}`, `{"id":1,"amt":"12.30"}`}
	newFixture(t, fields, lenient).want(records, "1 | 12.30 | NULL", "2 | 12.30 | 'EUR'", "3 | NULL | NULL", "1 | 12.30 | NULL")
	newFixture(t, fields, strict).want(records[2:3], `3 | E(type_mismatch amt: {"v":12.3,"cur":"EUR"} is not DECIMAL(10, 2)) | NULL`)
}

func TestMissingAndNull(t *testing.T) {
	fields := []types.Field{field("a", types.NewInt().NotNull()), field("b", types.NewInt()), field("r", types.NewRow(field("x", types.NewInt().NotNull())))}
	f := newFixture(t, fields)
	f.want([]string{`{"a":null,"b":null,"r":null}`, `{}`, `{"a":1,"r":{}}`},
		"E(null_in_not_null a: null in a NOT NULL column) | NULL | NULL",
		"E(null_in_not_null a: the field of a NOT NULL column is missing) | NULL | NULL",
		"1 | NULL | (E(null_in_not_null r.x: the field of a NOT NULL column is missing))")
	if f.count(1, format.Missing) != 2 || f.count(0, format.NullInNotNull) != 2 || f.count(2, format.Missing) != 1 {
		t.Error("counts:", f.count(1, format.Missing), f.count(0, format.NullInNotNull), f.count(2, format.Missing))
	}
	f = newFixture(t, fields, "json.fail-on-missing-field=true")
	f.want([]string{`{"a":1,"b":null,"r":{"x":1}}`, `{"a":1}`}, "1 | NULL | (1)", "1 | E(missing_field b: the field is missing) | E(missing_field r: the field is missing)")
	// What cannot be NULL stays an error, whatever the policy.
	newFixture(t, fields, "json.on-error=null").want([]string{`{"a":"x","b":"x","r":{"x":"x"}}`},
		`E(type_mismatch a: "x" is not INT) | NULL | (E(type_mismatch r.x: "x" is not INT))`)
}

func TestLongValuesAreCutInMessages(t *testing.T) {
	f := newFixture(t, intA)
	got := f.decode(`{"a":"` + strings.Repeat("日", 100) + `"}`)[0]
	if want := `E(type_mismatch a: "` + strings.Repeat("日", 21) + `... is not INT)`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestManyFaultsInOneRecord(t *testing.T) {
	f := newFixture(t, []types.Field{field("v", types.NewArray(types.NewInt()))})
	f.decode(`{"v":[`+strings.Repeat(`"x",`, 999)+`1]}`, `{"v":["y"]}`)
	errs := f.b.Cols[0].Children[0].Errs
	if len(errs) != 1000 || errs[99].Message != `"x" is not INT` || errs[100].Message != "further values of the record do not fit" || errs[999].Message != `"y" is not INT` {
		t.Errorf("%d errors", len(errs))
	}
}

func TestOptions(t *testing.T) {
	for _, bad := range [][]string{
		{"json.on-error", "ignore"}, {"json.ignore-parse-errors", "yes"}, {"json.on-error", "null", "json.ignore-parse-errors", "true"},
		{"json.timestamp-format.standard", "RFC"}, {"json.decimal-scale", "cut"}, {"json.fail-on-missing-field", "1"},
		{"json.fail-on-missing-field", "true", "json.ignore-parse-errors", "true"},
	} {
		m := map[string]string{}
		for i := 0; i < len(bad); i += 2 {
			m[bad[i]] = bad[i+1]
		}
		if _, err := NewDecoder(format.DecoderConfig{Fields: intA, Options: format.FromMap(m)}); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
	for v, want := range map[string]format.Policy{"true": format.NullOrDrop, "false": format.Fail} {
		if p, err := (Format{}).Policy(format.FromMap(map[string]string{"json.ignore-parse-errors": v})); err != nil || p != want {
			t.Errorf("ignore-parse-errors %s: %v %v", v, p, err)
		}
	}
	if p, _ := (Format{}).Policy(nil); p != format.DeadLetter {
		t.Error("default policy:", p)
	}
}
