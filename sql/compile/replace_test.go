package compile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

const wholeDDL = `
CREATE TABLE clicks (uid BIGINT, page STRING, ts TIMESTAMP(3), tl TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'c');
CREATE TABLE instants (uid BIGINT, tl TIMESTAMP_LTZ(3), WATERMARK FOR tl AS tl) WITH ('connector' = 'log', 'topic' = 'l');
CREATE TABLE h (uid BIGINT, n BIGINT, hr STRING) PARTITIONED BY (hr) WITH (
  'connector' = 'filesystem', 'path' = 'whole://h', 'format' = 'json', 'sink.partition-commit.policy.kind' = 'success-file');
CREATE TABLE plain (uid BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = 'whole://p', 'format' = 'json');
`

// TestResultsThatReplacePartitions: in a stream a window must be one partition of
// a table that each result replaces.
func TestResultsThatReplacePartitions(t *testing.T) {
	const hours = " FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY uid, window_start, window_end;"
	for _, c := range []struct {
		name, sql string
		code      diag.Code
	}{
		{"an hour by hours", "INSERT INTO h SELECT uid, COUNT(*), DATE_FORMAT(window_start, 'yyyyMMddHH')" + hours, ""},
		{"an hour by its end", "INSERT INTO h SELECT uid, COUNT(*), CAST(window_end AS STRING)" + hours, ""},
		{"with HAVING", "INSERT INTO h SELECT uid, n, DATE_FORMAT(s, 'yyyy-MM-dd HH') FROM (SELECT uid, COUNT(*) AS n, window_start AS s" + hours[:len(hours)-1] + " HAVING COUNT(*) > 1) WHERE n > 2;", ""},
		{"an hour by days", "INSERT INTO h SELECT uid, COUNT(*), DATE_FORMAT(window_start, 'yyyyMMdd')" + hours, diag.CodeNotReplaceable},
		{"an hour by hours of the day", "INSERT INTO h SELECT uid, COUNT(*), DATE_FORMAT(window_start, 'HH')" + hours, diag.CodeNotReplaceable},
		{"by another column", "INSERT INTO h SELECT 1, COUNT(*), CAST(uid AS STRING)" + hours, diag.CodeNotReplaceable},
		{"rows as they are", "INSERT INTO h SELECT uid, 1, page FROM clicks;", diag.CodeNotReplaceable},
		{"no partition", "INSERT INTO plain SELECT uid, COUNT(*)" + hours, diag.CodeNotReplaceable},
		{"windows that overlap, by their start", "INSERT INTO h SELECT uid, COUNT(*), DATE_FORMAT(window_start, 'yyyyMMddHHmm') FROM TABLE(HOP(TABLE clicks, DESCRIPTOR(ts), INTERVAL '10' MINUTE, INTERVAL '1' HOUR)) GROUP BY uid, window_start, window_end;", ""},
		{"windows that grow, by their start", "INSERT INTO h SELECT uid, COUNT(*), DATE_FORMAT(window_start, 'yyyyMMddHHmm') FROM TABLE(CUMULATE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '10' MINUTE, INTERVAL '1' HOUR)) GROUP BY uid, window_start, window_end;", diag.CodeNotReplaceable},
		{"two queries", "INSERT INTO h SELECT uid, COUNT(*), DATE_FORMAT(window_start, 'yyyyMMddHH')" + hours + "INSERT INTO h SELECT 2 * uid, COUNT(*), DATE_FORMAT(window_start, 'yyyyMMddHH')" + hours, diag.CodeOverwriteTwice},
		{"an hour that comes twice", "SET 'table.local-time-zone' = 'Europe/Berlin'; INSERT INTO h SELECT uid, COUNT(*), DATE_FORMAT(window_start, 'yyyyMMddHH') FROM TABLE(TUMBLE(TABLE instants, DESCRIPTOR(tl), INTERVAL '1' HOUR)) GROUP BY uid, window_start, window_end;", diag.CodeNotReplaceable},
		{"a zone without summer time", "SET 'table.local-time-zone' = 'Asia/Shanghai'; INSERT INTO h SELECT uid, COUNT(*), DATE_FORMAT(window_start, 'yyyyMMddHH') FROM TABLE(TUMBLE(TABLE instants, DESCRIPTOR(tl), INTERVAL '1' HOUR)) GROUP BY uid, window_start, window_end;", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, found := Compile([]Source{{Name: "job.sql", Text: wholeDDL + c.sql}}, Options{Registry: sqltest.Registry(), Mode: ModeRun})
			var got []diag.Code
			for _, d := range found {
				if d.Severity == diag.Error {
					got = append(got, d.Code)
				}
			}
			switch {
			case c.code == "" && len(got) > 0:
				t.Fatalf("refused: %v", found)
			case c.code != "" && (len(got) == 0 || got[0] != c.code):
				t.Fatalf("found %v, want %s: %v", got, c.code, found)
			}
		})
	}
}

