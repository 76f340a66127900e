package metastore

import (
	"context"
	"fmt"

	"github.com/apache/thrift/lib/go/thrift"
)

// encoder writes structs; the first error stays.
type encoder struct {
	p   thrift.TProtocol
	err error
}

func (e *encoder) do(err error) {
	if e.err == nil {
		e.err = err
	}
}

// field writes one field.
func (e *encoder) field(id int16, t thrift.TType, body func()) {
	ctx := context.Background()
	e.do(e.p.WriteFieldBegin(ctx, "", t, id))
	body()
	e.do(e.p.WriteFieldEnd(ctx))
}

// structure writes a whole struct.
func (e *encoder) structure(body func()) {
	ctx := context.Background()
	e.do(e.p.WriteStructBegin(ctx, ""))
	body()
	e.do(e.p.WriteFieldStop(ctx))
	e.do(e.p.WriteStructEnd(ctx))
}

func (e *encoder) rawString(s string) { e.do(e.p.WriteString(context.Background(), s)) }

func (e *encoder) str(id int16, s string) {
	e.field(id, thrift.STRING, func() { e.rawString(s) })
}

// optional leaves an empty string out: Java then has null.
func (e *encoder) optional(id int16, s string) {
	if s != "" {
		e.str(id, s)
	}
}

func (e *encoder) i32(id int16, n int32) {
	e.field(id, thrift.I32, func() { e.do(e.p.WriteI32(context.Background(), n)) })
}

func (e *encoder) i16(id int16, n int16) {
	e.field(id, thrift.I16, func() { e.do(e.p.WriteI16(context.Background(), n)) })
}

func (e *encoder) boolean(id int16, b bool) {
	e.field(id, thrift.BOOL, func() { e.do(e.p.WriteBool(context.Background(), b)) })
}

func (e *encoder) strings(id int16, list []string) {
	e.list(id, thrift.STRING, len(list), func(i int) { e.rawString(list[i]) })
}

func (e *encoder) list(id int16, elem thrift.TType, n int, item func(i int)) {
	ctx := context.Background()
	e.field(id, thrift.LIST, func() {
		e.do(e.p.WriteListBegin(ctx, elem, n))
		for i := range n {
			item(i)
		}
		e.do(e.p.WriteListEnd(ctx))
	})
}

func (e *encoder) stringMap(id int16, m map[string]string) {
	ctx := context.Background()
	e.field(id, thrift.MAP, func() {
		e.do(e.p.WriteMapBegin(ctx, thrift.STRING, thrift.STRING, len(m)))
		for k, v := range m {
			e.rawString(k)
			e.rawString(v)
		}
		e.do(e.p.WriteMapEnd(ctx))
	})
}

// extra is a field that this package does not know, as its bytes.
type extra struct {
	id   int16
	kind thrift.TType
	raw  []byte
}

func (e *encoder) extras(list []extra) {
	for _, x := range list {
		e.field(x.id, x.kind, func() {
			_, err := e.p.Transport().Write(x.raw)
			e.do(err)
		})
	}
}

// decoder reads structs; the first error stays.
type decoder struct {
	p   thrift.TProtocol
	err error
}

func (d *decoder) do(err error) {
	if d.err == nil {
		d.err = err
	}
}

// structure reads a struct. field is asked for each field and reports whether
// it took it; what it does not take is skipped, or kept when extras is not nil.
func (d *decoder) structure(extras *[]extra, field func(id int16, t thrift.TType) bool) {
	ctx := context.Background()
	if d.err != nil {
		return
	}
	_, err := d.p.ReadStructBegin(ctx)
	d.do(err)
	for d.err == nil {
		_, t, id, err := d.p.ReadFieldBegin(ctx)
		if d.do(err); d.err != nil || t == thrift.STOP {
			break
		}
		if !field(id, t) && d.err == nil {
			if extras == nil {
				d.do(d.p.Skip(ctx, t))
			} else {
				d.keep(extras, id, t)
			}
		}
	}
}

// keep copies a field's value.
func (d *decoder) keep(extras *[]extra, id int16, t thrift.TType) {
	buf := thrift.NewTMemoryBuffer()
	e := &encoder{p: thrift.NewTBinaryProtocolConf(buf, nil)}
	d.copyValue(e, t, thrift.DEFAULT_RECURSION_DEPTH)
	d.do(e.err)
	*extras = append(*extras, extra{id: id, kind: t, raw: append([]byte(nil), buf.Bytes()...)})
}

