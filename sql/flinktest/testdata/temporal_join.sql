-- Joins with the version of a row valid at a row time. The rows of a file come in
-- their order, the two sides of a join in any.

SET 'execution.runtime-mode' = 'streaming'

CREATE TABLE o (id INT, k INT, x INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'given')

CREATE TABLE h (k INT, v INT, x INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'given')

CREATE TABLE p (k INT NOT NULL, v INT, x INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'given')

CREATE TABLE pp (k INT NOT NULL, x INT NOT NULL, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' DAY, PRIMARY KEY (k, x) NOT ENFORCED) WITH ('connector' = 'given')

CREATE TABLE empty_versions (k INT NOT NULL, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'given')

CREATE TABLE odd (k INT, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'given')

CREATE TABLE lo (id INT, k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'given')

CREATE VIEW rv AS SELECT k, v, x, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM h) WHERE rn = 1

CREATE VIEW rx AS SELECT k, x, v, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k, x ORDER BY ts DESC) AS rn FROM h) WHERE rn = 1

CREATE VIEW oddities AS SELECT k, v, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM odd) WHERE rn = 1

CREATE VIEW above AS SELECT * FROM rv WHERE v <> 101

CREATE VIEW below AS SELECT k, v, x, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM h WHERE v <> 101) WHERE rn = 1

CREATE VIEW renamed AS SELECT ts AS at_time, v + 1 AS w, k AS num FROM rv

CREATE VIEW pf AS SELECT * FROM p WHERE v <> 101

CREATE VIEW pr AS SELECT ts AS at_time, v + 1 AS w, k AS num FROM p

CREATE VIEW firsts AS SELECT k, v, x, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts) AS rn FROM h) WHERE rn = 1

INSERT INTO o SELECT a, NULLIF(b, -1), NULLIF(c, -1), t FROM (VALUES
  (1, 1, 1, TIMESTAMP '2024-01-01 00:00:05.000'),
  (2, 1, 1, TIMESTAMP '2024-01-01 00:00:10.000'),
  (3, 1, 2, TIMESTAMP '2024-01-01 00:00:15.000'),
  (8, 2, 1, TIMESTAMP '2024-01-01 00:00:14.999'),
  (7, 2, 1, TIMESTAMP '2024-01-01 00:00:15.000'),
  (10, 4, 1, TIMESTAMP '2024-01-01 00:00:20.000'),
  (4, 1, 1, TIMESTAMP '2024-01-01 00:00:20.000'),
  (11, 4, 1, TIMESTAMP '2024-01-01 00:00:23.000'),
  (5, 1, 2, TIMESTAMP '2024-01-01 00:00:25.000'),
  (12, 5, -1, TIMESTAMP '2024-01-01 00:00:25.000'),
  (16, 5, 1, TIMESTAMP '2024-01-01 00:00:26.000'),
  (9, -1, 1, TIMESTAMP '2024-01-01 00:00:30.000'),
  (13, 9, 1, TIMESTAMP '2024-01-01 00:00:30.000'),
  (6, 1, 1, TIMESTAMP '2024-01-01 00:00:35.000'),
  (14, 3, 1, TIMESTAMP '2024-01-01 00:00:39.999'),
  (15, 3, 3, TIMESTAMP '2024-01-01 00:00:41.000')
) AS v(a, b, c, t)

INSERT INTO h SELECT NULLIF(a, -1), NULLIF(b, -1), NULLIF(c, -1), t FROM (VALUES
  (1, 100, 1, TIMESTAMP '2024-01-01 00:00:10.000'),
  (2, 200, 1, TIMESTAMP '2024-01-01 00:00:15.000'),
  (2, 201, 1, TIMESTAMP '2024-01-01 00:00:15.000'),
  (1, 101, 2, TIMESTAMP '2024-01-01 00:00:20.000'),
  (5, -1, -1, TIMESTAMP '2024-01-01 00:00:20.000'),
  (4, 401, 1, TIMESTAMP '2024-01-01 00:00:19.000'),
  (4, 400, 1, TIMESTAMP '2024-01-01 00:00:22.000'),
  (1, 102, 1, TIMESTAMP '2024-01-01 00:00:30.000'),
  (3, 300, 3, TIMESTAMP '2024-01-01 00:00:40.000')
) AS v(a, b, c, t)

INSERT INTO p SELECT a, NULLIF(b, -1), NULLIF(c, -1), t FROM (VALUES
  (1, 100, 1, TIMESTAMP '2024-01-01 00:00:10.000'),
  (2, 200, 1, TIMESTAMP '2024-01-01 00:00:15.000'),
  (2, 201, 1, TIMESTAMP '2024-01-01 00:00:15.000'),
  (1, 101, 2, TIMESTAMP '2024-01-01 00:00:20.000'),
  (5, -1, -1, TIMESTAMP '2024-01-01 00:00:20.000'),
  (4, 400, 1, TIMESTAMP '2024-01-01 00:00:22.000'),
  (4, 401, 1, TIMESTAMP '2024-01-01 00:00:19.000'),
  (1, 102, 1, TIMESTAMP '2024-01-01 00:00:30.000'),
  (3, 300, 3, TIMESTAMP '2024-01-01 00:00:40.000')
) AS v(a, b, c, t)

INSERT INTO pp SELECT a, b, c, t FROM (VALUES
  (1, 1, 100, TIMESTAMP '2024-01-01 00:00:10.000'),
  (1, 2, 101, TIMESTAMP '2024-01-01 00:00:20.000'),
  (1, 1, 102, TIMESTAMP '2024-01-01 00:00:30.000'),
  (2, 1, 201, TIMESTAMP '2024-01-01 00:00:15.000')
) AS v(a, b, c, t)

