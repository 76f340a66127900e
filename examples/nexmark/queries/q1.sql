-- Q1, currency conversion: prices in euros, with DECIMAL arithmetic.
CREATE TABLE nexmark_q1 (auction BIGINT, bidder BIGINT, price DECIMAL(24, 3), `dateTime` TIMESTAMP(3), extra STRING)
WITH ('connector' = 'blackhole');

INSERT INTO nexmark_q1
SELECT auction, bidder, 0.908 * price AS price, `dateTime`, extra FROM bid;
