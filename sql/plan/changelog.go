package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/runtime/connector"
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
		if n.Updates && len(n.Aggs) > 0 {
			return Changelog{By: n}
		}
		return Changelog{}
	case *Join:
		if n.Changes && n.Kind != graph.InnerJoin {
			return Changelog{By: n, Deletes: true}
		}
	case *Filter:
		// A row may pass before a change and not after it.
		in.Deletes = in.By != nil
	}
	return in
}

// CheckChangelog reports operators that cannot take rows that change.
func (b *Binder) CheckChangelog(n Node) bool {
	ok := true
	Walk(n, func(x Node) bool {
		switch x.(type) {
		case *Project, *Filter, *Union, *Insert:
			return ok
		}
		for _, in := range x.Inputs() {
			c := ChangelogOf(in)
			if c.By == nil || !ok {
				continue
			}
			kind, _ := describe(x)
			b.notYet(spanOf(c.By), fmt.Sprintf("%s, whose rows change, below another operator (%s)", nameOfUpdate(c.By), kind)).
				WithHelp("group by window_start and window_end of TUMBLE(TABLE ..., DESCRIPTOR(ts), INTERVAL '1' HOUR): then each row comes once").
				WithHelp("where the input ends, SET 'execution.runtime-mode' = 'batch'")
			ok = false
		}
		return ok
	})
	return ok
}

func spanOf(n Node) diag.Span {
	_, _, span := stateOf(n)
	return span
}

// nameOfUpdate is what a message calls an operator that changes rows.
func nameOfUpdate(n Node) string {
	switch n := n.(type) {
	case *Join:
		return n.Kind.String() + " JOIN of streams without a window or a time interval"
	case *Aggregate:
		if len(n.Keys) == 0 {
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
			WithHelp("group by window_start and window_end of TUMBLE(TABLE ..., DESCRIPTOR(ts), INTERVAL '1' HOUR)").
			WithHelp("or write to a table with a primary key whose connector takes updates").
			WithHelp("or merge by key and window with CREATE WIDE TABLE; where the input ends, SET 'execution.runtime-mode' = 'batch'")
		return false
	case connector.Upsert:
		if _, join := c.By.(*Join); !join && c.Deletes {
			b.notYet(spanOf(c.By), "a condition (WHERE or HAVING) over rows that change, into a table with a key,").
				WithHelp("write all rows, with the condition as a column")
			return false
		}
		return ins.checkKey(b, c.By)
	}
	return true
}

// checkKey compares the key by which rows change with the table's.
func (ins *Insert) checkKey(b *Binder, by Node) bool {
	t := ins.Table
	if len(t.PrimaryKey) == 0 {
		return true // reported elsewhere
	}
	names := t.SinkTable(time.UTC).Columns
	var have []string
	ok := false
	if a, is := by.(*Aggregate); is {
		ok = len(a.Keys) > 0
		for _, k := range a.Keys {
			at := slices.IndexFunc(ins.Input.Columns(), func(c Column) bool { return c.ID == k })
			if at < 0 || at >= len(names) {
				ok = false
				continue
			}
			have = append(have, names[at].Name)
		}
	}
	slices.Sort(have)
	want := slices.Sorted(slices.Values(t.PrimaryKey))
	if ok && slices.Equal(have, want) {
		return true
	}
	b.errorf(diag.CodeBadKey, ins.Span, "rows change by the keys of GROUP BY, and the primary key of %q is (%s)", t.Name, strings.Join(t.PrimaryKey, ", ")).
		WithNote(spanOf(by), "this changes them").
		WithHelp("group by exactly the primary key's columns, and insert them as they are")
	return false
}