// TestSecretsAreNotShown: excerpts hide the values of secret options, also of
// misspelled ones, and point at the right places all the same.
func TestSecretsAreNotShown(t *testing.T) {
	_, found := Compile([]Source{{Name: "job.sql", Text: "CREATE TABLE c (a INT) WITH ('connector' = 'log', 'token' = 'gehéim', 'tokn' = 'x1', 'topc' = 't');\nINSERT INTO c SELECT 1;"}},
		Options{Registry: sqltest.Registry(), Mode: ModeRun})
	text := diag.Renderer{Width: 200}.String(found)
	for _, secret := range []string{"geh", "x1"} {
		if strings.Contains(text, secret) {
			t.Errorf("%q is shown:\n%s", secret, text)
		}
	}
	if !strings.Contains(text, "'topc' = 't'") || !strings.Contains(text, "unknown option \"tokn\"") {
		t.Errorf("too little is shown:\n%s", text)
	}
}

// TestOverwrittenTablesAreBehindExchanges: whatever reaches a table that is
// replaced whole goes through an exchange, of lanes and of stages.
func TestOverwrittenTablesAreBehindExchanges(t *testing.T) {
	const ddl = `
SET 'execution.runtime-mode' = 'batch';
CREATE TABLE a (uid BIGINT, page STRING) WITH ('connector' = 'log', 'topic' = 'a', 'scan.bounded.mode' = 'latest-offset');
CREATE TABLE b (uid BIGINT, page STRING) WITH ('connector' = 'log', 'topic' = 'b', 'scan.bounded.mode' = 'latest-offset');
CREATE TABLE o (uid BIGINT, n BIGINT, dt STRING) PARTITIONED BY (dt) WITH (
  'connector' = 'filesystem', 'path' = '/o', 'format' = 'json', 'sink.partition-commit.policy.kind' = 'success-file');
`
	for _, c := range []struct {
		name, sql string
		keys      string // of the exchange right before the sink
		static    int
	}{
		{"rows", "INSERT OVERWRITE o SELECT uid, 1, page FROM a;", "[2]", 0},
		{"a given partition", "INSERT OVERWRITE o PARTITION (dt = 'x') SELECT uid, 1 FROM a;", "[0]", 1},
		{"rows of two topics", "INSERT OVERWRITE o SELECT uid, 1, page FROM a UNION ALL SELECT uid, 2, page FROM b;", "[2]", 0},
		{"rows and sums", "INSERT OVERWRITE o SELECT uid, 1, page FROM a UNION ALL SELECT uid, COUNT(*), 'x' FROM b GROUP BY uid;", "", 0},
		{"rows and sums of one topic", "INSERT OVERWRITE o SELECT uid, 1, page FROM a UNION ALL SELECT uid, COUNT(*), 'x' FROM a GROUP BY uid;", "", 0},
		{"sums", "INSERT OVERWRITE o SELECT uid, COUNT(*), 'x' FROM b GROUP BY uid;", "", 0},
		{"two given partitions", "INSERT OVERWRITE o PARTITION (dt = 'x') SELECT uid, 1 FROM a; INSERT OVERWRITE o PARTITION (dt = 'y') SELECT uid, 1 FROM b;", "[0]", 2},
		{"values", "INSERT OVERWRITE o VALUES (1, 2, 'x'), (3, 4, 'y');", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			u, found := Compile([]Source{{Name: "job.sql", Text: ddl + c.sql}}, Options{Registry: sqltest.Registry(), Mode: ModeRun})
			if found.HasErrors() {
				t.Fatal(found)
			}
			for _, n := range u.Job.Nodes {
				s, ok := n.Op.(*graph.Sink)
				if !ok {
					continue
				}
				if !s.Overwrite || len(s.Static) != c.static {
					t.Errorf("overwrite %v, %d given partitions", s.Overwrite, len(s.Static))
				}
				keys := ""
				for _, in := range n.Inputs {
					if ex, ok := u.Job.Nodes[in].Op.(*graph.Exchange); ok {
						keys += fmt.Sprint(ex.Keys)
					}
				}
				if keys != c.keys {
					t.Errorf("exchanges by %q, want %q", keys, c.keys)
				}
			}
		})
	}
}
