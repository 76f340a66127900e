package datagen

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// mix is the finisher of splitmix64: a good hash of a counter.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// draw is the n-th random number of a row in a column.
func draw(seed uint64, row int64, n int) uint64 {
	return mix(seed + uint64(row)*0x9e3779b97f4a7c15 + uint64(n)*0xd1342543de82ef95)
}

// filler is a column being filled with rows.
type filler struct {
	v   *batch.Vec
	row int64
}

// value appends the value of one row; sub tells apart the values of one row in
// nested columns.
type value func(v *batch.Vec, row int64, sub int)

func withNulls(f value, rate float64, seed uint64) func(*filler) {
	return func(c *filler) {
		if rate > 0 && float64(draw(seed, c.row, 0)>>11)/(1<<53) < rate {
			format.AppendNull(c.v)
			return
		}
		f(c.v, c.row, 0)
	}
}

// sequence counts from first.
func sequence(t types.Type, first, last int64) (func(*filler), bool) {
	fits := func(bits uint) bool {
		lim := int64(1)<<(bits-1) - 1
		return first >= -lim-1 && last <= lim
	}
	switch t.Kind {
	case types.TinyInt:
		return func(c *filler) { format.AppendInt8(c.v, int8(first+c.row)) }, fits(8)
	case types.SmallInt:
		return func(c *filler) { format.AppendInt16(c.v, int16(first+c.row)) }, fits(16)
	case types.Int:
		return func(c *filler) { format.AppendInt32(c.v, int32(first+c.row)) }, fits(32)
	case types.BigInt:
		return func(c *filler) { format.AppendInt64(c.v, first+c.row) }, true
	case types.Float:
		return func(c *filler) { format.AppendFloat32(c.v, float32(first+c.row)) }, true
	case types.Double:
		return func(c *filler) { format.AppendFloat64(c.v, float64(first+c.row)) }, true
	case types.Char, types.Varchar:
		return func(c *filler) { format.AppendString(c.v, strconv.FormatInt(first+c.row, 10)) }, t.Length >= 20 || len(fmt.Sprint(last)) <= t.Length && len(fmt.Sprint(first)) <= t.Length
	case types.Decimal:
		factor := pow10(t.Scale)
		limit := pow10(t.Precision)
		a, b := new(big.Int).Mul(big.NewInt(first), factor), new(big.Int).Mul(big.NewInt(last), factor)
		return func(c *filler) { appendDecimal(c.v, new(big.Int).Mul(big.NewInt(first+c.row), factor)) }, a.CmpAbs(limit) < 0 && b.CmpAbs(limit) < 0
	}
	return nil, false
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func appendDecimal(v *batch.Vec, x *big.Int) {
	if v.Type.Physical() == types.PhysInt64 {
		format.AppendInt64(v, x.Int64())
		return
	}
	lo := new(big.Int).And(x, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	format.AppendDecimal128(v, types.Decimal128{Lo: lo, Hi: new(big.Int).Rsh(x, 64).Int64()})
}

// random makes random values of one column by its settings.
type random struct {
	clock *source
	seed  uint64
	set   setting
}

// between draws from lo..hi, both included.
func between(x uint64, lo, hi int64) int64 {
	span := uint64(hi-lo) + 1
	if span == 0 {
		return int64(x)
	}
	return lo + int64(x%span)
}

func (g *random) bounds(lo, hi int64) (int64, int64, string, error) {
	for _, b := range []struct {
		name string
		at   *int64
	}{{"min", &lo}, {"max", &hi}} {
		if s, ok := g.set[b.name]; ok {
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil || n < lo && b.name == "min" || n > hi {
				return 0, 0, b.name, fmt.Errorf("%q is not an integer of the column's type", s)
			}
			*b.at = n
		}
	}
	if lo > hi {
		return 0, 0, "max", fmt.Errorf("the maximum is below the minimum")
	}
	return lo, hi, "", nil
}

func (g *random) float(lo, hi float64) (float64, float64, string, error) {
	for _, b := range []struct {
		name string
		at   *float64
	}{{"min", &lo}, {"max", &hi}} {
		if s, ok := g.set[b.name]; ok {
			n, err := strconv.ParseFloat(s, 64)
			if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
				return 0, 0, b.name, fmt.Errorf("%q is not a number", s)
			}
			*b.at = n
		}
	}
	if lo > hi {
		return 0, 0, "max", fmt.Errorf("the maximum is below the minimum")
	}
	return lo, hi, "", nil
}

// unit maps a draw to [0, 1).
func unit(x uint64) float64 { return float64(x>>11) / (1 << 53) }

// of compiles a type; on an error it names the setting at fault.
func (g *random) of(t types.Type) (value, string, error) {
	seed := g.seed
	ints := func(lo, hi int64, put func(v *batch.Vec, x int64)) (value, string, error) {
		lo, hi, name, err := g.bounds(lo, hi)
		return func(v *batch.Vec, row int64, sub int) { put(v, between(draw(seed, row, sub), lo, hi)) }, name, err
	}
	switch t.Kind {
	case types.Boolean:
		return func(v *batch.Vec, row int64, sub int) { format.AppendBool(v, draw(seed, row, sub)>>63 == 1) }, "", nil
	case types.TinyInt:
		return ints(math.MinInt8, math.MaxInt8, func(v *batch.Vec, x int64) { format.AppendInt8(v, int8(x)) })
	case types.SmallInt:
		return ints(math.MinInt16, math.MaxInt16, func(v *batch.Vec, x int64) { format.AppendInt16(v, int16(x)) })
	case types.Int:
		return ints(math.MinInt32, math.MaxInt32, func(v *batch.Vec, x int64) { format.AppendInt32(v, int32(x)) })
	case types.BigInt:
		return ints(math.MinInt64, math.MaxInt64, format.AppendInt64)
	case types.Float:
		lo, hi, name, err := g.float(-math.MaxFloat32/2, math.MaxFloat32/2)
		return func(v *batch.Vec, row int64, sub int) {
			format.AppendFloat32(v, float32(lo+unit(draw(seed, row, sub))*(hi-lo)))
		}, name, err
	case types.Double:
		lo, hi, name, err := g.float(-math.MaxFloat64/2, math.MaxFloat64/2)
		return func(v *batch.Vec, row int64, sub int) {
			format.AppendFloat64(v, lo+unit(draw(seed, row, sub))*(hi-lo))
		}, name, err
	case types.Decimal:
		return g.decimal(t)
	case types.Char, types.Varchar, types.Binary, types.Varbinary:
		return g.text(t)
	case types.Date:
		return func(v *batch.Vec, row int64, sub int) {
			format.AppendInt32(v, int32(between(draw(seed, row, sub), 0, 365*60)))
		}, "", nil
	case types.Time:
		return func(v *batch.Vec, row int64, sub int) {
			format.AppendInt32(v, int32(between(draw(seed, row, sub), 0, 86400-1))*1000)
		}, "", nil
	case types.Timestamp, types.TimestampLTZ:
		return g.timestamp(t)
	case types.Array, types.Map, types.Row:
		return g.nested(t)
	}
	return nil, "kind", fmt.Errorf("%s cannot be made up (not_yet)", t)
}

func (g *random) decimal(t types.Type) (value, string, error) {
	limit, scale := pow10(t.Precision), pow10(t.Scale)
	lo, hi := new(big.Int).Sub(big.NewInt(1), limit), new(big.Int).Sub(limit, big.NewInt(1))
	for _, b := range []struct {
		name string
		at   **big.Int
	}{{"min", &lo}, {"max", &hi}} {
		if s, ok := g.set[b.name]; ok {
			r, ok := new(big.Rat).SetString(s)
			if !ok {
				return nil, b.name, fmt.Errorf("%q is not a number", s)
			}
			r.Mul(r, new(big.Rat).SetInt(scale))
			x := new(big.Int).Quo(r.Num(), r.Denom())
			if x.CmpAbs(limit) >= 0 {
				return nil, b.name, fmt.Errorf("%q does not fit %s", s, t)
			}
			*b.at = x
		}
	}
	span := new(big.Int).Sub(hi, lo)
	if span.Sign() < 0 {
		return nil, "max", fmt.Errorf("the maximum is below the minimum")
	}
	span.Add(span, big.NewInt(1))
	seed := g.seed
	return func(v *batch.Vec, row int64, sub int) {
		x := new(big.Int).SetUint64(draw(seed, row, 3*sub))
		for n := 1; n < 3; n++ {
			x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(draw(seed, row, 3*sub+n)))
		}
		appendDecimal(v, x.Mod(x, span).Add(x, lo))
	}, "", nil
}

