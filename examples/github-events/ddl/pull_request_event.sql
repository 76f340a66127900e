-- Topic PullRequestEvent: A pull request was opened, closed or changed.
CREATE TABLE `PullRequestEvent` (
  id         STRING NOT NULL,
  `type`     STRING,
  actor      ROW<id BIGINT, login STRING>,
  repo       ROW<id BIGINT, name STRING>,
  org        ROW<id BIGINT, login STRING>,  -- NULL for repositories of a user
  payload    ROW<
    `action`     STRING,
    `number`     BIGINT,
    pull_request ROW<id BIGINT, state STRING, locked BOOLEAN, title STRING, `user` ROW<id BIGINT, login STRING>, draft BOOLEAN, merged BOOLEAN, comments INT, commits INT, additions INT, deletions INT, changed_files INT, created_at TIMESTAMP_LTZ(3), merged_at TIMESTAMP_LTZ(3)>>,
  `public`   BOOLEAN,
  created_at TIMESTAMP_LTZ(3),
  WATERMARK FOR created_at AS created_at - INTERVAL '30' SECOND
) WITH (
  'connector' = 'log',
  'topic' = 'PullRequestEvent',
  'scan.startup.mode' = 'earliest-offset',
  'scan.bounded.mode' = '${BOUNDED:-unbounded}',
  'format' = 'json',
  'json.timestamp-format.standard' = 'ISO-8601'
);
