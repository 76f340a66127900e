package parquetfmt

import (
	_ "embed" // the table of types
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
)

//go:embed types.md
var typesDoc string

// Option keys of the format, Flink's where Flink has one.
const (
	keyCompression = "parquet.compression"
	keyInt64       = "parquet.write.int64.timestamp"
	keyUTC         = "parquet.utc-timezone"
	keyRowGroup    = "parquet.block.size"
	keyPage        = "parquet.page.size"
	keyDictPage    = "parquet.dictionary.page.size"
	keyDict        = "parquet.enable.dictionary"
	keyDecimalInts = "parquet.write.decimal-as-integer"
)

// Spec declares the format `parquet` for a connector's Formats.
func Spec() connector.FormatSpec {
	return connector.FormatSpec{
		Name:    "parquet",
		Summary: "Parquet files: columns in row groups, read by Hive, Spark, Trino and DuckDB.",
		Doc:     typesDoc,
		Decode:  true, Encode: true,
		Options: []connector.Option{
			{Key: keyCompression, Type: connector.OptString, Default: "SNAPPY",
				Check: func(s string) error { _, err := ParseCompression(s); return err },
				Doc:   "Compression of pages: `SNAPPY`, `ZSTD`, `GZIP` or `UNCOMPRESSED`, in any case."},
			{Key: keyInt64, Type: connector.OptBool, Default: "true",
				Doc: "Write TIMESTAMP and TIMESTAMP_LTZ as INT64 with a unit and a zone flag. `false` writes INT96 in UTC, for Hive before 4. (Flink's default is INT96.)"},
			{Key: keyUTC, Type: connector.OptBool, Default: "true",
				Check: func(s string) error {
					if s == "false" {
						return fmt.Errorf("%w: timestamps in the zone of the machine; only 'true' is supported", ErrNotYet)
					}
					return nil
				},
				Doc: "Timestamps are stored in UTC, never in the zone of the machine."},
			{Key: keyRowGroup, Type: connector.OptBytes, Default: "16MB", Check: sizeBetween(64<<10, 1<<30),
				Doc: "Raw size of a row group, the unit of reading in parallel; shrunk when a lane has little memory."},
			{Key: keyPage, Type: connector.OptBytes, Default: "128KB", Check: sizeBetween(1<<10, maxPageBytes),
				Doc: "Raw size of a page."},
			{Key: keyDictPage, Type: connector.OptBytes, Default: "64KB", Check: sizeBetween(1<<10, 1<<20),
				Doc: "Largest dictionary of a column; beyond it the column goes on with plain values."},
			{Key: keyDict, Type: connector.OptBool, Default: "true", Doc: "Use dictionaries where they pay."},
			{Key: keyDecimalInts, Type: connector.OptBool, Default: "false",
				Doc: "Write DECIMAL up to 18 digits as INT32 or INT64 instead of the fixed-length bytes that every Hive reads."},
		},
	}
}

func sizeBetween(lo, hi int64) func(string) error {
	return func(s string) error {
		n, err := connector.ParseBytes(s)
		if err == nil && (n < lo || n > hi) {
			err = fmt.Errorf("%s is outside %d to %d bytes", s, lo, hi)
		}
		return err
	}
}

// OptionsOf reads a table's checked options.
func OptionsOf(v connector.Values, pools *Pools) (Options, error) {
	c, err := ParseCompression(v.String(keyCompression))
	if err != nil {
		return Options{}, &connector.OptionError{Key: keyCompression, OnValue: true, Message: err.Error()}
	}
	o := Options{
		Compression:     c,
		Int96Timestamps: !v.Bool(keyInt64),
		RowGroupBytes:   int(v.Bytes(keyRowGroup)),
		PageBytes:       int(v.Bytes(keyPage)),
		DictionaryBytes: int(v.Bytes(keyDictPage)),
		DecimalIntegers: v.Bool(keyDecimalInts),
		Pools:           pools,
	}
	if !v.Bool(keyDict) {
		o.DictionaryBytes = -1
	}
	return o, nil
}
