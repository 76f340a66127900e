package compile

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

const firingDDL = `CREATE TABLE clicks (uid BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'c');
CREATE TABLE t (uid BIGINT, h TIMESTAMP(3), n BIGINT) WITH ('connector' = 'filesystem', 'path' = '/lake/t', 'format' = 'parquet');
CREATE TABLE p (uid BIGINT, h TIMESTAMP(3), n BIGINT) WITH ('connector' = 'print');
CREATE TABLE u (uid BIGINT, h TIMESTAMP(3), n BIGINT, PRIMARY KEY (uid, h) NOT ENFORCED) WITH ('connector' = 'upsert');
CREATE TABLE v (uid BIGINT, h TIMESTAMP(3), n BIGINT, PRIMARY KEY (uid) NOT ENFORCED) WITH ('connector' = 'upsert');
`

const firingQuery = ` SELECT uid, window_start, COUNT(*)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR))
GROUP BY uid, window_start, window_end;
`

// TestFiringMessages: what is said where windows cannot fire early or late.
func TestFiringMessages(t *testing.T) {
	var got strings.Builder
	for _, c := range []struct{ sql, name string }{
		{"SET 'table.exec.emit.early-fire.enabled' = 'true';\nSET 'table.exec.emit.early-fire.delay' = '10 s';\nINSERT INTO t" + firingQuery, "into a table of new rows"},
		{"SET 'table.exec.emit.early-fire.enabled' = 'true';\nSET 'table.exec.emit.early-fire.delay' = '10 s';\nINSERT INTO v" + firingQuery, "by another key"},
		{"SET 'table.exec.emit.early-fire.enabled' = 'true';\nINSERT INTO p" + firingQuery, "no delay"},
		{"SET 'table.exec.emit.late-fire.enabled' = 'true';\nSET 'table.exec.emit.late-fire.delay' = '0 s';\nINSERT INTO p" + firingQuery, "no lateness"},
		{"SET 'table.exec.emit.late-fire.enabled' = 'true';\nSET 'table.exec.emit.late-fire.delay' = '2 h';\nSET 'table.exec.emit.allow-lateness' = '1 h';\nINSERT INTO p" + firingQuery, "a delay beyond the lateness"},
		{"SET 'table.exec.emit.early-fire.enabled' = 'true';\nSET 'table.exec.emit.early-fire.delay' = '0 s';\nINSERT INTO p SELECT uid, SESSION_START(ts, INTERVAL '1' HOUR), COUNT(*) FROM clicks GROUP BY uid, SESSION(ts, INTERVAL '1' HOUR);\n", "sessions"},
		{"SET 'table.exec.emit.early-fire.enabled' = 'true';\nSET 'table.exec.emit.early-fire.delay' = '0 s';\nINSERT INTO p SELECT uid, w, SUM(n) OVER (PARTITION BY uid ORDER BY w) FROM (SELECT uid, TUMBLE_ROWTIME(ts, INTERVAL '1' HOUR) AS w, COUNT(*) AS n FROM clicks GROUP BY uid, TUMBLE(ts, INTERVAL '1' HOUR));\n", "OVER"},
		{"SET 'table.exec.mini-batch.enabled' = 'true';\nINSERT INTO p SELECT uid, ts, 1 FROM clicks;\n", "mini-batch"},
		{"INSERT INTO pr SELECT uid, window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE (SELECT uid, PROCTIME() AS q FROM clicks), DESCRIPTOR(q), INTERVAL '1' HOUR)) GROUP BY uid, window_start, window_end;\n", "late rows of processing time"},
		{"SET 'table.exec.emit.late-fire.enabled' = 'true';\nINSERT INTO t SELECT uid, window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE (SELECT uid, PROCTIME() AS q FROM clicks), DESCRIPTOR(q), INTERVAL '1' HOUR)) GROUP BY uid, window_start, window_end;\n", "late firing of processing time, into a table of new rows"},
	} {
		_, ds := Compile([]Source{{"job.sql", firingDDL + "CREATE TABLE pr (uid BIGINT, h TIMESTAMP(3), n BIGINT) WITH ('connector' = 'print', 'window.late-rows' = 'drop');\n" + c.sql}}, Options{Registry: sqltest.Registry()})
		fmt.Fprintf(&got, "== %s\n%s\n", c.name, diag.Renderer{}.String(ds))
	}
	const file = "testdata/firing.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

// TestFiringOfAPlan: what the settings make of a window, where each statement has its
// own.
func TestFiringOfAPlan(t *testing.T) {
	const job = firingDDL + `
SET 'table.exec.emit.early-fire.enabled' = 'true';
SET 'table.exec.emit.early-fire.delay' = '10 s';
INSERT INTO u` + firingQuery + `
SET 'table.exec.emit.late-fire.enabled' = 'true';
SET 'table.exec.emit.late-fire.delay' = '0 s';
SET 'table.exec.state.ttl' = '1 d';
INSERT INTO p` + firingQuery + `
SET 'table.exec.emit.allow-lateness' = '1 h';
INSERT INTO v SELECT uid, MAX(h), SUM(n) FROM (SELECT uid, window_start AS h, COUNT(*) AS n
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY uid, window_start, window_end) GROUP BY uid;
RESET 'table.exec.emit.early-fire.enabled';
RESET 'table.exec.emit.late-fire.enabled';
INSERT INTO t` + firingQuery
	u, ds := Compile([]Source{{"job.sql", job}}, Options{Registry: sqltest.Registry(), Mode: ModeRun})
	if ds.HasErrors() {
		t.Fatal(diag.Renderer{}.String(ds))
	}
	var got []graph.WindowAggregate
	for _, n := range u.Job.Nodes {
		if w, ok := n.Op.(*graph.WindowAggregate); ok {
			got = append(got, *w)
		}
	}
	hour, day := int64(3_600_000), int64(86_400_000)
	want := []struct {
		f        graph.Firing
		lateness int64
	}{
		{graph.Firing{Early: true, EarlyDelay: 10_000}, 0},
		{graph.Firing{Early: true, EarlyDelay: 10_000, Late: true}, day},
		{graph.Firing{Early: true, EarlyDelay: 10_000, Late: true}, hour},
		{graph.Firing{}, 0},
	}
	if len(got) != len(want) {
		t.Fatalf("%d windows", len(got))
	}
	for i := range want {
		if got[i].Firing != want[i].f || got[i].Lateness != want[i].lateness {
			t.Errorf("window %d: %+v, lateness %d; want %+v", i, got[i].Firing, got[i].Lateness, want[i])
		}
	}
	for _, s := range []string{"early=10 s", "late=with each batch, lateness=1 d", "changelog=[I,UB,UA]", "changelog=[I]"} {
		if !strings.Contains(u.Explain.Text, s) {
			t.Errorf("EXPLAIN does not say %q:\n%s", s, u.Explain.Text)
		}
	}
	// A backfill of the same file gives each row once.
	u, ds = Compile([]Source{{"job.sql", "SET 'execution.runtime-mode' = 'batch';" + strings.ReplaceAll(job, "'topic' = 'c'", "'topic' = 'c', 'scan.bounded.mode' = 'latest-offset'")}}, Options{Registry: sqltest.Registry(), Mode: ModeRun})
	if ds.HasErrors() {
		t.Fatal(diag.Renderer{}.String(ds))
	}
	for _, n := range u.Job.Nodes {
		if w, ok := n.Op.(*graph.WindowAggregate); ok && (w.Firing.On() || w.Lateness != 0) {
			t.Errorf("a window fires more than once in batch mode: %+v", w)
		}
	}
}
