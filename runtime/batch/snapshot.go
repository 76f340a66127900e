package batch

import "slices"

// Snapshot is v as it is now, for another goroutine to read while rows are added to v,
// which is Flat. It shares the values, of which those that are there never change; only
// bitmaps, whose last byte does, are copied.
func (v *Vec) Snapshot() Vec {
	s := *v
	s.Valid, s.Bools, s.spare = slices.Clone(v.Valid), slices.Clone(v.Bools), nil
	s.Children = make([]*Vec, len(v.Children))
	for i, c := range v.Children {
		child := c.Snapshot()
		s.Children[i] = &child
	}
	return s
}

// Snapshot is the columns of b as they are now, as Vec.Snapshot.
func (b *Batch) Snapshot() Batch {
	s := Batch{Schema: b.Schema, Cols: make([]Vec, len(b.Cols)), Len: b.Len}
	for i := range b.Cols {
		s.Cols[i] = b.Cols[i].Snapshot()
	}
	return s
}
