package batch

import (
	"github.com/millrace/millrace/runtime/types"
)

// Enc is how the values of a Vec are stored.
type Enc uint8

const (
	// Flat: row i is value i.
	Flat Enc = iota
	// Const: every row is value 0 (also its NULL and its error).
	Const
	// Dict: row i is value Codes[i] of Dict; NULL rows have Valid cleared (or
	// refer to a NULL dictionary value), errors are those of the rows or of
	// the dictionary value.
	Dict
)

// Vec is a column. Exactly one group of value slices is in use, by
// Type.Physical():
//
//	PhysBool        Bools              PhysBytes  Offsets (Len+1), Data
//	PhysInt8..64    I8 I16 I32 I64     PhysList   Offsets (Len+1), Children[0]
//	PhysFloat32/64  F32 F64            PhysMap    Offsets (Len+1), Children[0] keys, [1] values
//	PhysDecimal128  D128               PhysRow    Children, one a field, each Len long
//
// With Enc Const the slices hold one value though Len may be larger; with
// Dict they are empty and Codes and Dict are in use.
//
// The value at a NULL or error row is unspecified but readable (offsets are
// always monotone). A row with an error is also NULL in Valid, so that code
// which looks at validity alone never reads a value that is not there.
type Vec struct {
	Type types.Type
	Enc  Enc
	Len  int

	// Valid has a set bit for each row that is not NULL; nil: none is NULL.
	Valid Bitmap

	Bools   Bitmap
	I8      []int8
	I16     []int16
	I32     []int32
	I64     []int64
	F32     []float32
	F64     []float64
	D128    []types.Decimal128
	Offsets []int32
	Data    []byte

	Children []*Vec

	Codes []int32
	Dict  *Vec

	// Errs are the rows whose value is an error, ascending by Row, at most
	// one a row; nearly always empty.
	Errs []ValueError

	// spare is memory for Valid that outlives Reset.
	spare Bitmap
}

// ValueError says why the value of a row could not be computed.
type ValueError struct {
	// Row is the row in the Vec (for Const: 0 stands for every row).
	Row int32
	// Code is the stable reason: "type_mismatch", "overflow", ... It is
	// what dead letters are counted by.
	Code Code
	// Where is the column or expression text that failed, e.g. "actor.id" or
	// "CAST(id AS BIGINT)".
	Where string
	// Message is a sentence with the offending value, e.g. `"abc" is not
	// BIGINT`. Values in it are cut at 64 bytes.
	Message string
}

// Code is the stable name of a reason for which a value or a record failed.
type Code string

// Codes that decoders, kernels and the lane use. Further ones may be declared
// by the package that needs them; names are stable, lower snake case.
const (
	CodeMalformed      Code = "malformed_record" // not one JSON object, array of objects, ...
	CodeTypeMismatch   Code = "type_mismatch"    // decoded value does not fit the declared type
	CodeMissingField   Code = "missing_field"    // with fail-on-missing-field
	CodeNullInNotNull  Code = "null_in_not_null" // NULL where the column is NOT NULL
	CodeCast           Code = "cast"             // CAST of a value that has no image
	CodeOverflow       Code = "overflow"         // arithmetic or decimal result out of range
	CodeDivisionByZero Code = "division_by_zero" // integer or decimal x / 0
	CodeArgument       Code = "invalid_argument" // a function refuses an argument value
	CodeUserFunction   Code = "user_function"    // a program's own function gave an error or panicked
	CodeTooLarge       Code = "value_too_large"  // beyond a documented size limit
	CodeNullEventTime  Code = "null_event_time"  // NULL row time in a window
	CodeNullKey        Code = "key_null"         // NULL key of a wide table
	CodeLate           Code = "late"             // late for its window
	CodeLateIdle       Code = "idle"             // late because its partition had been declared idle
	CodeSinkRefused    Code = "sink_refused"     // the sink cannot represent the value
	CodeEmpty          Code = "empty"            // empty record: filtered, one row read
	CodeTimestampRange Code = "timestamp_range"  // outside what the type can hold
)

// IsNull reports whether row i is NULL or an error.
func (v *Vec) IsNull(i int) bool {
	switch v.Enc {
	case Const:
		i = 0
	case Dict:
		if v.Valid != nil && !v.Valid.Get(i) {
			return true
		}
		return v.Dict.IsNull(int(v.Codes[i]))
	}
	return v.Valid != nil && !v.Valid.Get(i)
}

// Index is the position in the value slices of row i of a Flat or Const Vec.
func (v *Vec) Index(i int) int {
	if v.Enc == Const {
		return 0
	}
	return i
}

