-- Topic ReleaseEvent: A release was published.
CREATE TABLE `ReleaseEvent` (
  id         STRING NOT NULL,
  `type`     STRING,
  actor      ROW<id BIGINT, login STRING>,
  repo       ROW<id BIGINT, name STRING>,
  org        ROW<id BIGINT, login STRING>,  -- NULL for repositories of a user
  payload    ROW<
    `action`  STRING,
    `release` ROW<id BIGINT, tag_name STRING, name STRING, draft BOOLEAN, prerelease BOOLEAN, published_at TIMESTAMP_LTZ(3), body STRING>>,
  `public`   BOOLEAN,
  created_at TIMESTAMP_LTZ(3),
  WATERMARK FOR created_at AS created_at - INTERVAL '30' SECOND
) WITH (
  'connector' = 'log',
  'topic' = 'ReleaseEvent',
  'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = '${BOUNDED:-unbounded}',
  'format' = 'json',
  'json.timestamp-format.standard' = 'ISO-8601'
);
