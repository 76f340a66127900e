package plan

import (
	"math"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	rt "github.com/millrace/millrace/runtime/types"
)

// findWindows makes a window join of one whose keys are the starts and the ends of
// equal windows.
func (n *Join) findWindows() {
	n.Windows, n.Window = nil, nil
	w := [2]GivenWindow{{-1, -1}, {-1, -1}}
	var left, right *Window
	for _, k := range n.Keys {
		l, _ := ColumnByID(n.Left.Columns(), k.Left)
		r, _ := ColumnByID(n.Right.Columns(), k.Right)
		if l == nil || r == nil || l.Window == nil || r.Window == nil || l.Window.Role != r.Window.Role || k.NullSafe {
			continue
		}
		switch l.Window.Role {
		case WindowStart:
			w[0].Start, w[1].Start = k.Left, k.Right
		case WindowEnd:
			w[0].End, w[1].End = k.Left, k.Right
		default:
			continue
		}
		if left != nil && (left != l.Window.Window || right != r.Window.Window) {
			return // a start and an end of different windows
		}
		left, right = l.Window.Window, r.Window.Window
	}
	if w[0].Start < 0 || w[0].End < 0 || *left != *right || !left.RowTime {
		return
	}
	n.Windows, n.Window = &w, left
}

// findInterval makes an interval join of one whose condition bounds the distance
// of two row times on both sides.
func (n *Join) findInterval() {
	n.Interval = nil
	if n.Windows != nil || n.Kind > graph.FullJoin {
		return
	}
	t := &JoinInterval{LeftTime: -1, RightTime: -1, Lower: math.MinInt64, Upper: math.MaxInt64}
	for _, k := range n.Keys {
		l, _ := ColumnByID(n.Left.Columns(), k.Left)
		r, _ := ColumnByID(n.Right.Columns(), k.Right)
		if l != nil && r != nil && l.RowTime && r.RowTime && t.take(k.Left, k.Right) {
			t.Lower, t.Upper = max(t.Lower, 0), min(t.Upper, 0)
		}
	}
	for _, c := range Conjuncts(n.Condition) {
		t.bound(c, n)
	}
	if t.LeftTime >= 0 && t.Lower != math.MinInt64 && t.Upper != math.MaxInt64 {
		t.Lower = min(t.Lower, t.Upper) // an empty interval keeps nothing long
		n.Interval = t
	}
}

// take settles the pair of row times; another one bounds nothing.
func (t *JoinInterval) take(left, right int) bool {
	if t.LeftTime < 0 {
		t.LeftTime, t.RightTime = left, right
	}
	return t.LeftTime == left && t.RightTime == right
}

// bound reads l + a <= r + b off a condition, in all its forms.
func (t *JoinInterval) bound(e expr.Expr, n *Join) {
	c, ok := e.(*expr.Call)
	if !ok || len(c.Args) != 2 {
		return
	}
	less := c.Fn.Name == "<" || c.Fn.Name == "<="
	if !less && c.Fn.Name != ">" && c.Fn.Name != ">=" {
		return
	}
	x, a, okX := shifted(c.Args[0])
	y, b, okY := shifted(c.Args[1])
	if !okX || !okY {
		return
	}
	if l, found := ColumnByID(n.Left.Columns(), x); !found {
		x, y, a, b, less = y, x, b, a, !less
	} else if !l.RowTime {
		return
	}
	l, _ := ColumnByID(n.Left.Columns(), x)
	r, _ := ColumnByID(n.Right.Columns(), y)
	if l == nil || r == nil || !l.RowTime || !r.RowTime || !t.take(x, y) {
		return
	}
	// l + a <= r + b means r - l >= a - b. Fractions of ms are rounded outwards:
	// the condition itself is evaluated for every pair.
	if less {
		t.Lower = max(t.Lower, a-b-1)
	} else {
		t.Upper = min(t.Upper, a-b+1)
	}
}

// shifted reads a column plus or minus a constant off an expression, in ms.
func shifted(e expr.Expr) (id int, ms int64, ok bool) {
	switch e := e.(type) {
	case *expr.Column:
		return e.Index, 0, e.T.IsTimestamp()
	case *expr.Cast:
		if id, ms, ok = shifted(e.Arg); ok && e.To.Kind == e.Arg.Type().Kind {
			return id, ms, true
		}
	case *expr.Call:
		if len(e.Args) != 2 || e.Fn.Name != "+" && e.Fn.Name != "-" {
			return 0, 0, false
		}
		by, isLit := expr.FoldAll(e.Args[1]).(*expr.Literal)
		if !isLit || by.Type().Kind != rt.IntervalDaySecond || by.Value.IsNull(0) {
			return 0, 0, false
		}
		if id, ms, ok = shifted(e.Args[0]); !ok {
			return 0, 0, false
		}
		if e.Fn.Name == "-" {
			return id, ms - by.Value.I64[0], true
		}
		return id, ms + by.Value.I64[0], true
	}
	return 0, 0, false
}
