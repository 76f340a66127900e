package syntax

// TypeKind is the root of a data type as written; synonyms are folded (DEC is TypeDecimal, INTEGER is
// TypeInt, DOUBLE PRECISION is TypeDouble, TIMESTAMP_LTZ and TIMESTAMP WITH LOCAL TIME ZONE are
// TypeTimestampLTZ). STRING and BYTES stay apart from VARCHAR and VARBINARY.
type TypeKind uint8

// The kinds.
const (
	TypeBoolean TypeKind = iota
	TypeTinyInt
	TypeSmallInt
	TypeInt
	TypeBigInt
	TypeFloat
	TypeDouble
	TypeDecimal
	TypeChar
	TypeVarChar
	TypeString
	TypeBinary
	TypeVarBinary
	TypeBytes
	TypeDate
	TypeTime
	TypeTimestamp
	TypeTimestampLTZ
	TypeInterval
	TypeArray
	TypeMultiset
	TypeMap
	TypeRow
	TypeNull
)

// DataType is a type as written. Ranges (precision at most 38 and the like) are checked by the binder.
type DataType struct {
	Loc
	Kind TypeKind

	// Precision is the number in parentheses: length of CHAR and BINARY, precision of DECIMAL and times;
	// NoPrecision if absent. Scale is the second number of DECIMAL.
	Precision int
	Scale     int

	Elem     *DataType          // of ARRAY and MULTISET; value type of MAP
	Key      *DataType          // of MAP
	Fields   []*FieldDef        // of ROW
	Interval *IntervalQualifier // of INTERVAL

	NotNull bool // NOT NULL was written
	Null    bool // NULL was written, which is the default
}

// FieldDef is a field of ROW: name type ['comment'].
type FieldDef struct {
	Loc
	Name    *Ident
	Type    *DataType
	Comment *StringLit
}
