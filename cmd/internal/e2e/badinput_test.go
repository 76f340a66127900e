package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

// awkward is a topic of awkward records, and what each error policy must make
// of them. Its table's columns are selected one by one, as text.
type awkward struct {
	name    string
	columns string   // of the source
	options string   // of the source, each after a comma
	sel     []string // expressions; empty: every column
	records []string
	// rows by source offset, "offset: a|b"; of the policies dead-letter and
	// null-or-drop, which differ in rows that have a faulty value.
	rows    []string
	lenient []string // nil: as rows
	// dead letters, "offset reason column".
	dead []string
	// filtered counts rows that are dropped without a dead letter: empty ones.
	filtered int64
}

// names are the columns of the source table.
func (a *awkward) names() []string {
	var out []string
	depth, start := 0, 0
	cut := func(end int) {
		name, _, _ := strings.Cut(strings.TrimSpace(a.columns[start:end]), " ")
		out, start = append(out, name), end+1
	}
	for i, c := range a.columns {
		switch c {
		case '(', '<':
			depth++
		case ')', '>':
			depth--
		case ',':
			if depth == 0 {
				cut(i)
			}
		}
	}
	cut(len(a.columns))
	return out
}

// sql is the part of the job for this topic.
func (a *awkward) sql(table, options string) string {
	exprs := a.sel
	if len(exprs) == 0 {
		exprs = a.names()
	}
	var cols, sel []string
	for i, e := range exprs {
		cols = append(cols, fmt.Sprintf("c%d STRING", i))
		sel = append(sel, "CAST("+e+" AS STRING)")
	}
	return fmt.Sprintf(`CREATE TABLE in_%[1]s (%[2]s, rec BIGINT METADATA FROM 'offset' VIRTUAL, part INT METADATA FROM 'partition' VIRTUAL) WITH ('connector' = 'log', 'topic' = '%[3]s',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json'%[4]s%[5]s);
CREATE TABLE %[1]s (rec BIGINT, %[6]s) WITH ('connector' = 'filesystem', 'path' = '${OUT}/%[1]s', 'format' = 'parquet');
INSERT INTO %[1]s SELECT rec, %[7]s FROM in_%[1]s;
`, table, a.columns, a.name, a.options, options, strings.Join(cols, ", "), strings.Join(sel, ", "))
}

