package logictest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/sqltest"
)

// event is a row of the tables of the arrival test: no two have the same time.
type event struct {
	id, k, v int
	ms       int64
}

// lateness is how much later than its time a row may arrive.
const latenessMS = 60_000

// arrivals are tables whose rows arrive in an order by chance. No row is late: a
// row that comes before another one is at most the lateness younger.
type arrivals struct {
	t       *testing.T
	given   *sqltest.Given
	out     *sqltest.Collect
	session *compile.Session
}

func newArrivals(t *testing.T, seed uint64, tables map[string][]event) *arrivals {
	t.Helper()
	a := &arrivals{t, sqltest.NewGiven(), sqltest.NewCollect(), compile.NewSession()}
	rng := rand.New(rand.NewPCG(seed, 5))
	a.run("SET 'execution.runtime-mode' = 'streaming'", Direct{}, RunOptions{})
	for _, name := range []string{"a", "b"} {
		rows := slices.Clone(tables[name])
		at := make(map[int]int64, len(rows))
		for _, r := range rows {
			at[r.id] = r.ms
			if seed > 0 {
				at[r.id] += rng.Int64N(latenessMS)
			}
		}
		slices.SortFunc(rows, func(x, y event) int { return cmp.Compare(at[x.id], at[y.id]) })
		key := map[string]string{"b": ", PRIMARY KEY (id) NOT ENFORCED"}[name]
		a.run("CREATE TABLE "+name+" (id INT, k INT, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' MINUTE"+key+") WITH ('connector' = 'given', 'partitions' = '3')", Direct{}, RunOptions{})
		var values []string
		for _, r := range rows {
			k, v := fmt.Sprint(r.k), fmt.Sprint(r.v)
			if r.k == 0 {
				k = "CAST(NULL AS INT)"
			}
			if r.v%17 == 0 {
				v = "CAST(NULL AS INT)"
			}
			second, ms := r.ms/1000, r.ms%1000
			values = append(values, fmt.Sprintf("(%d, %s, %s, TIMESTAMP '2024-03-01 %02d:%02d:%02d.%03d')", r.id, k, v, second/3600, second/60%60, second%60, ms))
		}
		a.run("INSERT INTO "+name+" VALUES "+strings.Join(values, ", "), Direct{}, RunOptions{})
	}
	return a
}

// run gives the sorted rows that a query leaves in the end; none may be late.
func (a *arrivals) run(sql string, ex Executor, o RunOptions) []string {
	a.t.Helper()
	u, ds := compile.Compile([]compile.Source{{Name: "query", Text: sql}}, compile.Options{Registry: sqltest.Registry(a.given), Mode: compile.ModeSQL,
		ResultSink: a.out, Session: a.session, Parallelism: o.Parallelism})
	if ds.HasErrors() {
		a.t.Fatalf("%s\n%s", sql, diag.Renderer{}.String(ds))
	}
	a.out.Clear()
	for _, st := range u.Statements {
		if st.Job == nil {
			continue
		}
		out, err := ex.Run(context.Background(), st.Job, o)
		if err != nil {
			a.t.Fatalf("%s\n%v", sql, err)
		}
		if out.Late > 0 || len(out.Dead) > 0 {
			a.t.Errorf("%s\n%d late rows, %d dead ones: %v", sql, out.Late, len(out.Dead), out.Dead)
		}
	}
	rows := a.out.Rows("result").Text(u.Zone())
	slices.Sort(rows)
	return rows
}

