package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/jobs/control"
)

// smallDisk mounts a filesystem of so many bytes; where that is not allowed it
// lets the process believe that so much is left. grow makes room again for the
// processes started afterwards, and for running ones if live.
func (w *world) smallDisk(dir string, bytes int64) (live bool, grow func()) {
	w.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	size := func(n int64) string { return fmt.Sprintf("size=%d", n) }
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, size(bytes)); err != nil {
		w.t.Logf("no tmpfs (%v): a limit in the process instead", err)
		w.bin = millraceWithFaults(w.t)
		w.faults(fmt.Sprintf("limit:%d", bytes))
		return false, func() { w.env = nil }
	}
	w.t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			w.t.Error(err)
		}
	})
	return true, func() {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, size(512<<20)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// wideClicks are records that do not compress.
func wideClicks(first, count int) []string {
	out := make([]string, count)
	for i := range out {
		id := first + i
		var b strings.Builder
		x := uint64(id)*0x9e3779b97f4a7c15 + 1
		for range 60 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
			fmt.Fprintf(&b, "%016x", x)
		}
		out[i] = fmt.Sprintf(`{"id":%d,"k":"%s","n":1}`, id, b.String())
	}
	return out
}

// TestFullDiskUnderTables: when the tables' disk is full the job says so and
// commits nothing that is cut; with room again it goes on by itself or at the
// next start, and everything is there once.
func TestFullDiskUnderTables(t *testing.T) {
	w := newWorld(t)
	const rows = 6000
	w.produce("clicks", wideClicks(0, rows)...)
	live, grow := w.smallDisk(w.lake, 2<<20)
	job := w.file("small.sql", smallJob("id BIGINT, k STRING", "SELECT id, k FROM clicks", ",\n  'sink.rolling-policy.file-size' = '700KB'"))
	p := w.start(w.runArgs(job, "--set", "ROLL=300 ms")...)
	var said string
	eventuallyOf(t, p, "the lane says that the disk is full", func() (bool, string) {
		said = fmt.Sprintf("%+v", w.jobs())
		return strings.Contains(said, "no space left"), said
	})
	if !live {
		p.kill()
	}
	grow()
	if live {
		// The lane tries again by itself.
		w.untilLedger(p, "out_t", "everything is committed", func(l control.TableLedger) bool { return l.Written == rows })
		p.terminate()
		if code := p.wait(); code != 0 {
			t.Errorf("exit code %d\n%s", code, p.stderr.String())
		}
	} else {
		w.run(w.runArgs(job, "--set", "BOUNDED=latest-offset")...).must(t, 0)
	}
	got := ids(w.table("out_t"), "id")
	for id := range rows {
		if got[id] != 1 {
			t.Fatalf("record %d is there %d times", id, got[id])
		}
	}
	w.run("ledger", "show", "--check").must(t, 0)
	w.run("file", "verify", w.lake).must(t, 0)
}

// TestFullDiskUnderLog: a producer is told, exit 3; what was acknowledged stays;
// with room again the log goes on.
func TestFullDiskUnderLog(t *testing.T) {
	w := newWorld(t)
	_, grow := w.smallDisk(w.data, 96<<20)
	acknowledged := 0
	const batch = 10_000 // about 10 MB
	for i := 0; ; i++ {
		r := w.feed(strings.NewReader(strings.Join(wideClicks(i*batch, batch), "\n")), "topics", "produce", "clicks")
		if r.code == 0 {
			acknowledged += batch
			if i > 40 {
				t.Fatalf("%d records of 1 kB fit into 96 MiB", acknowledged)
			}
			continue
		}
		r.must(t, 3).says(t, "no space left")
		break
	}
	grow()
	w.produce("clicks", wideClicks(1<<30, 100)...)
	seen := map[string]int{}
	for _, l := range w.consume("clicks") {
		seen[string(l.bytes())]++
	}
	for _, first := range []struct{ from, count int }{{0, acknowledged}, {1 << 30, 100}} {
		for _, v := range wideClicks(first.from, first.count) {
			if seen[v] != 1 {
				t.Fatalf("an acknowledged record is there %d times: %.40s", seen[v], v)
			}
		}
	}
	w.run("log", "verify").must(t, 0)
}

// unprivileged makes the children of this world obey permissions, also where
// the tests run as root.
func (w *world) unprivileged() *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
}

// TestReadOnlyDirectories: a sentence that names the directory, and exit 3.
func TestReadOnlyDirectories(t *testing.T) {
	w := newWorld(t)
	// The folder above belongs to this test alone; others must pass through it.
	for dir := w.dir; dir != filepath.Dir(dir) && strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	as := w.unprivileged()
	run := func(args ...string) result {
		cmd := w.command(args...)
		cmd.SysProcAttr = as
		return execute(t, cmd, strings.NewReader(click(1)+"\n"))
	}
	// Nothing can be made in it.
	locked := filepath.Join(w.dir, "locked")
	if err := os.Mkdir(locked, 0o555); err != nil {
		t.Fatal(err)
	}
	w.data = filepath.Join(locked, "data")
	run("topics", "produce", "clicks").must(t, 3).says(t, "permission denied", w.data)

	// The data directory is there, made by someone else, and read-only.
	w.data = filepath.Join(w.dir, "data")
	w.produce("clicks", clicks(0, 5)...)
	err := filepath.WalkDir(w.data, func(p string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return os.Chmod(p, 0o555)
		}
		return os.Chmod(p, 0o444)
	})
	if err != nil {
		t.Fatal(err)
	}
	run("topics", "produce", "clicks").must(t, 3).says(t, "permission denied", w.data)

	// The data directory is fine, the tables' folder is not.
	w.data = filepath.Join(w.dir, "own")
	if err := os.Mkdir(w.data, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w.data, 0o777); err != nil {
		t.Fatal(err)
	}
	run("topics", "produce", "clicks").must(t, 0)
	job := w.file("small.sql", copyJob())
	w.lake = filepath.Join(locked, "lake")
	run(w.runArgs(job, "--set", "BOUNDED=latest-offset")...).must(t, 3).says(t, "permission denied", w.lake)
}
