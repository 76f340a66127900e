//go:build services

package e2e

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest/oracle"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/hdfs"
	githubevents "github.com/millrace/millrace/examples/github-events"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/storage/vfs"
)

// startHDFS starts a cluster for one test, with a proxy before its NameNode.
func startHDFS(t *testing.T) (*services.HDFS, *services.HDFSProxy) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	t.Cleanup(cancel)
	h, err := services.StartHDFS(ctx, services.HDFSOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	p, err := services.NewHDFSProxy(h.Addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return h, p
}

// writeToHDFS makes the world's jobs write into a directory of the cluster.
func (w *world) writeToHDFS(h *services.HDFS, addr, dir string) {
	user := os.Getenv("USER")
	if user == "" {
		user = "root"
	}
	w.out = "hdfs://" + addr + dir
	w.env = append(w.env, "HADOOP_USER_NAME="+user)
	w.fetch = func() {
		w.t.Helper()
		fsys := hdfs.Open(hdfs.Config{Authority: h.Addresses[0], Addresses: h.Addresses, User: user, RPCTimeout: 30 * time.Second, RetryTimeout: time.Minute}, vfs.NewOS())
		defer fsys.Close()
		if err := os.RemoveAll(w.lake); err != nil {
			w.t.Fatal(err)
		}
		if err := copyTree(fsys, dir, w.lake); err != nil {
			w.t.Fatal(err)
		}
	}
}

// copyTree copies a directory of HDFS to the local disk.
func copyTree(fsys *hdfs.FS, from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	infos, err := fsys.ListInfo(from)
	if err != nil {
		return err
	}
	for _, i := range infos {
		src, dst := fsys.Join(from, i.Name()), filepath.Join(to, i.Name())
		if i.IsDir() {
			err = copyTree(fsys, src, dst)
		} else {
			err = copyFile(fsys, src, dst)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(fsys *hdfs.FS, from, to string) error {
	in, err := fsys.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return err
}

// TestKillIntoHDFS is TestKill with all tables in a real HDFS.
func TestKillIntoHDFS(t *testing.T) {
	h, _ := startHDFS(t)
	killRunOf(t, killRunOptions{kills: 12, events: 8_000, life: 4 * time.Second, prepare: func(w *world) {
		w.writeToHDFS(h, h.Addresses[0], "/lake")
	}})
}

// githubWorld has the shipped job and a number of events in its topics.
func githubWorld(t *testing.T, events int) (w *world, args []string) {
	t.Helper()
	w = newWorld(t)
	b, err := githubevents.Files().ReadFile("job.sql")
	if err != nil {
		t.Fatal(err)
	}
	job := w.file("job.sql", string(b))
	lines := map[string]*strings.Builder{}
	if err := githubevents.Generate(githubevents.Options{Events: events, Spoil: true}, func(e githubevents.Event) error {
		if lines[e.Topic] == nil {
			lines[e.Topic] = new(strings.Builder)
		}
		lines[e.Topic].Write(e.Value)
		lines[e.Topic].WriteByte('\n')
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, topic := range githubevents.Topics {
		w.run("topics", "create", topic).must(t, 0)
		if lines[topic] != nil {
			w.feed(strings.NewReader(lines[topic].String()), "topics", "produce", topic, "-i", "jsonl").must(t, 0)
		}
	}
	ddl := w.ddl(githubevents.Topics[:]...)
	return w, []string{"run", job, "-f", ddl, "--set", "BOUNDED=latest-offset", "--progress", "none", "--set"}
}

// withoutCoverage is the shipped job without the one column that readTable cannot
// read.
func withoutCoverage(sql string) string {
	return strings.Replace(sql, ",\n  'wide.coverage-column' = 'seen_in'", "", 1)
}

// sumsByDuckDB are the count and the sum of the rows' hashes of each table and
// table partition.
func sumsByDuckDB(t *testing.T, lake string) map[string]string {
	t.Helper()
	out := map[string]string{}
	tables, err := os.ReadDir(lake)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range tables {
		dir := filepath.Join(lake, d.Name())
		if len(tableFiles(t, dir)) == 0 {
			continue
		}
		from := fmt.Sprintf("read_parquet(%s, hive_partitioning = true, hive_types_autocast = false)", oracle.Quote(filepath.Join(dir, "**", "*.parquet")))
		columns := oracle.Query(t, "SELECT * FROM "+from+" LIMIT 0").Columns
		group := "''"
		if slices.Contains(columns, "dt") && slices.Contains(columns, "hr") {
			group = "dt || ' ' || hr"
		}
		for _, r := range oracle.Query(t, "SELECT "+group+", count(*), CAST(sum(CAST(hash(t) AS HUGEINT)) AS VARCHAR) FROM "+from+" t GROUP BY ALL").Rows {
			out[fmt.Sprintf("%s %v", d.Name(), r[0])] = fmt.Sprintf("%v rows, hash %v", r[1], r[2])
		}
	}
	return out
}

// TestGitHubJobIntoHDFS runs the shipped job into HDFS and kills it with SIGKILL
// before and after calls of each kind that change something there: the call is
// sent or not, its answer arrives or not. Then the tables are those of a run
// that nobody disturbed.
func TestGitHubJobIntoHDFS(t *testing.T) {
	const events = 4_000
	clean, args := githubWorld(t, events)
	clean.run(append(args, "OUT="+clean.lake)...).must(t, 0)
	want := sumsByDuckDB(t, clean.lake)
	if len(want) < 20 {
		t.Fatalf("%d table partitions: %v", len(want), want)
	}

	h, proxy := startHDFS(t)
	w, args := githubWorld(t, events)
	w.writeToHDFS(h, proxy.Addr(), "/github")
	args = append(args, "OUT="+w.out)
	kills := map[string]int{}
	// Where in a life the kill comes: at the first call of the kind, and
	// further on.
	for _, at := range []int{1, 7, 25} {
		for _, method := range []string{"mkdirs", "create", "addBlock", "complete", "rename2", "delete"} {
			for _, after := range []bool{false, true} {
				if w.killAtCall(proxy, args, method, at, after) {
					kills[fmt.Sprintf("%s after=%t", method, after)]++
				}
			}
		}
	}
	w.run(args...).must(t, 0)
	t.Logf("kills: %v", kills)
	for _, method := range []string{"mkdirs", "create", "addBlock", "complete", "rename2"} {
		for _, after := range []bool{false, true} {
			if k := fmt.Sprintf("%s after=%t", method, after); kills[k] == 0 {
				t.Errorf("no kill at %s", k)
			}
		}
	}
	w.run("ledger", "show", "--check").must(t, 0)
	w.fetch()
	got := sumsByDuckDB(t, w.lake)
	keys := slices.Sorted(maps.Keys(want))
	for k := range got {
		if want[k] == "" {
			keys = append(keys, k)
		}
	}
	for _, k := range keys {
		if got[k] != want[k] {
			t.Errorf("%s: %q, want %q", k, got[k], want[k])
		}
	}
	t.Logf("%d table partitions are equal", len(want))
}

// killAtCall runs the job and kills it at the n-th call of a method, before the
// call is handed on or before its answer is. It reports whether the call came.
func (w *world) killAtCall(proxy *services.HDFSProxy, args []string, method string, n int, after bool) bool {
	w.t.Helper()
	var mu sync.Mutex
	var p *process
	killed, seen := false, 0
	started := make(chan struct{})
	proxy.Watch(func(m string, answered bool) {
		if m != method || answered != after {
			return
		}
		<-started
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen == n {
			killed = true
			p.kill()
		}
	})
	defer proxy.Watch(nil)
	p = w.start(args...)
	close(started)
	code := p.wait()
	mu.Lock()
	defer mu.Unlock()
	if !killed && code != 0 {
		w.t.Fatalf("the run ended with %d\n%s", code, p.stderr.String())
	}
	return killed
}

// islandsJob writes one topic into HDFS and another one to the local disk.
const islandsJob = `
SET 'start.retry-timeout' = '${WAIT:-1 min}';
CREATE TABLE clicks (id BIGINT, k STRING, n INT) WITH ('connector' = 'log', 'topic' = 'clicks', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = '${BOUNDED:-unbounded}', 'format' = 'json');
CREATE TABLE taps (id BIGINT, k STRING, n INT) WITH ('connector' = 'log', 'topic' = 'taps', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = '${BOUNDED:-unbounded}', 'format' = 'json');
CREATE TABLE far (id BIGINT, k STRING, n INT) WITH ('connector' = 'filesystem', 'path' = '${OUT}/far', 'format' = 'parquet',
  'sink.rolling-policy.rollover-interval' = '200 ms', 'hdfs.rpc-timeout' = '2 s', 'hdfs.retry-timeout' = '${RETRY:-3 s}');
CREATE TABLE near (id BIGINT, k STRING, n INT) WITH ('connector' = 'filesystem', 'path' = '${NEAR}/near', 'format' = 'parquet',
  'sink.rolling-policy.rollover-interval' = '200 ms');
INSERT INTO far SELECT id, k, n FROM clicks;
INSERT INTO near SELECT id, k, n FROM taps;
`

// TestHDFSAway takes the NameNode away from a running job. The lane that writes
// to HDFS says why it does not get on, the other one goes on; when HDFS is back
// the lane goes on by itself. A stop in between ends in time with exit code 1,
// and the next run loses and doubles nothing.
func TestHDFSAway(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	h, proxy := startHDFS(t)
	nn := h.NameNodes[0]
	w := newWorld(t)
	w.writeToHDFS(h, proxy.Addr(), "/away")
	near := filepath.Join(w.dir, "near")
	job := w.file("islands.sql", islandsJob)
	args := []string{"run", job, "--set", "OUT=" + w.out, "--set", "NEAR=" + near, "--progress", "none"}
	for _, topic := range []string{"clicks", "taps"} {
		w.run("topics", "create", topic).must(t, 0)
	}
	p := w.start(args...)
	eventuallyOf(t, p, "it serves", func() (bool, string) { return w.jobs() != nil, "no answer" })
	written := func(table string, n int64) {
		w.untilLedger(p, table, fmt.Sprintf("%d rows written", n), func(l control.TableLedger) bool { return l.Written == n })
	}
	w.produce("clicks", clicks(0, 100)...)
	w.produce("taps", clicks(0, 100)...)
	written("far", 100)
	written("near", 100)

	nn.Kill()
	w.produce("clicks", clicks(100, 100)...)
	w.produce("taps", clicks(100, 100)...)
	written("near", 200)
	if s := sums(w.ledger(), "far"); s.Written != 100 {
		t.Errorf("without a NameNode %d rows of far are written", s.Written)
	}
	eventuallyOf(t, p, "the lane says why", func() (bool, string) {
		jobs := w.run("jobs", "ls", "-o", "json").stdout
		return strings.Contains(jobs, "NameNodes asked"), jobs
	})
	if err := nn.Start(ctx); err != nil {
		t.Fatal(err)
	}
	written("far", 200)

	p.terminate()
	p.wait()
	// One that tries for long is stopped no later.
	p = w.start(append(args, "--set", "RETRY=1 h")...)
	eventuallyOf(t, p, "it serves", func() (bool, string) { return w.jobs() != nil, "no answer" })
	w.produce("clicks", clicks(200, 100)...)
	w.produce("taps", clicks(200, 100)...)
	written("far", 300)
	written("near", 300)
	nn.Kill()
	w.produce("clicks", clicks(300, 100)...)
	w.produce("taps", clicks(300, 100)...)
	written("near", 400)
	began := time.Now()
	p.terminate()
	if code := p.wait(); code != 1 {
		t.Errorf("stopped without a NameNode: exit code %d, want 1\n%s", code, p.stderr.String())
	}
	// Far below 'hdfs.retry-timeout', also on a machine that has no time.
	if took := time.Since(began); took > 40*time.Second {
		t.Errorf("it stopped after %v", took)
	}
	t.Logf("it stopped after %v and said:\n%s", time.Since(began).Round(time.Millisecond), p.stderr.String())
	// A start waits for a while, says so, and ends as for any other server.
	away := w.run(append(args, "--set", "WAIT=2 s")...)
	if line := "table far: its server does not answer"; away.code != 3 || strings.Count(away.stderr, line) != 1 {
		t.Errorf("started without a NameNode: exit code %d, want 3, and once %q in\n%s", away.code, line, away.stderr)
	}
	if err := nn.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := h.Await(ctx, 0, 1); err != nil {
		t.Fatal(err)
	}
	w.run(append(args, "--set", "BOUNDED=latest-offset")...).must(t, 0)
	w.run("ledger", "show", "--check").must(t, 0)
	w.fetch()
	compare(t, "far", readTable(t, filepath.Join(w.lake, "far")), clickRows(0, 400))
	compare(t, "near", readTable(t, filepath.Join(near, "near")), clickRows(0, 400))
}
