package clickhouse

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// intRule converts 64-bit integers exactly: bounds, then a division that must
// leave nothing, then a multiplication.
type intRule struct {
	lo, hi   int64
	div, mul int64
	// zone, when set, reads the value as a wall clock of the zone first, in
	// units a second.
	zone  *types.Zone
	units int64
	// what is the reason of a remainder, in words.
	rest string
}

// wideRule converts 128-bit unscaled decimals to another scale and precision.
type wideRule struct {
	from, to, precision int
}

// integerBounds are the bounds of ClickHouse's integers as far as 64 bits go.
func integerBounds(name string) (lo, hi int64, width int, ok bool) {
	signed := strings.HasPrefix(name, "Int")
	bits, err := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(name, "U"), "Int"))
	if err != nil || !signed && !strings.HasPrefix(name, "UInt") {
		return 0, 0, 0, false
	}
	switch bits {
	case 8, 16, 32:
		if signed {
			return -1 << (bits - 1), 1<<(bits-1) - 1, bits / 8, true
		}
		return 0, 1<<bits - 1, bits / 8, true
	case 64, 128, 256:
		if signed {
			return math.MinInt64, math.MaxInt64, bits / 8, true
		}
		return 0, math.MaxInt64, bits / 8, true
	}
	return 0, 0, 0, false
}

// sqlBounds are the values that a SQL type can have.
func sqlBounds(t types.Type) (lo, hi int64) {
	switch t.Physical() {
	case types.PhysBool:
		return 0, 1
	case types.PhysInt8:
		return math.MinInt8, math.MaxInt8
	case types.PhysInt16:
		return math.MinInt16, math.MaxInt16
	case types.PhysInt32:
		return math.MinInt32, math.MaxInt32
	}
	if t.Kind == types.Decimal {
		n := types.Pow10Int64(t.Precision) - 1
		return -n, n
	}
	return math.MinInt64, math.MaxInt64
}

func (c *column) bindNumber(zone *types.Zone) error {
	switch c.ch.name {
	case "Date", "Date32":
		if c.sql.Kind != types.Date {
			return c.mismatch("write CAST(... AS DATE)")
		}
		c.ints, c.width = intRule{lo: 0, hi: math.MaxUint16, div: 1, mul: 1}, 2
		if c.ch.name == "Date32" {
			// 1900-01-01 to 2299-12-31
			c.ints, c.width = intRule{lo: -25567, hi: 120529, div: 1, mul: 1}, 4
		}
		return c.useInts()
	case "DateTime", "DateTime32", "DateTime64":
		return c.bindTime(zone)
	case "Time", "Time64":
		return c.bindClock()
	case "Decimal", "Decimal32", "Decimal64", "Decimal128", "Decimal256":
		return c.bindDecimal()
	case "Bool":
		if c.sql.Kind != types.Boolean {
			return c.mismatch("write CAST(... AS BOOLEAN)")
		}
		c.ints, c.width = intRule{hi: 1, div: 1, mul: 1}, 1
		return c.useInts()
	}
	lo, hi, width, ok := integerBounds(c.ch.name)
	if !ok {
		return fmt.Errorf("not_yet: columns of type %s", c.ch.text)
	}
	c.width = width
	switch {
	case c.sql.IsInteger(), c.sql.Kind == types.Boolean:
		c.ints = intRule{lo: lo, hi: hi, div: 1, mul: 1}
		return c.useInts()
	case c.sql.Kind == types.Decimal && c.sql.Scale == 0 && c.sql.Precision <= 18:
		c.ints = intRule{lo: lo, hi: hi, div: 1, mul: 1}
		return c.useInts()
	case c.sql.Kind == types.Decimal && c.sql.Scale == 0:
		return c.useWideInteger(lo == 0)
	}
	return c.mismatch("write CAST(... AS BIGINT)")
}

