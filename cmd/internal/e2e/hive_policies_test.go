//go:build services

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// announcedBySteps takes a partition of a real metastore's table through all four
// policies: a command that fails holds back itself and the topic alone; it is run again;
// a late row has all steps taken once more, under the next version.
func announcedBySteps(t *testing.T, h *warehouse) {
	w := newWorld(t)
	w.run("topics", "create", "clicks", "--partitions", "1").must(t, 0)
	dir := t.TempDir()
	// It fails, too, if the success file is not there yet.
	script := w.file("ready.sh", `[ -e "${MILLRACE_LOCATION#file:}/_SUCCESS" ] || { echo no success file; exit 1; }
[ -e "$1/go" ] || { echo not yet; exit 1; }
echo "$MILLRACE_DATABASE.$MILLRACE_TABLE $MILLRACE_PARTITION $MILLRACE_FILES $MILLRACE_ROWS" >>"$1/told"
`)
	job := w.file("job.sql", "SET 'pipeline.name' = 'steps';\n"+clicksDDL+
		"CREATE TABLE steps (id BIGINT, k STRING) PARTITIONED BY (k) WITH ('connector' = 'hive', 'hive.metastore.uris' = '"+h.URI+"', 'sink.create-table' = 'true', 'path' = '"+w.lake+"/steps',\n"+
		"  'sink.rolling-policy.rollover-interval' = '200 ms', 'sink.partition-commit.policy.kind' = 'readiness-topic,custom,metastore,success-file',\n"+
		"  'sink.partition-commit.policy.command' = 'sh "+script+" "+dir+"', 'sink.partition-commit.readiness-topic.name' = 'ready');\n"+
		"INSERT INTO steps SELECT id, k FROM clicks;\n")
	p := w.start(w.runArgs(job)...)
	w.produce("clicks", click(0))
	eventuallyOf(t, p, "the command fails", func() (bool, string) {
		got := w.run("jobs", "ls")
		return strings.Contains(got.stderr, "exit code 1") && strings.Contains(got.stderr, "not yet"), got.stderr
	})
	if parts := fmt.Sprint(h.query(t, "SHOW PARTITIONS steps")); parts != "[[k=k0]]" {
		t.Errorf("the command is run, and the metastore has %s", parts)
	}
	topic := func() string {
		return strings.ReplaceAll(w.run("topics", "consume", "ready", "-o", "jsonl").must(t, 0).stdout, `\"`, `"`)
	}
	if out := strings.TrimSpace(topic()); out != "" {
		t.Errorf("told before the command: %s", out)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	told := ""
	for version := 1; version <= 2; version++ {
		eventuallyOf(t, p, "the topic is told", func() (bool, string) {
			out := topic()
			for _, part := range []string{`"database":"default"`, `"table":"steps"`, `"partition":"k=k0"`, fmt.Sprintf(`"version":%d`, version), fmt.Sprintf(`"rows":%d,"files":%[1]d`, version)} {
				if !strings.Contains(out, part) {
					return false, part + " is not in: " + out
				}
			}
			return true, out
		})
		told += fmt.Sprintf("default.steps k=k0 %d %[1]d\n", version)
		if have, err := os.ReadFile(filepath.Join(dir, "told")); err != nil || string(have) != told {
			t.Errorf("the command told %q, %v, want %q", have, err, told)
		}
		h.query(t, "REFRESH TABLE steps")
		if rows := fmt.Sprint(h.query(t, "SELECT COUNT(*) FROM steps WHERE k = 'k0'")); rows != fmt.Sprintf("[[%d]]", version) {
			t.Errorf("version %d has %s rows", version, rows)
		}
		if version == 1 {
			w.produce("clicks", click(7))
		}
	}
	p.terminate()
	p.wait()
}

// lateRowsBySpark has late rows of a real metastore's table go to one of their own, over
// a kill: Spark sees the announced partition as it was, and each late row once.
func lateRowsBySpark(t *testing.T, h *warehouse) {
	w := newWorld(t)
	w.run("topics", "create", "clicks", "--partitions", "1").must(t, 0)
	job := w.file("job.sql", "SET 'pipeline.name' = 'lates';\n"+clicksDDL+
		"CREATE TABLE days (id BIGINT, k STRING) PARTITIONED BY (k) WITH ('connector' = 'hive', 'hive.metastore.uris' = '"+h.URI+"', 'sink.create-table' = 'true', 'path' = '"+w.lake+"/days',\n"+
		"  'sink.rolling-policy.rollover-interval' = '200 ms', 'sink.partition-commit.policy.kind' = 'metastore,success-file',\n"+
		"  'sink.late-data' = 'side-table', 'sink.late-data.table-name' = 'days_late', 'sink.late-data.path' = '"+w.lake+"/days_late');\n"+
		"INSERT INTO days SELECT id, k FROM clicks;\n")
	p := w.start(w.runArgs(job)...)
	w.produce("clicks", click(0))
	success := filepath.Join(w.lake, "days", "k=k0", "_SUCCESS")
	eventuallyOf(t, p, "the partition is announced", func() (bool, string) {
		_, err := os.Stat(success)
		return err == nil, fmt.Sprint(err)
	})
	before, err := os.Stat(success)
	if err != nil {
		t.Fatal(err)
	}
	w.produce("clicks", click(7), click(14), click(1))
	p.kill()
	p = w.start(w.runArgs(job)...)
	w.produce("clicks", click(21))
	eventuallyOf(t, p, "the late rows are counted and committed", func() (bool, string) {
		jobs := w.jobs()
		for _, j := range jobs {
			for _, x := range j.Tables {
				if x.Table == "days" && x.Late == 3 && x.Written == 2 && x.OpenRows == 0 {
					return true, ""
				}
			}
		}
		return false, fmt.Sprintf("%+v", jobs)
	})
	p.terminate()
	p.wait()
	w.run("ledger", "show", "--check").must(t, 0)
	if got := fmt.Sprint(h.query(t, "SELECT id, k FROM days_late ORDER BY id")); got != "[[7 k0] [14 k0] [21 k0]]" {
		t.Errorf("the late rows are %s", got)
	}
	if got := fmt.Sprint(h.query(t, "SELECT id FROM days WHERE k = 'k0'")); got != "[[0]]" {
		t.Errorf("the announced partition has %s", got)
	}
	if after, err := os.Stat(success); err != nil || !after.ModTime().Equal(before.ModTime()) {
		t.Errorf("it was announced again: %v, %v, %v", before.ModTime(), after, err)
	}
}
