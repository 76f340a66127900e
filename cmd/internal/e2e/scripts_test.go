package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

const bom = "\xef\xbb\xbf"

// crlf is a text as an editor on Windows writes it.
func crlf(text string) string { return bom + strings.ReplaceAll(text, "\n", "\r\n") }

// boundedTopic is a topic of a few columns, read once from its start.
func boundedTopic(name, columns, options string) string {
	return fmt.Sprintf("CREATE TABLE %[1]s (%[2]s) WITH ('connector' = 'log', 'topic' = '%[1]s', 'scan.startup.mode' = 'earliest-offset',\n"+
		"  'scan.bounded.mode' = 'latest-offset', 'format' = 'json'%[3]s);\n", name, columns, options)
}

// parquetTable is a table of files.
func parquetTable(name, columns, rest, options string) string {
	return fmt.Sprintf("CREATE TABLE %[1]s (%[2]s) %[3]s WITH ('connector' = 'filesystem', 'path' = '${OUT}/%[1]s', 'format' = 'parquet'%[4]s);\n", name, columns, rest, options)
}

// TestScriptIsCheckedAsAWhole: with one wrong statement at its end nothing of a
// file runs; line and column count as the editor does, over a byte order mark,
// CRLF and trailing blanks. The corrected file starts both INSERTs as one job.
func TestScriptIsCheckedAsAWhole(t *testing.T) {
	w := newWorld(t)
	w.produce("src", `{"a":1}`, `{"a":2}`)
	text := boundedTopic("src", "a INT", "") + parquetTable("good", "a INT", "", "") + parquetTable("more", "a INT", "", "") +
		"SET 'parallelism.default' = '2';\nINSERT INTO good SELECT a FROM src;  \nINSERT INTO more SELECT aa FROM src;   \n"
	job := w.file("job.sql", crlf(text))
	w.run(w.runArgs(job)...).must(t, 2).says(t, job+":7:25: error[unknown_column]", `did you mean "a"?`)
	if files := tableFiles(t, w.lake); len(files) != 0 {
		t.Errorf("files were written: %v", files)
	}
	var jobs struct{ Jobs []control.Job }
	w.ask(&jobs, "jobs", "ls")
	if len(jobs.Jobs) != 0 {
		t.Errorf("jobs were made: %+v", jobs.Jobs)
	}
	job = w.file("job.sql", crlf(strings.Replace(text, "SELECT aa", "SELECT a * 10", 1)))
	w.run(w.runArgs(job)...).must(t, 0)
	compare(t, "good", w.table("good"), multiset{"a=1": 1, "a=2": 1})
	compare(t, "more", w.table("more"), multiset{"a=10": 1, "a=20": 1})
	w.ask(&jobs, "jobs", "ls")
	if len(jobs.Jobs) != 1 || jobs.Jobs[0].Name != "job" {
		t.Errorf("jobs %+v", jobs.Jobs)
	}
}

// TestSemicolonsOfScripts: a semicolon within a string or a comment ends no
// statement, an empty statement is none, the last one needs none; the same from
// -e, a file, and line by line into the shell.
func TestSemicolonsOfScripts(t *testing.T) {
	w := newWorld(t)
	const script = "SELECT 'a;b' AS x; -- one; two\n/* c; d */ SELECT CONCAT(';',CHR(10)) AS x ;;\nSELECT 'e;\nf' AS x;\nSELECT 1 AS x"
	const want = `{"x":"a;b"}` + "\n" + `{"x":";\n"}` + "\n" + `{"x":"e;\nf"}` + "\n" + `{"x":1}` + "\n"
	file := w.file("script.sql", crlf(strings.ReplaceAll(script, "'e;\nf'", "'e;' || CHR(10) || 'f'")))
	for name, r := range map[string]result{
		"-e":       w.run("sql", "-e", script, "-o", "jsonl"),
		"-f":       w.run("sql", "-f", file, "-o", "jsonl"),
		"--script": w.run("sql", "--script", file, "-o", "jsonl"),
		"shell":    w.feed(strings.NewReader(script+"\n"), "sql", "-o", "jsonl"),
	} {
		if r.must(t, 0).stdout != want {
			t.Errorf("%s: %q, want %q\n%s", name, r.stdout, want, r.stderr)
		}
	}
	// A fault has the line of the file.
	w.run("sql", "-f", w.file("bad.sql", crlf("SELECT 'a;b';\n/* ; */\n\tSELECT 名 FROM t;\n"))).must(t, 2).says(t, "bad.sql:3:16: error[unknown_table]")
}