// useInts sets the conversion by ints, and no check where every value fits.
func (c *column) useInts() error {
	c.put = putInts
	r := &c.ints
	lo, hi := sqlBounds(c.sql)
	if r.zone != nil || r.div > 1 || lo < r.lo || hi > r.hi {
		c.check = checkInts
	}
	return nil
}

func putInts(c *column, b *buffer, v *batch.Vec, rows []int32, s *scratch) {
	xs := s.integers(v, rows)
	r := &c.ints
	if r.zone != nil {
		z := s.zone(r.zone)
		for i, x := range xs {
			xs[i] = z.ToInstant(x, r.units)
		}
	}
	switch {
	case r.div > 1:
		for i, x := range xs {
			xs[i] = types.FloorDiv(x, r.div)
		}
	case r.mul > 1:
		for i, x := range xs {
			xs[i] = x * r.mul
		}
	}
	for i, row := range rows {
		if row < 0 {
			xs[i] = 0
		}
	}
	b.data = appendInts(b.data, xs, c.width)
}

func checkInts(c *column, v *batch.Vec, rows []int32, s *scratch, fail failure) {
	xs := s.integers(v, rows)
	r := &c.ints
	var z *types.Zone
	if r.zone != nil {
		z = s.zone(r.zone)
	}
	for k, x := range xs {
		if rows[k] < 0 {
			continue
		}
		at := x
		if z != nil {
			at = z.ToInstant(x, r.units)
			if z.ToLocal(at, r.units) != x {
				fail(k, fmt.Sprintf("%s does not exist in time zone %s", c.valueText(x), z))
				continue
			}
		}
		switch {
		case at < r.lo || at > r.hi:
			fail(k, fmt.Sprintf("%s is outside what %s can hold", c.valueText(x), c.ch.text))
		case r.div > 1 && at%r.div != 0:
			fail(k, fmt.Sprintf("%s has %s that %s cannot hold", c.valueText(x), r.rest, c.ch.text))
		}
	}
}

// valueText is a value of an integer layout for people.
func (c *column) valueText(x int64) string {
	switch {
	case c.sql.Kind == types.Date:
		return string(types.AppendDate(nil, x))
	case c.sql.Kind == types.Time:
		return string(types.AppendTime(nil, int32(x), c.sql.Precision))
	case c.sql.IsTimestamp():
		return string(types.AppendTimestamp(nil, x, c.sql, ' '))
	case c.sql.Kind == types.Decimal:
		return types.FormatDecimal(types.DecimalFromInt64(x), c.sql.Scale)
	}
	return strconv.FormatInt(x, 10)
}

// bindTime converts TIMESTAMP (a wall clock of the column's zone) and
// TIMESTAMP_LTZ (an instant).
func (c *column) bindTime(zone *types.Zone) error {
	if !c.sql.IsTimestamp() {
		return c.mismatch("write CAST(... AS TIMESTAMP)")
	}
	r := intRule{div: 1, mul: 1, units: c.sql.UnitsPerSecond(), rest: "a fraction of a second"}
	if c.sql.Kind == types.Timestamp {
		if name := c.ch.zone(); name != "" {
			z, err := types.LoadZone(name)
			if err != nil {
				return fmt.Errorf("type %s: %w", c.ch.text, err)
			}
			zone = z
		}
		if !alwaysUTC(zone) {
			r.zone = zone
		}
	}
	// In seconds: the first, and the first that is not.
	first, end, precision := int64(0), int64(1)<<32, 0
	c.width = 4
	if c.ch.name == "DateTime64" {
		precision = c.ch.number(0, 3)
		first, end = -2_208_988_800, 10_413_792_000 // 1900-01-01, 2300-01-01
		c.width = 8
	}
	ticks := types.Pow10Int64(precision)
	switch {
	case ticks >= r.units:
		r.mul = ticks / r.units
	default:
		r.div = r.units / ticks
	}
	// 64-bit nanoseconds, ours or theirs, end in 2262.
	if ticks == 1e9 || r.units == 1e9 {
		end = min(end, 9_223_372_036)
	}
	r.lo, r.hi = first*r.units, end*r.units-1
	c.ints = r
	return c.useInts()
}

