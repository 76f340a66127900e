package logictest

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/operator"
	rt "github.com/millrace/millrace/runtime/types"
)

// windowAggregate gives each row once for each of its windows, then groups.
func (r *run) windowAggregate(n *graph.Node, op *graph.WindowAggregate) (*collected, error) {
	in, spans, err := r.windowed(n, op)
	if err != nil {
		return nil, err
	}
	g := newGroups(in.n)
	seen := map[string]bool{}
	var spanOf []operator.Span
	for row := range in.n {
		key, ok, err := r.key(n, in, op.Keys, row)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		s := spans[row]
		key = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(key, uint64(s.Start)), uint64(s.End))
		if !seen[string(key)] {
			seen[string(key)] = true
			spanOf = append(spanOf, s)
		}
		g.add(row, key)
	}
	accs, err := r.accumulate(n, in, g, op.Aggregates, op.Time)
	if err != nil {
		return nil, err
	}
	out := newCollected(n.Schema)
	r.emit(out, in, g, op.Keys, op.Aggregates, accs)
	at := len(op.Keys) + len(op.Aggregates)
	for _, s := range spanOf {
		putWindow(out.cols[at:], s)
	}
	return out, nil
}

// windowed is the input with a row for each window that takes it. A row that all
// its windows refuse is late, once.
func (r *run) windowed(n *graph.Node, op *graph.WindowAggregate) (*collected, []operator.Span, error) {
	in := r.input(n, 0)
	if op.Window.Kind == graph.Session {
		return r.sessions(n, op, in)
	}
	out := newCollected(in.schema)
	var spans []operator.Span
	b := in.batch()
	var ws *operator.Windows
	var err error
	if op.Window.Kind != graph.Given {
		if ws, err = operator.NewWindows(op.Window, in.schema.Fields[op.Time].Type); err != nil {
			return nil, nil, err
		}
	}
	taken, refused := map[string]bool{}, map[string]bool{}
	for row := range in.n {
		var all []operator.Span
		if ws == nil {
			all = []operator.Span{r.givenWindow(op.Window, in, row)}
		} else {
			ok, err := r.hasTime(n, in, op.Time, row)
			if err != nil {
				return nil, nil, err
			}
			if !ok {
				continue
			}
			all = ws.All(nil, in.cols[op.Time].Int64(row))
		}
		source := string(in.position[row])
		if ws != nil {
			source = strconv.Itoa(row) // a row of its own, whatever lies at this place of another table
		}
		for _, s := range all {
			if !op.Window.Processing && r.late(in, row, s.EndTime, op.Lateness) {
				refused[source] = true
				continue
			}
			taken[source] = true
			out.addAt(b, int32(row), in.position[row])
			spans = append(spans, s)
		}
	}
	for source := range refused {
		if !taken[source] {
			r.out.Late++
		}
	}
	return out, spans, nil
}

func (r *run) late(in *collected, row int, endTime, lateness int64) bool {
	return !r.job.Batch && in.watermark[row] != batch.NoWatermark && in.watermark[row] >= endTime-1+lateness
}

// hasTime says whether a row has a time; it fails where not.
func (r *run) hasTime(n *graph.Node, in *collected, timeAt, row int) (bool, error) {
	v := &in.cols[timeAt]
	if !v.IsNull(row) {
		return true, nil
	}
	e := v.Err(row)
	if e == nil {
		e = operator.NullEventTime(in.schema.Fields[timeAt].Name)
	}
	return false, r.failed(r.policyBehind(n.ID), n, []batch.ValueError{*e})
}

// givenWindow is the window in a row's columns.
func (r *run) givenWindow(w graph.Window, in *collected, row int) operator.Span {
	start, end := in.cols[w.Start].Int64(row)/1000, in.cols[w.End].Int64(row)/1000
	s := operator.Span{Start: start, End: end, EndTime: end}
	if w.Zone != nil {
		if z, err := rt.LoadZone(w.Zone.String()); err == nil {
			s.EndTime = z.ToInstant(end, 1000)
		}
	}
	return s
}

