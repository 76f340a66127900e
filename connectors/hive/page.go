package hive

import "github.com/millrace/millrace/connectors/filesystem"

// doc is the page's text before the options.
const doc = "Written, the table is looked up in the metastore, or created there, as an external one, with `'sink.create-table' = 'true'`. " +
	"Files are written into its directory, local or on `hdfs://`, as connector `filesystem` does; when a partition is complete it is registered in the metastore with its statistics (`numFiles`, `totalSize`, `numRows`), and then a `_SUCCESS` file is written into it. " +
	"Each step can be repeated, so that a crash, a lost answer or a metastore that is away delays a partition and loses nothing.\n\n" +
	"```sql\n" +
	"CREATE TABLE push (\n" +
	"  event_id BIGINT, actor STRING, created_at TIMESTAMP_LTZ(3), dt STRING, hr STRING\n" +
	") PARTITIONED BY (dt, hr) WITH (\n" +
	"  'connector' = 'hive',\n" +
	"  'hive.metastore.uris' = 'thrift://meta1:9083,thrift://meta2:9083',\n" +
	"  'database-name' = 'lake',\n" +
	"  'sink.create-table' = 'true',\n" +
	"  'partition.time-extractor.timestamp-pattern' = '$dt $hr:00:00',\n" +
	"  'sink.partition-commit.trigger' = 'partition-time',\n" +
	"  'sink.partition-commit.delay' = '1 h',\n" +
	"  'sink.partition-commit.policy.kind' = 'metastore,success-file'\n" +
	");\n" +
	"```\n\n" +
	"### Columns and types\n\n" +
	"Columns are compared by name, in lower case as Hive has them; columns of the table that the job does not write are NULL. A type that differs is an error that names every difference, unless `sink.schema-evolution` allows the change: then the table and all its partitions are altered before the first row. Nothing is converted.\n\n" +
	"| SQL | Hive | |\n|---|---|---|\n" +
	"| BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DATE | the same | |\n" +
	"| DECIMAL(p, s) | decimal(p,s) | |\n" +
	"| CHAR(n), VARCHAR(n), STRING | char(n) up to 255, varchar(n) up to 65535, string | a bounded text may also be written into a `string` |\n" +
	"| BINARY, VARBINARY, BYTES | binary | |\n" +
	"| TIMESTAMP(p) | timestamp | up to precision 6, to 9 as INT96. Hive shows it as it is; Spark has an instant for Hive's `timestamp` and shows UTC in its session's zone |\n" +
	"| TIMESTAMP_LTZ(p) | timestamp | an instant; readers show it in their zone |\n" +
	"| ARRAY, MAP, ROW | array, map, struct | names of fields in lower case |\n" +
	"| TIME, INTERVAL | refused | |\n\n" +
	"Timestamps are INT64, which Hive reads from version 4 on, and Spark, Trino and DuckDB do: `'parquet.write.int64.timestamp' = 'false'` writes INT96 for older ones. " +
	"After a column was widened Hive reads the older files right; Spark before 4 fails on them, unless it uses Hive's reader: `spark.sql.hive.convertMetastoreParquet=false`.\n\n" +
	"Refused, with the reason: tables that are transactional, bucketed, sorted, views, of Iceberg, Hudi or Delta, stored as text or ORC (there is no maintained ORC library for Go), or that read Parquet by position.\n\n" +
	"### Reading\n\n" +
	"A table that is read is bounded: the partitions that are registered when the job starts, wherever the metastore says they lie, and the files in them; a file is pinned to its length and time, and a row group of a Parquet file is a split. Directories that are not registered are not seen, and a registered one that does not exist is empty. " +
	"The table here names the columns that it wants, under any case and in any order, and all partition columns (`PARTITIONED BY`), which may be text, integers, BOOLEAN or DATE. " +
	"Conditions on partition columns (`dt >= '2024-05-01' AND hr IN (7, 8)`) say which partitions are asked for and read; `EXPLAIN` shows them at the scan as `partitions=`.\n\n" +
	"| stored as | read |\n|---|---|\n" +
	"| Parquet, by Hive, Spark or Millrace | by name; SNAPPY, ZSTD, GZIP, dictionaries, INT96. A column that a file does not have is NULL, one that is narrower in it is widened |\n" +
	"| delimited text (LazySimpleSerDe) | by position in the metastore's order; the table's delimiters and NULL text; fields that a line lacks are NULL, more are passed over. Scalars and arrays of them; `escape.delim` as Hive from version 2 on. Where Hive makes a value NULL that is none of its type, the row goes to the dead letter. Empty lines are passed over. Files that end with `.gz`, `.zst`, `.bz2` or `.deflate` are unpacked |\n" +
	"| JSON (JsonSerDe) | by the names as spelled here; compressed as text |\n" +
	"| ORC, Avro, SequenceFile, RCFile, CSV (OpenCSVSerde), footer lines | refused by name |\n\n" +
	"A column here must hold every value of the column there: BIGINT reads `int`, STRING reads `varchar(10)`, not the other way round; TIMESTAMP and TIMESTAMP_LTZ read `timestamp`. " +
	"Views, transactional tables, and those of Iceberg, Hudi or Delta are refused, and so is a partition that is stored in another way than its table.\n\n" +
	"### Replacing\n\n" +
	"`INSERT OVERWRITE` gives a partition, or a table without partitions, a new content at once: its files are put into `<table>/.versions/<partition>/v<n>-<job>/`, and then the metastore's location is pointed there, which is one change of one entry. A query of Hive or Spark has planned with the old files or with the new ones, never with some of both; the old ones stay for `sink.versions.retention`. " +
	"A version that was overtaken by a newer one of the job is never published, also when an old attempt comes to life again. Rows that are appended later go into the partition's own directory and, when it is announced, into the version.\n\n" +
	"### Small files\n\n" +
	"With `'auto-compaction' = 'true'` the files of a partition that are on average smaller than half of `compaction.file-size` are written again as few, before the partition is announced; with `'sink.late-data' = 'rewrite'` when rows come for one that was announced before. The new files are a version, as above, whose record names those that it takes the place of; these stay for `sink.versions.retention`, and are known to be published also when they are gone. Files that others wrote, or with columns that the job does not write, are left as they are.\n\n" +
	"### Who sees what\n\n" +
	"| reads | sees |\n|---|---|\n" +
	"| Hive, Spark, Trino, and Millrace's connector `hive` | the table, through the metastore: each partition's present content |\n" +
	"| DuckDB and others that read the directory, `<table>/dt=*/hr=*/*.parquet` | what lies in the partitions' own directories: all rows of a table that is never replaced nor merged. Of a partition that was, the old files for as long as they are kept, and no file afterwards; give them the locations of `SHOW TABLE EXTENDED` or `DESCRIBE FORMATTED ... PARTITION` instead |\n\n" +
	filesystem.PolicyDoc + "\n\n" +
	"### Late rows\n\n" +
	"A row is late for a partition that was announced, and by `sink.late-data` it comes into it (`append`, `rewrite`) or goes to a table of its own: `'sink.late-data' = 'side-table', 'sink.late-data.table-name' = 'events_late'`. That table lies in the same database, has the same columns and no partitions, is created with `'sink.create-table' = 'true'` (at `sink.late-data.path`, or where the metastore says), and belongs to the job like the first; neither lies in the directory of the other. Its rows are visible when they are committed; the announced partition is not written, announced or registered again.\n\n" +
	"Which rows are late is fixed when the partition begins to close: the ledger then has, for each partition of the input, the first offset that was not processed yet. Rows below come into the partition; rows at or above are late, after a crash and in a replay, too, and nothing comes into a partition once it is closed. A row is in one of the two tables, once: the rows of one record are named by one intent, whichever table they go to. They count as `late` in the ledger (`millrace ledger show`, and `late` of the table in `millrace jobs ls -o json`), so that `written` is what the first table has. " +
	"With the trigger `process-time` every row that comes after the delay is late; `partition-time` waits for the watermark. Rows of partitions whose time cannot be read are late only after the end of the input. " +
	"Not yet: a table behind GROUP BY, a window, a wide table or `INSERT OVERWRITE` (the late rows of a window are those of `window.late-rows`), and a table of late rows with partitions.\n\n" +
	"### Two clusters\n\n" +
	"A partitioned table on `hdfs://` may have a standby on a second cluster, with the options and the rules of [HDFS](hdfs.md#two-clusters): `path`, `hdfs.standby`, `hdfs.standby.switch`. It needs `path`, and policy `metastore`. The table's own entry stays at the main home; each partition's location says at which home it lies, so that Hive, Spark and connector `hive` read all partitions with one query, as long as both clusters serve those that lie there.\n\n" +
	"| a partition is | when the table moves |\n|---|---|\n" +
	"| not registered yet | it is registered at its new home |\n" +
	"| registered, and not announced | its entry is pointed to the new home when its rows are there |\n" +
	"| announced | it stays. Rows that come late for it are written at the new home, so that no lane waits for the old one, and are seen when both homes serve: their files are copied to the partition's home, under their names, and the partition is announced again |\n\n" +
	"Readers need to reach both clusters: HDFS clients by the addresses in the locations, connector `hive` by `hdfs.namenodes` and `hdfs.standby.namenodes`. Not yet: `INSERT OVERWRITE`, and a table of late rows, for a table with a standby.\n\n" +
	"### What happens on a failure\n\n" +
	"| what | then |\n|---|---|\n" +
	"| the metastore is away, hangs, or loses an answer | files go on being committed; a call that may have been carried out is looked up before it is made again; announcements are tried again after 0.2 s to 15 s. Only a start needs the metastore. Of several addresses the next one is asked. A bounded run waits for five minutes, then ends with the error |\n" +
	"| the metastore refuses, since the user has no right to the directory | at a start the job ends with the error, else files go on being committed and announcements are tried again; the error names the user and what to do |\n" +
	"| the partition is there already | at the same place: its statistics are written. At another place: an error that names both, and no change |\n" +
	"| the table was dropped, moved, or has columns that no longer fit | nothing is registered, files go on being committed; the error names the difference; once it is mended the partitions are caught up |\n" +
	"| the job or the machine stops in the middle of a replacement | the partition has its old content; the next start completes the replacement, or finds that it was |\n" +
	"| rows come late | one more file in the partition, and by `sink.late-data` the files are merged; it is announced again, with new statistics. With `side-table` they go to the table of late rows, and the partition stays as it is |\n" +
	"| rows of a partition are under way while it is closed, with `side-table` | the lane's attempt ends before they are named in the ledger; they are read again, and are late |\n" +
	"| the job or the machine stops while files are merged | the partition keeps its files; the next announcement merges them anew |\n" +
	"| the job is killed at any step | the next start does what is left: no file twice, no partition twice |\n" +
	"| the cluster fails for long, and the table has a standby | it goes on there, by itself or by `millrace tables switch`; nothing is lost or doubled |\n" +
	"| another job owns the directory | refused, with `--adopt` as the way out |\n\n" +
	"NULL and the empty text as a partition's value are `__HIVE_DEFAULT_PARTITION__`. A partition carries `millrace.job` and `millrace.epoch`: a process of an earlier epoch cannot alter it any more. Partitions are never dropped, and a location is only ever pointed to a version of the partition, or to its other home.\n\n" +
	"Not yet: Kerberos, writing text formats."
