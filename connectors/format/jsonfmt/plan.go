package jsonfmt

import (
	"strings"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/scalar"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// op is how a node's value is converted.
type op uint8

const (
	opString op = iota
	opInt
	opBool
	opFloat32
	opFloat64
	opDecimal
	opBytes
	opDate
	opTime
	opTimestamp
	opArray
	opMap
	opRow
)

// node is a column, field or element that is filled.
type node struct {
	op       op
	nullable bool
	zoned    bool // TIMESTAMP_LTZ
	standard scalar.Standard
	column   int32 // batch column that is counted on
	bits     uint  // opInt: 8, 16, 32, 64
	maxLen   int   // opString in code points, opBytes in bytes
	vec      *batch.Vec
	typ      types.Type
	path     string // as in ValueError.Where
	row      *object
	key      *node // opMap
	elem     *node // opArray, opMap
}

// object is what is known of the objects that fill a table's row or a ROW.
//
// keys[0] stands for the beginning. keys[i].next is the key that followed key
// i the last time; it is tried first. Keys that nobody needs are learned, too,
// up to a bound, so that they are recognised as fast.
type object struct {
	fields []*node
	keys   []keyEntry
	index  map[string]int32
}

type keyEntry struct {
	name string
	node *node // nil: not needed
	// plain: the name stands in JSON as it is, so raw bytes can be compared.
	plain bool
	next  int32
}

const (
	maxLearnedKeys   = 512
	maxLearnedLength = 64
)

func newObject() *object {
	return &object{keys: make([]keyEntry, 1, 8), index: map[string]int32{}}
}

func (o *object) add(name string, n *node) {
	o.fields = append(o.fields, n)
	o.index[name] = int32(len(o.keys))
	o.keys = append(o.keys, keyEntry{name: name, node: n, plain: !strings.ContainsAny(name, "\"\\")})
}

// learn adds a key that nobody needs and returns its number, 0 when there is
// no room.
func (o *object) learn(key []byte) int32 {
	if len(o.keys) > len(o.fields)+maxLearnedKeys || len(key) > maxLearnedLength {
		return 0
	}
	i := int32(len(o.keys))
	name := string(key)
	o.keys = append(o.keys, keyEntry{name: name, plain: true})
	o.index[name] = i
	return i
}

// follows remembers that key i came after key prev.
func (o *object) follows(prev, i int32) {
	if o.keys[i].plain {
		o.keys[prev].next = i
	}
}

type compiler struct {
	settings
	column int32
}

func (c *compiler) node(t types.Type, path string) (*node, error) {
	n := &node{nullable: t.Nullable, typ: t, path: path, column: c.column, standard: c.standard}
	switch t.Kind {
	case types.Boolean:
		n.op = opBool
	case types.TinyInt, types.SmallInt, types.Int, types.IntervalYearMonth, types.BigInt, types.IntervalDaySecond:
		n.op = opInt
		n.bits = map[types.Physical]uint{types.PhysInt8: 8, types.PhysInt16: 16, types.PhysInt32: 32, types.PhysInt64: 64}[t.Physical()]
	case types.Float:
		n.op = opFloat32
	case types.Double:
		n.op = opFloat64
	case types.Decimal:
		n.op = opDecimal
	case types.Char, types.Varchar:
		n.op, n.maxLen = opString, t.Length
	case types.Binary, types.Varbinary:
		n.op, n.maxLen = opBytes, t.Length
	case types.Date:
		n.op = opDate
	case types.Time:
		n.op = opTime
	case types.Timestamp, types.TimestampLTZ:
		n.op, n.zoned = opTimestamp, t.Kind == types.TimestampLTZ
	case types.Array:
		n.op = opArray
		return n, c.child(&n.elem, *t.Elem, path+"[]")
	case types.Map:
		n.op = opMap
		if !t.Key.IsString() {
			return nil, &format.FieldTypeError{Format: "json", Column: path, Type: t, Reason: "keys of JSON objects are strings"}
		}
		if err := c.child(&n.key, *t.Key, path); err != nil {
			return nil, err
		}
		return n, c.child(&n.elem, *t.Elem, path+"[]")
	case types.Row:
		n.op, n.row = opRow, newObject()
		for _, f := range t.Fields {
			var k *node
			if err := c.child(&k, f.Type, path+"."+f.Name); err != nil {
				return nil, err
			}
			n.row.add(f.Name, k)
		}
	default:
		return nil, &format.FieldTypeError{Format: "json", Column: path, Type: t, Reason: "no JSON value stands for it"}
	}
	return n, nil
}

func (c *compiler) child(to **node, t types.Type, path string) (err error) {
	*to, err = c.node(t, path)
	return err
}

// bind points the node and its children at the columns of a batch.
func (n *node) bind(v *batch.Vec) {
	n.vec = v
	switch n.op {
	case opArray:
		n.elem.bind(v.Children[0])
	case opMap:
		n.key.bind(v.Children[0])
		n.elem.bind(v.Children[1])
	case opRow:
		for i, f := range n.row.fields {
			f.bind(v.Children[i])
		}
	}
}
