package parquetfmt

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/parquet-go/parquet-go/format"
)

// maxPageValues ends a page whatever its size, so that a reader that skips
// rows never decodes much more than it needs.
const maxPageValues = 20000

// maxValueBytes bounds a page body, whose size is an int32 in the format.
const maxBodyBytes = 1 << 30

// dictionarySkipGroups is for how many row groups a column whose dictionary
// did not pay is written plain before it is tried again.
const dictionarySkipGroups = 7

// leaf is one primitive column of an open file: the page being filled and the
// compressed pages of the current row group.
type leaf struct {
	path           []string
	phys           format.Type
	conv           conv
	width          int // bytes of a value; 0: BYTE_ARRAY
	text           bool
	maxDef, maxRep uint8

	// The page being filled. plain has BOOLEAN as one byte a value. def is
	// empty while every slot so far has a value.
	plain []byte
	vals  int
	slots int
	def   []uint8
	rep   []uint8

	// The column chunk of the current row group.
	blocks            [][]byte
	rawBytes          int64 // page bodies and headers before compression
	storedBytes       int64
	chunkSlots        int64
	chunkVals         int64
	dictPages, plains int32
	dict              dictionary
	dictOn            bool
	dictSkip          int // row groups still to be written without a dictionary
	bounds            bounds

	// The whole file.
	totalSlots, totalVals int64
	totalRaw, totalStored int64
	fileBounds            bounds
}

// rawSize is what the leaf adds to the row group before encoding.
func (l *leaf) rawSize() int { return len(l.plain) + len(l.def) + len(l.rep) }

// memory is what the leaf holds on to.
func (l *leaf) memory() int {
	return cap(l.plain) + cap(l.def) + cap(l.rep) + cap(l.dict.plain) + 4*cap(l.dict.offsets) + len(l.blocks)*blockBytes
}

// pushPresent adds n slots that all have a value.
func (l *leaf) pushPresent(n int) {
	if len(l.def) > 0 {
		for range n {
			l.def = append(l.def, l.maxDef)
		}
	}
	l.slots += n
	l.vals += n
}

// startDef makes def explicit for the slots so far.
func (l *leaf) startDef() {
	if len(l.def) == 0 {
		for range l.slots {
			l.def = append(l.def, l.maxDef)
		}
	}
}

// cut ends the page: encodes, compresses and stores it.
func (l *leaf) cut(w *Writer, s *scratch) error {
	if l.slots == 0 {
		return nil
	}
	body := s.page[:0]
	if l.maxRep > 0 {
		body = appendLevels(body, l.rep, l.maxRep)
	}
	if len(l.def) > 0 {
		body = appendLevels(body, l.def, l.maxDef)
	} else if l.maxDef > 0 {
		body = append(body, 0, 0, 0, 0)
		at := len(body)
		body = appendRun(body, l.slots, uint64(l.maxDef), bitWidth(int(l.maxDef)))
		binary.LittleEndian.PutUint32(body[at-4:], uint32(len(body)-at))
	}
	encoding := format.Plain
	switch {
	case l.phys == format.Boolean:
		body = l.appendBools(body)
	case l.dictOn && l.vals > 0 && l.encodeDict(s, w.opts.DictionaryBytes):
		encoding = format.RLEDictionary
		width := bitWidth(l.dict.n - 1)
		body = append(body, byte(width))
		body = appendHybrid(body, s.codes, width)
	default:
		body = append(body, l.plain...)
		l.bounds.addPlain(l, l.plain, l.vals)
	}
	s.page = body
	if len(body) > maxBodyBytes {
		return fmt.Errorf("column %s: a page of %d bytes is too large", joinPath(l.path), len(body))
	}
	if err := l.store(w, s, body, pageHeader{values: l.slots, encoding: encoding}); err != nil {
		return err
	}
	if encoding == format.RLEDictionary {
		l.dictPages++
	} else {
		l.plains++
	}
	l.chunkSlots += int64(l.slots)
	l.chunkVals += int64(l.vals)
	l.slots, l.vals = 0, 0
	l.plain, l.def, l.rep = trim(l.plain, w.opts.PageBytes), trim(l.def, maxPageValues), trim(l.rep, maxPageValues)
	return nil
}

// trim empties a buffer and gives it up when one large batch blew it up.
func trim(b []byte, usual int) []byte {
	if cap(b) > 2*usual+blockBytes {
		return nil
	}
	return b[:0]
}

