package redis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// layout is how a table's rows become commands. It does not change.
type layout struct {
	typ    string
	plain  bool
	key    *keyTemplate
	member int // column, or -1
	score  int // column, or -1
	// values are the columns outside the primary key.
	values []int
	names  []string // of all columns
	keys   []int    // of the primary key
	ttl    int64    // ms, 0: none
	json   *jsonfmt.Encoder
	// maps reports that a row may fail to be written as JSON.
	maps bool
}

func newLayout(t *connector.Table) (*layout, error) {
	v := t.Options
	l := &layout{typ: v.String(keyType), plain: v.String(keyFormat) == formatPlain, member: -1, score: -1,
		keys: t.PrimaryKey, ttl: v.Duration(keyTTL).Milliseconds()}
	if len(t.PrimaryKey) == 0 {
		return nil, errors.New("keys of connector redis are made of the primary key, and the table has none: add PRIMARY KEY (...) NOT ENFORCED")
	}
	for i, c := range t.Columns {
		l.names = append(l.names, c.Name)
		if !slices.Contains(t.PrimaryKey, i) {
			l.values = append(l.values, i)
			continue
		}
		if k := c.Type.Kind; nested(c.Type) || k == types.Float || k == types.Double {
			return nil, &connector.ColumnError{Column: i, Message: fmt.Sprintf("column %q of the primary key is %s: a key or a member is made of text, bytes, whole and decimal numbers, BOOLEAN and times", c.Name, c.Type)}
		}
	}
	keys := slices.Clone(t.PrimaryKey)
	if l.typ == typeSet || l.typ == typeZSet {
		at := len(keys) - 1
		if name := v.String(keyMember); name != "" {
			if at = slices.IndexFunc(keys, func(c int) bool { return l.names[c] == name }); at < 0 {
				return nil, &connector.OptionError{Key: keyMember, OnValue: true, Message: fmt.Sprintf("%q is no column of the primary key", name)}
			}
		}
		l.member = keys[at]
		keys = slices.Delete(keys, at, at+1)
	}
	if err := l.bindValues(t); err != nil {
		return nil, err
	}
	template := v.String(keyKey)
	if template == "" {
		template = defaultKey(t, keys)
	}
	var err error
	l.key, err = parseKey(template, t, keys)
	return l, err
}

// bindValues checks the columns outside the primary key against the data type.
func (l *layout) bindValues(t *connector.Table) error {
	switch l.typ {
	case typeHash:
		for _, c := range l.values {
			if nested(t.Columns[c].Type) {
				return &connector.ColumnError{Column: c, Message: fmt.Sprintf("not_yet: column %q, %s, as a field of a hash; use '%s' = '%s', or write its parts", l.names[c], t.Columns[c].Type, keyType, typeString)}
			}
		}
		if len(l.values) == 0 {
			return fmt.Errorf("a hash needs a column outside the primary key; '%s' = '%s' keeps keys alone", keyType, typeSet)
		}
	case typeString:
		return l.bindString(t)
	case typeSet:
		if len(l.values) > 0 {
			return &connector.ColumnError{Column: l.values[0], Message: fmt.Sprintf("a set holds members alone, and column %q is outside the primary key", l.names[l.values[0]])}
		}
	case typeZSet:
		name := t.Options.String(keyScore)
		l.score = slices.Index(l.names, name)
		switch {
		case l.score < 0 || !slices.Contains(l.values, l.score):
			return &connector.OptionError{Key: keyScore, OnValue: true, Message: fmt.Sprintf("%q is no column outside the primary key", name)}
		case !scoreType(t.Columns[l.score].Type):
			return &connector.OptionError{Key: keyScore, OnValue: true, Message: fmt.Sprintf("column %q is %s; a score is a double", name, t.Columns[l.score].Type), Hint: "CAST it to DOUBLE"}
		case len(l.values) > 1:
			return fmt.Errorf("a sorted set holds members and scores alone, and the table has %d columns outside the primary key", len(l.values))
		}
	}
	return nil
}

func (l *layout) bindString(t *connector.Table) error {
	if len(l.values) == 0 {
		return fmt.Errorf("a string needs a column outside the primary key")
	}
	if l.plain {
		if len(l.values) > 1 {
			return &connector.OptionError{Key: keyFormat, OnValue: true, Message: fmt.Sprintf("plain is the text of one column, and %d are outside the primary key", len(l.values))}
		}
		if c := t.Columns[l.values[0]]; nested(c.Type) {
			return &connector.OptionError{Key: keyFormat, OnValue: true, Message: fmt.Sprintf("column %q, %s, has no plain text", c.Name, c.Type)}
		}
		return nil
	}
	cfg := format.EncoderConfig{Columns: l.values}
	for _, c := range l.values {
		cfg.Fields = append(cfg.Fields, t.Columns[c].Field)
		l.maps = l.maps || nested(t.Columns[c].Type)
	}
	var err error
	l.json, err = jsonfmt.NewEncoder(cfg)
	return err
}

// encoder makes commands of rows. It belongs to one writer.
type encoder struct {
	*layout
	wrong   *wrongKeys
	scratch []byte
}

// Check implements outbox.Encoder.
func (e *encoder) Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError {
	wrong := e.wrong.any()
	n := b.Len
	if sel != nil {
		n = len(sel)
	}
	for k := range n {
		row := k
		if sel != nil {
			row = int(sel[k])
		}
		if b.KindOf(row) == batch.UpdateBefore {
			continue
		}
		if where, why := e.refuse(b, row, wrong); why != "" {
			bad = append(bad, batch.ValueError{Row: int32(row), Code: batch.CodeSinkRefused, Where: where, Message: why})
		}
	}
	return bad
}

