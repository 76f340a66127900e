//go:build services

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/jobs/control"
)

// fillPeople writes what enrichJob looks up: a hash a person, and scores in one key.
const fillPeople = `
SET 'pipeline.name' = 'fill';
CREATE TABLE given (n INT, name STRING, level DECIMAL(5, 2)) WITH (
  'connector' = 'log', 'topic' = 'given', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json');
CREATE TABLE people (n INT, name STRING, level DECIMAL(5, 2), PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'redis', 'url' = '${URL}', 'key' = 'person:{n}');
CREATE TABLE scores (k STRING, score INT, PRIMARY KEY (k) NOT ENFORCED) WITH (
  'connector' = 'redis', 'url' = '${URL}', 'data-type' = 'zset', 'score' = 'score', 'key' = 'scores');
INSERT INTO people SELECT n, name, level FROM given;
INSERT INTO scores SELECT CONCAT('k', CAST(n AS STRING)), n FROM given WHERE n < 5;
`

// enrichJob looks up what fillPeople has written, in three ways.
const enrichJob = `
SET 'pipeline.name' = 'enrich';
SET 'lane.restart.max-delay' = '500 ms';
CREATE TABLE clicks (id BIGINT, k STRING, n INT, proc AS PROCTIME()) WITH (
  'connector' = 'log', 'topic' = 'clicks', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = '${BOUNDED:-unbounded}', 'format' = 'json');
CREATE TABLE people (n INT, name STRING, level DECIMAL(5, 2), PRIMARY KEY (n) NOT ENFORCED) WITH ('connector' = 'redis', 'url' = '${URL}', 'key' = 'person:{n}',
  'connect.timeout' = '2 s', 'request.timeout' = '5 s');
CREATE TABLE kept WITH ('lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '20', 'lookup.partial-cache.expire-after-write' = '1 h') LIKE people;
CREATE TABLE scores (k STRING, score INT, PRIMARY KEY (k) NOT ENFORCED) WITH (
  'connector' = 'redis', 'url' = '${URL}', 'data-type' = 'zset', 'score' = 'score', 'key' = 'scores', 'connect.timeout' = '2 s', 'request.timeout' = '5 s');
CREATE TABLE left_t (id BIGINT, name STRING, score INT) WITH ('connector' = 'filesystem', 'path' = '${OUT}/left_t', 'format' = 'parquet', 'sink.rolling-policy.rollover-interval' = '300 ms');
CREATE TABLE inner_t (id BIGINT, name STRING, level STRING) WITH ('connector' = 'filesystem', 'path' = '${OUT}/inner_t', 'format' = 'parquet', 'sink.rolling-policy.rollover-interval' = '300 ms');
INSERT INTO left_t SELECT c.id, p.name, s.score FROM clicks AS c LEFT JOIN people FOR SYSTEM_TIME AS OF c.proc AS p ON c.n = p.n
  LEFT JOIN scores FOR SYSTEM_TIME AS OF c.proc AS s ON s.k = c.k;
INSERT INTO inner_t SELECT c.id, p.name, CAST(p.level AS STRING) FROM clicks AS c JOIN kept FOR SYSTEM_TIME AS OF c.proc AS p ON c.n = p.n;
`

// TestLookupsInRedis: one job fills tables of Redis, another looks them up; the server
// is killed while it runs, and rows come meanwhile. Each row is there once with what
// its key has: none is dropped, or padded because nobody answered.
func TestLookupsInRedis(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	r, err := services.StartRedis(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	w := newWorld(t)
	var people []string
	for n := range 60 {
		people = append(people, fmt.Sprintf(`{"n":%d,"name":"person %d","level":%d.25}`, n, n, n))
	}
	w.produce("given", people...)
	url := "URL=" + r.URL()
	w.run(w.runArgs(w.file("fill.sql", fillPeople), "--set", url)...).must(t, 0)

	const part = 1000
	left, inner := multiset{}, multiset{}
	for id := range 3 * part {
		n, k := id%100, id%7
		name, score := "NULL", "NULL"
		if n < 60 {
			name = fmt.Sprintf("person %d", n)
			inner[fmt.Sprintf("id=%d name=%s level=%d.25", id, name, n)]++
		}
		if k < 5 {
			score = fmt.Sprint(k)
		}
		left[fmt.Sprintf("id=%d name=%s score=%s", id, name, score)]++
	}
	job := w.file("enrich.sql", enrichJob)
	w.produce("clicks", clicks(0, part)...)
	p := w.start(w.runArgs(job, "--set", url)...)
	written := func(n int64) {
		t.Helper()
		w.untilLedger(p, "left_t", fmt.Sprintf("%d rows are written", n), func(l control.TableLedger) bool { return l.Written == n })
	}
	written(part)
	r.Kill()
	r.Proxy.CloseAll()
	w.produce("clicks", clicks(part, part)...)
	eventuallyOf(t, p, "a lane that says why it waits", func() (bool, string) {
		for _, j := range w.jobs() {
			for _, l := range j.Lanes {
				if strings.Contains(l.Error, "looking up rows of table people") {
					return true, l.Error
				}
			}
		}
		return false, ""
	})
	if err := r.Start(ctx); err != nil {
		t.Fatal(err)
	}
	written(2 * part)
	r.Proxy.Break(services.Fault{Kind: services.LoseReply, After: 2000})
	w.produce("clicks", clicks(2*part, part)...)
	written(3 * part)
	if n, _ := r.Proxy.Struck(); n != 1 {
		t.Errorf("%d answers were lost", n)
	}
	p.kill()
	w.run(w.runArgs(job, "--set", url, "--set", "BOUNDED=latest-offset")...).must(t, 0)
	w.run("ledger", "show", "--check").must(t, 0)
	compare(t, "left_t", w.table("left_t"), left)
	compare(t, "inner_t", w.table("inner_t"), inner)
}
