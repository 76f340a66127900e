package types

import (
	"strconv"

	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// Defaults of Flink for types written without parameters.
const (
	defaultDecimalPrecision   = 10
	defaultTimestampPrecision = 6
)

var plainKinds = map[syntax.TypeKind]rt.Kind{
	syntax.TypeBoolean:  rt.Boolean,
	syntax.TypeTinyInt:  rt.TinyInt,
	syntax.TypeSmallInt: rt.SmallInt,
	syntax.TypeInt:      rt.Int,
	syntax.TypeBigInt:   rt.BigInt,
	syntax.TypeFloat:    rt.Float,
	syntax.TypeDouble:   rt.Double,
	syntax.TypeDate:     rt.Date,
}

// FromAST is the logical type of a type as written. Faults are added to diags
// and ok is false; the type is then one that avoids further messages (with
// parameters cut to what is allowed).
func FromAST(d *syntax.DataType, diags *diag.List) (t rt.Type, ok bool) {
	before := len(*diags)
	t = fromAST(d, diags)
	t.Nullable = !d.NotNull
	return t, len(*diags) == before
}

func fromAST(d *syntax.DataType, diags *diag.List) rt.Type {
	if k, ok := plainKinds[d.Kind]; ok {
		return rt.Simple(k)
	}
	switch d.Kind {
	case syntax.TypeDecimal:
		return decimalFromAST(d, diags)
	case syntax.TypeString:
		return rt.NewString()
	case syntax.TypeBytes:
		return rt.NewBytes()
	case syntax.TypeVarChar:
		return rt.NewVarchar(param(d, diags, rt.MaxLength, 1, rt.MaxLength))
	case syntax.TypeVarBinary:
		return rt.Type{Kind: rt.Varbinary, Nullable: true, Length: param(d, diags, 1, 1, rt.MaxLength)}
	case syntax.TypeChar:
		return rt.NewChar(param(d, diags, 1, 1, rt.MaxLength))
	case syntax.TypeBinary:
		return rt.NewBinary(param(d, diags, 1, 1, rt.MaxLength))
	case syntax.TypeTime:
		return rt.NewTime(param(d, diags, 0, 0, 3))
	case syntax.TypeTimestamp:
		return rt.NewTimestamp(param(d, diags, defaultTimestampPrecision, 0, 9))
	case syntax.TypeTimestampLTZ:
		return rt.NewTimestampLTZ(param(d, diags, defaultTimestampPrecision, 0, 9))
	case syntax.TypeInterval:
		if d.Interval != nil && d.Interval.From <= syntax.UnitMonth {
			return rt.Simple(rt.IntervalYearMonth)
		}
		return rt.Simple(rt.IntervalDaySecond)
	case syntax.TypeArray:
		elem, _ := FromAST(d.Elem, diags)
		return rt.NewArray(elem)
	case syntax.TypeMap:
		key, _ := FromAST(d.Key, diags)
		val, _ := FromAST(d.Elem, diags)
		return rt.NewMap(key, val)
	case syntax.TypeRow:
		return rowFromAST(d, diags)
	case syntax.TypeMultiset:
		diags.Errorf(diag.CodeNotYet, d.Span(), "MULTISET is not supported yet").
			WithHelp("use ARRAY, or MAP<t, INT> with a count")
		return rt.NewString()
	}
	diags.Errorf(diag.CodeBadType, d.Span(), "NULL is not a type of a column")
	return rt.NewString()
}

func rowFromAST(d *syntax.DataType, diags *diag.List) rt.Type {
	fields := make([]rt.Field, 0, len(d.Fields))
	seen := make(map[string]bool, len(d.Fields))
	for _, f := range d.Fields {
		t, _ := FromAST(f.Type, diags)
		field := rt.Field{Name: f.Name.Name, Type: t}
		if f.Comment != nil {
			field.Comment = f.Comment.Value
		}
		if seen[field.Name] {
			diags.Errorf(diag.CodeDuplicateColumn, f.Name.Span(), "field %q is declared twice in this ROW", field.Name)
			continue
		}
		seen[field.Name] = true
		fields = append(fields, field)
	}
	return rt.NewRow(fields...)
}

// param is the number in parentheses, def where there is none.
func param(d *syntax.DataType, diags *diag.List, def, lo, hi int) int {
	if d.Precision == syntax.NoPrecision {
		return def
	}
	if d.Precision < lo || d.Precision > hi {
		diags.Errorf(diag.CodeBadType, d.Span(), "%d is out of range: this type takes %s to %s",
			d.Precision, strconv.Itoa(lo), strconv.Itoa(hi))
		return min(max(d.Precision, lo), hi)
	}
	return d.Precision
}

func decimalFromAST(d *syntax.DataType, diags *diag.List) rt.Type {
	p := param(d, diags, defaultDecimalPrecision, 1, rt.MaxPrecision)
	s := d.Scale
	if s == syntax.NoPrecision {
		s = 0
	}
	if s < 0 || s > p {
		diags.Errorf(diag.CodeBadType, d.Span(), "scale %d is out of range: DECIMAL(%d, s) takes a scale of 0 to %d", s, p, p)
		s = min(max(s, 0), p)
	}
	return rt.NewDecimal(p, s)
}
