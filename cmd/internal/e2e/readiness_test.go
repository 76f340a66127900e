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

// killer is a command of policy custom that kills Millrace, for two partitions once before
// it has told of its partition, in file told of the directory that is its argument, and
// once afterwards.
func (w *world) killer() string {
	return "sh " + w.file("ready.sh", `once() { case "$MILLRACE_PARTITION" in k=k0 | k=k1) mkdir "$1-$MILLRACE_PARTITION" 2>/dev/null;; *) false;; esac; }
cd "$1"
if once before; then kill -9 $PPID; exit 0; fi
echo "$MILLRACE_PARTITION" >>told
if once after; then kill -9 $PPID; fi
`)
}

// startBounded runs a job up to the end that its input has now.
func (w *world) startBounded(job string) *process {
	return w.start(w.runArgs(job, "--set", "BOUNDED=latest-offset")...)
}

// killedFourTimes runs a job with a killer until it is through.
func (w *world) killedFourTimes(job string) {
	w.t.Helper()
	kills := 0
	for ; kills <= 4; kills++ {
		p := w.startBounded(job)
		code := p.wait()
		if code == 0 {
			break
		}
		if code != -1 {
			w.t.Fatalf("exit code %d\n%s", code, p.stderr.String())
		}
	}
	if kills != 4 {
		w.t.Errorf("killed %d times, want 4", kills)
	}
}

// TestAnnouncementsAreKilledInBetween: the command kills Millrace, for two partitions
// once before it has told of its partition and once afterwards, when the topic is not
// told yet. Every partition is told of by both, at least once; those that no crash cut
// off are told of exactly once.
func TestAnnouncementsAreKilledInBetween(t *testing.T) {
	w := newWorld(t)
	w.run("topics", "create", "clicks", "--partitions", "1").must(t, 0)
	dir := t.TempDir()
	job := w.file("job.sql", "SET 'pipeline.name' = 'told';\n"+clicksDDL+
		"CREATE TABLE out_p (id BIGINT, k STRING) PARTITIONED BY (k) WITH ('connector' = 'filesystem', 'path' = '${OUT}/out_p', 'format' = 'parquet',\n"+
		"  'sink.partition-commit.policy.kind' = 'success-file,custom,readiness-topic',\n"+
		"  'sink.partition-commit.policy.command' = '"+w.killer()+" "+dir+"', 'sink.partition-commit.readiness-topic.name' = 'ready');\n"+
		"INSERT INTO out_p SELECT id, k FROM clicks;\n")
	w.produce("clicks", click(0), click(1), click(2), click(3))
	w.killedFourTimes(job)
	told, err := os.ReadFile(filepath.Join(dir, "told"))
	if want := "k=k0\nk=k0\nk=k1\nk=k1\nk=k2\nk=k3\n"; err != nil || string(told) != want {
		t.Errorf("the command told %q, %v, want %q", told, err, want)
	}
	out := w.run("topics", "consume", "ready", "-o", "jsonl").must(t, 0).stdout
	for _, k := range []string{"k0", "k1", "k2", "k3"} {
		if n := strings.Count(out, `partition\":\"k=`+k+`\"`); n != 1 {
			t.Errorf("the topic has %d records of %s, want 1:\n%s", n, k, out)
		}
		if _, err := os.Stat(filepath.Join(w.lake, "out_p", "k="+k, "_SUCCESS")); err != nil {
			t.Error(err)
		}
	}
	// Nothing is told once more.
	w.run(w.runArgs(job, "--set", "BOUNDED=latest-offset")...).must(t, 0)
	if again, err := os.ReadFile(filepath.Join(dir, "told")); err != nil || string(again) != string(told) {
		t.Errorf("the finished job told %q, %v", again, err)
	}
}