// TestNamesOfEveryKind: reserved words, marks, Chinese characters and case are
// kept from the JSON key through SQL to the column of the file.
func TestNamesOfEveryKind(t *testing.T) {
	w := newWorld(t)
	w.produce("my-topic.v1", `{"timestamp":1714521600123,"value":1.5,"user":"u","@ts":"t","地区":"东京","a`+"`"+`b":7,"VALUE":9,"Group":"g"}`)
	columns := "`timestamp` BIGINT, `value` DOUBLE, `user` STRING, `@ts` STRING, `地区` STRING, `a``b` INT, `VALUE` INT, `Group` STRING"
	source := strings.Replace(boundedTopic("x", columns, ""), "CREATE TABLE x", "CREATE TABLE `my-topic.v1`", 1)
	source = strings.Replace(source, "'topic' = 'x'", "'topic' = 'my-topic.v1'", 1)
	job := w.file("names.sql", source+parquetTable("`输出`", columns, "", "")+"INSERT INTO `输出` SELECT `timestamp`, `value`, `user`, `@ts`, 地区, `a``b`, `VALUE`, `Group` FROM `my-topic.v1`;\n")
	w.run(w.runArgs(job)...).must(t, 0)
	compare(t, "names", w.table("`输出`"), multiset{"timestamp=1714521600123 value=1.5 user=u @ts=t 地区=东京 a`b=7 VALUE=9 Group=g": 1})
	var got map[string]any
	r := w.run("sql", "--job", "names", "-e", "SELECT * FROM `输出`", "-o", "jsonl").must(t, 0)
	if want := `{"timestamp":1714521600123,"value":1.5,"user":"u","@ts":"t","地区":"东京","a` + "`" + `b":7,"VALUE":9,"Group":"g"}` + "\n"; r.stdout != want {
		t.Errorf("%s want %s (%v)", r.stdout, want, got)
	}
	// Without quotes each is named, with its place.
	bad := w.file("bad.sql", "CREATE TABLE t (timestamp BIGINT,\n  value DOUBLE,\n  user STRING,\n  @ts STRING,\n  date STRING) WITH ('connector' = 'blackhole');\nCREATE TABLE my-topic.v1 (a INT) WITH ('connector' = 'blackhole');\n")
	w.run("check", bad).must(t, 2).says(t, `:1:17: error[reserved_word]: "timestamp"`, `:2:3: error[reserved_word]: "value"`, `:3:3: error[reserved_word]: "user"`,
		":4:3: error[illegal_character]", `:5:3: error[reserved_word]: "date"`, "help: quote it: `user`", ":6:16: error[", "help: quote the whole name: `my-topic.v1`", "help: quote the whole name: `@ts`")
}