// Bytes is the value of row i of a PhysBytes Vec of any encoding. The slice
// aliases the Vec.
func (v *Vec) Bytes(i int) []byte {
	switch v.Enc {
	case Const:
		i = 0
	case Dict:
		return v.Dict.Bytes(int(v.Codes[i]))
	}
	return v.Data[v.Offsets[i]:v.Offsets[i+1]]
}

// Err returns the error of row i, or nil.
func (v *Vec) Err(i int) *ValueError {
	if v.Enc == Const {
		i = 0
	}
	if len(v.Errs) > 0 {
		lo, hi := 0, len(v.Errs)
		for lo < hi {
			m := int(uint(lo+hi) >> 1)
			if int(v.Errs[m].Row) < i {
				lo = m + 1
			} else {
				hi = m
			}
		}
		if lo < len(v.Errs) && int(v.Errs[lo].Row) == i {
			return &v.Errs[lo]
		}
	}
	if v.Enc == Dict && len(v.Dict.Errs) > 0 && (v.Valid == nil || v.Valid.Get(i)) {
		return v.Dict.Err(int(v.Codes[i]))
	}
	return nil
}

// HasErrs reports whether any row, or any dictionary value, is an error.
func (v *Vec) HasErrs() bool {
	return len(v.Errs) > 0 || v.Enc == Dict && len(v.Dict.Errs) > 0
}

// Reset makes v an empty Flat Vec of type t with room for n rows, re-using
// its memory. Value slices have length n for fixed-width layouts (contents
// unspecified, Bools cleared); Offsets has length 1 and Data length 0 for
// variable ones, to be appended to; ROW children are reset to n rows, list
// and map children to 0. Valid is nil and Errs empty.
func (v *Vec) Reset(t types.Type, n int) {
	v.Type, v.Enc, v.Len = t, Flat, n
	v.Valid, v.Errs, v.Codes, v.Dict = nil, v.Errs[:0], nil, nil
	switch t.Physical() {
	case types.PhysBool:
		v.Bools = v.Bools.Resize(n, false)
	case types.PhysInt8:
		v.I8 = resize(v.I8, n)
	case types.PhysInt16:
		v.I16 = resize(v.I16, n)
	case types.PhysInt32:
		v.I32 = resize(v.I32, n)
	case types.PhysInt64:
		v.I64 = resize(v.I64, n)
	case types.PhysFloat32:
		v.F32 = resize(v.F32, n)
	case types.PhysFloat64:
		v.F64 = resize(v.F64, n)
	case types.PhysDecimal128:
		v.D128 = resize(v.D128, n)
	case types.PhysBytes:
		v.resetOffsets(n)
		v.Data = v.Data[:0]
	case types.PhysList:
		v.resetOffsets(n)
		v.children(1)
		v.Children[0].Reset(*t.Elem, 0)
	case types.PhysMap:
		v.resetOffsets(n)
		v.children(2)
		v.Children[0].Reset(*t.Key, 0)
		v.Children[1].Reset(*t.Elem, 0)
	case types.PhysRow:
		v.children(len(t.Fields))
		for i := range t.Fields {
			v.Children[i].Reset(t.Fields[i].Type, n)
		}
	}
}

func (v *Vec) resetOffsets(n int) {
	if cap(v.Offsets) < n+1 {
		v.Offsets = make([]int32, 0, n+1)
	}
	v.Offsets = append(v.Offsets[:0], 0)
}

func (v *Vec) children(n int) {
	for len(v.Children) < n {
		v.Children = append(v.Children, new(Vec))
	}
	v.Children = v.Children[:n]
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// SetNull makes row i NULL, materialising Valid (for rows 0..Len) on first use.
func (v *Vec) SetNull(i int) {
	if v.Valid == nil {
		v.AllValid(max(v.Len, i+1))
	}
	v.Valid.Clear(i)
}

// AllValid makes Valid a bitmap of n set bits, in memory that v keeps.
func (v *Vec) AllValid(n int) {
	v.spare = v.spare.Resize(n, true)
	v.Valid = v.spare
}

// SetErr records an error for row i and makes it NULL. Rows must come in
// ascending order; a second error of the same row is dropped.
func (v *Vec) SetErr(i int, code Code, where, message string) {
	v.SetNull(i)
	if n := len(v.Errs); n > 0 && v.Errs[n-1].Row == int32(i) {
		return
	}
	v.Errs = append(v.Errs, ValueError{Row: int32(i), Code: code, Where: where, Message: message})
}
