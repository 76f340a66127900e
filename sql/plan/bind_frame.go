package plan

import (
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// frame binds ROWS or RANGE.
func (b *Binder) frame(o *overCall, f *syntax.Frame) bool {
	out := graph.Frame{Rows: f.Unit == syntax.FrameRows, End: graph.FrameBound{Kind: graph.CurrentRow}}
	ok := true
	out.Start, ok = b.frameBound(o, out.Rows, f.Start)
	if f.End != nil && ok {
		out.End, ok = b.frameBound(o, out.Rows, f.End)
	}
	switch {
	case !ok:
		return false
	case out.Start.Kind == graph.UnboundedFollowing || out.End.Kind == graph.UnboundedPreceding || out.Start.Kind > out.End.Kind:
		b.errorf(diag.CodeBadArgument, f.Span(), "the frame ends before it begins")
		return false
	case len(o.order) == 0 && !out.Rows:
		b.errorf(diag.CodeBadArgument, f.Span(), "RANGE goes by the value of ORDER BY, and there is none")
		return false
	}
	o.call.Frame = out
	return true
}

var boundKinds = map[syntax.BoundKind]graph.BoundKind{syntax.UnboundedPreceding: graph.UnboundedPreceding, syntax.Preceding: graph.Preceding,
	syntax.CurrentRow: graph.CurrentRow, syntax.Following: graph.Following, syntax.UnboundedFollowing: graph.UnboundedFollowing}

func (b *Binder) frameBound(o *overCall, rows bool, x *syntax.FrameBound) (graph.FrameBound, bool) {
	out := graph.FrameBound{Kind: boundKinds[x.Kind]}
	var ok bool
	switch {
	case x.Offset == nil:
		return out, true
	case rows:
		out.Offset, ok = b.count(x.Offset, "ROWS", 0)
		return out, ok
	case len(o.order) != 1 || o.order[0].desc:
		b.notYet(x.Span(), "RANGE with a distance over an order of several columns or DESC")
		return out, false
	}
	switch t := o.order[0].e.Type(); {
	case t.IsTimestamp() && t.Precision <= 6:
		out.Offset, ok = b.interval(x.Offset)
	case t.IsInteger():
		out.Offset, ok = b.count(x.Offset, "RANGE", 0)
	default:
		b.notYet(x.Span(), "RANGE with a distance over "+t.WithNullable(true).String())
		return out, false
	}
	if ok && out.Offset < 0 {
		b.errorf(diag.CodeBadArgument, x.Span(), "a frame's distance must not be below zero")
		ok = false
	}
	return out, ok
}
