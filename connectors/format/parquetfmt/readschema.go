package parquetfmt

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/millrace/millrace/runtime/types"
)

// fileNode is a column of a file's schema in logical form: the groups of lists
// and maps are folded into one node.
type fileNode struct {
	name  string
	typ   types.Type // what the file declares
	shape shape
	// def is the definition level at which the node itself is not NULL; rep
	// that of a list's or map's repeated group, whose definition level is
	// listDef.
	def, rep, listDef uint8
	children          []*fileNode

	// Leaves only.
	column         int // index among the file's leaves
	elem           format.SchemaElement
	maxDef, maxRep uint8
	unit           int64 // TIME, TIMESTAMP: units per second; 0: INT96
	unsigned       bool
	found          [2]any // Verify: least and greatest value so far
}

type schemaReader struct {
	elems  []format.SchemaElement
	next   int
	column int
	depth  int
}

// readSchema turns the footer's flat schema into the tree of logical columns.
// Columns of types that cannot be read stay in the tree with an invalid type.
func readSchema(elems []format.SchemaElement) ([]*fileNode, error) {
	if len(elems) == 0 {
		return nil, fmt.Errorf("%w: no schema", ErrCorrupt)
	}
	r := &schemaReader{elems: elems, next: 1}
	var roots []*fileNode
	for range elems[0].NumChildren.V {
		n, err := r.node(0, 0)
		if err != nil {
			return nil, err
		}
		roots = append(roots, n)
	}
	if r.next != len(elems) {
		return nil, fmt.Errorf("%w: %d schema elements are in no group", ErrCorrupt, len(elems)-r.next)
	}
	return roots, nil
}

func (r *schemaReader) take() (format.SchemaElement, error) {
	if r.next >= len(r.elems) {
		return format.SchemaElement{}, fmt.Errorf("%w: the schema ends early", ErrCorrupt)
	}
	e := r.elems[r.next]
	r.next++
	return e, nil
}

func (r *schemaReader) node(def, rep uint8) (*fileNode, error) {
	e, err := r.take()
	if err != nil {
		return nil, err
	}
	if r.depth++; r.depth > maxNesting {
		return nil, fmt.Errorf("%w: schema nested deeper than %d levels", ErrCorrupt, maxNesting)
	}
	defer func() { r.depth-- }()
	switch e.RepetitionType.V {
	case format.Repeated:
		// A bare repeated field is a list whose elements are never NULL.
		list := &fileNode{name: e.Name, shape: shapeList, def: def, listDef: def + 1, rep: rep + 1}
		elem, err := r.body(e, def+1, rep+1)
		if err != nil {
			return nil, err
		}
		list.children = []*fileNode{elem}
		list.typ = types.NewArray(elem.typ).NotNull()
		return list, nil
	case format.Optional:
		def++
	}
	n, err := r.body(e, def, rep)
	if err != nil {
		return nil, err
	}
	n.typ.Nullable = e.RepetitionType.V == format.Optional
	return n, nil
}

// body reads what follows an element whose own repetition is accounted for.
func (r *schemaReader) body(e format.SchemaElement, def, rep uint8) (*fileNode, error) {
	if e.NumChildren.V == 0 && e.Type.Valid {
		n := &fileNode{name: e.Name, def: def, column: r.column, elem: e, maxDef: def, maxRep: rep}
		r.column++
		n.primitive()
		return n, nil
	}
	if e.NumChildren.V <= 0 || int(e.NumChildren.V) > len(r.elems) {
		return nil, fmt.Errorf("%w: group %s has %d fields", ErrCorrupt, e.Name, e.NumChildren.V)
	}
	if e.NumChildren.V == 1 && r.next < len(r.elems) && r.elems[r.next].RepetitionType.V == format.Repeated {
		switch {
		case isMap(e):
			return r.mapOf(e, def, rep)
		case isList(e):
			return r.listOf(e, def, rep)
		}
	}
	n := &fileNode{name: e.Name, shape: shapeRow, def: def}
	for range e.NumChildren.V {
		c, err := r.node(def, rep)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, c)
		n.typ.Fields = append(n.typ.Fields, types.Field{Name: c.name, Type: c.typ})
	}
	n.typ.Kind = types.Row
	return n, nil
}

func isList(e format.SchemaElement) bool {
	_, ok := e.LogicalType.Value.(*format.ListType)
	return ok || e.ConvertedType.Valid && e.ConvertedType.V == deprecated.List
}

func isMap(e format.SchemaElement) bool {
	_, ok := e.LogicalType.Value.(*format.MapType)
	return ok || e.ConvertedType.Valid && (e.ConvertedType.V == deprecated.Map || e.ConvertedType.V == deprecated.MapKeyValue)
}

// listOf applies the format's backward-compatibility rules: the repeated field
// is the element itself unless it is a group of one field with another name
// than "array" or "<list>_tuple".
func (r *schemaReader) listOf(e format.SchemaElement, def, rep uint8) (*fileNode, error) {
	n := &fileNode{name: e.Name, shape: shapeList, def: def, listDef: def + 1, rep: rep + 1}
	mid := r.elems[r.next]
	var elem *fileNode
	var err error
	if mid.NumChildren.V == 1 && mid.Name != "array" && mid.Name != e.Name+"_tuple" {
		r.next++
		elem, err = r.node(def+1, rep+1)
	} else {
		r.next++
		elem, err = r.body(mid, def+1, rep+1)
	}
	if err != nil {
		return nil, err
	}
	n.children = []*fileNode{elem}
	n.typ = types.NewArray(elem.typ)
	return n, nil
}

