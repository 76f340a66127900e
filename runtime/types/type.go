package types

import (
	"fmt"
	"strings"
)

// Kind is the constructor of a logical type.
type Kind uint8

// The kinds. Null is the type of a bare NULL before it is unified with
// another type; no column ever has it.
const (
	Invalid Kind = iota
	Null
	Boolean
	TinyInt
	SmallInt
	Int
	BigInt
	Float
	Double
	Decimal
	Char
	Varchar
	Binary
	Varbinary
	Date
	Time
	Timestamp
	TimestampLTZ
	IntervalYearMonth
	IntervalDaySecond
	Array
	Map
	Row
)

// MaxLength is the length of STRING and BYTES: VARCHAR(2147483647).
const MaxLength = 1<<31 - 1

// MaxPrecision is the largest DECIMAL precision.
const MaxPrecision = 38

// Type is a logical type. The zero value is invalid. Types are immutable:
// children are shared between copies and must not be written.
type Type struct {
	Kind     Kind
	Nullable bool
	// Precision: DECIMAL 1..38, TIME 0..3, TIMESTAMP and TIMESTAMP_LTZ 0..9.
	Precision int
	// Scale: DECIMAL 0..Precision.
	Scale int
	// Length: CHAR, VARCHAR in code points; BINARY, VARBINARY in bytes.
	Length int
	// Elem is the element of an ARRAY and the value of a MAP.
	Elem *Type
	// Key is the key of a MAP; always NOT NULL.
	Key *Type
	// Fields are the fields of a ROW, in order.
	Fields []Field
}

// Field is a named child of a ROW or a column of a schema.
type Field struct {
	Name    string
	Type    Type
	Comment string
}

// Simple returns a nullable type of a kind that needs no parameters.
func Simple(k Kind) Type { return Type{Kind: k, Nullable: true} }

// Constructors of nullable types with Flink's defaults.
func NewBoolean() Type  { return Simple(Boolean) }
func NewTinyInt() Type  { return Simple(TinyInt) }
func NewSmallInt() Type { return Simple(SmallInt) }
func NewInt() Type      { return Simple(Int) }
func NewBigInt() Type   { return Simple(BigInt) }
func NewFloat() Type    { return Simple(Float) }
func NewDouble() Type   { return Simple(Double) }
func NewDate() Type     { return Simple(Date) }

// NewString returns STRING, which is VARCHAR(2147483647).
func NewString() Type { return Type{Kind: Varchar, Nullable: true, Length: MaxLength} }

// NewVarchar returns VARCHAR(n).
func NewVarchar(n int) Type { return Type{Kind: Varchar, Nullable: true, Length: n} }

// NewChar returns CHAR(n).
func NewChar(n int) Type { return Type{Kind: Char, Nullable: true, Length: n} }

// NewBytes returns BYTES, which is VARBINARY(2147483647).
func NewBytes() Type { return Type{Kind: Varbinary, Nullable: true, Length: MaxLength} }

// NewBinary returns BINARY(n).
func NewBinary(n int) Type { return Type{Kind: Binary, Nullable: true, Length: n} }

// NewDecimal returns DECIMAL(p, s); it does not check the bounds.
func NewDecimal(p, s int) Type { return Type{Kind: Decimal, Nullable: true, Precision: p, Scale: s} }

// NewTime returns TIME(p).
func NewTime(p int) Type { return Type{Kind: Time, Nullable: true, Precision: p} }

// NewTimestamp returns TIMESTAMP(p).
func NewTimestamp(p int) Type { return Type{Kind: Timestamp, Nullable: true, Precision: p} }

// NewTimestampLTZ returns TIMESTAMP_LTZ(p).
func NewTimestampLTZ(p int) Type { return Type{Kind: TimestampLTZ, Nullable: true, Precision: p} }

// NewArray returns ARRAY<elem>.
func NewArray(elem Type) Type { return Type{Kind: Array, Nullable: true, Elem: &elem} }

// NewMap returns MAP<key, value>; the key is made NOT NULL.
func NewMap(key, value Type) Type {
	key.Nullable = false
	return Type{Kind: Map, Nullable: true, Key: &key, Elem: &value}
}

// NewRow returns ROW<fields...>.
func NewRow(fields ...Field) Type { return Type{Kind: Row, Nullable: true, Fields: fields} }

// NotNull returns the type with NOT NULL.
func (t Type) NotNull() Type { t.Nullable = false; return t }

// WithNullable returns the type with the given nullability.
func (t Type) WithNullable(nullable bool) Type { t.Nullable = nullable; return t }

