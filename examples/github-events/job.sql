-- GitHub events: 15 topics into 15 Hive-layout Parquet tables, one table of all
-- events, and one hourly wide table per actor.
--
--   millrace check job.sql -f ddl/
--   millrace run   job.sql -f ddl/                     until stopped
--   millrace run   job.sql -f ddl/ --set BOUNDED=latest-offset   what is there now

SET 'pipeline.name' = 'github-events';
SET 'table.local-time-zone' = 'UTC';

-- The columns and options that all tables of events share. Every table lies
-- under ${OUT}, by day and hour of the event; an hour is announced by a
-- _SUCCESS file once the watermark has passed its end.
CREATE TABLE event_table (
  event_id    BIGINT NOT NULL,
  actor_id    BIGINT,
  actor_login STRING,
  repo_id     BIGINT,
  repo_name   STRING,
  org_login   STRING,
  created_at  TIMESTAMP_LTZ(3),
  dt          STRING,
  hr          STRING
) PARTITIONED BY (dt, hr) WITH (
  'connector' = 'filesystem',
  'path' = '${OUT:-./lake}/event_table',
  'format' = 'parquet',
  'parquet.compression' = 'ZSTD',
  'sink.rolling-policy.file-size' = '128MB',
  'sink.rolling-policy.rollover-interval' = '10 min',
  'partition.time-extractor.timestamp-pattern' = '$dt $hr:00:00',
  'sink.partition-commit.trigger' = 'partition-time',
  'sink.partition-commit.delay' = '1 h',
  'sink.partition-commit.policy.kind' = 'success-file'
);

-- What was pushed.
CREATE TABLE `push` (
  push_id          BIGINT,
  commits          INT,
  distinct_commits INT,
  `ref`            STRING,
  head             STRING,
  first_message    STRING
) WITH ('path' = '${OUT:-./lake}/push') LIKE event_table;
INSERT INTO `push` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'),
  payload.push_id, payload.`size`, payload.distinct_size, payload.`ref`, payload.head,
  payload.commits[1].message
FROM `PushEvent`;

-- A branch, tag or repository was made.
CREATE TABLE `create_ref` (
  ref_type      STRING,
  `ref`         STRING,
  master_branch STRING,
  description   STRING
) WITH ('path' = '${OUT:-./lake}/create_ref') LIKE event_table;
INSERT INTO `create_ref` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'),
  payload.ref_type, payload.`ref`, payload.master_branch, payload.description
FROM `CreateEvent`;

-- A branch or tag was deleted.
CREATE TABLE `delete_ref` (
  ref_type STRING,
  `ref`    STRING
) WITH ('path' = '${OUT:-./lake}/delete_ref') LIKE event_table;
INSERT INTO `delete_ref` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'),
  payload.ref_type, payload.`ref`
FROM `DeleteEvent`;

-- A pull request was opened, closed or changed.
CREATE TABLE `pull_request` (
  `action`      STRING,
  `number`      BIGINT,
  title         STRING,
  author        STRING,
  merged        BOOLEAN,
  additions     INT,
  deletions     INT,
  changed_files INT,
  opened_at     TIMESTAMP_LTZ(3),
  merged_at     TIMESTAMP_LTZ(3)
) WITH ('path' = '${OUT:-./lake}/pull_request') LIKE event_table;
INSERT INTO `pull_request` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'),
  payload.`action`, payload.`number`, payload.pull_request.title, payload.pull_request.`user`.login,
  payload.pull_request.merged, payload.pull_request.additions, payload.pull_request.deletions,
  payload.pull_request.changed_files, payload.pull_request.created_at,
  payload.pull_request.merged_at
FROM `PullRequestEvent`;

-- A repository got a star.
CREATE TABLE `watch` (
  `action` STRING
) WITH ('path' = '${OUT:-./lake}/watch') LIKE event_table;
INSERT INTO `watch` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'),
  payload.`action`
FROM `WatchEvent`;

-- An issue or pull request was commented on.
CREATE TABLE `issue_comment` (
  `action`     STRING,
  issue_number BIGINT,
  issue_title  STRING,
  labels       INT,
  comment_id   BIGINT,
  body         STRING
) WITH ('path' = '${OUT:-./lake}/issue_comment') LIKE event_table;
INSERT INTO `issue_comment` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'),
  payload.`action`, payload.issue.`number`, payload.issue.title, CARDINALITY(payload.issue.labels),
  payload.`comment`.id, payload.`comment`.body
