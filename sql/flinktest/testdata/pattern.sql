-- Patterns over columns: constants are not computed beforehand.

CREATE TABLE p (id INT, s STRING, pat STRING) WITH ('connector' = 'given')

INSERT INTO p VALUES (1, 'a_c', 'a\_c'), (2, 'abc', 'a\_c'), (3, 'a\xc', 'a\_c'), (4, 'a%c', 'a\%c'), (5, '10%', '10!%'), (6, 'a\c', 'a\\c'), (7, '', '%')

CREATE TABLE q (id INT, s STRING, t STRING, d DATE, f FLOAT, ts TIMESTAMP(3), n DECIMAL(2, 1), i INT) WITH ('connector' = 'given')

INSERT INTO q VALUES (1, '😀', '｡', DATE '9999-12-31', CAST(1.5 AS FLOAT), TIMESTAMP '2023-12-31 23:59:59.999', CAST(NULL AS DECIMAL(2, 1)), 3), (2, 'straße', 'ΑΣ', DATE '2024-02-29', CAST(0.1 AS FLOAT), TIMESTAMP '2024-01-01 00:00:00', 1.5, -1)

SELECT id, s LIKE 'a\_c', s LIKE 'a\%c', s LIKE 'a_c', s LIKE 'a\\c' FROM p

SELECT id, s LIKE pat FROM p

SELECT id, s LIKE '10!%' ESCAPE '!', s LIKE 'a!_c' ESCAPE '!' FROM p

SELECT id, s LIKE '%c', s LIKE 'a%', s LIKE '%\_%' FROM p

SELECT id, REGEXP_REPLACE(s, '(a)(.)', '$2$1'), REGEXP_REPLACE(s, 'a', pat), REGEXP_REPLACE(s, 'a', '\') FROM p

SELECT id, REPLACE(s, '', '-'), LOCATE('', s, 2), LOCATE('c', s, 0), ASCII(s) FROM p

SELECT id, CAST(id AS DOUBLE) / 0, CAST(0 - id AS DOUBLE) / 0, MOD(id, CAST(2 AS BIGINT)), MOD(CAST(id AS BIGINT), 2) FROM p

SELECT id, CAST(id AS FLOAT) / 3, CAST(id AS FLOAT) + id, CAST(id AS FLOAT) * CAST(id AS DOUBLE), CAST(CAST(id AS FLOAT) / 10 AS DOUBLE) FROM p

SELECT id, JSON_EXISTS('{"a":null,"b":' || CAST(id AS STRING) || '}', '$.a'), JSON_EXISTS('{"a":null,"b":' || CAST(id AS STRING) || '}', '$.b') FROM p

SELECT id, s > t, s < t FROM q

SELECT id, UPPER(s), LOWER(t) FROM q

SELECT id, INITCAP(s || ' ünder') FROM q

SELECT id, GREATEST(n, 2) FROM q

SELECT id, ROUND(1.005 + n, i), LOCATE('bc', 'abcabc', i), ELT(i, 'a', 'b') FROM q

SELECT id, f + n, f + id, f - CAST(id AS BIGINT), CAST(id AS DOUBLE) * f FROM q

SELECT id, f * CAST(id AS DOUBLE) FROM q

SELECT id, f > 0.1, f = CAST(0.1 AS DOUBLE) FROM q

SELECT id, INTERVAL '1' DAY * id, id * INTERVAL '2' MONTH, ts + INTERVAL '1' DAY * id FROM q

SELECT id, EXTRACT(DAY FROM INTERVAL '1' HOUR * (id * 20)) FROM q

SELECT id, s SIMILAR TO '_', s SIMILAR TO '%', TRANSLATE(s, 's', 'x'), s SIMILAR TO t FROM q

SELECT id, JSON_QUERY('{"a":[1,{"b":2}],"i":' || CAST(id AS STRING) || '}', '$.a[*]' WITH WRAPPER), JSON_QUOTE(s) FROM q

SELECT id, DATE_FORMAT(ts, 'e w W G') FROM q
