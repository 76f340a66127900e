-- Every operator with a NULL among its keys: each query is asked in batch mode and in
-- streaming mode. The comment above one names the operator.

CREATE TABLE l (id INT, k INT, s STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'given')

CREATE TABLE r (id INT, k INT, s STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'given')

CREATE TABLE e (id INT, k INT) WITH ('connector' = 'given')

CREATE VIEW versions AS SELECT id, k, s, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM r) WHERE rn = 1

CREATE VIEW lw AS SELECT * FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(ts), INTERVAL '10' SECOND))

CREATE VIEW rw AS SELECT * FROM TABLE(TUMBLE(TABLE r, DESCRIPTOR(ts), INTERVAL '10' SECOND))

INSERT INTO l SELECT a, NULLIF(b, -1), NULLIF(c, ''), t FROM (VALUES
  (1, 10, 'a', TIMESTAMP '2024-01-01 00:00:01.000'), (2, -1, 'b', TIMESTAMP '2024-01-01 00:00:02.000'), (3, 20, '', TIMESTAMP '2024-01-01 00:00:03.000'),
  (4, 10, 'a', TIMESTAMP '2024-01-01 00:00:04.000'), (5, -1, '', TIMESTAMP '2024-01-01 00:00:11.000'), (6, 50, 'f', TIMESTAMP '2024-01-01 00:00:12.000'),
  (7, -1, 'b', TIMESTAMP '2024-01-01 00:00:13.000')) AS v(a, b, c, t)

INSERT INTO r SELECT a, NULLIF(b, -1), NULLIF(c, ''), t FROM (VALUES
  (1, 10, 'a', TIMESTAMP '2024-01-01 00:00:01.500'), (2, -1, 'b', TIMESTAMP '2024-01-01 00:00:02.500'), (3, 40, '', TIMESTAMP '2024-01-01 00:00:03.500'),
  (4, 10, 'x', TIMESTAMP '2024-01-01 00:00:05.000'), (5, -1, '', TIMESTAMP '2024-01-01 00:00:11.500'), (6, 50, 'f', TIMESTAMP '2024-01-01 00:00:25.000')) AS v(a, b, c, t)

-- NULL key: GROUP BY
SELECT k, COUNT(*), COUNT(s), MIN(id), MAX(s) FROM l GROUP BY k

-- NULL key: GROUP BY
SELECT k, s, COUNT(*) FROM l GROUP BY k, s

-- NULL key: GROUP BY
SELECT k, COUNT(*) FROM l GROUP BY k HAVING k IS NULL OR k > 10

-- NULL key: GROUP BY
SELECT k + 1, COUNT(*) FROM l GROUP BY k + 1

-- NULL key: GROUPING SETS
SELECT k, s, COUNT(*), GROUPING_ID(k, s) FROM l GROUP BY ROLLUP (k, s)

-- NULL key: GROUPING SETS
SELECT k, s, COUNT(*), GROUPING(k), GROUPING(s) FROM l GROUP BY GROUPING SETS ((k), (s), ())

-- NULL key: DISTINCT aggregate
SELECT COUNT(DISTINCT k), COUNT(k), COUNT(*), SUM(DISTINCT k), COUNT(DISTINCT s) FROM l

-- NULL key: DISTINCT aggregate
SELECT s, COUNT(DISTINCT k) FROM l GROUP BY s

-- NULL key: DISTINCT
SELECT DISTINCT k FROM l

-- NULL key: DISTINCT
SELECT DISTINCT k, s FROM l

-- NULL key: inner join
SELECT l.id, r.id FROM l JOIN r ON l.k = r.k

-- NULL key: inner join
SELECT l.id, r.id FROM l JOIN r ON l.k = r.k AND l.s = r.s

-- NULL key: inner join
SELECT k, l.id, r.id FROM l JOIN r USING (k)

-- NULL key: inner join
SELECT l.id, r.id FROM l, r WHERE l.k = r.k AND l.id <> r.id

