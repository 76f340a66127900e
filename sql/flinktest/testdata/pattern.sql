-- Patterns over columns: constants are not computed beforehand.

CREATE TABLE p (id INT, s STRING, pat STRING) WITH ('connector' = 'given')

INSERT INTO p VALUES (1, 'a_c', 'a\_c'), (2, 'abc', 'a\_c'), (3, 'a\xc', 'a\_c'), (4, 'a%c', 'a\%c'), (5, '10%', '10!%'), (6, 'a\c', 'a\\c'), (7, '', '%')

SELECT id, s LIKE 'a\_c', s LIKE 'a\%c', s LIKE 'a_c', s LIKE 'a\\c' FROM p

SELECT id, s LIKE pat FROM p

SELECT id, s LIKE '10!%' ESCAPE '!', s LIKE 'a!_c' ESCAPE '!' FROM p

SELECT id, s LIKE '%c', s LIKE 'a%', s LIKE '%\_%' FROM p

SELECT id, REGEXP_REPLACE(s, '(a)(.)', '$2$1'), REGEXP_REPLACE(s, 'a', pat), REGEXP_REPLACE(s, 'a', '\') FROM p

SELECT id, REPLACE(s, '', '-'), LOCATE('', s, 2), LOCATE('c', s, 0), ASCII(s) FROM p

SELECT id, CAST(id AS DOUBLE) / 0, CAST(0 - id AS DOUBLE) / 0, MOD(id, CAST(2 AS BIGINT)), MOD(CAST(id AS BIGINT), 2) FROM p

SELECT id, CAST(id AS FLOAT) / 3, CAST(id AS FLOAT) + id, CAST(id AS FLOAT) * CAST(id AS DOUBLE), CAST(CAST(id AS FLOAT) / 10 AS DOUBLE) FROM p

SELECT id, JSON_EXISTS('{"a":null,"b":' || CAST(id AS STRING) || '}', '$.a'), JSON_EXISTS('{"a":null,"b":' || CAST(id AS STRING) || '}', '$.b') FROM p
