-- Q7, highest bid: of every 10 seconds, found by a join of the bids with the
-- maximum of their window.
CREATE TABLE nexmark_q7 (auction BIGINT, price BIGINT, bidder BIGINT, `dateTime` TIMESTAMP(3), extra STRING)
WITH ('connector' = 'blackhole');

INSERT INTO nexmark_q7
SELECT B.auction, B.price, B.bidder, B.`dateTime`, B.extra
FROM bid AS B
JOIN (
  SELECT MAX(price) AS highest, window_end AS `dateTime`
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
  GROUP BY window_start, window_end
) AS M
ON B.price = M.highest
WHERE B.`dateTime` BETWEEN M.`dateTime` - INTERVAL '10' SECOND AND M.`dateTime`;
