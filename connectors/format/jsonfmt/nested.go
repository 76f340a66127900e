package jsonfmt

import (
	"bytes"
	"hash/maphash"
	"unicode/utf8"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
)

// list decodes the array at p.
func (d *Decoder) list(n *node, p, depth int) int {
	b := d.b
	if depth++; depth > maxDepth {
		d.tooDeep = true
		return ^p
	}
	p = skipSpace(b, p+1)
	if p < len(b) && b[p] == ']' {
		format.CloseList(n.vec)
		return p + 1
	}
	for {
		if p = d.value(n.elem, p, depth); p < 0 {
			return p
		}
		p = skipSpace(b, p)
		if p >= len(b) {
			return ^p
		}
		switch b[p] {
		case ',':
			p = skipSpace(b, p+1)
		case ']':
			format.CloseList(n.vec)
			return p + 1
		default:
			return ^p
		}
	}
}

// linearKeys is the size of a map up to which repeated keys are looked for by
// comparing.
const linearKeys = 16

// mapValue decodes the object at p into a MAP. A key that comes again replaces
// the earlier one: the object is then decoded a second time without the
// entries that do not stand.
func (d *Decoder) mapValue(n *node, p, depth int) int {
	if depth++; depth > maxDepth {
		d.tooDeep = true
		return ^p
	}
	first := n.key.vec.Len
	pending := d.a.Pending()
	end, repeated, badKey := d.mapEntries(n, p+1, depth, nil)
	if end < 0 {
		return end
	}
	if len(repeated) > 0 {
		d.dropEntries(n, first, pending)
		end, _, badKey = d.mapEntries(n, p+1, depth, repeated)
		for range repeated {
			d.a.Count(int(n.column), format.DuplicateKey)
		}
	}
	if badKey {
		d.dropEntries(n, first, pending)
		d.unfit(n, d.b[p:end], badMapKey)
		return end
	}
	format.CloseList(n.vec)
	return end
}

func (d *Decoder) dropEntries(n *node, first, pending int) {
	format.Truncate(n.key.vec, first)
	format.Truncate(n.elem.vec, first)
	d.a.ResetPending(pending)
}

// mapEntries decodes the entries of an object from behind its '{', but for
// those whose ordinals are in without. It returns the ordinals of entries
// whose key comes again later.
func (d *Decoder) mapEntries(n *node, p, depth int, without map[int]bool) (end int, repeated map[int]bool, badKey bool) {
	b := d.b
	seen := keySet{table: &d.mapKeys, keys: n.key.vec, first: n.key.vec.Len}
	p = skipSpace(b, p)
	if p < len(b) && b[p] == '}' {
		return p + 1, nil, false
	}
	for entry := 0; ; entry++ {
		if p >= len(b) || b[p] != '"' {
			return ^p, nil, false
		}
		keyEnd, plain := d.scanString(b, p+1)
		if keyEnd < 0 {
			return keyEnd, nil, false
		}
		key := b[p+1 : keyEnd]
		ok := true
		if !plain {
			d.scratch, ok = unescape(d.scratch[:0], key)
			key = d.scratch
		}
		ok = ok && format.Room(n.key.vec, len(key)) &&
			(len(key) <= n.key.maxLen || utf8.RuneCount(key) <= n.key.maxLen)
		badKey = badKey || !ok
		p = skipSpace(b, keyEnd+1)
		if p >= len(b) || b[p] != ':' {
			return ^p, nil, false
		}
		p = skipSpace(b, p+1)
		if without[entry] {
			p = d.skip(b, p, depth)
		} else {
			if without == nil {
				if earlier, again := seen.add(key, entry); again {
					if repeated == nil {
						repeated = map[int]bool{}
					}
					repeated[earlier] = true
				}
			}
			format.AppendBytes(n.key.vec, key)
			p = d.value(n.elem, p, depth)
		}
		if p < 0 {
			return p, nil, false
		}
		p = skipSpace(b, p)
		if p >= len(b) {
			return ^p, nil, false
		}
		switch b[p] {
		case ',':
			p = skipSpace(b, p+1)
		case '}':
			return p + 1, repeated, badKey
		default:
			return ^p, nil, false
		}
	}
}

// keySet finds keys that come again in one map.
type keySet struct {
	table *keyTable
	keys  *batch.Vec
	first int // index in keys of the map's first key
	// hashed: the map has grown beyond linearKeys and its keys are in table.
	hashed bool
}

// add gives the latest earlier entry of the same key.
func (s *keySet) add(key []byte, entry int) (earlier int, again bool) {
	if entry < linearKeys {
		for i := entry - 1; i >= 0; i-- {
			if bytes.Equal(s.keys.Bytes(s.first+i), key) {
				return i, true
			}
		}
		return 0, false
	}
	if !s.hashed {
		s.hashed = true
		s.table.reset()
		for i := range entry {
			s.table.put(s.keys, s.first, s.keys.Bytes(s.first+i), i)
		}
	}
	return s.table.put(s.keys, s.first, key, entry)
}

// keyTable is a hash table of the entries of one map, kept for the next map.
// The hash is seeded by chance, so that no input can be made to collide; the
// result does not depend on it.
type keyTable struct {
	seed  maphash.Seed
	slots []int32 // entry + 1, 0 is free
	used  int
}

func (t *keyTable) reset() {
	if t.slots == nil {
		t.seed = maphash.MakeSeed()
		t.slots = make([]int32, 8*linearKeys)
	}
	clear(t.slots)
	t.used = 0
}

// put sets the entry of a key and gives the one it had.
func (t *keyTable) put(keys *batch.Vec, first int, key []byte, entry int) (earlier int, again bool) {
	if t.used*2 >= len(t.slots) {
		old := t.slots
		t.slots = make([]int32, 2*len(old))
		t.used = 0
		for _, e := range old {
			if e > 0 {
				t.put(keys, first, keys.Bytes(first+int(e-1)), int(e-1))
			}
		}
	}
	mask := uint64(len(t.slots) - 1)
	for i := maphash.Bytes(t.seed, key) & mask; ; i = (i + 1) & mask {
		e := t.slots[i]
		if e == 0 {
			t.slots[i] = int32(entry + 1)
			t.used++
			return 0, false
		}
		if bytes.Equal(keys.Bytes(first+int(e-1)), key) {
			t.slots[i] = int32(entry + 1)
			return int(e - 1), true
		}
	}
}