// TestOptionsThatAreRefused: what is misspelt or contradicts something else is
// an error at its place, which names both and a way out; nothing is ignored.
func TestOptionsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	log := func(more string) string {
		return "CREATE TABLE a (x INT) WITH ('connector' = 'log', 'topic' = 'x', 'format' = 'json'" + more + ");\n"
	}
	for name, c := range map[string]struct {
		text string
		says []string
	}{
		"misspelt table options": {log(", 'topc' = 'y', 'json.ignore-parse-error' = 'true'"),
			[]string{`unknown option "topc" for connector "log"`, `did you mean "topic"?`, `did you mean "json.ignore-parse-errors"?`, "millrace connectors describe log"}},
		"misspelt setting":   {"SET 'executon.checkpointing.interval' = '1min';\n", []string{`1:5: error[unknown_option]`, `did you mean "execution.checkpointing.interval"?`}},
		"misspelt connector": {"CREATE TABLE a (x INT) WITH ('conector' = 'log', 'topic' = 'x');\n", []string{`1:30: error[unknown_option]`, `did you mean "connector"?`}},
		"missing field fails and is ignored": {log(", 'json.fail-on-missing-field' = 'true', 'json.ignore-parse-errors' = 'true'"),
			[]string{"bad_option", "json.fail-on-missing-field", "json.ignore-parse-errors"}},
		"two error policies":        {log(", 'json.on-error' = 'drop', 'json.ignore-parse-errors' = 'true'"), []string{"bad_option", "json.on-error", "json.ignore-parse-errors"}},
		"a start time without time": {log(", 'scan.startup.mode' = 'timestamp'"), []string{"bad_option", "scan.startup.mode", "scan.startup.timestamp-millis"}},
		"a start time without mode": {log(", 'scan.startup.timestamp-millis' = '5'"), []string{"bad_option", "scan.startup.mode", "scan.startup.timestamp-millis"}},
		"no parallelism":            {log(", 'sink.parallelism' = '0'"), []string{"bad_option", "sink.parallelism"}},
		"one topic and a pattern":   {log(", 'topic-pattern' = 'x.*'"), []string{"topic-pattern"}},
		"the end lies before start": {log(", 'scan.startup.mode' = 'timestamp', 'scan.startup.timestamp-millis' = '2', 'scan.bounded.mode' = 'timestamp', 'scan.bounded.timestamp-millis' = '1'"), []string{"bad_option", "scan.bounded.timestamp-millis", "scan.startup.timestamp-millis"}},
		"an option twice":           {log(", 'topic' = 'y'"), []string{"duplicate_option", "first set here"}},
		"a partitioned table that never commits": {parquetTable("p", "x INT, dt STRING", "PARTITIONED BY (dt)", "") + log("") + "INSERT INTO p SELECT x, 'a' FROM a;\n",
			[]string{"partition_commit_policy", "sink.partition-commit.policy.kind"}},
		"partition time without a watermark": {parquetTable("p", "x INT, dt STRING", "PARTITIONED BY (dt)", ", 'sink.partition-commit.policy.kind' = 'success-file', 'sink.partition-commit.trigger' = 'partition-time'") + log("") + "INSERT INTO p SELECT x, 'a' FROM a;\n",
			[]string{"bad_option", "WATERMARK", "process-time"}},
		"no such partition column": {parquetTable("p", "x INT, dt STRING", "PARTITIONED BY (dt)", ", 'sink.partition-commit.policy.kind' = 'success-file'") + log("") + "INSERT INTO p PARTITION (x = '1') SELECT 'a' FROM a;\n",
			[]string{"bad_partition", `"x" is not a partition column`}},
		"a setting's value": {"SET 'table.exec.sink.not-null-enforcer' = 'IGNORE';\n", []string{"bad_option", "ERROR, DROP"}},
	} {
		job := w.file("options.sql", c.text)
		for _, verb := range [][]string{{"check", job, "--set", "OUT=x"}, {"run", job, "--set", "OUT=x"}} {
			t.Run(name+", "+verb[0], func(t *testing.T) {
				v := *w
				v.t = t
				v.run(verb...).must(t, 2).says(t, c.says...)
			})
		}
	}
	bad := w.file("millrace.yaml", "data: x\nprogres: none\n")
	w.run("topics", "ls", "-c", bad).must(t, 2).says(t, "progres")
}

