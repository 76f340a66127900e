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
INSERT INTO far SELECT id, DATE_FORMAT(ts, 'yyyy-MM-dd') FROM visits;
`

// visitsOf are records of a day of January 2024.
func visitsOf(day, first, count int) (records []string, rows multiset) {
	rows = multiset{}
	for id := first; id < first+count; id++ {
		records = append(records, fmt.Sprintf(`{"id":%d,"ts":"2024-01-%02d 12:00:00"}`, id, day))
		rows[fmt.Sprintf("id=%d dt=2024-01-%02d", id, day)]++
	}
	return records, rows
}

// TestTwoClusters kills the cluster that a job writes to, for good. The table moves to
// its standby by itself, with the partition that was not complete; what was announced
// stays. When the old cluster is back its void files are hidden, and the table goes
// back at an edge. Every row is there once, where the ledger says.
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
	w := newWorld(t)
	user := os.Getenv("USER")
	if user == "" {
		user = "root"
	}
	w.env = append(w.env, "HADOOP_USER_NAME="+user)
	w.run("topics", "create", "visits").must(t, 0)
	p := w.start("run", w.file("homes.sql", homesJob), "--set", "MAIN="+clusters[0].Addresses[0], "--set", "STANDBY="+clusters[1].Addresses[0], "--progress", "none")
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
		w.untilLedger(p, "far", fmt.Sprintf("%d rows written", total), func(l control.TableLedger) bool { return l.Written == total && l.Open == 0 })
	}
	home := func() (h control.TableHome) {
		c := w.dial()
		if c == nil {
			return h
		}
		defer c.Close()
		homes, err := c.Homes(ctx)
		if err == nil && len(homes) == 1 {
			h = homes[0]
		}
		return h
	}
	visit(0, 1)
	visit(0, 2)
	visit(1, 3)
	written()
	announced := func(days int) {
		eventuallyOf(t, p, fmt.Sprintf("%d days are announced", days), func() (bool, string) {
			n := 0
			h := home()
			for _, x := range h.Partitions {
				if x.Announced {
					n++
				}
			}
			return n == days, fmt.Sprint(h)
		})
	}
	announced(2)

	for _, s := range []*services.Process{clusters[0].NameNodes[0], clusters[0].DataNodes[0]} {
		s.Kill()
	}
	began := time.Now()
	visit(1, 3)
	eventuallyOf(t, p, "the table is at its standby", func() (bool, string) { h := home(); return h.Home == "standby", fmt.Sprint(h) })
	moved := time.Since(began)
	written()
	t.Logf("moved after %v, all rows there after %v", moved.Round(time.Millisecond), time.Since(began).Round(time.Millisecond))
	if moved > time.Minute {
		t.Errorf("it took %v to move", moved)
	}

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
		return strings.Contains(s, "at its main home are hidden"), s
	})
	w.run("tables", "switch", "far", "--to", "main", "--edge").must(t, 0)
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
		if m.Kind == "switch" {
			switched[m.Switch] = m
		} else {
			announced[m.Partition] = m
		}
	}
	for _, day := range []string{"dt=2024-01-01", "dt=2024-01-02"} {
		if m := announced[day]; m.Home != "main" || m.Rows != 100 || len(m.Files) == 0 || !strings.HasPrefix(m.Files[0].Path, "hdfs://"+clusters[0].Addresses[0]+"/lake/far/"+day) {
			w.t.Errorf("%s: the manifest is %+v", day, m)
		}
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
