-- Q10, log to files: every bid into CSV files in a directory a minute, which is
-- announced when it is complete.
CREATE TABLE nexmark_q10 (
  auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING, dt STRING, hm STRING
) PARTITIONED BY (dt, hm) WITH (
  'connector' = 'filesystem', 'path' = '${OUT}/q10', 'format' = 'csv',
  'sink.rolling-policy.rollover-interval' = '1 min', 'sink.rolling-policy.check-interval' = '1 min',
  'partition.time-extractor.timestamp-pattern' = '$dt $hm:00',
  'sink.partition-commit.trigger' = 'partition-time', 'sink.partition-commit.delay' = '1 min',
  'sink.partition-commit.policy.kind' = 'success-file'
);

INSERT INTO nexmark_q10
SELECT auction, bidder, price, `dateTime`, extra, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'), DATE_FORMAT(`dateTime`, 'HH:mm')
FROM bid;
