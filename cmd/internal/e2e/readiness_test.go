package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadersAreTold: a command that fails at first holds a partition back; then the
// command, and a record in the readiness topic, tell of it.
func TestReadersAreTold(t *testing.T) {
	w := newWorld(t)
	w.run("topics", "create", "clicks", "--partitions", "1").must(t, 0)
	script := w.file("ready.sh", `[ -e "$1/go" ] || { echo not yet; exit 1; }`+"\n"+`echo "$MILLRACE_PARTITION $MILLRACE_ROWS" >>"$1/told"`+"\n")
	dir := t.TempDir()
	job := w.file("job.sql", "SET 'pipeline.name' = 'told';\n"+clicksDDL+
		"CREATE TABLE out_p (id BIGINT, k STRING) PARTITIONED BY (k) WITH ('connector' = 'filesystem', 'path' = '${OUT}/out_p', 'format' = 'parquet',\n"+
		"  'sink.rolling-policy.rollover-interval' = '200 ms', 'sink.partition-commit.policy.kind' = 'custom,readiness-topic',\n"+
		"  'sink.partition-commit.policy.command' = 'sh "+script+" "+dir+"', 'sink.partition-commit.readiness-topic.name' = 'ready');\n"+
		"INSERT INTO out_p SELECT id, k FROM clicks;\n")
	p := w.start(w.runArgs(job)...)
	w.produce("clicks", click(0))
	eventuallyOf(t, p, "the command's output is shown", func() (bool, string) {
		got := w.run("jobs", "ls")
		return strings.Contains(got.stderr, "exit code 1") && strings.Contains(got.stderr, "not yet"), got.stderr
	})
	if out := w.run("topics", "consume", "ready", "-o", "jsonl").must(t, 0).stdout; strings.TrimSpace(out) != "" {
		t.Errorf("told before the command: %s", out)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventuallyOf(t, p, "the topic is told", func() (bool, string) {
		out := strings.ReplaceAll(w.run("topics", "consume", "ready", "-o", "jsonl").must(t, 0).stdout, `\"`, `"`)
		for _, part := range []string{`"kind":"ready"`, `"job":"told"`, `"table":"out_p"`, `"partition":"k=k0"`, `"values":{"k":"k0"}`, `"version":1`, `"rows":1`, `"files":1`, "out_p/k=k0"} {
			if !strings.Contains(out, part) {
				return false, part + " is not in: " + out
			}
		}
		return true, out
	})
	if told, err := os.ReadFile(filepath.Join(dir, "told")); err != nil || !strings.HasPrefix(string(told), "k=k0 1\n") {
		t.Errorf("the command was told %q, %v", told, err)
	}
	p.terminate()
	p.wait()
}
