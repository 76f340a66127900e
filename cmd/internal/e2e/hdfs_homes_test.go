//go:build services

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/hdfs"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/storage/vfs"
)

const homesJob = `
SET 'manifest.topic' = 'ready';
CREATE TABLE visits (id BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 'visits',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE far (id BIGINT, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'filesystem', 'format' = 'parquet',
  'path' = 'hdfs://${MAIN}/lake/far', 'hdfs.standby' = 'hdfs://${STANDBY}/lake/far',
  'hdfs.standby.switch' = 'auto', 'hdfs.standby.after' = '5 s', 'hdfs.rpc-timeout' = '5 s', 'hdfs.retry-timeout' = '5 s',
  'sink.rolling-policy.rollover-interval' = '200 ms', 'sink.partition-commit.trigger' = 'partition-time',
  'sink.partition-commit.delay' = '1 d', 'sink.partition-commit.policy.kind' = 'success-file');
CREATE TABLE entered (id BIGINT, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'hive', 'hive.metastore.uris' = '${METASTORE}', 'sink.create-table' = 'true',
  'path' = 'hdfs://${MAIN}/lake/entered', 'hdfs.standby' = 'hdfs://${STANDBY}/lake/entered',
  'hdfs.standby.switch' = 'auto', 'hdfs.standby.after' = '5 s', 'hdfs.rpc-timeout' = '5 s', 'hdfs.retry-timeout' = '5 s',
  'sink.rolling-policy.rollover-interval' = '200 ms', 'sink.partition-commit.trigger' = 'partition-time',
  'sink.partition-commit.delay' = '1 d', 'sink.partition-commit.policy.kind' = 'metastore,success-file');
EXECUTE STATEMENT SET BEGIN
INSERT INTO far SELECT id, DATE_FORMAT(ts, 'yyyy-MM-dd') FROM visits;
INSERT INTO entered SELECT id, DATE_FORMAT(ts, 'yyyy-MM-dd') FROM visits;
END;
`

// homesTables are the written tables of homesJob.
var homesTables = []string{"entered", "far"}

