-- Tables of newest rows by primary key, as upsert-kafka gives them: records in order,
-- '-' deletes. What is left in the end.

SET 'execution.runtime-mode' = 'streaming'

CREATE TABLE price_log (op STRING, item STRING, price INT, k INT) WITH ('connector' = 'given')

CREATE TABLE prices (item STRING NOT NULL, price INT, k INT, PRIMARY KEY (item) NOT ENFORCED) WITH ('connector' = 'given-upsert', 'log' = 'price_log')

CREATE TABLE stock_log (op STRING, item STRING, n INT, k INT) WITH ('connector' = 'given')

CREATE TABLE stock (item STRING NOT NULL, n INT, k INT, PRIMARY KEY (item) NOT ENFORCED) WITH ('connector' = 'given-upsert', 'log' = 'stock_log')

CREATE TABLE version_log (op STRING, item STRING, price INT, ts TIMESTAMP(3)) WITH ('connector' = 'given')

CREATE TABLE versions (item STRING NOT NULL, price INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (item) NOT ENFORCED) WITH ('connector' = 'given-upsert', 'log' = 'version_log')

CREATE TABLE o (id INT, item STRING, k INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'given')

INSERT INTO price_log SELECT a, b, NULLIF(c, -1), NULLIF(d, -1) FROM (VALUES
  ('+', 'a', 10, 1), ('+', 'b', 20, 1), ('+', 'a', 11, 2), ('+', 'c', 30, -1), ('-', 'b', 0, 0), ('+', 'd', -1, 2),
  ('-', 'x', 0, 0), ('+', 'b', 21, 1), ('+', 'c', 30, -1), ('-', 'd', 0, 0), ('+', 'e', 20, 1), ('+', 'f', -1, -1)) AS v(a, b, c, d)

INSERT INTO stock_log SELECT a, b, NULLIF(c, -1), NULLIF(d, -1) FROM (VALUES
  ('+', 'a', 5, 1), ('+', 'c', 6, 2), ('+', 'c', 7, -1), ('+', 'z', 9, 1), ('-', 'a', 0, 0), ('+', 'b', 1, 1), ('+', 'z', -1, 3)) AS v(a, b, c, d)

INSERT INTO version_log SELECT a, b, c, t FROM (VALUES
  ('+', 'a', 10, TIMESTAMP '2024-01-01 00:00:01.000'), ('+', 'b', 20, TIMESTAMP '2024-01-01 00:00:02.000'), ('+', 'a', 11, TIMESTAMP '2024-01-01 00:00:10.000')) AS v(a, b, c, t)

INSERT INTO o SELECT a, NULLIF(b, ''), NULLIF(c, -1), t FROM (VALUES
  (1, 'a', 1, TIMESTAMP '2024-01-01 00:00:01.000'), (2, 'b', -1, TIMESTAMP '2024-01-01 00:00:05.000'), (3, '', 2, TIMESTAMP '2024-01-01 00:00:09.000'),
  (4, 'd', 1, TIMESTAMP '2024-01-01 00:00:12.000'), (5, 'c', 2, TIMESTAMP '2024-01-01 00:00:13.000'), (6, 'a', 3, TIMESTAMP '2024-01-01 00:00:14.000')) AS v(a, b, c, t)

SELECT * FROM prices

SELECT item, price * 2 FROM prices WHERE price > 15

SELECT item FROM prices WHERE price IS NULL OR k = 1

SELECT k, COUNT(*), COUNT(price), SUM(price), MIN(price), MAX(price), AVG(price) FROM prices GROUP BY k

SELECT COUNT(*), SUM(price), COUNT(DISTINCT k), MIN(item), MAX(item) FROM prices

SELECT k, COUNT(*) FROM prices GROUP BY k HAVING COUNT(*) > 1

SELECT price, COUNT(*) FROM prices WHERE k = 1 GROUP BY price

SELECT k, COUNT(*) FILTER (WHERE price > 20) FROM prices GROUP BY ROLLUP (k)

