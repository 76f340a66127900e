package operator

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/types"
)

func field(name string, t types.Type) types.Field { return types.Field{Name: name, Type: t} }

func schemaOf(fields ...types.Field) *batch.Schema { return &batch.Schema{Fields: fields} }

func col(s *batch.Schema, i int) expr.Expr {
	return &expr.Column{Index: i, Name: s.Fields[i].Name, T: s.Fields[i].Type}
}

// lists makes a batch of (id BIGINT, tags ARRAY<BIGINT>): one record a row, at
// offsets 10, 11...; "-" is NULL, "!" an error, "" an empty array.
func lists(tags ...string) *batch.Batch {
	s := schemaOf(field("id", types.NewBigInt()), field("tags", types.NewArray(types.NewBigInt())))
	b := &batch.Batch{}
	b.Reset(s)
	b.Len = len(tags)
	b.Cols[0].Reset(s.Fields[0].Type, b.Len)
	v := &b.Cols[1]
	v.Reset(s.Fields[1].Type, b.Len)
	for i, x := range tags {
		b.Cols[0].SetInt64(i, int64(i))
		switch x {
		case "-":
			v.NullRow(i)
			continue
		case "!":
			v.NullRow(i)
			v.SetErr(i, batch.CodeTypeMismatch, "tags", "no array")
			continue
		}
		v.BeginList(i)
		for n, e := range strings.Fields(x) {
			c := v.Children[0]
			c.Grow(1)
			var k int64
			fmt.Sscan(e, &k)
			c.SetInt64(c.Len-1, k)
			_ = n
		}
		v.EndList()
	}
	v.PadOffsets()
	b.Runs = []batch.Run{{Partition: 0, Rows: int32(b.Len), BaseOffset: 10, EndOffset: 10 + int64(b.Len)}}
	return b
}

func show(r *Rows) []string {
	var out []string
	for i := range int32(r.Batch.Len) {
		if r.Sel != nil && !slices.Contains(r.Sel, i) {
			continue
		}
		cells := make([]string, len(r.Batch.Cols))
		for c := range r.Batch.Cols {
			cells[c] = "NULL"
			if !r.Batch.Cols[c].IsNull(int(i)) {
				cells[c] = r.Batch.Cols[c].Text(int(i))
			}
		}
		out = append(out, fmt.Sprintf("%d:%s", r.Source(i), strings.Join(cells, ",")))
	}
	return out
}

func TestUnnest(t *testing.T) {
	in := lists("7 8", "", "-", "!", "9")
	out := schemaOf(append(slices.Clone(in.Schema.Fields), field("tag", types.NewBigInt()), field("n", types.NewBigInt()))...)
	for _, c := range []struct {
		outer bool
		want  []string
		empty []int32
	}{
		{false, []string{"0:0,[7, 8],7,1", "0:0,[7, 8],8,2", "4:4,[9],9,1"}, []int32{1, 2}},
		{true, []string{"0:0,[7, 8],7,1", "0:0,[7, 8],8,2", "1:1,[],NULL,NULL", "2:2,NULL,NULL,NULL", "4:4,[9],9,1"}, nil},
	} {
		u, err := NewUnnest(&graph.Unnest{Value: col(in.Schema, 1), Outer: c.outer, Ordinality: true}, in.Schema, out)
		if err != nil {
			t.Fatal(err)
		}
		var r Rows
		for range 2 { // its memory serves the next batch as well
			u.Eval(expr.NewContext(nil, 0), &Rows{Batch: in}, &r)
		}
		if got := show(&r); !slices.Equal(got, c.want) {
			t.Errorf("outer=%v:\n got %q\nwant %q", c.outer, got, c.want)
		}
		if !slices.Equal(r.Empty, c.empty) || len(r.Failed) != 1 || r.Failed[0].Row != 3 || r.Failed[0].Code != batch.CodeTypeMismatch {
			t.Errorf("outer=%v: empty %v, failed %v", c.outer, r.Empty, r.Failed)
		}
		// Positions follow the rows.
		last := r.Batch.Len - 1
		if o := r.Batch.Offset(&r.Batch.Runs[0], last); o != 14 {
			t.Errorf("outer=%v: the last row is of offset %d, want 14", c.outer, o)
		}
	}
}

func TestUnnestSpreadsRowsAndMaps(t *testing.T) {
	rowType := types.NewRow(field("a", types.NewBigInt()), field("b", types.NewBigInt()))
	s := schemaOf(field("xs", types.NewArray(rowType)))
	b := &batch.Batch{}
	b.Reset(s)
	b.Len = 1
	v := &b.Cols[0]
	v.Reset(s.Fields[0].Type, 1)
	v.BeginList(0)
	for i := range 2 {
		c := v.Children[0]
		c.Grow(1)
		if i == 1 {
			c.NullRow(1) // a NULL element: NULL in each field
			continue
		}
		c.Children[0].SetInt64(i, 5)
		c.Children[1].SetInt64(i, 6)
	}
	v.EndList()
	u, err := NewUnnest(&graph.Unnest{Value: col(s, 0)}, s, schemaOf(s.Fields[0], rowType.Fields[0], rowType.Fields[1]))
	if err != nil {
		t.Fatal(err)
	}
	var r Rows
	u.Eval(expr.NewContext(nil, 0), &Rows{Batch: b}, &r)
	if r.Batch.Len != 2 || r.Batch.Cols[1].Int64(0) != 5 || r.Batch.Cols[2].Int64(0) != 6 || !r.Batch.Cols[1].IsNull(1) {
		t.Errorf("rows %v", show(&r))
	}

	m := schemaOf(field("m", types.NewMap(types.NewBigInt(), types.NewString())))
	if _, err := NewUnnest(&graph.Unnest{Value: col(m, 0)}, m, schemaOf(m.Fields[0], field("key", types.NewBigInt()), field("value", types.NewString()))); err != nil {
		t.Errorf("map: %v", err)
	}
	if _, err := NewUnnest(&graph.Unnest{Value: col(m, 0)}, m, m); err == nil {
		t.Error("a map without columns for key and value is taken")
	}
}

