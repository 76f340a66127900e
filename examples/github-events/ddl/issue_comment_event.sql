-- Topic IssueCommentEvent: An issue or pull request was commented on.
CREATE TABLE `IssueCommentEvent` (
  id         STRING NOT NULL,
  `type`     STRING,
  actor      ROW<id BIGINT, login STRING>,
  repo       ROW<id BIGINT, name STRING>,
  org        ROW<id BIGINT, login STRING>,  -- NULL for repositories of a user
  payload    ROW<
    `action`  STRING,
    issue     ROW<id BIGINT, `number` BIGINT, title STRING, state STRING, `user` ROW<id BIGINT, login STRING>, labels ARRAY<ROW<name STRING>>, comments INT>,
    `comment` ROW<id BIGINT, `user` ROW<id BIGINT, login STRING>, body STRING, created_at TIMESTAMP_LTZ(3)>>,
  `public`   BOOLEAN,
  created_at TIMESTAMP_LTZ(3),
  WATERMARK FOR created_at AS created_at - INTERVAL '30' SECOND
) WITH (
  'connector' = 'log',
  'topic' = 'IssueCommentEvent',
  'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = '${BOUNDED:-unbounded}',
  'format' = 'json',
  'json.timestamp-format.standard' = 'ISO-8601'
);
