package offsets

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Range is the offsets from First (included) to End (excluded).
type Range struct{ First, End int64 }

// Set is a set of offsets. The zero value is empty. Copies are cheap and may be
// read side by side; of copies that share their memory only one may be added to.
//
// Equal sets are equal for reflect.DeepEqual, too.
type Set struct {
	n     int   // ranges
	first int64 // of the first range
	last  Range // the last range
	// packed is the ranges before the last one, encoded as AppendTo does, and
	// end the end of the last of them.
	packed []byte
	end    int64
	// marks are the places of every markEvery-th range, for Contains.
	marks []mark
}

// mark is a place in packed: the range there is the first one behind end.
type mark struct {
	end int64
	at  int
}

const markEvery = 64

// ErrEncoding is returned for bytes that are no encoded Set.
var ErrEncoding = errors.New("malformed offset set")

// Of returns the set of one range; empty if end <= first.
func Of(first, end int64) (s Set) {
	s.Add(first, end)
	return s
}

// OfRanges returns the union of ranges.
func OfRanges(ranges ...Range) (s Set) {
	for _, r := range ranges {
		s.Add(r.First, r.End)
	}
	return s
}

// Empty reports whether the set has no offset.
func (s Set) Empty() bool { return s.n == 0 }

// Ranges is how many disjoint, non-adjacent ranges the set has.
func (s Set) Ranges() int { return s.n }

// Add adds the range [first, end) in place; it is cheap when ranges come in
// ascending order.
func (s *Set) Add(first, end int64) {
	switch {
	case end <= first:
	case s.n == 0:
		s.n, s.first, s.last = 1, first, Range{first, end}
	case first > s.last.End:
		s.pack()
		s.n++
		s.last = Range{first, end}
	case first >= s.last.First:
		s.last.End = max(s.last.End, end)
	default:
		*s = s.Union(Of(first, end))
	}
}

// pack moves the last range behind the others.
func (s *Set) pack() {
	if (s.n-1)%markEvery == 0 {
		s.marks = append(s.marks, mark{s.end, len(s.packed)})
	}
	s.packed = binary.AppendUvarint(s.packed, uint64(s.last.First-s.end))
	s.packed = binary.AppendUvarint(s.packed, uint64(s.last.End-s.last.First-1))
	s.end = s.last.End
}

// cursor reads the ranges of a set, in order.
type cursor struct {
	b    []byte
	end  int64 // of the range before
	last Range
	left int
	Range
}

func (s *Set) cursor() cursor { return cursor{b: s.packed, last: s.last, left: s.n} }

// next moves to the next range; false: there is none.
func (c *cursor) next() bool {
	switch c.left {
	case 0:
		return false
	case 1:
		c.Range = c.last
	default:
		gap, w := binary.Uvarint(c.b)
		length, v := binary.Uvarint(c.b[w:])
		c.b = c.b[w+v:]
		c.First = c.end + int64(gap)
		c.End = c.First + int64(length) + 1
		c.end = c.End
	}
	c.left--
	return true
}

// Equal reports whether both sets have the same offsets.
func (s Set) Equal(o Set) bool {
	return s.n == o.n && s.last == o.last && bytes.Equal(s.packed, o.packed)
}

// All gives the ranges in ascending order.
func (s Set) All() iter.Seq[Range] {
	return func(yield func(Range) bool) {
		for c := s.cursor(); c.next(); {
			if !yield(c.Range) {
				return
			}
		}
	}
}

// Contains reports whether offset o is in the set.
func (s Set) Contains(o int64) bool {
	if s.n == 0 || o < s.first || o >= s.last.First {
		return s.n > 0 && o >= s.last.First && o < s.last.End
	}
	k := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].end > o })
	if k == 0 {
		return false
	}
	m := s.marks[k-1]
	for c := (cursor{b: s.packed[m.at:], end: m.end, last: s.last, left: s.n - (k-1)*markEvery}); c.next() && c.First <= o; {
		if o < c.End {
			return true
		}
	}
	return false
}

// Count is the number of offsets in the set.
func (s Set) Count() (n int64) {
	for c := s.cursor(); c.next(); {
		n += c.End - c.First
	}
	return n
}

