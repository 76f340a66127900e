package plan

import (
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/diag"
)

// overStream finds the row time that orders, and what a stream cannot do. By another
// column results change.
func (n *Over) overStream(in []Column) {
	var by *Column
	if len(n.Order) > 0 {
		by, _ = ColumnByID(in, n.Order[0].ID)
	}
	switch {
	case by == nil:
		n.Refuse = "in a stream OVER needs an ORDER BY"
		return
	case len(n.Order) > 1 || n.Order[0].Desc:
		n.Refuse = "in a stream OVER goes by one column, ascending"
		return
	case inTimeOrder(n.Input, by.ID) && ChangelogOf(n.Input).By == nil:
		n.Time = by.ID
	case by.ProcTime:
		n.Refuse = "in a stream OVER goes by row time or by values, not by the time of processing"
		return
	default:
		n.Changes = true
	}
	for i := range n.Calls {
		c := &n.Calls[i]
		switch {
		case c.Func == graph.OverLag && !n.Changes:
		case c.Func == graph.OverLag:
			n.Refuse = "in a stream " + c.Text + " goes by row time"
		case c.Func != graph.OverAggregate:
			n.Refuse = c.Text + " looks at rows that a stream does not have yet, or keeps for ever"
		case c.Frame.End.Kind != graph.CurrentRow:
			n.Refuse = "in a stream a frame ends with CURRENT ROW: the rows behind it are not there yet"
		case n.Changes && c.Frame.Start.Kind != graph.UnboundedPreceding:
			n.Refuse = "in a stream a frame over another order than row time begins with UNBOUNDED PRECEDING"
		}
	}
}

// CheckOver reports functions with OVER that a stream cannot have.
func (b *Binder) CheckOver(n Node) {
	if !b.streaming() {
		return
	}
	Walk(n, func(n Node) bool {
		if o, ok := n.(*Over); ok && o.Refuse != "" {
			b.errorf(diag.CodeBadWindow, o.Span, "%s", o.Refuse).
				WithHelp("row time is the column of WATERMARK, as long as no join, GROUP BY or DISTINCT is in between").
				WithHelp("the first rows of each window: ROW_NUMBER() OVER (PARTITION BY window_start, window_end, ... ORDER BY ...) AS n, and WHERE n <= 3 above it").
				WithHelp("where the input ends, SET 'execution.runtime-mode' = 'batch'")
		}
		return true
	})
}
