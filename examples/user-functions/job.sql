-- Orders without the names of those who ordered, and on which days each domain orders.
SET 'execution.runtime-mode' = 'batch';

CREATE TABLE orders (id BIGINT, email STRING, amount DECIMAL(10, 2), ts TIMESTAMP_LTZ(3)) WITH (
  'connector' = 'filesystem', 'path' = '${IN:-orders.ndjson}', 'format' = 'json',
  'json.timestamp-format.standard' = 'ISO-8601'
);

CREATE TABLE masked (id BIGINT, email STRING, amount DECIMAL(10, 2)) WITH (
  'connector' = 'filesystem', 'path' = '${OUT:-./out}/masked', 'format' = 'json'
);

CREATE TABLE domains (domain STRING, orders BIGINT, days STRING) WITH (
  'connector' = 'filesystem', 'path' = '${OUT:-./out}/domains', 'format' = 'json'
);

CREATE TABLE levels (id BIGINT, domain STRING, level INT) WITH (
  'connector' = 'filesystem', 'path' = '${OUT:-./out}/levels', 'format' = 'json'
);

INSERT INTO masked SELECT id, MASK_EMAIL(email), amount FROM orders;

INSERT INTO domains SELECT SPLIT_INDEX(MASK_EMAIL(email), '@', 1), COUNT(*), WEEKDAYS(ts) FROM orders GROUP BY SPLIT_INDEX(MASK_EMAIL(email), '@', 1);

INSERT INTO levels SELECT id, d.domain, d.level FROM orders LEFT JOIN LATERAL TABLE(DOMAIN_LEVELS(email)) AS d ON TRUE;
