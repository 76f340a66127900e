package jsonfmt

import (
	"encoding/binary"
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
//
// An entry of size 0, as the first is before anything is learned, has a mask
// of 0 and a head that no masked text equals.
type object struct {
	fields []*node
	keys   []keyEntry
	index  map[string]int32
}

// keyEntry is a key as it stands in the text, from behind its opening quote to
// the colon: `id":`. The first eight bytes and the last eight are compared as
// integers; only longer keys need more.
type keyEntry struct {
	head, mask, tail uint64
	node             *node // nil: not needed
	size             int32 // of the text; 0: it cannot be compared as raw bytes
	next             int32
	long             string // the text, if it is longer than 16 bytes
}

func newKeyEntry(name string, n *node) keyEntry {
	e := keyEntry{node: n, head: 1}
	if strings.ContainsAny(name, "\"\\") {
		return e
	}
	text := name + `":`
	e.size = int32(len(text))
	var b [8]byte
	copy(b[:], text)
	e.head, e.mask = binary.LittleEndian.Uint64(b[:]), ^uint64(0)
	if len(text) < 8 {
		e.mask >>= 64 - 8*len(text)
	} else {
		e.tail = binary.LittleEndian.Uint64([]byte(text[len(text)-8:]))
	}
	if len(text) > 16 {
		e.long = text
	}
	return e
}

// at reports whether the key stands at p, where at least eight bytes follow.
func (e *keyEntry) at(b []byte, p int) bool {
	if binary.LittleEndian.Uint64(b[p:])&e.mask != e.head {
		return false
	}
	return e.size <= 8 || e.rest(b, p)
}

func (e *keyEntry) rest(b []byte, p int) bool {
	end := p + int(e.size)
	return end <= len(b) && binary.LittleEndian.Uint64(b[end-8:]) == e.tail && (e.size <= 16 || string(b[p:end]) == e.long)
}

const (
	maxLearnedKeys   = 512
	maxLearnedLength = 64
)

func newObject() *object {
	return &object{keys: append(make([]keyEntry, 0, 8), keyEntry{head: 1}), index: map[string]int32{}}
}

func (o *object) add(name string, n *node) {
	o.fields = append(o.fields, n)
	o.index[name] = int32(len(o.keys))
	o.keys = append(o.keys, newKeyEntry(name, n))
}

// learn adds a key that nobody needs and returns its number, 0 when there is
// no room.
func (o *object) learn(key []byte) int32 {
	if len(o.keys) > len(o.fields)+maxLearnedKeys || len(key) > maxLearnedLength {
		return 0
	}
	i := int32(len(o.keys))
	name := string(key)
	o.keys = append(o.keys, newKeyEntry(name, nil))
	o.index[name] = i
	return i
}

// follows remembers that key i came after key prev.
func (o *object) follows(prev, i int32) {
	if o.keys[i].size > 0 {
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
