package compile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

// mark is a wanted diagnostic: «code|text» in the source marks its span.
type mark struct {
	code string
	span string // line:col-line:col
}

// marked takes marks of the form «code|text» out of a text.
func marked(t *testing.T, text string) (clean string, marks []mark) {
	t.Helper()
	var b strings.Builder
	pos := func() string {
		s := b.String()
		line := strings.Count(s, "\n") + 1
		col := len([]rune(s[strings.LastIndexByte(s, '\n')+1:])) + 1
		return fmt.Sprintf("%d:%d", line, col)
	}
	for {
		before, rest, ok := strings.Cut(text, "«")
		b.WriteString(before)
		if !ok {
			return b.String(), marks
		}
		inside, after, ok := strings.Cut(rest, "»")
		if !ok {
			t.Fatal("a mark is not closed")
		}
		code, body, _ := strings.Cut(inside, "|")
		from := pos()
		b.WriteString(body)
		marks = append(marks, mark{code, from + "-" + pos()})
		text = after
	}
}

func markOf(d *diag.Diagnostic) mark {
	from, to := d.Span.StartPos(), d.Span.EndPos()
	return mark{string(d.Code), fmt.Sprintf("%d:%d-%d:%d", from.Line, from.Col, to.Line, to.Col)}
}

// checkMarks compiles a marked text and compares the diagnostics with the
// marks, in order.
func checkMarks(t *testing.T, text string, mode Mode) diag.List {
	t.Helper()
	clean, want := marked(t, text)
	u, ds := Compile([]Source{{"job.sql", clean}}, Options{Registry: sqltest.Registry(), Mode: mode})
	var got []mark
	for _, d := range ds {
		got = append(got, markOf(d))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("diagnostics\n got %v\nwant %v\n%s", got, want, diag.Renderer{}.String(ds))
	}
	if ds.HasErrors() && u.Job != nil {
		t.Error("there is a job beside errors")
	}
	return ds
}

// TestSixMistakes: a file with six different mistakes reports all six, each
// at its place, and runs nothing.
func TestSixMistakes(t *testing.T) {
	ds := checkMarks(t, `SET «unknown_option|'executon.checkpointing.interval'» = '1min';
CREATE TABLE clicks (
  uid BIGINT, page STRING, «reserved_word|user» STRING
) WITH ('connector' = 'log', 'topic' = 'clicks');
CREATE TABLE good (uid BIGINT, page STRING, n INT) WITH ('connector' = 'log', 'topic' = 'good');
CREATE TABLE sink (uid BIGINT, page STRING) WITH ('connector' = 'print');
CREATE TABLE files (uid BIGINT, 页面 STRING) WITH (
  'connector' = 'filesystem', «unknown_option|'pth'» = '/lake', 'path' = '/lake/x', 'format' = 'parquet');
INSERT INTO sink SELECT «unknown_column|user_id», page FROM good;
INSERT INTO sink SELECT uid, «unknown_function|UPPR»(page) FROM good;
INSERT INTO «column_count|sink» SELECT uid, page, n FROM good;
INSERT INTO sink SELECT «type_mismatch|page», page FROM good WHERE «type_mismatch|n»;
`, ModeRun)
	help := map[string]string{"unknown_column": `did you mean "uid"?`, "unknown_function": `did you mean "UPPER"?`}
	for _, d := range ds {
		if want, ok := help[string(d.Code)]; ok && strings.Join(d.Help, "\n") != want {
			t.Errorf("%s: help %q, want %q", d.Code, d.Help, want)
		}
	}
}