SELECT n, COUNT(*) FROM (SELECT k, COUNT(*) AS n FROM prices GROUP BY k) GROUP BY n

SELECT DISTINCT k FROM prices

SELECT p.item, price, n FROM prices p JOIN stock s ON p.item = s.item

SELECT p.item, price, n FROM prices p LEFT JOIN stock s ON p.item = s.item

SELECT s.item, price, n FROM prices p RIGHT JOIN stock s ON p.item = s.item

SELECT p.item, s.item, price, n FROM prices p FULL JOIN stock s ON p.item = s.item

SELECT p.item, s.item FROM prices p JOIN stock s ON p.k = s.k

SELECT p.item, s.item FROM prices p LEFT JOIN stock s ON p.k = s.k AND n > 1

SELECT p.item, s.item FROM prices p FULL JOIN stock s ON p.k IS NOT DISTINCT FROM s.k

SELECT a.item, b.item FROM prices a JOIN prices b ON a.k = b.k AND a.item < b.item

SELECT id, price FROM o JOIN prices p ON o.item = p.item

SELECT id, price FROM o LEFT JOIN prices p ON o.item = p.item AND price > 11

SELECT id, p.item FROM o RIGHT JOIN prices p ON o.item = p.item

SELECT item, COUNT(id) FROM (SELECT p.item, id FROM prices p LEFT JOIN o ON o.item = p.item) GROUP BY item

SELECT item FROM prices WHERE item IN (SELECT item FROM stock)

SELECT item FROM prices WHERE item NOT IN (SELECT item FROM stock)

SELECT item FROM prices WHERE k IN (SELECT k FROM stock)

SELECT item FROM prices WHERE k NOT IN (SELECT k FROM stock WHERE k IS NOT NULL)

SELECT item FROM prices WHERE k NOT IN (SELECT k FROM stock)

SELECT id FROM o WHERE item IN (SELECT item FROM prices)

SELECT id FROM o WHERE item NOT IN (SELECT item FROM prices)

SELECT id FROM o WHERE EXISTS (SELECT * FROM prices p WHERE p.item = o.item AND price > 20)

SELECT id FROM o WHERE NOT EXISTS (SELECT * FROM prices p WHERE p.item = o.item)

SELECT item, (SELECT MAX(n) FROM stock s WHERE s.item = p.item) FROM prices p

SELECT item FROM prices WHERE price > (SELECT AVG(price) FROM prices)

SELECT item, k FROM prices UNION ALL SELECT item, k FROM stock

SELECT k FROM prices UNION SELECT k FROM stock

SELECT item, k FROM prices INTERSECT SELECT item, k FROM stock

SELECT k FROM prices EXCEPT SELECT k FROM stock

SELECT item, price, r FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY price DESC, item) AS r FROM prices) WHERE r <= 2

SELECT k, item FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY price, item) AS r FROM prices) WHERE r <= 1

SELECT k, item, r FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY item DESC) AS r FROM prices) WHERE r <= 2

SELECT item FROM prices ORDER BY price DESC, item LIMIT 2

SELECT item, x FROM (SELECT item, ARRAY[price, k] AS a FROM prices) CROSS JOIN UNNEST(a) AS e(x)

WITH cheap AS (SELECT * FROM prices WHERE price < 25) SELECT c.item, n FROM cheap c LEFT JOIN stock s ON c.item = s.item

SELECT item, SUM(price) OVER (PARTITION BY k ORDER BY item) FROM prices

SELECT item, k FROM prices ORDER BY item

SELECT item, price, ts FROM versions

SELECT id, v.price FROM o JOIN versions FOR SYSTEM_TIME AS OF o.ts AS v ON o.item = v.item

SELECT id, v.price FROM o LEFT JOIN versions FOR SYSTEM_TIME AS OF o.ts AS v ON o.item = v.item

SELECT id, p.price FROM o JOIN prices FOR SYSTEM_TIME AS OF o.ts AS p ON o.item = p.item
