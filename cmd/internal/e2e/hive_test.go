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

// hiveTables makes the tables of a job's files ones of the metastore, in the same
// directories: nothing changes but the WITH clauses.
func (h *warehouse) hiveTables(sql string) string {
	return strings.NewReplacer(
		"'connector' = 'filesystem',", "'connector' = 'hive', 'hive.metastore.uris' = '"+h.URI+"', 'sink.create-table' = 'true',",
		"'sink.partition-commit.policy.kind' = 'success-file'", "'sink.partition-commit.policy.kind' = 'metastore,success-file'",
	).Replace(sql)
}

// TestKilledTablesBySpark kills the job again and again, and the metastore while
// it runs, and reads the tables through the metastore with Spark.
func TestKilledTablesBySpark(t *testing.T) {
	h := newWarehouse(t)
	ctx := context.Background()
	w, want := killRunOf(t, killRunOptions{kills: 6, events: 12_000, sql: h.hiveTables, during: func(w *world, p *process, i int) {
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

// TestTypesBySpark compares what Spark reads with what was written, in UTC and,
// for times, in another zone.
func TestTypesBySpark(t *testing.T) {
	h := newWarehouse(t)
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
			// instant there, in UTC (docs/connectors/hive-tables.md).
			if zoned[0] != "2024-05-01 20:34:56.789" || zoned[1] != "2024-05-01 20:34:56.789" {
				t.Errorf("in Shanghai TIMESTAMP is %v, TIMESTAMP_LTZ %v", zoned[0], zoned[1])
			}
		})
	}
}