func (r *schemaReader) mapOf(e format.SchemaElement, def, rep uint8) (*fileNode, error) {
	mid, err := r.take()
	if err != nil {
		return nil, err
	}
	if mid.NumChildren.V != 2 {
		return nil, fmt.Errorf("%w: map %s has %d fields an entry", ErrCorrupt, e.Name, mid.NumChildren.V)
	}
	n := &fileNode{name: e.Name, shape: shapeMap, def: def, listDef: def + 1, rep: rep + 1}
	for range 2 {
		c, err := r.node(def+1, rep+1)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, c)
	}
	n.typ = types.NewMap(n.children[0].typ, n.children[1].typ)
	return n, nil
}

// primitive derives the logical type of a leaf from its annotations, new ones
// first.
func (n *fileNode) primitive() {
	e := n.elem
	conv := func(c deprecated.ConvertedType) bool { return e.ConvertedType.Valid && e.ConvertedType.V == c }
	switch e.Type.V {
	case format.Boolean:
		n.typ = types.NewBoolean()
	case format.Float:
		n.typ = types.NewFloat()
	case format.Double:
		n.typ = types.NewDouble()
	case format.Int96:
		n.typ = types.NewTimestamp(9)
	case format.ByteArray, format.FixedLenByteArray:
		n.bytesType()
	case format.Int32, format.Int64:
		n.intType(conv)
	}
	n.typ.Nullable = n.typ.Kind != types.Invalid
}

func (n *fileNode) decimalType() bool {
	e := n.elem
	p, s := int(e.Precision.V), int(e.Scale.V)
	d, ok := e.LogicalType.Value.(*format.DecimalType)
	if ok {
		p, s = int(d.Precision), int(d.Scale)
	}
	if !ok && !(e.ConvertedType.Valid && e.ConvertedType.V == deprecated.Decimal) {
		return false
	}
	if p >= 1 && p <= types.MaxPrecision && s >= 0 && s <= p {
		n.typ = types.NewDecimal(p, s)
	}
	return true
}

func (n *fileNode) bytesType() {
	e := n.elem
	if n.decimalType() {
		return
	}
	switch e.LogicalType.Value.(type) {
	case *format.StringType, *format.EnumType, *format.JsonType:
		n.typ = types.NewString()
		return
	case nil:
		if e.ConvertedType.Valid {
			switch e.ConvertedType.V {
			case deprecated.UTF8, deprecated.Enum, deprecated.Json:
				n.typ = types.NewString()
				return
			case deprecated.Interval:
				return
			}
		}
	case *format.UUIDType, *format.BsonType:
	default:
		return
	}
	n.typ = types.NewBytes()
	if e.Type.V == format.FixedLenByteArray {
		n.typ = types.NewBinary(int(e.TypeLength.V))
	}
}

func (n *fileNode) intType(conv func(deprecated.ConvertedType) bool) {
	e := n.elem
	if n.decimalType() {
		return
	}
	wide := e.Type.V == format.Int64
	bits, signed := 32, true
	if wide {
		bits = 64
	}
	switch v := e.LogicalType.Value.(type) {
	case *format.DateType:
		n.typ = types.NewDate()
		return
	case *format.TimeType:
		n.unit = unitOf(v.Unit)
		n.typ = types.NewTime(3)
		return
	case *format.TimestampType:
		n.unit = unitOf(v.Unit)
		n.typ = timestampType(n.unit, v.IsAdjustedToUTC)
		return
	case *format.IntType:
		bits, signed = int(v.BitWidth), v.IsSigned
	case nil:
		switch {
		case conv(deprecated.Date):
			n.typ = types.NewDate()
			return
		case conv(deprecated.TimeMillis):
			n.unit, n.typ = 1000, types.NewTime(3)
			return
		case conv(deprecated.TimeMicros):
			n.unit, n.typ = 1_000_000, types.NewTime(3)
			return
		case conv(deprecated.TimestampMillis):
			n.unit, n.typ = 1000, timestampType(1000, true)
			return
		case conv(deprecated.TimestampMicros):
			n.unit, n.typ = 1_000_000, timestampType(1_000_000, true)
			return
		}
		for i, c := range []deprecated.ConvertedType{deprecated.Uint8, deprecated.Uint16, deprecated.Uint32, deprecated.Uint64,
			deprecated.Int8, deprecated.Int16, deprecated.Int32, deprecated.Int64} {
			if conv(c) {
				bits, signed = 8<<(i&3), i >= 4
			}
		}
	default:
		return
	}
	n.unsigned = !signed
	if !signed {
		// Our integers are signed: an unsigned one takes the next width.
		bits *= 2
	}
	switch {
	case bits <= 8:
		n.typ = types.NewTinyInt()
	case bits <= 16:
		n.typ = types.NewSmallInt()
	case bits <= 32:
		n.typ = types.NewInt()
	case bits <= 64:
		n.typ = types.NewBigInt()
	default:
		n.typ = types.NewDecimal(20, 0)
	}
}

func unitOf(u format.TimeUnit) int64 {
	switch u.Value.(type) {
	case *format.MilliSeconds:
		return 1000
	case *format.NanoSeconds:
		return 1_000_000_000
	}
	return 1_000_000
}

func timestampType(unit int64, utc bool) types.Type {
	p := 6
	switch unit {
	case 1000:
		p = 3
	case 1_000_000_000:
		p = 9
	}
	if utc {
		return types.NewTimestampLTZ(p)
	}
	return types.NewTimestamp(p)
}

// byName finds a column: the exact name, else the only one that is equal when
// case is ignored (Hive writes lower-case names).
func byName(nodes []*fileNode, name string) *fileNode {
	var folded *fileNode
	several := false
	for _, n := range nodes {
		if n.name == name {
			return n
		}
		if strings.EqualFold(n.name, name) {
			several = folded != nil
			folded = n
		}
	}
	if several {
		return nil
	}
	return folded
}
