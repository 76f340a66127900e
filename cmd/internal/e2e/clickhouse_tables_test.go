//go:build services

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// clickHouseTables is a job with a table of ClickHouse in each role: looked up, read,
// and replaced whole by the results of a window.
const clickHouseTables = `
SET 'pipeline.name' = 'tables';
SET 'execution.checkpointing.interval' = '200 ms';
SET 'table.exec.source.idle-timeout' = '0 ms';
CREATE TABLE clicks (id BIGINT, k INT, ts TIMESTAMP_LTZ(3), proc AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE) WITH (
  'connector' = 'log', 'topic' = 'clicks', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601');
CREATE TABLE dim (k BIGINT, name STRING, since DATE) WITH ('connector' = 'clickhouse', 'url' = '${URL}', 'table-name' = 'dim',
  'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '3');
CREATE TABLE named (id BIGINT NOT NULL, name STRING) WITH ('connector' = 'clickhouse', 'url' = '${URL}', 'table-name' = 'named', 'sink.create-table' = 'true');
CREATE TABLE per_hour (hour_start TIMESTAMP(3) NOT NULL, k INT NOT NULL, c BIGINT NOT NULL) PARTITIONED BY (hour_start) WITH (
  'connector' = 'clickhouse', 'url' = '${URL}', 'table-name' = 'per_hour', 'sink.commit-method' = 'replace');
INSERT INTO named SELECT c.id, d.name FROM clicks AS c LEFT JOIN dim FOR SYSTEM_TIME AS OF c.proc AS d ON c.k = d.k;
INSERT INTO per_hour SELECT window_start, k, COUNT(*) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end, k;
`

const readBack = `
SET 'pipeline.name' = 'readback';
CREATE TABLE per_hour (hour_start TIMESTAMP(3) NOT NULL, k INT NOT NULL, c BIGINT NOT NULL) WITH ('connector' = 'clickhouse', 'url' = '${URL}', 'table-name' = 'per_hour',
  'scan.partition.column' = 'k', 'scan.partition.num' = '2');
CREATE TABLE again (hour_start TIMESTAMP(3) NOT NULL, c BIGINT NOT NULL) WITH ('connector' = 'clickhouse', 'url' = '${URL}', 'table-name' = 'again', 'sink.create-table' = 'true');
INSERT INTO again SELECT hour_start, c FROM per_hour WHERE k > 0;
`

func TestTablesOfClickHouse(t *testing.T) {
	c := clickHouse(t)
	query(t, c, "CREATE TABLE dim (k Int16, name String, since Date) ENGINE = MergeTree ORDER BY k")
	query(t, c, "INSERT INTO dim VALUES (0, 'zero', '2024-01-01'), (1, 'one', '2024-01-01'), (2, 'two', '2024-01-01'), (3, 'three', '2024-01-01')")
	query(t, c, "CREATE TABLE per_hour (hour_start DateTime64(3, 'UTC'), k Int32, c Int64) ENGINE = MergeTree PARTITION BY hour_start ORDER BY k")
	w := newWorld(t)
	const n = 1000
	var lines []string
	named, hours := map[string]int{}, map[string]int{}
	for id := range n {
		k, hour := id%5, id*6/n
		lines = append(lines, fmt.Sprintf(`{"id":%d,"k":%d,"ts":"2024-05-01T%02d:%02d:00Z"}`, id, k, hour, id%60))
		named[[]string{"zero", "one", "two", "three", `\N`}[k]]++
		hours[fmt.Sprintf("%02d %d", hour, k)]++
	}
	w.produce("clicks", lines...)
	job := w.file("tables.sql", clickHouseTables)
	w.run(w.runArgs(job, "--set", "URL="+c.URL())...).must(t, 0)
	for name, count := range named {
		condition := "name = '" + name + "'"
		if name == `\N` {
			condition = "isNull(name)"
		}
		if got := query(t, c, "SELECT count(), uniqExact(id) FROM named WHERE "+condition); got != fmt.Sprintf("%d\t%d", count, count) {
			t.Errorf("%s: %s rows and ids, want %d", name, got, count)
		}
	}
	checkHours := func(t *testing.T, statement string) {
		t.Helper()
		got := map[string]int{}
		for line := range strings.Lines(query(t, c, statement)) {
			var hour, k, count int
			if _, err := fmt.Sscan(line, &hour, &k, &count); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			got[fmt.Sprintf("%02d %d", hour, k)] += count
		}
		if fmt.Sprint(got) != fmt.Sprint(hours) {
			t.Errorf("the hours are %v, want %v", got, hours)
		}
	}
	checkHours(t, "SELECT toHour(hour_start), k, c FROM per_hour")
	w.run("ledger", "show", "--check").must(t, 0)
	// From the beginning again: the content is replaced, not added to.
	w.run(w.runArgs(job, "--set", "URL="+c.URL(), "--fresh", "--append")...).must(t, 0)
	checkHours(t, "SELECT toHour(hour_start), k, c FROM per_hour")
	back := w.file("readback.sql", readBack)
	w.run(w.runArgs(back, "--set", "URL="+c.URL())...).must(t, 0)
	for k := range hours {
		if strings.HasSuffix(k, " 0") {
			delete(hours, k)
		}
	}
	want := 0
	for _, count := range hours {
		want += count
	}
	if got := query(t, c, "SELECT count(), sum(c) FROM again"); got != fmt.Sprintf("%d\t%d", len(hours), want) {
		t.Errorf("%s rows and clicks were read again, want %d and %d", got, len(hours), want)
	}
}