func (d *decoder) copyValue(e *encoder, t thrift.TType, depth int) {
	ctx := context.Background()
	if depth == 0 {
		d.do(fmt.Errorf("a value is nested more than %d levels", thrift.DEFAULT_RECURSION_DEPTH))
	}
	if d.err != nil {
		return
	}
	switch t {
	case thrift.BOOL:
		v, err := d.p.ReadBool(ctx)
		d.do(err)
		e.do(e.p.WriteBool(ctx, v))
	case thrift.BYTE:
		v, err := d.p.ReadByte(ctx)
		d.do(err)
		e.do(e.p.WriteByte(ctx, v))
	case thrift.I16:
		v, err := d.p.ReadI16(ctx)
		d.do(err)
		e.do(e.p.WriteI16(ctx, v))
	case thrift.I32:
		v, err := d.p.ReadI32(ctx)
		d.do(err)
		e.do(e.p.WriteI32(ctx, v))
	case thrift.I64:
		v, err := d.p.ReadI64(ctx)
		d.do(err)
		e.do(e.p.WriteI64(ctx, v))
	case thrift.DOUBLE:
		v, err := d.p.ReadDouble(ctx)
		d.do(err)
		e.do(e.p.WriteDouble(ctx, v))
	case thrift.STRING:
		v, err := d.p.ReadBinary(ctx)
		d.do(err)
		e.do(e.p.WriteBinary(ctx, v))
	case thrift.STRUCT:
		e.structure(func() {
			d.structure(nil, func(id int16, t thrift.TType) bool {
				e.field(id, t, func() { d.copyValue(e, t, depth-1) })
				return true
			})
		})
	case thrift.LIST, thrift.SET:
		// Both are written alike.
		elem, n, err := d.p.ReadListBegin(ctx)
		d.do(err)
		e.do(e.p.WriteListBegin(ctx, elem, n))
		for i := 0; i < n && d.err == nil; i++ {
			d.copyValue(e, elem, depth-1)
		}
	case thrift.MAP:
		k, v, n, err := d.p.ReadMapBegin(ctx)
		d.do(err)
		e.do(e.p.WriteMapBegin(ctx, k, v, n))
		for i := 0; i < n && d.err == nil; i++ {
			d.copyValue(e, k, depth-1)
			d.copyValue(e, v, depth-1)
		}
	default:
		d.do(fmt.Errorf("a field has the unknown Thrift type %d", t))
	}
}

// The readers below take a field if it has their type.

func (d *decoder) str(t thrift.TType, v *string) bool {
	if t != thrift.STRING {
		return false
	}
	s, err := d.p.ReadString(context.Background())
	d.do(err)
	*v = s
	return true
}

func (d *decoder) i32(t thrift.TType, v *int32) bool {
	if t != thrift.I32 {
		return false
	}
	n, err := d.p.ReadI32(context.Background())
	d.do(err)
	*v = n
	return true
}

func (d *decoder) boolean(t thrift.TType, v *bool) bool {
	if t != thrift.BOOL {
		return false
	}
	b, err := d.p.ReadBool(context.Background())
	d.do(err)
	*v = b
	return true
}

// list reads a list whose elements item reads; want is their type.
func (d *decoder) list(t, want thrift.TType, item func()) bool {
	if t != thrift.LIST {
		return false
	}
	ctx := context.Background()
	elem, n, err := d.p.ReadListBegin(ctx)
	d.do(err)
	for i := 0; i < n && d.err == nil; i++ {
		if elem != want {
			d.do(d.p.Skip(ctx, elem))
			continue
		}
		item()
	}
	d.do(d.p.ReadListEnd(ctx))
	return true
}

func (d *decoder) strings(t thrift.TType, v *[]string) bool {
	*v = []string{}
	return d.list(t, thrift.STRING, func() {
		var s string
		d.str(thrift.STRING, &s)
		*v = append(*v, s)
	})
}

func (d *decoder) stringMap(t thrift.TType, v *map[string]string) bool {
	if t != thrift.MAP {
		return false
	}
	ctx := context.Background()
	kt, vt, n, err := d.p.ReadMapBegin(ctx)
	d.do(err)
	if d.err == nil && n > 0 && (kt != thrift.STRING || vt != thrift.STRING) {
		d.do(fmt.Errorf("a map of strings has the types %d and %d", kt, vt))
	}
	m := map[string]string{}
	for i := 0; i < n && d.err == nil; i++ {
		var k, x string
		d.str(thrift.STRING, &k)
		d.str(thrift.STRING, &x)
		m[k] = x
	}
	d.do(d.p.ReadMapEnd(ctx))
	*v = m
	return true
}