func alwaysUTC(z *types.Zone) bool {
	switch z.String() {
	case "UTC", "Etc/UTC", "GMT", "Etc/GMT", "Z", "Zulu", "Etc/Zulu", "UCT", "Etc/UCT", "Universal":
		return true
	}
	return false
}

// bindClock converts TIME.
func (c *column) bindClock() error {
	if c.sql.Kind != types.Time {
		return c.mismatch("write CAST(... AS TIME)")
	}
	const day = 86_400_000
	c.ints, c.width = intRule{hi: day - 1, div: 1000, mul: 1, rest: "a fraction of a second"}, 4
	if c.ch.name == "Time64" {
		p := c.ch.number(0, 3)
		c.ints.div, c.width = 1, 8
		if p < 3 {
			c.ints.div = types.Pow10Int64(3 - p)
		} else {
			c.ints.mul = types.Pow10Int64(p - 3)
		}
	}
	return c.useInts()
}

// decimalShape is the precision, scale and width in bytes of a Decimal.
func decimalShape(t *chType) (precision, scale, width int) {
	switch t.name {
	case "Decimal32":
		precision, scale = 9, t.number(0, 0)
	case "Decimal64":
		precision, scale = 18, t.number(0, 0)
	case "Decimal128":
		precision, scale = 38, t.number(0, 0)
	case "Decimal256":
		precision, scale = 76, t.number(0, 0)
	default:
		precision, scale = t.number(0, 10), t.number(1, 0)
	}
	switch {
	case precision <= 9:
		width = 4
	case precision <= 18:
		width = 8
	case precision <= 38:
		width = 16
	default:
		width = 32
	}
	return precision, scale, width
}

func (c *column) bindDecimal() error {
	from, whole := c.sql, c.sql.IsInteger()
	if whole {
		from, _ = types.AsDecimal(c.sql)
	}
	if !whole && c.sql.Kind != types.Decimal {
		return c.mismatch("write CAST(... AS DECIMAL(p, s))")
	}
	precision, scale, width := decimalShape(c.ch)
	c.width = width
	if from.Precision > 18 || precision > 18 {
		c.wide = wideRule{from: from.Scale, to: scale, precision: precision}
		c.put = putWide
		// Digits before the point, and behind it, that may not fit.
		if from.Precision-from.Scale > precision-scale || from.Scale > scale || from.Precision+scale-from.Scale > types.MaxPrecision {
			c.check = checkWide
		}
		return nil
	}
	top := types.Pow10Int64(precision) - 1
	r := intRule{div: 1, mul: 1, rest: "digits behind the point"}
	if scale >= from.Scale {
		r.mul = types.Pow10Int64(scale - from.Scale)
		r.hi = top / r.mul
	} else {
		r.div = types.Pow10Int64(from.Scale - scale)
		r.hi = math.MaxInt64
		if top < math.MaxInt64/r.div {
			r.hi = top * r.div
		}
	}
	r.lo = -r.hi
	c.ints = r
	return c.useInts()
}

func (c *column) useWideInteger(unsigned bool) error {
	c.wide = wideRule{precision: types.MaxPrecision}
	c.put, c.check = putWide, checkWide
	bits := c.width * 8
	if !unsigned {
		bits--
	}
	top := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	least := new(big.Int)
	if !unsigned {
		least.Neg(top)
	}
	c.check = func(c *column, v *batch.Vec, rows []int32, s *scratch, fail failure) {
		for k, d := range s.decimals(v, rows) {
			if rows[k] >= 0 && (d.Big().Cmp(least) < 0 || d.Big().Cmp(top) >= 0) {
				fail(k, fmt.Sprintf("%s is outside what %s can hold", types.FormatDecimal(d, 0), c.ch.text))
			}
		}
	}
	return nil
}