-- A NULL key, and a version that comes after a later one.
INSERT INTO odd SELECT NULLIF(a, -1), b, t FROM (VALUES
  (-1, 900, TIMESTAMP '2024-01-01 00:00:12.000'),
  (4, 400, TIMESTAMP '2024-01-01 00:00:22.000'),
  (4, 401, TIMESTAMP '2024-01-01 00:00:19.000')
) AS v(a, b, t)

-- The second row of the left side is late by its own file's watermark.
INSERT INTO lo SELECT a, b, t FROM (VALUES
  (1, 3, TIMESTAMP '2024-01-01 00:01:00.000'),
  (2, 3, TIMESTAMP '2024-01-01 00:00:50.000')
) AS v(a, b, t)

SELECT o.id, r.v, r.x, r.ts FROM o JOIN rv FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v, r.x, r.ts FROM o LEFT JOIN rv FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v, r.x, r.ts FROM o JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v, r.x, r.ts FROM o LEFT JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v FROM o JOIN rv FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND o.x = r.x

SELECT o.id, r.v FROM o LEFT JOIN rv FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND o.x = r.x

SELECT o.id, r.v FROM o JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND o.x = r.x

SELECT o.id, r.v FROM o LEFT JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND o.x = r.x

SELECT o.id, r.v FROM o LEFT JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND o.x + 1 = r.x

SELECT o.id, r.v FROM o LEFT JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND o.x = r.x - 1

SELECT o.id, r.v FROM o LEFT JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND o.x IS NOT DISTINCT FROM r.x

SELECT o.id, r.v FROM o LEFT JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k IS NOT DISTINCT FROM r.k

SELECT o.id, r.v FROM o LEFT JOIN rv FOR SYSTEM_TIME AS OF o.ts AS r ON o.k IS NOT DISTINCT FROM r.k

SELECT o.id, r.v FROM o JOIN oddities FOR SYSTEM_TIME AS OF o.ts AS r ON o.k IS NOT DISTINCT FROM r.k WHERE o.id <> 10

SELECT o.id, r.v FROM o JOIN oddities FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k WHERE o.k IS NULL

SELECT o.id, r.v FROM o LEFT JOIN oddities FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k WHERE o.k IS NULL

SELECT o.id, r.v FROM o LEFT JOIN oddities FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k WHERE o.k = 4

SELECT o.id, r.v FROM o LEFT JOIN rv FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND r.x = 1

SELECT o.id, r.v FROM o LEFT JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND r.x = 1

SELECT o.id, r.v FROM o JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND o.x < r.x

SELECT o.id, r.v FROM o LEFT JOIN rv FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND r.v > 100 AND o.id < 12

SELECT o.id, r.v FROM o LEFT JOIN rv FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND r.v IS NULL

SELECT o.id, r.v FROM o LEFT JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND r.x = r.v - 100

SELECT o.id, r.v FROM o LEFT JOIN rv FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k WHERE r.v IS NULL

SELECT o.id, r.v FROM o JOIN rv FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k WHERE r.x = o.x AND r.v > 100

SELECT o.id, r.v FROM o JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k WHERE r.x = o.x

SELECT o.id, r.v FROM o JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k WHERE r.x = 2

SELECT o.id, r.v FROM o JOIN rv FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k WHERE r.x = 2

SELECT o.id, r.v FROM o JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND o.k = 1

SELECT o.id, r.v FROM o LEFT JOIN above FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v FROM o LEFT JOIN below FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v FROM o LEFT JOIN pf FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.w, r.at_time FROM o LEFT JOIN renamed FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.num

SELECT o.id, r.w, r.at_time FROM o LEFT JOIN pr FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.num

SELECT o.id, r.v FROM o LEFT JOIN rx FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND o.x = r.x

SELECT o.id, r.v FROM o LEFT JOIN rx FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v FROM o LEFT JOIN pp FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k AND o.x = r.x

SELECT o.id, r.v FROM o LEFT JOIN pp FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v FROM o LEFT JOIN empty_versions FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v FROM o JOIN empty_versions FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v FROM o LEFT JOIN firsts FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v FROM o LEFT JOIN h FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v FROM o RIGHT JOIN rv FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v FROM o FULL JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v FROM o JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.x = r.x

SELECT o.id, r.v FROM o JOIN p FOR SYSTEM_TIME AS OF r.ts AS r ON o.k = r.k

SELECT o.id, r.v, s.v FROM o LEFT JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k LEFT JOIN rv FOR SYSTEM_TIME AS OF o.ts AS s ON o.k = s.k

SELECT o.id, r.v FROM (SELECT id, CAST(k AS BIGINT) AS k, ts FROM o) AS o LEFT JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v FROM (SELECT * FROM o WHERE x = 1) AS o LEFT JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT id, k, v FROM (SELECT id, k, ts AS t FROM o) AS o JOIN p FOR SYSTEM_TIME AS OF o.t AS r USING (k)

SELECT r.v, COUNT(*), MAX(o.id) FROM o LEFT JOIN rv FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k GROUP BY r.v

WITH w AS (SELECT o.ts, r.v FROM o LEFT JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k) SELECT window_start, COUNT(*), SUM(v) FROM TABLE(TUMBLE(TABLE w, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end

SELECT o.k, r.v, o.n FROM (SELECT k, MAX(id) AS n, MAX(ts) AS ts FROM o GROUP BY k) AS o JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT o.id, r.v FROM (SELECT id, k, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM o) WHERE rn = 1) AS o JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k

SELECT l.id, r.v FROM lo AS l LEFT JOIN p FOR SYSTEM_TIME AS OF l.ts AS r ON l.k = r.k

SELECT o.id FROM o JOIN p FOR SYSTEM_TIME AS OF o.ts AS r ON o.k = r.k WHERE r.v IN (SELECT v FROM h WHERE x = 1)
