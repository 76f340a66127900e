package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/diag"
)

// Changelog is the kinds of rows that a node gives.
type Changelog struct {
	// By is the node that changes rows it has given; nil: all are new.
	By Node
	// Deletes: rows go without another one in their place.
	Deletes bool
}

// String is the mode as EXPLAIN prints it.
func (c Changelog) String() string {
	switch {
	case c.By == nil:
		return "[I]"
	case c.Deletes:
		return "[I,UB,UA,D]"
	}
	return "[I,UB,UA]"
}

// ChangelogOf infers the kinds of rows of a plan, from the sources up.
func ChangelogOf(n Node) Changelog {
	var in Changelog
	for _, x := range n.Inputs() {
		c := ChangelogOf(x)
		if in.By == nil {
			in.By = c.By
		}
		in.Deletes = in.Deletes || c.Deletes
	}
	switch n := n.(type) {
	case *Aggregate:
		switch {
		case in.By != nil && n.Updates:
			// A group goes with its last row; the one without keys stays.
			return Changelog{By: n, Deletes: len(n.Keys) > 0}
		case in.By != nil && n.Firing != nil:
			return Changelog{By: n, Deletes: true}
		case (n.Updates || n.Firing != nil) && len(n.Aggs) > 0:
			return Changelog{By: n}
		}
		return Changelog{}
	case *Normalize:
		return Changelog{By: n, Deletes: true}
	case *Rank:
		if n.Changes {
			return Changelog{By: n, Deletes: in.By != nil || n.N > 1 && !n.Number}
		}
	case *Join:
		if n.Changes && (n.Kind != graph.InnerJoin || in.By != nil) {
			return Changelog{By: n, Deletes: true}
		}
		in.Deletes = in.By != nil // a row may have a version before a change and none after it
	case *Over:
		if n.Changes {
			return Changelog{By: n, Deletes: in.By != nil}
		}
	case *SetOperation:
		// Copies in both inputs grow with either.
		if n.Changes && (n.Kind == graph.Except || in.By != nil) {
			return Changelog{By: n, Deletes: true}
		}
	case *Filter:
		// A row may pass before a change and not after it.
		in.Deletes = in.By != nil
	}
	return in
}

// takesChanges reports a node that can take rows back.
func takesChanges(n Node) bool {
	switch n := n.(type) {
	case *Project, *Filter, *Union, *Unnest, *Insert:
		return true
	case *Aggregate:
		return n.Updates || n.Window != nil && n.Window.Kind != SessionWindow && !n.Window.Processing && changesOfWindows(n.Input)
	case *WindowTable:
		return (n.CheckOnly || n.Window.Kind != SessionWindow) && (n.Window.Changing || changesOfWindows(n.Input))
	case *Join:
		return n.Changes || n.Temporal != nil // of its left side
	case *Rank:
		return n.Changes
	case *SetOperation:
		return n.Changes
	case *Over:
		return n.Changes
	}
	return false
}

// changesOfWindows reports rows of which those that change are of windows, so that
// none comes, or goes, behind the watermark.
func changesOfWindows(n Node) bool {
	switch x := n.(type) {
	case *Aggregate:
		return x.Window != nil
	case *Project, *Filter, *Union, *WindowTable:
	default:
		return ChangelogOf(n).By == nil
	}
	return !slices.ContainsFunc(n.Inputs(), func(in Node) bool { return !changesOfWindows(in) })
}

// CheckChangelog reports operators that cannot take rows that change, and values
// that would be others when a row is taken back.
func (b *Binder) CheckChangelog(n Node) bool {
	ok := true
	Walk(n, func(x Node) bool {
		for _, in := range x.Inputs() {
			c := ChangelogOf(in)
			if c.By == nil || !ok {
				continue
			}
			if !takesChanges(x) {
				kind, _ := describe(x)
				way := "group by window_start and window_end of TUMBLE(TABLE ..., DESCRIPTOR(ts), INTERVAL '1' HOUR): then each row comes once"
				if a, is := c.By.(*Aggregate); is && a.Firing != nil {
					way = waysOut(a)
				}
				b.notYet(spanOf(c.By), fmt.Sprintf("%s, whose rows change, below another operator (%s)", nameOfUpdate(c.By), kind)).
					WithHelp("%s", way).
					WithHelp("where the input ends, SET 'execution.runtime-mode' = 'batch'")
				ok = false
				continue
			}
			ok = b.sameWhenTakenBack(x, in, c.By)
		}
		return ok
	})
	return ok
}

// sameWhenTakenBack reports conditions, and what operators get, that depend on the
// clock or on chance: over rows that change, the row taken back would be another one
// than the row that came.
func (b *Binder) sameWhenTakenBack(x, in, by Node) bool {
	d := fn.Deterministic
	switch x := x.(type) {
	case *Filter:
		d = expr.DeterminismOf(x.Predicate)
		for _, id := range expr.Columns(x.Predicate) {
			if c, found := ColumnByID(in.Columns(), id); found {
				d = max(d, c.Determinism)
			}
		}
	case *Aggregate, *Join, *Rank, *SetOperation, *Over:
		d = changingValues(in)
	}
	if d == fn.Deterministic {
		return true
	}
	b.errorf(diag.CodeNondeterministic, spanOf(by), "the rows of %s change, and an expression over them depends on the clock or on chance: a row could not be taken back as it came", nameOfUpdate(by)).
		WithHelp("compute it below, over the rows of the source")
	return false
}

