package userfunc_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/userfunc"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/types"
)

// spread is the state of SPREAD: greatest less least value.
type spread struct {
	n           int64
	least, most int64
}

func (s *spread) add(x int64) {
	if s.n == 0 {
		s.least, s.most = x, x
	}
	s.least, s.most, s.n = min(s.least, x), max(s.most, x), s.n+1
}

// spreadFold refuses 99 and panics at 666.
var spreadFold = userfunc.Fold1[int64, spread, userfunc.Null[int64]]{
	Add: func(s *spread, x int64) error {
		switch x {
		case 99:
			return errors.New("99 is refused")
		case 666:
			panic("the beast")
		}
		s.add(x)
		return nil
	},
	State: userfunc.State[spread, userfunc.Null[int64]]{
		Merge: func(into, from *spread) error {
			if from.n > 0 {
				n := into.n + from.n
				into.add(from.least)
				into.add(from.most)
				into.n = n
			}
			return nil
		},
		Result: func(s *spread) (userfunc.Null[int64], error) {
			return userfunc.Null[int64]{V: s.most - s.least, Valid: s.n > 0}, nil
		},
		Save: func(dst []byte, s *spread) []byte {
			return binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(dst, s.n), s.least), s.most)
		},
		Load: func(s *spread, b []byte) error {
			for _, to := range []*int64{&s.n, &s.least, &s.most} {
				x, k := binary.Varint(b)
				if k <= 0 {
					return errors.New("cut short")
				}
				*to, b = x, b[k:]
			}
			return nil
		},
	},
}

// totalFold is a sum of products that can take rows back.
var totalFold = userfunc.Fold2[int64, userfunc.Null[int64], int64, int64]{
	Add:     func(s *int64, x int64, y userfunc.Null[int64]) error { *s += x * y.V; return nil },
	Retract: func(s *int64, x int64, y userfunc.Null[int64]) error { *s -= x * y.V; return nil },
	State: userfunc.State[int64, int64]{
		Merge:  func(into, from *int64) error { *into += *from; return nil },
		Result: func(s *int64) (int64, error) { return *s, nil },
		Save:   func(dst []byte, s *int64) []byte { return binary.AppendVarint(dst, *s) },
		Load:   func(s *int64, b []byte) error { *s, _ = binary.Varint(b); return nil },
	},
}

func bound(t *testing.T, f userfunc.Function, opts fn.AggOptions, args ...types.Type) fn.BoundAggregate {
	t.Helper()
	a, ok := library(t, f).Aggregate(f.Name())
	if !ok {
		t.Fatalf("no aggregate %s", f.Name())
	}
	in := make([]fn.Arg, len(args))
	for i := range args {
		in[i].Type = args[i]
	}
	b, err := a.Bind(in, opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func emit(a fn.Accumulator, groups ...int32) []string {
	var out batch.Vec
	a.Emit(groups, "SPREAD(x)", &out)
	return shown(&out, len(groups), nil)
}

var bigint = types.NewBigInt()

// TestAggregateGroups: NULLs are left out, a failure is its group's alone.
func TestAggregateGroups(t *testing.T) {
	a := bound(t, userfunc.Aggregate1("SPREAD", spreadFold, userfunc.Options{}), fn.AggOptions{}, bigint).New()
	a.Resize(5)
	groups := []int32{0, 1, 0, 2, 3, 0, 2}
	a.Update(groups, []batch.Vec{ints(5, -1, 9, 99, 666, 7, 4)}, nil, nil)
	want(t, emit(a, 0, 1, 2, 3, 4), "4", "NULL", "user_function at SPREAD(x): SPREAD: 99 is refused", "user_function at SPREAD(x): SPREAD: panic: the beast", "NULL")
	a.Clear(2)
	a.Update(groups, []batch.Vec{ints(0, 0, 0, 10, 0, 0, 13)}, nil, batch.Sel{3, 6})
	want(t, emit(a, 2), "3")
}

// TestAggregateStates: whatever way the rows are split, saved and merged, the
// result and the saved state are the same; a failure survives, too.
func TestAggregateStates(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	})
	b := bound(t, userfunc.Aggregate1("SPREAD", spreadFold, userfunc.Options{}), fn.AggOptions{}, bigint)
	whole := b.New()
	whole.Resize(4)
	merged := b.New()
	merged.Resize(4)
	for range 20 {
		xs, groups := make([]int64, 10), make([]int32, 10)
		for i := range xs {
			xs[i], groups[i] = rng.Int64N(1000)-2, rng.Int32N(4)
		}
		xs[0], groups[0] = 99, 3
		whole.Update(groups, []batch.Vec{ints(xs...)}, nil, nil)
		part := b.New()
		part.Resize(4)
		part.Update(groups, []batch.Vec{ints(xs...)}, nil, nil)
		if rng.IntN(2) == 0 {
			merged.Merge(part, []int32{0, 1, 2, 3})
			continue
		}
		for g := range 4 {
			if err := merged.MergeState(g, part.AppendState(nil, g)); err != nil {
				t.Fatal(err)
			}
		}
	}
	all := []int32{0, 1, 2, 3}
	want(t, emit(merged, all...), emit(whole, all...)...)
	for g := range all {
		if got, wanted := merged.AppendState(nil, g), whole.AppendState(nil, g); string(got) != string(wanted) {
			t.Errorf("group %d: state %x, want %x", g, got, wanted)
		}
	}
	if !strings.Contains(emit(merged, 3)[0], "99 is refused") {
		t.Error("group 3 has a result")
	}
	for _, bad := range []string{"", "\x09", "\x01\x80"} {
		if err := merged.MergeState(0, []byte(bad)); err == nil || !strings.Contains(err.Error(), "SPREAD") {
			t.Errorf("state %q: %v", bad, err)
		}
	}
}

