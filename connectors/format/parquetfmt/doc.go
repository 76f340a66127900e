// Package parquetfmt turns columns into Parquet files and back.
//
// Four things, used by the filesystem connector and by `millrace file`:
//
//   - [Writer] writes rows of runtime/batch columns as one Parquet file;
//   - [File] reads our own and foreign files into such columns: projection by
//     name, row groups as splits, missing columns NULL, narrower types widened;
//   - [Metadata] reads the key-value metadata and the row count of a footer;
//   - [Verify] decodes a whole file with a second, independent reader and
//     compares footer, counts and statistics with the values.
//
// It is not a general Parquet library: it writes the types of runtime/types,
// data pages v1, PLAIN and dictionary encoding, which is what Hive, Spark,
// Trino, DuckDB and Impala all read. Structures and Thrift encoding are those
// of parquet-go/parquet-go; pages are built here, straight from columns, since
// an open file may hold no more than its compressed pages and one raw page a
// column.
//
//	+------+-----------------------------------------------+--------+--------+------+
//	| PAR1 | row group: column chunk, column chunk ... | ...   | footer | length | PAR1 |
//	+------+-----------------------------------------------+--------+--------+------+
//	column chunk = [dictionary page] data page ...      each page: header, CRC-32, compressed body
//	data page    = repetition levels, definition levels (RLE), values (PLAIN or dictionary codes)
//
// # Mapping
//
// Every column is OPTIONAL, whatever the SQL type says: readers merge files of
// several schemas. Lists and maps have the standard three levels.
//
//	BOOLEAN                 BOOLEAN
//	TINYINT SMALLINT        INT32, INT(8|16, signed)
//	INT BIGINT              INT32, INT64
//	FLOAT DOUBLE            FLOAT, DOUBLE
//	DECIMAL(p,s)            FIXED_LEN_BYTE_ARRAY of the least width for p (what every
//	                        Hive reads); INT32/INT64 up to p 9/18 by Options.DecimalIntegers
//	CHAR VARCHAR STRING     BYTE_ARRAY, STRING
//	BINARY VARBINARY BYTES  BYTE_ARRAY
//	DATE                    INT32, DATE
//	TIME(p)                 INT32, TIME(MILLIS, local)
//	TIMESTAMP(p<=6)         INT64, TIMESTAMP(MICROS, isAdjustedToUTC=false)
//	TIMESTAMP_LTZ(p<=6)     INT64, TIMESTAMP(MICROS, isAdjustedToUTC=true)
//	TIMESTAMP[_LTZ](p>6)    INT64, TIMESTAMP(NANOS, ...); Spark refuses NANOS: declare
//	                        precision 6 or use Options.Int96Timestamps
//	ARRAY MAP ROW           LIST, MAP, group
//	INTERVAL                refused ([ErrUnsupportedType])
//
// No unsigned annotation is ever written (Hive and Spark refuse them); foreign
// unsigned columns read as the next wider signed type, UINT64 as DECIMAL(20, 0).
// Bounds in statistics are exact or absent; they are absent for INT96 and for
// byte values longer than 64 bytes.
//
// # Concurrency and memory
//
// A Writer and a RowGroupReader belong to one goroutine at a time; a File and
// [Pools] may be shared. Compressors, hash tables and page scratch belong to
// Pools, which the caller makes once for many files; a Writer holds its
// compressed pages (in blocks of Pools) and at most one raw page a column.
//
// # Errors
//
// A Writer's error is sticky: after it, Write, Flush and Close return it and
// the file is worthless. Nothing is retried. A short write is an error.
package parquetfmt
