package fn

import (
	"bytes"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/batch"
)

// valueSet is a set of values of one type by their canonical encoding, NULL
// being a value. It keeps its memory between rows.
type valueSet struct {
	buf   []byte  // encodings of the values, one after another
	ends  []int32 // end of each in buf
	table []int32 // 1 + number of a value by hash, open addressing; 0 is free
}

func (s *valueSet) reset() {
	s.buf, s.ends = s.buf[:0], s.ends[:0]
	clear(s.table)
}

// add puts row i of v in and reports whether it was not there.
func (s *valueSet) add(v *batch.Vec, i int) bool {
	if 2*(len(s.ends)+1) > len(s.table) {
		s.grow()
	}
	start := len(s.buf)
	s.buf = batch.AppendValue(s.buf, v, i)
	slot, found := s.find(s.buf[start:])
	if found {
		s.buf = s.buf[:start]
		return false
	}
	s.ends = append(s.ends, int32(len(s.buf)))
	s.table[slot] = int32(len(s.ends))
	return true
}

// has reports whether row i of v is in the set.
func (s *valueSet) has(v *batch.Vec, i int) bool {
	if len(s.ends) == 0 {
		return false
	}
	start := len(s.buf)
	s.buf = batch.AppendValue(s.buf, v, i)
	_, found := s.find(s.buf[start:])
	s.buf = s.buf[:start]
	return found
}

// find is the slot of an encoding, or the free one where it belongs.
func (s *valueSet) find(enc []byte) (slot uint64, found bool) {
	m := uint64(len(s.table) - 1)
	for slot = xxhash.Sum64(enc) & m; ; slot = (slot + 1) & m {
		n := s.table[slot]
		if n == 0 {
			return slot, false
		}
		if bytes.Equal(s.value(n-1), enc) {
			return slot, true
		}
	}
}

func (s *valueSet) value(n int32) []byte {
	from := int32(0)
	if n > 0 {
		from = s.ends[n-1]
	}
	return s.buf[from:s.ends[n]]
}

func (s *valueSet) grow() {
	s.table = make([]int32, max(16, 2*len(s.table)))
	for n := range s.ends {
		slot, _ := s.find(s.value(int32(n)))
		s.table[slot] = int32(n) + 1
	}
}

// listScratch is what the functions of collections keep between calls.
type listScratch struct {
	a, b  valueSet
	keys  []byte // order keys of the elements of one row
	spans []keySpan
	from  []entryAt
}

// keySpan is an element of a row with its order key in listScratch.keys.
type keySpan struct{ elem, from, to int }

// entryAt is an entry of the map, or of the key array, with number arg.
type entryAt struct{ arg, elem int }

func listScratchOf(ctx *Context) *listScratch {
	if s, ok := (*ctx.scratch).(*listScratch); ok {
		return s
	}
	s := &listScratch{}
	*ctx.scratch = s
	return s
}
