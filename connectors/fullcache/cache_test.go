package fullcache

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

var schema = &batch.Schema{Fields: []types.Field{{Name: "k", Type: types.NewBigInt()}, {Name: "v", Type: types.NewBigInt()}}}

// pairs is a batch of (k, v); k -1 is NULL.
func pairs(rows ...[2]int64) *batch.Batch {
	b := new(batch.Batch)
	b.Reset(schema)
	b.Len = len(rows)
	for c := range b.Cols {
		b.Cols[c].Reset(schema.Fields[c].Type, len(rows))
		for i, r := range rows {
			if b.Cols[c].SetInt64(i, r[c]); c == 0 && r[c] == -1 {
				b.Cols[c].SetNull(i)
			}
		}
	}
	return b
}

func tableOf(t *testing.T, maxBytes int64, rows ...[2]int64) *Table {
	t.Helper()
	b := NewBuilder("d", schema, []int{0}, []int{1}, maxBytes)
	if err := b.Add(pairs(rows...), nil); err != nil {
		t.Fatal(err)
	}
	return b.Table()
}

func keysOf(ks ...int64) *connector.LookupKeys {
	rows := make([][2]int64, len(ks))
	for i, k := range ks {
		rows[i][0] = k
	}
	b := pairs(rows...)
	k := &connector.LookupKeys{Cols: b.Cols[:1], Hashes: make([]uint64, len(ks))}
	batch.HashRows(k.Hashes, []*batch.Vec{&b.Cols[0]}, nil)
	return k
}

// values are the values found, by key.
func values(f *connector.Found) [][]int64 {
	var out [][]int64
	for i := range len(f.First) - 1 {
		vs := []int64{}
		for _, row := range f.Sel[f.First[i]:f.First[i+1]] {
			vs = append(vs, f.Rows.Cols[0].Int64(int(row)))
		}
		out = append(out, vs)
	}
	return out
}

// TestFind compares many rows with a map.
func TestFind(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	want := map[int64][]int64{}
	b := NewBuilder("d", schema, []int{0}, []int{1}, 0)
	for range 20 {
		var rows [][2]int64
		for range rng.IntN(50) {
			r := [2]int64{rng.Int64N(200) - 1, rng.Int64()}
			if rows = append(rows, r); r[0] >= 0 {
				want[r[0]] = append(want[r[0]], r[1])
			}
		}
		if err := b.Add(pairs(rows...), nil); err != nil {
			t.Fatal(err)
		}
	}
	var f connector.Found
	var ask []int64
	for k := range int64(250) {
		ask = append(ask, k)
	}
	b.Table().Find(keysOf(ask...), &f)
	for k, got := range values(&f) {
		if !slices.Equal(got, want[int64(k)]) {
			t.Errorf("seed %d, key %d: %v, want %v", seed, k, got, want[int64(k)])
		}
	}
}

func TestTooBig(t *testing.T) {
	b := NewBuilder("d", schema, []int{0}, []int{1}, 4096)
	var err error
	for i := int64(0); err == nil && i < 10_000; i++ {
		err = b.Add(pairs([2]int64{i, i}), nil)
	}
	var big *TooBigError
	if !errors.As(err, &big) || big.Max != 4096 || big.Bytes <= 4096 || big.Rows == 0 {
		t.Fatalf("%v", err)
	}
}

// TestReload: a table is loaded at the first lookup and after the interval; what a
// failed load leaves is tried again; others are answered while one loads.
func TestReload(t *testing.T) {
	ctx := context.Background()
	now := time.Unix(1000, 0)
	version, loads := int64(1), 0
	var fail error
	during := func() {}
	c := New(Options{Interval: time.Minute, Now: func() time.Time { return now }, Load: func(context.Context) (*Table, error) {
		loads++
		during()
		return tableOf(t, 0, [2]int64{5, version}), fail
	}})
	find := func() (int64, error) {
		var f connector.Found
		if err := c.Find(ctx, keysOf(5), &f); err != nil {
			return 0, err
		}
		return values(&f)[0][0], nil
	}
	expect := func(want int64, wantLoads int) {
		t.Helper()
		got, err := find()
		if err != nil || got != want || loads != wantLoads {
			t.Fatalf("found %d (%v) after %d loads, want %d after %d", got, err, loads, want, wantLoads)
		}
	}
	if c.Local() {
		t.Error("it says it has a table before it has loaded one")
	}
	expect(1, 1)
	version = 2
	expect(1, 1)
	if !c.Local() {
		t.Error("it says it has no table")
	}
	now = now.Add(time.Minute)
	if c.Local() {
		t.Error("it says its table is fresh after the interval")
	}
	during = func() {
		during = func() {}
		if got, err := find(); got != 1 || err != nil {
			t.Errorf("during a load: %d, %v", got, err)
		}
	}
	expect(2, 2)
	now = now.Add(time.Minute)
	version, fail = 3, errors.New("no answer")
	if _, err := find(); !errors.Is(err, fail) {
		t.Fatalf("a failed load: %v", err)
	}
	fail = nil
	expect(3, 4)
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := find(); err == nil {
		t.Error("a closed table answers")
	}
}

// TestFirstLoadIsWaitedFor: who comes during the first load waits for it, or for the
// end of its context.
func TestFirstLoadIsWaitedFor(t *testing.T) {
	started, proceed := make(chan struct{}), make(chan struct{})
	c := New(Options{Load: func(context.Context) (*Table, error) {
		close(started)
		<-proceed
		return tableOf(t, 0, [2]int64{5, 1}), nil
	}})
	first := make(chan error, 1)
	go func() {
		var f connector.Found
		first <- c.Find(context.Background(), keysOf(5), &f)
	}()
	<-started
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var f connector.Found
	if err := c.Find(ctx, keysOf(5), &f); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
	close(proceed)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := c.Find(context.Background(), keysOf(5), &f); err != nil || values(&f)[0][0] != 1 {
		t.Errorf("%v, %v", values(&f), err)
	}
}
