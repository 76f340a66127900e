-- Rows that change, in streaming mode: what is left in the end. No ORDER BY leaves a
-- choice.

SET 'execution.runtime-mode' = 'streaming'

CREATE TABLE o (id INT, customer INT, amount INT, d DOUBLE, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'given')

CREATE TABLE c (id INT, name STRING) WITH ('connector' = 'given')

INSERT INTO o SELECT a, NULLIF(b, -1), NULLIF(c, -1), d, t FROM (VALUES
  (1, 10, 5, 0.5e0, TIMESTAMP '2024-01-01 00:00:01.000'),
  (2, 20, 7, 1.5e0, TIMESTAMP '2024-01-01 00:00:03.000'),
  (3, 10, 8, 2.5e0, TIMESTAMP '2024-01-01 00:00:02.000'),
  (4, 30, 1, 1e0, TIMESTAMP '2024-01-01 00:00:04.000'),
  (5, -1, 2, 4e0, TIMESTAMP '2024-01-01 00:00:05.000'),
  (6, 20, -1, 0.25e0, TIMESTAMP '2024-01-01 00:00:06.000'),
  (7, 10, 9, 8e0, TIMESTAMP '2024-01-01 00:00:07.000')
) AS v(a, b, c, d, t)

INSERT INTO c SELECT NULLIF(a, -1), b FROM (VALUES (10, 'ann'), (20, 'bob'), (40, 'eve'), (-1, 'nobody'), (20, 'bert')) AS v(a, b)

SELECT customer, COUNT(*), SUM(amount), MIN(amount), MAX(amount), AVG(d) FROM o GROUP BY customer

SELECT n, COUNT(*) FROM (SELECT customer, COUNT(*) AS n FROM o GROUP BY customer) GROUP BY n

SELECT COUNT(*), SUM(n), MIN(n), MAX(n), COUNT(DISTINCT n), AVG(s), SUM(x) FROM (SELECT customer, COUNT(*) AS n, SUM(amount) AS s, SUM(d) AS x FROM o GROUP BY customer)

SELECT n, MIN(customer), MAX(customer), SUM(DISTINCT s) FROM (SELECT customer, COUNT(*) AS n, SUM(amount) AS s FROM o GROUP BY customer) GROUP BY n

SELECT n, LISTAGG(who) FROM (SELECT CAST(customer AS STRING) AS who, COUNT(*) AS n FROM o WHERE customer < 30 GROUP BY customer) GROUP BY n

SELECT m, COUNT(*) FROM (SELECT n, COUNT(*) AS m FROM (SELECT customer, COUNT(*) AS n FROM o GROUP BY customer) GROUP BY n) GROUP BY m

SELECT COUNT(*), SUM(s) FROM (SELECT customer, SUM(amount) AS s FROM o GROUP BY customer) WHERE s BETWEEN 2 AND 10

SELECT customer, COUNT(*) FROM o GROUP BY customer HAVING COUNT(*) < 3

SELECT DISTINCT n FROM (SELECT customer, COUNT(*) AS n FROM o GROUP BY customer)

SELECT n FROM (SELECT customer, COUNT(*) AS n FROM o GROUP BY customer) UNION SELECT CAST(amount AS BIGINT) FROM o

SELECT COUNT(*) FILTER (WHERE n > 1) FROM (SELECT customer, COUNT(*) AS n FROM o GROUP BY customer)

SELECT COUNT(*) FROM (SELECT customer, COUNT(*) AS n FROM o GROUP BY customer) WHERE n > 100

SELECT customer, amount, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY d DESC) AS n FROM o) WHERE n <= 2

SELECT customer, amount FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY d) AS n FROM o) WHERE n <= 2

SELECT id, n FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY d DESC) AS n FROM o) WHERE n <= 3

SELECT customer, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY ts DESC) AS n FROM o) WHERE n = 1

SELECT customer, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY ts) AS n FROM o) WHERE n = 1

SELECT customer, id FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY d DESC) AS n FROM o) WHERE n = 1

SELECT customer, c, n FROM (SELECT customer, c, ROW_NUMBER() OVER (ORDER BY c DESC, s DESC) AS n FROM (SELECT customer, COUNT(*) AS c, SUM(d) AS s FROM o GROUP BY customer)) WHERE n <= 3

SELECT SUM(amount), COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY d DESC) AS n FROM o) WHERE n <= 2

SELECT name, n, s FROM (SELECT customer, COUNT(*) AS n, SUM(amount) AS s FROM o GROUP BY customer) a JOIN c ON a.customer = c.id

SELECT name, n FROM c LEFT JOIN (SELECT customer, COUNT(*) AS n FROM o GROUP BY customer) a ON a.customer = c.id

SELECT a.customer, n, m FROM (SELECT customer, COUNT(*) AS n FROM o GROUP BY customer) a FULL JOIN (SELECT id, COUNT(*) AS m FROM c GROUP BY id) b ON a.customer = b.id

SELECT a.customer, n, m FROM (SELECT customer, COUNT(*) AS n FROM o GROUP BY customer) a RIGHT JOIN (SELECT id, COUNT(*) AS m FROM c GROUP BY id) b ON a.customer = b.id AND n > m

SELECT name, COUNT(*), COUNT(amount), MAX(amount) FROM o LEFT JOIN c ON o.customer = c.id GROUP BY name

SELECT id FROM o WHERE customer IN (SELECT id FROM c)

SELECT id FROM o WHERE customer NOT IN (SELECT id FROM c)

SELECT id FROM o WHERE customer NOT IN (SELECT id FROM c WHERE id IS NOT NULL)

SELECT id FROM o WHERE EXISTS (SELECT * FROM c WHERE c.id = o.customer AND CHAR_LENGTH(name) < amount)

SELECT id FROM o WHERE NOT EXISTS (SELECT * FROM c WHERE c.id = o.customer AND CHAR_LENGTH(name) < amount)

SELECT customer, n FROM (SELECT customer, COUNT(*) AS n FROM o GROUP BY customer) a WHERE n IN (SELECT m FROM (SELECT id, COUNT(*) AS m FROM c GROUP BY id))

SELECT id FROM o WHERE d > (SELECT AVG(d) FROM o)

SELECT id FROM o WHERE customer IN (SELECT customer FROM o GROUP BY customer HAVING COUNT(*) > 1)
