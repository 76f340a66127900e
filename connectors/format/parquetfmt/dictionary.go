package parquetfmt

import (
	"bytes"
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// dictionary holds the distinct values of a column chunk in PLAIN form. Its
// hash table is in the scratch and rebuilt for each page, so that an open file
// holds none.
type dictionary struct {
	plain   []byte
	offsets []int32 // BYTE_ARRAY: start of each value's length in plain
	n       int
}

func (d *dictionary) reset() { d.plain, d.offsets, d.n = d.plain[:0], d.offsets[:0], 0 }

func (d *dictionary) truncate(n, size int) {
	d.n, d.plain = n, d.plain[:size]
	if len(d.offsets) > n {
		d.offsets = d.offsets[:n]
	}
}

// hashTable maps values to codes: open addressing, a slot holds the upper half
// of the hash and code+1.
type hashTable struct {
	slots []uint64
	shift uint8
	keys  []uint64 // by code, for values of 4 and 8 bytes
}

func (t *hashTable) reset(entries int) {
	size, shift := 512, uint8(64-9)
	for size < 3*entries {
		size, shift = size*2, shift-1
	}
	if cap(t.slots) < size {
		t.slots = make([]uint64, size)
	}
	t.slots, t.shift = t.slots[:size], shift
	clear(t.slots)
	t.keys = t.keys[:0]
}

func mix(k uint64) uint64 {
	k *= 0x9e3779b97f4a7c15
	return k ^ k>>29
}

// encodeDict turns the page's values into s.codes. It reports false, leaving
// the dictionary as it was, when the dictionary would exceed limit bytes or
// does not pay; the chunk then goes on without one.
func (l *leaf) encodeDict(s *scratch, limit int) bool {
	d := &l.dict
	n0, size0 := d.n, len(d.plain)
	if cap(s.codes) < l.vals {
		s.codes = make([]int32, 0, max(l.vals, maxPageValues))
	}
	s.codes = s.codes[:0]
	var ok bool
	switch l.width {
	case 4, 8:
		ok = l.encodeWords(s, limit)
	case 0:
		ok = l.encodeBytes(s, limit)
	default:
		ok = l.encodeFixed(s, limit)
	}
	if ok && n0 == 0 {
		// The first page of a chunk tells: dictionary and codes together must
		// beat plain values, else most values occur once.
		packed := len(d.plain) + l.vals*bitWidth(d.n-1)/8
		ok = packed < len(l.plain)-len(l.plain)/8
	}
	if !ok {
		d.truncate(n0, size0)
		l.dictOn = false
		return false
	}
	l.bounds.addPlain(l, d.plain[size0:], d.n-n0)
	return true
}

func (l *leaf) encodeWords(s *scratch, limit int) bool {
	d, t := &l.dict, &s.table
	t.reset(max(2*d.n, 256))
	word := func(b []byte) uint64 { return binary.LittleEndian.Uint64(b) }
	if l.width == 4 {
		word = func(b []byte) uint64 { return uint64(binary.LittleEndian.Uint32(b)) }
	}
	for i := 0; i < d.n; i++ {
		t.addWord(word(d.plain[i*l.width:]), int32(i))
	}
	var last uint64
	lastCode := int32(-1)
	for at := 0; at < len(l.plain); at += l.width {
		k := word(l.plain[at:])
		if k == last && lastCode >= 0 {
			s.codes = append(s.codes, lastCode)
			continue
		}
		code := t.word(k)
		if code < 0 {
			if len(d.plain)+l.width > limit {
				return false
			}
			code = int32(d.n)
			d.plain = append(d.plain, l.plain[at:at+l.width]...)
			d.n++
			t.addWord(k, code)
			if 2*d.n > len(t.slots) {
				t.growWords()
			}
		}
		last, lastCode = k, code
		s.codes = append(s.codes, code)
	}
	return true
}

func (t *hashTable) word(k uint64) int32 {
	mask := uint64(len(t.slots) - 1)
	for p := mix(k) >> t.shift; ; p = (p + 1) & mask {
		c := t.slots[p]
		if c == 0 {
			return -1
		}
		if t.keys[c-1] == k {
			return int32(c - 1)
		}
	}
}

func (t *hashTable) addWord(k uint64, code int32) {
	mask := uint64(len(t.slots) - 1)
	p := mix(k) >> t.shift
	for t.slots[p] != 0 {
		p = (p + 1) & mask
	}
	t.slots[p] = uint64(code) + 1
	t.keys = append(t.keys, k)
}

func (t *hashTable) growWords() {
	keys := append([]uint64(nil), t.keys...)
	t.reset(2 * len(keys))
	for i, k := range keys {
		t.addWord(k, int32(i))
	}
}

func (l *leaf) encodeBytes(s *scratch, limit int) bool {
	d, t := &l.dict, &s.table
	t.reset(max(2*d.n, 256))
	for i := 0; i < d.n; i++ {
		t.addBytes(xxhash.Sum64(d.bytes(i)), int32(i))
	}
	var last []byte
	lastCode := int32(-1)
	for at := 0; at < len(l.plain); {
		n := int(binary.LittleEndian.Uint32(l.plain[at:]))
		v := l.plain[at+4 : at+4+n]
		if lastCode >= 0 && bytes.Equal(v, last) {
			s.codes = append(s.codes, lastCode)
			at += 4 + n
			continue
		}
		h := xxhash.Sum64(v)
		code := t.bytes(h, v, d)
		if code < 0 {
			if len(d.plain)+4+n > limit {
				return false
			}
			code = int32(d.n)
			d.offsets = append(d.offsets, int32(len(d.plain)))
			d.plain = append(d.plain, l.plain[at:at+4+n]...)
			d.n++
			if 2*d.n > len(t.slots) {
				t.reset(2 * d.n)
				for i := 0; i < d.n; i++ {
					t.addBytes(xxhash.Sum64(d.bytes(i)), int32(i))
				}
			} else {
				t.addBytes(h, code)
			}
		}
		last, lastCode = v, code
		s.codes = append(s.codes, code)
		at += 4 + n
	}
	return true
}

func (d *dictionary) bytes(i int) []byte {
	at := int(d.offsets[i])
	n := int(binary.LittleEndian.Uint32(d.plain[at:]))
	return d.plain[at+4 : at+4+n]
}

func (t *hashTable) bytes(h uint64, v []byte, d *dictionary) int32 {
	mask := uint64(len(t.slots) - 1)
	for p := h >> t.shift; ; p = (p + 1) & mask {
		c := t.slots[p]
		if c == 0 {
			return -1
		}
		if uint32(c>>32) == uint32(h) && bytes.Equal(d.bytes(int(uint32(c))-1), v) {
			return int32(uint32(c)) - 1
		}
	}
}

func (t *hashTable) addBytes(h uint64, code int32) {
	mask := uint64(len(t.slots) - 1)
	p := h >> t.shift
	for t.slots[p] != 0 {
		p = (p + 1) & mask
	}
	t.slots[p] = uint64(uint32(h))<<32 | uint64(code) + 1
}

// encodeFixed is encodeBytes for values of one width other than 4 and 8.
func (l *leaf) encodeFixed(s *scratch, limit int) bool {
	d, t, w := &l.dict, &s.table, l.width
	t.reset(max(2*d.n, 256))
	at := func(i int) []byte { return d.plain[i*w : i*w+w] }
	fill := func() {
		for i := 0; i < d.n; i++ {
			t.addBytes(xxhash.Sum64(at(i)), int32(i))
		}
	}
	fill()
	mask := uint64(len(t.slots) - 1)
	for pos := 0; pos < len(l.plain); pos += w {
		v := l.plain[pos : pos+w]
		h := xxhash.Sum64(v)
		code := int32(-1)
		for p := h >> t.shift; t.slots[p] != 0; p = (p + 1) & mask {
			c := t.slots[p]
			if uint32(c>>32) == uint32(h) && bytes.Equal(at(int(uint32(c))-1), v) {
				code = int32(uint32(c)) - 1
				break
			}
		}
		if code < 0 {
			if len(d.plain)+w > limit {
				return false
			}
			code = int32(d.n)
			d.plain = append(d.plain, v...)
			d.n++
			if 2*d.n > len(t.slots) {
				t.reset(2 * d.n)
				fill()
				mask = uint64(len(t.slots) - 1)
			} else {
				t.addBytes(h, code)
			}
		}
		s.codes = append(s.codes, code)
	}
	return true
}
