package clickhouse

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// nullRow stands for NULL in a list of physical indexes.
const nullRow = -1

// scratch is the memory that one goroutine converts columns with. Slices that it
// gives are valid until the next call of the same kind at the same depth.
type scratch struct {
	levels []level
	depth  int
	ints   []int64
	wide   []types.Decimal128
	text   []byte
	zones  map[string]*types.Zone
}

// level is the index memory of one depth of nesting.
type level struct{ rows, child []int32 }

func (s *scratch) enter() *level {
	if s.depth == len(s.levels) {
		s.levels = append(s.levels, level{})
	}
	s.depth++
	return &s.levels[s.depth-1]
}

func (s *scratch) leave() { s.depth-- }

// all gives the rows 0 to n-1 when sel is nil.
func all(buf []int32, sel batch.Sel, n int) []int32 {
	if sel != nil {
		return append(buf[:0], sel...)
	}
	buf = buf[:0]
	for i := range n {
		buf = append(buf, int32(i))
	}
	return buf
}

// flatten resolves the encoding of v for rows, in place: afterwards rows are
// indexes into the values of the Vec it returns, or nullRow.
func flatten(v *batch.Vec, rows []int32) *batch.Vec {
	for {
		if v.Valid != nil {
			for k, r := range rows {
				if r < 0 {
					continue
				}
				if v.Enc == batch.Const {
					r = 0
				}
				if !v.Valid.Get(int(r)) {
					rows[k] = nullRow
				}
			}
		}
		switch v.Enc {
		case batch.Const:
			for k, r := range rows {
				if r > 0 {
					rows[k] = 0
				}
			}
			return v
		case batch.Dict:
			for k, r := range rows {
				if r >= 0 {
					rows[k] = v.Codes[r]
				}
			}
			v = v.Dict
		default:
			return v
		}
	}
}

// integers gathers values of an integer layout, 0 for NULL.
func (s *scratch) integers(v *batch.Vec, rows []int32) []int64 {
	if cap(s.ints) < len(rows) {
		s.ints = make([]int64, len(rows)+len(rows)/2)
	}
	out := s.ints[:len(rows)]
	switch v.Type.Physical() {
	case types.PhysInt8:
		gather(out, v.I8, rows)
	case types.PhysInt16:
		gather(out, v.I16, rows)
	case types.PhysInt32:
		gather(out, v.I32, rows)
	case types.PhysBool:
		for k, r := range rows {
			out[k] = 0
			if r >= 0 && v.Bools.Get(int(r)) {
				out[k] = 1
			}
		}
	default:
		gather(out, v.I64, rows)
	}
	return out
}

func gather[T int8 | int16 | int32 | int64](out []int64, in []T, rows []int32) {
	for k, r := range rows {
		if r < 0 {
			out[k] = 0
			continue
		}
		out[k] = int64(in[r])
	}
}

// decimals gathers values of an integer layout or of DECIMAL as 128 bits.
func (s *scratch) decimals(v *batch.Vec, rows []int32) []types.Decimal128 {
	if cap(s.wide) < len(rows) {
		s.wide = make([]types.Decimal128, len(rows)+len(rows)/2)
	}
	out := s.wide[:len(rows)]
	if v.Type.Physical() != types.PhysDecimal128 {
		for k, x := range s.integers(v, rows) {
			out[k] = types.DecimalFromInt64(x)
		}
		return out
	}
	for k, r := range rows {
		out[k] = types.Decimal128{}
		if r >= 0 {
			out[k] = v.D128[r]
		}
	}
	return out
}

// zone is a zone with a cache of its own for this goroutine.
func (s *scratch) zone(z *types.Zone) *types.Zone {
	own := s.zones[z.String()]
	if own == nil {
		if s.zones == nil {
			s.zones = map[string]*types.Zone{}
		}
		own = z.Clone()
		s.zones[z.String()] = own
	}
	return own
}
