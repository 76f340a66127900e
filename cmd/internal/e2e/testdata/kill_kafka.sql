-- What the kill test of Kafka runs: lanes (several topics, a filter, arrays, a UNION
-- ALL), keyed stages (a window aggregate, a wide table) and dead letters, into topics
-- of a Kafka cluster.
SET 'pipeline.name' = 'kill-kafka';
SET 'execution.checkpointing.interval' = '500 ms';
-- Lateness by idleness is the one thing that depends on time; the test wants
-- rows that do not.
SET 'table.exec.source.idle-timeout' = '0 ms';
-- A broker that is killed takes its time to come back on a busy machine.
SET 'start.retry-timeout' = '2 min';

CREATE TABLE template (event_id BIGINT NOT NULL) WITH (
  'connector' = 'kafka',
  'properties.bootstrap.servers' = '${SERVERS}',
  'properties.transaction.timeout.ms' = '10000',
  'topic' = 'template',
  'format' = 'json'
);

CREATE TABLE push (
  actor_id BIGINT, repo_name STRING, commits INT, created_at TIMESTAMP_LTZ(3), dt STRING, hr STRING
) WITH ('topic' = 'push') LIKE template;
INSERT INTO push
SELECT CAST(id AS BIGINT), actor.id, repo.name, payload.`size`, created_at, DATE_FORMAT(created_at, 'yyyy-MM-dd'), DATE_FORMAT(created_at, 'HH')
FROM `PushEvent`;

CREATE TABLE star (actor_id BIGINT, repo_name STRING) WITH ('topic' = 'star') LIKE template;
INSERT INTO star SELECT CAST(id AS BIGINT), actor.id, repo.name FROM `WatchEvent` WHERE MOD(actor.id, 3) <> 0;

CREATE TABLE commit_of (sha STRING, author STRING) WITH ('topic' = 'commit_of') LIKE template;
INSERT INTO commit_of
SELECT CAST(id AS BIGINT), sha, author.name FROM `PushEvent` CROSS JOIN UNNEST(payload.commits) AS c (sha, author, message, `distinct`);

CREATE TABLE events (`type` STRING, actor_id BIGINT, actor_login STRING) WITH ('topic' = 'events') LIKE template;
INSERT INTO events
SELECT CAST(id AS BIGINT), `type`, actor.id, actor.login FROM (
  SELECT id, `type`, actor FROM `PushEvent`
  UNION ALL SELECT id, `type`, actor FROM `CreateEvent`
  UNION ALL SELECT id, `type`, actor FROM `WatchEvent`
  UNION ALL SELECT id, `type`, actor FROM `IssueCommentEvent`
);

CREATE TABLE push_minute (
  window_start TIMESTAMP(3), window_end TIMESTAMP(3), pushes BIGINT, commits BIGINT, top_actor BIGINT
) WITH (
  'connector' = 'kafka',
  'properties.bootstrap.servers' = '${SERVERS}',
  'properties.transaction.timeout.ms' = '10000',
  'topic' = 'push_minute',
  'format' = 'json'
);
INSERT INTO push_minute
SELECT window_start, window_end, COUNT(*), SUM(payload.`size`), MAX(actor.id)
FROM TABLE(TUMBLE(TABLE `PushEvent`, DESCRIPTOR(created_at), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;

CREATE WIDE TABLE actor_hour (
  PRIMARY KEY (actor_id) NOT ENFORCED,
  dt AS DATE_FORMAT(window_start, 'yyyy-MM-dd'),
  hr AS DATE_FORMAT(window_start, 'HH')
)
WINDOW TUMBLE(SIZE => INTERVAL '1' HOUR)
ALLOWED LATENESS INTERVAL '10' MINUTE
WITH (
  'connector' = 'kafka',
  'properties.bootstrap.servers' = '${SERVERS}',
  'properties.transaction.timeout.ms' = '10000',
  'topic' = 'actor_hour',
  'format' = 'json'
)
AS UNION OF
  pushes TIME created_at AS (
    SELECT actor.id AS actor_id, COUNT(*) AS pushes, SUM(payload.`size`) AS commits, LAST_VALUE(repo.name) AS last_push_repo
    FROM `PushEvent` GROUP BY actor.id),
  refs TIME created_at AS (
    SELECT actor.id AS actor_id, COUNT(*) AS refs_made, FIRST_VALUE(repo.name) AS first_ref_repo
    FROM `CreateEvent` GROUP BY actor.id),
  stars TIME created_at AS (
    SELECT actor.id AS actor_id, COUNT(*) AS stars FROM `WatchEvent` GROUP BY actor.id),
  comments TIME created_at AS (
    SELECT actor.id AS actor_id, COUNT(*) AS comments, MIN(payload.`comment`.id) AS first_comment
    FROM `IssueCommentEvent` GROUP BY actor.id);
