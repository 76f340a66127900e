package clickhouse

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"unicode/utf8"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

func (c *column) bindText() error {
	if !c.sql.IsString() && !c.sql.IsBinary() {
		return c.mismatch("write CAST(... AS STRING)")
	}
	switch c.ch.name {
	case "String":
		c.put = putString
	case "FixedString":
		c.width = c.ch.number(0, 0)
		c.put = putFixed
		if c.sql.Length > c.width || c.sql.IsString() {
			c.check = checkFixed
		}
	case "UUID":
		c.width, c.put, c.check = 16, putParsed, checkParsed
	case "IPv4":
		c.width, c.put, c.check = 4, putParsed, checkParsed
	case "IPv6":
		c.width, c.put, c.check = 16, putParsed, checkParsed
	}
	if c.ch.name != "String" && c.ch.name != "FixedString" && !c.sql.IsString() {
		return c.mismatch("write CAST(... AS STRING)")
	}
	if c.lowCardinality {
		c.put = putKeys
	}
	return nil
}

func putString(_ *column, b *buffer, v *batch.Vec, rows []int32, _ *scratch) {
	data := b.data
	for _, r := range rows {
		if r < 0 {
			data = append(data, 0)
			continue
		}
		from, to := v.Offsets[r], v.Offsets[r+1]
		if n := to - from; n < 0x80 {
			data = append(data, byte(n))
		} else {
			data = binary.AppendUvarint(data, uint64(n))
		}
		data = append(data, v.Data[from:to]...)
	}
	b.data = data
}

func putFixed(c *column, b *buffer, v *batch.Vec, rows []int32, _ *scratch) {
	for _, r := range rows {
		var text []byte
		if r >= 0 {
			text = v.Data[v.Offsets[r]:v.Offsets[r+1]]
		}
		b.data = appendFixed(b.data, text, c.width)
	}
}

// appendFixed pads a text with zeros, as ClickHouse does.
func appendFixed(dst, text []byte, width int) []byte {
	dst = append(dst, text...)
	for range width - len(text) {
		dst = append(dst, 0)
	}
	return dst
}

func checkFixed(c *column, v *batch.Vec, rows []int32, _ *scratch, fail failure) {
	for k, r := range rows {
		if r < 0 {
			continue
		}
		if n := int(v.Offsets[r+1] - v.Offsets[r]); n > c.width {
			fail(k, fmt.Sprintf("%q has %d bytes; %s holds %d", brief(v.Bytes(int(r))), n, c.ch.text, c.width))
		}
	}
}

// putKeys appends to a LowCardinality's dictionary.
func putKeys(c *column, b *buffer, v *batch.Vec, rows []int32, _ *scratch) {
	if b.keys == nil {
		b.keys = map[string]uint32{}
	}
	first := uint32(0)
	if c.nullable {
		first = 1
	}
	for _, r := range rows {
		if r < 0 && c.nullable {
			b.codes = append(b.codes, 0)
			continue
		}
		var text []byte
		if r >= 0 {
			text = v.Data[v.Offsets[r]:v.Offsets[r+1]]
		}
		code, ok := b.keys[string(text)]
		if !ok {
			code = first + uint32(len(b.keys))
			b.keys[string(text)] = code
			if c.ch.name == "FixedString" {
				b.data = appendFixed(b.data, text, c.width)
			} else {
				b.data = appendText(b.data, text)
			}
		}
		b.codes = append(b.codes, code)
	}
}

// parse reads a UUID or an address, in the form that ClickHouse keeps.
func (c *column) parse(text []byte, out *[16]byte) bool {
	switch c.ch.name {
	case "UUID":
		return parseUUID(text, out)
	case "IPv4":
		a, err := netip.ParseAddr(string(text))
		if err != nil || !a.Is4() {
			return false
		}
		b := a.As4()
		out[0], out[1], out[2], out[3] = b[3], b[2], b[1], b[0]
	default:
		a, err := netip.ParseAddr(string(text))
		if err != nil || a.Zone() != "" {
			return false
		}
		// IPv4 is kept as ::ffff:a.b.c.d.
		*out = a.As16()
	}
	return true
}

