package parquetfmt

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/millrace/millrace/runtime/types"
)

// node is a column of the logical schema as it is shredded into leaves.
type node struct {
	shape    shape
	optional bool
	// rep is the repetition level of a list's or map's repeated group.
	rep      uint8
	children []*node // ROW: fields; LIST: element; MAP: key, value
	leaf     *leaf
}

type shape uint8

const (
	shapeLeaf shape = iota
	shapeRow
	shapeList
	shapeMap
)

// conv says how a value of the logical layout becomes one of the physical type.
type conv uint8

const (
	convBool conv = iota
	convInt8
	convInt16
	convInt32
	convInt64
	convFloat32
	convFloat64
	convBytes
	convInt64Fixed  // DECIMAL p<=18 as fixed-length bytes
	convInt64Int32  // DECIMAL p<=9 as INT32
	convDec128Fixed // DECIMAL p>18
	convMicrosInt96 // TIMESTAMP p<=6 as INT96
	convNanosInt96  // TIMESTAMP p>6 as INT96
)

// schemaBuilder turns fields into the footer's schema and the writer's tree.
type schemaBuilder struct {
	opts     Options
	elements []format.SchemaElement
	leaves   []*leaf
	path     []string
}

const maxNesting = 64

func buildSchema(fields []types.Field, o Options) ([]format.SchemaElement, []*node, []*leaf, error) {
	if len(fields) == 0 {
		return nil, nil, nil, fmt.Errorf("a parquet file needs at least one column")
	}
	b := &schemaBuilder{opts: o}
	b.elements = append(b.elements, format.SchemaElement{
		Name: "millrace_schema", NumChildren: thrift.New(int32(len(fields)))})
	roots, err := b.fields(fields, 0, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	return b.elements, roots, b.leaves, nil
}

func (b *schemaBuilder) fields(fields []types.Field, def, rep uint8) ([]*node, error) {
	seen := make(map[string]struct{}, len(fields))
	nodes := make([]*node, 0, len(fields))
	for _, f := range fields {
		if f.Name == "" {
			return nil, fmt.Errorf("column %s: a field has no name", strings.Join(b.path, "."))
		}
		if _, ok := seen[f.Name]; ok {
			return nil, fmt.Errorf("column %s: declared twice", strings.Join(append(b.path, f.Name), "."))
		}
		seen[f.Name] = struct{}{}
		n, err := b.node(f.Name, f.Type, true, def, rep)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

func (b *schemaBuilder) fail(t types.Type, reason string) error {
	return &TypeError{Column: strings.Join(b.path, "."), Type: t, Reason: reason}
}

func (b *schemaBuilder) node(name string, t types.Type, optional bool, def, rep uint8) (*node, error) {
	b.path = append(b.path, name)
	defer func() { b.path = b.path[:len(b.path)-1] }()
	if len(b.path) > maxNesting {
		return nil, b.fail(t, "nested deeper than 64 levels")
	}
	e := format.SchemaElement{Name: name, RepetitionType: thrift.New(format.Required)}
	n := &node{optional: optional}
	if optional {
		e.RepetitionType = thrift.New(format.Optional)
		def++
	}
	var err error
	switch t.Kind {
	case types.Row:
		if len(t.Fields) == 0 {
			return nil, b.fail(t, "a ROW without fields has no columns")
		}
		n.shape = shapeRow
		e.NumChildren = thrift.New(int32(len(t.Fields)))
		b.elements = append(b.elements, e)
		n.children, err = b.fields(t.Fields, def, rep)
		return n, err
	case types.Array:
		n.shape, n.rep = shapeList, rep+1
		e.NumChildren = thrift.New(int32(1))
		e.ConvertedType = thrift.New(deprecated.List)
		e.LogicalType = format.LogicalType{Value: new(format.ListType)}
		b.elements = append(b.elements, e, repeatedGroup("list", 1))
		b.path = append(b.path, "list")
		c, err := b.node("element", *t.Elem, true, def+1, rep+1)
		b.path = b.path[:len(b.path)-1]
		n.children = []*node{c}
		return n, err
	case types.Map:
		n.shape, n.rep = shapeMap, rep+1
		e.NumChildren = thrift.New(int32(1))
		e.ConvertedType = thrift.New(deprecated.Map)
		e.LogicalType = format.LogicalType{Value: new(format.MapType)}
		b.elements = append(b.elements, e, repeatedGroup("key_value", 2))
		b.path = append(b.path, "key_value")
		k, err := b.node("key", *t.Key, false, def+1, rep+1)
		if err != nil {
			return nil, err
		}
		v, err := b.node("value", *t.Elem, true, def+1, rep+1)
		b.path = b.path[:len(b.path)-1]
		n.children = []*node{k, v}
		return n, err
	}
	lf := &leaf{maxDef: def, maxRep: rep, path: append([]string(nil), b.path...)}
	if err := b.primitive(&e, lf, t); err != nil {
		return nil, err
	}
	b.elements = append(b.elements, e)
	b.leaves = append(b.leaves, lf)
	n.leaf = lf
	return n, nil
}

func repeatedGroup(name string, children int32) format.SchemaElement {
	return format.SchemaElement{Name: name, RepetitionType: thrift.New(format.Repeated), NumChildren: thrift.New(children)}
}

// primitive fills in physical and logical type. ConvertedType is written
// beside LogicalType, as parquet-mr does, since older readers know only it.
func (b *schemaBuilder) primitive(e *format.SchemaElement, lf *leaf, t types.Type) error {
	set := func(p format.Type, c conv, width int) {
		e.Type = thrift.New(p)
		lf.phys, lf.conv, lf.width = p, c, width
	}
	annotate := func(c deprecated.ConvertedType, v format.LogicalTypeValue) {
		e.ConvertedType = thrift.New(c)
		e.LogicalType = format.LogicalType{Value: v}
	}
	switch t.Kind {
	case types.Boolean:
		set(format.Boolean, convBool, 1)
	case types.TinyInt:
		set(format.Int32, convInt8, 4)
		annotate(deprecated.Int8, &format.IntType{BitWidth: 8, IsSigned: true})
	case types.SmallInt:
		set(format.Int32, convInt16, 4)
		annotate(deprecated.Int16, &format.IntType{BitWidth: 16, IsSigned: true})
	case types.Int:
		set(format.Int32, convInt32, 4)
	case types.BigInt:
		set(format.Int64, convInt64, 8)
	case types.Float:
		set(format.Float, convFloat32, 4)
	case types.Double:
		set(format.Double, convFloat64, 8)
	case types.Decimal:
		return b.decimal(e, lf, t)
	case types.Char, types.Varchar:
		set(format.ByteArray, convBytes, 0)
		annotate(deprecated.UTF8, new(format.StringType))
		lf.text = true
	case types.Binary, types.Varbinary:
		set(format.ByteArray, convBytes, 0)
	case types.Date:
		set(format.Int32, convInt32, 4)
		annotate(deprecated.Date, new(format.DateType))
	case types.Time:
		set(format.Int32, convInt32, 4)
		annotate(deprecated.TimeMillis, &format.TimeType{Unit: format.TimeUnit{Value: new(format.MilliSeconds)}})
	case types.Timestamp, types.TimestampLTZ:
		utc := t.Kind == types.TimestampLTZ
		switch {
		case b.opts.Int96Timestamps && t.Precision <= 6:
			set(format.Int96, convMicrosInt96, 12)
		case b.opts.Int96Timestamps:
			set(format.Int96, convNanosInt96, 12)
		case t.Precision <= 6:
			set(format.Int64, convInt64, 8)
			annotate(deprecated.TimestampMicros, &format.TimestampType{
				IsAdjustedToUTC: utc, Unit: format.TimeUnit{Value: new(format.MicroSeconds)}})
		default:
			set(format.Int64, convInt64, 8)
			e.LogicalType = format.LogicalType{Value: &format.TimestampType{
				IsAdjustedToUTC: utc, Unit: format.TimeUnit{Value: new(format.NanoSeconds)}}}
		}
	case types.IntervalYearMonth, types.IntervalDaySecond:
		return b.fail(t, "intervals have no type that Hive reads; store a number instead")
	default:
		return b.fail(t, "no column can have this type")
	}
	return nil
}

func (b *schemaBuilder) decimal(e *format.SchemaElement, lf *leaf, t types.Type) error {
	if t.Precision < 1 || t.Precision > types.MaxPrecision || t.Scale < 0 || t.Scale > t.Precision {
		return b.fail(t, "precision or scale out of range")
	}
	e.Precision, e.Scale = thrift.New(int32(t.Precision)), thrift.New(int32(t.Scale))
	e.ConvertedType = thrift.New(deprecated.Decimal)
	e.LogicalType = format.LogicalType{Value: &format.DecimalType{Precision: int32(t.Precision), Scale: int32(t.Scale)}}
	switch {
	case b.opts.DecimalIntegers && t.Precision <= 9:
		e.Type = thrift.New(format.Int32)
		lf.phys, lf.conv, lf.width = format.Int32, convInt64Int32, 4
		return nil
	case b.opts.DecimalIntegers && t.Precision <= 18:
		e.Type = thrift.New(format.Int64)
		lf.phys, lf.conv, lf.width = format.Int64, convInt64, 8
		return nil
	}
	w := decimalWidth(t.Precision)
	e.Type = thrift.New(format.FixedLenByteArray)
	e.TypeLength = thrift.New(int32(w))
	lf.phys, lf.width, lf.conv = format.FixedLenByteArray, w, convInt64Fixed
	if t.Precision > 18 {
		lf.conv = convDec128Fixed
	}
	return nil
}

// decimalWidth is the least number of bytes whose two's complement holds every
// value of p digits: Hive reads exactly this width (ParquetHiveSerDe's
// PRECISION_TO_BYTE_COUNT).
func decimalWidth(p int) int {
	// bits = ceil(p * log2(10)) + 1 sign bit, exact for 1..38.
	bits := (p*3321928095+999999999)/1000000000 + 1
	return (bits + 7) / 8
}