// TestModelMessages are the messages that the design gives as models.
func TestModelMessages(t *testing.T) {
	const ddl = `CREATE TABLE clicks (uid BIGINT, page STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'clicks');
`
	_, ds := Compile([]Source{{"job.sql", ddl + `CREATE TABLE t (uid BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '/lake/t', 'format' = 'parquet');
INSERT INTO t
SELECT uid, COUNT(*)
FROM clicks
GROUP BY uid;
`}}, Options{Registry: sqltest.Registry()})
	golden(t, ds, `job.sql:6:1: error[updating_into_append]: GROUP BY without a window updates rows it has already given, and table "t" (connector "filesystem") only takes new ones
 6 | GROUP BY uid;
   | ^^^^^^^^^^^^
note: job.sql:2:14: the table is declared here
 2 | CREATE TABLE t (uid BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '/lake/t', 'format' = 'parquet');
   |              ^
help: group by window_start and window_end of TUMBLE(TABLE ..., DESCRIPTOR(ts), INTERVAL '1' HOUR)
help: or write to a table that takes updates: connector blackhole, print; with a primary key upsert
help: or merge by key and window with CREATE WIDE TABLE; where the input ends, SET 'execution.runtime-mode' = 'batch'
`)
	_, ds = Compile([]Source{{"job.sql", `CREATE TABLE t (uid BIGINT) WITH ('connector' = 'filesystem', 'path' = '/lake/t', 'format' = 'parquet', 'parquet.compresion' = 'ZSTD');
`}}, Options{Registry: sqltest.Registry(), Mode: ModeCheck})
	golden(t, ds, `job.sql:1:105: error[unknown_option]: unknown option "parquet.compresion" for connector "filesystem"
 1 | ...IGINT) WITH ('connector' = 'filesystem', 'path' = '/lake/t', 'format' = 'parquet', 'parquet.compresion' = 'ZSTD');
   |                                                                                       ^^^^^^^^^^^^^^^^^^^^
help: did you mean "parquet.compression"?
help: all options: millrace connectors describe filesystem
`)
	_, ds = Compile([]Source{{"job.sql", ddl + `CREATE TABLE s (user_id BIGINT) WITH ('connector' = 'print');
INSERT INTO s SELECT user_id FROM (SELECT uid AS user_ids FROM clicks) AS c;
`}}, Options{Registry: sqltest.Registry()})
	golden(t, ds, `job.sql:3:22: error[unknown_column]: column "user_id" not found in "c"
 3 | INSERT INTO s SELECT user_id FROM (SELECT uid AS user_ids FROM clicks) AS c;
   |                      ^^^^^^^
help: did you mean "user_ids"?
`)
}

