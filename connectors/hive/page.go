package hive

// doc is the page's text before the options.
const doc = "The table is looked up in the metastore, or created there, as an external one, with `'sink.create-table' = 'true'`. " +
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
	"Refused, with the reason: tables that are transactional, bucketed, sorted, views, of Iceberg, Hudi or Delta, stored as text or ORC (there is no maintained ORC writer for Go), or that read Parquet by position.\n\n" +
	"### What happens on a failure\n\n" +
	"| what | then |\n|---|---|\n" +
	"| the metastore is away, hangs, or loses an answer | files go on being committed; a call that may have been carried out is looked up before it is made again; announcements are tried again after 0.2 s to 15 s. Only a start needs the metastore. A bounded run waits for five minutes, then ends with the error |\n" +
	"| the partition is there already | at the same place: its statistics are written. At another place: an error that names both, and no change |\n" +
	"| the table was dropped, moved, or has columns that no longer fit | nothing is registered, files go on being committed; the error names the difference; once it is mended the partitions are caught up |\n" +
	"| rows come late | one more file in the partition; it is announced again, with new statistics |\n" +
	"| the job is killed at any step | the next start does what is left: no file twice, no partition twice |\n" +
	"| another job owns the directory | refused, with `--adopt` as the way out |\n\n" +
	"NULL and the empty text as a partition's value are `__HIVE_DEFAULT_PARTITION__`. A partition carries `millrace.job` and `millrace.epoch`: a process of an earlier epoch cannot alter it any more. Partitions are never dropped, and locations never changed.\n\n" +
	"Not yet: reading (use connector `filesystem` on the table's directory), Kerberos, tables in text formats, custom commit policies."
