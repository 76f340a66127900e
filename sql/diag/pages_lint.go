package diag

// lintPages are the pages of warnings about what is allowed but hardly meant.
func lintPages() []Page {
	return []Page{
		{
			Code: CodeColumnNameMismatch, Phase: PhaseLint, Title: "columns are inserted under another name",
			Explanation: `INSERT goes by position, not by name. A column of the query has the name of another column of
the table, so two of them are probably swapped.`,
			Wrong: exampleSource + "CREATE TABLE t (room STRING, title STRING) WITH ('connector' = 'blackhole');\nINSERT INTO t SELECT UPPER(room) AS title, room FROM clicks;",
			Right: exampleSource + "CREATE TABLE t (room STRING, title STRING) WITH ('connector' = 'blackhole');\nINSERT INTO t SELECT room, UPPER(room) AS title FROM clicks;",
		},
		{
			Code: CodeClockInFilter, Phase: PhaseLint, Title: "the clock decides which rows pass",
			Explanation: `A row that is read again after a crash may be dropped, or passed, where it was not before.
Compare with a time of the row, or live with it.`,
			Wrong: exampleJob("SELECT uid, room FROM clicks WHERE ts > LOCALTIMESTAMP - INTERVAL '1' DAY"),
			Right: exampleJob("SELECT uid, room FROM clicks WHERE ts > TIMESTAMP '2024-01-01 00:00:00'"),
		},
		{
			Code: CodeDatePattern, Phase: PhaseLint, Title: "a date pattern that hardly means what it says",
			Explanation: `Patterns are Java's: DD is the day of the year, and hh without a the hour of half a day. Usually
dd and HH are meant. YYYY, the year of the week, is refused; yyyy is the year.`,
			Wrong: exampleJob("SELECT uid, DATE_FORMAT(ts, 'yyyy-MM-DD') FROM clicks"),
			Right: exampleJob("SELECT uid, DATE_FORMAT(ts, 'yyyy-MM-dd') FROM clicks"),
		},
		{
			Code: CodeDSTWindow, Phase: PhaseLint, Title: "a window over local time with summer time",
			Explanation: `Windows over TIMESTAMP_LTZ follow the wall clock of the session's zone, as in Flink. Where
clocks change, one window of the year is longer and one is missing.`,
			Wrong: dstExample("Europe/Berlin"),
			Right: dstExample("UTC"),
		},
		{
			Code: CodeIntegerAverage, Phase: PhaseLint, Title: "an average of integers is an integer",
			Explanation: `AVG keeps the type of its argument, as in Flink: the fraction is cut off. CAST the argument to
DOUBLE or DECIMAL to keep it.`,
			Wrong: averageExample("CAST(AVG(n) AS DOUBLE)"),
			Right: averageExample("AVG(CAST(n AS DOUBLE))"),
		},
		{
			Code: CodeUnboundedState, Phase: PhaseLint, Title: "state that grows for as long as the job runs",
			Explanation: `GROUP BY, joins, Top-N and the first row of a key without a window keep what they know of every
key. A time to live forgets what has not been written for that long; what comes later begins anew.
Windows need none: they forget what has passed. A join without an equality also compares each row
with all of the other side, in one task.`,
			Wrong: stateExample(""),
			Right: stateExample("SET 'table.exec.state.ttl' = '1 d';\n"),
		},
		{
			Code: CodeUnusedColumn, Phase: PhaseLint, Title: "columns that no statement reads",
			Explanation: `The job file declares a table with columns that none of its statements reads. They are checked
to be JSON and never converted, and do no harm; often one was to be read and is not. check alone says
so, and of tables of the job file alone: DDL in files of its own (-f ddl/) may serve other jobs.`,
			Wrong: unusedExample("uid BIGINT, room STRING, country STRING"),
			Right: unusedExample("uid BIGINT, room STRING"),
		},
	}
}

func unusedExample(columns string) string {
	return "CREATE TABLE visits (" + columns + ") WITH ('connector' = 'datagen');\n" + exampleSink +
		"INSERT INTO rooms SELECT uid, room FROM visits;"
}

func stateExample(set string) string {
	return set + exampleSource + "CREATE TABLE t (uid BIGINT, n BIGINT) WITH ('connector' = 'blackhole');\n" +
		"INSERT INTO t SELECT uid, COUNT(*) FROM clicks GROUP BY uid;"
}

func dstExample(zone string) string {
	return "SET 'table.local-time-zone' = '" + zone + "';\n" +
		"CREATE TABLE c (uid BIGINT, ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen');\n" +
		"CREATE TABLE t (uid BIGINT, n BIGINT) WITH ('connector' = 'blackhole');\n" +
		"INSERT INTO t SELECT uid, COUNT(*) FROM TABLE(TUMBLE(TABLE c, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end, uid;"
}

func averageExample(expr string) string {
	return exampleSource + "CREATE TABLE t (uid BIGINT, a DOUBLE) WITH ('connector' = 'blackhole');\n" +
		"INSERT INTO t SELECT uid, " + expr + " FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR)) GROUP BY window_start, window_end, uid;"
}