// text is hexadecimal digits, as in Flink; bytes are random.
func (g *random) text(t types.Type) (value, string, error) {
	length := min(t.Length, 100)
	if s, ok := g.set["length"]; ok {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > t.Length || n > 1<<20 {
			return nil, "length", fmt.Errorf("%q is not a length that %s holds (at most 1 MiB)", s, t)
		}
		length = n
	}
	varLen := g.set["var-len"] == "true"
	if s, ok := g.set["var-len"]; ok && s != "true" && s != "false" {
		return nil, "var-len", fmt.Errorf("%q is neither true nor false", s)
	}
	seed, binary := g.seed, t.IsBinary()
	return func(v *batch.Vec, row int64, sub int) {
		n := length
		if varLen && n > 0 {
			n = int(between(draw(seed, row, sub+1<<30), 1, int64(n)))
		}
		// Straight into the column: readers of one source share this function
		// and may share no buffer.
		start := len(v.Data)
		var raw [8]byte
		for k := 0; len(v.Data)-start < n; k++ {
			x := mix(draw(seed, row, sub) + uint64(k)*0x9e3779b97f4a7c15)
			for i := range raw {
				raw[i] = byte(x >> (8 * i))
			}
			if binary {
				v.Data = append(v.Data, raw[:]...)
			} else {
				v.Data = hex.AppendEncode(v.Data, raw[:])
			}
		}
		v.Data = v.Data[:start+n]
		format.AppendBytes(v, nil)
	}, "", nil
}