// TestTwoClusters kills the cluster that a job writes to, for good. The table moves to
// its standby by itself, with the partition that was not complete; what was announced
// stays. When the old cluster is back its void files are hidden, and the table goes
// back at an edge. Every row is there once, where the ledger says. Of the Hive table
// Spark and Millrace read all rows through the metastore, also those that came late at
// the standby for a partition which lies at the main home.
func TestTwoClusters(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	var clusters []*services.HDFS
	for range 2 {
		h, err := services.StartHDFS(ctx, services.HDFSOptions{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(h.Close)
		clusters = append(clusters, h)
	}
	meta := newWarehouse(t)
	w := newWorld(t)
	user := os.Getenv("USER")
	if user == "" {
		user = "root"
	}
	w.env = append(w.env, "HADOOP_USER_NAME="+user)
	w.run("topics", "create", "visits").must(t, 0)
	p := w.start("run", w.file("homes.sql", homesJob), "--set", "MAIN="+clusters[0].Addresses[0], "--set", "STANDBY="+clusters[1].Addresses[0], "--set", "METASTORE="+meta.URI, "--progress", "none")
	eventuallyOf(t, p, "it serves", func() (bool, string) { return w.jobs() != nil, "no answer" })

	want := [2]multiset{{}, {}}
	total := int64(0)
	visit := func(home, day int) {
		records, rows := visitsOf(day, int(total), 100)
		total += 100
		w.produce("visits", records...)
		for r, n := range rows {
			want[home][r] += n
		}
	}
	written := func() {
		for _, table := range homesTables {
			w.untilLedger(p, table, fmt.Sprintf("%d rows written", total), func(l control.TableLedger) bool { return l.Written == total && l.Open == 0 })
		}
	}
	// both waits for what is to be true of each table.
	both := func(what string, ok func(control.TableHome) bool) {
		eventuallyOf(t, p, what, func() (bool, string) {
			c := w.dial()
			if c == nil {
				return false, "no answer"
			}
			defer c.Close()
			homes, err := c.Homes(ctx)
			n := 0
			for _, h := range homes {
				if ok(h) {
					n++
				}
			}
			return n == len(homesTables), fmt.Sprint(homes, err)
		})
	}
	visit(0, 1)
	visit(0, 2)
	visit(1, 3)
	written()
	announced := func(days int) {
		both(fmt.Sprintf("%d days are announced", days), func(h control.TableHome) bool {
			n := 0
			for _, x := range h.Partitions {
				if x.Announced {
					n++
				}
			}
			return n == days
		})
	}
	announced(2)

	for _, s := range []*services.Process{clusters[0].NameNodes[0], clusters[0].DataNodes[0]} {
		s.Kill()
	}
	began := time.Now()
	visit(1, 3)
	both("the table is at its standby", func(h control.TableHome) bool { return h.Home == "standby" })
	moved := time.Since(began)
	written()
	t.Logf("moved after %v, all rows there after %v", moved.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	if moved > time.Minute {
		t.Errorf("it took %v to move", moved)
	}
	visit(1, 2) // late: the day was announced at the main home
	written()

	for _, s := range []*services.Process{clusters[0].NameNodes[0], clusters[0].DataNodes[0]} {
		if err := s.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := clusters[0].Await(ctx, 0, 1); err != nil {
		t.Fatal(err)
	}
	eventuallyOf(t, p, "void files are hidden", func() (bool, string) {
		s := p.stderr.String()
		return strings.Count(s, "at its main home are hidden") == len(homesTables), s
	})
	for _, table := range homesTables {
		w.run("tables", "switch", table, "--to", "main", "--edge").must(t, 0)
	}
	visit(1, 3)
	visit(0, 4)
	written()
	announced(3)
	p.terminate()
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr.String())
	}
	w.run("ledger", "show", "--check").must(t, 0)
	for i, name := range []string{"main", "standby"} {
		fsys := hdfs.Open(hdfs.Config{Authority: clusters[i].Addresses[0], Addresses: clusters[i].Addresses, User: user, RPCTimeout: 30 * time.Second, RetryTimeout: time.Minute}, vfs.NewOS())
		local := filepath.Join(w.dir, name)
		if err := copyTree(fsys, "/lake/far", local); err != nil {
			t.Fatal(err)
		}
		fsys.Close()
		compare(t, name, readTable(t, local), want[i])
	}
	w.checkManifests(clusters)
	all := multiset{}
	for _, rows := range want {
		for r, n := range rows {
			all[r] += n
		}
	}
	w.readEntered(t, meta, clusters, all)
	w.refusedWithAStandby(t, "--set", "MAIN="+clusters[0].Addresses[0], "--set", "STANDBY="+clusters[1].Addresses[0], "--set", "METASTORE="+meta.URI)
}

// refusedWithAStandby: what a table with two homes does not have yet is refused by name,
// with the reason.
func (w *world) refusedWithAStandby(t *testing.T, sets ...string) {
	t.Helper()
	ddl := homesJob[strings.Index(homesJob, "CREATE TABLE visits"):strings.Index(homesJob, "EXECUTE")]
	const rows = " SELECT id, DATE_FORMAT(ts, 'yyyy-MM-dd') FROM visits;\n"
	const policy = "'sink.partition-commit.policy.kind' = 'metastore,success-file'"
	for says, sql := range map[string]string{
		"a switch before that would leave them at both clusters": "SET 'execution.runtime-mode' = 'batch';\n" +
			strings.Replace(ddl, "'format' = 'json')", "'format' = 'json', 'scan.bounded.mode' = 'latest-offset')", 1) + "INSERT OVERWRITE entered" + rows,
		"what moves are partitions": strings.Replace(ddl, policy, policy+", 'sink.late-data' = 'side-table', 'sink.late-data.table-name' = 'entered_late'", 1) + "INSERT INTO entered" + rows,
		"there are files at both":   ddl + "CREATE TABLE o (id BIGINT, dt STRING) WITH ('connector' = 'print');\nINSERT INTO o SELECT id, dt FROM far;\n",
	} {
		r := w.run(append([]string{"run", w.file("refused.sql", "SET 'pipeline.name' = 'refused';\n"+sql), "--progress", "none"}, sets...)...)
		if r.code == 0 {
			t.Errorf("not refused:\n%s", sql)
		}
		r.says(t, says, "not_yet")
	}
}

// readEntered reads the Hive table of TestTwoClusters through the metastore.
func (w *world) readEntered(t *testing.T, meta *warehouse, clusters []*services.HDFS, want multiset) {
	w.t.Helper()
	got := multiset{}
	at := map[string]string{}
	for _, r := range meta.query(t, "SELECT id, dt, input_file_name() FROM entered") {
		got[fmt.Sprintf("id=%v dt=%v", r[0], r[1])]++
		at[fmt.Sprint(r[1])] = strings.SplitN(strings.TrimPrefix(fmt.Sprint(r[2]), "hdfs://"), "/", 2)[0]
	}
	for r := range want {
		if strings.HasSuffix(r, "dt=2024-01-04") {
			delete(want, r) // not announced
		}
	}
	compare(w.t, "Spark", got, want)
	for day, h := range map[string]int{"2024-01-01": 0, "2024-01-02": 0, "2024-01-03": 1} {
		if at[day] != clusters[h].Addresses[0] {
			w.t.Errorf("%s lies at %s, want %s", day, at[day], clusters[h].Addresses[0])
		}
	}
	ddl := homesJob[strings.Index(homesJob, "CREATE TABLE entered"):strings.Index(homesJob, "EXECUTE")]
	out := w.run("run", w.file("entered.sql", ddl+"CREATE TABLE o (id BIGINT, dt STRING) WITH ('connector' = 'print');\nINSERT INTO o SELECT id, dt FROM entered;\n"),
		"--set", "METASTORE="+meta.URI, "--set", "MAIN="+clusters[0].Addresses[0], "--set", "STANDBY="+clusters[1].Addresses[0], "--progress", "none").must(t, 0)
	got = multiset{}
	for line := range strings.SplitSeq(strings.TrimSpace(out.stdout), "\n") {
		id, dt, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, "+I["), "]"), ", ")
		got["id="+id+" dt="+dt]++
	}
	compare(w.t, "Millrace", got, want)
}

