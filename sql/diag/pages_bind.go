package diag

// The tables that the examples of the pages read and write.
const (
	exampleSource = "CREATE TABLE clicks (\n  uid BIGINT,\n  room STRING,\n  n INT,\n  ts TIMESTAMP(3),\n" +
		"  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND\n) WITH ('connector' = 'datagen');\n"
	exampleSink = "CREATE TABLE rooms (uid BIGINT, room STRING) WITH ('connector' = 'blackhole');\n"
)

// exampleJob is a job file with the two tables and an INSERT of the query.
func exampleJob(query string) string {
	return exampleSource + exampleSink + "INSERT INTO rooms " + query + ";"
}

// exampleTable is a job file that declares a table, fills it with clicks and so uses it.
func exampleTable(columns string) string {
	return exampleSource + "CREATE TABLE t (" + columns + ") WITH ('connector' = 'blackhole');\n" +
		"INSERT INTO t (uid) SELECT uid FROM clicks;"
}

// bindPages are the pages of errors about names, types and options.
func bindPages() []Page {
	pages := append(namePages(), typePages()...)
	pages = append(pages, tablePages()...)
	return append(pages, optionPages()...)
}

func namePages() []Page {
	return []Page{
		{
			Code: CodeUnknownTable, Phase: PhaseBind, Title: "no such table",
			Explanation: `No table, view or WITH query of this name is declared before the statement. Names are
case-sensitive. Declarations may stand in other files given with -f.`,
			Wrong: exampleJob("SELECT uid, room FROM click"),
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeUnknownColumn, Phase: PhaseBind, Title: "no such column",
			Explanation: `None of the tables in scope has a column of this name. Names are case-sensitive, as the
keys of JSON are.`,
			Wrong: exampleJob("SELECT user_id, room FROM clicks"),
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeUnknownField, Phase: PhaseBind, Title: "no such field",
			Explanation: `The value before the dot is no ROW, or its ROW type has no field of this name.`,
			Wrong:       exampleJob("SELECT uid, room.name FROM clicks"),
			Right:       exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeUnknownFunction, Phase: PhaseBind, Title: "no such function",
			Explanation: `There is no function of this name, or none that takes these arguments. For names of other
dialects (NVL, DATEDIFF) the message says what to write instead. SHOW FUNCTIONS lists them all.`,
			Wrong: exampleJob("SELECT uid, UPPERCASE(room) FROM clicks"),
			Right: exampleJob("SELECT uid, UPPER(room) FROM clicks"),
		},
		{
			Code: CodeAmbiguousColumn, Phase: PhaseBind, Title: "a column could be either of two",
			Explanation: `More than one table in FROM has a column of this name. Write the table's name or alias
in front of it.`,
			Wrong: exampleJob("SELECT uid, room FROM clicks CROSS JOIN UNNEST(ARRAY['a']) AS u (room)"),
			Right: exampleJob("SELECT uid, u.room FROM clicks CROSS JOIN UNNEST(ARRAY['a']) AS u (room)"),
		},
		{
			Code: CodeDuplicateTable, Phase: PhaseBind, Title: "a table exists already",
			Explanation: `Two statements declare the same name, or two tables in FROM have the same name or alias.
IF NOT EXISTS keeps the first declaration.`,
			Wrong: exampleSource + exampleJob("SELECT uid, room FROM clicks"),
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeDuplicateColumn, Phase: PhaseBind, Title: "a column appears twice",
			Explanation: `Two columns of a table, view or list have the same name.`,
			Wrong:       exampleTable("uid BIGINT, uid STRING"),
			Right:       exampleTable("uid BIGINT, name STRING"),
		},
		{
			Code: CodeColumnCount, Phase: PhaseBind, Title: "the numbers of columns differ",
			Explanation: `INSERT goes by position: the query gives as many columns as the table takes, or as the list
behind the table names. Computed and VIRTUAL columns are not counted. The branches of UNION and
the rows of VALUES have the same number of columns.`,
			Wrong: exampleJob("SELECT uid FROM clicks"),
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeNotGrouped, Phase: PhaseBind, Title: "a column is neither grouped nor aggregated",
			Explanation: `Of a group only the columns of GROUP BY and aggregates have one value. Add the column to
GROUP BY or put it into an aggregate such as LAST_VALUE.`,
			Wrong: exampleSource + "CREATE TABLE s (room STRING, k BIGINT) WITH ('connector' = 'print');\n" +
				"INSERT INTO s SELECT room, uid FROM clicks GROUP BY room;",
			Right: exampleSource + "CREATE TABLE s (room STRING, k BIGINT) WITH ('connector' = 'print');\n" +
				"INSERT INTO s SELECT room, LAST_VALUE(uid) FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' HOUR))\n" +
				"GROUP BY window_start, window_end, room;",
		},
		{
			Code: CodeMisplacedAggregate, Phase: PhaseBind, Title: "an aggregate stands where single rows are looked at",
			Explanation: `WHERE, ON, GROUP BY and the arguments of aggregates look at single rows. A condition on an
aggregate goes into HAVING.`,
			Wrong: exampleJob("SELECT uid, room FROM clicks WHERE COUNT(*) > 1"),
			Right: exampleJob("SELECT uid, room FROM clicks WHERE n > 1"),
		},
	}
}

