package clickhouse

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// vec builds a column from Go values: nil is NULL, numbers for integers, texts for
// strings, decimals, dates and times, []any for lists, fields and pairs of a map.
func vec(t testing.TB, typ types.Type, values ...any) *batch.Vec {
	t.Helper()
	v := &batch.Vec{}
	v.Reset(typ, len(values))
	switch typ.Physical() {
	case types.PhysList:
		var flat []any
		for i, x := range values {
			if x == nil {
				v.SetNull(i)
			} else {
				flat = append(flat, x.([]any)...)
			}
			v.Offsets = append(v.Offsets, int32(len(flat)))
		}
		v.Children[0] = vec(t, *typ.Elem, flat...)
		return v
	case types.PhysMap:
		var keys, elems []any
		for i, x := range values {
			if x == nil {
				v.SetNull(i)
			} else {
				for _, kv := range x.([]any) {
					keys, elems = append(keys, kv.([]any)[0]), append(elems, kv.([]any)[1])
				}
			}
			v.Offsets = append(v.Offsets, int32(len(keys)))
		}
		v.Children[0], v.Children[1] = vec(t, *typ.Key, keys...), vec(t, *typ.Elem, elems...)
		return v
	case types.PhysRow:
		for f := range typ.Fields {
			var field []any
			for _, x := range values {
				if x == nil {
					field = append(field, nil)
				} else {
					field = append(field, x.([]any)[f])
				}
			}
			v.Children[f] = vec(t, typ.Fields[f].Type, field...)
		}
		for i, x := range values {
			if x == nil {
				v.SetNull(i)
			}
		}
		return v
	}
	for i, x := range values {
		if x == nil {
			v.SetNull(i)
			continue
		}
		if err := set(v, i, x); err != nil {
			t.Fatalf("value %v of %s: %v", x, typ, err)
		}
	}
	v.PadOffsets()
	return v
}

func set(v *batch.Vec, i int, x any) error {
	switch x := x.(type) {
	case bool:
		if x {
			v.Bools.Set(i)
		}
	case int:
		v.SetInt64(i, int64(x))
	case int64:
		v.SetInt64(i, x)
	case float64:
		v.SetFloat64(i, x)
	case string:
		switch {
		case v.Type.IsString() || v.Type.IsBinary():
			v.PutString(i, x)
		case v.Type.Kind == types.Decimal:
			d, _, err := types.ParseDecimal(x, v.Type.Precision, v.Type.Scale)
			v.SetDecimal(i, d)
			return err
		case v.Type.Kind == types.Date:
			d, err := types.ParseDate(x)
			v.I32[i] = d
			return err
		case v.Type.Kind == types.Time:
			ms, err := types.ParseTime(x, v.Type.Precision)
			v.I32[i] = ms
			return err
		default:
			c, err := types.ParseTimestamp(x)
			if err != nil {
				return err
			}
			v.I64[i], err = c.Timestamp(v.Type)
			return err
		}
	default:
		return fmt.Errorf("%T", x)
	}
	return nil
}
