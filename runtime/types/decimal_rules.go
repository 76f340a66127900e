package types

// The result types of DECIMAL arithmetic are Flink's (LogicalTypeMerging):
// where more than 38 digits would be needed, integer digits are kept and the
// scale shrinks, but not below min(scale, 6). Results are nullable.

func adjustDecimal(p, s int) Type {
	if p <= MaxPrecision {
		return NewDecimal(p, s)
	}
	return NewDecimal(MaxPrecision, max(MaxPrecision-(p-s), min(s, 6)))
}

// AddDecimal is the type of a + b and a - b.
func AddDecimal(a, b Type) Type {
	s := max(a.Scale, b.Scale)
	return adjustDecimal(max(a.Precision-a.Scale, b.Precision-b.Scale)+s+1, s)
}

// MulDecimal is the type of a * b.
func MulDecimal(a, b Type) Type {
	return adjustDecimal(a.Precision+b.Precision+1, a.Scale+b.Scale)
}

// DivDecimal is the type of a / b.
func DivDecimal(a, b Type) Type {
	s := max(6, a.Scale+b.Precision+1)
	return adjustDecimal(a.Precision-a.Scale+b.Scale+s, s)
}

// ModDecimal is the type of a % b.
func ModDecimal(a, b Type) Type {
	s := max(a.Scale, b.Scale)
	return adjustDecimal(min(a.Precision-a.Scale, b.Precision-b.Scale)+s, s)
}

// RoundDecimal is the type of ROUND(a, n) for a literal n.
func RoundDecimal(a Type, n int) Type {
	switch {
	case n >= a.Scale:
		return NewDecimal(a.Precision, a.Scale)
	case n < 0:
		return NewDecimal(min(MaxPrecision, 1+a.Precision-a.Scale), 0)
	}
	return NewDecimal(1+a.Precision-a.Scale+n, n)
}

// SumDecimal is the type of SUM(a).
func SumDecimal(a Type) Type { return NewDecimal(MaxPrecision, a.Scale) }

// AvgDecimal is the type of AVG(a).
func AvgDecimal(a Type) Type { return NewDecimal(MaxPrecision, max(6, a.Scale)) }

// AsDecimal is the DECIMAL that holds every value of an integer type, or the
// DECIMAL itself; false for other types.
func AsDecimal(t Type) (Type, bool) {
	switch t.Kind {
	case TinyInt:
		return NewDecimal(3, 0).WithNullable(t.Nullable), true
	case SmallInt:
		return NewDecimal(5, 0).WithNullable(t.Nullable), true
	case Int:
		return NewDecimal(10, 0).WithNullable(t.Nullable), true
	case BigInt:
		return NewDecimal(19, 0).WithNullable(t.Nullable), true
	case Decimal:
		return t, true
	}
	return Type{}, false
}

// Common is the type to which values of all the types are widened (UNION,
// CASE, COALESCE, IN, comparison): the least restrictive type by Flink's
// rules; false if there is none. A bare NULL takes any type and makes the
// result nullable; if all are bare NULLs the result is of kind Null.
func Common(ts ...Type) (Type, bool) {
	var out Type
	nullable := false
	for _, t := range ts {
		if t.Kind == Null {
			nullable = true
			continue
		}
		nullable = nullable || t.Nullable
		if out.Kind == Invalid {
			out = t
			continue
		}
		var ok bool
		if out, ok = common2(out, t); !ok {
			return Type{}, false
		}
	}
	if out.Kind == Invalid {
		return Type{Kind: Null, Nullable: true}, len(ts) > 0
	}
	return out.WithNullable(nullable), true
}

func common2(a, b Type) (Type, bool) {
	if a.EqualIgnoringNull(b) {
		return a, true
	}
	switch {
	case a.IsNumeric() && b.IsNumeric():
		return commonNumeric(a, b), true
	case a.IsString() && b.IsString():
		n := max(a.Length, b.Length)
		if a.Kind == Char && b.Kind == Char && a.Length == b.Length {
			return NewChar(n), true
		}
		return NewVarchar(n), true
	case a.IsBinary() && b.IsBinary():
		return Type{Kind: Varbinary, Length: max(a.Length, b.Length)}, true
	case a.IsTimestamp() && b.IsTimestamp():
		p := max(a.Precision, b.Precision)
		if a.Kind == TimestampLTZ || b.Kind == TimestampLTZ {
			return NewTimestampLTZ(p), true
		}
		return NewTimestamp(p), true
	case a.Kind == Date && b.IsTimestamp():
		return b, true
	case b.Kind == Date && a.IsTimestamp():
		return a, true
	case a.Kind == Time && b.Kind == Time:
		return NewTime(max(a.Precision, b.Precision)), true
	case a.Kind != b.Kind:
		return Type{}, false
	}
	return commonNested(a, b)
}

func commonNested(a, b Type) (Type, bool) {
	switch a.Kind {
	case Array:
		e, ok := Common(*a.Elem, *b.Elem)
		return NewArray(e), ok
	case Map:
		k, ok1 := Common(*a.Key, *b.Key)
		e, ok2 := Common(*a.Elem, *b.Elem)
		return NewMap(k, e), ok1 && ok2
	case Row:
		if len(a.Fields) != len(b.Fields) {
			return Type{}, false
		}
		out := Type{Kind: Row, Fields: make([]Field, len(a.Fields))}
		for i := range a.Fields {
			t, ok := Common(a.Fields[i].Type, b.Fields[i].Type)
			if !ok {
				return Type{}, false
			}
			out.Fields[i] = Field{Name: a.Fields[i].Name, Type: t, Comment: a.Fields[i].Comment}
		}
		return out, true
	}
	return Type{}, false
}

func commonNumeric(a, b Type) Type {
	if a.IsInteger() && b.IsInteger() {
		if a.Kind > b.Kind {
			return a
		}
		return b
	}
	approx := func(t Type) bool { return t.Kind == Float || t.Kind == Double }
	single := func(t Type) bool { return t.Kind == Float || t.IsInteger() }
	switch {
	case single(a) && single(b):
		return NewFloat() // as in Flink, although FLOAT holds no more than 24 bits of an integer
	case approx(a) || approx(b):
		return NewDouble()
	}
	x, _ := AsDecimal(a)
	y, _ := AsDecimal(b)
	s := max(x.Scale, y.Scale)
	p := max(x.Precision-x.Scale, y.Precision-y.Scale) + s
	return adjustDecimal(p, s)
}
