package clickhouse

import (
	"encoding/binary"
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/types"
)

// failure takes a row, by its place among the rows that are checked, that cannot
// be represented.
type failure func(k int, message string)

// column converts values of one SQL type to one ClickHouse type. It has no state:
// the values go into a buffer.
type column struct {
	sql types.Type
	ch  *chType // without Nullable and LowCardinality
	// nullable: ClickHouse's column takes NULL.
	nullable bool
	// lowCardinality: values are keys of a dictionary.
	lowCardinality bool
	kids           []*column
	// put appends the values at physical indexes; nullRow is a default value.
	put func(c *column, b *buffer, v *batch.Vec, rows []int32, s *scratch)
	// check reports the rows whose values do not fit; nil: all fit.
	check func(c *column, v *batch.Vec, rows []int32, s *scratch, fail failure)
	// ints and wide say how numbers are converted.
	ints intRule
	wide wideRule
	// enum are the values of an Enum.
	enum map[string]int64
	// width of a value in bytes, for fixed ones.
	width int
}

// checks reports whether any row may be refused.
func (c *column) checks() bool {
	if c.check != nil || !c.nullable && c.sql.Nullable {
		return true
	}
	for _, k := range c.kids {
		if k.checks() {
			return true
		}
	}
	return false
}

// append takes rows of v, which are indexes before any encoding.
func (c *column) append(b *buffer, v *batch.Vec, rows []int32, s *scratch) {
	l := s.enter()
	defer s.leave()
	l.rows = append(l.rows[:0], rows...)
	rows = l.rows
	v = flatten(v, rows)
	b.rows += len(rows)
	if c.nullable && !c.lowCardinality {
		b.nulls = appendNulls(b.nulls, rows)
	}
	c.put(c, b, v, rows, s)
}

func appendNulls(dst []byte, rows []int32) []byte {
	at := len(dst)
	dst = grow(dst, len(rows))
	for k, r := range rows {
		dst[at+k] = 0
		if r < 0 {
			dst[at+k] = 1
		}
	}
	return dst
}

// refuse reports the rows of v that cannot be written.
func (c *column) refuse(v *batch.Vec, rows []int32, s *scratch, fail failure) {
	l := s.enter()
	defer s.leave()
	l.rows = append(l.rows[:0], rows...)
	rows = l.rows
	v = flatten(v, rows)
	if !c.nullable {
		for k, r := range rows {
			if r < 0 {
				fail(k, "NULL in a column of type "+c.ch.text+", which takes none")
			}
		}
	}
	if c.check != nil {
		c.check(c, v, rows, s, fail)
	}
}

// prefix writes what stands before a column's values, for all of its parts.
func (c *column) prefix(dst []byte) []byte {
	if c.lowCardinality {
		const sharedDictionariesWithAdditionalKeys = 1
		return binary.LittleEndian.AppendUint64(dst, sharedDictionariesWithAdditionalKeys)
	}
	for _, k := range c.kids {
		dst = k.prefix(dst)
	}
	return dst
}

// emit writes the values. b's own memory is written without a copy.
func (c *column) emit(b *buffer, w *blockWriter) {
	if c.lowCardinality {
		c.emitDictionary(b, w)
		return
	}
	if c.nullable {
		w.write(b.nulls)
	}
	w.write(b.ends)
	w.write(b.data)
	for i, k := range c.kids {
		k.emit(&b.kids[i], w)
	}
}

// emitDictionary writes a LowCardinality: the kind of index, the keys, the codes.
func (c *column) emitDictionary(b *buffer, w *blockWriter) {
	if b.rows == 0 {
		return
	}
	const additionalKeys, updateDictionary = 1 << 9, 1 << 10
	kind, width := uint64(0), 1
	switch n := len(b.keys) + 1; {
	case n > 1<<16:
		kind, width = 2, 4
	case n > 1<<8:
		kind, width = 1, 2
	}
	var head []byte
	head = binary.LittleEndian.AppendUint64(head, kind|additionalKeys|updateDictionary)
	keys := len(b.keys)
	if c.nullable {
		keys++ // key 0 stands for NULL
	}
	head = binary.LittleEndian.AppendUint64(head, uint64(keys))
	if c.nullable {
		head = append(head, make([]byte, max(c.width, 1))...)
	}
	w.write(head)
	w.write(b.data)
	head = binary.LittleEndian.AppendUint64(head[:0], uint64(b.rows))
	for _, code := range b.codes {
		switch width {
		case 1:
			head = append(head, byte(code))
		case 2:
			head = binary.LittleEndian.AppendUint16(head, uint16(code))
		default:
			head = binary.LittleEndian.AppendUint32(head, code)
		}
	}
	w.write(head)
}

// newColumn finds the conversion of a SQL type to a ClickHouse type, or says why
// there is none.
func newColumn(t types.Type, ch *chType, zone *types.Zone) (*column, error) {
	c := &column{sql: t, ch: ch}
	for {
		switch ch.name {
		case "SimpleAggregateFunction":
			// The first argument is the function.
			if len(ch.args) < 2 {
				return nil, fmt.Errorf("type %s has no argument type", ch.text)
			}
			ch = ch.args[1]
		case "LowCardinality":
			c.lowCardinality = true
			ch = ch.args[0]
		case "Nullable":
			c.nullable = true
			ch = ch.args[0]
		default:
			c.ch = ch
			err := c.bind(zone)
			if err != nil {
				return nil, err
			}
			if c.lowCardinality && !lowCardinalityOf(c) {
				return nil, fmt.Errorf("not_yet: LowCardinality(%s); only of String and FixedString", ch.text)
			}
			return c, nil
		}
		if len(ch.text) == 0 {
			return nil, fmt.Errorf("type %s has no argument", c.ch.text)
		}
	}
}

func lowCardinalityOf(c *column) bool {
	return (c.ch.name == "String" || c.ch.name == "FixedString") && (c.sql.IsString() || c.sql.IsBinary())
}

// bind chooses put and check by both types.
func (c *column) bind(zone *types.Zone) error {
	switch c.ch.name {
	case "Array", "Map", "Tuple":
		return c.bindNested(zone)
	case "String", "FixedString", "UUID", "IPv4", "IPv6":
		return c.bindText()
	case "Enum8", "Enum16", "Enum":
		return c.bindEnum()
	case "Float32", "Float64":
		return c.bindFloat()
	}
	return c.bindNumber(zone)
}

// mismatch is the error of two types without a conversion; how is what to write
// in the query instead.
func (c *column) mismatch(how string) error {
	err := fmt.Errorf("%s cannot be written as %s", c.sql.WithNullable(true), c.ch.text)
	if how != "" {
		err = fmt.Errorf("%w; %s", err, how)
	}
	return err
}
