package flinktest

import (
	"strings"
)

// block is a SELECT of which each part may be left out.
type block struct {
	with, distinct, from          string
	id, key, value, time          string
	where, group, having          string
	order, limit, behind, columns string
}

// clauseCase is a clause by itself, in a block and over any query. Those over a query
// give what they take: id, k, v, ts.
type clauseCase struct {
	clause string
	set    bool // a set operation
	// in adds the clause to a block; streaming windows and OVER go by row time.
	in func(b *block, streaming bool)
	// over puts it over rows in FROM.
	over func(from string, streaming bool) string
}

const windowed = "TABLE(TUMBLE(TABLE %, DESCRIPTOR(ts), INTERVAL '10' SECOND))"

func clauseCases() []clauseCase {
	setOperation := func(name string) clauseCase {
		return clauseCase{name, true,
			func(b *block, _ bool) { b.behind = " " + name + " SELECT id, k, v, ts FROM u" },
			func(from string, _ bool) string {
				return "SELECT id, k, v, CAST(ts AS TIMESTAMP(3)) AS ts FROM " + from + " " + name + " SELECT id, k, v, ts FROM u"
			}}
	}
	return []clauseCase{
		{clauseWhere, false,
			func(b *block, _ bool) { b.and("q.v <> 3") },
			func(from string, _ bool) string { return "SELECT id, k, v, ts FROM " + from + " WHERE v <> 3" }},
		{clauseGroupBy, false,
			func(b *block, _ bool) { b.grouped() },
			func(from string, _ bool) string {
				return "SELECT MAX(id) AS id, k, SUM(v) AS v, MAX(ts) AS ts FROM " + from + " GROUP BY k"
			}},
		{clauseHaving, false,
			func(b *block, _ bool) { b.grouped(); b.having = " HAVING COUNT(*) > 1" },
			func(from string, _ bool) string {
				return "SELECT MIN(id) AS id, k, SUM(v) AS v, MAX(ts) AS ts FROM " + from + " GROUP BY k HAVING COUNT(*) > 1"
			}},
		{clauseDistinct, false,
			func(b *block, _ bool) { b.distinct = "DISTINCT " },
			func(from string, _ bool) string { return "SELECT DISTINCT k AS id, k, v, ts FROM " + from }},
		{clauseWindow, false,
			func(b *block, _ bool) {
				b.from = strings.Replace(windowed, "%", "t", 1) + " AS q"
				if b.group != "" {
					b.group += ", window_start, window_end"
				}
				b.columns += ", window_start"
			},
			func(from string, _ bool) string {
				return "WITH w AS " + from + " SELECT id, k, v, ts FROM " + strings.Replace(windowed, "%", "w", 1)
			}},
		{clauseOver, false,
			func(b *block, streaming bool) {
				order := "q.id"
				switch {
				case b.group != "":
					b.columns += ", SUM(SUM(q.v)) OVER (PARTITION BY q.k ORDER BY MAX(q.id)) AS s"
					return
				case streaming:
					order = "q.ts"
				}
				b.columns += ", SUM(q.v) OVER (PARTITION BY q.k ORDER BY " + order + ") AS s"
			},
			func(from string, streaming bool) string {
				order := "ts, id, v"
				if streaming {
					order = "ts"
				}
				return "SELECT id, k, SUM(v) OVER (PARTITION BY k ORDER BY " + order + ") AS v, ts FROM " + from
			}},
		{clauseOrderBy, false,
			func(b *block, streaming bool) { b.sort(streaming && b.limit == "") },
			func(from string, streaming bool) string {
				if streaming {
					return "SELECT id, k, v, ts FROM " + from + " ORDER BY ts"
				}
				return "SELECT id, k, v, ts FROM " + from + " ORDER BY ts, k, v, id"
			}},
		{clauseLimit, false,
			func(b *block, _ bool) { b.sort(false); b.limit = " LIMIT 3" },
			func(from string, _ bool) string {
				return "SELECT id, k, v, ts FROM " + from + " ORDER BY ts, k, v, id FETCH FIRST 3 ROWS ONLY"
			}},
		setOperation(clauseUnion), setOperation(clauseUnionAll), setOperation(clauseIntersect), setOperation(clauseExcept),
		{clauseJoin, false,
			func(b *block, _ bool) { b.from += " JOIN u ON q.k = u.k AND q.id <> u.id" },
			func(from string, _ bool) string {
				return "SELECT q.id, q.k, u.v, q.ts FROM " + from + " AS q JOIN u ON q.k = u.k AND q.id <> u.id"
			}},
		{clauseIn, false,
			func(b *block, _ bool) { b.and("q.k IN (SELECT k FROM u)") },
			func(from string, _ bool) string {
				return "SELECT id, k, v, ts FROM " + from + " WHERE k IN (SELECT k FROM u)"
			}},
		{clauseExists, false,
			func(b *block, _ bool) { b.and("NOT EXISTS (SELECT * FROM u AS e WHERE e.k = q.k AND e.v > 3)") },
			func(from string, _ bool) string {
				return "SELECT id, k, v, ts FROM " + from + " AS q WHERE NOT EXISTS (SELECT * FROM u AS e WHERE e.k = q.k AND e.v > 3)"
			}},
		{clauseWith, false,
			func(b *block, _ bool) {
				b.with = "WITH w AS (SELECT * FROM t) "
				b.from = strings.Replace(strings.Replace(b.from, "TABLE t,", "TABLE w,", 1), "t AS q", "w AS q", 1)
			},
			func(from string, _ bool) string {
				return "WITH w AS (SELECT id, k, v, ts FROM " + from + ") SELECT id, k, v, ts FROM w"
			}},
		{clauseUnnest, false,
			func(b *block, _ bool) {
				b.from += " CROSS JOIN UNNEST(q.a) AS e(x)"
				if b.group == "" {
					b.columns += ", e.x"
				} else {
					b.columns += ", SUM(e.x) AS x"
				}
				if b.order != "" && b.behind == "" {
					b.order += ", x"
				}
			},
			func(from string, _ bool) string {
				return "SELECT id, k, x AS v, ts FROM (SELECT id, k, ts, ARRAY[v, id] AS a FROM " + from + ") CROSS JOIN UNNEST(a) AS e(x)"
			}},
	}
}

