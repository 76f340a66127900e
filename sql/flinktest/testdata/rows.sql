-- Rows out of rows: joins with UNNEST and a condition. Zeros as keys.

CREATE TABLE tagged (id INT, tags ARRAY<STRING>, parts ARRAY<ROW<n INT, w STRING>>) WITH ('connector' = 'given')

CREATE TABLE zeros (id INT, d DOUBLE) WITH ('connector' = 'given')

INSERT INTO tagged VALUES (1, ARRAY['a', 'b'], ARRAY[ROW(1, 'p'), ROW(2, 'q')]), (2, ARRAY['b', 'c'], ARRAY[ROW(3, 'r')]), (3, CAST(NULL AS ARRAY<STRING>), CAST(NULL AS ARRAY<ROW<n INT, w STRING>>))

INSERT INTO zeros VALUES (1, 0e0), (2, 1e0), (-1, 0e0), (-2, 1e0)

SELECT id, x FROM tagged JOIN UNNEST(tags) AS t(x) ON TRUE

SELECT id, x FROM tagged LEFT JOIN UNNEST(tags) AS t(x) ON TRUE

SELECT id, x FROM tagged JOIN UNNEST(tags) AS t(x) ON x = 'b'

SELECT id, n, w FROM tagged INNER JOIN UNNEST(parts) AS t(n, w) ON n > id

SELECT id, x FROM tagged LEFT JOIN UNNEST(tags) AS t(x) ON x = 'b'

SELECT id, x FROM tagged LEFT JOIN UNNEST(tags) AS t(x) ON x = 'a'

SELECT id, x FROM tagged RIGHT JOIN UNNEST(tags) AS t(x) ON TRUE

SELECT id, x, w FROM tagged CROSS JOIN UNNEST(tags) AS t(x) JOIN UNNEST(parts) AS u(n, w) ON n = 1

SELECT COUNT(*) FROM zeros GROUP BY d * id

SELECT CAST(d * id AS STRING), COUNT(*) FROM zeros GROUP BY d * id

SELECT COUNT(*) FROM (SELECT DISTINCT d * id AS z FROM zeros)

SELECT COUNT(DISTINCT d * id) FROM zeros

SELECT a.id, b.id FROM zeros AS a JOIN zeros AS b ON a.d * a.id = b.d * b.id WHERE a.d = 0e0

SELECT id, d * id = 0e0, d * id < 0e0, CAST(d * id AS STRING) FROM zeros

SELECT d * id AS z FROM zeros UNION SELECT d FROM zeros