func golden(t *testing.T, ds diag.List, want string) {
	t.Helper()
	got := strings.TrimRight(diag.Renderer{}.String(ds), "\n") + "\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestEachMistake marks, for one mistake each, the code and the exact span.
func TestEachMistake(t *testing.T) {
	const tables = `CREATE TABLE clicks (uid BIGINT, page STRING, n INT, r ROW<a INT, b STRING>, tags ARRAY<STRING>,
  ts TIMESTAMP(3), ltz TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'clicks');
CREATE TABLE other (uid BIGINT, ts TIMESTAMP(3)) WITH ('connector' = 'log', 'topic' = 'other');
CREATE TABLE p (a BIGINT, b STRING) WITH ('connector' = 'print');
CREATE TABLE daily (uid BIGINT, page STRING, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'filesystem', 'path' = '/x',
  'format' = 'parquet', 'sink.partition-commit.policy.kind' = 'success-file');
CREATE TABLE keyed (uid BIGINT, n BIGINT, PRIMARY KEY (uid) NOT ENFORCED) WITH ('connector' = 'upsert');
`
	for _, c := range []string{
		"INSERT INTO p SELECT c.uid, c.«unknown_column|pag» FROM clicks AS c;",
		"INSERT INTO p SELECT r.a, r.«unknown_field|c» FROM clicks;",
		"INSERT INTO p SELECT uid, tags.«unknown_field|x» FROM clicks;",
		"INSERT INTO p SELECT uid, page FROM «unknown_table|clickz»;",
		"INSERT INTO «unknown_table|q» SELECT 1, 'a';",
		"INSERT INTO p SELECT uid, «type_mismatch|CAST(ts AS INT)» FROM clicks;",
		"INSERT INTO p SELECT uid, CAST(n AS «bad_type|DECIMAL(0, 0)») FROM clicks;",
		"INSERT INTO p SELECT uid, page FROM clicks WHERE «bad_argument|page > n»;",
		"INSERT INTO p SELECT uid, UPPER(«bad_argument|n») FROM clicks;",
		"INSERT INTO p SELECT uid, «unknown_function|NVL»(page, '') FROM clicks;",
		"INSERT INTO p SELECT uid, «not_yet|(SELECT 'a')» FROM clicks;",
		"INSERT INTO p SELECT clicks.uid, page FROM clicks «unbounded_state|LEFT JOIN» other ON TRUE;",
		"INSERT INTO p SELECT clicks.uid, page FROM clicks«unbounded_state|,» other;",
		"INSERT INTO p SELECT uid, page FROM clicks ORDER BY «bounded_only|uid»;",
		"INSERT INTO p SELECT uid, page FROM clicks LIMIT «bounded_only|5»;",
		"«not_replaceable|INSERT OVERWRITE p» SELECT uid, page FROM clicks;",
		"«bounded_only|INSERT OVERWRITE daily» SELECT uid, page, 'd' FROM clicks;",
		"CREATE TABLE far (a BIGINT) WITH ('connector' = 'filesystem', 'path' = 'far://x', 'format' = 'json'); SET 'execution.runtime-mode' = 'batch'; «not_replaceable|INSERT OVERWRITE far» VALUES (1);",
		"SET 'execution.runtime-mode' = 'batch'; INSERT OVERWRITE daily VALUES (1, 'a', 'b'); INSERT INTO «overwrite_twice|daily» VALUES (1, 'a', 'b');",
		"SET 'execution.runtime-mode' = 'batch'; INSERT OVERWRITE daily PARTITION (dt = 'a') VALUES (1, 'a'); INSERT OVERWRITE «overwrite_twice|daily» PARTITION (dt = 'a') VALUES (1, 'a');",
		"INSERT INTO daily PARTITION («bad_partition|x» = '1') SELECT uid, page, 'd' FROM clicks;",
		"INSERT INTO daily PARTITION (dt = «type_mismatch|1») SELECT uid, page FROM clicks;",
		"INSERT INTO daily SELECT uid, page, «nondeterministic|DATE_FORMAT(CURRENT_TIMESTAMP, 'yyyy')» FROM clicks;",
		"INSERT INTO daily SELECT uid, page, «nondeterministic|d» FROM (SELECT uid, page, DATE_FORMAT(CURRENT_TIMESTAMP, 'yyyy') AS d FROM clicks) AS x;",
		"INSERT INTO keyed SELECT «nondeterministic|CAST(RAND() AS BIGINT)», 1 FROM clicks;",
		"INSERT INTO p SELECT uid, page FROM clicks WHERE «clock_in_filter|ts > LOCALTIMESTAMP»;",
		"CREATE VIEW v AS SELECT uid, «untyped_null|NULL» AS x FROM clicks; INSERT INTO p SELECT uid, 'a' FROM v;",
		"CREATE TABLE t2 (a INT, «duplicate_column|a» STRING) WITH ('connector' = 'print'); INSERT INTO p SELECT 1, 'a';",
		"CREATE TABLE t2 (a INT, PRIMARY KEY («unknown_column|b») NOT ENFORCED) WITH ('connector' = 'print'); INSERT INTO p SELECT 1, 'a';",
		"CREATE TABLE t2 (a INT, «bad_key|PRIMARY KEY (a)») WITH ('connector' = 'print'); INSERT INTO p SELECT 1, 'a';",
		"CREATE TABLE t2 (a INT, WATERMARK FOR «bad_watermark|a» AS a) WITH ('connector' = 'print'); INSERT INTO p SELECT 1, 'a';",
		"CREATE TABLE t2 (a INT) PARTITIONED BY («unknown_column|dt») WITH ('connector' = 'print'); INSERT INTO p SELECT 1, 'a';",
		"CREATE TABLE t2 (a INT) WITH ('connector' = «unknown_connector|'kafka'»); INSERT INTO p SELECT 1, 'a';",
		"CREATE TABLE t2 (a INT) WITH ('connector' = 'log', 'topic' = 't', 'scan.startup.mode' = «bad_option|'earliest'»); INSERT INTO p SELECT 1, 'a';",
		"CREATE TABLE t2 (a INT) WITH ('connector' = 'log', 'topic' = 't', 'scan.startup.mode' = «bad_option|'timestamp'»); INSERT INTO p SELECT 1, 'a';",
		"CREATE TABLE «missing_option|t2» (a INT) WITH ('connector' = 'log'); INSERT INTO p SELECT 1, 'a';",
		"CREATE TABLE t2 (a INT) WITH ('connector' = 'print', «no_effect|'sink.parallelism'» = '4'); INSERT INTO t2 SELECT 1;",
		"CREATE TABLE t2 (a INT) WITH ('connector' = 'print', 'sink.parallelism' = «bad_option|'0'»); INSERT INTO p SELECT 1, 'a';",
		"CREATE TABLE t2 (a INT, «unknown_metadata|m» INT METADATA FROM 'x') WITH ('connector' = 'print'); INSERT INTO p SELECT 1, 'a';",
		"CREATE TABLE «partition_commit_policy|t2» (a INT, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'filesystem', 'path' = '/x', 'format' = 'json'); INSERT INTO t2 SELECT 1, 'd';",
		"CREATE TABLE t2 (a BIGINT, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'filesystem', 'path' = '/x', 'format' = 'json', 'sink.partition-commit.policy.kind' = 'success-file', 'sink.partition-commit.trigger' = «bad_option|'partition-time'»); INSERT INTO t2 SELECT uid, 'd' FROM other;",
		"CREATE TABLE «bad_partition|t2» (a INT, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'print'); INSERT INTO p SELECT 1, 'a';",
		"CREATE TABLE t2 (a INT) WITH ('connector' = 'print', 'window.late-rows' = «not_yet|'p'»); INSERT INTO t2 SELECT 1;",
		"CREATE TABLE t2 (a BIGINT, ts AS LOCALTIMESTAMP, «nondeterministic|WATERMARK FOR ts AS ts») WITH ('connector' = 'log', 'topic' = 'x'); INSERT INTO p SELECT a, 'b' FROM t2;",
		"CREATE TABLE t2 (a INT) WITH ('connector' = 'print', «bad_option|'wide.coverage-column'» = 'c'); INSERT INTO p SELECT 1, 'a';",
		"SET 'window.late-rows' = «unknown_table|'late_table'»; INSERT INTO p SELECT uid, MAX(page) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY uid, window_start, window_end;",
		"INSERT INTO p SELECT uid, page FROM clicks; INSERT INTO «topic_both_ways|p» SELECT uid, MAX(page) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY uid, window_start, window_end;",
		"CREATE VIEW v2 AS SELECT «unknown_column|nope» FROM clicks; INSERT INTO p SELECT nope, page FROM v2;",
		"INSERT INTO p WITH q AS (SELECT «unknown_column|nope» FROM clicks) SELECT uid, page FROM clicks;",
		"CREATE WIDE TABLE w («bad_key|PRIMARY KEY (uid)») WINDOW TUMBLE(SIZE => INTERVAL '1' HOUR) WITH ('connector' = 'print') AS UNION OF c TIME ts AS (SELECT uid, page FROM clicks);",
		"CREATE WIDE TABLE w (PRIMARY KEY (uid) NOT ENFORCED) WINDOW TUMBLE(SIZE => INTERVAL '1' HOUR) WITH ('connector' = 'print') AS UNION OF c TIME ts AS (SELECT uid, page FROM clicks), «wide_table|f OFFLINE GENERATION page» = '2024' AS (SELECT uid, n FROM clicks);",
		"CREATE WIDE TABLE w (PRIMARY KEY (uid) NOT ENFORCED) WINDOW TUMBLE(SIZE => INTERVAL '1' HOUR) WITH ('connector' = 'print') AS UNION OF c TIME ts AS (SELECT uid, «not_yet|COUNT(DISTINCT n)» AS a FROM clicks GROUP BY uid);",
		"CREATE WIDE TABLE w (PRIMARY KEY (uid) NOT ENFORCED) WINDOW TUMBLE(SIZE => INTERVAL '1' HOUR) WITH ('connector' = 'print') AS UNION OF c TIME ts AS (SELECT uid, page FROM clicks), d TIME ts AS (SELECT uid, «duplicate_column|page» FROM clicks);",
		"CREATE WIDE TABLE w (PRIMARY KEY (uid) NOT ENFORCED) WINDOW TUMBLE(SIZE => INTERVAL '1' HOUR) WITH ('connector' = 'print') AS UNION OF c TIME ts AS (SELECT uid, COUNT(*) AS c FROM clicks GROUP BY uid, «wide_table|page»);",
		"CREATE WIDE TABLE w (PRIMARY KEY (uid) NOT ENFORCED, dt AS SUBSTRING(page FROM 1 FOR 1)) «bad_partition|PARTITIONED BY (dt)» WINDOW TUMBLE(SIZE => INTERVAL '1' HOUR) WITH ('connector' = 'filesystem', 'path' = '/x', 'format' = 'json', 'sink.partition-commit.policy.kind' = 'success-file') AS UNION OF c TIME ts AS (SELECT uid, page FROM clicks);",
		"SET 'pipeline.name' = 'a'; SET 'pipeline.name' = «conflicting_setting|'b'»; INSERT INTO p SELECT 1, 'a';",
		"SET «no_effect|'state.backend.type'» = 'rocksdb'; INSERT INTO p SELECT 1, 'a';",
		"SET 'table.local-time-zone' = «bad_option|'PST'»; INSERT INTO p SELECT 1, 'a';",
		"«select_in_job|SELECT 1»; INSERT INTO p SELECT 1, 'a';",
		"«statement_in_job|SHOW TABLES»; INSERT INTO p SELECT 1, 'a';",
		"INSERT INTO p SELECT uid, page FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(«row_time|ltz»), INTERVAL '1' HOUR));",
		"INSERT INTO p SELECT uid, page FROM TABLE(HOP(TABLE clicks, DESCRIPTOR(ts), INTERVAL '2' HOUR, «bad_window|INTERVAL '1' HOUR»));",
		"CREATE TABLE «duplicate_table|p» (a INT) WITH ('connector' = 'print'); INSERT INTO p SELECT 1, 'a';",
		"CREATE TABLE t2 (a BIGINT, b BIGINT) WITH ('connector' = 'print'); INSERT INTO t2 SELECT «column_name_mismatch|uid» AS b, uid AS a FROM clicks;",
	} {
		t.Run("", func(t *testing.T) {
			clean, want := marked(t, c)
			_, ds := Compile([]Source{{"ddl.sql", tables}, {"job.sql", clean}}, Options{Registry: sqltest.Registry()})
			var got []mark
			for _, d := range ds {
				got = append(got, markOf(d))
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s\n got %v\nwant %v\n%s", clean, got, want, diag.Renderer{}.String(ds))
			}
		})
	}
}
