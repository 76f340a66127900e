package clickhouse

import (
	"fmt"
	"slices"
	"strings"

	chproto "github.com/ClickHouse/ch-go/proto"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// readColumn converts values of one ClickHouse type to one SQL type: the way back of
// column. It belongs to one goroutine at a time.
type readColumn struct {
	name string
	sql  types.Type
	ch   *chType // without Nullable, LowCardinality and SimpleAggregateFunction
	// selected is the column's expression in a SELECT, text its type in the answer.
	selected, text string
	nullable       bool
	kids           []*readColumn
	// values reads the values of v, whose NULLs are known.
	values func(c *readColumn, r *chproto.Reader, v *batch.Vec, n int) error
	// width of a value in bytes, signed or not, and its digits behind the point, for
	// numbers.
	width  int
	signed bool
	scale  int
	zone   *types.Zone
	enum   map[int64]string
	raw    []byte
}

// newReadColumn finds the way from a ClickHouse type to a SQL type, or says why there
// is none.
func newReadColumn(name string, t types.Type, typ *chType, zone *types.Zone) (*readColumn, error) {
	c := &readColumn{name: name, sql: t}
	for {
		switch typ.name {
		case "SimpleAggregateFunction", "LowCardinality", "Nullable":
			c.nullable = c.nullable || typ.name == "Nullable"
			if len(typ.args) == 0 {
				return nil, fmt.Errorf("type %s has no argument type", typ.text)
			}
			typ = typ.args[len(typ.args)-1]
			continue
		}
		break
	}
	c.ch, c.zone = typ, zone
	if name := typ.zone(); name != "" && strings.HasPrefix(typ.name, "DateTime") {
		z, err := types.LoadZone(name)
		if err != nil {
			return nil, fmt.Errorf("type %s: %w", typ.text, err)
		}
		c.zone = z
	}
	c.zone = c.zone.Clone()
	return c, c.bind(zone)
}

// selectColumn is the column of a table in a SELECT.
func selectColumn(name string, t types.Type, typ string, zone *types.Zone) (*readColumn, error) {
	parsed, err := parseType(typ)
	if err != nil {
		return nil, err
	}
	c, err := newReadColumn(name, t, parsed, zone)
	if err != nil {
		return nil, err
	}
	c.selected, c.text = quoteName(name), typ
	if bare := parsed.bare(); bare != parsed.text {
		// Dictionaries and names of aggregates are not sent.
		c.selected, c.text = "CAST("+quoteName(name)+", "+quoteText(bare)+")", bare
	}
	return c, nil
}

// bare is the type's text without LowCardinality and SimpleAggregateFunction.
func (t *chType) bare() string {
	if !strings.Contains(t.text, "LowCardinality") && !strings.Contains(t.text, "SimpleAggregateFunction") {
		return t.text
	}
	switch t.name {
	case "LowCardinality", "SimpleAggregateFunction":
		return t.args[len(t.args)-1].bare()
	}
	parts := make([]string, len(t.args))
	for i, a := range t.args {
		if i < len(t.names) {
			parts[i] = quoteName(t.names[i]) + " "
		}
		parts[i] += a.bare()
	}
	return t.name + "(" + strings.Join(parts, ", ") + ")"
}

func (c *readColumn) bind(zone *types.Zone) error {
	t := c.sql
	if lo, _, width, ok := integerBounds(c.ch.name); ok {
		c.width, c.signed = width, lo < 0
		return c.bindNumber()
	}
	switch name := c.ch.name; name {
	case "Bool":
		c.width = 1
		return c.bindNumber()
	case "Decimal", "Decimal32", "Decimal64", "Decimal128", "Decimal256":
		c.signed = true
		_, c.scale, c.width = decimalShape(c.ch)
		return c.bindNumber()
	case "Float32", "Float64":
		c.width = 4
		if name == "Float64" {
			c.width = 8
		}
		if t.Kind == types.Double || t.Kind == types.Float || t.IsInteger() {
			c.values = readFloats
			return nil
		}
		return c.mismatch("DOUBLE")
	case "Date", "Date32", "DateTime", "DateTime32", "DateTime64", "Time", "Time64":
		return c.bindTime()
	case "Enum8", "Enum16":
		c.width, c.signed = 1, true
		if name == "Enum16" {
			c.width = 2
		}
		if t.IsInteger() {
			return c.bindNumber()
		}
		if !t.IsString() || len(c.ch.values) != len(c.ch.texts) {
			return c.mismatch("STRING")
		}
		c.enum = map[int64]string{}
		for i, text := range c.ch.texts {
			c.enum[int64(c.ch.values[i])] = text
		}
		c.values = readEnum
		return nil
	case "String", "FixedString":
		c.width = c.ch.number(0, 0)
		if !t.IsString() && !t.IsBinary() {
			return c.mismatch("STRING")
		}
		c.values = readTexts
		return nil
	case "UUID", "IPv4", "IPv6":
		c.width = 16
		if name == "IPv4" {
			c.width = 4
		}
		if !t.IsString() {
			return c.mismatch("STRING")
		}
		c.values = readPrinted
		return nil
	case "Array", "Map", "Tuple":
		return c.bindNested(zone)
	}
	return fmt.Errorf("not_yet: reading columns of type %s", c.ch.text)
}

// mismatch is the error of a type that cannot be read as the declared one.
func (c *readColumn) mismatch(instead string) error {
	return fmt.Errorf("%s cannot be read as %s; declare it %s", c.ch.text, c.sql.WithNullable(true), instead)
}

func (c *readColumn) bindNumber() error {
	t := c.sql
	switch {
	case t.IsInteger(), t.Kind == types.Decimal:
	case t.Kind == types.Boolean && c.scale == 0 && c.width <= 8:
	default:
		return c.mismatch("DECIMAL, or an integer type,")
	}
	c.values = readWide
	if c.width <= 8 && (c.scale == 0 && t.Kind != types.Decimal || t.Kind == types.Decimal && t.Precision <= 18 && t.Scale == c.scale) {
		c.values = readInts
	}
	return nil
}

func (c *readColumn) bindTime() error {
	t := c.sql
	c.signed = true
	switch c.ch.name {
	case "Date", "Date32":
		c.width, c.signed = 2, false
		if c.ch.name == "Date32" {
			c.width, c.signed = 4, true
		}
		if t.Kind != types.Date {
			return c.mismatch("DATE")
		}
		c.values = readInts
		return nil
	case "DateTime", "DateTime32":
		c.width, c.signed = 4, false
	case "Time":
		c.width = 4
	default:
		c.width, c.scale = 8, c.ch.number(0, 3)
	}
	if strings.HasPrefix(c.ch.name, "DateTime") {
		if !t.IsTimestamp() {
			return c.mismatch("TIMESTAMP_LTZ or TIMESTAMP")
		}
		if t.Kind == types.TimestampLTZ || alwaysUTC(c.zone) {
			c.zone = nil
		}
		c.values = readTimes
		return nil
	}
	if t.Kind != types.Time {
		return c.mismatch("TIME")
	}
	c.values = readClocks
	return nil
}

func (c *readColumn) bindNested(zone *types.Zone) error {
	want := map[string]types.Kind{"Array": types.Array, "Map": types.Map, "Tuple": types.Row}[c.ch.name]
	if c.sql.Kind != want || c.nullable {
		return c.mismatch("ARRAY, MAP or ROW accordingly")
	}
	var inner []types.Type
	switch want {
	case types.Array:
		inner = []types.Type{*c.sql.Elem}
	case types.Map:
		inner = []types.Type{*c.sql.Key, *c.sql.Elem}
	default:
		for i, f := range c.sql.Fields {
			if i < len(c.ch.names) && c.ch.names[i] != f.Name {
				return fmt.Errorf("field %d of %s is %q, element %d of %s is %q", i+1, c.sql.WithNullable(true), f.Name, i+1, c.ch.text, c.ch.names[i])
			}
			inner = append(inner, f.Type)
		}
	}
	if len(inner) != len(c.ch.args) {
		return fmt.Errorf("%s has %d parts, %s has %d", c.sql.WithNullable(true), len(inner), c.ch.text, len(c.ch.args))
	}
	for i, t := range inner {
		k, err := newReadColumn(c.name, t, c.ch.args[i], zone)
		if err != nil {
			return err
		}
		c.kids = append(c.kids, k)
	}
	c.values = readLists
	if want == types.Row {
		c.values = readFields
	}
	return nil
}

// read decodes n rows into v.
func (c *readColumn) read(r *chproto.Reader, v *batch.Vec, n int) error {
	v.Reset(c.sql, n)
	if c.nullable {
		nulls, err := c.bytes(r, n)
		if err != nil {
			return err
		}
		for i, b := range nulls {
			if b != 0 {
				v.SetNull(i)
			}
		}
	}
	return c.values(c, r, v, n)
}

// bytes reads n bytes, which are valid until the next call.
func (c *readColumn) bytes(r *chproto.Reader, n int) ([]byte, error) {
	c.raw = slices.Grow(c.raw[:0], n)[:n]
	return c.raw, r.ReadFull(c.raw)
}

// fail makes a value an error of its row.
func (c *readColumn) fail(v *batch.Vec, i int, format string, args ...any) {
	v.SetErr(i, batch.CodeTypeMismatch, c.name, fmt.Sprintf(format, args...))
}
