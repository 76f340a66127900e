package hive

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/types"
)

// parseType reads a Hive type as the metastore spells it. `timestamp` is
// TIMESTAMP(9).
func parseType(s string) (types.Type, error) {
	p := &typeParser{rest: strings.ToLower(strings.Join(strings.Fields(s), ""))}
	t, err := p.one()
	if err == nil && p.rest != "" {
		err = fmt.Errorf("%q follows the type", p.rest)
	}
	if err != nil {
		return t, fmt.Errorf("type %s: %w", s, err)
	}
	return t, nil
}

type typeParser struct{ rest string }

func (p *typeParser) take(s string) bool {
	rest, ok := strings.CutPrefix(p.rest, s)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *typeParser) expect(s string) error {
	if !p.take(s) {
		return fmt.Errorf("%q is missing before %q", s, p.rest)
	}
	return nil
}

// word takes what stands before any of the characters.
func (p *typeParser) word(before string) string {
	i := strings.IndexAny(p.rest, before)
	if i < 0 {
		i = len(p.rest)
	}
	w := p.rest[:i]
	p.rest = p.rest[i:]
	return w
}

var simpleTypes = map[string]types.Type{
	"boolean": types.NewBoolean(), "tinyint": types.NewTinyInt(), "smallint": types.NewSmallInt(), "int": types.NewInt(), "integer": types.NewInt(),
	"bigint": types.NewBigInt(), "float": types.NewFloat(), "double": types.NewDouble(), "doubleprecision": types.NewDouble(), "string": types.NewString(),
	"binary": types.NewBytes(), "date": types.NewDate(), "timestamp": types.NewTimestamp(9), "timestampwithlocaltimezone": types.NewTimestampLTZ(9),
	"decimal": types.NewDecimal(10, 0),
}

func (p *typeParser) one() (types.Type, error) {
	name := p.word("<>(),:")
	switch name {
	case "array":
		elem, err := p.inside()
		return types.NewArray(elem), err
	case "map":
		if err := p.expect("<"); err != nil {
			return types.Type{}, err
		}
		k, err := p.one()
		if err == nil {
			err = p.expect(",")
		}
		var v types.Type
		if err == nil {
			v, err = p.one()
		}
		if err == nil {
			err = p.expect(">")
		}
		return types.NewMap(k, v), err
	case "struct":
		return p.row()
	case "char", "varchar", "decimal":
		if strings.HasPrefix(p.rest, "(") {
			return p.sized(name)
		}
	}
	if t, ok := simpleTypes[name]; ok {
		return t, nil
	}
	return types.Type{}, fmt.Errorf("%s is not read (not_yet)", name)
}

func (p *typeParser) inside() (types.Type, error) {
	if err := p.expect("<"); err != nil {
		return types.Type{}, err
	}
	t, err := p.one()
	if err == nil {
		err = p.expect(">")
	}
	return t, err
}

func (p *typeParser) row() (types.Type, error) {
	var fields []types.Field
	if err := p.expect("<"); err != nil {
		return types.Type{}, err
	}
	for !p.take(">") {
		if len(fields) > 0 {
			if err := p.expect(","); err != nil {
				return types.Type{}, err
			}
		}
		name := p.word(":")
		if err := p.expect(":"); err != nil {
			return types.Type{}, err
		}
		t, err := p.one()
		if err != nil {
			return types.Type{}, err
		}
		fields = append(fields, types.Field{Name: name, Type: t})
	}
	return types.NewRow(fields...), nil
}

func (p *typeParser) sized(name string) (types.Type, error) {
	p.take("(")
	var n [2]int
	for i, s := range strings.SplitN(p.word(")"), ",", 2) {
		v, err := strconv.Atoi(s)
		if err != nil || v < 0 {
			return types.Type{}, fmt.Errorf("%q is no length", s)
		}
		n[i] = v
	}
	if err := p.expect(")"); err != nil {
		return types.Type{}, err
	}
	switch name {
	case "char":
		return types.NewChar(n[0]), nil
	case "varchar":
		return types.NewVarchar(n[0]), nil
	}
	if n[0] < 1 || n[0] > types.MaxPrecision || n[1] > n[0] {
		return types.Type{}, fmt.Errorf("decimal(%d,%d) is out of bounds", n[0], n[1])
	}
	return types.NewDecimal(n[0], n[1]), nil
}

// holds reports whether a column of type to can hold every value of a column of
// Hive's type from, so that reading changes nothing.
func holds(to, from types.Type) bool {
	ints := map[types.Kind]int{types.TinyInt: 1, types.SmallInt: 2, types.Int: 3, types.BigInt: 4}
	if a, b := ints[from.Kind], ints[to.Kind]; a > 0 && b > 0 {
		return a <= b
	}
	switch from.Kind {
	case types.Float:
		return to.Kind == types.Float || to.Kind == types.Double
	case types.Char, types.Varchar:
		return to.Kind == types.Varchar && to.Length >= from.Length || to.Kind == types.Char && from.Kind == types.Char && to.Length == from.Length
	case types.Varbinary:
		return to.Kind == types.Varbinary && to.Length == types.MaxLength
	case types.Decimal:
		return to.Kind == types.Decimal && to.Scale >= from.Scale && to.Precision-to.Scale >= from.Precision-from.Scale
	case types.Timestamp, types.TimestampLTZ:
		// A fraction finer than the declared precision is cut, as it is from any
		// Parquet file.
		return to.IsTimestamp()
	case types.Array:
		return to.Kind == types.Array && holds(*to.Elem, *from.Elem)
	case types.Map:
		return to.Kind == types.Map && holds(*to.Key, *from.Key) && holds(*to.Elem, *from.Elem)
	case types.Row:
		if to.Kind != types.Row {
			return false
		}
		for _, f := range to.Fields {
			there := fieldOf(from.Fields, f.Name)
			if there == nil || !holds(f.Type, there.Type) {
				return false
			}
		}
		return true
	}
	return to.Kind == from.Kind
}

func fieldOf(fields []types.Field, name string) *types.Field {
	for i := range fields {
		if strings.EqualFold(fields[i].Name, name) {
			return &fields[i]
		}
	}
	return nil
}