FROM `IssueCommentEvent`;

-- A pull request was reviewed.
CREATE TABLE `review` (
  `action`     STRING,
  review_id    BIGINT,
  state        STRING,
  submitted_at TIMESTAMP_LTZ(3),
  `number`     BIGINT,
  title        STRING
) WITH ('path' = '${OUT:-./lake}/review') LIKE event_table;
INSERT INTO `review` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'),
  payload.`action`, payload.review.id, payload.review.state, payload.review.submitted_at,
  payload.pull_request.`number`, payload.pull_request.title
FROM `PullRequestReviewEvent`;

-- A line of a pull request was commented on.
CREATE TABLE `review_comment` (
  `action`   STRING,
  comment_id BIGINT,
  `path`     STRING,
  `position` INT,
  body       STRING,
  `number`   BIGINT
) WITH ('path' = '${OUT:-./lake}/review_comment') LIKE event_table;
INSERT INTO `review_comment` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'),
  payload.`action`, payload.`comment`.id, payload.`comment`.`path`, payload.`comment`.`position`,
  payload.`comment`.body, payload.pull_request.`number`
FROM `PullRequestReviewCommentEvent`;

-- An issue was opened, closed or changed.
CREATE TABLE `issue` (
  `action`  STRING,
  `number`  BIGINT,
  title     STRING,
  state     STRING,
  author    STRING,
  comments  INT,
  closed_at TIMESTAMP_LTZ(3)
) WITH ('path' = '${OUT:-./lake}/issue') LIKE event_table;
INSERT INTO `issue` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'),
  payload.`action`, payload.issue.`number`, payload.issue.title, payload.issue.state,
  payload.issue.`user`.login, payload.issue.comments, payload.issue.closed_at
FROM `IssuesEvent`;

-- A repository was forked.
CREATE TABLE `fork` (
  fork_id     BIGINT,
  fork_name   STRING,
  description STRING
) WITH ('path' = '${OUT:-./lake}/fork') LIKE event_table;
INSERT INTO `fork` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'),
  payload.forkee.id, payload.forkee.full_name, payload.forkee.description
FROM `ForkEvent`;

-- A collaborator was added.
CREATE TABLE `member` (
  `action`     STRING,
  member_id    BIGINT,
  member_login STRING
) WITH ('path' = '${OUT:-./lake}/member') LIKE event_table;
INSERT INTO `member` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'),
  payload.`action`, payload.`member`.id, payload.`member`.login
FROM `MemberEvent`;

-- A release was published.
CREATE TABLE `release_note` (
  `action`     STRING,
  tag          STRING,
  name         STRING,
  prerelease   BOOLEAN,
  published_at TIMESTAMP_LTZ(3)
) WITH ('path' = '${OUT:-./lake}/release_note') LIKE event_table;
INSERT INTO `release_note` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'),
  payload.`action`, payload.`release`.tag_name, payload.`release`.name,
  payload.`release`.prerelease, payload.`release`.published_at
FROM `ReleaseEvent`;

-- A repository was made public.
CREATE TABLE `made_public` WITH ('path' = '${OUT:-./lake}/made_public') LIKE event_table;
INSERT INTO `made_public` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH')
FROM `PublicEvent`;

-- A commit was commented on.
CREATE TABLE `commit_comment` (
  comment_id BIGINT,
  commit_id  STRING,
  body       STRING
) WITH ('path' = '${OUT:-./lake}/commit_comment') LIKE event_table;
INSERT INTO `commit_comment` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'),
  payload.`comment`.id, payload.`comment`.commit_id, payload.`comment`.body
FROM `CommitCommentEvent`;

-- Wiki pages were edited.
CREATE TABLE `wiki` (
  pages        INT,
  first_page   STRING,
  first_action STRING
) WITH ('path' = '${OUT:-./lake}/wiki') LIKE event_table;
INSERT INTO `wiki` SELECT
  CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
  DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'),
  CARDINALITY(payload.pages), payload.pages[1].title, payload.pages[1].`action`
FROM `GollumEvent`;

-- All events of all types in one table.
CREATE TABLE events (`type` STRING) WITH ('path' = '${OUT:-./lake}/events') LIKE event_table;
INSERT INTO events
SELECT CAST(id AS BIGINT), actor.id, actor.login, repo.id, repo.name, org.login, created_at,
       DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH'), `type`
