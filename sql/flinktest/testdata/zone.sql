-- Text read in a session zone that has hours twice and leaves one out.

SET 'table.local-time-zone' = 'America/New_York'

CREATE TABLE z (id INT, s STRING) WITH ('connector' = 'given')

INSERT INTO z VALUES (1, '2024-11-03 00:59:59'), (2, '2024-11-03 01:00:00'), (3, '2024-11-03 01:30:00'), (4, '2024-11-03 02:00:00'), (5, '2024-03-10 01:59:59'), (6, '2024-03-10 02:30:00'), (7, '2024-03-10 03:00:00'), (8, CAST(NULL AS STRING))

SELECT id, UNIX_TIMESTAMP(s) FROM z

SELECT id, UNIX_TIMESTAMP(s, 'yyyy-MM-dd HH:mm:ss') FROM z

SELECT id, CONVERT_TZ(s, 'America/New_York', 'UTC') FROM z