// sessions sorts the rows of each key by time and cuts them where more than the
// gap lies between two.
func (r *run) sessions(n *graph.Node, op *graph.WindowAggregate, in *collected) (*collected, []operator.Span, error) {
	type member struct {
		row int
		ts  int64 // ms
	}
	bad, err := r.badArguments(n, in, op.Aggregates)
	if err != nil {
		return nil, nil, err
	}
	units := in.schema.Fields[op.Time].Type.UnitsPerSecond() / 1000
	byKey := map[string][]member{}
	var order []string
	for row := range in.n {
		if bad[int32(row)] {
			continue
		}
		ok, err := r.hasTime(n, in, op.Time, row)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		ts := rt.FloorDiv(in.cols[op.Time].Int64(row), units)
		if !op.Window.Processing && r.late(in, row, ts+op.Window.Size, op.Lateness) {
			r.out.Late++
			continue
		}
		key, ok, err := r.key(n, in, op.Keys, row)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		if byKey[string(key)] == nil {
			order = append(order, string(key))
		}
		byKey[string(key)] = append(byKey[string(key)], member{row, ts})
	}
	out := newCollected(in.schema)
	var spans []operator.Span
	b := in.batch()
	for _, key := range order {
		rows := byKey[key]
		slices.SortStableFunc(rows, func(a, b member) int { return cmp.Compare(a.ts, b.ts) })
		for from := 0; from < len(rows); {
			to := from + 1
			for to < len(rows) && rows[to].ts-rows[to-1].ts <= op.Window.Size {
				to++
			}
			s := r.wallSession(op.Window, in.schema.Fields[op.Time].Type, rows[from].ts, rows[to-1].ts+op.Window.Size)
			for _, m := range rows[from:to] {
				out.addAt(b, int32(m.row), in.position[m.row])
				spans = append(spans, s)
			}
			from = to
		}
	}
	return out, spans, nil
}

func (r *run) wallSession(w graph.Window, t rt.Type, start, end int64) operator.Span {
	s := operator.Span{Start: start, End: end, EndTime: end}
	if t.Kind == rt.TimestampLTZ && w.Zone != nil {
		if z, err := rt.LoadZone(w.Zone.String()); err == nil {
			s.Start, s.End = z.ToLocal(start, 1000), z.ToLocal(end, 1000)
		}
	}
	return s
}

// badArguments fails the rows of which an aggregate cannot take an argument.
func (r *run) badArguments(n *graph.Node, in *collected, aggs []graph.Aggregate) (map[int32]bool, error) {
	bad := map[int32]bool{}
	b := in.batch()
	for _, a := range aggs {
		exprs := a.Args
		if a.Filter != nil {
			exprs = append(exprs[:len(exprs):len(exprs)], a.Filter)
		}
		if len(exprs) == 0 {
			continue
		}
		p, err := expr.Compile(exprs, b.Schema, expr.Options{NoSharing: r.o.NoSharing})
		if err != nil {
			return nil, err
		}
		args := make([]batch.Vec, len(exprs))
		p.Eval(r.ec, b, nil, args)
		for row := range int32(in.n) {
			if e := argError(args, row); e != nil && !bad[row] {
				bad[row] = true
				if err := r.failed(r.policyBehind(n.ID), n, []batch.ValueError{*e}); err != nil {
					return nil, err
				}
			}
		}
	}
	return bad, nil
}

// sessionAssign gives the rows of the sessions with their bounds.
func (r *run) sessionAssign(n *graph.Node, op *graph.SessionAssign) (*collected, error) {
	in := r.input(n, 0)
	whole, err := r.wholeRows(n, in)
	if err != nil {
		return nil, err
	}
	rows, spans, err := r.sessions(n, &graph.WindowAggregate{Window: op.Window, Time: op.Time, Keys: op.Keys, Lateness: op.Lateness}, whole)
	if err != nil {
		return nil, err
	}
	out := newCollected(n.Schema)
	at := len(in.schema.Fields)
	for row := range rows.n {
		for c := range at {
			out.cols[c].Append(&rows.cols[c], row)
		}
		putWindow(out.cols[at:], spans[row])
		out.position, out.watermark = append(out.position, nil), append(out.watermark, batch.NoWatermark)
		out.n++
	}
	return out, nil
}

// wholeRows are the rows of an input without those that have an error anywhere,
// which fail.
func (r *run) wholeRows(n *graph.Node, in *collected) (*collected, error) {
	out := newCollected(in.schema)
	b := in.batch()
	for row := range in.n {
		var bad *batch.ValueError
		for c := range in.cols {
			if bad == nil {
				bad = in.cols[c].DeepErr(row)
			}
		}
		if bad != nil {
			if err := r.failed(r.policyBehind(n.ID), n, []batch.ValueError{*bad}); err != nil {
				return nil, err
			}
			continue
		}
		out.addAt(b, int32(row), in.position[row])
	}
	return out, nil
}

// putWindow appends window_start, window_end and, if there is a third column,
// window_time.
func putWindow(cols []batch.Vec, s operator.Span) {
	walls := [3]int64{s.Start, s.End, s.End - 1}
	instants := [3]int64{s.EndTime - (s.End - s.Start), s.EndTime, s.EndTime - 1}
	for i := range min(len(cols), 3) {
		v := &cols[i]
		x := walls[i]
		if v.Type.Kind == rt.TimestampLTZ {
			x = instants[i]
		}
		v.AppendNull()
		v.Valid = nil
		v.SetInt64(v.Len-1, x*(v.Type.UnitsPerSecond()/1000))
	}
}