// TestPoliciesThatAreRefused: policies and their options that do not fit together are
// errors at their place, which say what to write.
func TestPoliciesThatAreRefused(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		options string // from the third line on
		says    []string
	}{
		"a policy without its command": {`'sink.partition-commit.policy.kind' = 'custom'`,
			[]string{`:1:14: error[missing_option]: policy 'custom' needs option 'sink.partition-commit.policy.command'`, `help: 'sink.partition-commit.policy.command' = '/opt/ready.sh {partition}'`}},
		"a policy without its topic": {`'sink.partition-commit.policy.kind' = 'readiness-topic'`,
			[]string{`:1:14: error[missing_option]: policy 'readiness-topic' needs option 'sink.partition-commit.readiness-topic.name'`}},
		"a command without its policy": {"'sink.partition-commit.policy.kind' = 'success-file',\n'sink.partition-commit.policy.command' = 'x'",
			[]string{`:4:1: error[bad_option]: 'sink.partition-commit.policy.command' has no effect unless 'sink.partition-commit.policy.kind' names 'custom'`}},
		"a misspelt policy": {`'sink.partition-commit.policy.kind' = 'success-file,custm'`,
			[]string{`:3:39: error[bad_option]: `, `"custm" is none of `, `help: did you mean "custom"?`}},
		"a misspelt placeholder": {"'sink.partition-commit.policy.kind' = 'custom',\n'sink.partition-commit.policy.command' = 'ready {partion}'",
			[]string{`:4:42: error[bad_option]: `, `"{partion}" is none of {job}, {database}, {table}, {partition}, {location}`, `help: did you mean "{partition}"?`}},
		"a cluster without its brokers": {"'sink.partition-commit.policy.kind' = 'readiness-topic',\n'sink.partition-commit.readiness-topic.name' = 'r',\n'sink.partition-commit.readiness-topic.properties.security.protocol' = 'SSL'",
			[]string{`:5:1: error[bad_option]: `, "has no effect without 'sink.partition-commit.readiness-topic.properties.bootstrap.servers'"}},
		"a Java class": {"'sink.partition-commit.policy.kind' = 'success-file',\n'sink.partition-commit.policy.class' = 'com.example.Ready'",
			[]string{`:4:40: error[bad_option]: `, "policy 'custom' runs the command of 'sink.partition-commit.policy.command'"}},
	} {
		for connector, with := range map[string]string{"filesystem": "'path' = 'x'", "hive": "'hive.metastore.uris' = 'thrift://127.0.0.1:1'"} {
			t.Run(connector+", "+name, func(t *testing.T) {
				v := *w
				v.t = t
				job := w.file("refused.sql", "CREATE TABLE p (x INT, dt STRING) PARTITIONED BY (dt)\nWITH ('connector' = '"+connector+"', 'format' = 'parquet', "+with+",\n"+c.options+");\n"+
					clicksDDL+"INSERT INTO p SELECT n, k FROM clicks;\n")
				v.run("check", job).must(t, 2).says(t, c.says...)
			})
		}
	}
}

// TestCommandOutlivesMillrace: Millrace is killed while what its command has started is
// at work; the next process does not run the command beside it.
func TestCommandOutlivesMillrace(t *testing.T) {
	w := newWorld(t)
	w.run("topics", "create", "clicks", "--partitions", "1").must(t, 0)
	dir := t.TempDir()
	// It ends by itself when the test does not end it.
	inner := w.file("inner.sh", `echo began >>"$1/log"; n=0; while [ ! -e "$1/go" ] && [ $n -lt 1000 ]; do sleep 0.05; n=$((n+1)); done; echo ended >>"$1/log"`+"\n")
	script := w.file("ready.sh", "sh "+inner+` "$1"; exit $?`+"\n")
	job := w.file("job.sql", "SET 'pipeline.name' = 'told';\n"+clicksDDL+
		"CREATE TABLE out_p (id BIGINT, k STRING) PARTITIONED BY (k) WITH ('connector' = 'filesystem', 'path' = '${OUT}/out_p', 'format' = 'parquet',\n"+
		"  'sink.partition-commit.policy.kind' = 'success-file,custom', 'sink.partition-commit.policy.command' = 'sh "+script+" "+dir+"');\n"+
		"INSERT INTO out_p SELECT id, k FROM clicks;\n")
	w.produce("clicks", click(0))
	log := func() string {
		b, err := os.ReadFile(filepath.Join(dir, "log"))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(b)
	}
	p := w.startBounded(job)
	eventuallyOf(t, p, "the command runs", func() (bool, string) { return log() == "began\n", log() })
	p.kill()
	p.wait()
	success := filepath.Join(w.lake, "out_p", "k=k0", "_SUCCESS")
	if err := os.Remove(success); err != nil {
		t.Fatal(err)
	}
	p = w.startBounded(job)
	// The step before the command.
	eventuallyOf(t, p, "the partition is announced again", func() (bool, string) {
		_, err := os.Stat(success)
		return err == nil, log()
	})
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != 0 {
		t.Fatalf("exit code %d\n%s", code, p.stderr.String())
	}
	if got := log(); got != "began\nended\nbegan\nended\n" {
		t.Errorf("the command's runs left\n%s", got)
	}
}