// store compresses a page body and appends header and body to the blocks.
func (l *leaf) store(w *Writer, s *scratch, body []byte, h pageHeader) error {
	comp, err := s.compress(w.opts.Compression, body)
	if err != nil {
		return err
	}
	var hb [64]byte
	head := h.append(hb[:0], len(body), comp)
	l.put(w.opts.Pools, head)
	l.put(w.opts.Pools, comp)
	l.rawBytes += int64(len(head) + len(body))
	l.storedBytes += int64(len(head) + len(comp))
	return nil
}

func (l *leaf) put(p *Pools, b []byte) {
	for len(b) > 0 {
		n := len(l.blocks)
		if n == 0 || len(l.blocks[n-1]) == blockBytes {
			l.blocks = append(l.blocks, p.block())
			n++
		}
		last := l.blocks[n-1]
		k := min(len(b), blockBytes-len(last))
		l.blocks[n-1] = append(last, b[:k]...)
		b = b[k:]
	}
}

// endChunk forgets the row group's pages.
func (l *leaf) endChunk(p *Pools) {
	p.putBlocks(l.blocks)
	clear(l.blocks)
	l.blocks = l.blocks[:0]
	l.totalSlots += l.chunkSlots
	l.totalVals += l.chunkVals
	l.totalRaw += l.rawBytes
	l.totalStored += l.storedBytes
	l.fileBounds.merge(l, &l.bounds)
	l.bounds = bounds{}
	l.rawBytes, l.storedBytes, l.chunkSlots, l.chunkVals = 0, 0, 0, 0
	if l.dictSkip > 0 {
		l.dictSkip--
	} else if l.dictPages == 0 && l.plains > 0 {
		l.dictSkip = dictionarySkipGroups
	}
	l.dictPages, l.plains = 0, 0
	l.dict.reset()
	l.dictOn = l.dictSkip == 0
}

func (l *leaf) appendBools(body []byte) []byte {
	var acc byte
	for i, b := range l.plain {
		acc |= b << (i & 7)
		if i&7 == 7 {
			body = append(body, acc)
			acc = 0
		}
	}
	if len(l.plain)&7 != 0 {
		body = append(body, acc)
	}
	l.bounds.addPlain(l, l.plain, l.vals)
	return body
}

// appendLevels appends levels with the length prefix of data pages v1.
func appendLevels(body []byte, levels []uint8, maxLevel uint8) []byte {
	body = append(body, 0, 0, 0, 0)
	at := len(body)
	body = appendHybrid(body, levels, bitWidth(int(maxLevel)))
	binary.LittleEndian.PutUint32(body[at-4:], uint32(len(body)-at))
	return body
}

// pageHeader is written by hand: one a page, without reflection or garbage.
type pageHeader struct {
	dictionary bool
	values     int
	encoding   format.Encoding
}

// append adds the header in Thrift's compact form: PageHeader{1 type, 2 raw
// size, 3 stored size, 4 crc, 5 data page | 7 dictionary page}.
func (h pageHeader) append(dst []byte, raw int, stored []byte) []byte {
	const i32, structure = 5, 12
	field := func(delta byte, kind byte) { dst = append(dst, delta<<4|kind) }
	num := func(v int32) { dst = binary.AppendVarint(dst, int64(v)) }
	kind := format.DataPage
	if h.dictionary {
		kind = format.DictionaryPage
	}
	field(1, i32)
	num(int32(kind))
	field(1, i32)
	num(int32(raw))
	field(1, i32)
	num(int32(len(stored)))
	field(1, i32)
	num(int32(crc32.ChecksumIEEE(stored)))
	if h.dictionary {
		field(3, structure)
		field(1, i32)
		num(int32(h.values))
		field(1, i32)
		num(int32(h.encoding))
	} else {
		field(1, structure)
		field(1, i32)
		num(int32(h.values))
		field(1, i32)
		num(int32(h.encoding))
		field(1, i32)
		num(int32(format.RLE))
		field(1, i32)
		num(int32(format.RLE))
	}
	return append(dst, 0, 0)
}

// float64FromBits and friends read PLAIN values.
func le32(b []byte) int32    { return int32(binary.LittleEndian.Uint32(b)) }
func le64(b []byte) int64    { return int64(binary.LittleEndian.Uint64(b)) }
func leF32(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) }
func leF64(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }
