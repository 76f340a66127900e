package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

// TestJobEditedBetweenCrashes: filter and columns change while the process is
// dead. The edit takes effect at the resume position: nothing that was
// committed is written again under the new SQL, nothing is lost, and everything
// appended afterwards follows the new SQL alone.
func TestJobEditedBetweenCrashes(t *testing.T) {
	w := newWorld(t)
	const part = 4000
	w.produce("clicks", clicks(0, part)...)
	first := smallJob("id BIGINT, ver INT, k STRING", "SELECT id, 1, k FROM clicks WHERE MOD(id, 5) <> 0", "")
	second := smallJob("id BIGINT, ver INT, k STRING, n INT", "SELECT id, 2, UPPER(k), n FROM clicks WHERE MOD(id, 3) <> 0", "")
	job := w.file("small.sql", first)

	// Some files are committed, more rows are open: then the crash.
	p := w.start(w.runArgs(job, "--set", "ROLL=300 ms")...)
	w.untilLedger(p, "out_t", "a first file is committed", func(l control.TableLedger) bool { return l.Written > 0 })
	w.produce("clicks", clicks(part, part)...)
	w.untilLedger(p, "out_t", "all is read", func(l control.TableLedger) bool { return l.Read == 2*part })
	p.kill()
	// What is visible now is committed or will be resolved as committed.
	committed := ids(w.table("out_t"), "id")
	if len(committed) == 0 {
		t.Fatal("no row is visible although a file was committed")
	}

	w.file("small.sql", second)
	w.produce("clicks", clicks(2*part, part)...)
	p = w.start(w.runArgs(job, "--set", "ROLL=300 ms")...)
	w.untilLedger(p, "out_t", "all is read", func(l control.TableLedger) bool { return l.Read == 3*part && l.Written > 0 })
	p.kill()
	last := w.run(w.runArgs(job, "--set", "BOUNDED=latest-offset")...).must(t, 0)
	w.run("ledger", "show", "--check").must(t, 0)

	seen := map[int]string{} // version
	for r, n := range w.table("out_t") {
		fields := map[string]string{}
		for f := range strings.SplitSeq(r, " ") {
			k, v, _ := strings.Cut(f, "=")
			fields[k] = v
		}
		var id int
		if _, err := fmt.Sscan(fields["id"], &id); err != nil {
			t.Fatal(err)
		}
		if n != 1 || seen[id] != "" {
			t.Errorf("record %d is there more than once: %s", id, r)
		}
		seen[id] = fields["ver"]
		want := fmt.Sprintf("id=%d ver=1 k=k%d", id, id%7)
		accepted := id%5 != 0
		if fields["ver"] == "2" {
			want = fmt.Sprintf("id=%d ver=2 k=K%d n=%d", id, id%7, id%100)
			accepted = id%3 != 0
		}
		if r != want || !accepted {
			t.Errorf("row %q, want %q (its filter accepts it: %v)", r, want, accepted)
		}
	}
	for id := range committed {
		if seen[id] != "1" {
			t.Errorf("record %d was committed by the first version, now it is of version %q", id, seen[id])
		}
	}
	for id := range 3 * part {
		byFirst, bySecond := id%5 != 0, id%3 != 0
		switch {
		case byFirst && bySecond && seen[id] == "":
			t.Errorf("record %d is lost: both versions accept it", id)
		case id >= 2*part && bySecond && seen[id] != "2":
			t.Errorf("record %d came after the edit, but is of version %q", id, seen[id])
		case id >= 2*part && !bySecond && seen[id] != "":
			t.Errorf("record %d came after the edit, which filters it", id)
		}
	}
	if t.Failed() {
		t.Logf("the last run said:\n%s", last.stderr)
	}
}
