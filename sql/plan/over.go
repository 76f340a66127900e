package plan

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/diag"
)

// OverCall is one function of an Over.
type OverCall struct {
	Func  graph.OverFunc
	Bound fn.BoundAggregate
	// Args are ids of the input's columns, of exactly the aggregate's parameters; of
	// LAG and LEAD the value. Default and Filter are ids, -1: none.
	Args            []int
	Default, Filter int
	// Frame has offsets of RANGE as written: in ms where they are intervals.
	Frame  graph.Frame
	Offset int64
	// RowNumber: it counts the rows of the key from 1.
	RowNumber bool
	// Text is the canonical call.
	Text string
}

// Over adds the results of functions over the ordered rows of a key. Cols are the
// input's columns, then one a call.
type Over struct {
	Input Node
	Keys  []int
	Order []SortKey
	Calls []OverCall
	// Time is the id of the row time column that orders, -1: the input ends, or results
	// change.
	Time int
	// Changes: in a stream, by another column.
	Changes bool
	Cols    []Column
	Path    string
	Span    diag.Span
	// TTL is how long, in ms, what is known of a key is kept in a stream; 0: for good.
	TTL int64
	// Refuse says why a stream cannot have this; "" if it can.
	Refuse string
}

// Rank gives the first N rows of each key, of each window where there is one. Cols
// are the input's columns, then the row's number if Number.
type Rank struct {
	Input  Node
	Keys   []int
	Order  []SortKey
	N      int64
	Number bool
	// Window and Given are set for rows of windows.
	Window *Window
	Given  *GivenWindow
	// First: the first row by row time, which is Order, in a stream.
	First bool
	// Changes: in a stream, without a window or row time.
	Changes bool
	// Latest: of rows that are equal by Order the last one comes first: where the last
	// row by row time is kept, as in Flink.
	Latest bool
	// TTL is how long, in ms, rows are kept where First or Changes; 0: for good.
	TTL  int64
	Cols []Column
	Path string
	Span diag.Span
}

// Columns implements Node.
func (n *Over) Columns() []Column { return n.Cols }

// Columns implements Node.
func (n *Rank) Columns() []Column { return n.Cols }

// Inputs implements Node.
func (n *Over) Inputs() []Node { return []Node{n.Input} }

// Inputs implements Node.
func (n *Rank) Inputs() []Node { return []Node{n.Input} }

// With implements Node.
func (n *Over) With(in ...Node) Node { c := *n; c.Input = in[0]; return &c }

// With implements Node.
func (n *Rank) With(in ...Node) Node { c := *n; c.Input = in[0]; return &c }

// StatePath identifies the state of an Over by its path, keys and order.
func (n *Over) StatePath() string { return rankedPath(n.Path, n.Input, n.Keys, n.Order, nil) }

// StatePath identifies the state of a Rank likewise.
func (n *Rank) StatePath() string { return rankedPath(n.Path, n.Input, n.Keys, n.Order, n.Window) }

func rankedPath(path string, in Node, keys []int, order []SortKey, w *Window) string {
	s := path + "[" + strings.Join(keyTexts(in, keys), ", ") + "; " + orderText(in, order)
	if w != nil {
		s += "; " + w.String()
	}
	return s + "]"
}

func keyTexts(in Node, ids []int) []string {
	var out []string
	for _, id := range ids {
		if c, ok := ColumnByID(in.Columns(), id); ok {
			out = append(out, keyText(in, c))
		}
	}
	return out
}

func orderText(in Node, order []SortKey) string {
	var out []string
	for _, k := range order {
		s := nameOf(in, k.ID)
		if c, ok := ColumnByID(in.Columns(), k.ID); ok {
			s = keyText(in, c)
		}
		if k.Desc {
			s += " DESC"
		}
		if k.NullsLast != k.Desc {
			s += map[bool]string{true: " NULLS LAST", false: " NULLS FIRST"}[k.NullsLast]
		}
		out = append(out, s)
	}
	return strings.Join(out, ", ")
}

func describeOver(n *Over) []string {
	var calls []string
	for i := range n.Calls {
		calls = append(calls, n.Calls[i].Text)
	}
	d := []string{"keys=[" + strings.Join(names(n.Input, n.Keys), ", ") + "]", "order=[" + orderText(n.Input, n.Order) + "]",
		"calls=[" + strings.Join(calls, ", ") + "]"}
	if n.Changes {
		d = append(d, "changes")
	}
	if n.Time >= 0 || n.Changes {
		d = withTTL(d, n.TTL)
	}
	return append(d, "state="+n.StatePath())
}

// withTTL says how long state is kept, if not for good.
func withTTL(d []string, ttl int64) []string {
	if ttl > 0 {
		d = append(d, "ttl="+millis(ttl))
	}
	return d
}

func describeRank(n *Rank) []string {
	d := []string{"keys=[" + strings.Join(names(n.Input, n.Keys), ", ") + "]", "order=[" + orderText(n.Input, n.Order) + "]", fmt.Sprintf("first=%d", n.N)}
	if n.Window != nil {
		d = append(d, "window="+n.Window.String())
	}
	if n.First {
		d = append(d, "by row time")
	}
	if n.Changes {
		d = append(d, "changes")
	}
	if n.First || n.Changes {
		d = withTTL(d, n.TTL)
	}
	return append(d, "state="+n.StatePath())
}

func names(n Node, ids []int) []string {
	var out []string
	for _, id := range ids {
		out = append(out, nameOf(n, id))
	}
	return out
}

// frameText is a frame as SQL writes it.
func frameText(f graph.Frame) string {
	unit := "RANGE"
	if f.Rows {
		unit = "ROWS"
	}
	bound := func(b graph.FrameBound) string {
		switch b.Kind {
		case graph.UnboundedPreceding:
			return "UNBOUNDED PRECEDING"
		case graph.Preceding:
			return fmt.Sprintf("%d PRECEDING", b.Offset)
		case graph.CurrentRow:
			return "CURRENT ROW"
		case graph.Following:
			return fmt.Sprintf("%d FOLLOWING", b.Offset)
		}
		return "UNBOUNDED FOLLOWING"
	}
	return unit + " BETWEEN " + bound(f.Start) + " AND " + bound(f.End)
}
