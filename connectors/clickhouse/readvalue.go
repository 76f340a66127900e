package clickhouse

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"slices"
	"unicode/utf8"

	chproto "github.com/ClickHouse/ch-go/proto"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// int is value i of raw bytes of up to 8 bytes a value; ok is false where it is beyond
// 63 bits.
func (c *readColumn) int(raw []byte, i int) (x int64, ok bool) {
	b := raw[i*c.width:]
	switch c.width {
	case 1:
		if c.signed {
			return int64(int8(b[0])), true
		}
		return int64(b[0]), true
	case 2:
		u := binary.LittleEndian.Uint16(b)
		if c.signed {
			return int64(int16(u)), true
		}
		return int64(u), true
	case 4:
		u := binary.LittleEndian.Uint32(b)
		if c.signed {
			return int64(int32(u)), true
		}
		return int64(u), true
	}
	u := binary.LittleEndian.Uint64(b)
	return int64(u), c.signed || u <= math.MaxInt64
}

// readInts reads integers, dates and decimals of equal scale.
func readInts(c *readColumn, r *chproto.Reader, v *batch.Vec, n int) error {
	raw, err := c.bytes(r, n*c.width)
	if err != nil {
		return err
	}
	lo, hi := sqlBounds(c.sql)
	for i := range n {
		if v.IsNull(i) {
			continue
		}
		x, ok := c.int(raw, i)
		if !ok || x < lo || x > hi {
			c.fail(v, i, "%s of %s is outside what %s can hold", c.number(raw, i), c.ch.text, c.sql.WithNullable(true))
			continue
		}
		if c.sql.Kind == types.Boolean {
			v.Bools.Put(i, x != 0)
		} else {
			v.SetInt64(i, x)
		}
	}
	return nil
}

// number is value i for people.
func (c *readColumn) number(raw []byte, i int) string {
	b := slices.Clone(raw[i*c.width : (i+1)*c.width])
	slices.Reverse(b)
	x := new(big.Int).SetBytes(b)
	if c.signed && b[0]&0x80 != 0 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
	}
	if c.scale == 0 {
		return x.String()
	}
	return fmt.Sprintf("%se-%d", x, c.scale)
}

// wide is value i as 128 bits; ok is false where it needs more.
func (c *readColumn) wide(raw []byte, i int) (d types.Decimal128, ok bool) {
	if c.width <= 8 {
		if x, ok := c.int(raw, i); ok {
			return types.DecimalFromInt64(x), true
		}
		return types.Decimal128{Lo: binary.LittleEndian.Uint64(raw[i*c.width:])}, true
	}
	b := raw[i*c.width : (i+1)*c.width]
	d = types.Decimal128{Lo: binary.LittleEndian.Uint64(b), Hi: int64(binary.LittleEndian.Uint64(b[8:]))}
	rest := uint64(0)
	if c.signed {
		rest = uint64(d.Hi >> 63)
	} else if d.Hi < 0 {
		return d, false
	}
	for k := 16; k < len(b); k += 8 {
		if binary.LittleEndian.Uint64(b[k:]) != rest {
			return d, false
		}
	}
	return d, true
}

// readWide reads numbers of any width and scale as integers or decimals.
func readWide(c *readColumn, r *chproto.Reader, v *batch.Vec, n int) error {
	raw, err := c.bytes(r, n*c.width)
	if err != nil {
		return err
	}
	precision, scale := types.MaxPrecision, 0
	if c.sql.Kind == types.Decimal {
		precision, scale = c.sql.Precision, c.sql.Scale
	}
	rule := wideRule{from: c.scale, to: scale, precision: precision}
	lo, hi := sqlBounds(c.sql)
	for i := range n {
		if v.IsNull(i) {
			continue
		}
		d, ok := c.wide(raw, i)
		if ok {
			d, ok = rule.convert(d)
		}
		if ok && c.sql.Kind == types.Decimal {
			v.SetDecimal(i, d)
			continue
		}
		x, fits := d.Int64()
		if !ok || !fits || x < lo || x > hi {
			c.fail(v, i, "%s of %s is nothing that %s can hold", c.number(raw, i), c.ch.text, c.sql.WithNullable(true))
			continue
		}
		v.SetInt64(i, x)
	}
	return nil
}

