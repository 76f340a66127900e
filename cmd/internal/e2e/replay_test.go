package e2e

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

// TestDeadReplayUnderKills replays dead letters through corrected SQL, with a
// SIGKILL at many places of the replay: each row is written once, however often
// the replay begins again.
func TestDeadReplayUnderKills(t *testing.T) {
	w := faultyWorld(t)
	const rows = 300
	want := multiset{}
	var lines []string
	for id := range rows {
		n := fmt.Sprint(id % 100)
		if id%3 == 0 {
			n = fmt.Sprintf(`"x%d"`, id%100)
		}
		lines = append(lines, fmt.Sprintf(`{"id":%d,"k":"k%d","n":%s}`, id, id%7, n))
		want[fmt.Sprintf("id=%d k=k%d n=%d", id, id%7, id%100)]++
	}
	w.produce("clicks", lines...)
	job := w.file("small.sql", copyJob())
	w.run(w.runArgs(job, "--set", "BOUNDED=latest-offset")...).must(t, 0)
	if n := w.table("out_t").total(); n != 200 {
		t.Fatalf("%d rows before the replay, want 200", n)
	}
	fixed := w.file("fixed/small.sql",
		"CREATE TABLE clicks (id BIGINT, k STRING, n STRING) WITH ('connector' = 'log', 'topic' = 'clicks', 'format' = 'json');\n"+
			"CREATE TABLE out_t (id BIGINT, k STRING, n INT) WITH ('connector' = 'filesystem', 'path' = '${OUT}/out_t', 'format' = 'parquet', 'parquet.compression' = 'SNAPPY');\n"+
			"INSERT INTO out_t SELECT id, k, CAST(REPLACE(n, 'x', '') AS INT) FROM clicks;\n")
	replay := []string{"dead", "replay", "out_t", fixed, "--set", "OUT=" + w.lake}
	kills := 0
	for at := 4; ; at += 5 {
		w.faults(fmt.Sprintf("mutating:*:%d:KILL", at))
		if r := w.run(replay...); r.code == 0 {
			break // it makes fewer operations
		} else if kills++; r.code != -1 {
			t.Fatalf("killed at operation %d: exit code %d\n%s", at, r.code, r.stderr)
		}
	}
	if kills < 4 {
		t.Errorf("%d kills; the replay makes too few operations for this test", kills)
	}
	w.env = nil
	w.run(replay...).must(t, 0)
	compare(t, "out_t", w.table("out_t"), want)
	w.run("ledger", "show", "--check").must(t, 0)
	var got struct{ Tables []control.TableLedger }
	w.ask(&got, "ledger", "show", "out_t")
	var replayed int64
	for _, l := range got.Tables {
		replayed += l.Replayed
	}
	if s := sums(got.Tables, "out_t"); s.Dead != 100 || s.Written != 200 || replayed != 100 {
		t.Errorf("ledger: %+v, replayed %d", s, replayed)
	}
	var dead struct{ Records []control.DeadRecord }
	w.ask(&dead, "dead", "ls", "out_t")
	for _, d := range dead.Records {
		if !d.Replayed {
			t.Fatalf("%d:%d is not marked as replayed", d.Partition, d.Offset)
		}
	}
	if len(dead.Records) != 100 {
		t.Errorf("%d dead letters, want 100", len(dead.Records))
	}
}