// TestFilesOfLines: a byte order mark, CRLF, an empty line and a last line
// without an end are no fault; a file whose values go over several lines, or
// that is compressed, is refused as a whole and not line by line.
func TestFilesOfLines(t *testing.T) {
	w := newWorld(t)
	job := w.file("lines.sql", "CREATE TABLE f (a INT, s STRING) WITH ('connector' = 'filesystem', 'path' = '${IN}', 'format' = 'json');\n"+
		parquetTable("o", "a INT, s STRING", "", "")+"INSERT INTO o SELECT a, s FROM f;\n")
	w.file("good/f.json", crlf("{\"a\":1,\"s\":\"x\"}\n{\"a\":2,\"s\":\"y\"}\n\n{\"a\":\n{\"a\":3,\"s\":\"z\"}"))
	w.run(w.runArgs(job, "--set", "IN="+w.dir+"/good")...).must(t, 0)
	compare(t, "o", w.table("o"), multiset{"a=1 s=x": 1, "a=2 s=y": 1, "a=3 s=z": 1})
	var got struct{ Tables []control.TableLedger }
	w.ask(&got, "ledger", "show", "o")
	if l := sums(got.Tables, "o"); l.Read != 5 || l.Written != 3 || l.Filtered != 1 || l.Dead != 1 {
		t.Errorf("%+v", l)
	}
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprintln(z, `{"a":1}`)
	z.Close()
	for name, c := range map[string]struct{ text, says string }{
		"pretty-printed": {crlf("{\n  \"a\": 1,\n  \"s\": \"x\"\n}\n{\n  \"a\": 2\n}\n"), "goes over several lines"},
		"one array":      {"[\n{\"a\":1},\n{\"a\":2}\n]\n", "goes over several lines"},
		"compressed":     {zipped.String(), "gzip"},
	} {
		v := newWorld(t)
		in := v.file("in/f.json", c.text)
		copied := v.file("lines.sql", string(mustRead(t, job)))
		v.run(v.runArgs(copied, "--set", "IN="+filepath.Dir(in))...).must(t, 1).says(t, in, c.says)
		if files := tableFiles(t, v.lake); len(files) != 0 {
			t.Errorf("%s: %v", name, files)
		}
	}
	w.feed(strings.NewReader("{\n  \"a\": 1\n}\n"), "topics", "produce", "pretty", "-i", "jsonl").must(t, 2).says(t, "stdin:1", "goes over several lines")
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestPartitionValuesOfEveryKind: NULL and the empty text share Hive's default
// partition and read back as NULL, the text null stays text, marks are escaped;
// static values keep their text, in any order of the declared columns.
func TestPartitionValuesOfEveryKind(t *testing.T) {
	w := newWorld(t)
	w.produce("src", `{"v":1,"dt":null}`, `{"v":2,"dt":""}`, `{"v":3,"dt":"null"}`, `{"v":4,"dt":"a/b=c d%"}`, `{"v":5,"dt":"区"}`)
	const commit = ", 'sink.partition-commit.policy.kind' = 'success-file'"
	job := w.file("parts.sql", boundedTopic("src", "v INT, dt STRING", "")+
		parquetTable("o", "v INT, dt STRING", "PARTITIONED BY (dt)", commit)+
		parquetTable("named", "v INT, dt STRING", "PARTITIONED BY (dt)", commit+", 'partition.default-name' = 'nothing'")+
		parquetTable("s", "u STRING, cnt INT, d STRING, country STRING", "PARTITIONED BY (d, country)", commit)+
		"INSERT INTO o SELECT v, dt FROM src;\nINSERT INTO named SELECT v, dt FROM src WHERE v < 3;\n"+
		"INSERT INTO s PARTITION (d = '2019-8-30') SELECT 'u', v, 'CN' FROM src WHERE v = 1;\n"+
		"INSERT INTO s PARTITION (country = 'CN') SELECT 'w', v, '2019-08-30' FROM src WHERE v = 1;\n")
	w.run(w.runArgs(job)...).must(t, 0)
	compare(t, "o", w.table("o"), multiset{"v=1 dt=__HIVE_DEFAULT_PARTITION__": 1, "v=2 dt=__HIVE_DEFAULT_PARTITION__": 1, "v=3 dt=null": 1, "v=4 dt=a/b=c d%": 1, "v=5 dt=区": 1})
	compare(t, "named", w.table("named"), multiset{"v=1 dt=nothing": 1, "v=2 dt=nothing": 1})
	compare(t, "s", w.table("s"), multiset{"u=u cnt=1 d=2019-8-30 country=CN": 1, "u=w cnt=1 d=2019-08-30 country=CN": 1})
	r := w.run("sql", "--job", "parts", "-e", "SELECT v, dt, dt IS NULL AS n FROM o ORDER BY v; SELECT COUNT(*) AS n FROM named WHERE dt IS NULL", "-o", "jsonl").must(t, 0)
	if want := `{"v":1,"dt":null,"n":true}
{"v":2,"dt":null,"n":true}
{"v":3,"dt":"null","n":false}
{"v":4,"dt":"a/b=c d%","n":false}
{"v":5,"dt":"区","n":false}
{"n":2}
`; r.stdout != want {
		t.Errorf("%s", r.stdout)
	}
	// At the end of bounded input every partition is announced.
	for _, dir := range []string{"o/dt=__HIVE_DEFAULT_PARTITION__", "o/dt=null", "o/dt=区", "named/dt=nothing", "s/d=2019-8-30/country=CN"} {
		if _, err := os.Stat(filepath.Join(w.lake, dir, "_SUCCESS")); err != nil {
			t.Error(err)
		}
	}
}

// TestHiddenFilesAreNoData: names that begin with a dot or an underscore are
// passed over at every level.
func TestHiddenFilesAreNoData(t *testing.T) {
	w := newWorld(t)
	w.produce("clicks", clicks(0, 3)...)
	w.run(w.runArgs(w.file("copy.sql", copyJob()), "--set", "BOUNDED=latest-offset")...).must(t, 0)
	files := tableFiles(t, w.lake)
	if len(files) != 1 {
		t.Fatal(files)
	}
	data := string(mustRead(t, files[0]))
	for _, name := range []string{".part-1.parquet.inprogress", "_tmp/part-2.parquet", ".hive-staging/part-3.parquet", "_SUCCESS", "_metadata", ".part-4.parquet.crc"} {
		w.file("lake/out_t/"+name, data)
	}
	r := w.run("sql", "--job", "copy", "-e", "SELECT COUNT(*) AS n FROM out_t", "-o", "jsonl").must(t, 0)
	if r.stdout != `{"n":3}`+"\n" {
		t.Errorf("%s", r.stdout)
	}
}

// TestWindowsOfOldTimes: replaying last year's data gives the same windows as a
// stream and in batch mode, the last one too, whatever the clock says.
func TestWindowsOfOldTimes(t *testing.T) {
	for _, mode := range []string{"streaming", "batch"} {
		t.Run(mode, func(t *testing.T) {
			w := newWorld(t)
			w.produce("src", `{"ts":"2019-05-01 10:00:01"}`, `{"ts":"2019-05-01 10:00:59"}`, `{"ts":"2019-05-01 10:01:30"}`)
			job := w.file("old.sql", "SET 'execution.runtime-mode' = '"+mode+"';\n"+
				boundedTopic("src", "ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND", "")+parquetTable("o", "w STRING, n BIGINT", "", "")+
				"INSERT INTO o SELECT CAST(window_start AS STRING), COUNT(*) FROM TABLE(TUMBLE(TABLE src, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;\n")
			w.run(w.runArgs(job)...).must(t, 0)
			compare(t, "o", w.table("o"), multiset{"w=2019-05-01 10:00:00.000 n=2": 1, "w=2019-05-01 10:01:00.000 n=1": 1})
		})
	}
}

// TestFileWithoutRows: a table that gets no row gets no file, and another
// table's rows make none for it.
func TestFileWithoutRows(t *testing.T) {
	w := newWorld(t)
	w.produce("src", `{"a":1}`)
	job := w.file("none.sql", boundedTopic("src", "a INT", "")+parquetTable("filled", "a INT", "", "")+parquetTable("bare", "a INT", "", "")+
		"INSERT INTO filled SELECT a FROM src;\nINSERT INTO bare SELECT a FROM src WHERE a > 1;\n")
	w.run(w.runArgs(job)...).must(t, 0)
	if filled, bare := tableFiles(t, w.lake+"/filled"), tableFiles(t, w.lake+"/bare"); len(filled) != 1 || len(bare) != 0 {
		t.Errorf("%v, %v", filled, bare)
	}
	r := w.run("sql", "--job", "none", "-e", "SELECT COUNT(*) AS n FROM bare", "-o", "jsonl").must(t, 0)
	if !slices.Equal(strings.Fields(r.stdout), []string{`{"n":0}`}) {
		t.Errorf("%s", r.stdout)
	}
}
