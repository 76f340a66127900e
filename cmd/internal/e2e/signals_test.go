package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

// TestFirstSIGTERMCommits: the first signal finishes what is open, commits it,
// and the process ends with 0; nothing is read again afterwards.
func TestFirstSIGTERMCommits(t *testing.T) {
	w := newWorld(t)
	w.produce("clicks", clicks(0, 500)...)
	job := w.file("small.sql", copyJob())
	// Files would stay open for an hour.
	p := w.start(w.runArgs(job, "--set", "ROLL=1 h")...)
	w.untilLedger(p, "out_t", "all rows are in open files", func(l control.TableLedger) bool { return l.Read == 500 && l.Open == 500 })
	if rows := w.table("out_t"); len(rows) != 0 {
		t.Errorf("%d rows are visible in files that are not committed", rows.total())
	}
	p.terminate()
	if code := p.wait(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	compare(t, "out_t", w.table("out_t"), clickRows(0, 500))
	w.run("ledger", "show", "--check").must(t, 0)
	var got struct{ Tables []control.TableLedger }
	w.ask(&got, "ledger", "show", "out_t")
	if s := sums(got.Tables, "out_t"); s.Written != 500 || s.Open != 0 || s.Read != 500 {
		t.Errorf("ledger: %+v", s)
	}
	// A bounded run from here finds nothing to do and writes no file.
	before := len(tableFiles(t, w.lake))
	w.run(w.runArgs(job, "--set", "BOUNDED=latest-offset")...).must(t, 0)
	if after := len(tableFiles(t, w.lake)); after != before {
		t.Errorf("%d files, %d before: a run without input wrote", after, before)
	}
}

// TestSecondSIGTERMLeavesAtOnce: 143, and nothing is lost.
func TestSecondSIGTERMLeavesAtOnce(t *testing.T) {
	w := newWorld(t)
	w.bin = millraceWithFaults(t)
	w.produce("clicks", clicks(0, 500)...)
	job := w.file("small.sql", copyJob())
	// The first signal cannot be obeyed: the rename to a final name never returns.
	w.faults("rename:part-*:0:HANG:all")
	p := w.start(w.runArgs(job, "--set", "ROLL=1 h")...)
	w.untilLedger(p, "out_t", "all rows are in open files", func(l control.TableLedger) bool { return l.Open == 500 })
	p.terminate()
	eventually(t, "it says that it is stopping", func() (bool, string) { return strings.Contains(p.stderr.String(), "stopping"), p.stderr.String() })
	// One that comes at once is the same request, so it may take two.
	eventually(t, "it leaves", func() (bool, string) { p.terminate(); return !p.running(), p.stderr.String() })
	if code := p.wait(); code != 143 {
		t.Errorf("exit code %d\n%s", code, p.stderr.String())
	}
	w.env = nil
	w.run(w.runArgs(job, "--set", "BOUNDED=latest-offset")...).must(t, 0)
	compare(t, "out_t", w.table("out_t"), clickRows(0, 500))
	w.run("ledger", "show", "--check").must(t, 0)
}

// TestStopThatCannotCommit: exit code 1 and why; the next run has everything.
func TestStopThatCannotCommit(t *testing.T) {
	w := newWorld(t)
	w.bin = millraceWithFaults(t)
	w.produce("clicks", clicks(0, 500)...)
	job := w.file("small.sql", copyJob())
	w.faults("rename:part-*:0:EIO:all")
	p := w.start(w.runArgs(job, "--set", "ROLL=1 h")...)
	w.untilLedger(p, "out_t", "all rows are in open files", func(l control.TableLedger) bool { return l.Open == 500 })
	p.terminate()
	if code := p.wait(); code != 1 || !strings.Contains(p.stderr.String(), "input/output error") || !strings.Contains(p.stderr.String(), "not committed") {
		t.Errorf("exit code %d\n%s", code, p.stderr.String())
	}
	w.env = nil
	w.run(w.runArgs(job, "--set", "BOUNDED=latest-offset")...).must(t, 0)
	compare(t, "out_t", w.table("out_t"), clickRows(0, 500))
	w.run("ledger", "show", "--check").must(t, 0)
}

// TestRunSaysWhatIsOpen: the progress line has the rows in open files and when
// the next file comes; `jobs roll` commits them now.
func TestRunSaysWhatIsOpen(t *testing.T) {
	w := newWorld(t)
	w.produce("clicks", clicks(0, 40)...)
	job := w.file("small.sql", copyJob())
	p := w.start("run", job, "--set", "OUT="+w.lake, "--set", "ROLL=1 h", "--progress", "json")
	w.untilLedger(p, "out_t", "all rows are open", func(l control.TableLedger) bool { return l.Open == 40 })
	eventuallyOf(t, p, "a progress line with 40 open rows and the next file", func() (bool, string) {
		s := p.stderr.String()
		return strings.Contains(s, `"open":40`) && strings.Contains(s, `"next_file_in_ns":3`), s
	})
	var rolled control.Rolled
	w.ask(&rolled, "jobs", "roll", "small")
	if rolled.Rows != 40 || rolled.Files != 1 {
		t.Errorf("jobs roll: %+v", rolled)
	}
	compare(t, "out_t", w.table("out_t"), clickRows(0, 40))
}

// TestSecondOwnerIsRefused: exit 3 and a sentence with the owner's pid; the
// owner does not notice. Other commands go through the owner.
func TestSecondOwnerIsRefused(t *testing.T) {
	w := newWorld(t)
	w.produce("clicks", clicks(0, 10)...)
	job := w.file("small.sql", copyJob())
	p := w.start(w.runArgs(job)...)
	w.untilLedger(p, "out_t", "the owner commits", func(l control.TableLedger) bool { return l.Written == 10 })
	w.run(w.runArgs(job)...).must(t, 3).says(t, fmt.Sprintf("process %d owns the data directory", p.cmd.Process.Pid))
	w.run("log", "verify").must(t, 3).says(t, fmt.Sprint(p.cmd.Process.Pid))
	w.produce("clicks", clicks(10, 10)...)
	w.untilLedger(p, "out_t", "the owner goes on", func(l control.TableLedger) bool { return l.Written == 20 })
	p.terminate()
	if code := p.wait(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	compare(t, "out_t", w.table("out_t"), clickRows(0, 20))
}

// TestFinishedAndFresh: a bounded job that has ended says so when it is run
// again; --fresh is a new generation, refused over rows that are there unless
// --append says that they may be doubled.
func TestFinishedAndFresh(t *testing.T) {
	w := newWorld(t)
	w.produce("clicks", clicks(0, 30)...)
	job := w.file("small.sql", copyJob())
	bounded := w.runArgs(job, "--set", "BOUNDED=latest-offset")
	w.run(bounded...).must(t, 0)
	w.run(bounded...).must(t, 0).says(t, "job small has finished", "--fresh")
	w.run(append(bounded, "--fresh")...).must(t, 2).says(t, "out_t holds 30 rows", "--append")
	compare(t, "out_t", w.table("out_t"), clickRows(0, 30))
	w.run(append(bounded, "--fresh", "--append")...).must(t, 0)
	twice := clickRows(0, 30)
	for r := range twice {
		twice[r] = 2
	}
	compare(t, "out_t", w.table("out_t"), twice)
	w.run("ledger", "show", "--check").must(t, 0)
	// The same base name from another folder is another job, and is refused.
	other := w.file("elsewhere/small.sql", copyJob())
	w.run(w.runArgs(other, "--set", "BOUNDED=latest-offset")...).must(t, 2).says(t, "pipeline.name")
}

// TestMaxDead: more dead rows than --max-dead allows end the run with 1.
func TestMaxDead(t *testing.T) {
	w := newWorld(t)
	w.produce("clicks", append(clicks(0, 10), `{"id":"x"}`, `{"id":"y"}`, `{`)...)
	job := w.file("small.sql", copyJob())
	w.run(w.runArgs(job, "--set", "BOUNDED=latest-offset", "--max-dead", "2")...).must(t, 1).says(t, "dead")
	w.run("ledger", "show", "--check").must(t, 0)
}
