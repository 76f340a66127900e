package compile

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/sqltest"
)

// corrected is a wide table by hours with an option, which may be marked.
func corrected(lateness, partition, path, option string) string {
	return `CREATE TABLE clicks (uid BIGINT, page STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'c', 'scan.bounded.mode' = 'latest-offset');
CREATE WIDE TABLE w (PRIMARY KEY (uid) NOT ENFORCED, hr AS DATE_FORMAT(window_start, '` + partition + `')) PARTITIONED BY (hr)
WINDOW TUMBLE(SIZE => INTERVAL '1' HOUR) ` + lateness + `
WITH (` + path + `, ` + option + `)
AS UNION OF c TIME ts AS (SELECT uid, COUNT(*) AS n FROM clicks GROUP BY uid);
`
}

const (
	tenMinutes = "ALLOWED LATENESS INTERVAL '10' MINUTE"
	onRequest  = "'connector' = 'filesystem', 'path' = '/w', 'format' = 'json', 'sink.partition-commit.policy.kind' = 'success-file'"
	every      = "'wide.correction-interval' = '5 min'"
)

// TestCorrectionInterval: a wide table whose windows are published again replaces the
// partitions of a table that can be replaced on request, too. In batch mode and in a
// preview each window goes out once.
func TestCorrectionInterval(t *testing.T) {
	for _, c := range []struct {
		name, sql string
		mode      Mode
		correct   int64
		replace   connector.ReplaceMode
	}{
		{"on request", corrected(tenMinutes, "yyyyMMddHH", onRequest, every), ModeRun, 300_000, connector.ReplaceResults},
		{"every result", corrected(tenMinutes, "yyyyMMddHH", strings.Replace(onRequest, "/w", "whole://w", 1), every), ModeRun, 300_000, connector.ReplaceResults},
		{"in batch mode", "SET 'execution.runtime-mode' = 'batch';\n" + corrected(tenMinutes, "yyyyMMddHH", onRequest, every), ModeRun, 0, connector.ReplaceResults},
		{"without the option", corrected(tenMinutes, "yyyyMMddHH", onRequest, "'lane.on-error' = 'drop'"), ModeRun, 0, connector.ReplaceOnRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, ds := Compile([]Source{{"job.sql", c.sql}}, Options{Registry: sqltest.Registry(), Mode: c.mode})
			if ds.HasErrors() {
				t.Fatal(ds)
			}
			for _, n := range u.Job.Nodes {
				switch op := n.Op.(type) {
				case *graph.WideMerge:
					if op.Correct != c.correct {
						t.Errorf("corrected every %d ms, want %d", op.Correct, c.correct)
					}
				case *graph.Sink:
					if op.ReplaceMode() != c.replace {
						t.Errorf("replace mode %v, want %v", op.ReplaceMode(), c.replace)
					}
				}
			}
			if shown := strings.Contains(u.Explain.Text, "corrected every 5 min"); shown != strings.Contains(c.sql, every) {
				t.Errorf("EXPLAIN:\n%s", u.Explain.Text)
			}
		})
	}
}

// TestCorrectionIntervalMessages are what is wrong with the option, at its place.
func TestCorrectionIntervalMessages(t *testing.T) {
	for name, text := range map[string]string{
		"a table that only grows":   corrected(tenMinutes, "yyyyMMddHH", strings.Replace(onRequest, "/w", "far://w", 1), "«not_replaceable|'wide.correction-interval'» = '5 min'"),
		"two windows, a partition":  strings.Replace(corrected(tenMinutes, "yyyyMMdd", onRequest, every), "TABLE w (", "TABLE «not_replaceable|w» (", 1),
		"no lateness":               corrected("", "yyyyMMddHH", onRequest, "«bad_option|'wide.correction-interval'» = '5 min'"),
		"zero":                      corrected(tenMinutes, "yyyyMMddHH", onRequest, "'wide.correction-interval' = «bad_option|'0 s'»"),
		"no duration":               corrected(tenMinutes, "yyyyMMddHH", onRequest, "'wide.correction-interval' = «bad_option|'often'»"),
		"a table that is not wide":  "CREATE TABLE x (a INT) WITH ('connector' = 'print', «bad_option|'wide.correction-interval'» = '5 min');",
		"the generations' time-out": corrected(tenMinutes, "yyyyMMddHH", onRequest, "«bad_option|'wide.offline-timeout'» = '5 min'"),
	} {
		t.Run(name, func(t *testing.T) {
			ds := checkMarks(t, text, ModeCheck)
			if name == "a table that only grows" {
				golden(t, ds, `job.sql:4:128: error[not_replaceable]: 'wide.correction-interval' publishes whole windows again, and table "w" takes new rows alone
 4 | ...w', 'format' = 'json', 'sink.partition-commit.policy.kind' = 'success-file', 'wide.correction-interval' = '5 min')
   |                                                                                 ^^^^^^^^^^^^^^^^^^^^^^^^^^
help: what is far stays as it is
help: without it each window is written once, when ALLOWED LATENESS has passed
help: tables of connector hive, filesystem (local) and clickhouse with 'sink.commit-method' = 'replace' replace table partitions
`)
			}
		})
	}
}
