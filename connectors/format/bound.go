package format

import (
	"math"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// TextBound tells from the size of columns how long rows can become as text, so
// that sinks with a limit measure only those that may be above it.
type TextBound struct {
	// Maps: a column holds a map, whose NULL keys an encoder refuses.
	Maps bool
	// nameBytes is what the columns' names take in a row, twice and more.
	nameBytes int
}

// Add takes a column in.
func (t *TextBound) Add(f types.Field) {
	t.Maps = t.Maps || holdsMap(f.Type)
	t.nameBytes += nameBytes(f)
}

// Rows is an upper bound of the bytes of rows from to to-1 of a batch, with at
// most 6 bytes of text for one of a string.
func (t *TextBound) Rows(b *batch.Batch, from, to int) int {
	n := (to - from) * t.nameBytes
	for i := range b.Cols {
		n = AddBound(n, valueBound(&b.Cols[i], from, to))
	}
	return n
}

// AddBound is a+b, or the largest int.
func AddBound(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

func holdsMap(t types.Type) bool {
	if t.Kind == types.Map || t.Elem != nil && holdsMap(*t.Elem) {
		return true
	}
	for _, f := range t.Fields {
		if holdsMap(f.Type) {
			return true
		}
	}
	return false
}

// nameBytes bounds what a column's names take in a row, those of nested fields
// of one element included.
func nameBytes(f types.Field) int {
	n := 6*len(f.Name) + 8
	t := f.Type
	for t.Elem != nil {
		t = *t.Elem
	}
	for _, x := range t.Fields {
		n += nameBytes(x)
	}
	return n
}

func valueBound(v *batch.Vec, from, to int) int {
	const fixed = 64 // longest number or time, with separators
	if v.Enc != batch.Flat {
		return math.MaxInt // to be measured
	}
	n := (to - from) * fixed
	switch v.Type.Physical() {
	case types.PhysBytes:
		return n + 6*int(v.Offsets[to]-v.Offsets[from])
	case types.PhysList, types.PhysMap:
		for _, c := range v.Children {
			n = AddBound(n, valueBound(c, int(v.Offsets[from]), int(v.Offsets[to])))
		}
		names := 0
		if v.Type.Elem != nil {
			names = nameBytes(types.Field{Type: *v.Type.Elem})
		}
		return AddBound(n, int(v.Offsets[to]-v.Offsets[from])*names)
	case types.PhysRow:
		for _, c := range v.Children {
			n = AddBound(n, valueBound(c, from, to))
		}
	}
	return n
}
