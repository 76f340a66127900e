package logictest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

// TestChangesOfManyRows runs operators over rows that change, nested, in many tasks
// and batches, over thousands of rows, beside the plain evaluation.
func TestChangesOfManyRows(t *testing.T) {
	given, out, session := sqltest.NewGiven(), sqltest.NewCollect(), compile.NewSession()
	one := func(sql string) *compile.Unit {
		t.Helper()
		u, ds := compile.Compile([]compile.Source{{Name: "query", Text: sql}}, compile.Options{Registry: sqltest.Registry(given), Mode: compile.ModeSQL,
			ResultSink: out, Session: session, Parallelism: 3})
		if ds.HasErrors() {
			t.Fatalf("%s\n%s", sql, diag.Renderer{}.String(ds))
		}
		return u
	}
	run := func(sql string, ex Executor, o RunOptions) []string {
		t.Helper()
		u := one(sql)
		out.Clear()
		for _, st := range u.Statements {
			if st.Job == nil {
				continue
			}
			if _, err := ex.Run(context.Background(), st.Job, o); err != nil {
				t.Fatalf("%s\n%v", sql, err)
			}
		}
		rows := out.Rows("result").Text(u.Zone())
		slices.Sort(rows)
		return rows
	}
	one("SET 'execution.runtime-mode' = 'streaming'")
	one("CREATE TABLE t (id INT, k INT, v INT, s STRING) WITH ('connector' = 'given', 'partitions' = '4')")
	var rows []string
	x := uint64(88172645463325252)
	next := func(n uint64) uint64 { // xorshift
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		return x % n
	}
	for i := range 3000 {
		k := fmt.Sprint(next(60))
		if next(20) == 0 {
			k = "CAST(NULL AS INT)"
		}
		rows = append(rows, fmt.Sprintf("(%d, %s, %d, 's%d')", i, k, next(1000), next(30)))
	}
	run("INSERT INTO t VALUES "+strings.Join(rows, ", "), Direct{}, RunOptions{})
	for _, sql := range []string{
		"SELECT n % 7, COUNT(*), SUM(m), MIN(m), MAX(m), COUNT(DISTINCT n) FROM (SELECT k, COUNT(*) AS n, MAX(v) AS m FROM t GROUP BY k) GROUP BY n % 7",
		"SELECT COUNT(*), SUM(c) FROM (SELECT n, COUNT(*) AS c FROM (SELECT k, s, COUNT(*) AS n FROM t GROUP BY k, s) GROUP BY n)",
		"SELECT k, id, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS n FROM t) WHERE n <= 3",
		"SELECT s, k, m FROM (SELECT s, k, m, ROW_NUMBER() OVER (PARTITION BY s ORDER BY m DESC, k DESC NULLS LAST) AS n FROM (SELECT s, k, SUM(v) AS m FROM t GROUP BY s, k)) WHERE n <= 2",
		"SELECT a.k, a.n, b.m FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) a FULL JOIN (SELECT v % 90 AS k, MAX(id) AS m FROM t GROUP BY v % 90) b ON a.k = b.k",
		"SELECT s, COUNT(*), SUM(n) FROM (SELECT t.s, a.n FROM t LEFT JOIN (SELECT k, COUNT(*) AS n FROM t WHERE v < 500 GROUP BY k HAVING COUNT(*) > 20) a ON t.k = a.k) GROUP BY s",
		"SELECT id FROM t WHERE v < 60 AND k IN (SELECT k FROM t GROUP BY k HAVING SUM(v) > 24000)",
		"SELECT id FROM t WHERE v < 60 AND k NOT IN (SELECT k FROM t WHERE k IS NOT NULL GROUP BY k HAVING SUM(v) > 24000)",
		"SELECT s, COUNT(*) FROM t WHERE EXISTS (SELECT * FROM (SELECT k, MAX(v) AS m FROM t GROUP BY k) q WHERE q.k = t.k AND q.m < 990) GROUP BY s",
		"SELECT id, SUM(v) OVER (PARTITION BY k ORDER BY v), COUNT(*) OVER (PARTITION BY k ORDER BY v) FROM t",
		"SELECT k, n, SUM(n) OVER (PARTITION BY n % 7 ORDER BY k), MAX(m) OVER (PARTITION BY n % 7 ORDER BY k) FROM (SELECT k, COUNT(*) AS n, MAX(v) AS m FROM t GROUP BY k)",
		"SELECT c, COUNT(*), SUM(n) FROM (SELECT n, s, COUNT(*) OVER (ORDER BY n) AS c FROM (SELECT k, s, COUNT(*) AS n FROM t GROUP BY k, s)) GROUP BY c",
		"SELECT n FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) EXCEPT ALL SELECT n FROM (SELECT s, COUNT(*) / 2 AS n FROM t GROUP BY s)",
		"SELECT n FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k) INTERSECT ALL SELECT n FROM (SELECT s, COUNT(*) / 2 AS n FROM t GROUP BY s)",
		"SELECT id FROM t WHERE v > (SELECT AVG(n) * 15 FROM (SELECT k, COUNT(*) AS n FROM t GROUP BY k))",
	} {
		want := run(sql, Direct{}, RunOptions{Parallelism: 1, BatchRows: 1000})
		if len(want) == 0 {
			t.Errorf("no rows: %s", sql)
		}
		for _, o := range []RunOptions{{Parallelism: 3, BatchRows: 97}, {Parallelism: 2, BatchRows: 13, Restart: true}} {
			if got := run(sql, &Engine{}, o); !slices.Equal(got, want) {
				t.Errorf("%+v: %s\n%d rows, want %d:\n%s\nwant\n%s", o, sql, len(got), len(want), strings.Join(got[:min(20, len(got))], "\n"), strings.Join(want[:min(20, len(want))], "\n"))
			}
		}
	}
}
