-- Windows that give rows before they end and again when late rows come: what is left
-- in the end. Rows lie further apart than Flink's watermarks do (200 ms), so that each
-- row is late or not on both sides alike. The window table functions, in which Flink
-- refuses these settings, come last.

SET 'execution.runtime-mode' = 'streaming'

SET 'table.exec.emit.early-fire.enabled' = 'true'

SET 'table.exec.emit.early-fire.delay' = '0s'

SET 'table.exec.emit.late-fire.enabled' = 'true'

SET 'table.exec.emit.late-fire.delay' = '0s'

SET 'table.exec.emit.allow-lateness' = '15s'

CREATE TABLE clicks (uid INT, v INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'given')

INSERT INTO clicks SELECT NULLIF(a, -1), NULLIF(b, -1), t FROM (VALUES
  (1, 10, TIMESTAMP '2024-01-01 00:00:01.000'),
  (2, 5, TIMESTAMP '2024-01-01 00:00:09.000'),
  (1, 20, TIMESTAMP '2024-01-01 00:00:12.000'),
  (1, 7, TIMESTAMP '2024-01-01 00:00:08.000'),
  (2, -1, TIMESTAMP '2024-01-01 00:00:21.000'),
  (2, 3, TIMESTAMP '2024-01-01 00:00:05.000'),
  (-1, 100, TIMESTAMP '2024-01-01 00:00:27.000'),
  (1, 50, TIMESTAMP '2024-01-01 00:00:03.000'),
  (2, 60, TIMESTAMP '2024-01-01 00:00:15.000'),
  (2, 8, TIMESTAMP '2024-01-01 00:00:36.000'),
  (1, 9, TIMESTAMP '2024-01-01 00:00:14.000'),
  (1, 11, TIMESTAMP '2024-01-01 00:00:22.000')
) AS v(a, b, t)

SELECT TUMBLE_START(ts, INTERVAL '10' SECOND), COUNT(*), COUNT(v), SUM(v), MIN(v), MAX(v), AVG(v), COUNT(DISTINCT uid) FROM clicks GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)

SELECT uid, TUMBLE_END(ts, INTERVAL '10' SECOND), COUNT(*), SUM(v) FROM clicks GROUP BY uid, TUMBLE(ts, INTERVAL '10' SECOND)

SELECT uid, HOP_START(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND), COUNT(*), SUM(v) FROM clicks GROUP BY uid, HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)

SELECT HOP_END(ts, INTERVAL '4' SECOND, INTERVAL '12' SECOND), COUNT(*), MAX(v) FROM clicks WHERE uid < 3 GROUP BY HOP(ts, INTERVAL '4' SECOND, INTERVAL '12' SECOND)

SELECT uid, TUMBLE_START(ts, INTERVAL '10' SECOND), SUM(v) FROM clicks GROUP BY uid, TUMBLE(ts, INTERVAL '10' SECOND) HAVING SUM(v) > 15

SELECT uid, COUNT(*), SUM(s), MAX(n) FROM (SELECT uid, COUNT(*) AS n, SUM(v) AS s FROM clicks GROUP BY uid, TUMBLE(ts, INTERVAL '10' SECOND)) GROUP BY uid

SELECT uid, SESSION_START(ts, INTERVAL '5' SECOND), COUNT(*) FROM clicks GROUP BY uid, SESSION(ts, INTERVAL '5' SECOND)

SELECT TUMBLE_START(t, INTERVAL '30' SECOND), SUM(n) FROM (SELECT COUNT(*) AS n, TUMBLE_ROWTIME(ts, INTERVAL '10' SECOND) AS t FROM clicks GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)) GROUP BY TUMBLE(t, INTERVAL '30' SECOND)

SELECT uid, window_start, COUNT(*), SUM(v) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY uid, window_start, window_end
