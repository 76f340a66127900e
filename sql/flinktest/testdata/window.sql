-- Windows by event time, over rows in order.

SET 'execution.runtime-mode' = 'streaming'

CREATE TABLE clicks (uid INT, v INT, d DECIMAL(10, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'given')

-- Rows keep their order only as plain literals: -1 stands for NULL.
INSERT INTO clicks SELECT NULLIF(a, -1), NULLIF(b, -1), NULLIF(c, -1.00), t FROM (VALUES
  (1, 10, 1.50, TIMESTAMP '2019-05-01 10:00:01.000'),
  (2, 5, 2.25, TIMESTAMP '2019-05-01 10:00:30.000'),
  (1, 20, -1.00, TIMESTAMP '2019-05-01 10:00:59.000'),
  (-1, 7, 0.10, TIMESTAMP '2019-05-01 10:01:00.000'),
  (1, -1, 3.00, TIMESTAMP '2019-05-01 10:01:30.000'),
  (2, 30, 4.00, TIMESTAMP '2019-05-01 10:04:59.999'),
  (2, 40, 5.00, TIMESTAMP '2019-05-01 10:05:00.000')
) AS v(a, b, c, t)

SELECT window_start, window_end, COUNT(*), COUNT(v), SUM(v), AVG(v), MIN(v), MAX(d), SUM(d)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end

SELECT uid, window_start, window_time, COUNT(*), SUM(d)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '5' MINUTE)) GROUP BY uid, window_start, window_end, window_time

SELECT window_start, window_end, COUNT(*)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '20' SECOND)) GROUP BY window_start, window_end

SELECT window_start, window_end, COUNT(*), COUNT(DISTINCT uid)
FROM TABLE(HOP(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '3' MINUTE)) GROUP BY window_start, window_end

SELECT window_start, window_end, COUNT(*), SUM(v)
FROM TABLE(CUMULATE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE, INTERVAL '3' MINUTE)) GROUP BY window_start, window_end

SELECT uid, window_start, window_end, COUNT(*)
FROM TABLE(SESSION(TABLE clicks PARTITION BY uid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY uid, window_start, window_end

SELECT window_start, window_end, COUNT(*)
FROM TABLE(SESSION(TABLE clicks, DESCRIPTOR(ts), INTERVAL '31' SECOND)) GROUP BY window_start, window_end

SELECT uid, v, window_start, window_end, window_time FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))

SELECT window_start, uid, COUNT(*)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '5' MINUTE)) GROUP BY window_start, window_end, GROUPING SETS ((uid), ())

SELECT * FROM (
  SELECT uid, v, window_start, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY v DESC) AS r
  FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '5' MINUTE))
) WHERE r <= 2

SELECT uid, v, SUM(v) OVER (PARTITION BY uid ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM clicks WHERE uid IS NOT NULL

SELECT uid, v, COUNT(*) OVER (PARTITION BY uid ORDER BY ts RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW) AS c FROM clicks

SELECT uid, v, SUM(v) OVER (PARTITION BY uid ORDER BY ts) AS s, MIN(d) OVER (PARTITION BY uid ORDER BY ts) AS m FROM clicks

SELECT a.uid, a.v, b.v FROM clicks a, clicks b WHERE a.uid = b.uid AND a.ts BETWEEN b.ts - INTERVAL '1' MINUTE AND b.ts AND a.v <> b.v

SELECT uid, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY uid ORDER BY ts ASC) AS r FROM clicks) WHERE r = 1

SELECT uid, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY uid ORDER BY ts DESC) AS r FROM clicks) WHERE r = 1

SELECT uid, COUNT(*), SUM(v), AVG(d) FROM clicks GROUP BY uid

SELECT uid, TUMBLE_START(ts, INTERVAL '1' MINUTE), COUNT(*) FROM clicks GROUP BY uid, TUMBLE(ts, INTERVAL '1' MINUTE)
