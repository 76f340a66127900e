package parquetfmt

import (
	"errors"
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go/format"

	"github.com/millrace/millrace/runtime/types"
)

// Compression is the codec of a file's pages.
type Compression uint8

// The codecs. The zero value is Snappy, which every reader knows. LZ4 is not
// among them: its two framings divide the readers, and parquet-go/parquet-go
// v0.32 returns zeros instead of values for LZ4_RAW pages that keep more than a
// third of their size.
const (
	Snappy Compression = iota
	None
	Zstd
	Gzip
)

var compressionNames = [...]string{Snappy: "snappy", None: "none", Zstd: "zstd", Gzip: "gzip"}

// String is the name that [ParseCompression] takes.
func (c Compression) String() string {
	if int(c) < len(compressionNames) {
		return compressionNames[c]
	}
	return fmt.Sprintf("Compression(%d)", uint8(c))
}

// CompressionNames are the values of the option parquet.compression.
func CompressionNames() []string { return []string{"none", "snappy", "zstd", "gzip"} }

// ParseCompression reads a codec's name in any case; "uncompressed" is "none".
func ParseCompression(s string) (Compression, error) {
	name := strings.ToLower(strings.TrimSpace(s))
	if name == "uncompressed" {
		name = "none"
	}
	for i, n := range compressionNames {
		if n == name {
			return Compression(i), nil
		}
	}
	switch name {
	case "lz4", "lz4_raw", "lzo", "brotli":
		return 0, fmt.Errorf("%w: compression %s (one of %s)", ErrNotYet, name, strings.Join(CompressionNames(), ", "))
	}
	return 0, fmt.Errorf("unknown compression %q (one of %s)", s, strings.Join(CompressionNames(), ", "))
}

func (c Compression) codec() format.CompressionCodec {
	switch c {
	case None:
		return format.Uncompressed
	case Zstd:
		return format.Zstd
	case Gzip:
		return format.Gzip
	}
	return format.Snappy
}

// Options of a [Writer]. The zero value works.
type Options struct {
	// Compression of pages; Snappy by default.
	Compression Compression
	// RowGroupBytes ends a row group when its raw values and levels reach this
	// size; 16 MiB by default. A row group is overshot by at most 1,024 rows.
	RowGroupBytes int
	// PageBytes ends a page at this raw size; 128 KiB by default, at most
	// 20,000 values in any case.
	PageBytes int
	// DictionaryBytes caps a column's dictionary; 64 KiB by default, negative
	// turns dictionaries off.
	DictionaryBytes int
	// Int96Timestamps writes TIMESTAMP and TIMESTAMP_LTZ as INT96 (Julian day
	// and nanoseconds of the UTC day), for Hive before 4.
	Int96Timestamps bool
	// DecimalIntegers writes DECIMAL up to 9 digits as INT32 and up to 18 as
	// INT64 instead of fixed-length bytes.
	DecimalIntegers bool
	// CreatedBy is the footer's application; "millrace version 1.0 (build 0)"
	// by default. Readers parse the form "name version x (build y)".
	CreatedBy string
	// Pools are shared by all files of a slot; nil makes private ones.
	Pools *Pools
}

const (
	defaultRowGroupBytes   = 16 << 20
	defaultPageBytes       = 128 << 10
	defaultDictionaryBytes = 64 << 10
	maxPageBytes           = 8 << 20
	defaultCreatedBy       = "millrace version 1.0 (build 0)"
)

// Validate reports the first field that cannot be used.
func (o Options) Validate() error {
	switch {
	case o.Compression > Gzip:
		return fmt.Errorf("Compression: unknown codec %d", o.Compression)
	case o.RowGroupBytes < 0 || o.RowGroupBytes > 1<<30:
		return fmt.Errorf("RowGroupBytes: %d is not in 0..1 GiB", o.RowGroupBytes)
	case o.PageBytes < 0 || o.PageBytes > maxPageBytes:
		return fmt.Errorf("PageBytes: %d is not in 0..8 MiB", o.PageBytes)
	case o.DictionaryBytes > 1<<20:
		return fmt.Errorf("DictionaryBytes: %d is above 1 MiB", o.DictionaryBytes)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.RowGroupBytes == 0 {
		o.RowGroupBytes = defaultRowGroupBytes
	}
	if o.PageBytes == 0 {
		o.PageBytes = defaultPageBytes
	}
	if o.DictionaryBytes == 0 {
		o.DictionaryBytes = defaultDictionaryBytes
	}
	if o.CreatedBy == "" {
		o.CreatedBy = defaultCreatedBy
	}
	if o.Pools == nil {
		o.Pools = NewPools(0)
	}
	return o
}

// Errors that callers branch on.
var (
	// ErrUnsupportedType: the logical type has no Parquet form here.
	ErrUnsupportedType = errors.New("type cannot be stored in Parquet")
	// ErrClosed: Write, Flush or Close after Close or Abort.
	ErrClosed = errors.New("parquet writer is closed")
	// ErrValueError: a selected row holds an error value; nothing of the batch
	// was written. The caller drops or dead-letters such rows before.
	ErrValueError = errors.New("row holds an error value")
	// ErrNotYet: a part of the format that is not supported yet.
	ErrNotYet = errors.New("not_yet")
	// ErrCorrupt: the bytes are not a Parquet file, or a broken one.
	ErrCorrupt = errors.New("corrupt parquet file")
)

// TypeError names the column whose type cannot be stored or read.
type TypeError struct {
	Column string
	Type   types.Type
	Reason string
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("column %s: %s cannot be stored in Parquet: %s", e.Column, e.Type, e.Reason)
}

// Unwrap makes errors.Is(err, ErrUnsupportedType) true.
func (e *TypeError) Unwrap() error { return ErrUnsupportedType }

// Stats describe a finished file.
type Stats struct {
	// Rows and Bytes of the file.
	Rows, Bytes int64
	RowGroups   int
	// Columns are the leaves in schema order.
	Columns []ColumnStats
}

// ColumnStats describe one leaf column over the whole file.
type ColumnStats struct {
	// Path of the leaf as in the file, e.g. "tags.list.element".
	Path string
	// Values counts slots, NULLs and empty lists included; Nulls those
	// without a value.
	Values, Nulls int64
	// RawBytes and StoredBytes are pages before and after compression, page
	// headers included.
	RawBytes, StoredBytes int64
	// Min and Max are PLAIN-encoded bounds (byte arrays without their length);
	// nil when unknown, e.g. for a column of NULLs only.
	Min, Max []byte
}
