package plan

import (
	"sort"
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
)

// JoinKey is a pair of columns, by id, that have to be equal.
type JoinKey struct {
	Left, Right int
	// NullSafe: NULL equals NULL (IS NOT DISTINCT FROM).
	NullSafe bool
}

// Join joins two inputs. Cols are the left columns, then the right ones, those of
// a side that may be padded nullable; of SEMI and ANTI the left ones; of MARK the
// left ones and the mark.
type Join struct {
	Left, Right Node
	Kind        graph.JoinKind
	Keys        []JoinKey
	// Condition is over the columns of both sides; nil: none.
	Condition expr.Expr
	// NullAware: the last key is the operand of IN.
	NullAware bool
	// Windows are the windows of both sides, of a window join; nil: none.
	Windows *[2]GivenWindow
	// Window is theirs.
	Window *Window
	// Interval makes an interval join; nil: none.
	Interval *JoinInterval
	// Temporal makes a temporal join; nil: none.
	Temporal *JoinTemporal
	// Changes: in streaming mode, without a bound in time.
	Changes bool
	// OneRow: of a scalar sub-query that gives at most one row for each left one.
	OneRow bool
	// TTL is how long, in ms, rows of each side are kept where Changes; 0: for good.
	TTL  [2]int64
	Cols []Column
	Path string
	Span diag.Span
}

// JoinInterval says how far apart the row times of a pair lie: right minus left is
// from Lower to Upper, in ms.
type JoinInterval struct {
	LeftTime, RightTime int // ids
	Lower, Upper        int64
}

// JoinTemporal are the ids of the row times of a temporal join: of the left rows, and
// from when on a right row is the version of its key.
type JoinTemporal struct {
	LeftTime, RightTime int
	// Deletes: a right row may say that its key has no version from then on.
	Deletes bool
}

// Streams reports a join that needs no end of its inputs.
func (n *Join) Streams() bool { return n.Windows != nil || n.Interval != nil || n.Temporal != nil }

// SetOperation is INTERSECT or EXCEPT.
type SetOperation struct {
	Left, Right Node // of equal column types
	Kind        graph.SetKind
	All         bool
	// Changes: in a stream. TTL is how long, in ms, a row is known then; 0: for good.
	Changes bool
	TTL     int64
	Cols    []Column
	Path    string
	Span    diag.Span
}

// Columns implements Node.
func (n *Join) Columns() []Column { return n.Cols }

// Inputs implements Node.
func (n *Join) Inputs() []Node { return []Node{n.Left, n.Right} }

// With implements Node. The columns follow the inputs'.
func (n *Join) With(in ...Node) Node {
	c := *n
	c.Left, c.Right = in[0], in[1]
	c.Cols = n.columnsOver(in[0], in[1])
	return &c
}

// columnsOver are the columns over other inputs; a mark stays.
func (n *Join) columnsOver(left, right Node) []Column {
	mark := n.Cols
	if len(mark) > 0 {
		mark = mark[len(mark)-1:]
	}
	cols := joinColumns(n.Kind, n.Streams(), left.Columns(), right.Columns(), mark)
	if n.Temporal != nil {
		// A version's time may lie any time behind its left row's.
		for i := len(left.Columns()); i < len(cols); i++ {
			cols[i].RowTime, cols[i].Window = false, nil
		}
	}
	return cols
}

func joinColumns(kind graph.JoinKind, streams bool, left, right, mark []Column) []Column {
	var out []Column
	add := func(cols []Column, padded bool) {
		for _, c := range cols {
			if padded {
				c.Type = c.Type.WithNullable(true)
			}
			// A regular join has no order in time: its rows come when their
			// partners do.
			if padded || !streams {
				c.forgetTime()
				c.Window = nil
			}
			out = append(out, c)
		}
	}
	add(left, kind == graph.RightJoin || kind == graph.FullJoin)
	switch kind {
	case graph.SemiJoin, graph.AntiJoin:
	case graph.MarkJoin:
		out = append(out, mark...)
	default:
		add(right, kind != graph.InnerJoin && kind != graph.RightJoin)
	}
	return out
}

// StatePath identifies the join's state.
func (n *Join) StatePath() string { return n.Path }

