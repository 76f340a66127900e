package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

// lateJob counts by minute; what comes too late goes to a table of its own.
const lateJob = `
SET 'execution.checkpointing.interval' = '20 ms';
CREATE TABLE clicks (id BIGINT, k STRING, n INT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'log', 'topic' = 'clicks', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601');
CREATE TABLE late_clicks (id BIGINT, n INT, ts TIMESTAMP_LTZ(3)) WITH (
  'connector' = 'filesystem', 'path' = '${OUT}/late_clicks', 'format' = 'parquet', 'parquet.compression' = 'SNAPPY');
CREATE TABLE per_minute (window_start TIMESTAMP(3), c BIGINT, s BIGINT) WITH (
  'connector' = 'filesystem', 'path' = '${OUT}/per_minute', 'format' = 'parquet', 'parquet.compression' = 'SNAPPY',
  'window.late-rows' = 'late_clicks');
INSERT INTO per_minute SELECT window_start, COUNT(*), SUM(n)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) WHERE n <> 13 GROUP BY window_start, window_end;
`

const lateRows = 240

// lateLine is row i: one a second, but for every seventh, which is of the minute
// before the one that its neighbors are of.
func lateLine(i int) (line string, second int) {
	if second = i; i%7 == 3 && i > 120 {
		second = i - 60 - i%60
	}
	return fmt.Sprintf(`{"id":%d,"k":"k","n":%d,"ts":"2024-05-01T08:%02d:%02dZ"}`, i, i%50, second/60, second%60), second
}

func (w *world) fillLateTopic() {
	w.t.Helper()
	var lines []string
	for i := range lateRows {
		line, _ := lateLine(i)
		lines = append(lines, line)
	}
	w.produce("clicks", lines...)
}

// checkLateTables compares both tables with the rule: a row is late when a row
// before it is at or past the end of its minute.
func (w *world) checkLateTables(what string) {
	w.t.Helper()
	const start = 1714550400 // 2024-05-01T08:00:00Z
	type sum struct{ c, s int }
	minutes, late, highest := map[int]sum{}, multiset{}, -1
	filtered := 0
	for i := range lateRows {
		_, second := lateLine(i)
		switch minute := second / 60; {
		case i%50 == 13:
			filtered++
		case highest >= minute*60+60:
			late[fmt.Sprintf("id=%d n=%d ts=%d", i, i%50, (start+second)*1e6)]++
		default:
			m := minutes[minute]
			minutes[minute] = sum{m.c + 1, m.s + i%50}
		}
		highest = max(highest, second)
	}
	want := multiset{}
	for m, s := range minutes {
		want[fmt.Sprintf("window_start=%d c=%d s=%d", (start+60*m)*1e6, s.c, s.s)]++
	}
	if len(late) < 10 {
		w.t.Fatalf("only %d rows are late", len(late))
	}
	compare(w.t, what+": per_minute", w.table("per_minute"), want)
	compare(w.t, what+": late_clicks", w.table("late_clicks"), late)
	w.run("ledger", "show", "--check").must(w.t, 0)
	var got struct{ Tables []control.TableLedger }
	w.ask(&got, "ledger", "show")
	n := int64(len(late))
	if s := sums(got.Tables, "per_minute"); s.Read != lateRows || s.Late != n || s.Filtered != int64(filtered) || s.Folded != lateRows-n-int64(filtered) || s.Dead != 0 {
		w.t.Errorf("%s: ledger of per_minute: %+v", what, s)
	}
	if s := sums(got.Tables, "late_clicks"); s.Read != lateRows || s.Written != n || s.Filtered != lateRows-n || s.Dead != 0 {
		w.t.Errorf("%s: ledger of late_clicks: %+v", what, s)
	}
}

// TestLateRowsIntoATable: each row is in the window or in the table of late rows,
// once, also when the process is killed at operations that change the disk.
func TestLateRowsIntoATable(t *testing.T) {
	const samples = 8
	w := faultyWorld(t)
	w.fillLateTopic()
	job := w.file("late.sql", lateJob)
	count := filepath.Join(w.dir, "count")
	w.faults("count:" + count)
	w.run(w.runArgs(job)...).must(t, 0)
	b, err := os.ReadFile(count)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	w.env = nil
	w.checkLateTables("no kill")
	rng := rand.New(rand.NewPCG(5, uint64(n)))
	for s := range samples {
		at := n*s/samples + rng.IntN(max(n/samples, 1))
		what := fmt.Sprintf("kill at operation %d of %d", at, n)
		w := faultyWorld(t)
		w.fillLateTopic()
		job := w.file("late.sql", lateJob)
		w.faults(fmt.Sprintf("mutating:*:%d:KILL", at))
		killed := w.run(w.runArgs(job)...)
		w.env = nil
		if r := w.run(w.runArgs(job)...); r.code != 0 {
			t.Fatalf("%s: the next run ends with %d: %s\nthe killed one said: %s", what, r.code, r.stderr, killed.stderr)
		}
		w.checkLateTables(what)
		if t.Failed() {
			t.Fatalf("the killed run said: %s", killed.stderr)
		}
	}
	t.Logf("%d operations", n)
}