func (b *block) and(condition string) {
	if b.where == "" {
		b.where = " WHERE " + condition
	} else {
		b.where += " AND " + condition
	}
}

func (b *block) grouped() {
	b.id, b.value, b.time, b.group = "MAX(q.id)", "SUM(q.v)", "MAX(q.ts)", " GROUP BY q.k"
}

func (b *block) sort(byTime bool) {
	switch {
	case b.order != "" && b.limit != "":
	case byTime:
		b.order = " ORDER BY ts"
	default:
		b.order = " ORDER BY id, k, v, ts"
	}
}

func (b *block) sql() string {
	if b.behind != "" {
		// In a set operation row time goes with row time alone.
		b.columns, b.time = "", "CAST("+b.time+" AS TIMESTAMP(3))"
	}
	return b.with + "SELECT " + b.distinct + b.id + " AS id, " + b.key + " AS k, " + b.value + " AS v, " + b.time + " AS ts" + b.columns +
		" FROM " + b.from + b.where + b.group + b.having + b.behind + b.order + b.limit
}

// clauseSuites are every two clauses in one block and, in streaming mode, each over
// the other.
func clauseSuites() []*suite {
	head := []string{
		"CREATE TABLE t (id INT, k INT, v INT, a ARRAY<INT>, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'given')",
		"CREATE TABLE u (id INT, k INT, v INT, ts TIMESTAMP(3)) WITH ('connector' = 'given')",
	}
	rows := []string{
		`INSERT INTO t SELECT a, NULLIF(b, -1), NULLIF(c, -1), ARRAY[a, c], t FROM (VALUES
(1, 1, 5, TIMESTAMP '2024-01-01 00:00:01.000'), (2, 2, 3, TIMESTAMP '2024-01-01 00:00:02.000'), (3, -1, 4, TIMESTAMP '2024-01-01 00:00:03.000'),
(4, 1, 2, TIMESTAMP '2024-01-01 00:00:14.000'), (5, 2, 3, TIMESTAMP '2024-01-01 00:00:15.000'), (6, 1, -1, TIMESTAMP '2024-01-01 00:00:16.000'),
(7, -1, 4, TIMESTAMP '2024-01-01 00:00:27.000'), (8, 3, 8, TIMESTAMP '2024-01-01 00:00:28.000'), (9, 1, 9, TIMESTAMP '2024-01-01 00:00:29.000')) AS v(a, b, c, t)`,
		`INSERT INTO u SELECT a, NULLIF(b, -1), NULLIF(c, -1), t FROM (VALUES
(1, 1, 5, TIMESTAMP '2024-01-01 00:00:01.000'), (3, -1, 4, TIMESTAMP '2024-01-01 00:00:03.000'), (6, 1, -1, TIMESTAMP '2024-01-01 00:00:16.000'),
(8, 3, 1, TIMESTAMP '2024-01-01 00:00:28.000'), (20, 2, 7, TIMESTAMP '2024-01-01 00:00:30.000'), (20, 2, 7, TIMESTAMP '2024-01-01 00:00:30.000')) AS v(a, b, c, t)`,
	}
	batch := &suite{name: "clauses", settings: map[string]string{}, tables: head, rows: rows}
	stream := &suite{name: "clauses_stream", settings: map[string]string{"execution.runtime-mode": "streaming"}, tables: head, rows: rows}
	cases := clauseCases()
	for i, a := range cases {
		for k, b := range cases {
			if i < k {
				for _, s := range []*suite{batch, stream} {
					if (a.set || a.clause == clauseOver) && b.set && !s.streaming() {
						// Neither has a place for the other.
						s.queries = append(s.queries, a.over("("+b.over("t", false)+")", false), b.over("("+a.over("t", false)+")", false))
						continue
					}
					one := block{from: "t AS q", id: "q.id", key: "q.k", value: "q.v", time: "q.ts"}
					a.in(&one, s.streaming())
					b.in(&one, s.streaming())
					s.queries = append(s.queries, one.sql())
				}
			}
			stream.queries = append(stream.queries, b.over("("+a.over("t", true)+")", true))
		}
	}
	batch.queries, stream.queries = distinct(batch.queries), distinct(stream.queries)
	return []*suite{batch, stream}
}
