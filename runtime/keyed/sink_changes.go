package keyed

import (
	"slices"

	"github.com/millrace/millrace/runtime/batch"
)

// complete makes a -D of each -U in s.good that the table would misunderstand: one
// whose +U died, and in a table with a key, where a -U means nothing by itself, one
// that no +U of the same key follows (a condition kept it back, or the key changed).
func (s *sinkPart) complete(b *batch.Batch) {
	if b.Kinds == nil {
		return
	}
	slices.Sort(s.lost)
	changed := false
	for i, row := range s.good {
		if b.Kinds[row] != batch.UpdateBefore || s.followed(b, i) {
			continue
		}
		if !changed {
			s.kinds = append(s.kinds[:0], b.Kinds...)
			changed = true
		}
		s.kinds[row] = batch.Delete
	}
	if changed {
		b.Kinds = s.kinds
	}
}

// followed reports a -U, row i of s.good, that can stay one.
func (s *sinkPart) followed(b *batch.Batch, i int) bool {
	row, next := s.good[i], int32(-1)
	if i+1 < len(s.good) {
		next = s.good[i+1]
	}
	paired := next >= 0 && b.Kinds[next] == batch.UpdateAfter
	if !s.upsert {
		// Without its +U because of a condition it stays -U, as in Flink.
		return paired || !s.died(row+1)
	}
	return paired && !slices.ContainsFunc(s.op.Table.PrimaryKey, func(c int) bool {
		return !batch.ValueEqual(&b.Cols[c], int(row), &b.Cols[c], int(next))
	})
}

// died reports a row that was given to the table and that it could not take.
func (s *sinkPart) died(row int32) bool {
	_, found := slices.BinarySearch(s.lost, row)
	return found
}
