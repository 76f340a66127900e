package state

// Groups is the number of key groups, for ever.
const Groups = 256

// GroupOf is the key group of a key hash: its highest byte, because hash tables
// use the lowest.
func GroupOf(hash uint64) int { return int(hash >> 56) }

// SubtaskOf is the subtask that owns a group.
func SubtaskOf(group, parallelism int) int { return group * parallelism / Groups }

// Range is the groups from From to, not including, To.
type Range struct{ From, To int }

// RangeOf is the groups of a subtask.
func RangeOf(subtask, parallelism int) Range {
	up := func(s int) int { return (s*Groups + parallelism - 1) / parallelism }
	return Range{up(subtask), up(subtask + 1)}
}

// Has reports whether a key hash is of one of the range's groups.
func (r Range) Has(hash uint64) bool { g := GroupOf(hash); return g >= r.From && g < r.To }

// Overlaps reports whether both ranges have a group.
func (r Range) Overlaps(o Range) bool { return r.From < o.To && o.From < r.To }
