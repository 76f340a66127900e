package plan

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// groupWindow is GROUP BY TUMBLE(ts, size), the older spelling of a window: its
// columns are named by functions, TUMBLE_START(ts, size) and the like.
type groupWindow struct {
	name  string
	args  string // as written
	table *WindowTable
}

// groupWindows are the lengths that follow the time column.
var groupWindows = map[string][]string{"TUMBLE": {"SIZE"}, "HOP": {"SLIDE", "SIZE"}, "SESSION": {"GAP"}}

// groupWindowRoles are the ends of the auxiliary functions' names.
var groupWindowRoles = map[string]WindowRole{"START": WindowStart, "END": WindowEnd, "ROWTIME": WindowTime}

// bindWindowKey binds a window as a key of GROUP BY; is says whether e is one.
func (g *grouping) bindWindowKey(e syntax.Expr) (is, ok bool) {
	c, call := e.(*syntax.Call)
	if !call {
		return false, false
	}
	name := strings.ToUpper(c.Name.String())
	lengths, known := groupWindows[name]
	if !known {
		return false, false
	}
	b := g.sel.b
	switch {
	case g.legacy != nil:
		b.errorf(diag.CodeBadWindow, e.Span(), "GROUP BY has two windows")
		return true, false
	case len(c.Args) != 1+len(lengths):
		b.errorf(diag.CodeBadArgument, e.Span(), "%s in GROUP BY takes the time column, then %s", name, strings.Join(lengths, " and "))
		return true, false
	case g.input == nil:
		return true, false
	}
	x := b.scalar(c.Args[0], g.sel.plainScope, "GROUP BY")
	w := &Window{Kind: windowFuncs[name].kind}
	last := len(c.Args) - 1
	var fits bool
	if w.Size, fits = b.interval(c.Args[last]); !fits || x == nil {
		return true, false
	}
	if name == "HOP" {
		if w.Step, fits = b.interval(c.Args[1]); !fits {
			return true, false
		}
	}
	if !b.checkWindow(w, c.Args[1].Span(), c.Args[last].Span()) {
		return true, false
	}
	ref, isCol := x.(*expr.Column)
	if !isCol {
		b.errorf(diag.CodeRowTime, c.Args[0].Span(), "a window divides a row time column, this is an expression").
			WithHelp("a bare reference to the column keeps row time, an expression such as CAST loses it")
		return true, false
	}
	col, found := ColumnByID(g.input.Columns(), ref.Index)
	if !found || !b.usableAsTime(col, c.Args[0].Span()) {
		return true, false
	}
	if !b.timeOf(w, col, c.Args[last].Span()) {
		return true, false
	}
	n := b.windowNode(g.input, w, col.ID)
	n.OwnKeys, n.Span = true, e.Span()
	g.input, g.legacy = n, &groupWindow{name: name, args: argsText(c), table: n}
	for _, col := range n.Cols[len(n.Cols)-3:] {
		k := col.Ref()
		g.keys = append(g.keys, groupKey{e: k, text: Key(k), span: e.Span()})
	}
	return true, true
}

// auxiliaryOf is the window and the bound that a function names.
func auxiliaryOf(c *syntax.Call) (window string, role WindowRole, ok bool) {
	window, end, cut := strings.Cut(strings.ToUpper(c.Name.String()), "_")
	if _, known := groupWindows[window]; !cut || !known {
		return "", 0, false
	}
	role, ok = groupWindowRoles[end]
	return window, role, ok
}

func argsText(c *syntax.Call) string {
	var texts []string
	for _, a := range c.Args {
		texts = append(texts, syntax.Print(a))
	}
	return strings.Join(texts, ", ")
}

// auxiliary binds TUMBLE_START(ts, size) and the like; is says whether c is one.
func (eb *exprBinder) auxiliary(c *syntax.Call) (x expr.Expr, is bool) {
	window, role, is := auxiliaryOf(c)
	if !is {
		return nil, false
	}
	var g *groupWindow
	if eb.group != nil {
		if eb.group.noWindow {
			return nil, true
		}
		g = eb.group.legacy
	}
	args := argsText(c)
	if g == nil || g.name != window || g.args != args {
		d := eb.b.errorf(diag.CodeBadWindow, c.Span(), "%s names a bound of %s(%s), and GROUP BY has no such window", c.Name, window, args)
		if g != nil {
			d.WithHelp("GROUP BY has %s(%s)", g.name, g.args)
		}
		return nil, true
	}
	n := g.table
	ref := n.Cols[len(n.Cols)-3+int(role)].Ref()
	if eb.spans != nil {
		eb.spans[ref] = c.Span()
	}
	return ref, true
}

// windowFirst puts a window of GROUP BY before the other keys, which are bound over
// its columns.
func windowFirst(elements []syntax.GroupElement) []syntax.GroupElement {
	out := slices.Clone(elements)
	slices.SortStableFunc(out, func(a, b syntax.GroupElement) int { return windowRank(a) - windowRank(b) })
	return out
}

func windowRank(el syntax.GroupElement) int {
	if x, ok := el.(*syntax.GroupExpr); ok {
		if c, ok := x.Expr.(*syntax.Call); ok && groupWindows[strings.ToUpper(c.Name.String())] != nil {
			return 0
		}
	}
	return 1
}