// parseUUID reads 36 characters; ClickHouse keeps two little-endian halves.
func parseUUID(text []byte, out *[16]byte) bool {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return false
	}
	var digits [32]byte
	n := 0
	for i, ch := range text {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			continue
		}
		digits[n] = ch
		n++
	}
	var b [16]byte
	if _, err := hex.Decode(b[:], digits[:]); err != nil {
		return false
	}
	for i := range 8 {
		out[i], out[8+i] = b[7-i], b[15-i]
	}
	return true
}

func putParsed(c *column, b *buffer, v *batch.Vec, rows []int32, _ *scratch) {
	for _, r := range rows {
		var out [16]byte
		if r >= 0 {
			c.parse(v.Data[v.Offsets[r]:v.Offsets[r+1]], &out)
		}
		b.data = append(b.data, out[:c.width]...)
	}
}

func checkParsed(c *column, v *batch.Vec, rows []int32, _ *scratch, fail failure) {
	var out [16]byte
	for k, r := range rows {
		if r >= 0 && !c.parse(v.Data[v.Offsets[r]:v.Offsets[r+1]], &out) {
			fail(k, fmt.Sprintf("%q is not %s", brief(v.Bytes(int(r))), c.ch.text))
		}
	}
}

// bindEnum converts names, and integers that are one of the Enum's values.
func (c *column) bindEnum() error {
	if !c.sql.IsString() && !c.sql.IsInteger() {
		return c.mismatch("write CAST(... AS STRING)")
	}
	c.width = 1
	if c.ch.name == "Enum16" {
		c.width = 2
	}
	if len(c.ch.values) != len(c.ch.texts) || len(c.ch.texts) == 0 {
		return fmt.Errorf("type %s has a name without a value", c.ch.text)
	}
	c.enum = make(map[string]int64, len(c.ch.texts))
	known := map[int64]bool{}
	for i, name := range c.ch.texts {
		c.enum[name] = int64(c.ch.values[i])
		known[int64(c.ch.values[i])] = true
	}
	first := int64(c.ch.values[0]) // of NULL, which nobody sees
	if c.sql.IsInteger() {
		c.put = func(c *column, b *buffer, v *batch.Vec, rows []int32, s *scratch) {
			xs := s.integers(v, rows)
			for k, r := range rows {
				if r < 0 {
					xs[k] = first
				}
			}
			b.data = appendInts(b.data, xs, c.width)
		}
		c.check = func(c *column, v *batch.Vec, rows []int32, s *scratch, fail failure) {
			for k, x := range s.integers(v, rows) {
				if rows[k] >= 0 && !known[x] {
					fail(k, fmt.Sprintf("%d is no value of %s", x, c.ch.text))
				}
			}
		}
		return nil
	}
	c.put = func(c *column, b *buffer, v *batch.Vec, rows []int32, _ *scratch) {
		for _, r := range rows {
			x := first
			if r >= 0 {
				x = c.enum[string(v.Data[v.Offsets[r]:v.Offsets[r+1]])]
			}
			b.data = append(b.data, byte(x))
			if c.width == 2 {
				b.data = append(b.data, byte(x>>8))
			}
		}
	}
	c.check = func(c *column, v *batch.Vec, rows []int32, _ *scratch, fail failure) {
		for k, r := range rows {
			if r < 0 {
				continue
			}
			if _, ok := c.enum[string(v.Data[v.Offsets[r]:v.Offsets[r+1]])]; !ok {
				fail(k, fmt.Sprintf("%q is no name of %s", brief(v.Bytes(int(r))), c.ch.text))
			}
		}
	}
	return nil
}

// brief cuts a value for a message at 64 bytes, between characters.
func brief(b []byte) string {
	const limit = 64
	if len(b) <= limit {
		return string(b)
	}
	n := limit
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return string(b[:n]) + "..."
}

