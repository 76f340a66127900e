-- Q3, local item suggestion: who sells in category 10 and lives in OR, ID or CA.
-- A join of two streams, without a bound of time.
CREATE TABLE nexmark_q3 (name STRING, city STRING, state STRING, id BIGINT) WITH ('connector' = 'blackhole');

INSERT INTO nexmark_q3
SELECT P.name, P.city, P.state, A.id
FROM auction AS A JOIN person AS P ON A.seller = P.id
WHERE A.category = 10 AND (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA');
