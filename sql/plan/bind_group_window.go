package plan

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/sql/diag"
)

func (g *GivenWindow) start() int {
	if g == nil {
		return -1
	}
	return g.Start
}

func (g *GivenWindow) end() int {
	if g == nil {
		return -1
	}
	return g.End
}

// window finds the window that the keys name: both window_start and
// window_end of it. Either the aggregate divides the time column, or the rows
// carry their windows.
func (g *grouping) window(at diag.Span) (w *Window, timeID int, given *GivenWindow, ok bool) {
	b := g.sel.b
	var start, end *WindowColumn
	var carried GivenWindow
	for _, k := range g.keys {
		r := g.windowRole(k.e)
		switch {
		case r == nil:
		case r.Role == WindowStart:
			start, carried.Start = r, k.e.(*expr.Column).Index
		case r.Role == WindowEnd:
			end, carried.End = r, k.e.(*expr.Column).Index
		}
	}
	switch {
	case start == nil && end == nil:
		return nil, -1, nil, true
	case start == nil || end == nil:
		if !b.streaming() {
			return nil, -1, nil, true
		}
		missing := "window_start"
		if end == nil {
			missing = "window_end"
		}
		b.errorf(diag.CodeBadWindow, at, "a window is grouped by window_start and window_end; %s is missing", missing).
			WithHelp("add %s to GROUP BY; without it this would be an aggregate that never ends", missing)
		return nil, -1, nil, false
	case start.Window != end.Window || start.Time != end.Time:
		b.errorf(diag.CodeBadWindow, at, "window_start and window_end are of different windows")
		return nil, -1, nil, false
	}
	w = start.Window
	in := g.input.Columns()
	if w.Processing && !b.declaring {
		return g.clockWindow(w, start.Time, at)
	}
	if c, found := ColumnByID(in, start.Time); found {
		timeID = c.ID
		if w.Kind == TumbleWindow {
			return w, timeID, nil, true
		}
		if n, is := g.undivided(w); is {
			g.input = n
			return w, timeID, nil, true
		}
		return w, timeID, &carried, true
	}
	for _, c := range in {
		if c.Window != nil && c.Window.Window == w && c.Window.Role == WindowTime {
			if w.Kind == TumbleWindow {
				return w, c.ID, nil, true
			}
			return w, c.ID, &carried, true
		}
	}
	return w, -1, &carried, true
}

// clockWindow is a window of processing time: the aggregate itself says when a row
// comes.
func (g *grouping) clockWindow(w *Window, time int, at diag.Span) (*Window, int, *GivenWindow, bool) {
	if _, found := ColumnByID(g.input.Columns(), time); found {
		if n, is := g.undivided(w); is {
			g.input = n
			return w, time, nil, true
		}
	}
	g.sel.b.notYet(at, "GROUP BY a window of processing time other than straight above it").
		WithHelp("SELECT ... FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(p), ...)) GROUP BY window_start, window_end, with their bounds in the output alone")
	return nil, -1, nil, false
}

// undivided is the input with each row once, for an aggregate that finds the
// windows of a row itself. That cannot be where a window's columns are used for
// anything else than passing them on, and where sessions have other keys than the
// aggregate.
func (g *grouping) undivided(w *Window) (Node, bool) {
	used := map[int]bool{}
	note := func(e expr.Expr) {
		for _, id := range expr.Columns(e) {
			used[id] = true
		}
	}
	var keys []int
	for i := range g.keys {
		k := &g.keys[i]
		if g.windowRole(k.e) != nil {
			continue
		}
		note(k.e)
		keys = append(keys, -1)
		if c, ok := k.e.(*expr.Column); ok {
			keys[len(keys)-1] = c.Index
		}
	}
	for _, c := range g.calls {
		for _, a := range c.call.Args {
			note(a)
		}
		if c.call.Filter != nil {
			note(c.call.Filter)
		}
	}
	slices.Sort(keys)
	if g.sets != nil && w.Kind == SessionWindow && g.legacy == nil {
		return nil, false // sessions are of their own keys, not of each set's
	}
	return undivide(g.input, w, used, keys)
}

func undivide(n Node, w *Window, used map[int]bool, keys []int) (Node, bool) {
	note := func(e expr.Expr) {
		for _, id := range expr.Columns(e) {
			used[id] = true
		}
	}
	switch n := n.(type) {
	case *WindowTable:
		if n.Window != w || n.CheckOnly {
			return nil, false
		}
		for _, c := range n.Cols[len(n.Cols)-3:] {
			if used[c.ID] {
				return nil, false
			}
		}
		if w.Kind == SessionWindow && !n.OwnKeys {
			own := slices.Clone(n.Keys)
			slices.Sort(own)
			if !slices.Equal(slices.Compact(own), slices.Compact(keys)) {
				return nil, false
			}
		}
		c := *n
		c.CheckOnly, c.Keys = true, nil
		return &c, true
	case *Project:
		for i, e := range n.Exprs {
			// A reference passes a column on under its id.
			if ref, ok := e.(*expr.Column); !ok || ref.Index != n.Cols[i].ID {
				note(e)
			}
		}
	case *Filter:
		note(n.Predicate)
	case *Unnest:
		note(n.Value)
		if n.Condition != nil {
			note(n.Condition)
		}
	default:
		return nil, false
	}
	in, ok := undivide(n.Inputs()[0], w, used, keys)
	if !ok {
		return nil, false
	}
	return n.With(in), true
}
