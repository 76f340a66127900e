//go:build services

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
	githubevents "github.com/millrace/millrace/examples/github-events"
	"github.com/millrace/millrace/jobs/control"
)

// warehouse is a real metastore, of the version that Spark 3.5 speaks to, and
// Spark, which reads its tables.
type warehouse struct {
	*services.Metastore
	spark *services.Spark
}

func newWarehouse(t *testing.T) *warehouse {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	m, err := services.StartMetastore(ctx, services.MetastoreOptions{Dir: t.TempDir(), Old: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Kill)
	s, err := services.StartSpark(ctx, services.SparkOptions{Dir: t.TempDir(), Metastore: m})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &warehouse{m, s}
}

// query asks Spark.
func (h *warehouse) query(t *testing.T, format string, args ...any) [][]any {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	rows, err := h.spark.Query(ctx, fmt.Sprintf(format, args...))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// hiveTables makes the tables of a job's files ones of a database of the
// metastore, in the same directories: nothing changes but the WITH clauses.
func (h *warehouse) hiveTables(sql, database string) string {
	return strings.NewReplacer(
		"'connector' = 'filesystem',", "'connector' = 'hive', 'hive.metastore.uris' = '"+h.URI+"', 'database-name' = '"+database+"', 'sink.create-table' = 'true',",
		"'sink.partition-commit.policy.kind' = 'success-file'", "'sink.partition-commit.policy.kind' = 'metastore,success-file'",
	).Replace(sql)
}

// TestHiveBySpark writes tables of a real metastore with the real binary and reads
// them through the metastore with Spark.
func TestHiveBySpark(t *testing.T) {
	h := newWarehouse(t)
	t.Run("types", func(t *testing.T) { typesBySpark(t, h) })
	t.Run("evolution", func(t *testing.T) { evolutionBySpark(t, h) })
	t.Run("the GitHub job on HDFS", func(t *testing.T) { gitHubOnHDFS(t, h) })
	t.Run("announced by steps", func(t *testing.T) { announcedBySteps(t, h) })
	t.Run("late rows aside", func(t *testing.T) { lateRowsBySpark(t, h) })
	t.Run("killed", func(t *testing.T) { killedBySpark(t, h) })
	t.Run("overwritten", func(t *testing.T) { overwrittenBySpark(t, h) })
	t.Run("tables of Spark", func(t *testing.T) { tablesOfSpark(t, h) })
}

// killedBySpark kills the job again and again, and the metastore while it runs.
func killedBySpark(t *testing.T, h *warehouse) {
	ctx := context.Background()
	w, want := killRunOf(t, killRunOptions{kills: 6, events: 12_000, sql: func(sql string) string { return h.hiveTables(sql, "default") }, during: func(w *world, p *process, i int) {
		if i%3 == 1 {
			eventuallyOf(t, p, "lanes run", func() (bool, string) {
				for _, j := range w.jobs() {
					for _, l := range j.Lanes {
						if l.State == "running" {
							return true, ""
						}
					}
				}
				return false, ""
			})
			h.Kill()
			if err := h.Start(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}})
	for table, rows := range want.rows {
		columns := h.query(t, "DESCRIBE %s", table)
		var names, exprs []string
		for _, c := range columns {
			name, kind := fmt.Sprint(c[0]), fmt.Sprint(c[1])
			if strings.HasPrefix(name, "#") {
				break // the partition columns once more
			}
			names = append(names, name)
			if kind == "timestamp" {
				name = "unix_micros(`" + name + "`)"
			} else {
				name = "`" + name + "`"
			}
			exprs = append(exprs, name)
		}
		got := multiset{}
		for _, r := range h.query(t, "SELECT %s FROM %s", strings.Join(exprs, ", "), table) {
			fields := make([]string, len(r))
			for i, v := range r {
				fields[i] = names[i] + "=NULL"
				if v != nil {
					fields[i] = fmt.Sprintf("%s=%v", names[i], v)
				}
			}
			got[strings.Join(fields, " ")]++
		}
		compare(t, table+" by Spark", got, rows)
	}
	// What Spark saw are registered partitions; each has the statistics of its
	// directory.
	for _, table := range []string{"push", "actor_hour"} {
		parts := h.query(t, "SHOW PARTITIONS %s", table)
		if len(parts) == 0 {
			t.Errorf("table %s has no partitions", table)
		}
		for _, p := range parts {
			w.wantStatistics(h, table, fmt.Sprint(p[0]))
		}
	}
}

// wantStatistics compares a partition's properties with its files.
func (w *world) wantStatistics(h *warehouse, table, partition string) {
	w.t.Helper()
	var spec []string
	for kv := range strings.SplitSeq(partition, "/") {
		k, v, _ := strings.Cut(kv, "=")
		spec = append(spec, fmt.Sprintf("%s='%s'", k, v))
	}
	t := w.t.(*testing.T)
	where := strings.Join(spec, ", ")
	var properties string
	for _, r := range h.query(t, "DESCRIBE FORMATTED %s PARTITION (%s)", table, where) {
		if r[0] == "Partition Parameters" {
			properties = fmt.Sprint(r[1])
		}
	}
	files, err := filepath.Glob(filepath.Join(w.lake, table, partition, "part-*"))
	if err != nil {
		t.Fatal(err)
	}
	size := int64(0)
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	rows := h.query(t, "SELECT count(*) FROM %s WHERE %s", table, strings.Join(spec, " AND "))[0][0]
	for _, want := range []string{fmt.Sprintf("numFiles=%d", len(files)), fmt.Sprintf("totalSize=%d", size), fmt.Sprintf("numRows=%v", rows)} {
		if !strings.Contains(properties, want) {
			t.Errorf("partition %s of table %s has the properties %s, want %s", partition, table, properties, want)
		}
	}
}

// hiveTypes writes one row of each kind: values, edges, NULLs.
const hiveTypes = "SET 'pipeline.name' = 'types'; SET 'table.local-time-zone' = 'UTC';\n" + `
CREATE TABLE src (n INT, ts TIMESTAMP(3), l TIMESTAMP_LTZ(3)) WITH ('connector' = 'log', 'topic' = 'src', 'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = 'latest-offset', 'format' = 'json', 'json.timestamp-format.standard' = 'ISO-8601');
CREATE TABLE everything (
  n INT, B BOOLEAN, t TINYINT, s SMALLINT, i INT, l BIGINT, f FLOAT, d DOUBLE, dc DECIMAL(20,3), dn DECIMAL(5,2), vc VARCHAR(5), st STRING, dt DATE,
  ts TIMESTAMP(3), lt TIMESTAMP_LTZ(3), ar ARRAY<INT>, mp MAP<STRING, INT>, rw ROW<` + "`A`" + ` INT, b STRING>, p DATE, q INT, r STRING
) PARTITIONED BY (p, q, r) WITH ('connector' = 'hive', 'hive.metastore.uris' = '${URI}', 'sink.create-table' = 'true', 'parquet.write.int64.timestamp' = '${INT64}',
  'sink.partition-commit.policy.kind' = 'metastore,success-file');
INSERT INTO everything SELECT n,
  CASE WHEN n = 1 THEN TRUE ELSE CAST(NULL AS BOOLEAN) END, CASE WHEN n = 1 THEN CAST(-128 AS TINYINT) ELSE CAST(NULL AS TINYINT) END,
  CAST(32767 AS SMALLINT), CAST(-2147483648 AS INT), CAST(9223372036854775807 AS BIGINT), CAST(1.5 AS FLOAT), CAST(-0.1 AS DOUBLE),
  CAST(-12345678901234567.891 AS DECIMAL(20,3)), CAST(-1.05 AS DECIMAL(5,2)), CAST('abc' AS VARCHAR(5)), '数据', DATE '1969-12-31', ts, l,
  ARRAY[1, 2], MAP['k', 7], ROW(n, 'x'), DATE '2024-05-01', n, CASE WHEN n = 1 THEN 'a b/c:d' ELSE '' END
FROM src;
`

// typesBySpark compares what Spark reads with what was written, in UTC and, for
// times, in another zone.
func typesBySpark(t *testing.T, h *warehouse) {
	for _, int64s := range []string{"true", "false"} {
		t.Run("int64 timestamps "+int64s, func(t *testing.T) {
			w := newWorld(t)
			job := w.file("types.sql", strings.NewReplacer("everything", "everything_"+int64s).Replace(hiveTypes))
			w.run("topics", "create", "src", "--partitions", "1").must(t, 0)
			w.produce("src", `{"n":1,"ts":"2024-05-01T12:34:56.789","l":"2024-05-01T12:34:56.789Z"}`, `{"n":2,"ts":"1960-01-01T00:00:00.001","l":null}`)
			w.run("run", job, "--set", "URI="+h.URI, "--set", "INT64="+int64s, "--progress", "none").must(t, 0)
			table := "everything_" + int64s
			got := h.query(t, "SELECT * FROM %s ORDER BY n", table)
			const want = `[[1,true,-128,32767,-2147483648,9223372036854775807,1.5,-0.1,"-12345678901234567.891","-1.05","abc","数据","1969-12-31",` +
				`"2024-05-01 12:34:56.789000","2024-05-01 12:34:56.789000",[1,2],[["k",7]],{"a":1,"b":"x"},"2024-05-01",1,"a b/c:d"],` +
				`[2,null,null,32767,-2147483648,9223372036854775807,1.5,-0.1,"-12345678901234567.891","-1.05","abc","数据","1969-12-31",` +
				`"1960-01-01 00:00:00.001000",null,[1,2],[["k",7]],{"a":2,"b":"x"},"2024-05-01",2,null]]`
			b, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if string(b) != want {
				t.Errorf("Spark reads\n%s\nwant\n%s", b, want)
			}
			// Only the partition asked for is read; the value is unescaped.
			if n := h.query(t, "SELECT count(*) FROM %s WHERE r = 'a b/c:d' AND q = 1 AND p = DATE '2024-05-01'", table)[0][0]; fmt.Sprint(n) != "1" {
				t.Errorf("%v rows in the partition", n)
			}
			// An instant is shown in the reader's zone.
			h.query(t, "SET spark.sql.session.timeZone = Asia/Shanghai")
			zoned := h.query(t, "SELECT CAST(ts AS STRING), CAST(lt AS STRING) FROM %s WHERE n = 1", table)[0]
			h.query(t, "SET spark.sql.session.timeZone = UTC")
			// Spark has no other type for Hive's timestamp: TIMESTAMP, too, is an
			// instant there, in UTC (docs/connectors/hive.md).
			if zoned[0] != "2024-05-01 20:34:56.789" || zoned[1] != "2024-05-01 20:34:56.789" {
				t.Errorf("in Shanghai TIMESTAMP is %v, TIMESTAMP_LTZ %v", zoned[0], zoned[1])
			}
		})
	}
}

// gitHubOnHDFS runs the example's job twice over the same topics:
// as it stands, into local files, and with other WITH clauses into a real HDFS
// and metastore. Spark, through the metastore, sees the same as in the local
// files by table and hour, and both have the input's events.
func gitHubOnHDFS(t *testing.T, h *warehouse) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	fs, err := services.StartHDFS(ctx, services.HDFSOptions{Dir: t.TempDir(), DataNodes: 1, Replication: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fs.Close)
	w := newWorld(t)
	b, err := githubevents.Files().ReadFile("job.sql")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)

	type hour struct{ table, dt, hr string }
	type sum struct{ rows, ids int64 }
	input := map[hour]sum{}
	tableOf := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)INSERT INTO `(\\w+)` SELECT.*?FROM `(\\w+)`;").FindAllStringSubmatch(text, -1) {
		tableOf[m[2]] = m[1]
	}
	lines := map[string][]string{}
	err = githubevents.Generate(githubevents.Options{Events: 4000}, func(e githubevents.Event) error {
		lines[e.Topic] = append(lines[e.Topic], string(e.Value))
		var v struct {
			ID string    `json:"id"`
			At time.Time `json:"created_at"`
		}
		if err := json.Unmarshal(e.Value, &v); err != nil {
			return err
		}
		id, err := strconv.ParseInt(v.ID, 10, 64)
		for _, table := range []string{tableOf[e.Topic], "events"} {
			k := hour{table, v.At.UTC().Format("2006-01-02"), v.At.UTC().Format("15")}
			input[k] = sum{input[k].rows + 1, input[k].ids + id}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(tableOf) != len(githubevents.Topics) || len(lines) != len(githubevents.Topics) {
		t.Fatalf("%d tables, %d topics with events, want %d", len(tableOf), len(lines), len(githubevents.Topics))
	}
	for topic, values := range lines {
		w.run("topics", "create", topic, "--partitions", "2").must(t, 0)
		w.produce(topic, values...)
	}
	ddl := w.ddl(githubevents.Topics[:]...)
	run := func(name, text, out string) {
		job := w.file(name+".sql", strings.Replace(text, "'github-events'", "'"+name+"'", 1))
		w.run("run", job, "-f", ddl, "--set", "OUT="+out, "--set", "BOUNDED=latest-offset", "--progress", "none").must(t, 0)
	}
	run("local", text, w.lake)
	h.query(t, "CREATE DATABASE github")
	run("cluster", h.hiveTables(text, "github"), "hdfs://"+fs.Addresses[0]+"/lake")

	tables := []string{"events", "actor_hour"}
	for _, table := range tableOf {
		tables = append(tables, table)
	}
	h.query(t, "SET spark.sql.sources.partitionColumnTypeInference.enabled = false")
	ask := func(from func(table string) string) map[hour]string {
		var parts []string
		for _, table := range tables {
			id := "event_id"
			if table == "actor_hour" {
				id = "actor_id"
			}
			parts = append(parts, fmt.Sprintf("SELECT '%s', dt, hr, count(*), sum(%s), sum(xxhash64(*)) FROM %s GROUP BY dt, hr", table, id, from(table)))
		}
		out := map[hour]string{}
		for _, r := range h.query(t, "%s", strings.Join(parts, " UNION ALL ")) {
			out[hour{fmt.Sprint(r[0]), fmt.Sprint(r[1]), fmt.Sprint(r[2])}] = fmt.Sprintf("%v rows, ids %v, hash %v", r[3], r[4], r[5])
		}
		return out
	}
	cluster := ask(func(table string) string { return "github." + table })
	local := ask(func(table string) string { return "parquet.`file://" + filepath.Join(w.lake, table) + "`" })
	if len(cluster) != len(local) || len(cluster) <= len(input) {
		t.Errorf("%d tables and hours in Hive, %d in local files, %d in the input without the wide table", len(cluster), len(local), len(input))
	}
	for k, want := range local {
		if cluster[k] != want {
			t.Errorf("%v: Hive has %s, the local files %s", k, cluster[k], want)
		}
	}
	for k, want := range input {
		if s := fmt.Sprintf("%d rows, ids %d, ", want.rows, want.ids); !strings.HasPrefix(cluster[k], s) {
			t.Errorf("%v: Hive has %s, the input %s", k, cluster[k], s)
		}
	}
	t.Logf("%d tables and hours of %d tables agree", len(cluster), len(tables))
}

// evolutionBySpark adds and widens columns between two runs of a job.
func evolutionBySpark(t *testing.T, h *warehouse) {
	w := newWorld(t)
	w.run("topics", "create", "src", "--partitions", "1").must(t, 0)
	const sql = `
SET 'pipeline.name' = 'grow';
CREATE TABLE src (n BIGINT, s STRING) WITH ('connector' = 'log', 'topic' = 'src', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = '${BOUNDED:-unbounded}', 'format' = 'json');
CREATE TABLE grow (%s, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'hive', 'hive.metastore.uris' = '%s', 'sink.create-table' = 'true',
  'sink.schema-evolution' = '%s', 'sink.partition-commit.policy.kind' = 'metastore,success-file');
INSERT INTO grow SELECT %s, s FROM src;
`
	job := func(columns, evolution, exprs string) string {
		return w.file("grow.sql", fmt.Sprintf(sql, columns, h.URI, evolution, exprs))
	}
	w.produce("src", `{"n":1,"s":"a"}`)
	p := w.start("run", job("i INT, f FLOAT", "none", "CAST(n AS INT), CAST(0.5 AS FLOAT)"), "--progress", "none")
	w.untilLedger(p, "grow", "one row", func(l control.TableLedger) bool { return l.Read == 1 })
	p.terminate()
	if code := p.wait(); code != 0 {
		t.Fatalf("after SIGTERM: exit code %d\n%s", code, p.stderr.String())
	}
	w.produce("src", `{"n":5000000000,"s":"a"}`, `{"n":2,"s":"b"}`)
	wider := "i BIGINT, f DOUBLE, more STRING"
	refused := w.run("run", job(wider, "none", "n, CAST(0.25 AS DOUBLE), 'new'"), "--progress", "none")
	if want := "column more (string) is missing there; column i is int there and bigint here; column f is float there and double here"; refused.code == 0 || !strings.Contains(refused.stderr, want) {
		t.Errorf("the table is refused with %d and\n%s", refused.code, refused.stderr)
	}
	w.run("run", job(wider, "widen", "n, CAST(0.25 AS DOUBLE), 'new'"), "--set", "BOUNDED=latest-offset", "--progress", "none").must(t, 0)
	// The file of before the change has 32-bit columns: Hive's own reader, which
	// Spark has aboard, widens them; Spark's own, before version 4, does not.
	h.query(t, "SET spark.sql.hive.convertMetastoreParquet = false")
	got := fmt.Sprint(h.query(t, "SELECT i, f, more, dt FROM grow ORDER BY i"))
	h.query(t, "SET spark.sql.hive.convertMetastoreParquet = true")
	if want := "[[1 0.5 <nil> a] [2 0.25 new b] [5000000000 0.25 new a]]"; got != want {
		t.Errorf("Hive's reader in Spark reads %s, want %s", got, want)
	}
	if got := fmt.Sprint(h.query(t, "SELECT more, dt FROM grow ORDER BY dt, more")); got != "[[<nil> a] [new a] [new b]]" {
		t.Errorf("Spark reads %s of the column that was added", got)
	}
}
