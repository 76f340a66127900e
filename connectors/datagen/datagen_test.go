package datagen

import (
	"context"
	"errors"
	"io"
	"reflect"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// testClock stands still until it is moved.
type testClock struct {
	now   time.Time
	timer func()
	after time.Duration
}

func (c *testClock) Now() time.Time { return c.now }

func (c *testClock) AfterFunc(d time.Duration, f func()) func() {
	c.timer, c.after = f, d
	return func() { c.timer = nil }
}

func open(t *testing.T, clock Clock, cols []connector.Column, with map[string]string) (connector.Source, error) {
	t.Helper()
	c := New(clock)
	with["connector"] = "datagen"
	v, errs := c.Spec().Resolve(with)
	if len(errs) > 0 {
		t.Fatal(errs[0])
	}
	return c.OpenSource(context.Background(), &connector.Table{Name: "t", Columns: cols, Options: v})
}

func col(name string, t types.Type) connector.Column {
	return connector.Column{Field: types.Field{Name: name, Type: t}}
}

// readFrom reads rows from an offset on in batches of the given size.
func readFrom(t *testing.T, s connector.Source, from, end int64, size int) []*batch.Batch {
	t.Helper()
	ctx := context.Background()
	parts, err := s.Partitions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(ctx, []connector.Split{{Number: 4, From: connector.Position{Partition: parts[0], Offset: from}, End: end}}, nil, func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var out []*batch.Batch
	for {
		b := new(batch.Batch)
		err := r.Next(ctx, b, size, 1<<20)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
}

func allTypes() []connector.Column {
	return []connector.Column{
		col("id", types.NewBigInt()), col("b", types.NewBoolean()), col("i", types.NewInt()), col("d", types.NewDouble()), col("dec", types.NewDecimal(30, 4)),
		col("s", types.NewString()), col("bin", types.NewBytes()), col("day", types.NewDate()), col("ts", types.NewTimestamp(3)),
		col("a", types.NewArray(types.NewSmallInt())), col("m", types.NewMap(types.NewString(), types.NewInt())),
		col("r", types.NewRow(types.Field{Name: "x", Type: types.NewString()}, types.Field{Name: "y", Type: types.NewTinyInt()})),
	}
}

// TestReplay: rows depend on the seed and their number alone.
func TestReplay(t *testing.T) {
	with := func(seed string) map[string]string {
		return map[string]string{"number-of-rows": "500", "rows-per-second": "1000000", "seed": seed, "start-time": "2024-05-01T00:00:00Z",
			"fields.id.kind": "sequence", "fields.id.start": "100", "fields.id.end": "100000", "fields.s.length": "12", "fields.i.min": "5",
			"fields.i.max": "7", "fields.s.null-rate": "0.5", "fields.ts.max-past": "1 h"}
	}
	clock := &testClock{now: time.Unix(1714550400, 0)}
	s, err := open(t, clock, allTypes(), with("1"))
	if err != nil {
		t.Fatal(err)
	}
	all := readFrom(t, s, 0, connector.Unbounded, 500)
	if len(all) != 1 || all[0].Len != 500 {
		t.Fatalf("%d batches", len(all))
	}
	whole := all[0]
	nulls := 0
	for i := range 500 {
		if whole.Cols[0].I64[i] != int64(100+i) {
			t.Fatalf("row %d has id %d", i, whole.Cols[0].I64[i])
		}
		if n := whole.Cols[2].I32[i]; n < 5 || n > 7 {
			t.Fatalf("row %d: i = %d", i, n)
		}
		if whole.Cols[5].IsNull(i) {
			nulls++
		} else if len(whole.Cols[5].Bytes(i)) != 12 {
			t.Fatalf("row %d: text %q", i, whole.Cols[5].Bytes(i))
		}
		at := time.UnixMicro(whole.Cols[8].I64[i]).UTC()
		if base := time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC); at.After(base.Add(time.Second)) || at.Before(base.Add(-time.Hour)) {
			t.Fatalf("row %d: ts %v", i, at)
		}
	}
	if nulls < 200 || nulls > 300 {
		t.Errorf("%d of 500 are NULL, want about half", nulls)
	}
	// Again from the middle, in other batch sizes, at another time.
	clock.now = clock.now.Add(time.Hour)
	at := 123
	for _, b := range readFrom(t, s, 123, connector.Unbounded, 37) {
		for i := range b.Len {
			for c := range b.Cols {
				if a, w := cell(&b.Cols[c], i), cell(&whole.Cols[c], at); !reflect.DeepEqual(a, w) {
					t.Fatalf("row %d column %d: %v, want %v", at, c, a, w)
				}
			}
			at++
		}
	}
	if at != 500 {
		t.Errorf("the replay ends at row %d", at)
	}
	other, err := open(t, clock, allTypes(), with("2"))
	if err != nil {
		t.Fatal(err)
	}
	if b := readFrom(t, other, 0, 500, 500)[0]; reflect.DeepEqual(b.Cols[3].F64, whole.Cols[3].F64) {
		t.Error("another seed makes the same rows")
	}
}

func cell(v *batch.Vec, i int) any {
	if v.IsNull(i) {
		return nil
	}
	switch v.Type.Physical() {
	case types.PhysBool:
		return v.Bools.Get(i)
	case types.PhysInt8:
		return v.I8[i]
	case types.PhysInt16:
		return v.I16[i]
	case types.PhysInt32:
		return v.I32[i]
	case types.PhysInt64:
		return v.I64[i]
	case types.PhysFloat64:
		return v.F64[i]
	case types.PhysDecimal128:
		return v.D128[i]
	case types.PhysBytes:
		return string(v.Bytes(i))
	case types.PhysRow:
		return []any{cell(v.Children[0], i), cell(v.Children[1], i)}
	}
	var out []any
	for k := v.Offsets[i]; k < v.Offsets[i+1]; k++ {
		for _, c := range v.Children {
			out = append(out, cell(c, int(k)))
		}
	}
	return out
}

// TestRate: no more rows than are due, and a call when more are.
func TestRate(t *testing.T) {
	clock := &testClock{now: time.Unix(1714550400, 0)}
	s, err := open(t, clock, []connector.Column{col("id", types.NewBigInt())}, map[string]string{"rows-per-second": "100"})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	parts, _ := s.Partitions(ctx)
	called := 0
	r, err := s.Open(ctx, []connector.Split{{From: connector.Position{Partition: parts[0]}, End: connector.Unbounded}}, nil, func() { called++ })
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	drain := func() {
		for {
			b := new(batch.Batch)
			err := r.Next(ctx, b, 30, 1<<20)
			if errors.Is(err, connector.ErrNoData) {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			total += b.Len
		}
	}
	drain()
	if total != 10 || clock.timer == nil {
		t.Fatalf("%d rows at once", total)
	}
	clock.now = clock.now.Add(2 * time.Second)
	clock.timer()
	drain()
	if total != 210 || called != 1 {
		t.Errorf("%d rows after two seconds, %d calls", total, called)
	}
	if r.LogEnd(0) != 210 {
		t.Errorf("log end %d", r.LogEnd(0))
	}
	r.Close()
	if clock.timer != nil {
		t.Error("a timer runs on")
	}
}

// TestEnds: number-of-rows and the shortest sequence end the table; bad
// settings are refused by their key.
func TestEnds(t *testing.T) {
	cols := []connector.Column{col("a", types.NewInt()), col("b", types.NewString())}
	s, err := open(t, nil, cols, map[string]string{"number-of-rows": "50", "fields.a.kind": "sequence", "fields.a.start": "1", "fields.a.end": "7"})
	if err != nil {
		t.Fatal(err)
	}
	if n := readFrom(t, s, 0, connector.Unbounded, 100); len(n) != 1 || n[0].Len != 7 {
		t.Errorf("%d batches", len(n))
	}
	for key, value := range map[string]string{
		"fields.c.kind": "random", "fields.a.kindd": "random", "fields.a.kind": "other", "fields.a.min": "x", "fields.b.length": "-1",
		"fields.b.null-rate": "2", "fields.a.max": "-2147483649", "fields.b.var-len": "yes",
	} {
		_, err := open(t, nil, cols, map[string]string{key: value})
		var oe *connector.OptionError
		if !errors.As(err, &oe) || oe.Key != key {
			t.Errorf("%s = %s: %v", key, value, err)
		}
	}
	if _, err := open(t, nil, cols, map[string]string{"fields.a.kind": "sequence", "fields.a.start": "1", "fields.a.end": "3000000000"}); err == nil {
		t.Error("a sequence beyond INT was accepted")
	}
}