-- NULL key: inner join IS NOT DISTINCT FROM
SELECT l.id, r.id FROM l JOIN r ON l.k IS NOT DISTINCT FROM r.k

-- NULL key: inner join IS NOT DISTINCT FROM
SELECT l.id, r.id FROM l JOIN r ON l.k = r.k OR l.k IS NULL AND r.k IS NULL

-- NULL key: inner join of other conditions
SELECT l.id, r.id FROM l JOIN r ON l.k < r.k

-- NULL key: left join
SELECT l.id, r.id FROM l LEFT JOIN r ON l.k = r.k

-- NULL key: left join
SELECT l.id, r.id, r.k FROM l LEFT JOIN r ON l.k = r.k AND r.s IS NOT NULL

-- NULL key: left join
SELECT l.id FROM l LEFT JOIN r ON l.k = r.k WHERE r.id IS NULL

-- NULL key: left join
SELECT l.id, r.id FROM l LEFT JOIN r ON l.k IS NOT DISTINCT FROM r.k AND l.s = r.s

-- NULL key: right join
SELECT l.id, r.id FROM l RIGHT JOIN r ON l.k = r.k

-- NULL key: right join
SELECT l.id, r.id FROM l RIGHT JOIN r ON l.k IS NOT DISTINCT FROM r.k AND l.s = r.s

-- NULL key: full join
SELECT l.id, r.id FROM l FULL JOIN r ON l.k = r.k

-- NULL key: full join
SELECT k, l.id, r.id FROM l FULL JOIN r USING (k)

-- NULL key: full join
SELECT l.id, r.id FROM l FULL JOIN r ON l.k IS NOT DISTINCT FROM r.k AND l.s IS NOT DISTINCT FROM r.s

-- NULL key: IN
SELECT id FROM l WHERE k IN (SELECT k FROM r)

-- NULL key: IN
SELECT id FROM l WHERE (k, s) IN (SELECT k, s FROM r)

-- NULL key: IN
SELECT id FROM l WHERE k IN (SELECT k FROM r WHERE r.s = l.s)

-- NULL key: NOT IN
SELECT id FROM l WHERE k NOT IN (SELECT k FROM r)

-- NULL key: NOT IN
SELECT id FROM l WHERE k NOT IN (SELECT k FROM r WHERE k IS NOT NULL)

-- NULL key: NOT IN
SELECT id FROM l WHERE k NOT IN (SELECT k FROM e)

-- NULL key: NOT IN
SELECT id FROM l WHERE k NOT IN (SELECT k FROM r WHERE r.s = l.s)

-- NULL key: NOT IN
SELECT id FROM l WHERE (k, s) NOT IN (SELECT k, s FROM r)

-- NULL key: EXISTS
SELECT id FROM l WHERE EXISTS (SELECT * FROM r WHERE r.k = l.k)

-- NULL key: EXISTS
SELECT id FROM l WHERE EXISTS (SELECT * FROM r WHERE r.k IS NOT DISTINCT FROM l.k AND r.id < l.id)

-- NULL key: NOT EXISTS
SELECT id FROM l WHERE NOT EXISTS (SELECT * FROM r WHERE r.k = l.k)

-- NULL key: NOT EXISTS
SELECT id FROM l WHERE NOT EXISTS (SELECT * FROM r WHERE r.k IS NOT DISTINCT FROM l.k)

-- NULL key: scalar sub-query
SELECT id, (SELECT MAX(r.id) FROM r WHERE r.k = l.k) FROM l

-- NULL key: scalar sub-query
SELECT id, (SELECT COUNT(*) FROM r WHERE r.k = l.k) FROM l

-- NULL key: UNION
SELECT k FROM l UNION SELECT k FROM r

-- NULL key: UNION
SELECT k, s FROM l UNION SELECT k, s FROM r

-- NULL key: UNION ALL
SELECT k FROM l UNION ALL SELECT k FROM r

-- NULL key: INTERSECT
SELECT k FROM l INTERSECT SELECT k FROM r

-- NULL key: INTERSECT
SELECT k, s FROM l INTERSECT SELECT k, s FROM r