func (g *random) timestamp(t types.Type) (value, string, error) {
	past := int64(0)
	if s, ok := g.set["max-past"]; ok {
		d, err := connector.ParseDuration(s)
		if err != nil {
			return nil, "max-past", err
		}
		past = d.Milliseconds()
	}
	seed, perMilli := g.seed, t.UnitsPerSecond()/1000
	return func(v *batch.Vec, row int64, sub int) {
		ms := g.clock.millis(row)
		if past > 0 {
			ms -= between(draw(seed, row, sub), 0, past)
		}
		format.AppendInt64(v, ms*perMilli)
	}, "", nil
}

// millis is the time of a row: fixed by start-time, else the clock's.
func (s *source) millis(row int64) int64 {
	if s.start.IsZero() {
		return s.clock.Now().UnixMilli()
	}
	whole, rest := row/s.rate, row%s.rate
	return s.start.UnixMilli() + whole*1000 + rest*1000/s.rate
}

// nested makes three elements an ARRAY or MAP, like Flink without `length`.
func (g *random) nested(t types.Type) (value, string, error) {
	inner := &random{clock: g.clock, seed: mix(g.seed), set: setting{}}
	if t.Kind == types.Row {
		var fields []value
		for i, f := range t.Fields {
			child := &random{clock: g.clock, seed: mix(g.seed ^ uint64(i+1)<<32), set: setting{}}
			fv, name, err := child.of(f.Type)
			if err != nil {
				return nil, name, err
			}
			fields = append(fields, fv)
		}
		return func(v *batch.Vec, row int64, sub int) {
			format.BeginRow(v)
			for i, f := range fields {
				f(v.Children[i], row, sub)
			}
			v.Len++
		}, "", nil
	}
	elem, name, err := inner.of(*t.Elem)
	if err != nil {
		return nil, name, err
	}
	var key value
	if t.Kind == types.Map {
		if key, name, err = (&random{clock: g.clock, seed: mix(g.seed ^ 1), set: setting{}}).of(*t.Key); err != nil {
			return nil, name, err
		}
	}
	const elements = 3
	return func(v *batch.Vec, row int64, sub int) {
		for k := range elements {
			at := sub*elements + k + 1
			if key != nil {
				key(v.Children[0], row, at)
				elem(v.Children[1], row, at)
			} else {
				elem(v.Children[0], row, at)
			}
		}
		format.CloseList(v)
	}, "", nil
}
