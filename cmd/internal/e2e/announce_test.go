package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWhyAPartitionIsNotAnnouncedIsShown: rows go on being committed, and `jobs ls`
// says what is in the way; once it is gone the partition is announced.
func TestWhyAPartitionIsNotAnnouncedIsShown(t *testing.T) {
	w := newWorld(t)
	w.run("topics", "create", "clicks", "--partitions", "1").must(t, 0)
	job := w.file("job.sql", "SET 'pipeline.name' = 'late';\n"+clicksDDL+
		"CREATE TABLE out_p (id BIGINT, k STRING) PARTITIONED BY (k) WITH ('connector' = 'filesystem', 'path' = '${OUT}/out_p', 'format' = 'parquet',\n"+
		"  'sink.rolling-policy.rollover-interval' = '200 ms', 'sink.partition-commit.policy.kind' = 'success-file');\n"+
		"INSERT INTO out_p SELECT id, k FROM clicks;\n")
	success := filepath.Join(w.lake, "out_p", "k=k0", "_SUCCESS")
	if err := os.MkdirAll(success, 0o755); err != nil {
		t.Fatal(err)
	}
	p := w.start(w.runArgs(job)...)
	w.produce("clicks", click(0))
	eventuallyOf(t, p, "the reason is shown", func() (bool, string) {
		got := w.run("jobs", "ls")
		return strings.Contains(got.stderr, "partitions of table out_p are complete and cannot be announced") && strings.Contains(got.stderr, "_SUCCESS"), got.stderr
	})
	if err := os.Remove(success); err != nil {
		t.Fatal(err)
	}
	eventuallyOf(t, p, "the partition is announced", func() (bool, string) {
		info, err := os.Stat(success)
		if err != nil {
			return false, err.Error()
		}
		return info.Mode().IsRegular(), "a directory"
	})
	eventuallyOf(t, p, "the reason is gone", func() (bool, string) {
		got := w.run("jobs", "ls")
		return !strings.Contains(got.stderr, "cannot be announced"), got.stderr
	})
	p.terminate()
	p.wait()
}