// Equal reports whether both types are the same, nullability included, field
// comments excluded.
func (t Type) Equal(o Type) bool {
	return t.Nullable == o.Nullable && t.EqualIgnoringNull(o)
}

// EqualIgnoringNull is Equal without the outermost nullability.
func (t Type) EqualIgnoringNull(o Type) bool {
	if t.Kind != o.Kind || t.Precision != o.Precision || t.Scale != o.Scale || t.Length != o.Length ||
		len(t.Fields) != len(o.Fields) {
		return false
	}
	switch t.Kind {
	case Array:
		return t.Elem.Equal(*o.Elem)
	case Map:
		return t.Key.Equal(*o.Key) && t.Elem.Equal(*o.Elem)
	}
	for i := range t.Fields {
		if t.Fields[i].Name != o.Fields[i].Name || !t.Fields[i].Type.Equal(o.Fields[i].Type) {
			return false
		}
	}
	return true
}

// IsInteger reports TINYINT, SMALLINT, INT or BIGINT.
func (t Type) IsInteger() bool { return t.Kind >= TinyInt && t.Kind <= BigInt }

// IsNumeric reports an integer, FLOAT, DOUBLE or DECIMAL.
func (t Type) IsNumeric() bool { return t.Kind >= TinyInt && t.Kind <= Decimal }

// IsString reports CHAR, VARCHAR or STRING.
func (t Type) IsString() bool { return t.Kind == Char || t.Kind == Varchar }

// IsBinary reports BINARY, VARBINARY or BYTES.
func (t Type) IsBinary() bool { return t.Kind == Binary || t.Kind == Varbinary }

// IsTimestamp reports TIMESTAMP or TIMESTAMP_LTZ.
func (t Type) IsTimestamp() bool { return t.Kind == Timestamp || t.Kind == TimestampLTZ }

// IsNested reports ARRAY, MAP or ROW.
func (t Type) IsNested() bool { return t.Kind >= Array }

// UnitsPerSecond is the resolution of the stored value of a TIMESTAMP or
// TIMESTAMP_LTZ: 1e6 (microseconds) up to precision 6, else 1e9.
func (t Type) UnitsPerSecond() int64 {
	if t.Precision <= 6 {
		return 1_000_000
	}
	return 1_000_000_000
}

// String is the type as SQL spells it, e.g. "DECIMAL(10, 2) NOT NULL".
func (t Type) String() string {
	s := t.bare()
	if !t.Nullable && t.Kind != Null && t.Kind != Invalid {
		s += " NOT NULL"
	}
	return s
}

var kindNames = [...]string{
	Invalid: "INVALID", Null: "NULL", Boolean: "BOOLEAN", TinyInt: "TINYINT", SmallInt: "SMALLINT",
	Int: "INT", BigInt: "BIGINT", Float: "FLOAT", Double: "DOUBLE", Decimal: "DECIMAL", Char: "CHAR",
	Varchar: "VARCHAR", Binary: "BINARY", Varbinary: "VARBINARY", Date: "DATE", Time: "TIME",
	Timestamp: "TIMESTAMP", TimestampLTZ: "TIMESTAMP_LTZ", IntervalYearMonth: "INTERVAL YEAR TO MONTH",
	IntervalDaySecond: "INTERVAL DAY TO SECOND", Array: "ARRAY", Map: "MAP", Row: "ROW",
}

// String is the SQL keyword of the kind.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

func (t Type) bare() string {
	switch t.Kind {
	case Decimal:
		return fmt.Sprintf("DECIMAL(%d, %d)", t.Precision, t.Scale)
	case Varchar:
		if t.Length == MaxLength {
			return "STRING"
		}
		return fmt.Sprintf("VARCHAR(%d)", t.Length)
	case Varbinary:
		if t.Length == MaxLength {
			return "BYTES"
		}
		return fmt.Sprintf("VARBINARY(%d)", t.Length)
	case Char, Binary:
		return fmt.Sprintf("%s(%d)", t.Kind, t.Length)
	case Time, Timestamp, TimestampLTZ:
		return fmt.Sprintf("%s(%d)", t.Kind, t.Precision)
	case Array:
		return "ARRAY<" + t.Elem.String() + ">"
	case Map:
		return "MAP<" + t.Key.bare() + ", " + t.Elem.String() + ">"
	case Row:
		var b strings.Builder
		b.WriteString("ROW<")
		for i, f := range t.Fields {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(QuoteIdent(f.Name))
			b.WriteByte(' ')
			b.WriteString(f.Type.String())
		}
		b.WriteByte('>')
		return b.String()
	}
	return t.Kind.String()
}

// QuoteIdent writes an identifier in backticks, as SQL does.
func QuoteIdent(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
