package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

// faultyWorld is a world of the binary that can be made to fail.
func faultyWorld(t testing.TB) *world {
	w := newWorld(t)
	w.bin = millraceWithFaults(t)
	return w
}

// faults sets the rules for the processes started from here on.
func (w *world) faults(rules ...string) {
	w.env = []string{"MILLRACE_FAULTS=" + strings.Join(rules, ";")}
}

// faultJob has a lane with partitions and a keyed stage: every kind of write
// that a job makes.
const faultJob = `
CREATE TABLE clicks (id BIGINT, k STRING, n INT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH (
  'connector' = 'log', 'topic' = 'clicks', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601');
CREATE TABLE out_t (id BIGINT, n INT, k STRING) PARTITIONED BY (k) WITH (
  'connector' = 'filesystem', 'path' = '${OUT}/out_t', 'format' = 'parquet', 'parquet.compression' = 'SNAPPY',
  'sink.partition-commit.policy.kind' = 'success-file');
INSERT INTO out_t SELECT id, n, k FROM clicks;
CREATE TABLE per_minute (window_start TIMESTAMP(3), window_end TIMESTAMP(3), c BIGINT, s BIGINT) WITH (
  'connector' = 'filesystem', 'path' = '${OUT}/per_minute', 'format' = 'parquet', 'parquet.compression' = 'SNAPPY');
INSERT INTO per_minute SELECT window_start, window_end, COUNT(*), SUM(n)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
`

const faultRows = 300

// fillFaultTopic appends rows over ten minutes of event time, ten of them dead.
func (w *world) fillFaultTopic() {
	w.t.Helper()
	var lines []string
	for i := range faultRows {
		if i%30 == 7 {
			lines = append(lines, `{"id":"broken"}`)
			continue
		}
		lines = append(lines, fmt.Sprintf(`{"id":%d,"k":"k%d","n":%d,"ts":"2024-05-01T08:%02d:%02dZ"}`, i, i%3, i%100, i/30, i%30))
	}
	w.produce("clicks", lines...)
}

// checkFaultTables compares both tables and the ledger with what was appended.
func (w *world) checkFaultTables() {
	w.t.Helper()
	rows, minutes := multiset{}, multiset{}
	type sum struct{ c, s int }
	var perMinute [faultRows / 30]sum
	for i := range faultRows {
		if i%30 == 7 {
			continue
		}
		rows[fmt.Sprintf("id=%d n=%d k=k%d", i, i%100, i%3)]++
		perMinute[i/30].c++
		perMinute[i/30].s += i % 100
	}
	const start = 1714550400 // 2024-05-01T08:00:00Z
	for m, p := range perMinute {
		minutes[fmt.Sprintf("window_start=%d window_end=%d c=%d s=%d", (start+60*m)*1e6, (start+60*m+60)*1e6, p.c, p.s)]++
	}
	compare(w.t, "out_t", w.table("out_t"), rows)
	compare(w.t, "per_minute", w.table("per_minute"), minutes)
	w.run("ledger", "show", "--check").must(w.t, 0)
	var got struct{ Tables []control.TableLedger }
	w.ask(&got, "ledger", "show")
	if s := sums(got.Tables, "out_t"); s.Read != faultRows || s.Written != faultRows-10 || s.Dead != 10 {
		w.t.Errorf("ledger: %+v", s)
	}
	if s := sums(got.Tables, "per_minute"); s.Read != faultRows || s.Folded+s.Dead != faultRows {
		w.t.Errorf("ledger: %+v", s)
	}
	w.run("log", "verify").must(w.t, 0)
}

// mutations is how many operations that change the disk a run of faultJob makes.
func mutations(t *testing.T) int {
	w := faultyWorld(t)
	w.fillFaultTopic()
	job := w.file("faults.sql", faultJob)
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
	w.checkFaultTables()
	return n
}

// faultRun lets operation i of a run go wrong, then runs the job again without
// faults, to its end; whatever the first run did, the tables must be right.
func faultRun(t *testing.T, i int, how string) {
	t.Helper()
	w := faultyWorld(t)
	w.fillFaultTopic()
	job := w.file("faults.sql", faultJob)
	w.faults(fmt.Sprintf("mutating:*:%d:%s", i, how))
	first := w.run(w.runArgs(job)...)
	switch {
	case how == "KILL" && first.code != -1 && first.code != 0:
		t.Errorf("operation %d, %s: exit code %d\n%s", i, how, first.code, first.stderr)
	case how != "KILL" && first.code == 2:
		t.Errorf("operation %d, %s: an error of the disk is no fault of the input: exit code 2\n%s", i, how, first.stderr)
	case how != "KILL" && strings.Contains(first.stderr, "panic"):
		t.Errorf("operation %d, %s: panic\n%s", i, how, first.stderr)
	}
	w.env = nil
	second := w.run(w.runArgs(job)...)
	if second.code != 0 {
		t.Errorf("operation %d, %s: the run afterwards ends with %d\nthe first said: %s\nthe second: %s", i, how, second.code, first.stderr, second.stderr)
		return
	}
	w.checkFaultTables()
	if t.Failed() {
		t.Fatalf("operation %d, %s: the first run ended with %d and said:\n%s\nthe second:\n%s", i, how, first.code, first.stderr, second.stderr)
	}
}

// TestEveryOperationFails takes a sample of the operations that a run makes and
// lets each fail with EIO, find the disk full, or be the moment of a SIGKILL.
func TestEveryOperationFails(t *testing.T) {
	n := mutations(t)
	const samples = 18
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	hows := []string{"EIO", "KILL", "ENOSPC"}
	for s := range samples {
		// One from each stretch, so that every phase of a run is met.
		lo, hi := n*s/samples, n*(s+1)/samples
		faultRun(t, lo+rng.IntN(max(hi-lo, 1)), hows[s%len(hows)])
		if t.Failed() {
			t.Fatalf("a run makes %d operations that change the disk", n)
		}
	}
}

// TestEveryOperationFailsTorture does not sample.
func TestEveryOperationFailsTorture(t *testing.T) {
	if !torture() {
		t.Skip("set MILLRACE_TORTURE=1")
	}
	n := mutations(t)
	for i := range n {
		for _, how := range []string{"EIO", "KILL", "ENOSPC"} {
			t.Run(fmt.Sprintf("%s at %d of %d", how, i, n), func(t *testing.T) { faultRun(t, i, how) })
		}
	}
	keepOutcome(t, fmt.Sprintf("| each of %d operations fails with EIO, ENOSPC, SIGKILL | %s | | | | | %s |", n, commit(), map[bool]string{false: "every row exactly once", true: "FAILED"}[t.Failed()]))
}
