-- Q5, hot items: the auctions with the most bids of the last 10 seconds, every 2
-- seconds. A sliding window, joined with the maximum over itself.
CREATE TABLE nexmark_q5 (auction BIGINT, num BIGINT) WITH ('connector' = 'blackhole');

INSERT INTO nexmark_q5
SELECT C.auction, C.num
FROM (
  SELECT auction, COUNT(*) AS num, window_start, window_end
  FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
  GROUP BY auction, window_start, window_end
) AS C
JOIN (
  SELECT MAX(num) AS most, window_start, window_end
  FROM (
    SELECT COUNT(*) AS num, window_start, window_end
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY auction, window_start, window_end
  )
  GROUP BY window_start, window_end
) AS M
ON C.window_start = M.window_start AND C.window_end = M.window_end AND C.num >= M.most;