// bindNested converts ARRAY, MAP and ROW.
func (c *column) bindNested(zone *types.Zone) error {
	want := map[string]types.Kind{"Array": types.Array, "Map": types.Map, "Tuple": types.Row}[c.ch.name]
	if c.sql.Kind != want {
		return c.mismatch("")
	}
	if c.nullable {
		return fmt.Errorf("not_yet: columns of type Nullable(%s)", c.ch.text)
	}
	switch c.sql.Kind {
	case types.Row:
		return c.bindTuple(zone)
	case types.Map:
		if len(c.ch.args) != 2 {
			return fmt.Errorf("type %s has not two arguments", c.ch.text)
		}
		if err := c.addKid(*c.sql.Key, c.ch.args[0], zone, "key"); err != nil {
			return err
		}
		if err := c.addKid(*c.sql.Elem, c.ch.args[1], zone, "value"); err != nil {
			return err
		}
	default:
		if len(c.ch.args) != 1 {
			return fmt.Errorf("type %s has not one argument", c.ch.text)
		}
		if err := c.addKid(*c.sql.Elem, c.ch.args[0], zone, "element"); err != nil {
			return err
		}
	}
	c.put = putList
	if c.kidsCheck() {
		c.check = checkList
	}
	return nil
}

func (c *column) addKid(t types.Type, ch *chType, zone *types.Zone, what string) error {
	k, err := newColumn(t, ch, zone)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	c.kids = append(c.kids, k)
	return nil
}

func (c *column) kidsCheck() bool {
	for _, k := range c.kids {
		if k.checks() {
			return true
		}
	}
	return false
}

// bindTuple takes fields by name where the Tuple has names, else by place.
func (c *column) bindTuple(zone *types.Zone) error {
	if len(c.ch.args) != len(c.sql.Fields) {
		return fmt.Errorf("%s has %d fields, %s has %d elements", c.sql.WithNullable(true), len(c.sql.Fields), c.ch.text, len(c.ch.args))
	}
	for i, f := range c.sql.Fields {
		if len(c.ch.names) > 0 && c.ch.names[i] != f.Name {
			return fmt.Errorf("field %d of %s is %q, element %d of %s is %q", i+1, c.sql.WithNullable(true), f.Name, i+1, c.ch.text, c.ch.names[i])
		}
		if err := c.addKid(f.Type, c.ch.args[i], zone, "field "+f.Name); err != nil {
			return err
		}
	}
	c.put = func(c *column, b *buffer, v *batch.Vec, rows []int32, s *scratch) {
		b.children(len(c.kids))
		for i, k := range c.kids {
			k.append(&b.kids[i], v.Children[i], rows, s)
		}
	}
	if c.kidsCheck() {
		c.check = func(c *column, v *batch.Vec, rows []int32, s *scratch, fail failure) {
			for i, k := range c.kids {
				// Fields of a NULL row are NULL; the row itself was refused.
				if k.checks() {
					k.refuse(v.Children[i], rows, s, func(at int, message string) {
						if rows[at] >= 0 {
							fail(at, "field "+c.sql.Fields[i].Name+": "+message)
						}
					})
				}
			}
		}
	}
	return nil
}

func putList(c *column, b *buffer, v *batch.Vec, rows []int32, s *scratch) {
	b.children(len(c.kids))
	l := s.enter()
	l.child = l.child[:0]
	end := uint64(b.kids[0].rows)
	for _, r := range rows {
		if r >= 0 {
			from, to := v.Offsets[r], v.Offsets[r+1]
			for i := from; i < to; i++ {
				l.child = append(l.child, i)
			}
			end += uint64(to - from)
		}
		b.ends = binary.LittleEndian.AppendUint64(b.ends, end)
	}
	child := l.child
	for i, k := range c.kids {
		k.append(&b.kids[i], v.Children[i], child, s)
	}
	s.leave()
}

func checkList(c *column, v *batch.Vec, rows []int32, s *scratch, fail failure) {
	l := s.enter()
	defer s.leave()
	l.child = l.child[:0]
	var of []int
	for at, r := range rows {
		if r < 0 {
			continue
		}
		for i := v.Offsets[r]; i < v.Offsets[r+1]; i++ {
			l.child = append(l.child, i)
			of = append(of, at)
		}
	}
	child := l.child
	for i, k := range c.kids {
		if k.checks() {
			k.refuse(v.Children[i], child, s, func(at int, message string) { fail(of[at], message) })
		}
	}
}
