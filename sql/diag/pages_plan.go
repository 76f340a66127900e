package diag

// planPages are the pages of errors about the shape of the plan.
func planPages() []Page {
	const window = "TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR))"
	const ended = "CREATE TABLE clicks (uid BIGINT, room STRING) WITH ('connector' = 'datagen', 'number-of-rows' = '10');\n"
	const files = "CREATE TABLE f (uid BIGINT) WITH ('connector' = 'filesystem', 'path' = '/tmp/f', 'format' = 'json');\n"
	return []Page{
		{
			Code: CodeUpdatingIntoAppend, Phase: PhasePlan, Title: "rows that change go to a table that only takes new ones",
			Explanation: `The marked operator gives a row and later replaces it. Files, Hive tables and topics cannot
replace rows. There are three ways out: group by window_start and window_end, so that each row is
given once, when it is final; write to a table with a primary key; or merge the streams in a wide
table. A window changes rows, too, where 'table.exec.emit.early-fire.enabled' or
'table.exec.emit.late-fire.enabled' is set.`,
			Wrong: exampleSource + "CREATE TABLE t (uid BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '/tmp/t', 'format' = 'json');\n" +
				"INSERT INTO t SELECT uid, COUNT(*) FROM clicks GROUP BY uid;",
			Right: exampleSource + "CREATE TABLE t (uid BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'path' = '/tmp/t', 'format' = 'json');\n" +
				"INSERT INTO t SELECT uid, COUNT(*) FROM " + window + " GROUP BY window_start, window_end, uid;",
		},
		{
			Code: CodeRowTime, Phase: PhasePlan, Title: "a column is not row time",
			Explanation: `A window goes by the row time: the column that WATERMARK FOR names, passed on by bare
references only. An expression over it, even a CAST, is an ordinary column. So is PROCTIME(),
the time of processing. A temporal join (FOR SYSTEM_TIME
AS OF a row time) takes a versioned table: the last or first row of each key by row time, as ROW_NUMBER keeps it, or
one with a primary key and a watermark.`,
			Wrong: exampleJob("SELECT uid, MAX(room) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(n), INTERVAL '1' HOUR)) GROUP BY window_start, window_end, uid"),
			Right: exampleJob("SELECT uid, MAX(room) FROM " + window + " GROUP BY window_start, window_end, uid"),
		},
		{
			Code: CodeBadWindow, Phase: PhasePlan, Title: "a window that cannot be",
			Explanation: `A window has a constant size above zero, a multiple of its step where it has one, and an
aggregation over it is grouped by both window_start and window_end. TUMBLE_START and the like name bounds
of the window in GROUP BY. In a stream, functions with OVER go by one column, ascending, and look back only; by
another one than row time from the first row on.`,
			Wrong: exampleJob("SELECT uid, MAX(room) FROM " + window + " GROUP BY window_start, uid"),
			Right: exampleJob("SELECT uid, MAX(room) FROM " + window + " GROUP BY window_start, window_end, uid"),
		},
		{
			Code: CodeNondeterministic, Phase: PhasePlan, Title: "clock or chance decides where a row goes",
			Explanation: `Partition columns, keys and join conditions must give the same value when a row is read again
after a crash. Clock and random functions do not. Take a time from the row.`,
			Wrong: exampleJob("SELECT uid, MAX(room) FROM " + window + " GROUP BY window_start, window_end, uid, RAND()"),
			Right: exampleJob("SELECT uid, MAX(room) FROM " + window + " GROUP BY window_start, window_end, uid"),
		},
		{
			Code: CodeSelectInJob, Phase: PhasePlan, Title: "a query without a target",
			Explanation: `A job file says where every row goes, with INSERT. millrace sql and preview print the rows of
a bare query.`,
			Wrong: exampleJob("SELECT uid, room FROM clicks") + "\nSELECT * FROM clicks;",
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeStatementInJob, Phase: PhasePlan, Title: "a statement of the shell in a job file",
			Explanation: `A job file declares and inserts: CREATE, SET, RESET, INSERT, EXPLAIN, FOR EACH. Statements
that look at or change what runs belong into millrace sql.`,
			Wrong: exampleJob("SELECT uid, room FROM clicks") + "\nSHOW TABLES;",
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeNothingToRun, Phase: PhasePlan, Title: "the file has no INSERT",
			Explanation: `Without an INSERT or a wide table there is nothing to run.`,
			Wrong:       exampleSource + exampleSink,
			Right:       exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeUnboundedInBatch, Phase: PhasePlan, Title: "a source without an end in batch mode",
			Explanation: `A batch job ends when its input does. Give the source an end ('scan.bounded.mode', or
'number-of-rows' of datagen), or leave execution.runtime-mode at streaming.`,
			Wrong: "SET 'execution.runtime-mode' = 'batch';\n" + exampleJob("SELECT uid, room FROM clicks"),
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeBoundedOnly, Phase: PhasePlan, Title: "needs the whole input",
			Explanation: `ORDER BY or LIMIT alone and INSERT OVERWRITE look at the whole input, which a streaming job
never has. They work with SET 'execution.runtime-mode' = 'batch' over sources with an end. ORDER BY that begins
with row time, ascending, is possible in a stream: rows come in order when the watermark has passed them. ORDER BY
together with LIMIT is a Top-N, which a stream has, too: its rows change.`,
			Wrong: exampleJob("SELECT uid, room FROM clicks ORDER BY uid"),
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeNotReplaceable, Phase: PhasePlan, Title: "INSERT OVERWRITE into a table that only grows",
			Explanation: `INSERT OVERWRITE makes the rows of a query the whole content of each table partition that it
touches, at once. Tables of files and of Hive can do that; topics, key-value stores and the like cannot.`,
			Wrong: "SET 'execution.runtime-mode' = 'batch';\n" + ended + exampleSink + "INSERT OVERWRITE rooms SELECT uid, room FROM clicks;",
			Right: "SET 'execution.runtime-mode' = 'batch';\n" + ended + exampleSink + "INSERT INTO rooms SELECT uid, room FROM clicks;",
		},
		{
			Code: CodeOverwriteTwice, Phase: PhasePlan, Title: "a table is overwritten and written once more",
			Explanation: `All INSERTs of a job run together, so what an INSERT OVERWRITE would leave of the rows of another
INSERT into the same table would depend on the order. Two INSERT OVERWRITE may fill one table if each names its
own partition.`,
			Wrong: "SET 'execution.runtime-mode' = 'batch';\n" + ended + files + "INSERT OVERWRITE f SELECT uid FROM clicks;\nINSERT INTO f SELECT uid FROM clicks;",
			Right: "SET 'execution.runtime-mode' = 'batch';\n" + ended + files + "INSERT OVERWRITE f SELECT uid FROM clicks UNION ALL SELECT uid FROM clicks;",
		},
		{
			Code: CodeTopicBothWays, Phase: PhasePlan, Title: "a topic reaches a table both directly and aggregated",
			Explanation: `The rows of one topic would arrive in the table once as they are and once folded into an
aggregate. The ledger counts each row of a topic once per table, so its equation could not hold.
Write the two to tables of their own.`,
			Wrong: exampleSource + exampleSink + "CREATE VIEW v AS SELECT uid, room FROM clicks UNION ALL\n" +
				"SELECT uid, MAX(room) FROM " + window + " GROUP BY window_start, window_end, uid;\nINSERT INTO rooms SELECT * FROM v;",
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeStateName, Phase: PhasePlan, Title: "two states have the same name",
			Explanation: `STATE_ID names the state of an operator, so that an edited job finds it again. Each name
stands for one operator of the job.`,
			Wrong: exampleSource + exampleSink +
				"INSERT INTO rooms SELECT /*+ STATE_ID('s') */ uid, MAX(room) FROM " + window + " GROUP BY window_start, window_end, uid;\n" +
				"INSERT INTO rooms SELECT /*+ STATE_ID('s') */ uid, MIN(room) FROM " + window + " GROUP BY window_start, window_end, uid;",
			Right: exampleSource + exampleSink +
				"INSERT INTO rooms SELECT /*+ STATE_ID('s') */ uid, MAX(room) FROM " + window + " GROUP BY window_start, window_end, uid;",
		},
		{
			Code: CodeWideTable, Phase: PhasePlan, Title: "a wide table that cannot be",
			Explanation: `A branch of a wide table is SELECT ... FROM ... [WHERE ...] [GROUP BY key]. It gives the key
columns of the table, every column of it has a name, and labels are not used twice. At least one
branch has TIME: its rows make the windows. An OFFLINE branch reads one table that ends, and
GENERATION takes a column of it as it is.`,
			Wrong: exampleSource + "CREATE WIDE TABLE w (PRIMARY KEY (uid) NOT ENFORCED)\nWINDOW TUMBLE(SIZE => INTERVAL '1' HOUR)\n" +
				"WITH ('connector' = 'blackhole')\nAS UNION OF a TIME ts AS (SELECT uid, room FROM clicks), a TIME ts AS (SELECT uid, n FROM clicks);",
			Right: exampleSource + "CREATE WIDE TABLE w (PRIMARY KEY (uid) NOT ENFORCED)\nWINDOW TUMBLE(SIZE => INTERVAL '1' HOUR)\n" +
				"WITH ('connector' = 'blackhole')\nAS UNION OF a TIME ts AS (SELECT uid, room FROM clicks), b TIME ts AS (SELECT uid, n FROM clicks);",
		},
		{
			Code: CodePartitionCommitPolicy, Phase: PhasePlan, Title: "a partitioned table never says when a partition is complete",
			Explanation: `Whoever reads the files has to know when a partition is finished. Set
'sink.partition-commit.policy.kind' to 'success-file' (or 'metastore,success-file' for Hive).`,
			Wrong: exampleSource + "CREATE TABLE t (uid BIGINT, dt STRING) PARTITIONED BY (dt)\nWITH ('connector' = 'filesystem', 'path' = '/tmp/t', 'format' = 'json');\n" +
				"INSERT INTO t SELECT uid, DATE_FORMAT(ts, 'yyyy-MM-dd') FROM clicks;",
			Right: exampleSource + "CREATE TABLE t (uid BIGINT, dt STRING) PARTITIONED BY (dt)\nWITH ('connector' = 'filesystem', 'path' = '/tmp/t', 'format' = 'json', 'sink.partition-commit.policy.kind' = 'success-file');\n" +
				"INSERT INTO t SELECT uid, DATE_FORMAT(ts, 'yyyy-MM-dd') FROM clicks;",
		},
		{
			Code: CodeZoneConflict, Phase: PhasePlan, Title: "two time zones for one table",
			Explanation: `The partition columns are computed in the session's zone (table.local-time-zone) and the
partitions would be committed by another one: they would be complete hours too early or too late.`,
			Wrong: zoneExample("'Asia/Shanghai'"),
			Right: zoneExample("'UTC'"),
		},
	}
}

func zoneExample(zone string) string {
	return "CREATE TABLE c (uid BIGINT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');\n" +
		"CREATE TABLE t (uid BIGINT, dt STRING) PARTITIONED BY (dt) WITH (\n  'connector' = 'filesystem', 'path' = '/tmp/t', 'format' = 'json',\n" +
		"  'sink.partition-commit.policy.kind' = 'success-file',\n  'sink.partition-commit.trigger' = 'partition-time',\n" +
		"  'sink.partition-commit.watermark-time-zone' = " + zone + "\n);\n" +
		"INSERT INTO t SELECT uid, DATE_FORMAT(ts, 'yyyy-MM-dd') FROM c;"
}