// statePath is the path of the join's clause, its kind and its keys.
func (n *Join) statePath(path string) string {
	var keys []string
	for _, k := range n.Keys {
		l, _ := ColumnByID(n.Left.Columns(), k.Left)
		r, _ := ColumnByID(n.Right.Columns(), k.Right)
		if l != nil && r != nil {
			keys = append(keys, keyText(n.Left, l)+"="+keyText(n.Right, r))
		}
	}
	sort.Strings(keys)
	return path + "[" + n.Kind.String() + "; " + strings.Join(keys, ", ") + "]"
}

// Columns implements Node.
func (n *SetOperation) Columns() []Column { return n.Cols }

// Inputs implements Node.
func (n *SetOperation) Inputs() []Node { return []Node{n.Left, n.Right} }

// With implements Node.
func (n *SetOperation) With(in ...Node) Node { c := *n; c.Left, c.Right = in[0], in[1]; return &c }

// String is the operation as SQL spells it.
func (n *SetOperation) String() string {
	s := "INTERSECT"
	if n.Kind == graph.Except {
		s = "EXCEPT"
	}
	if n.All {
		s += " ALL"
	}
	return s
}

// Exprs are the expressions of a node, over its inputs' columns.
func Exprs(n Node) []expr.Expr {
	switch n := n.(type) {
	case *Scan:
		if n.Watermark != nil {
			return []expr.Expr{n.Watermark}
		}
	case *Project:
		return n.Exprs
	case *Filter:
		return []expr.Expr{n.Predicate}
	case *Unnest:
		if n.Condition != nil {
			return []expr.Expr{n.Value, n.Condition}
		}
		return []expr.Expr{n.Value}
	case *Values:
		var out []expr.Expr
		for _, r := range n.Rows {
			out = append(out, r...)
		}
		return out
	case *Aggregate:
		var out []expr.Expr
		for _, a := range n.Aggs {
			out = append(out, a.Args...)
			if a.Filter != nil {
				out = append(out, a.Filter)
			}
		}
		return out
	case *Lookup:
		var out []expr.Expr
		for _, k := range n.Keys {
			out = append(out, k.Value)
		}
		if n.Condition != nil {
			out = append(out, n.Condition)
		}
		return out
	case *Join:
		if n.Condition != nil {
			return []expr.Expr{n.Condition}
		}
	}
	return nil
}

// Conjuncts are the operands of a chain of AND.
func Conjuncts(e expr.Expr) []expr.Expr {
	if l, ok := e.(*expr.Logic); ok && l.Op == expr.And {
		var out []expr.Expr
		for _, a := range l.Args {
			out = append(out, Conjuncts(a)...)
		}
		return out
	}
	if e == nil {
		return nil
	}
	return []expr.Expr{e}
}

// conjunction is the AND of conditions, nil for none.
func conjunction(es []expr.Expr) expr.Expr {
	switch len(es) {
	case 0:
		return nil
	case 1:
		return es[0]
	}
	return expr.NewAnd(es...)
}

// columnSet has the ids of columns.
func columnSet(cols []Column) map[int]bool {
	out := make(map[int]bool, len(cols))
	for _, c := range cols {
		out[c.ID] = true
	}
	return out
}

// within reports an expression whose columns are all of a set; at least one.
func within(e expr.Expr, set map[int]bool) bool {
	ids := expr.Columns(e)
	for _, id := range ids {
		if !set[id] {
			return false
		}
	}
	return len(ids) > 0
}

// equality gives the operands of l = r, or of l IS NOT DISTINCT FROM r, of types
// that can be keys.
func equality(e expr.Expr) (l, r expr.Expr, nullSafe, ok bool) {
	c, is := e.(*expr.Call)
	if !is || len(c.Args) != 2 {
		return nil, nil, false, false
	}
	switch c.Fn.Name {
	case "=":
	case "IS NOT DISTINCT FROM":
		nullSafe = true
	default:
		return nil, nil, false, false
	}
	lt, rt1 := c.Args[0].Type(), c.Args[1].Type()
	if !lt.EqualIgnoringNull(rt1) || lt.IsNested() || lt.Kind == rt.Null {
		return nil, nil, false, false
	}
	return c.Args[0], c.Args[1], nullSafe, true
}

// StatePath identifies the state.
func (n *SetOperation) StatePath() string { return n.Path }

func describeSet(n *SetOperation) []string {
	d := []string{n.String(), "columns=[" + columnNames(n.Cols) + "]"}
	if n.Changes {
		d = withTTL(append(d, "changes"), n.TTL)
	}
	return append(d, "state="+n.StatePath())
}
