-- Q4, average price of a category: over the winning bids of its auctions. An
-- average over a maximum over a join, which all change as bids come in.
CREATE TABLE nexmark_q4 (id BIGINT, final BIGINT) WITH ('connector' = 'blackhole');

INSERT INTO nexmark_q4
SELECT W.category, AVG(W.final)
FROM (
  SELECT MAX(B.price) AS final, A.category
  FROM auction AS A, bid AS B
  WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
  GROUP BY A.id, A.category
) AS W
GROUP BY W.category;