func readFloats(c *readColumn, r *chproto.Reader, v *batch.Vec, n int) error {
	raw, err := c.bytes(r, n*c.width)
	if err != nil {
		return err
	}
	lo, hi := sqlBounds(c.sql)
	for i := range n {
		var f float64
		if c.width == 4 {
			bits := binary.LittleEndian.Uint32(raw[4*i:])
			if c.sql.Kind == types.Float {
				// Bit by bit: a conversion could quiet a NaN.
				v.F32[i] = math.Float32frombits(bits)
				continue
			}
			f = float64(math.Float32frombits(bits))
		} else {
			f = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
		}
		switch {
		case c.sql.Kind == types.Double:
			v.F64[i] = f
		case v.IsNull(i):
		case c.sql.Kind == types.Float && (float64(float32(f)) == f || f != f):
			v.F32[i] = float32(f)
		case c.sql.Kind == types.Float, f != math.Trunc(f) || f < float64(lo) || f > float64(hi) || f >= 1<<63:
			c.fail(v, i, "%v of %s is nothing that %s can hold", f, c.ch.text, c.sql.WithNullable(true))
		default:
			v.SetInt64(i, int64(f))
		}
	}
	return nil
}

// readTimes reads DateTime and DateTime64.
func readTimes(c *readColumn, r *chproto.Reader, v *batch.Vec, n int) error {
	raw, err := c.bytes(r, n*c.width)
	if err != nil {
		return err
	}
	ticks, units := types.Pow10Int64(c.scale), c.sql.UnitsPerSecond()
	// A value has to be whole in units and in the declared digits.
	whole := max(units/types.Pow10Int64(c.sql.Precision), 1)
	for i := range n {
		if v.IsNull(i) {
			continue
		}
		x, _ := c.int(raw, i)
		exact := true
		switch {
		case ticks > units:
			exact = x%(ticks/units) == 0
			x = types.FloorDiv(x, ticks/units)
		case units > ticks:
			m := units / ticks
			if exact = x <= math.MaxInt64/m && x >= math.MinInt64/m; exact {
				x *= m
			}
		}
		if !exact || x%whole != 0 {
			c.fail(v, i, "%s ticks of %s are nothing that %s can hold", c.ticks(raw, i), c.ch.text, c.sql.WithNullable(true))
			continue
		}
		if c.zone != nil {
			x = c.zone.ToLocal(x, units)
		}
		v.I64[i] = x
	}
	return nil
}

// ticks is the whole number behind value i of a time, for people.
func (c *readColumn) ticks(raw []byte, i int) string {
	x, _ := c.int(raw, i)
	return fmt.Sprint(x)
}

// readClocks reads Time and Time64, which may be negative or longer than a day.
func readClocks(c *readColumn, r *chproto.Reader, v *batch.Vec, n int) error {
	raw, err := c.bytes(r, n*c.width)
	if err != nil {
		return err
	}
	const day = 86_400_000
	ticks := types.Pow10Int64(c.scale)
	whole := 1000 / types.Pow10Int64(min(c.sql.Precision, 3))
	for i := range n {
		if v.IsNull(i) {
			continue
		}
		x, _ := c.int(raw, i)
		ms, exact := x, true
		if ticks > 1000 {
			ms, exact = x/(ticks/1000), x%(ticks/1000) == 0
		} else if x >= 0 && x < day {
			ms = x * (1000 / ticks)
		}
		if !exact || x < 0 || ms >= day || ms%whole != 0 {
			c.fail(v, i, "%s ticks of %s are nothing that %s can hold", c.ticks(raw, i), c.ch.text, c.sql.WithNullable(true))
			continue
		}
		v.I32[i] = int32(ms)
	}
	return nil
}

func readEnum(c *readColumn, r *chproto.Reader, v *batch.Vec, n int) error {
	raw, err := c.bytes(r, n*c.width)
	if err != nil {
		return err
	}
	for i := range n {
		if !v.IsNull(i) {
			x, _ := c.int(raw, i)
			v.PutString(i, c.enum[x])
		}
	}
	v.PadOffsets()
	return nil
}

// readTexts reads String and FixedString.
func readTexts(c *readColumn, r *chproto.Reader, v *batch.Vec, n int) error {
	for i := range n {
		size := c.width
		if c.ch.name == "String" {
			var err error
			if size, err = r.StrLen(); err != nil {
				return err
			}
		}
		from := len(v.Data)
		if from+size > math.MaxInt32 {
			return fmt.Errorf("a block has more than 2 GB of texts")
		}
		v.Data = slices.Grow(v.Data, size)[:from+size]
		if err := r.ReadFull(v.Data[from:]); err != nil {
			return err
		}
		if v.IsNull(i) {
			v.Data = v.Data[:from] // whatever stands there
		} else if why := c.unfit(v.Data[from:]); why != "" {
			c.fail(v, i, "%q %s", brief(v.Data[from:]), why)
			v.Data = v.Data[:from]
		}
		v.Offsets = append(v.Offsets, int32(len(v.Data)))
	}
	return nil
}

// unfit says why a text is none of the declared type, or "".
func (c *readColumn) unfit(text []byte) string {
	if c.sql.IsBinary() {
		if c.sql.Length < types.MaxLength && len(text) > c.sql.Length {
			return fmt.Sprintf("has %d bytes, %s holds %d", len(text), c.sql.WithNullable(true), c.sql.Length)
		}
		return ""
	}
	if !utf8.Valid(text) {
		return "is not UTF-8: declare the column BYTES"
	}
	if c.sql.Length < types.MaxLength && len(text) > c.sql.Length && utf8.RuneCount(text) > c.sql.Length {
		return fmt.Sprintf("has more than the %d characters of %s", c.sql.Length, c.sql.WithNullable(true))
	}
	return ""
}

// readPrinted reads UUIDs and addresses.
func readPrinted(c *readColumn, r *chproto.Reader, v *batch.Vec, n int) error {
	raw, err := c.bytes(r, n*c.width)
	if err != nil {
		return err
	}
	for i := range n {
		if v.IsNull(i) {
			continue
		}
		b := raw[i*c.width : (i+1)*c.width]
		v.BeginBytes(i)
		switch c.ch.name {
		case "UUID":
			v.Data = appendUUID(v.Data, b)
		case "IPv4":
			v.Data = netip.AddrFrom4([4]byte{b[3], b[2], b[1], b[0]}).AppendTo(v.Data)
		default:
			v.Data = netip.AddrFrom16([16]byte(b)).AppendTo(v.Data)
		}
		v.EndBytes()
	}
	v.PadOffsets()
	return nil
}

// appendUUID prints two little-endian halves.
func appendUUID(dst, b []byte) []byte {
	var u [16]byte
	for i := range 8 {
		u[i], u[8+i] = b[7-i], b[15-i]
	}
	for i, part := range [][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, part)
	}
	return dst
}

// readLists reads Array and Map: the end of each row, then the elements.
func readLists(c *readColumn, r *chproto.Reader, v *batch.Vec, n int) error {
	raw, err := c.bytes(r, 8*n)
	if err != nil {
		return err
	}
	last := uint64(0)
	for i := range n {
		end := binary.LittleEndian.Uint64(raw[8*i:])
		if end < last || end > math.MaxInt32 {
			return fmt.Errorf("elements end at %d after %d", end, last)
		}
		v.Offsets = append(v.Offsets, int32(end))
		last = end
	}
	for i, k := range c.kids {
		if err := k.read(r, v.Children[i], int(last)); err != nil {
			return err
		}
	}
	return nil
}

func readFields(c *readColumn, r *chproto.Reader, v *batch.Vec, n int) error {
	for i, k := range c.kids {
		if err := k.read(r, v.Children[i], n); err != nil {
			return err
		}
	}
	return nil
}
