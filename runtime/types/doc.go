// Package types declares Millrace's logical types and the one physical layout
// that each of them has in memory.
//
// A [Type] is an immutable value: kind, nullability, precision, scale, length
// and children. It says what SQL says (DECIMAL(10,2) NOT NULL) and, through
// [Type.Physical], how a column of it is laid out. Everything else derives
// from here: Arrow types (runtime/batch), Parquet and ClickHouse types
// (connectors), type syntax and coercion (sql/types). Nothing derives a
// logical type from a physical one.
//
// Layouts:
//
//	BOOLEAN                     bitmap, LSB first, as in Arrow
//	TINYINT SMALLINT INT BIGINT int8 int16 int32 int64
//	FLOAT DOUBLE                float32 float64
//	DECIMAL p<=18               int64, the unscaled value
//	DECIMAL p<=38               [Decimal128], the unscaled value
//	CHAR VARCHAR STRING         int32 offsets + bytes, valid UTF-8, unpadded
//	BINARY VARBINARY BYTES      int32 offsets + bytes
//	DATE                        int32, days since 1970-01-01
//	TIME(0..3)                  int32, milliseconds of the day
//	TIMESTAMP p<=6              int64, microseconds, wall clock as if UTC
//	TIMESTAMP p 7..9            int64, nanoseconds, wall clock as if UTC
//	TIMESTAMP_LTZ               as TIMESTAMP, a UTC instant
//	INTERVAL YEAR TO MONTH      int32, months
//	INTERVAL DAY TO SECOND      int64, milliseconds
//	ARRAY                       int32 offsets + one child
//	MAP                         int32 offsets + key child (never NULL) + value child
//	ROW                         one child a field; a NULL row is NULL in each field too
//
// Beside the types it holds what every layer computes with them alike: checked
// DECIMAL arithmetic of 128 bits, rounding half up ([Decimal128]); result types
// and common types by Flink's rules ([AddDecimal], [Common]); dates and times
// with floor semantics before 1970, fractions cut, never rounded ([Civil],
// [ParseTimestamp], [ParseTimestampForm]); Java date patterns ([TimePattern]);
// time zones ([Zone]) from rules inside the binary; numbers as Java writes
// them ([AppendFloat]).
//
// Parsers take string or []byte and do not allocate. Everything is safe for
// concurrent use but a Zone, which caches and belongs to one goroutine.
//
// The package has no state and imports nothing but the standard library.
package types
