package optimizer_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/optimizer"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/sqltest"
)

const ddl = `CREATE TABLE t (a INT, b STRING, c DOUBLE, arr ARRAY<INT>, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'log', 'topic' = 't');
CREATE TABLE u (a INT, b STRING) WITH ('connector' = 'log', 'topic' = 'u');
`

// optimize binds a query and prints its optimized plan.
func optimize(t *testing.T, sql string) string {
	t.Helper()
	b, _, err := sqltest.Binder(ddl)
	if err != nil {
		t.Fatal(err)
	}
	out, err := sqltest.Query(b, sql)
	if err != nil {
		t.Fatal(err)
	}
	var s strings.Builder
	plan.Print(&s, optimizer.Run(out.Node))
	return strings.TrimSpace(s.String())
}

// TestRules states, for one query each, the plan that the rules must give.
func TestRules(t *testing.T) {
	for _, c := range []struct{ what, sql, want string }{
		{"only needed columns are read", "SELECT b FROM u WHERE b <> ''", `
Filter(b <> '')
  Scan(table=u, columns=[b])`},
		{"rows alone are counted over one cheap column", "SELECT 1 FROM u", `
Project(1 AS EXPR$0)
  Scan(table=u, columns=[a])`},
		{"a filter goes below projections", "SELECT x FROM (SELECT a + 1 AS x, b FROM u) WHERE x > 2", `
Project(a + 1 AS x)
  Filter((a + 1) > 2)
    Scan(table=u, columns=[a])`},
		{"a filter goes into each branch of a union", "SELECT a FROM (SELECT a, b FROM u UNION ALL SELECT a, b FROM t) WHERE b = 'x'", `
Union(2 inputs, columns=[a])
  Project(a)
    Filter(b = 'x')
      Scan(table=u, columns=[a, b])
  Project(a)
    Filter(b = 'x')
      Scan(table=t, columns=[a, b, ts], watermark=ts)`},
		{"a filter stays above UNNEST, which may fail rows", "SELECT a FROM t CROSS JOIN UNNEST(arr) AS v (x) WHERE a > 0", `
Project(a)
  Filter(a > 0)
    Unnest(arr, adds=[x])
      Scan(table=t, columns=[a, arr, ts], watermark=ts)`},
		{"a filter stays above a window, which may fail rows", "SELECT a FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) WHERE a > 0", `
Project(a)
  Filter(a > 0)
    Window(TUMBLE(size=1 h), time=ts)
      Scan(table=t, columns=[a, ts], watermark=ts)`},
		{"filters are not merged: the first may fail a row that the second would drop", "SELECT a FROM (SELECT a FROM u WHERE 1 / a > 0) WHERE a > 0", `
Filter(a > 0)
  Filter((1 / a) > 0)
    Scan(table=u, columns=[a])`},
		{"chance is not evaluated twice", "SELECT r, r AS again FROM (SELECT RAND() AS r FROM u)", `
Project(r, r AS again)
  Project(RAND() AS r)
    Scan(table=u, columns=[a])`},
		{"a filter on chance stays where it is", "SELECT r FROM (SELECT RAND() AS r FROM u) WHERE r > 0.5", `
Filter(r > 0.5)
  Project(RAND() AS r)
    Scan(table=u, columns=[a])`},
		{"constants are folded, TRUE is dropped", "SELECT a FROM u WHERE 1 + 1 = 2 AND a > 2 * 3", `
Filter(a > 6)
  Scan(table=u, columns=[a])`},
		{"a constant that is an error stays one", "SELECT 1 / 0 AS x FROM u", `
Project(1 / 0 AS x)
  Scan(table=u, columns=[a])`},
		{"unions are flattened", "SELECT a FROM u UNION ALL (SELECT a FROM u UNION ALL SELECT a FROM t)", `
Union(3 inputs, columns=[a])
  Scan(table=u, columns=[a])
  Scan(table=u, columns=[a])
  Project(a)
    Scan(table=t, columns=[a, ts], watermark=ts)`},
		{"the aggregate divides time itself", "SELECT a, COUNT(*) AS n FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY a, window_start, window_end", "" + `
Project(a, ` + "`COUNT(*)`" + ` AS n)
  Aggregate(keys=[a], aggregates=[COUNT(*)], window=TUMBLE(size=1 h), time=ts, state=query/t/aggregate[a; TUMBLE(size=1 h)])
    Scan(table=t, columns=[a, ts], watermark=ts)`},
	} {
		if got := optimize(t, c.sql); got != strings.TrimSpace(c.want) {
			t.Errorf("%s: %s\ngot\n%s\nwant\n%s", c.what, c.sql, got, strings.TrimSpace(c.want))
		}
	}
}
