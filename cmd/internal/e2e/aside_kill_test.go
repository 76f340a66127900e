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

// asideJob announces days by the watermark; rows that come for one which is announced go
// to a table of their own.
const asideJob = `
CREATE TABLE visits (id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'visits',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE days (id BIGINT, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'filesystem', 'format' = 'parquet', 'path' = '${OUT}/days',
  'sink.rolling-policy.rollover-interval' = '200 ms', 'sink.partition-commit.trigger' = 'partition-time',
  'sink.partition-commit.delay' = '1 d', 'sink.partition-commit.policy.kind' = 'success-file',
  'sink.late-data' = 'side-table', 'sink.late-data.path' = '${OUT}/days_late');
INSERT INTO days SELECT id, DATE_FORMAT(ts, 'yyyy-MM-dd') FROM visits;
`

// visitsOf are records of a day of January 2024.
func visitsOf(day, first, count int) (records []string, rows multiset) {
	rows = multiset{}
	for id := first; id < first+count; id++ {
		records = append(records, fmt.Sprintf(`{"id":%d,"ts":"2024-01-%02d 12:00:00"}`, id, day))
		rows[fmt.Sprintf("id=%d dt=2024-01-%02d", id, day)]++
	}
	return records, rows
}

// asideWorld has a job whose first two days are announced, and rows of which the job has
// seen nothing: want and late are what both tables have in the end.
func asideWorld(t *testing.T) (w *world, job string, want, late multiset) {
	t.Helper()
	w = faultyWorld(t)
	w.run("topics", "create", "visits").must(t, 0)
	job = w.file("aside.sql", asideJob)
	want, late = multiset{}, multiset{}
	id := 0
	visit := func(into multiset, day, count int) {
		records, rows := visitsOf(day, id, count)
		id += count
		w.produce("visits", records...)
		for r, n := range rows {
			into[r] += n
		}
	}
	visit(want, 1, 20)
	visit(want, 2, 20)
	visit(want, 4, 20)
	p := w.start(w.runArgs(job)...)
	eventuallyOf(t, p, "two days are announced", func() (bool, string) {
		for _, day := range []string{"dt=2024-01-01", "dt=2024-01-02"} {
			if _, err := os.Stat(filepath.Join(w.lake, "days", day, "_SUCCESS")); err != nil {
				return false, err.Error()
			}
		}
		return true, ""
	})
	w.untilAside(p, int64(id), 0)
	p.terminate()
	if code := p.wait(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	visit(late, 1, 15)
	visit(want, 4, 15)
	visit(late, 2, 15)
	return w, job, want, late
}

func (w *world) untilAside(p *process, written, late int64) {
	w.t.Helper()
	w.untilLedger(p, "days", fmt.Sprintf("%d rows written, %d late", written, late), func(l control.TableLedger) bool {
		return l.Written == written && l.Late == late && l.Open == 0
	})
}

// finishAside runs the job until all rows are where they belong, and compares.
func (w *world) finishAside(t *testing.T, what, job string, want, late multiset) {
	t.Helper()
	p := w.start(w.runArgs(job)...)
	w.env = nil // no other process is to fail, or to count
	w.untilAside(p, 75, 30)
	p.terminate()
	if code := p.wait(); code != 0 {
		t.Fatalf("%s: exit code %d\n%s", what, code, p.stderr.String())
	}
	compare(t, what+": days", w.table("days"), want)
	compare(t, what+": days_late", w.table("days_late"), late)
	w.run("ledger", "show", "--check").must(t, 0)
}

// TestKilledWithLateRowsAside kills the process at operations that change the disk, from
// the start of a run that has late rows to their commit: each row is in one of the two
// tables, once.
func TestKilledWithLateRowsAside(t *testing.T) {
	const samples = 8
	w, job, want, late := asideWorld(t)
	count := filepath.Join(w.dir, "count")
	w.faults("count:" + count)
	w.finishAside(t, "no kill", job, want, late)
	b, err := os.ReadFile(count)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(b))
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	for s := range samples {
		at := n*s/samples + rng.IntN(max(n/samples, 1))
		what := fmt.Sprintf("kill at operation %d of %d", at, n)
		w, job, want, late := asideWorld(t)
		w.faults(fmt.Sprintf("mutating:*:%d:KILL", at))
		p := w.start(w.runArgs(job)...)
		w.env = nil
		// It is killed, or does fewer operations this time and gets to the end.
		done := false
		eventually(t, what, func() (bool, string) {
			select {
			case <-p.ended:
				return true, ""
			default:
			}
			l := sums(w.ledger(), "days")
			done = l.Written == 75 && l.Late == 30 && l.Open == 0
			return done, fmt.Sprintf("%+v", l)
		})
		if done {
			p.terminate()
		}
		p.wait()
		w.finishAside(t, what, job, want, late)
		if t.Failed() {
			t.Fatalf("the killed run said: %s", p.stderr.String())
		}
	}
	t.Logf("%d operations", n)
}
