package types

import (
	"testing"

	rt "github.com/millrace/millrace/runtime/types"
)

func TestAssignable(t *testing.T) {
	dec := rt.NewDecimal
	row := func(ts ...rt.Type) rt.Type {
		var fs []rt.Field
		for _, x := range ts {
			fs = append(fs, rt.Field{Name: "f", Type: x})
		}
		return rt.NewRow(fs...)
	}
	for _, c := range []struct {
		from, to rt.Type
		want     bool
	}{
		{rt.NewInt(), rt.NewBigInt(), true},
		{rt.NewBigInt(), rt.NewInt(), false},
		{rt.NewInt(), rt.NewInt().NotNull(), true},
		{rt.NewInt(), dec(10, 0), true},
		{rt.NewInt(), dec(10, 2), false},
		{rt.NewBigInt(), dec(38, 19), true},
		{rt.NewBigInt(), rt.NewDouble(), true},
		{dec(10, 2), rt.NewDouble(), true},
		{rt.NewDouble(), rt.NewFloat(), false},
		{rt.NewDouble(), dec(38, 10), false},
		{dec(10, 2), dec(12, 2), true},
		{dec(10, 2), dec(11, 3), true},
		{dec(10, 2), dec(10, 3), false},
		{dec(10, 2), rt.NewBigInt(), false},
		{rt.NewChar(3), rt.NewString(), true},
		{rt.NewString(), rt.NewVarchar(10), false},
		{rt.NewChar(3), rt.NewVarchar(3), true},
		{rt.NewString(), rt.NewBytes(), false},
		{rt.NewInt(), rt.NewString(), false},
		{rt.NewString(), rt.NewInt(), false},
		{rt.NewTimestamp(3), rt.NewTimestampLTZ(6), true},
		{rt.NewTimestampLTZ(3), rt.NewTimestamp(3), true},
		{rt.NewTimestamp(6), rt.NewTimestamp(3), false},
		{rt.NewDate(), rt.NewTimestamp(0), true},
		{rt.NewTimestamp(3), rt.NewDate(), false},
		{rt.NewBoolean(), rt.NewInt(), false},
		{rt.Simple(rt.Null), rt.NewInt(), true},
		{rt.NewArray(rt.NewInt()), rt.NewArray(rt.NewBigInt()), true},
		{rt.NewArray(rt.NewInt()), rt.NewArray(rt.NewBigInt().NotNull()), false},
		{row(rt.NewInt(), rt.NewChar(1)), row(rt.NewBigInt(), rt.NewString()), true},
		{row(rt.NewInt()), row(rt.NewInt(), rt.NewInt()), false},
	} {
		if got := Assignable(c.from, c.to); got != c.want {
			t.Errorf("Assignable(%s, %s) = %v, want %v", c.from, c.to, got, c.want)
		}
	}
}