// TestWindows: the starts are Flink's, start = ts - floorMod(ts - offset, size),
// before 1970 too; over TIMESTAMP_LTZ by the session zone's wall clock.
func TestWindows(t *testing.T) {
	const hour = 3_600_000
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		t.Fatal(err)
	}
	day := graph.Window{Size: 24 * hour, Zone: shanghai}
	for _, c := range []struct {
		w    graph.Window
		t    types.Type
		ts   int64 // µs
		want Span
	}{
		{graph.Window{Size: hour}, types.NewTimestamp(3), 3_599_999_999, Span{0, hour, hour}},
		{graph.Window{Size: hour}, types.NewTimestamp(3), 3_600_000_000, Span{hour, 2 * hour, 2 * hour}},
		{graph.Window{Size: hour}, types.NewTimestamp(3), -1, Span{-hour, 0, 0}},
		{graph.Window{Size: hour, Offset: 600_000}, types.NewTimestamp(3), 0, Span{600_000 - hour, 600_000, 600_000}},
		// 1970-01-01 00:00 UTC is 08:00 in Shanghai: that day began 8 h earlier
		// and ends at 16:00 UTC.
		{day, types.NewTimestampLTZ(3), 0, Span{0, 24 * hour, 16 * hour}},
	} {
		ws, err := NewWindows(c.w, c.t)
		if err != nil {
			t.Fatal(err)
		}
		if got := ws.Of(c.ts); got != c.want {
			t.Errorf("%s %d: %+v, want %+v", c.t, c.ts, got, c.want)
		}
	}
}

func TestWindowAssign(t *testing.T) {
	in := schemaOf(field("ts", types.NewTimestamp(3)))
	ts := types.NewTimestamp(3)
	out := schemaOf(in.Fields[0], field("window_start", ts), field("window_end", ts), field("window_time", ts))
	w, err := NewWindowAssign(graph.Window{Size: 1000}, 0, in, out)
	if err != nil {
		t.Fatal(err)
	}
	b := &batch.Batch{}
	b.Reset(in)
	b.Len = 2
	b.Cols[0].Reset(ts, 2)
	b.Cols[0].SetInt64(0, 2_500_000)
	b.Cols[0].SetNull(1)
	var r Rows
	w.Eval(expr.NewContext(nil, 0), &Rows{Batch: b}, &r)
	if c := r.Batch.Cols; len(r.Sel) != 1 || c[1].I64[0] != 2_000_000 || c[2].I64[0] != 3_000_000 || c[3].I64[0] != 2_999_000 {
		t.Errorf("window of 2.5 s: %v, rows %v", show(&r), r.Sel)
	}
	if len(r.Failed) != 1 || r.Failed[0].Row != 1 || r.Failed[0].Code != batch.CodeNullEventTime {
		t.Errorf("failed %v", r.Failed)
	}
}

// TestChain: source > unnest > filter twice, one of them through a union with
// the other way, into two outputs.
func TestChain(t *testing.T) {
	in := lists("1 2", "3", "!")
	wide := schemaOf(append(slices.Clone(in.Schema.Fields), field("tag", types.NewBigInt()))...)
	j := &graph.Job{Nodes: []*graph.Node{
		{ID: 0, Op: &graph.Source{}, Schema: in.Schema},
		{ID: 1, Op: &graph.Unnest{Value: col(in.Schema, 1)}, Inputs: []graph.NodeID{0}, Schema: wide},
		{ID: 2, Op: &graph.Project{Exprs: []expr.Expr{col(wide, 0)}}, Inputs: []graph.NodeID{1}, Schema: schemaOf(in.Schema.Fields[0])},
		{ID: 3, Op: &graph.Project{Exprs: []expr.Expr{col(in.Schema, 0)}}, Inputs: []graph.NodeID{0}, Schema: schemaOf(in.Schema.Fields[0])},
		{ID: 4, Op: &graph.Union{}, Inputs: []graph.NodeID{2, 3}, Schema: schemaOf(in.Schema.Fields[0])},
		{ID: 5, Op: &graph.Sink{}, Inputs: []graph.NodeID{4}, Schema: schemaOf(in.Schema.Fields[0])},
		{ID: 6, Op: &graph.Exchange{}, Inputs: []graph.NodeID{2}, Schema: schemaOf(in.Schema.Fields[0])},
	}}
	c, err := NewChain(j, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Outputs(), []graph.NodeID{5, 6}) {
		t.Errorf("outputs %v", c.Outputs())
	}
	for range 2 {
		if err := c.Eval(expr.NewContext(nil, 0), in, batch.Sel{0, 2}); err != nil {
			t.Fatal(err)
		}
	}
	sink := c.Result(5, nil)
	if len(sink) != 2 || !slices.Equal(show(sink[0]), []string{"0:0", "0:0"}) || !slices.Equal(show(sink[1]), []string{"0:0", "2:2"}) {
		t.Errorf("the sink gets %d parts", len(sink))
	}
	if len(sink[0].Failed) != 1 || sink[0].Failed[0].Row != 2 || len(sink[1].Failed) != 0 {
		t.Errorf("failed %v and %v", sink[0].Failed, sink[1].Failed)
	}
	if x := c.Result(6, nil); len(x) != 1 {
		t.Errorf("the exchange gets %d parts", len(x))
	}
}