// TestAggregateRetracts: by the aggregate's own means, and by the runtime's.
func TestAggregateRetracts(t *testing.T) {
	for _, x := range []struct {
		name string
		b    fn.BoundAggregate
		want string
	}{
		{"own", bound(t, userfunc.Aggregate2("TOTAL", totalFold, userfunc.Options{}), fn.AggOptions{}, bigint, bigint), "30"},
		{"kept values", bound(t, userfunc.Aggregate1("SPREAD", spreadFold, userfunc.Options{}), fn.AggOptions{}, bigint), "2"},
	} {
		t.Run(x.name, func(t *testing.T) {
			a := fn.Retracting(x.b).New()
			r, ok := a.(fn.Retractor)
			if !ok {
				t.Fatalf("%T takes nothing back", a)
			}
			a.Resize(1)
			cols := []batch.Vec{ints(3, 100, 5, -1), ints(5, 4, 3, 2)}[:len(x.b.Params)]
			groups := []int32{0, 0, 0, 0}
			a.Update(groups, cols, nil, nil)
			r.Retract(groups, cols, nil, batch.Sel{1})
			want(t, emit(a, 0), x.want)
			other := fn.Retracting(x.b).New()
			other.Resize(1)
			other.Merge(a, []int32{0})
			want(t, emit(other, 0), x.want)
			other.Clear(0)
			if err := other.MergeState(0, a.AppendState(nil, 0)); err != nil {
				t.Fatal(err)
			}
			want(t, emit(other, 0), x.want)
		})
	}
}

// TestAggregateDistinct: each value once.
func TestAggregateDistinct(t *testing.T) {
	b := bound(t, userfunc.Aggregate2("TOTAL", totalFold, userfunc.Options{}), fn.AggOptions{Distinct: true}, bigint, bigint)
	a := b.New()
	a.Resize(1)
	a.Update([]int32{0, 0, 0}, []batch.Vec{ints(2, 2, 3), ints(10, 10, 10)}, nil, nil)
	want(t, emit(a, 0), "50")
}

// TestAggregateDistinctNull: where the argument may be NULL it is one of the values,
// also over rows that change.
func TestAggregateDistinctNull(t *testing.T) {
	kinds := userfunc.Fold1[userfunc.Null[int64], string, string]{
		Add: func(s *string, x userfunc.Null[int64]) error {
			if *s += "n"; x.Valid {
				*s = (*s)[:len(*s)-1] + "v"
			}
			return nil
		},
		State: userfunc.State[string, string]{
			Merge:  func(into, from *string) error { *into += *from; return nil },
			Result: func(s *string) (string, error) { return *s, nil },
			Save:   func(dst []byte, s *string) []byte { return append(dst, *s...) },
			Load:   func(s *string, saved []byte) error { *s = string(saved); return nil },
		},
	}
	b := bound(t, userfunc.Aggregate1("KINDS", kinds, userfunc.Options{}), fn.AggOptions{Distinct: true}, bigint)
	col := ints(2, -1, 2, -1, 3)
	for _, b := range []fn.BoundAggregate{b, fn.Retracting(b)} {
		a := b.New()
		a.Resize(1)
		a.Update(make([]int32, 5), []batch.Vec{col}, nil, nil)
		want(t, emit(a, 0), "nvv")
		if r, ok := a.(fn.Retractor); ok {
			r.Retract(make([]int32, 5), []batch.Vec{col}, nil, batch.Sel{1, 2, 4})
			want(t, emit(a, 0), "nv")
			r.Retract(make([]int32, 5), []batch.Vec{col}, nil, batch.Sel{3})
			want(t, emit(a, 0), "v")
		}
	}
}

// TestAggregateMemory: what a state holds is counted.
func TestAggregateMemory(t *testing.T) {
	f := userfunc.Fold1[string, []string, int64]{
		Add: func(s *[]string, x string) error { *s = append(*s, x); return nil },
		State: userfunc.State[[]string, int64]{
			Merge:  func(into, from *[]string) error { *into = append(*into, *from...); return nil },
			Result: func(s *[]string) (int64, error) { return int64(len(*s)), nil },
			Save:   func(dst []byte, s *[]string) []byte { return append(dst, strings.Join(*s, ",")...) },
			Load:   func(s *[]string, b []byte) error { *s = strings.Split(string(b), ","); return nil },
			Bytes:  func(s *[]string) int64 { return int64(1000 * len(*s)) },
		},
	}
	a := bound(t, userfunc.Aggregate1("GATHERED", f, userfunc.Options{}), fn.AggOptions{}, types.NewString()).New()
	a.Resize(2)
	a.Update([]int32{0, 1, 1}, []batch.Vec{texts("a", "b", "c")}, nil, nil)
	if n := a.Bytes(); n < 3000 || n > 3500 {
		t.Errorf("%d bytes", n)
	}
	if got := fmt.Sprint(emit(a, 0, 1)); got != "[1 2]" {
		t.Error(got)
	}
}
