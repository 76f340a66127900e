-- What the kill test of webhooks runs: lanes (several topics, a UNION ALL, a filter,
-- arrays), a keyed stage and dead letters, as lines and as arrays of JSON.
SET 'pipeline.name' = 'kill-http';
SET 'execution.checkpointing.interval' = '500 ms';
SET 'table.exec.source.idle-timeout' = '0 ms';

CREATE TABLE events (event_id BIGINT, `type` STRING, actor_id BIGINT, actor_login STRING)
WITH ('connector' = 'http', 'url' = '${URL}/events', 'sink.buffer-flush.interval' = '200 ms', 'request.timeout' = '1 s');
INSERT INTO events
SELECT CAST(id AS BIGINT), `type`, actor.id, actor.login FROM (
  SELECT id, `type`, actor FROM `PushEvent`
  UNION ALL SELECT id, `type`, actor FROM `CreateEvent`
  UNION ALL SELECT id, `type`, actor FROM `WatchEvent`
  UNION ALL SELECT id, `type`, actor FROM `IssueCommentEvent`
);

CREATE TABLE star (event_id BIGINT, actor_id BIGINT, repo_name STRING)
WITH ('connector' = 'http', 'url' = '${URL}/star', 'body' = 'array', 'sink.buffer-flush.interval' = '200 ms', 'request.timeout' = '1 s');
INSERT INTO star SELECT CAST(id AS BIGINT), actor.id, repo.name FROM `WatchEvent` WHERE MOD(actor.id, 3) <> 0;

CREATE TABLE commit_of (event_id BIGINT, sha STRING, author STRING)
WITH ('connector' = 'http', 'url' = '${URL}/commit_of', 'sink.buffer-flush.interval' = '200 ms', 'request.timeout' = '1 s');
INSERT INTO commit_of
SELECT CAST(id AS BIGINT), sha, author.name FROM `PushEvent` CROSS JOIN UNNEST(payload.commits) AS c (sha, author, message, `distinct`);

CREATE TABLE push_minute (window_start TIMESTAMP(3), window_end TIMESTAMP(3), pushes BIGINT, commits BIGINT, top_actor BIGINT)
WITH ('connector' = 'http', 'url' = '${URL}/push_minute', 'body' = 'array', 'request.timeout' = '1 s');
INSERT INTO push_minute
SELECT window_start, window_end, COUNT(*), SUM(payload.`size`), MAX(actor.id)
FROM TABLE(TUMBLE(TABLE `PushEvent`, DESCRIPTOR(created_at), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
