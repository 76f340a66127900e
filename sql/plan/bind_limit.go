package plan

import (
	"math"
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/function"
)

// firstRows is ORDER BY with LIMIT and OFFSET in streaming mode: Top-N. It gives nil
// where it does not apply.
func (b *Binder) firstRows(out *Output, limit, offset int64, at diag.Span) *Output {
	projects, n := unprojected(out.Node)
	sort, ok := n.(*Sort)
	if !b.streaming() || !ok || sort.Limit >= 0 || sort.Offset > 0 || limit < 1 || offset > math.MaxInt64-limit {
		return nil
	}
	r := &Rank{Input: sort.Input, Order: sort.Keys, N: offset + limit, Number: offset > 0, Changes: true, TTL: b.StateTTL,
		Cols: inNoOrder(sort.Input.Columns()), Path: b.path("limit"), Span: at}
	n = r
	if r.Number {
		number := Column{ID: b.id(), Name: "row_number", Type: rt.NewBigInt().NotNull()}
		r.Cols = append(r.Cols, number)
		behind, err := function.Call(b.Functions, ">", number.Ref(), expr.Int(number.Type, offset))
		if err != nil {
			panic("BUG: " + err.Error())
		}
		n = keepOrder(&Filter{Input: r, Predicate: behind}, r.Cols[:len(r.Cols)-1])
	}
	for i := len(projects) - 1; i >= 0; i-- {
		p := *projects[i]
		p.Input, p.Cols = n, inNoOrder(p.Cols)
		n = &p
	}
	return &Output{Node: n, Spans: out.Spans, Named: out.Named}
}

// inNoOrder are columns whose rows come in no order in time.
func inNoOrder(cols []Column) []Column {
	out := slices.Clone(cols)
	for i := range out {
		if out[i].RowTime {
			out[i].Changing = RowTimes
		}
		out[i].RowTime, out[i].Window = false, nil
	}
	return out
}