-- NULL key: INTERSECT ALL
SELECT k FROM l INTERSECT ALL SELECT k FROM r

-- NULL key: EXCEPT
SELECT k FROM l EXCEPT SELECT k FROM r

-- NULL key: EXCEPT
SELECT k, s FROM l EXCEPT SELECT k, s FROM r

-- NULL key: EXCEPT ALL
SELECT k FROM l EXCEPT ALL SELECT k FROM r

-- NULL key: OVER
SELECT id, k, COUNT(*) OVER (PARTITION BY k ORDER BY ts), SUM(id) OVER (PARTITION BY k ORDER BY ts) FROM l

-- NULL key: OVER
SELECT id, k, SUM(id) OVER (PARTITION BY k ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM l

-- NULL key: OVER
SELECT id, k, COUNT(*) OVER (PARTITION BY k, s ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) FROM l

-- NULL key: OVER
SELECT id, k, SUM(id) OVER (ORDER BY k, id) FROM l

-- NULL key: OVER
SELECT id, k, RANK() OVER (ORDER BY k), DENSE_RANK() OVER (ORDER BY k DESC) FROM l

-- NULL key: OVER
SELECT id, k, LAG(id) OVER (PARTITION BY k ORDER BY id), LEAD(k) OVER (ORDER BY id) FROM l

-- NULL key: first row of each key
SELECT id, k, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS n FROM l) WHERE n = 1

-- NULL key: last row of each key
SELECT id, k, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS n FROM l) WHERE n = 1

-- NULL key: last row of each key
SELECT id, k, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, s ORDER BY ts DESC) AS n FROM l) WHERE n = 1

-- NULL key: Top-N
SELECT id, k, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id DESC) AS n FROM l) WHERE n <= 2

-- NULL key: Top-N
SELECT id, k, n FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY k, id) AS n FROM l) WHERE n <= 4

-- NULL key: Top-N
SELECT id, k, n FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY k DESC, id) AS n FROM l) WHERE n <= 5

-- NULL key: Top-N
SELECT k, c, n FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY c DESC, k) AS n FROM (SELECT k, COUNT(*) AS c FROM l GROUP BY k)) WHERE n <= 2

-- NULL key: window TUMBLE
SELECT k, window_start, COUNT(*), MAX(s) FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end

-- NULL key: window TUMBLE
SELECT window_start, COUNT(DISTINCT k), COUNT(DISTINCT s) FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end

-- NULL key: window TUMBLE
SELECT k, s, window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE l, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end, GROUPING SETS ((k), (s), ())

-- NULL key: window HOP
SELECT k, window_start, COUNT(*) FROM TABLE(HOP(TABLE l, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end

-- NULL key: window CUMULATE
SELECT k, window_start, window_end, COUNT(*) FROM TABLE(CUMULATE(TABLE l, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND)) GROUP BY k, window_start, window_end

-- NULL key: window SESSION
SELECT k, window_start, window_end, COUNT(*) FROM TABLE(SESSION(TABLE l PARTITION BY k, DESCRIPTOR(ts), INTERVAL '5' SECOND)) GROUP BY k, window_start, window_end

-- NULL key: group window
SELECT k, TUMBLE_START(ts, INTERVAL '10' SECOND), COUNT(*) FROM l GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND)

-- NULL key: group window
SELECT k, SESSION_START(ts, INTERVAL '5' SECOND), COUNT(*) FROM l GROUP BY k, SESSION(ts, INTERVAL '5' SECOND)

-- NULL key: window Top-N
SELECT id, k, window_start, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY id DESC) AS n FROM lw) WHERE n <= 2

-- NULL key: window Top-N
SELECT id, k, window_start FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end, k ORDER BY ts) AS n FROM lw) WHERE n <= 1

-- NULL key: window join
SELECT lw.id, rw.id, lw.window_start FROM lw JOIN rw ON lw.k = rw.k AND lw.window_start = rw.window_start AND lw.window_end = rw.window_end