// changingValues is what the values of rows that change depend on, up to the operators
// that keep rows.
func changingValues(n Node) fn.Determinism {
	d := fn.Deterministic
	if ChangelogOf(n).By == nil {
		return d
	}
	switch n := n.(type) {
	case *Project:
		for _, e := range n.Exprs {
			d = max(d, expr.DeterminismOf(e))
		}
	case *Unnest:
		d = expr.DeterminismOf(n.Value)
		if n.Condition != nil {
			d = max(d, expr.DeterminismOf(n.Condition))
		}
	case *Filter, *Union, *WindowTable:
	default:
		return d
	}
	for _, in := range n.Inputs() {
		d = max(d, changingValues(in))
	}
	return d
}

func spanOf(n Node) diag.Span {
	if n, is := n.(*Normalize); is {
		return n.Span
	}
	_, _, span := stateOf(n)
	return span
}

// nameOfUpdate is what a message calls an operator that changes rows.
func nameOfUpdate(n Node) string {
	switch n := n.(type) {
	case *Normalize:
		return fmt.Sprintf("table %q (connector %q), read by its primary key,", n.Table.Name, n.Table.Spec.Name)
	case *Join:
		switch n.Kind {
		case graph.SemiJoin, graph.AntiJoin, graph.MarkJoin:
			return "a sub-query over a stream without a window"
		}
		return n.Kind.String() + " JOIN of streams without a window or a time interval"
	case *SetOperation:
		return n.String() + " of streams"
	case *Over:
		return "OVER by another column than row time"
	case *Rank:
		if n.N == 1 {
			return "keeping the last row of a key"
		}
		return "Top-N without a window"
	case *Aggregate:
		switch {
		case n.Firing != nil && n.Firing.Early:
			return "a window that gives rows before it ends ('" + earlyFire + "')"
		case n.Firing != nil:
			return "a window that gives rows again when late ones come ('" + lateFire + "')"
		case len(n.Keys) == 0:
			return "an aggregate without a window"
		}
	}
	return "GROUP BY without a window"
}

// checkUpdates makes sure that a table can take the rows of a query: with inserts
// alone none may change, and a key must be the one by which they do.
func (ins *Insert) checkUpdates(b *Binder) bool {
	if !b.CheckChangelog(ins.Input) {
		return false
	}
	c, t := ChangelogOf(ins.Input), ins.Table
	if c.By == nil || t.Spec == nil {
		return true
	}
	switch t.Spec.Changelog {
	case connector.InsertOnly:
		b.errorf(diag.CodeUpdatingIntoAppend, spanOf(c.By), "%s updates rows it has already given, and table %q (connector %q) only takes new ones",
			nameOfUpdate(c.By), t.Name, t.Spec.Name).
			WithNote(t.Span, "the table is declared here").
			WithHelp("%s", waysOut(c.By)).
			WithHelp("%s", b.updatingTables()).
			WithHelp("or merge by key and window with CREATE WIDE TABLE; where the input ends, SET 'execution.runtime-mode' = 'batch'")
		return false
	case connector.Upsert:
		return ins.checkKey(b, c.By)
	}
	return true
}

// waysOut is how to get rows that do not change.
func waysOut(by Node) string {
	switch by := by.(type) {
	case *Aggregate:
		if f := by.Firing; f != nil {
			key := earlyFire
			if !f.Early {
				key = lateFire
			}
			return "RESET '" + key + "' before the statement: then each row comes once, when the window is over"
		}
	case *Normalize:
		return "read the same records by a connector that takes each for a row of its own, as 'kafka' does"
	case *Rank:
		if by.N == 1 {
			return "PARTITION BY window_start, window_end as well, or ORDER BY the row time, ascending: the first row of a key never changes"
		}
		return "PARTITION BY window_start, window_end as well: the rows of a window come once, when it is over"
	case *Over:
		return "ORDER BY the row time: then each row comes once"
	case *Join:
		return "join within a window or a time interval: then each row comes once"
	}
	return "group by window_start and window_end of TUMBLE(TABLE ..., DESCRIPTOR(ts), INTERVAL '1' HOUR)"
}

// updatingTables names the connectors whose tables take updates.
func (b *Binder) updatingTables() string {
	s := "or write to a table that takes updates"
	sep := ": connector "
	if len(b.Updating) > 0 {
		s += sep + strings.Join(b.Updating, ", ")
		sep = "; "
	}
	if len(b.Upserts) > 0 {
		s += sep + "with a primary key " + strings.Join(b.Upserts, ", ")
	}
	return s
}

// checkKey compares the keys by which rows change with the table's: the table's has
// to hold one of them, or rows of different keys would overwrite one another in an
// order left to chance.
func (ins *Insert) checkKey(b *Binder, by Node) bool {
	t := ins.Table
	if len(t.PrimaryKey) == 0 {
		return true // reported elsewhere
	}
	cols := t.SinkTable(time.UTC).Columns
	primary := map[int]bool{}
	for i, c := range ins.Input.Columns() {
		if i < len(cols) && slices.Contains(t.PrimaryKey, cols[i].Name) {
			primary[c.ID] = true
		}
	}
	keys := upsertKeys(ins.Input)
	for _, k := range keys {
		if subset(k, primary) {
			return true
		}
	}
	what := "no key of their own"
	if len(keys) > 0 {
		what = "(" + strings.Join(names(ins.Input, keys[0]), ", ") + ") as their key"
	}
	b.errorf(diag.CodeBadKey, ins.Span, "rows of %s change with %s, and the primary key of %q is (%s)", nameOfUpdate(by), what, t.Name, strings.Join(t.PrimaryKey, ", ")).
		WithNote(spanOf(by), "this changes them").
		WithHelp("insert the columns of that key as they are, and make them the primary key").
		WithHelp("or group by exactly the primary key's columns")
	return false
}
