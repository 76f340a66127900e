package graph

import "testing"

// TestSpills: what EXPLAIN says of state beyond its memory.
func TestSpills(t *testing.T) {
	for _, c := range []struct {
		op   Op
		want bool
	}{
		{&GroupAggregate{}, true}, {&GroupAggregate{Updates: true, Retracts: true}, true},
		{&WindowAggregate{}, true}, {&WindowAggregate{Window: Window{Kind: Session}}, true}, {&WindowAggregate{Retracts: true}, false},
		{&Sort{}, true}, {&Rank{}, true}, {&Rank{Changes: true}, true}, {&FirstRow{}, true}, {&Normalize{}, true},
		{&Over{}, false}, {&Over{Keys: []int{0}}, true}, {&SessionAssign{}, true}, {&SetOperation{}, true}, {&Join{Interval: &JoinInterval{}}, false}, {&Join{Temporal: &JoinTemporal{}, Keys: []JoinKey{{}}}, true}, {&WideMerge{}, true}, {&Limit{}, false}, {&Filter{}, false},
	} {
		if got := Spills(c.op); got != c.want {
			t.Errorf("%T %+v: %t", c.op, c.op, got)
		}
	}
}