// convert gives the unscaled value at the column's scale; ok is false when it
// does not fit.
func (r *wideRule) convert(d types.Decimal128) (types.Decimal128, bool) {
	if r.to >= r.from {
		out, ok := d.Mul(types.Pow10(min(r.to-r.from, types.MaxPrecision)))
		return out, ok && r.to-r.from <= types.MaxPrecision && (r.precision > types.MaxPrecision || out.FitsPrecision(r.precision))
	}
	q, rest := d.QuoRem(types.Pow10(r.from - r.to))
	return q, rest == types.Decimal128{} && (r.precision > types.MaxPrecision || q.FitsPrecision(r.precision))
}

func putWide(c *column, b *buffer, v *batch.Vec, rows []int32, s *scratch) {
	for k, d := range s.decimals(v, rows) {
		if rows[k] >= 0 && c.wide.from != c.wide.to {
			d, _ = c.wide.convert(d)
		}
		switch c.width {
		case 1:
			b.data = append(b.data, byte(d.Lo))
		case 2:
			b.data = binary.LittleEndian.AppendUint16(b.data, uint16(d.Lo))
		case 4:
			b.data = binary.LittleEndian.AppendUint32(b.data, uint32(d.Lo))
		case 8:
			b.data = binary.LittleEndian.AppendUint64(b.data, d.Lo)
		default:
			b.data = binary.LittleEndian.AppendUint64(b.data, d.Lo)
			b.data = binary.LittleEndian.AppendUint64(b.data, uint64(d.Hi))
			for w := 16; w < c.width; w += 8 {
				b.data = binary.LittleEndian.AppendUint64(b.data, uint64(d.Hi>>63))
			}
		}
	}
}

func checkWide(c *column, v *batch.Vec, rows []int32, s *scratch, fail failure) {
	for k, d := range s.decimals(v, rows) {
		if rows[k] < 0 {
			continue
		}
		if _, ok := c.wide.convert(d); !ok {
			fail(k, fmt.Sprintf("%s does not fit %s", types.FormatDecimal(d, c.wide.from), c.ch.text))
		}
	}
}

func (c *column) bindFloat() error {
	c.width = 8
	if c.ch.name == "Float32" {
		c.width = 4
	}
	switch c.sql.Kind {
	case types.Float:
	case types.Double:
		if c.width == 4 {
			return c.mismatch("write CAST(... AS FLOAT)")
		}
	case types.TinyInt, types.SmallInt:
	case types.Int:
		if c.width == 4 {
			return c.mismatch("write CAST(... AS FLOAT)")
		}
	default:
		return c.mismatch("write CAST(... AS DOUBLE)")
	}
	c.put = putFloats
	return nil
}

func putFloats(c *column, b *buffer, v *batch.Vec, rows []int32, s *scratch) {
	at := len(b.data)
	b.data = grow(b.data, len(rows)*c.width)
	out := b.data[at:]
	var xs []int64
	if c.sql.IsInteger() {
		xs = s.integers(v, rows)
	}
	for k, r := range rows {
		f := 0.0
		switch {
		case r < 0:
		case xs != nil:
			f = float64(xs[k])
		case c.sql.Kind == types.Float:
			if c.width == 4 {
				// Bit by bit: a conversion could quiet a NaN.
				binary.LittleEndian.PutUint32(out[4*k:], math.Float32bits(v.F32[r]))
				continue
			}
			f = float64(v.F32[r])
		default:
			f = v.F64[r]
		}
		if c.width == 4 {
			binary.LittleEndian.PutUint32(out[4*k:], math.Float32bits(float32(f)))
		} else {
			binary.LittleEndian.PutUint64(out[8*k:], math.Float64bits(f))
		}
	}
}
