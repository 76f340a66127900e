-- Q6, average selling price: of each seller's last ten auctions. A frame of eleven rows
-- above rows that change, the winning bids: Flink refuses it, and so does Millrace.
CREATE TABLE nexmark_q6 (seller BIGINT, avg_price BIGINT) WITH ('connector' = 'blackhole');

INSERT INTO nexmark_q6
SELECT W.seller, AVG(W.price) OVER (PARTITION BY W.seller ORDER BY W.`dateTime` ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)
FROM (
  SELECT * FROM (
    SELECT *, ROW_NUMBER() OVER (PARTITION BY id, seller ORDER BY price DESC) AS place
    FROM (
      SELECT A.id, A.seller, B.price, B.`dateTime`
      FROM auction AS A, bid AS B
      WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
    )
  ) WHERE place <= 1
) AS W;
