package e2e

import (
	"testing"
	"time"

	"github.com/millrace/millrace/jobs/control"
)

// TestKilledBeforeEveryRoll: a process that never lives as long as a file may
// stay open commits all the same, because the age of an open file counts on
// over restarts.
func TestKilledBeforeEveryRoll(t *testing.T) {
	w := newWorld(t)
	const rows = 2000
	w.produce("clicks", clicks(0, rows)...)
	job := w.file("small.sql", copyJob())
	const roll = 3 * time.Second
	args := w.runArgs(job, "--set", "ROLL=3 s")
	began := time.Now()
	for life := 1; ; life++ {
		p := w.start(args...)
		l := w.untilLedger(p, "out_t", "all rows are read again", func(l control.TableLedger) bool { return l.Read == rows })
		// Long enough to note the age, shorter than the file's.
		hold := time.NewTimer(900 * time.Millisecond)
		select {
		case <-hold.C:
		case <-p.ended:
			t.Fatalf("it ended with %d\n%s", p.state.ExitCode(), p.stderr.String())
		}
		l = sums(w.ledger(), "out_t")
		p.kill()
		if l.Written > 0 {
			t.Logf("committed in life %d, after %v", life, time.Since(began).Round(time.Millisecond))
			break
		}
		if life >= 12 {
			t.Fatalf("after %d lives of a second and %v nothing is committed, although files may stay open for %v only", life, time.Since(began), roll)
		}
	}
	w.run(append(args, "--set", "BOUNDED=latest-offset")...).must(t, 0)
	compare(t, "out_t", w.table("out_t"), clickRows(0, rows))
	w.run("ledger", "show", "--check").must(t, 0)
}
