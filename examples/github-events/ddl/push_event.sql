-- Topic PushEvent: What was pushed.
CREATE TABLE `PushEvent` (
  id         STRING NOT NULL,
  `type`     STRING,
  actor      ROW<id BIGINT, login STRING>,
  repo       ROW<id BIGINT, name STRING>,
  org        ROW<id BIGINT, login STRING>,  -- NULL for repositories of a user
  payload    ROW<
    push_id       BIGINT,
    `size`        INT,
    distinct_size INT,
    `ref`         STRING,
    head          STRING,
    `before`      STRING,
    commits       ARRAY<ROW<sha STRING, author ROW<name STRING, email STRING>, message STRING, `distinct` BOOLEAN>>>,
  `public`   BOOLEAN,
  created_at TIMESTAMP_LTZ(3),
  WATERMARK FOR created_at AS created_at - INTERVAL '30' SECOND
) WITH (
  'connector' = 'log',
  'topic' = 'PushEvent',
  'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = '${BOUNDED:-unbounded}',
  'format' = 'json',
  'json.timestamp-format.standard' = 'ISO-8601'
);
