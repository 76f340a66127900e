package operator

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/expr"
	"github.com/millrace/millrace/runtime/state"
	"github.com/millrace/millrace/runtime/state/spill"
	"github.com/millrace/millrace/storage/vfs"
)

// spilled is an operator that spills beside the same one in memory: they must say the
// same.
type spilled struct {
	t      *testing.T
	rng    *rand.Rand
	fresh  func() Keyed
	memory Keyed
	disk   Spilling
	store  *spill.Store
	fs     vfs.FS
	said   [2][]string
	moved  int
	parts  int // the most that were saved
}

func newSpilled(t *testing.T, rng *rand.Rand, fresh func() Keyed) *spilled {
	s := &spilled{t: t, rng: rng, fresh: fresh, memory: fresh(), fs: vfs.NewMem()}
	s.disk = s.spilling(1)
	return s
}

func (s *spilled) spilling(budget int64) Spilling {
	k := s.fresh().(Spilling)
	s.store = spill.New(s.fs, "/spill")
	k.SpillTo(s.store, budget)
	return k
}

// results notes rows with their kinds.
func (s *spilled) results(i int) *Results {
	return &Results{Emit: func(b *batch.Batch) error {
		for row := range b.Len {
			kind := batch.Insert
			if b.Kinds != nil {
				kind = b.Kinds[row]
			}
			text := fmt.Sprint(kind)
			for c := range b.Cols {
				if b.Cols[c].IsNull(row) {
					text += "|NULL"
				} else {
					text += "|" + cell(&b.Cols[c], row)
				}
			}
			s.said[i] = append(s.said[i], text)
		}
		return nil
	}, Dead: func(_ *batch.Batch, e *batch.ValueError) { s.t.Fatalf("a row died: %v", e) }}
}

// same compares what was said since the last time, whose order is free.
func (s *spilled) same(what string, args ...any) {
	s.t.Helper()
	for i := range s.said {
		slices.Sort(s.said[i])
	}
	if !slices.Equal(s.said[0], s.said[1]) {
		s.t.Fatalf("%s: spilled\n%s\nin memory\n%s", fmt.Sprintf(what, args...), strings.Join(s.said[1], "\n"), strings.Join(s.said[0], "\n"))
	}
	s.said = [2][]string{}
}

func (s *spilled) both(f func(k Keyed, out *Results) error) {
	s.t.Helper()
	for i, k := range []Keyed{s.memory, s.disk} {
		if err := f(k, s.results(i)); err != nil {
			s.t.Fatal(err)
		}
	}
}

// fold hands over rows, behind which state goes to disk two times of three.
func (s *spilled) fold(ctx *expr.Context, in *KeyedRows) {
	s.t.Helper()
	s.both(func(k Keyed, out *Results) error { return k.Fold(ctx, in, out) })
	if s.rng.IntN(3) > 0 {
		s.spill()
	}
}

// advance puts the watermark forward, and compares what was said.
func (s *spilled) advance(ctx *expr.Context, watermark int64, what string, args ...any) {
	s.t.Helper()
	s.both(func(k Keyed, out *Results) error { return k.Advance(ctx, watermark, out) })
	s.same(what, args...)
}

// end is the end of the input: nothing stays on disk.
func (s *spilled) end(ctx *expr.Context, what string, args ...any) {
	s.t.Helper()
	s.advance(ctx, batch.MaxWatermark, what, args...)
	if n := s.store.Bytes(); n != 0 {
		s.t.Fatalf("%s: %d bytes are on disk after the end", fmt.Sprintf(what, args...), n)
	}
}

// trips is how often the state of several was on disk, and in how many parts it was
// saved at most.
type trips struct{ moved, parts int }

func (x *trips) add(s *spilled) { x.moved, x.parts = x.moved+s.moved, max(x.parts, s.parts) }

// atLeast makes sure that a test has tested something.
func (x *trips) atLeast(t *testing.T, moved, parts int) {
	t.Helper()
	if x.moved < moved || x.parts < parts {
		t.Fatalf("state was on disk %d times, saved in at most %d parts", x.moved, x.parts)
	}
}

func (s *spilled) spill() {
	s.t.Helper()
	if err := s.disk.Spill(); err != nil {
		s.t.Fatal(err)
	}
	if s.disk.Spilled() {
		s.moved++
	}
}

