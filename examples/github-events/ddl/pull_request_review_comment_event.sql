-- Topic PullRequestReviewCommentEvent: A line of a pull request was commented on.
CREATE TABLE `PullRequestReviewCommentEvent` (
  id         STRING NOT NULL,
  `type`     STRING,
  actor      ROW<id BIGINT, login STRING>,
  repo       ROW<id BIGINT, name STRING>,
  org        ROW<id BIGINT, login STRING>,  -- NULL for repositories of a user
  payload    ROW<
    `action`     STRING,
    `comment`    ROW<id BIGINT, `path` STRING, `position` INT, diff_hunk STRING, body STRING>,
    pull_request ROW<id BIGINT, `number` BIGINT, title STRING>>,
  `public`   BOOLEAN,
  created_at TIMESTAMP_LTZ(3),
  WATERMARK FOR created_at AS created_at - INTERVAL '30' SECOND
) WITH (
  'connector' = 'log',
  'topic' = 'PullRequestReviewCommentEvent',
  'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = '${BOUNDED:-unbounded}',
  'format' = 'json',
  'json.timestamp-format.standard' = 'ISO-8601'
);