// ofTime are queries whose rows do not depend on the order of arrival.
var ofTime = []string{
	"SELECT window_start, k, COUNT(*), SUM(v), MIN(v), MAX(v), COUNT(DISTINCT v % 7) FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '5' MINUTE)) GROUP BY window_start, window_end, k",
	"SELECT window_start, k, COUNT(*), AVG(v) FROM TABLE(HOP(TABLE a, DESCRIPTOR(ts), INTERVAL '2' MINUTE, INTERVAL '6' MINUTE)) GROUP BY window_start, window_end, k",
	"SELECT window_end, COUNT(*), SUM(v) FROM TABLE(CUMULATE(TABLE a, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '20' MINUTE)) GROUP BY window_start, window_end",
	"SELECT window_start, window_end, k, COUNT(*), SUM(v) FROM TABLE(SESSION(TABLE a PARTITION BY k, DESCRIPTOR(ts), INTERVAL '90' SECOND)) GROUP BY window_start, window_end, k",
	"SELECT window_start, window_end, k, COUNT(*) FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' MINUTE)) GROUP BY window_start, window_end, ROLLUP (k)",
	"SELECT a.id, b.id FROM a JOIN b ON a.k = b.k AND b.ts BETWEEN a.ts - INTERVAL '2' MINUTE AND a.ts + INTERVAL '1' MINUTE",
	"SELECT a.id, b.id FROM a LEFT JOIN b ON a.k = b.k AND a.v = b.v AND b.ts BETWEEN a.ts AND a.ts + INTERVAL '10' MINUTE",
	"SELECT a.id, b.id FROM a FULL JOIN b ON a.k = b.k AND a.v = b.v",
	"SELECT k, COUNT(*), SUM(v), MIN(v), MAX(v), COUNT(DISTINCT v) FROM a GROUP BY k",
	"SELECT n, COUNT(*) FROM (SELECT k, v % 5 AS r, COUNT(*) AS n FROM a GROUP BY k, v % 5) GROUP BY n",
	"SELECT id, k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM a) WHERE rn = 1",
	"SELECT id, k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, v % 3 ORDER BY ts) AS rn FROM a) WHERE rn = 1",
	"SELECT id, k, v, rn FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, id) AS rn FROM a) WHERE rn <= 3",
	"SELECT id, SUM(v) OVER w, COUNT(*) OVER w, MAX(v) OVER w FROM a WINDOW w AS (PARTITION BY k ORDER BY ts RANGE BETWEEN INTERVAL '10' MINUTE PRECEDING AND CURRENT ROW)",
	"SELECT id, SUM(v) OVER w, LAG(id) OVER (PARTITION BY k ORDER BY ts), ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) FROM a WINDOW w AS (PARTITION BY k ORDER BY ts ROWS BETWEEN 3 PRECEDING AND CURRENT ROW)",
	"SELECT k, FIRST_VALUE(v), LAST_VALUE(v) FROM a GROUP BY k",
	"SELECT l.id, r.id, l.window_start FROM (SELECT * FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '2' MINUTE))) l JOIN (SELECT * FROM TABLE(TUMBLE(TABLE b, DESCRIPTOR(ts), INTERVAL '2' MINUTE))) r ON l.k = r.k AND l.window_start = r.window_start AND l.window_end = r.window_end",
	"SELECT window_start, id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY v DESC, id) AS rn FROM TABLE(TUMBLE(TABLE a, DESCRIPTOR(ts), INTERVAL '10' MINUTE))) WHERE rn <= 2",
	"SELECT a.id, b.v FROM a LEFT JOIN b FOR SYSTEM_TIME AS OF a.ts ON a.v = b.id",
	"SELECT id FROM a WHERE v IN (SELECT v FROM b WHERE k < 5)",
	"SELECT window_start, COUNT(*), SUM(v) FROM TABLE(TUMBLE(TABLE (SELECT ts, v FROM a UNION ALL SELECT ts, v FROM b WHERE k > 3), DESCRIPTOR(ts), INTERVAL '15' MINUTE)) GROUP BY window_start, window_end",
}

// TestTortureArrival holds that the order in which rows arrive within the lateness,
// batches of 1 to 8,192 rows, tasks, checkpoints and crashes change no result
// (Invariant 7). MILLRACE_TORTURE asks for more rows and orders.
func TestTortureArrival(t *testing.T) {
	const seed = 42
	rows, orders := 400, 3
	if os.Getenv("MILLRACE_TORTURE") != "" {
		rows, orders = 3000, 25
	}
	rng := rand.New(rand.NewPCG(seed, 4))
	tables := map[string][]event{}
	for _, name := range []string{"a", "b"} {
		times := rng.Perm(2 * 3600 * 1000)
		for i := range rows {
			tables[name] = append(tables[name], event{i, rng.IntN(12), rng.IntN(rows), int64(times[i])})
		}
	}
	plain := newArrivals(t, 0, tables)
	want := make([][]string, len(ofTime))
	for i, sql := range ofTime {
		want[i] = plain.run(sql, Direct{}, RunOptions{BatchRows: 1000, Parallelism: 1})
		if len(want[i]) == 0 {
			t.Errorf("no rows: %s", sql)
		}
	}
	e := &Engine{}
	for order := range uint64(orders) {
		a := newArrivals(t, order, tables)
		for i, sql := range ofTime {
			w := randomWay(rng)
			w.Run.NoSharing = false
			if got := a.run(sql, e, w.Run); !slices.Equal(got, want[i]) {
				t.Errorf("seed %d, order %d, %s: %s\n%d rows, want %d:\n%s\nwant\n%s", uint64(seed), order, w.Name, sql, len(got), len(want[i]),
					strings.Join(alone(got, want[i]), "\n"), strings.Join(alone(want[i], got), "\n"))
			}
		}
	}
	t.Logf("seed %d: %d runs on the engine, %d crashes", uint64(seed), e.Runs, e.Crashes)
}

// alone are the first rows of one that are not rows of the other one.
func alone(rows, other []string) []string {
	there := map[string]int{}
	for _, r := range other {
		there[r]++
	}
	var out []string
	for _, r := range rows {
		if there[r]--; there[r] < 0 && len(out) < 10 {
			out = append(out, r)
		}
	}
	return out
}
