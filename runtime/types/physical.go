package types

// Physical is the memory layout of a column; see the package comment.
type Physical uint8

// The layouts.
const (
	PhysInvalid Physical = iota
	PhysBool             // bitmap
	PhysInt8
	PhysInt16
	PhysInt32
	PhysInt64
	PhysFloat32
	PhysFloat64
	PhysDecimal128
	PhysBytes // int32 offsets + bytes
	PhysList  // int32 offsets + child
	PhysMap   // int32 offsets + key child + value child
	PhysRow   // one child a field
)

// Physical returns the layout of columns of the type.
func (t Type) Physical() Physical {
	switch t.Kind {
	case Boolean:
		return PhysBool
	case TinyInt:
		return PhysInt8
	case SmallInt:
		return PhysInt16
	case Int, Date, Time, IntervalYearMonth:
		return PhysInt32
	case BigInt, Timestamp, TimestampLTZ, IntervalDaySecond:
		return PhysInt64
	case Float:
		return PhysFloat32
	case Double:
		return PhysFloat64
	case Decimal:
		if t.Precision <= 18 {
			return PhysInt64
		}
		return PhysDecimal128
	case Char, Varchar, Binary, Varbinary:
		return PhysBytes
	case Array:
		return PhysList
	case Map:
		return PhysMap
	case Row:
		return PhysRow
	case Null:
		// A bare NULL is stored as an all-NULL BOOLEAN until it is unified.
		return PhysBool
	}
	return PhysInvalid
}

// Decimal128 is a 128-bit two's complement integer, the unscaled value of a
// DECIMAL with precision above 18. Its memory is that of Arrow's decimal128
// on a little-endian machine.
type Decimal128 struct {
	Lo uint64
	Hi int64
}