-- NULL key: window join
SELECT lw.id, rw.id FROM lw LEFT JOIN rw ON lw.k = rw.k AND lw.window_start = rw.window_start AND lw.window_end = rw.window_end

-- NULL key: window join
SELECT lw.id, rw.id FROM lw RIGHT JOIN rw ON lw.k = rw.k AND lw.window_start = rw.window_start AND lw.window_end = rw.window_end

-- NULL key: window join
SELECT lw.id, rw.id, lw.window_start, rw.window_start FROM lw FULL JOIN rw ON lw.k = rw.k AND lw.window_start = rw.window_start AND lw.window_end = rw.window_end

-- NULL key: window join
SELECT lw.id, rw.id FROM lw FULL JOIN rw ON lw.k IS NOT DISTINCT FROM rw.k AND lw.window_start = rw.window_start AND lw.window_end = rw.window_end

-- NULL key: window semi-join
SELECT id FROM lw WHERE EXISTS (SELECT * FROM rw WHERE lw.k = rw.k AND lw.window_start = rw.window_start AND lw.window_end = rw.window_end)

-- NULL key: window semi-join
SELECT id FROM lw WHERE k IN (SELECT k FROM rw WHERE lw.window_start = rw.window_start AND lw.window_end = rw.window_end)

-- NULL key: window anti-join
SELECT id FROM lw WHERE NOT EXISTS (SELECT * FROM rw WHERE lw.k = rw.k AND lw.window_start = rw.window_start AND lw.window_end = rw.window_end)

-- NULL key: window anti-join
SELECT id FROM lw WHERE k NOT IN (SELECT k FROM rw WHERE lw.window_start = rw.window_start AND lw.window_end = rw.window_end)

-- NULL key: interval join
SELECT l.id, r.id FROM l JOIN r ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '2' SECOND AND r.ts + INTERVAL '1' SECOND

-- NULL key: interval join
SELECT l.id, r.id FROM l LEFT JOIN r ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '2' SECOND AND r.ts + INTERVAL '1' SECOND

-- NULL key: interval join
SELECT l.id, r.id FROM l RIGHT JOIN r ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '2' SECOND AND r.ts + INTERVAL '1' SECOND

-- NULL key: interval join
SELECT l.id, r.id FROM l FULL JOIN r ON l.k = r.k AND l.ts BETWEEN r.ts - INTERVAL '2' SECOND AND r.ts + INTERVAL '1' SECOND

-- NULL key: interval join
SELECT l.id, r.id FROM l FULL JOIN r ON l.k IS NOT DISTINCT FROM r.k AND l.ts BETWEEN r.ts - INTERVAL '2' SECOND AND r.ts + INTERVAL '1' SECOND

-- NULL key: temporal join
SELECT l.id, v.id FROM l JOIN versions FOR SYSTEM_TIME AS OF l.ts AS v ON l.k = v.k

-- NULL key: temporal join
SELECT l.id, v.id FROM l LEFT JOIN versions FOR SYSTEM_TIME AS OF l.ts AS v ON l.k = v.k

-- NULL key: temporal join
SELECT l.id, v.id FROM l LEFT JOIN versions FOR SYSTEM_TIME AS OF l.ts AS v ON l.k IS NOT DISTINCT FROM v.k

-- NULL key: ORDER BY
SELECT k, id FROM l ORDER BY k, id

-- NULL key: ORDER BY
SELECT k, id FROM l ORDER BY k DESC, id

-- NULL key: ORDER BY
SELECT k, id FROM l ORDER BY k NULLS LAST, id

-- NULL key: ORDER BY
SELECT k, id FROM l ORDER BY k DESC NULLS FIRST, id

-- NULL key: ORDER BY with LIMIT
SELECT k, id FROM l ORDER BY k, id LIMIT 4

-- NULL key: ORDER BY with LIMIT
SELECT k, id FROM l ORDER BY k DESC, id DESC LIMIT 5 OFFSET 1

-- NULL key: MATCH_RECOGNIZE
SELECT * FROM l MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.id AS first_id, B.id AS last_id PATTERN (A B) DEFINE B AS B.id > A.id)