// CountIn is the number of offsets in the set from first (included) to end
// (excluded).
func (s Set) CountIn(first, end int64) (n int64) {
	if s.n > 0 && first <= s.first && end >= s.last.End {
		return s.Count()
	}
	for c := s.cursor(); c.next() && c.First < end; {
		n += max(min(c.End, end)-max(c.First, first), 0)
	}
	return n
}

// Union returns the offsets that are in s or in o.
func (s Set) Union(o Set) (out Set) {
	a, b := s.cursor(), o.cursor()
	for more, other := a.next(), b.next(); more || other; {
		if !other || more && a.First <= b.First {
			out.Add(a.First, a.End)
			more = a.next()
		} else {
			out.Add(b.First, b.End)
			other = b.next()
		}
	}
	return out
}

// UnionOf returns the offsets that are in any of many sets.
func UnionOf(sets ...Set) Set {
	switch n := len(sets); n {
	case 0:
		return Set{}
	case 1:
		return sets[0]
	default:
		return UnionOf(sets[:n/2]...).Union(UnionOf(sets[n/2:]...))
	}
}

// Subtract returns the offsets of s that are not in o.
func (s Set) Subtract(o Set) (out Set) {
	b := o.cursor()
	other := b.next()
	for a := s.cursor(); a.next(); {
		r := a.Range
		for other && b.End <= r.First {
			other = b.next()
		}
		for other && b.First < r.End {
			out.Add(r.First, b.First)
			r.First = max(r.First, b.End)
			if b.End > r.End {
				break // it may reach into the next range
			}
			other = b.next()
		}
		out.Add(r.First, r.End)
	}
	return out
}

// Intersect returns the offsets that are in both sets.
func (s Set) Intersect(o Set) (out Set) {
	a, b := s.cursor(), o.cursor()
	for more, other := a.next(), b.next(); more && other; {
		out.Add(max(a.First, b.First), min(a.End, b.End))
		if a.End <= b.End {
			more = a.next()
		} else {
			other = b.next()
		}
	}
	return out
}

// From returns the offsets of s at or above first.
func (s Set) From(first int64) (out Set) {
	if s.n == 0 || first <= s.first {
		return s
	}
	for c := s.cursor(); c.next(); {
		out.Add(max(c.First, first), c.End)
	}
	return out
}

// First is the lowest offset; ok is false for an empty set.
func (s Set) First() (o int64, ok bool) { return s.first, s.n > 0 }

// End is one above the highest offset, 0 for an empty set.
func (s Set) End() int64 { return s.last.End }

// Clip gives back memory that was kept for more ranges, for a set that is kept.
func (s Set) Clip() Set {
	if cap(s.packed) > len(s.packed)+len(s.packed)/8 {
		s.packed, s.marks = slices.Clone(s.packed), slices.Clone(s.marks)
	}
	return s
}

// String is the set for people: "3-7,9".
func (s Set) String() string {
	var b strings.Builder
	for r := range s.All() {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(r.First, 10))
		if r.End-r.First > 1 {
			b.WriteByte('-')
			b.WriteString(strconv.FormatInt(r.End-1, 10))
		}
	}
	return b.String()
}

// AppendTo appends the encoding of s to b.
func (s Set) AppendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(s.n))
	if s.n == 0 {
		return b
	}
	b = append(b, s.packed...)
	b = binary.AppendUvarint(b, uint64(s.last.First-s.end))
	return binary.AppendUvarint(b, uint64(s.last.End-s.last.First-1))
}

// Decode reads one encoded set from b and returns it with the bytes behind it.
func Decode(b []byte) (s Set, rest []byte, err error) {
	n, w := binary.Uvarint(b)
	// Each range takes at least two bytes, which bounds the allocation.
	if w <= 0 || n > uint64(len(b)-w)/2 {
		return Set{}, nil, ErrEncoding
	}
	b = b[w:]
	var end int64
	for i := range n {
		gap, w := binary.Uvarint(b)
		if w <= 0 {
			return Set{}, nil, ErrEncoding
		}
		length, v := binary.Uvarint(b[w:])
		if v <= 0 {
			return Set{}, nil, ErrEncoding
		}
		b = b[w+v:]
		first := end + int64(gap)
		last := first + int64(length)
		if gap > 1<<62 || length > 1<<62 || first < end || last < first || last == 1<<63-1 || i > 0 && gap == 0 {
			return Set{}, nil, ErrEncoding
		}
		end = last + 1
		s.Add(first, end)
	}
	return s.Clip(), b, nil
}