// save is the state of the spilling one, in parts.
func (s *spilled) save() [][]byte {
	s.t.Helper()
	if !s.disk.Spilled() && s.rng.IntN(2) == 0 {
		return [][]byte{s.disk.Save()}
	}
	p := new(state.Payload)
	if err := s.disk.SaveTo(p); err != nil {
		s.t.Fatal(err)
	}
	// The operator goes on before the payload is read.
	s.spill()
	var parts [][]byte
	var buf []byte
	for i := range p.Parts() {
		var b bytes.Buffer
		var err error
		if buf, err = p.WritePart(&b, i, buf); err != nil || p.PartBytes(i) >= 0 && int64(b.Len()) != p.PartBytes(i) {
			s.t.Fatalf("%d bytes of a part of %d: %v", b.Len(), p.PartBytes(i), err)
		}
		parts = append(parts, b.Bytes())
	}
	p.Release()
	s.parts = max(s.parts, len(parts))
	return parts
}

// restart goes on from saved state at another parallelism, at times with enough
// memory.
func (s *spilled) restart(now int64) {
	s.t.Helper()
	parts, own := s.save(), s.memory.Save()
	old := s.store
	next := s.spilling([]int64{1, 1 << 12, 1 << 40}[s.rng.IntN(3)])
	memory := s.fresh()
	for _, k := range []Keyed{memory, next} {
		if a, ok := k.(Aging); ok {
			a.Age(now)
		}
	}
	cut := 1 + s.rng.IntN(state.Groups-1)
	for _, r := range []state.Range{{From: 0, To: cut}, {From: cut, To: state.Groups}} {
		loadParts(s.t, next, parts, r)
		if err := memory.Load(own, r); err != nil {
			s.t.Fatal(err)
		}
	}
	if s.rng.IntN(4) == 0 {
		// What was spilled is as good for one that does not spill.
		plain := s.fresh()
		if a, ok := plain.(Aging); ok {
			a.Age(now)
		}
		loadParts(s.t, plain, parts, state.Range{From: 0, To: state.Groups})
		memory = plain
	}
	s.memory, s.disk = memory, next
	if old == s.store {
		s.t.Fatal("the store is the old one")
	}
}

func loadParts(t testing.TB, k Keyed, parts [][]byte, r state.Range) {
	t.Helper()
	for i, b := range parts {
		if err := k.Load(b, r); err != nil {
			t.Fatalf("part %d of %d: %v", i+1, len(parts), err)
		}
	}
}

// failEachOperation runs run on disks of which each operation fails once, and on full ones:
// that is an error with its cause, and never another result.
func failEachOperation[T any](t *testing.T, what string, run func(fs vfs.FS) (T, error)) {
	t.Helper()
	want, err := run(vfs.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for n := int64(0); ; n++ {
		nth := &vfs.Nth{Kinds: vfs.OpsAll &^ (vfs.OpClose | vfs.OpRemove), From: n}
		got, err := run(vfs.NewFault(vfs.NewMem(), nth))
		if nth.Fired() == 0 {
			break
		}
		var e *spill.Error
		switch {
		case err == nil && reflect.DeepEqual(got, want): // the directory's removal at the end
		case !errors.Is(err, syscall.EIO) || !errors.As(err, &e):
			t.Fatalf("%s, operation %d fails: %v, and gives %v, want %v", what, n, err, got, want)
		default:
			failed++
		}
	}
	if failed < 20 {
		t.Errorf("%s: %d operations failed", what, failed)
	}
	for _, limit := range []int64{0, 500, 4000} {
		if _, err := run(vfs.NewLimited(vfs.NewMem(), limit)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s, room for %d bytes: %v", what, limit, err)
		}
	}
}

// drawChanges draws n changes: new rows, and where retracts some of those that are there,
// taken back. Keys and values are below those bounds.
func drawChanges(rng *rand.Rand, n int, keys, values int64, retracts bool, there *[]change) []change {
	var out []change
	for range n {
		if have := len(*there); retracts && have > 0 && rng.IntN(2) == 0 {
			i := rng.IntN(have)
			x := (*there)[i]
			*there = slices.Delete(*there, i, i+1)
			x.kind = batch.Delete
			out = append(out, x)
			continue
		}
		x := change{rng.Int64N(keys), rng.Int64N(values), batch.Insert}
		out, *there = append(out, x), append(*there, x)
	}
	return out
}

// collide makes few hashes of many.
func collide(in *KeyedRows) *KeyedRows {
	for i := range in.Hashes {
		in.Hashes[i] &= 0xf8 << 56
	}
	return in
}