FROM (
  SELECT id, `type`, actor, repo, org, created_at FROM `PushEvent`
  UNION ALL SELECT id, `type`, actor, repo, org, created_at FROM `CreateEvent`
  UNION ALL SELECT id, `type`, actor, repo, org, created_at FROM `DeleteEvent`
  UNION ALL SELECT id, `type`, actor, repo, org, created_at FROM `PullRequestEvent`
  UNION ALL SELECT id, `type`, actor, repo, org, created_at FROM `WatchEvent`
  UNION ALL SELECT id, `type`, actor, repo, org, created_at FROM `IssueCommentEvent`
  UNION ALL SELECT id, `type`, actor, repo, org, created_at FROM `PullRequestReviewEvent`
  UNION ALL SELECT id, `type`, actor, repo, org, created_at FROM `PullRequestReviewCommentEvent`
  UNION ALL SELECT id, `type`, actor, repo, org, created_at FROM `IssuesEvent`
  UNION ALL SELECT id, `type`, actor, repo, org, created_at FROM `ForkEvent`
  UNION ALL SELECT id, `type`, actor, repo, org, created_at FROM `MemberEvent`
  UNION ALL SELECT id, `type`, actor, repo, org, created_at FROM `ReleaseEvent`
  UNION ALL SELECT id, `type`, actor, repo, org, created_at FROM `PublicEvent`
  UNION ALL SELECT id, `type`, actor, repo, org, created_at FROM `CommitCommentEvent`
  UNION ALL SELECT id, `type`, actor, repo, org, created_at FROM `GollumEvent`
);

-- What each actor did in each hour: one row per actor and hour, merged from
-- seven topics by UNION, not by JOIN.
CREATE WIDE TABLE actor_hour (
  PRIMARY KEY (actor_id) NOT ENFORCED,
  dt AS DATE_FORMAT(window_start, 'yyyy-MM-dd'),
  hr AS DATE_FORMAT(window_start, 'HH')
)
PARTITIONED BY (dt, hr)
WINDOW TUMBLE(SIZE => INTERVAL '1' HOUR)
ALLOWED LATENESS INTERVAL '10' MINUTE
WITH (
  'connector' = 'filesystem',
  'path' = '${OUT:-./lake}/actor_hour',
  'format' = 'parquet',
  'parquet.compression' = 'ZSTD',
  'partition.time-extractor.timestamp-pattern' = '$dt $hr:00:00',
  'sink.partition-commit.trigger' = 'partition-time',
  'sink.partition-commit.delay' = '70 min',
  'sink.partition-commit.policy.kind' = 'success-file',
  'wide.coverage-column' = 'seen_in'
)
AS UNION OF
  pushes TIME created_at AS (
    SELECT actor.id AS actor_id, COUNT(*) AS pushes, SUM(payload.`size`) AS commits, LAST_VALUE(repo.name) AS last_push_repo
    FROM `PushEvent` GROUP BY actor.id),
  refs TIME created_at AS (
    SELECT actor.id AS actor_id, COUNT(*) AS refs_made, FIRST_VALUE(repo.name) AS first_ref_repo
    FROM `CreateEvent` GROUP BY actor.id),
  pulls TIME created_at AS (
    SELECT actor.id AS actor_id, COUNT(*) AS pull_requests, SUM(payload.pull_request.additions) AS lines_added, MAX(payload.pull_request.changed_files) AS most_files
    FROM `PullRequestEvent` GROUP BY actor.id),
  stars TIME created_at AS (
    SELECT actor.id AS actor_id, COUNT(*) AS stars, LAST_VALUE(repo.name) AS last_star
    FROM `WatchEvent` GROUP BY actor.id),
  comments TIME created_at AS (
    SELECT actor.id AS actor_id, COUNT(*) AS comments, MIN(payload.`comment`.id) AS first_comment
    FROM `IssueCommentEvent` GROUP BY actor.id),
  reviews TIME created_at AS (
    SELECT actor.id AS actor_id, COUNT(*) AS reviews, LAST_VALUE(payload.review.state) AS last_review
    FROM `PullRequestReviewEvent` GROUP BY actor.id),
  forks TIME created_at AS (
    SELECT actor.id AS actor_id, COUNT(*) AS forks, LAST_VALUE(payload.forkee.full_name) AS last_fork
    FROM `ForkEvent` GROUP BY actor.id);