// checkManifests looks at what the manifest topic tells of TestTwoClusters.
func (w *world) checkManifests(clusters []*services.HDFS) {
	w.t.Helper()
	type message struct {
		Kind, Table, Home, Partition string
		Rows                         int64
		Switch                       uint32
		Edge                         bool
		Moved                        []string
		Files                        []struct{ Path, Home string }
	}
	announced, switched := map[string]message{}, map[uint32]message{}
	for line := range strings.SplitSeq(strings.TrimSpace(w.run("topics", "consume", "ready", "-o", "jsonl").must(w.t, 0).stdout), "\n") {
		var r struct{ Value json.RawMessage }
		var m message
		err := json.Unmarshal([]byte(line), &r)
		if err == nil {
			var text string
			if json.Unmarshal(r.Value, &text) == nil {
				r.Value = []byte(text)
			}
			err = json.Unmarshal(r.Value, &m)
		}
		if err != nil {
			w.t.Fatalf("%v: %s", err, line)
		}
		if m.Table != "far" {
			continue
		}
		if m.Kind == "switch" {
			switched[m.Switch] = m
		} else {
			announced[m.Partition] = m
		}
	}
	const first = "dt=2024-01-01"
	if m := announced[first]; m.Home != "main" || m.Rows != 100 || len(m.Files) == 0 || !strings.HasPrefix(m.Files[0].Path, "hdfs://"+clusters[0].Addresses[0]+"/lake/far/"+first) {
		w.t.Errorf("day 1: the manifest is %+v", m)
	}
	if m := announced["dt=2024-01-02"]; m.Home != "standby" || m.Rows != 200 {
		w.t.Errorf("day 2: the manifest is %+v", m)
	}
	if m := announced["dt=2024-01-03"]; m.Home != "standby" || m.Rows != 300 {
		w.t.Errorf("day 3: the manifest is %+v", m)
	}
	if m := switched[1]; m.Home != "standby" || m.Edge || len(m.Moved) != 1 {
		w.t.Errorf("switch 1: %+v", m)
	}
	if m := switched[2]; m.Home != "main" || !m.Edge || len(m.Moved) != 0 {
		w.t.Errorf("switch 2: %+v", m)
	}
}