func typePages() []Page {
	return []Page{
		{
			Code: CodeTypeMismatch, Phase: PhaseBind, Title: "a type does not fit",
			Explanation: `A value of this type cannot stand here without a CAST. In INSERT only conversions that lose
nothing are done silently: to a wider number, to a longer string, between TIMESTAMP and
TIMESTAMP_LTZ. Everything else is written out, so that a loss is seen where it happens.`,
			Wrong: exampleJob("SELECT room, room FROM clicks"),
			Right: exampleJob("SELECT TRY_CAST(room AS BIGINT), room FROM clicks"),
		},
		{
			Code: CodeBadType, Phase: PhaseBind, Title: "a type that cannot be",
			Explanation: `The numbers in a type are out of range: DECIMAL has at most 38 digits and no more of them
behind the point than there are, TIMESTAMP at most 9 digits of a second.`,
			Wrong: exampleTable("uid BIGINT, price DECIMAL(39, 2)"),
			Right: exampleTable("uid BIGINT, price DECIMAL(38, 2)"),
		},
		{
			Code: CodeBadLiteral, Phase: PhaseBind, Title: "a literal has no value",
			Explanation: `A number, date, time or interval is written in a way that means nothing: a day that the
month does not have, a number with too many digits.`,
			Wrong: exampleJob("SELECT uid, room FROM clicks WHERE ts < TIMESTAMP '2023-02-29 00:00:00'"),
			Right: exampleJob("SELECT uid, room FROM clicks WHERE ts < TIMESTAMP '2023-03-01 00:00:00'"),
		},
		{
			Code: CodeBadArgument, Phase: PhaseBind, Title: "an argument does not fit",
			Explanation: `A function or clause got an argument that it cannot take: the wrong number of them, a column
where a constant is needed, a name that is none of its parameters.`,
			Wrong: exampleJob("SELECT uid, CAST(SUM(*) AS STRING) FROM clicks GROUP BY uid"),
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeUntypedNull, Phase: PhaseBind, Title: "NULL without a type",
			Explanation: `Nothing around this NULL says what type it has. CAST(NULL AS type) does.`,
			Wrong:       exampleSource + exampleSink + "CREATE VIEW v AS SELECT uid, NULL AS x, room FROM clicks;\nINSERT INTO rooms SELECT uid, room FROM v;",
			Right:       exampleSource + exampleSink + "CREATE VIEW v AS SELECT uid, CAST(NULL AS INT) AS x, room FROM clicks;\nINSERT INTO rooms SELECT uid, room FROM v;",
		},
	}
}