// produceBytes appends records of any bytes to partition 0.
func (w *world) produceBytes(topic string, records []string) {
	w.t.Helper()
	var b strings.Builder
	for _, r := range records {
		line, err := json.Marshal(map[string]any{"value_base64": base64.StdEncoding.EncodeToString([]byte(r)), "partition": 0})
		if err != nil {
			w.t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	w.feed(strings.NewReader(b.String()), "topics", "produce", topic, "-i", "json-envelope").must(w.t, 0)
}

// textRows are the rows of a table of awkward.sql as "offset: a|b".
func (w *world) textRows(table string) []string {
	w.t.Helper()
	var out []string
	for _, f := range tableFiles(w.t, w.lake+"/"+table) {
		b, err := os.ReadFile(f)
		if err != nil {
			w.t.Fatal(err)
		}
		_, columns, rows, err := readColumns(b)
		if err != nil {
			w.t.Fatalf("reading %s: %v", f, err)
		}
		for i := range rows {
			text := make([]string, len(columns)-1)
			for c, values := range columns[1:] {
				text[c] = "NULL"
				if values[i] != nil {
					text[c] = fmt.Sprint(values[i])
				}
			}
			out = append(out, fmt.Sprintf("%v: %s", columns[0][i], strings.Join(text, "|")))
		}
	}
	sortByOffset(out)
	return out
}

// sortByOffset sorts by the number in front, and keeps rows of one record in
// the order of the file.
func sortByOffset(rows []string) {
	offset := func(s string) int {
		n, _, _ := strings.Cut(strings.TrimSpace(s), ":")
		n, _, _ = strings.Cut(n, " ")
		i, _ := strconv.Atoi(n)
		return i
	}
	slices.SortStableFunc(rows, func(a, b string) int { return offset(a) - offset(b) })
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func numbered(format string, values ...string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = strings.ReplaceAll(format, "%", v)
	}
	return out
}

// everyTenth has 1,000 records, each tenth of them broken.
func everyTenth() (records, rows, dead []string) {
	for i := range 1000 {
		if i%10 == 9 {
			records = append(records, `{"a":1,,}`)
			dead = append(dead, fmt.Sprintf("%d malformed_record ", i))
			continue
		}
		records = append(records, fmt.Sprintf(`{"a":%d}`, i))
		rows = append(rows, fmt.Sprintf("%d: %d", i, i))
	}
	return records, rows, dead
}

// timeForms are the forms of a time that producers write.
var timeForms = []string{"2024-05-01 08:00:00", "2024-05-01T08:00:00", "2024-05-01T08:00:00Z", "2024-05-01 08:00:00Z",
	"2024-05-01T08:00:00+08:00", "2024-05-01T08:00Z", "2024-05-01 8:00:00", "2024-05-01 08:00", "2024-05-01T08:00"}

// timeCases: each standard takes its own forms and nothing else, never with a
// shift by hours. Columns by standard and kind, values by form.
func timeCases() []awkward {
	const t8, l8, l0 = "2024-05-01 08:00:00.000", "2024-05-01 08:00:00.000", "2024-05-01 00:00:00.000"
	var out []awkward
	for _, c := range []struct {
		name, standard, typ string
		want                map[int]string
	}{
		{"sql_timestamp", "SQL", "TIMESTAMP(3)", map[int]string{0: t8}},
		{"sql_ltz", "SQL", "TIMESTAMP_LTZ(3)", map[int]string{3: l8}},
		{"iso_timestamp", "ISO-8601", "TIMESTAMP(3)", map[int]string{1: t8, 8: t8}},
		{"iso_ltz", "ISO-8601", "TIMESTAMP_LTZ(3)", map[int]string{2: l8, 5: l8}},
		{"offset_timestamp", "ISO-8601-WITH-OFFSET", "TIMESTAMP(3)", map[int]string{1: t8, 8: t8}},
		{"offset_ltz", "ISO-8601-WITH-OFFSET", "TIMESTAMP_LTZ(3)", map[int]string{2: l8, 4: l0, 5: l8}},
	} {
		a := awkward{name: c.name, columns: "t " + c.typ, options: ", 'json.timestamp-format.standard' = '" + c.standard + "'", records: numbered(`{"t":"%"}`, timeForms...)}
		for i := range timeForms {
			if v, ok := c.want[i]; ok {
				a.rows = append(a.rows, fmt.Sprintf("%d: %s", i, v))
				a.lenient = append(a.lenient, fmt.Sprintf("%d: %s", i, v))
				continue
			}
			a.dead = append(a.dead, fmt.Sprintf("%d type_mismatch t", i))
			a.lenient = append(a.lenient, fmt.Sprintf("%d: NULL", i))
		}
		out = append(out, a)
	}
	return out
}

func awkwardCases() []awkward {
	tenthRecords, tenthRows, tenthDead := everyTenth()
	long := strings.Repeat("x", 4095) + "\u201d"
	cases := []awkward{
		{name: "several_documents", columns: "a INT",
			records: []string{"{\"a\":1}\n{\"a\":2}\n{\"a\":3}", `{"a":1} garbage`, `{"a":4}`},
			rows:    []string{"0: 1", "0: 2", "0: 3", "2: 4"}, dead: []string{"1 malformed_record "}},
		{name: "top_level_array", columns: "col1 INT, col2 STRING",
			records: []string{`[{"col1":123,"col2":"a"},{"col1":456,"col2":"b"}]`, `[]`, `[{"col1":1},7]`, `{"col1":5}`},
			rows:    []string{"0: 123|a", "0: 456|b", "3: 5|NULL"}, dead: []string{"2 malformed_record "}, filtered: 1},
		{name: "byte_order_mark", columns: "a STRING",
			records: []string{"\xef\xbb\xbf{\"a\":1}", "{\"a\":\"\ufeffx\"}", "\ufeff\ufeff{\"a\":1}"},
			rows:    []string{"0: 1", "1: \ufeffx"}, dead: []string{"2 malformed_record "}},
		{name: "pretty_printed_with_crlf", columns: "a INT, s STRING",
			records: []string{"{\r\n  \"a\": 1,\r\n  \"s\": \"x\"\r\n}\r\n"}, rows: []string{"0: 1|x"}},
		{name: "almost_json", columns: "a INT",
			records: []string{`{"a":1}`, `{"a":1,}`, `{"a":1/*x*/}`, `{'a':1}`, `{"a":01}`, `{"a":2}`, `{"a":+1}`, `{"a":.5}`, `{"a":1`, `{"a":3}`},
			rows:    []string{"0: 1", "5: 2", "9: 3"},
			dead: []string{"1 malformed_record ", "2 malformed_record ", "3 malformed_record ", "4 malformed_record ", "6 malformed_record ",
				"7 malformed_record ", "8 malformed_record "}},
		{name: "raw_control_characters", columns: "a STRING, b INT", records: []string{"{\"a\":\"x\ty\",\"b\":2}"}, rows: []string{"0: x\ty|2"}},
		{name: "every_tenth_is_broken", columns: "a INT", records: tenthRecords, rows: tenthRows, dead: tenthDead},
		{name: "deep_nesting", columns: "a INT",
			records: []string{`{"x":` + nested(900) + `,"a":1}`, `{"x":` + nested(20000) + `,"a":1}`, `{"a":2}`},
			rows:    []string{"0: 1", "2: 2"}, dead: []string{"1 malformed_record "}},
		{name: "mixed_arrays", columns: "v ARRAY<INT>",
			records: []string{`{"v":[1,null,"3",4]}`, `{"v":[1,null,"3",4.7,"x"]}`, `{"v":[1,null,"3",4.7,"x",[5]]}`},
			rows:    []string{"0: [1, NULL, 3, 4]"}, lenient: []string{"0: [1, NULL, 3, 4]", "1: [1, NULL, 3, NULL, NULL]", "2: [1, NULL, 3, NULL, NULL, NULL]"},
			dead: []string{"1 type_mismatch v[]", "2 type_mismatch v[]"}},
		{name: "json_within_a_string", columns: "payload STRING",
			sel:     []string{"JSON_VALUE(payload, '$.id')", "JSON_VALUE(payload, '$.q')", "JSON_QUERY(payload, '$.tags')", "JSON_VALUE(payload, '$.none')"},
			records: []string{`{"payload":"{\"id\":1,\"q\":\"a\\\"b\",\"tags\":[\"x\"]}"}`},
			rows:    []string{`0: 1|a"b|["x"]|NULL`}},
		{name: "json_within_a_row_column", columns: "payload ROW<id INT>", sel: []string{"payload.id"},
			records: []string{`{"payload":"{\"id\":1}"}`, `{"payload":{"id":2}}`},
			rows:    []string{"1: 2"}, lenient: []string{"0: NULL", "1: 2"}, dead: []string{"0 type_mismatch payload"}},
		{name: "integers_above_2_53", columns: "id BIGINT, s STRING",
			records: []string{`{"id":9007199254740993,"s":12345678901234567890}`, `{"id":"9223372036854775807","big":123456789012345678901234567890}`},
			rows:    []string{"0: 9007199254740993|12345678901234567890", "1: 9223372036854775807|NULL"}},
		{name: "numbers_as_strings", columns: "n BIGINT, d DOUBLE, m DECIMAL(10, 2), s STRING",
			records: []string{`{"n":"12","d":"1.5","m":"12 ","s":1.10}`, `{"s":1e2}`, `{"n":"1_000"}`, `{"d":"1,5"}`},
			rows:    []string{"0: 12|1.5|12.00|1.10", "1: NULL|NULL|NULL|1e2"},
			lenient: []string{"0: 12|1.5|12.00|1.10", "1: NULL|NULL|NULL|1e2", "2: NULL|NULL|NULL|NULL", "3: NULL|NULL|NULL|NULL"},
			dead:    []string{"2 type_mismatch n", "3 type_mismatch d"}},
		{name: "decimals_of_a_price", columns: "m DECIMAL(10, 2)",
			records: numbered(`{"m":%}`, "1.005", "-0.005", "99999999.994", "99999999.995", "123456789.995", "1e-3"),
			rows:    []string{"0: 1.01", "1: -0.01", "2: 99999999.99", "5: 0.00"},
			lenient: []string{"0: 1.01", "1: -0.01", "2: 99999999.99", "3: NULL", "4: NULL", "5: 0.00"},
			dead:    []string{"3 type_mismatch m", "4 type_mismatch m"}},
		{name: "numbers_that_are_none", columns: "d DOUBLE",
			records: numbered(`{"d":%}`, "1e400", "NaN", `"NaN"`, `"Infinity"`, `"-inf"`, "1.5"),
			rows:    []string{"2: NaN", "3: Infinity", "5: 1.5"},
			lenient: []string{"0: NULL", "2: NaN", "3: Infinity", "4: NULL", "5: 1.5"},
			dead:    []string{"0 type_mismatch d", "1 malformed_record ", "4 type_mismatch d"}},
		{name: "a_column_divides_by_zero", columns: "a INT, b INT", sel: []string{"a / b"},
			records: []string{`{"a":4,"b":2}`, `{"a":1,"b":0}`, `{"b":0}`}, rows: []string{"0: 2", "2: NULL"}, dead: []string{"1 division_by_zero a / b"},
			lenient: []string{"0: 2", "2: NULL"}},
		{name: "invalid_utf8", columns: "a STRING, b INT",
			records: []string{"{\"a\":\"x\xffy\",\"b\":2}", "{\"b\":2,\"a\":\"ok\",\"unused\":\"x\xffy\"}", `{"a":"` + long + `","b":3}`},
			rows:    []string{"2: " + long + "|3"}, dead: []string{"0 malformed_record ", "1 malformed_record "}},
		{name: "fractions_are_cut", columns: "t TIMESTAMP(3), tm TIME(3), p TIMESTAMP(6)",
			sel:     []string{"t", "tm", "CAST(t AS TIMESTAMP(0))", "DATE_FORMAT(t, 'yyyy-MM-dd')", "p"},
			records: []string{`{"t":"2024-05-01 23:59:59.9999","tm":"12:34:56.789","p":"1969-12-31 23:59:59.9999995"}`},
			rows:    []string{"0: 2024-05-01 23:59:59.999|12:34:56.789|2024-05-01 23:59:59|2024-05-01|1969-12-31 23:59:59.999999"}},
		{name: "seconds_for_milliseconds", columns: "s BIGINT", sel: []string{"TO_TIMESTAMP_LTZ(s, 3)", "DATE_FORMAT(TO_TIMESTAMP_LTZ(s, 3), 'yyyy-MM-dd')"},
			records: []string{`{"s":1714521600}`}, rows: []string{"0: 1970-01-20 20:15:21.600|1970-01-20"}},
		{name: "versions_of_a_message", columns: "id INT, amt DECIMAL(10, 2), cur STRING",
			records: []string{`{"id":1,"amt":"12.30"}`, `{"id":2,"amt":12.3,"cur":"EUR"}`, `{"id":3,"amt":{"v":12.3,"cur":"EUR"}}`, `{"id":1,"amt":"12.30"}`},
			rows:    []string{"0: 1|12.30|NULL", "1: 2|12.30|EUR", "3: 1|12.30|NULL"},
			lenient: []string{"0: 1|12.30|NULL", "1: 2|12.30|EUR", "2: 3|NULL|NULL", "3: 1|12.30|NULL"},
			dead:    []string{"2 type_mismatch amt"}},
	}
	return append(cases, timeCases()...)
}

// TestAwkwardRecords runs every topic of awkward records through one job, under
// two policies, as a stream and in batch mode: the rows, the dead letters and
// the ledger must be right, and equal in both.
func TestAwkwardRecords(t *testing.T) {
	cases := awkwardCases()
	w := newWorld(t)
	job := ""
	for i := range cases {
		w.produceBytes(cases[i].name, cases[i].records)
		job += cases[i].sql(cases[i].name, "")
		job += cases[i].sql("lenient_"+cases[i].name, ", 'json.ignore-parse-errors' = 'true'")
	}
	for _, mode := range []string{"streaming", "batch"} {
		t.Run(mode, func(t *testing.T) {
			out := *w
			out.t, out.lake = t, w.lake+"_"+mode
			path := w.file(mode+".sql", "SET 'execution.runtime-mode' = '"+mode+"';\n"+job)
			out.run(out.runArgs(path)...).must(t, 0)
			out.run("ledger", "show", "--check").must(t, 0)
			var got struct{ Tables []control.TableLedger }
			out.ask(&got, "ledger", "show", "--job", mode)
			var dead struct{ Records []deadRecord }
			out.ask(&dead, "dead", "ls", "--job", mode)
			for i := range cases {
				t.Run(cases[i].name, func(t *testing.T) {
					o := out
					o.t = t
					o.judge(&cases[i], got.Tables, dead.Records)
				})
			}
		})
	}
}

type deadRecord struct {
	Table, Topic, Reason, Column, Message string
	Partition                             int
	Offset                                int64
	Value                                 []byte `json:"value_base64"`
}

// judge compares what a run made of one topic.
func (w *world) judge(a *awkward, ledger []control.TableLedger, letters []deadRecord) {
	t := w.t
	if got := w.textRows(a.name); !slices.Equal(got, a.rows) {
		t.Errorf("rows\n%q\nwant\n%q", cutLong(got), cutLong(a.rows))
	}
	want := a.lenient
	if want == nil {
		want = a.rows
	}
	if got := w.textRows("lenient_" + a.name); !slices.Equal(got, want) {
		t.Errorf("rows under ignore-parse-errors\n%q\nwant\n%q", cutLong(got), cutLong(want))
	}
	var got []string
	for _, d := range letters {
		if d.Table != a.name {
			continue
		}
		got = append(got, fmt.Sprintf("%d %s %s", d.Offset, d.Reason, d.Column))
		if d.Topic != a.name || d.Message == "" || string(d.Value) != a.records[d.Offset] {
			t.Errorf("dead letter %+v", d)
		}
	}
	sortByOffset(got)
	if !slices.Equal(got, a.dead) {
		t.Errorf("dead letters\n%q\nwant\n%q", got, a.dead)
	}
	l := sums(ledger, a.name)
	if rows, bad := int64(len(a.rows)), int64(len(a.dead)); l.Written != rows || l.Dead != bad || l.Filtered != a.filtered || l.Read != rows+bad+a.filtered || l.Open != 0 {
		t.Errorf("ledger %+v", l)
	}
	// What cannot be NULL is dropped and counted; an error that the decoder
	// did not make stays with the lane's policy.
	l = sums(ledger, "lenient_"+a.name)
	ofLane := int64(0)
	for _, d := range a.dead {
		if !strings.Contains(d, "malformed_record") && !strings.Contains(d, "type_mismatch") {
			ofLane++
		}
	}
	if l.Written != int64(len(want)) || l.Dead != ofLane || l.Read != l.Written+l.Filtered+l.Dead || l.Read != int64(len(a.rows)+len(a.dead))+a.filtered {
		t.Errorf("ledger under ignore-parse-errors %+v", l)
	}
}

func cutLong(rows []string) []string {
	out := slices.Clone(rows[:min(len(rows), 20)])
	for i, r := range out {
		if len(r) > 100 {
			out[i] = r[:100] + "..."
		}
	}
	return out
}

// TestStrictPolicyStops: with ignore-parse-errors written out as false the lane
// stops at the first faulty record of its partition, the rows before it are
// written, and the run ends with 1 naming topic, partition and offset.
func TestStrictPolicyStops(t *testing.T) {
	byName := map[string]awkward{}
	for _, a := range awkwardCases() {
		byName[a.name] = a
	}
	for _, c := range []struct {
		name, message string
		offset        int
	}{
		{"several_documents", "unexpected 'g' at byte 8", 1},
		{"top_level_array", "unexpected '7' at byte 12", 2},
		{"almost_json", "unexpected '}' at byte 7", 1},
		{"every_tenth_is_broken", "malformed_record", 9},
		{"mixed_arrays", "4.7 is not INT", 1},
		{"decimals_of_a_price", "99999999.995 is not DECIMAL(10, 2)", 3},
		{"sql_ltz", `is not TIMESTAMP_LTZ(3)`, 0},
		{"versions_of_a_message", "amt", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			a := byName[c.name]
			w.produceBytes(a.name, a.records)
			job := w.file("strict.sql", a.sql(a.name, ", 'json.ignore-parse-errors' = 'false'"))
			w.run(w.runArgs(job)...).must(t, 1).says(t, fmt.Sprintf("offset %d of topic %s partition 0", c.offset, a.name), c.message)
			var want []string
			for _, r := range a.rows {
				n, _, _ := strings.Cut(r, ":")
				if offset, err := strconv.Atoi(n); err == nil && offset < c.offset {
					want = append(want, r)
				}
			}
			if got := w.textRows(a.name); !slices.Equal(got, want) {
				t.Errorf("rows %q, want %q", got, want)
			}
			w.run("ledger", "show", "--check").must(t, 0)
		})
	}
}

// TestNullForNotNullColumn: by default the row is dead, ERROR ends the run and
// names the column, DROP drops and counts it; never is it 0 or an empty text.
func TestNullForNotNullColumn(t *testing.T) {
	source := "CREATE TABLE src (id INT, c3 STRING) WITH ('connector' = 'log', 'topic' = 'src', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json');\n"
	for set, want := range map[string]struct {
		code                    int
		written, dead, filtered int64
	}{"": {0, 2, 1, 0}, "ERROR": {1, 1, 0, 0}, "DROP": {0, 2, 0, 1}} {
		t.Run("enforcer "+set, func(t *testing.T) {
			w := newWorld(t)
			w.produce("src", `{"id":1,"c3":"a"}`, `{"id":2}`, `{"id":3,"c3":"c"}`)
			text := source + "CREATE TABLE dst (id INT NOT NULL, c3 STRING NOT NULL) WITH ('connector' = 'filesystem', 'path' = '${OUT}/dst', 'format' = 'parquet');\n"
			if set != "" {
				text += "SET 'table.exec.sink.not-null-enforcer' = '" + set + "';\n"
			}
			// id is nullable in the source, too: COALESCE makes it NOT NULL.
			text += "INSERT INTO dst SELECT COALESCE(id, 0), c3 FROM src;\n"
			r := w.run(w.runArgs(w.file("nulls.sql", text))...).must(t, want.code)
			if want.code != 0 {
				r.says(t, "c3", "null_in_not_null", "offset 1")
			}
			rows := multiset{"id=1 c3=a": 1}
			if want.code == 0 {
				rows["id=3 c3=c"] = 1
			}
			compare(t, "dst", w.table("dst"), rows)
			var got struct{ Tables []control.TableLedger }
			w.ask(&got, "ledger", "show", "dst")
			if l := sums(got.Tables, "dst"); l.Written != want.written || l.Dead != want.dead || l.Filtered != want.filtered {
				t.Errorf("%+v", l)
			}
		})
	}
}

// TestBrokenRecordsInEveryPartition: what is dropped does not depend on how
// records lie in partitions and batches.
func TestBrokenRecordsInEveryPartition(t *testing.T) {
	w := newWorld(t)
	w.run("topics", "create", "clicks", "--partitions", "4").must(t, 0)
	var records []string
	want := multiset{}
	for i := range 1000 {
		if i%10 == 9 {
			records = append(records, `{"id":1,,}`)
			continue
		}
		records = append(records, click(i))
	}
	for i := range 1000 {
		if i%10 != 9 {
			maps.Copy(want, clickRows(i, 1))
		}
	}
	w.produce("clicks", records...)
	job := strings.Replace(copyJob(), "'format' = 'json'", "'format' = 'json', 'json.on-error' = 'drop'", 1)
	w.run(w.runArgs(w.file("drop.sql", job), "--set", "BOUNDED=latest-offset")...).must(t, 0)
	compare(t, "out_t", w.table("out_t"), want)
	var got struct{ Tables []control.TableLedger }
	w.ask(&got, "ledger", "show", "out_t")
	if l := sums(got.Tables, "out_t"); l.Read != 1000 || l.Written != 900 || l.Filtered != 100 || l.Dead != 0 {
		t.Errorf("%+v", l)
	}
}
