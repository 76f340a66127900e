package types

import (
	rt "github.com/millrace/millrace/runtime/types"
)

// Digits of the integer types in decimal: what a DECIMAL needs in front of
// the point to hold any of their values.
var integerDigits = map[rt.Kind]int{rt.TinyInt: 3, rt.SmallInt: 5, rt.Int: 10, rt.BigInt: 19}

// Assignable reports whether a value of type from goes into a column of type
// to without a CAST: the same type, or a wider one that holds every value of
// from, TIMESTAMP and TIMESTAMP_LTZ into each other (by the session zone), and
// exact numbers into FLOAT and DOUBLE. Nullability is not looked at: a NULL in
// a NOT NULL column is a matter of the row.
func Assignable(from, to rt.Type) bool {
	if from.Kind == rt.Null {
		return true
	}
	switch {
	case from.IsInteger() && to.IsInteger():
		return from.Kind <= to.Kind
	case from.IsInteger() && to.Kind == rt.Decimal:
		return to.Precision-to.Scale >= integerDigits[from.Kind]
	case from.Kind == rt.Decimal && to.Kind == rt.Decimal:
		return to.Scale >= from.Scale && to.Precision-to.Scale >= from.Precision-from.Scale
	case from.Kind == rt.Decimal && to.IsInteger():
		return false
	case from.IsNumeric() && (to.Kind == rt.Float || to.Kind == rt.Double):
		return from.Kind != rt.Double || to.Kind == rt.Double
	case from.IsString() && to.Kind == rt.Varchar:
		return to.Length >= from.Length
	case from.Kind == rt.Char && to.Kind == rt.Char:
		return to.Length >= from.Length
	case from.IsBinary() && to.Kind == rt.Varbinary:
		return to.Length >= from.Length
	case from.Kind == rt.Binary && to.Kind == rt.Binary:
		return to.Length == from.Length
	case from.IsTimestamp() && to.IsTimestamp():
		return to.Precision >= from.Precision
	case from.Kind == rt.Date && to.IsTimestamp():
		return true
	case from.Kind == rt.Time && to.Kind == rt.Time:
		return to.Precision >= from.Precision
	case from.Kind != to.Kind:
		return false
	}
	return nestedAssignable(from, to)
}

func nestedAssignable(from, to rt.Type) bool {
	switch from.Kind {
	case rt.Array:
		return elementAssignable(*from.Elem, *to.Elem)
	case rt.Map:
		return elementAssignable(*from.Key, *to.Key) && elementAssignable(*from.Elem, *to.Elem)
	case rt.Row:
		if len(from.Fields) != len(to.Fields) {
			return false
		}
		for i := range from.Fields {
			if !elementAssignable(from.Fields[i].Type, to.Fields[i].Type) {
				return false
			}
		}
	}
	return true
}

// elementAssignable is Assignable for a value inside another one, where a
// NULL cannot be dealt with by itself: NOT NULL has to be known.
func elementAssignable(from, to rt.Type) bool {
	return Assignable(from, to) && (to.Nullable || !from.Nullable)
}

// WhyNot says in half a sentence why a value of type from does not go into
// to, for messages: "DECIMAL(21, 4) has more fraction digits".
func WhyNot(from, to rt.Type) string {
	f := from.WithNullable(true).String()
	switch {
	case from.IsNumeric() && to.IsNumeric():
		if from.Kind == rt.Decimal && to.Kind == rt.Decimal && from.Scale > to.Scale {
			return f + " has more fraction digits"
		}
		if from.Kind == rt.Decimal && to.IsInteger() || from.Kind >= rt.Float && to.Kind != from.Kind && to.Kind != rt.Decimal {
			return f + " may have digits that are lost"
		}
		return f + " may be out of range"
	case from.IsString() && to.IsString(), from.IsBinary() && to.IsBinary():
		return f + " may be longer"
	case from.IsTimestamp() && to.IsTimestamp():
		return f + " has more fraction digits"
	}
	return "there is no implicit cast"
}
