package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

// TestRunBesideServer: a job started beside a server reads the server's log, shows
// what it does, and is stopped with its command; nothing is read twice.
func TestRunBesideServer(t *testing.T) {
	w := newWorld(t)
	server, _ := w.server()
	w.produce("clicks", clicks(0, 300)...)
	job := w.file("small.sql", strings.ReplaceAll(copyJob(), "${OUT}", "${LAKE_DIR}"))
	w.env = append(w.env, "LAKE_DIR="+w.lake) // the server's environment has it not
	p := w.start("run", job, "--set", "ROLL=1 h", "--progress", "json")
	w.untilLedger(p, "out_t", "all rows are in open files", func(l control.TableLedger) bool { return l.Open == 300 })
	eventuallyOf(t, p, "progress is shown", func() (bool, string) {
		s := p.stderr.String()
		return strings.Contains(s, `"open":300`) && strings.Contains(s, fmt.Sprintf("process %d (server)", server.cmd.Process.Pid)), s
	})
	w.run("run", job).must(t, 2).says(t, "job small is running")
	w.run("jobs", "stop", "smal").must(t, 2).says(t, "small")
	w.run("jobs", "stop", "small").must(t, 0)
	if code := p.wait(); code != 0 || !strings.Contains(p.stderr.String(), "300 written") {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	compare(t, "out_t", w.table("out_t"), clickRows(0, 300))

	// A command that is killed takes its job with it: what is open is committed.
	w.produce("clicks", clicks(300, 200)...)
	p = w.start("run", job, "--set", "ROLL=1 h")
	w.untilLedger(p, "out_t", "the next rows are open", func(l control.TableLedger) bool { return l.Open == 200 })
	p.kill()
	eventuallyOf(t, server, "the job ends and commits", func() (bool, string) {
		l := sums(w.ledger(), "out_t")
		return l.Written == 500 && l.Open == 0, fmt.Sprintf("%+v", l)
	})

	// A bounded one ends by itself and reports.
	w.produce("clicks", clicks(500, 100)...)
	report := filepath.Join(w.dir, "report.json")
	w.run("run", job, "--set", "BOUNDED=latest-offset", "--report", report).must(t, 0).says(t, "600 written")
	if b, err := os.ReadFile(report); err != nil || !strings.Contains(string(b), `"rows": 600`) {
		t.Errorf("report: %s, %v", b, err)
	}
	compare(t, "out_t", w.table("out_t"), clickRows(0, 600))
	w.run("ledger", "show", "--check").must(t, 0)
	if !server.running() {
		t.Fatalf("the server ended\n%s", server.stderr.String())
	}
}

// TestServerEndsUnderItsJobs: they finish what is open, and their commands say why
// they ended, with the exit code of the environment.
func TestServerEndsUnderItsJobs(t *testing.T) {
	w := newWorld(t)
	server, _ := w.server()
	w.produce("clicks", clicks(0, 50)...)
	job := w.file("small.sql", copyJob())
	p := w.start(w.runArgs(job, "--set", "ROLL=1 h")...)
	w.untilLedger(p, "out_t", "all rows are open", func(l control.TableLedger) bool { return l.Open == 50 })
	server.terminate()
	if code := server.wait(); code != 0 {
		t.Errorf("exit code of the server %d\n%s", code, server.stderr.String())
	}
	if code := p.wait(); code != 3 || !strings.Contains(p.stderr.String(), "was stopped") {
		t.Errorf("exit code %d\n%s", code, p.stderr.String())
	}
	compare(t, "out_t", w.table("out_t"), clickRows(0, 50))

	// Killed, it can say nothing; the next run has everything.
	server, _ = w.server()
	w.produce("clicks", clicks(50, 50)...)
	p = w.start(w.runArgs(job, "--set", "ROLL=1 h")...)
	w.untilLedger(p, "out_t", "the next rows are open", func(l control.TableLedger) bool { return l.Open == 50 })
	server.kill()
	if code := p.wait(); code != 3 || !strings.Contains(p.stderr.String(), "broke off") {
		t.Errorf("exit code %d\n%s", code, p.stderr.String())
	}
	w.run(w.runArgs(job, "--set", "BOUNDED=latest-offset")...).must(t, 0)
	compare(t, "out_t", w.table("out_t"), clickRows(0, 100))
	w.run("ledger", "show", "--check").must(t, 0)
}

// TestRunBesideServerRefusals: what is wrong with the files is said as ever; a
// relative path that would mean another file is refused.
func TestRunBesideServerRefusals(t *testing.T) {
	w := newWorld(t)
	w.server()
	w.produce("clicks", clicks(0, 1)...)
	wrong := w.file("wrong.sql", "INSERT INTO nowhere SELECT 1;")
	w.run("run", wrong).must(t, 2).says(t, "wrong.sql:1:13", "nowhere")
	elsewhere := w.command("run", w.file("small.sql", copyJob()), "--set", "OUT=lake")
	elsewhere.Dir = t.TempDir()
	execute(t, elsewhere, nil).must(t, 2).says(t, `the path "lake`, "is relative", elsewhere.Dir)
}