func tablePages() []Page {
	return []Page{
		{
			Code: CodeBadTable, Phase: PhaseBind, Title: "a table or view that cannot be",
			Explanation: `A table needs at least one column that is stored, and a view cannot refer to itself.`,
			Wrong: exampleSource + exampleSink + "CREATE TABLE t (a AS 1 + 1) WITH ('connector' = 'blackhole');\n" +
				"INSERT INTO rooms SELECT uid, room FROM clicks;",
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeBadKey, Phase: PhaseBind, Title: "a primary key does not fit",
			Explanation: `A table has at most one primary key, over physical columns, written with NOT ENFORCED
because it is not checked. A connector that updates rows needs one.`,
			Wrong: exampleTable("uid BIGINT, PRIMARY KEY (uid)"),
			Right: exampleTable("uid BIGINT, PRIMARY KEY (uid) NOT ENFORCED"),
		},
		{
			Code: CodeBadPartition, Phase: PhaseBind, Title: "a partition column does not fit",
			Explanation: `Partition columns are scalar physical columns of the table, each named once, and not all of
them. PARTITION (...) of an INSERT names partition columns with constants.`,
			Wrong: exampleSource + "CREATE TABLE t (uid BIGINT) PARTITIONED BY (uid)\n" +
				"WITH ('connector' = 'filesystem', 'path' = '/tmp/t', 'format' = 'json', 'sink.partition-commit.policy.kind' = 'success-file');\n" +
				"INSERT INTO t SELECT uid FROM clicks;",
			Right: exampleSource + "CREATE TABLE t (uid BIGINT, dt STRING) PARTITIONED BY (dt)\n" +
				"WITH ('connector' = 'filesystem', 'path' = '/tmp/t', 'format' = 'json', 'sink.partition-commit.policy.kind' = 'success-file');\n" +
				"INSERT INTO t SELECT uid, DATE_FORMAT(ts, 'yyyy-MM-dd') FROM clicks;",
		},
		{
			Code: CodeBadLike, Phase: PhaseBind, Title: "LIKE cannot merge the tables",
			Explanation: `The rules behind LIKE contradict each other, or the source is no table.`,
			Wrong:       exampleJob("SELECT uid, room FROM clicks") + "\nCREATE TABLE c LIKE clicks (INCLUDING ALL INCLUDING OPTIONS EXCLUDING OPTIONS);",
			Right:       exampleJob("SELECT uid, room FROM clicks") + "\nCREATE TABLE c LIKE clicks (INCLUDING ALL);",
		},
		{
			Code: CodeBadLoop, Phase: PhaseBind, Title: "FOR EACH does not find its tables",
			Explanation: `A loop takes the tables that its pattern matches and that are declared above it, in its file
or in one before it: no views, templates, wide tables, targets of an INSERT and tables that a loop made.
None is most likely a wrong pattern; one that is declared further down would be left out in silence.`,
			Wrong: exampleSource + exampleSink + "FOR EACH TABLE t IN (SHOW TABLES LIKE 'app%') BEGIN\n" +
				"  INSERT INTO rooms SELECT uid, room FROM `${t}`;\nEND FOR;",
			Right: exampleSource + exampleSink + "FOR EACH TABLE t IN (SHOW TABLES LIKE 'cl%') BEGIN\n" +
				"  INSERT INTO rooms SELECT uid, room FROM `${t}`;\nEND FOR;",
		},
		{
			Code: CodeBadWatermark, Phase: PhaseBind, Title: "a watermark does not fit",
			Explanation: `A table has at most one WATERMARK. It is for a top-level TIMESTAMP or TIMESTAMP_LTZ column,
and its expression has the same type.`,
			Wrong: exampleSource + exampleSink + "CREATE TABLE t (a STRING, WATERMARK FOR a AS a) WITH ('connector' = 'datagen');\nINSERT INTO rooms SELECT uid, room FROM clicks;",
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeUnknownMetadata, Phase: PhaseBind, Title: "the connector has no such metadata",
			Explanation: `METADATA columns name what the connector knows about a record (topic, partition, offset,
timestamp). The key is the column's name unless FROM gives another; what is read only needs VIRTUAL
in a table that is written. millrace connectors describe lists the keys.`,
			Wrong: exampleSource + exampleSink + "CREATE TABLE t (a INT, m BIGINT METADATA FROM 'no-such-key' VIRTUAL) WITH ('connector' = 'datagen');\nINSERT INTO rooms SELECT uid, room FROM clicks;",
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeNotASource, Phase: PhaseBind, Title: "the table cannot be read",
			Explanation: `The table's connector only writes, or the table has no connector because it is a template
for LIKE. For FOR SYSTEM_TIME AS OF: its connector cannot find rows by a key.`,
			Wrong: exampleJob("SELECT uid, room FROM rooms"),
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeNotASink, Phase: PhaseBind, Title: "the table cannot be written",
			Explanation: `The target of INSERT is a view, a wide table, a template, or a table whose connector only
reads.`,
			Wrong: exampleSource + "INSERT INTO clicks SELECT * FROM clicks;",
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
	}
}

func optionPages() []Page {
	return []Page{
		{
			Code: CodeUnknownOption, Phase: PhaseBind, Title: "no such option or setting",
			Explanation: `Options and SET keys that nobody reads are errors, never ignored: a misspelled option would
have no effect for months. millrace connectors describe lists what a connector takes.`,
			Wrong: exampleSource + "CREATE TABLE t (uid BIGINT) WITH ('connector' = 'blackhole', 'fromat' = 'json');\nINSERT INTO t SELECT uid FROM clicks;",
			Right: exampleSource + "CREATE TABLE t (uid BIGINT) WITH ('connector' = 'blackhole');\nINSERT INTO t SELECT uid FROM clicks;",
		},
		{
			Code: CodeBadOption, Phase: PhaseBind, Title: "an option's value does not fit",
			Explanation: `The value is not of the option's type, out of its range, or contradicts another option of
the table.`,
			Wrong: "SET 'execution.checkpointing.interval' = 'often';\n" + exampleJob("SELECT uid, room FROM clicks"),
			Right: "SET 'execution.checkpointing.interval' = '10 s';\n" + exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeMissingOption, Phase: PhaseBind, Title: "a required option is missing",
			Explanation: `The connector or format cannot work without this option.`,
			Wrong:       exampleSource + "CREATE TABLE t (uid BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json');\nINSERT INTO t SELECT uid FROM clicks;",
			Right:       exampleSource + "CREATE TABLE t (uid BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '/tmp/t');\nINSERT INTO t SELECT uid FROM clicks;",
		},
		{
			Code: CodeDuplicateOption, Phase: PhaseBind, Title: "an option is set twice",
			Explanation: `One of the two values would win by accident. LIKE with OVERWRITING OPTIONS, which is the
default, replaces those of the source.`,
			Wrong: exampleSource + "CREATE TABLE t (uid BIGINT) WITH ('connector' = 'blackhole', 'connector' = 'print');\nINSERT INTO t SELECT uid FROM clicks;",
			Right: exampleSource + "CREATE TABLE t (uid BIGINT) WITH ('connector' = 'blackhole');\nINSERT INTO t SELECT uid FROM clicks;",
		},
		{
			Code: CodeUnknownConnector, Phase: PhaseBind, Title: "no such connector",
			Explanation: `The value of 'connector' names none of the connectors; millrace connectors lists them.`,
			Wrong:       exampleSource + "CREATE TABLE t (uid BIGINT) WITH ('connector' = 'blackhol');\nINSERT INTO t SELECT uid FROM clicks;",
			Right:       exampleSource + "CREATE TABLE t (uid BIGINT) WITH ('connector' = 'blackhole');\nINSERT INTO t SELECT uid FROM clicks;",
		},
		{
			Code: CodeNoEffect, Phase: PhaseBind, Title: "an option of Flink that does nothing here",
			Explanation: `The key is one of Flink's that Millrace knows and does not need. It is accepted, so that a
file can move here unchanged, with this warning. The settings of mini-batches are of these:
rows always come by the batch, and what a batch changes is said once. It is also the warning for
'window.late-rows' where all windows go by the clock: no row is late for them.`,
			Wrong: "SET 'table.optimizer.join-reorder-enabled' = 'true';\n" + exampleJob("SELECT uid, room FROM clicks"),
			Right: exampleJob("SELECT uid, room FROM clicks"),
		},
		{
			Code: CodeConflictingSetting, Phase: PhaseBind, Title: "a setting of the whole job has two values",
			Explanation: `A file is one job. Settings of the planner hold for the statements below them; one that holds
for the whole job cannot change on the way.`,
			Wrong: "SET 'pipeline.name' = 'a';\nSET 'pipeline.name' = 'b';\n" + exampleJob("SELECT uid, room FROM clicks"),
			Right: "SET 'pipeline.name' = 'a';\n" + exampleJob("SELECT uid, room FROM clicks"),
		},
	}
}
