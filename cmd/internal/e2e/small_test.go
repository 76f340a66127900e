package e2e

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// clicksDDL is the topic of the small jobs.
const clicksDDL = "CREATE TABLE clicks (id BIGINT, k STRING, n INT) WITH (\n" +
	"  'connector' = 'log', 'topic' = 'clicks', 'scan.startup.mode' = 'earliest-offset',\n" +
	"  'scan.bounded.mode' = '${BOUNDED:-unbounded}', 'format' = 'json');\n"

// smallJob is one topic into one Parquet table.
func smallJob(columns, query, options string) string {
	return clicksDDL +
		"CREATE TABLE out_t (" + columns + ") WITH (\n" +
		"  'connector' = 'filesystem', 'path' = '${OUT}/out_t', 'format' = 'parquet', 'parquet.compression' = 'SNAPPY',\n" +
		"  'sink.rolling-policy.rollover-interval' = '${ROLL:-1 s}'" + options + ");\n" +
		"INSERT INTO out_t " + query + ";\n"
}

// copyJob copies clicks as they are.
func copyJob() string {
	return smallJob("id BIGINT, k STRING, n INT", "SELECT id, k, n FROM clicks", "")
}

// clicks are records with ids from first on.
func clicks(first, count int) []string {
	out := make([]string, count)
	for i := range out {
		out[i] = click(first + i)
	}
	return out
}

func click(id int) string { return fmt.Sprintf(`{"id":%d,"k":"k%d","n":%d}`, id, id%7, id%100) }

// clickRows is what copyJob makes of clicks.
func clickRows(first, count int) multiset {
	m := multiset{}
	for id := first; id < first+count; id++ {
		m[fmt.Sprintf("id=%d k=k%d n=%d", id, id%7, id%100)]++
	}
	return m
}

// runArgs are the arguments to run a small job.
func (w *world) runArgs(job string, more ...string) []string {
	return append([]string{"run", job, "--set", "OUT=" + w.lake, "--progress", "none"}, more...)
}

// table reads a table of this world.
func (w *world) table(name string) multiset {
	w.t.Helper()
	return readTable(w.t, filepath.Join(w.lake, name))
}

// ids are the values of a column, by how often each comes.
func ids(m multiset, column string) map[int]int {
	out := map[int]int{}
	for r, n := range m {
		for field := range strings.SplitSeq(r, " ") {
			if v, ok := strings.CutPrefix(field, column+"="); ok {
				if id, err := strconv.Atoi(v); err == nil {
					out[id] += n
				}
			}
		}
	}
	return out
}
