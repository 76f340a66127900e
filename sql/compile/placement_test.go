package compile

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

const placementDDL = `SET 'execution.runtime-mode' = 'streaming';
SET 'parallelism.default' = '3';
CREATE TABLE clicks (uid BIGINT, page STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'clicks');
CREATE TABLE visits (uid BIGINT, page STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'visits');
CREATE TABLE p (uid BIGINT, n BIGINT) WITH ('connector' = 'print');
`

// placementOf is what EXPLAIN says of a statement.
func placementOf(t *testing.T, mode Mode, sql string) string {
	t.Helper()
	o := Options{Registry: sqltest.Registry(), Mode: mode}
	if mode == ModeSQL {
		o.ResultSink = sqltest.NewCollect()
	}
	u, ds := Compile([]Source{{"ddl.sql", placementDDL}, {"job.sql", sql}}, o)
	if ds.HasErrors() {
		return diag.Renderer{}.String(ds)
	}
	return text(u.Statements[len(u.Statements)-1].Result)
}

// TestExplainPlacement: lanes up to their sinks and exchanges, then the keyed stages.
func TestExplainPlacement(t *testing.T) {
	for _, x := range []struct{ sql, want string }{
		{"INSERT INTO p SELECT uid, 1 FROM clicks WHERE page <> 'x'", `== Placement ==
lane clicks
    0 Source clicks
    1 Filter <- 0
    2 Project <- 1
    3 Sink p <- 2
`},
		{"INSERT INTO p SELECT uid, COUNT(*) FROM (SELECT uid, ts FROM clicks UNION ALL SELECT uid, ts FROM visits) GROUP BY uid, TUMBLE(ts, INTERVAL '1' HOUR)", `== Placement ==
lane clicks
    0 Source clicks
    2 Union <- 0, 1
    3 Exchange parallelism=3 <- 2
lane visits
    1 Source visits
    2 Union <- 0, 1
    3 Exchange parallelism=3 <- 2
keyed stage p/aggregate[uid; TUMBLE(size=1 h)]: 3 tasks, by uid, to disk beyond slot.state-memory
    4 WindowAggregate <- 3
    5 Project <- 4
    6 Sink p <- 5
`},
		{"SELECT n, COUNT(*) FROM (SELECT uid, COUNT(*) AS n FROM clicks GROUP BY uid) GROUP BY n", `== Placement ==
lane clicks
    0 Source clicks
    1 Project <- 0
    2 Exchange parallelism=3 <- 1
keyed stage query/clicks/aggregate[uid]: 3 tasks, by uid, to disk beyond slot.state-memory
    3 GroupAggregate <- 2
    4 Project <- 3
    5 Exchange parallelism=3 <- 4
keyed stage query/aggregate[` + "`COUNT(*)`" + `]: 3 tasks, by n, to disk beyond slot.state-memory
    6 GroupAggregate <- 5
    7 Project <- 6
    8 Sink result <- 7
`},
		{"INSERT INTO p SELECT c.uid, v.uid FROM clicks c JOIN visits v ON c.uid < v.uid", `== Placement ==
lane clicks
    0 Source clicks
    2 Exchange parallelism=1 <- 0
lane visits
    1 Source visits
    3 Exchange parallelism=1 <- 1
keyed stage p/clicks+visits/join[INNER; ]: 1 task
    4 Join <- 2, 3
    5 Project <- 4
    6 Sink p <- 5
`},
	} {
		if got := placementOf(t, ModeSQL, "EXPLAIN PLACEMENT "+x.sql); got != x.want {
			t.Errorf("%s\ngot\n%s\nwant\n%s", x.sql, got, x.want)
		}
		if strings.HasPrefix(x.sql, "SELECT") {
			continue // of no file
		}
		if got, again := placementOf(t, ModeCheck, "EXPLAIN PLACEMENT "+x.sql), placementOf(t, ModeSQL, "EXPLAIN PLACEMENT "+x.sql); got != again {
			t.Errorf("%s\nof a file\n%s\nin the shell\n%s", x.sql, got, again)
		}
	}
	if got := placementOf(t, ModeCheck, "EXPLAIN PLACEMENT SELECT uid FROM clicks"); !strings.Contains(got, "error[statement_in_job]") {
		t.Error(got)
	}
	for sql, want := range map[string]string{
		"EXPLAIN PLACEMENT": "error[bad_argument]: EXPLAIN PLACEMENT needs a statement",
		"EXPLAIN PLACEMENT FOR EACH TABLE t IN (SHOW TABLES) BEGIN INSERT INTO p SELECT uid, 1 FROM `${t}`; END FOR": "error[not_yet]: EXPLAIN of this statement",
	} {
		if got := placementOf(t, ModeSQL, sql); !strings.Contains(got, want) {
			t.Errorf("%s\ngot\n%s\nwant\n%s", sql, got, want)
		}
	}
}

const wideStatement = `CREATE WIDE TABLE w (PRIMARY KEY (uid) NOT ENFORCED) WINDOW TUMBLE(SIZE => INTERVAL '1' HOUR)
WITH ('connector' = 'print') AS UNION OF
  c TIME ts AS (SELECT uid, COUNT(*) AS n FROM clicks GROUP BY uid),
  v TIME ts AS (SELECT uid, page FROM visits)`

// TestExplainWideTable: the plan that fills the table; nothing is declared.
func TestExplainWideTable(t *testing.T) {
	got := placementOf(t, ModeSQL, "EXPLAIN "+wideStatement)
	for _, want := range []string{"== Bound plan ==", "== Optimized plan ==", "branch c", "branch v", "Insert(table=w"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if got := placementOf(t, ModeSQL, "EXPLAIN PLACEMENT "+wideStatement); !strings.Contains(got, "keyed stage w/wide") {
		t.Error(got)
	}
	if got := placementOf(t, ModeSQL, "EXPLAIN "+wideStatement+"; SELECT * FROM w"); !strings.Contains(got, "unknown_table") {
		t.Error(got)
	}
	if got := placementOf(t, ModeSQL, "EXPLAIN "+strings.Replace(wideStatement, "page FROM", "pag FROM", 1)); !strings.Contains(got, "unknown_column") {
		t.Error(got)
	}
}