func (e *encoder) refuse(b *batch.Batch, row int, wrong bool) (where, why string) {
	for _, c := range e.keys {
		if b.Cols[c].IsNull(row) {
			return e.names[c], "NULL is no part of a key"
		}
	}
	column, sep, scratch := e.key.ambiguous(b, row, e.scratch)
	e.scratch = scratch
	if column >= 0 {
		return e.names[column], fmt.Sprintf("it holds %q, which ends it in '%s': the key could be another row's", sep, keyKey)
	}
	if e.score >= 0 && b.KindOf(row) != batch.Delete {
		if _, why := score(&b.Cols[e.score], row); why != "" {
			return e.names[e.score], why
		}
	}
	if e.maps {
		text, err := e.json.AppendRow(e.scratch[:0], b, row)
		if e.scratch = text; err != nil {
			return "", err.Error()
		}
	}
	if wrong {
		e.scratch = e.key.append(e.scratch[:0], b, row)
		if e.wrong.has(e.scratch) {
			return "", fmt.Sprintf("key %q holds another type than %s", e.scratch, e.typ)
		}
	}
	return "", ""
}

// Append implements outbox.Encoder. Of an update only the row after it counts.
func (e *encoder) Append(body []byte, b *batch.Batch, row int) ([]byte, int64, error) {
	kind := b.KindOf(row)
	if kind == batch.UpdateBefore {
		return body, 0, nil
	}
	gone := kind == batch.Delete
	switch e.typ {
	case typeHash:
		body, n := e.hash(body, b, row, gone)
		return body, n, nil
	case typeString:
		return e.text(body, b, row, gone)
	}
	member := func(body []byte) []byte {
		e.scratch = appendText(e.scratch[:0], &b.Cols[e.member], row)
		return argument(body, e.scratch)
	}
	switch {
	case gone && e.typ == typeSet:
		return member(e.command(body, 3, "SREM", b, row)), 1, nil
	case gone:
		return member(e.command(body, 3, "ZREM", b, row)), 1, nil
	case e.typ == typeSet:
		body = member(e.command(body, 3, "SADD", b, row))
	default:
		x, why := score(&b.Cols[e.score], row)
		if why != "" {
			return body, 0, errors.New(why)
		}
		body = e.command(body, 4, "ZADD", b, row)
		e.scratch = appendScore(e.scratch[:0], x)
		body = member(argument(body, e.scratch))
	}
	body, n := e.expire(body, b, row)
	return body, 1 + n, nil
}

func appendScore(dst []byte, x float64) []byte {
	switch {
	case math.IsInf(x, 1):
		return append(dst, "+inf"...)
	case math.IsInf(x, -1):
		return append(dst, "-inf"...)
	}
	return strconv.AppendFloat(dst, x, 'g', -1, 64)
}

// hash sets the fields that have values and removes those that are NULL: other
// fields of the key, which other tables may write, stay.
func (e *encoder) hash(body []byte, b *batch.Batch, row int, gone bool) ([]byte, int64) {
	nulls := 0
	for _, c := range e.values {
		if gone || b.Cols[c].IsNull(row) {
			nulls++
		}
	}
	n := int64(0)
	if have := len(e.values) - nulls; have > 0 {
		body = e.command(body, 2+2*have, "HSET", b, row)
		for _, c := range e.values {
			if v := &b.Cols[c]; !v.IsNull(row) {
				body = argument(body, []byte(e.names[c]))
				e.scratch = appendText(e.scratch[:0], v, row)
				body = argument(body, e.scratch)
			}
		}
		body, n = e.expire(body, b, row)
		n++
	}
	if nulls == 0 {
		return body, n
	}
	body = e.command(body, 2+nulls, "HDEL", b, row)
	for _, c := range e.values {
		if gone || b.Cols[c].IsNull(row) {
			body = argument(body, []byte(e.names[c]))
		}
	}
	return body, n + 1
}

func (e *encoder) text(body []byte, b *batch.Batch, row int, gone bool) ([]byte, int64, error) {
	if gone || e.plain && b.Cols[e.values[0]].IsNull(row) {
		return e.command(body, 2, "DEL", b, row), 1, nil
	}
	args := 3
	if e.ttl > 0 {
		args = 5
	}
	body = e.command(body, args, "SET", b, row)
	e.scratch = e.scratch[:0]
	if e.plain {
		e.scratch = appendText(e.scratch, &b.Cols[e.values[0]], row)
	} else {
		var err error
		if e.scratch, err = e.json.AppendRow(e.scratch, b, row); err != nil {
			return body, 0, err
		}
	}
	body = argument(body, e.scratch)
	if e.ttl > 0 {
		body = argument(body, []byte("PX"))
		body = number(body, e.ttl)
	}
	return body, 1, nil
}

func (e *encoder) expire(body []byte, b *batch.Batch, row int) ([]byte, int64) {
	if e.ttl == 0 {
		return body, 0
	}
	return number(e.command(body, 3, "PEXPIRE", b, row), e.ttl), 1
}

// command begins a command of that many arguments, itself and the key included.
func (e *encoder) command(body []byte, args int, name string, b *batch.Batch, row int) []byte {
	body = binary.AppendUvarint(body, uint64(args))
	body = argument(body, []byte(name))
	e.scratch = e.key.append(e.scratch[:0], b, row)
	return argument(body, e.scratch)
}

func argument(body, arg []byte) []byte {
	return append(binary.AppendUvarint(body, uint64(len(arg))), arg...)
}

func number(body []byte, x int64) []byte {
	var text [20]byte
	return argument(body, strconv.AppendInt(text[:0], x, 10))
}
