-- What the kill test of Redis runs: lanes (several topics, a UNION ALL, a filter),
-- a keyed stage and dead letters, into hashes and strings.
SET 'pipeline.name' = 'kill-redis';
SET 'execution.checkpointing.interval' = '500 ms';
SET 'table.exec.source.idle-timeout' = '0 ms';

CREATE TABLE events (event_id BIGINT, `type` STRING, actor_id BIGINT, actor_login STRING, PRIMARY KEY (event_id) NOT ENFORCED)
WITH ('connector' = 'redis', 'url' = '${URL}', 'key' = 'events:{event_id}', 'ttl' = '1 d', 'request.timeout' = '5 s');
INSERT INTO events
SELECT CAST(id AS BIGINT), `type`, actor.id, actor.login FROM (
  SELECT id, `type`, actor FROM `PushEvent`
  UNION ALL SELECT id, `type`, actor FROM `CreateEvent`
  UNION ALL SELECT id, `type`, actor FROM `WatchEvent`
  UNION ALL SELECT id, `type`, actor FROM `IssueCommentEvent`
);

CREATE TABLE star (event_id BIGINT, actor_id BIGINT, repo_name STRING, PRIMARY KEY (event_id) NOT ENFORCED)
WITH ('connector' = 'redis', 'url' = '${URL}', 'data-type' = 'string', 'key' = 'star:{event_id}', 'request.timeout' = '5 s');
INSERT INTO star SELECT CAST(id AS BIGINT), actor.id, repo.name FROM `WatchEvent` WHERE MOD(actor.id, 3) <> 0;

CREATE TABLE push_minute (window_start TIMESTAMP(3), window_end TIMESTAMP(3), pushes BIGINT, commits BIGINT, top_actor BIGINT, PRIMARY KEY (window_start) NOT ENFORCED)
WITH ('connector' = 'redis', 'url' = '${URL}', 'key' = 'push_minute:{window_start}', 'request.timeout' = '5 s');
INSERT INTO push_minute
SELECT window_start, window_end, COUNT(*), SUM(payload.`size`), MAX(actor.id)
FROM TABLE(TUMBLE(TABLE `PushEvent`, DESCRIPTOR(created_at), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
