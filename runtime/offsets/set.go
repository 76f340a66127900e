package offsets

import (
	"encoding/binary"
	"errors"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Range is the offsets from First (included) to End (excluded).
type Range struct{ First, End int64 }

// Set is a set of offsets: sorted, disjoint, non-adjacent, non-empty ranges.
type Set []Range

// ErrEncoding is returned for bytes that are no encoded Set.
var ErrEncoding = errors.New("malformed offset set")

// Of returns the set of one range; empty if end <= first.
func Of(first, end int64) Set {
	if end <= first {
		return nil
	}
	return Set{{first, end}}
}

// Add adds the range [first, end) in place; it is cheap when ranges come in
// ascending order.
func (s *Set) Add(first, end int64) {
	if end <= first {
		return
	}
	n := len(*s)
	if n == 0 || first > (*s)[n-1].End {
		*s = append(*s, Range{first, end})
		return
	}
	last := &(*s)[n-1]
	if first >= last.First {
		last.End = max(last.End, end)
		return
	}
	*s = s.Union(Set{{first, end}})
}

// Contains reports whether offset o is in the set.
func (s Set) Contains(o int64) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].End > o })
	return i < len(s) && s[i].First <= o
}

// Count is the number of offsets in the set.
func (s Set) Count() int64 {
	var n int64
	for _, r := range s {
		n += r.End - r.First
	}
	return n
}

// Union returns the offsets that are in s or in o.
func (s Set) Union(o Set) Set {
	if len(s) == 0 {
		return slices.Clone(o)
	}
	out := make(Set, 0, len(s)+len(o))
	for len(s) > 0 || len(o) > 0 {
		var r Range
		if len(o) == 0 || len(s) > 0 && s[0].First <= o[0].First {
			r, s = s[0], s[1:]
		} else {
			r, o = o[0], o[1:]
		}
		if n := len(out); n > 0 && r.First <= out[n-1].End {
			out[n-1].End = max(out[n-1].End, r.End)
		} else {
			out = append(out, r)
		}
	}
	return out
}

// Subtract returns the offsets of s that are not in o.
func (s Set) Subtract(o Set) Set {
	var out Set
	for _, r := range s {
		for len(o) > 0 && o[0].End <= r.First {
			o = o[1:]
		}
		for _, x := range o {
			if x.First >= r.End {
				break
			}
			if x.First > r.First {
				out = append(out, Range{r.First, x.First})
			}
			r.First = min(max(r.First, x.End), r.End)
		}
		if r.First < r.End {
			out = append(out, r)
		}
	}
	return out
}

// Intersect returns the offsets that are in both sets.
func (s Set) Intersect(o Set) Set { return s.Subtract(s.Subtract(o)) }

// From returns the offsets of s at or above first.
func (s Set) From(first int64) Set {
	i := sort.Search(len(s), func(i int) bool { return s[i].End > first })
	if i == len(s) {
		return nil
	}
	out := slices.Clone(s[i:])
	out[0].First = max(out[0].First, first)
	return out
}

// First is the lowest offset; ok is false for an empty set.
func (s Set) First() (o int64, ok bool) {
	if len(s) == 0 {
		return 0, false
	}
	return s[0].First, true
}

// End is one above the highest offset, 0 for an empty set.
func (s Set) End() int64 {
	if len(s) == 0 {
		return 0
	}
	return s[len(s)-1].End
}

// String is the set for people: "3-7,9".
func (s Set) String() string {
	var b strings.Builder
	for i, r := range s {
		if i > 0 {
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
	b = binary.AppendUvarint(b, uint64(len(s)))
	var end int64
	for _, r := range s {
		b = binary.AppendUvarint(b, uint64(r.First-end))
		b = binary.AppendUvarint(b, uint64(r.End-r.First-1))
		end = r.End
	}
	return b
}

// Decode reads one encoded set from b and returns it with the bytes behind it.
func Decode(b []byte) (Set, []byte, error) {
	n, w := binary.Uvarint(b)
	// Each range takes at least two bytes, which bounds the allocation.
	if w <= 0 || n > uint64(len(b)-w)/2 {
		return nil, nil, ErrEncoding
	}
	b = b[w:]
	s := make(Set, 0, n)
	var end int64
	for i := range n {
		gap, w := binary.Uvarint(b)
		if w <= 0 {
			return nil, nil, ErrEncoding
		}
		length, v := binary.Uvarint(b[w:])
		if v <= 0 {
			return nil, nil, ErrEncoding
		}
		b = b[w+v:]
		first := end + int64(gap)
		last := first + int64(length)
		if gap > 1<<62 || length > 1<<62 || first < end || last < first || last == 1<<63-1 || i > 0 && gap == 0 {
			return nil, nil, ErrEncoding
		}
		end = last + 1
		s = append(s, Range{first, end})
	}
	if len(s) == 0 {
		s = nil
	}
	return s, b, nil
}
