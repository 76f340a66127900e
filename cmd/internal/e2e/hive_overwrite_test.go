//go:build services

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// overwrittenBySpark replaces partitions, and a table without any, by the real
// binary: Spark sees through the metastore the new content alone; who reads the
// partitions' own directories sees no version.
func overwrittenBySpark(t *testing.T, h *warehouse) {
	w := newWorld(t)
	w.run("topics", "create", "src", "--partitions", "2").must(t, 0)
	var values []string
	for i := range 100 {
		values = append(values, fmt.Sprintf(`{"n":%d,"s":"p%d"}`, i, i%4))
	}
	w.produce("src", values...)
	run := func(insert, where string) {
		t.Helper()
		merged := ""
		if insert == "INSERT INTO" {
			merged = "INSERT INTO over_m SELECT n, s FROM src WHERE " + where + ";\n"
		}
		job := w.file("over.sql", "SET 'pipeline.name' = 'over'; SET 'execution.runtime-mode' = 'batch';\n"+
			"CREATE TABLE src (n BIGINT, s STRING) WITH ('connector' = 'log', 'topic' = 'src', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json');\n"+
			"CREATE TABLE over_p (n BIGINT, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'hive', 'hive.metastore.uris' = '"+h.URI+"', 'sink.create-table' = 'true', 'path' = '"+w.lake+"/over_p',\n"+
			"  'sink.partition-commit.policy.kind' = 'metastore,success-file');\n"+
			"CREATE TABLE over_t (n BIGINT) WITH ('connector' = 'hive', 'hive.metastore.uris' = '"+h.URI+"', 'sink.create-table' = 'true', 'path' = '"+w.lake+"/over_t');\n"+
			"CREATE TABLE over_m (n BIGINT, dt STRING) PARTITIONED BY (dt) WITH ('connector' = 'hive', 'hive.metastore.uris' = '"+h.URI+"', 'sink.create-table' = 'true', 'path' = '"+w.lake+"/over_m',\n"+
			"  'sink.partition-commit.policy.kind' = 'metastore', 'auto-compaction' = 'true');\n"+
			merged+fmt.Sprintf("%s over_p SELECT n, s FROM src WHERE %s;\n%s over_t SELECT n FROM src WHERE %s;\n", insert, where, insert, where))
		args := []string{"run", job, "--fresh", "--progress", "none"}
		if insert == "INSERT INTO" {
			args = append(args, "--append")
		}
		w.run(args...).must(t, 0)
	}
	want := func(what, p, all string) {
		t.Helper()
		// Spark remembers the files of a table that it has read.
		h.query(t, "REFRESH TABLE over_p")
		h.query(t, "REFRESH TABLE over_t")
		if got := fmt.Sprint(h.query(t, "SELECT dt, count(*), sum(n) FROM over_p GROUP BY dt ORDER BY dt")); got != p {
			t.Errorf("%s: Spark reads %s, want %s", what, got, p)
		}
		if got := fmt.Sprint(h.query(t, "SELECT count(*), sum(n) FROM over_t")); got != all {
			t.Errorf("%s: Spark reads %s of the table without partitions, want %s", what, got, all)
		}
	}
	run("INSERT INTO", "n < 40")
	want("appended", "[[p0 10 180] [p1 10 190] [p2 10 200] [p3 10 210]]", "[[40 780]]")
	run("INSERT OVERWRITE", "n >= 90 AND s <> 'p3'")
	want("overwritten", "[[p0 2 188] [p1 2 190] [p2 3 282] [p3 10 210]]", "[[7 660]]")
	run("INSERT OVERWRITE", "n = 4")
	want("overwritten again", "[[p0 1 4] [p1 2 190] [p2 3 282] [p3 10 210]]", "[[1 4]]")
	run("INSERT INTO", "n = 5 OR n = 8")
	want("appended to", "[[p0 2 12] [p1 3 195] [p2 3 282] [p3 10 210]]", "[[3 17]]")
	// Two runs have appended to it, each in files of its own.
	if got, p := fmt.Sprint(h.query(t, "SELECT dt, count(*), sum(n), count(DISTINCT f) FROM (SELECT dt, n, input_file_name() AS f FROM over_m) GROUP BY dt ORDER BY dt")), "[[p0 11 188 1] [p1 11 195 1] [p2 10 200 1] [p3 10 210 1]]"; got != p {
		t.Errorf("merged: Spark reads %s, want %s", got, p)
	}
	// Hive's own reader, which Spark has aboard.
	h.query(t, "SET spark.sql.hive.convertMetastoreParquet = false")
	want("by Hive's reader", "[[p0 2 12] [p1 3 195] [p2 3 282] [p3 10 210]]", "[[3 17]]")
	h.query(t, "SET spark.sql.hive.convertMetastoreParquet = true")
	// By their own directories no version is seen; that of p3 was never replaced.
	natural, err := filepath.Glob(filepath.Join(w.lake, "over_p", "dt=*", "*.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range natural {
		if strings.Contains(f, ".versions") {
			t.Errorf("%s is found by a pattern of partitions", f)
		}
	}
	if len(natural) == 0 {
		t.Error("partitions' own directories hold nothing")
	}
}
