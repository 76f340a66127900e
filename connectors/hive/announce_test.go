package hive

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/storage/vfs"
)

// TestAnnouncingIsCutOff makes each operation on files and each call of the metastore
// fail, and cuts the power before each, while a partition is announced by metastore,
// success file and command; then the same process, or the next one, announces again.
// The command has been told at least once, and never before the partition is
// registered and has its success file.
func TestAnnouncingIsCutOff(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "ready.sh")
	if err := os.WriteFile(script, []byte(`echo "$MILLRACE_PARTITION $MILLRACE_ROWS" >>"$1"`), 0o600); err != nil {
		t.Fatal(err)
	}
	told := func(log string) int {
		b, err := os.ReadFile(log)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), "\n"); string(b) != strings.Repeat(day+" 10\n", n) {
			t.Fatalf("told %q", b)
		}
		return strings.Count(string(b), "\n")
	}
	complete := func(w *faultWorld) bool {
		ok, err := vfs.Exists(w.mem, "/warehouse/t/"+day+"/_SUCCESS")
		return err == nil && ok && w.fake.params("t", day)["numRows"] == "10"
	}
	// begin publishes a partition; what comes then is counted from 0.
	begin := func(log string) (*faultWorld, *Sink) {
		w := newFaultWorld(vfs.NewMem(), map[string]string{keyPolicy: "metastore,success-file,custom",
			"sink.partition-commit.policy.command": "sh " + script + " " + log})
		x, err := w.Open(t.Context(), conntest.OwnerOf(1, 1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { x.Close() })
		writeBatch(t, x, 1, 0, conntest.OneDay(0, 10))
		w.Recount()
		return w, x.(*Sink)
	}
	w, s := begin(filepath.Join(dir, "clean"))
	noErrors(t, s.CommitPartition(t.Context(), day))
	n := w.Operations()
	if n < 8 || told(filepath.Join(dir, "clean")) != 1 || !complete(w) {
		t.Fatalf("%d operations, told %d times", n, told(filepath.Join(dir, "clean")))
	}
	twice := 0
	for _, crash := range []bool{false, true} {
		for op := range n + 1 {
			what := fmt.Sprintf("operation %d of %d, crash %t", op, n, crash)
			log := filepath.Join(dir, fmt.Sprintf("%d-%t", op, crash))
			w, s := begin(log)
			if crash {
				w.CrashAt(op)
			} else {
				w.FailAt(op)
			}
			err := s.CommitPartition(context.Background(), day)
			first := told(log)
			if err == nil && first != 1 {
				t.Fatalf("%s: announced, and told %d times", what, first)
			}
			if crash {
				w = w.AfterCrash(uint64(op)).(*faultWorld)
			}
			w.FailAt(-1)
			if first > 0 && !complete(w) {
				t.Fatalf("%s: told of a partition that is not registered or has no success file", what)
			}
			if crash {
				x, err := w.Open(t.Context(), conntest.OwnerOf(1, 2))
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				defer x.Close()
				s = x.(*Sink)
			}
			// It was not recorded that the partition is announced.
			noErrors(t, s.CommitPartition(t.Context(), day))
			if k := told(log); k != first+1 || !complete(w) {
				t.Fatalf("%s: told %d times, want %d", what, k, first+1)
			}
			twice += first
		}
	}
	t.Logf("%d operations, told twice in %d of %d runs", n, twice, 2*(n+1))
}
