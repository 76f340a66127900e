package syntax

import (
	"reflect"
	"strings"
)

// Pending returns the variables below n that are not bound yet, in source order.
func Pending(n Node) []*Var {
	var out []*Var
	Walk(n, func(n Node) bool {
		switch n := n.(type) {
		case *Ident:
			out = append(out, n.Text.Pending()...)
		case *StringLit:
			out = append(out, n.Text.Pending()...)
		}
		return true
	})
	return out
}

// Substitute returns n with the unbound variables that lookup knows bound: loop variables of FOR EACH, in
// the body and in the options of templates. Where lookup knows nothing a variable's default counts, if it
// has one. Nodes without a change are shared with n, which stays as it is. Spans do not change; values are
// never lexed.
func Substitute[N Node](n N, lookup func(name string) (value string, ok bool)) N {
	s := substituter{lookup: lookup}
	v := s.value(reflect.ValueOf(n))
	if !v.IsValid() {
		return n
	}
	return v.Interface().(N)
}

// substituter copies what changes. It goes by reflection because it has to copy every kind of node; it
// runs once per statement and loop instance, far from any row.
type substituter struct {
	lookup func(string) (string, bool)
}

var (
	nodeType = reflect.TypeFor[Node]()
	textType = reflect.TypeFor[*Text]()
)

// value returns a changed copy of v, or the invalid Value if nothing below v changes.
func (s *substituter) value(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Interface:
		if v.IsNil() || !v.Type().Implements(nodeType) {
			return reflect.Value{}
		}
		return s.value(v.Elem())
	case reflect.Pointer:
		if v.IsNil() || !v.Type().Implements(nodeType) {
			return reflect.Value{}
		}
		return s.node(v)
	case reflect.Slice:
		return s.slice(v)
	}
	return reflect.Value{}
}

func (s *substituter) slice(v reflect.Value) reflect.Value {
	var out reflect.Value
	for i := range v.Len() {
		item := s.value(v.Index(i))
		if !item.IsValid() {
			continue
		}
		if !out.IsValid() {
			out = reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(out, v)
		}
		out.Index(i).Set(item)
	}
	return out
}

// node handles a pointer to a node.
func (s *substituter) node(v reflect.Value) reflect.Value {
	var out reflect.Value
	set := func(i int, field reflect.Value) {
		if !out.IsValid() {
			out = reflect.New(v.Type().Elem())
			out.Elem().Set(v.Elem())
		}
		out.Elem().Field(i).Set(field)
	}
	for i := range v.Elem().NumField() {
		field := v.Elem().Field(i)
		if field.Type() == textType {
			if text := s.text(field.Interface().(*Text)); text != nil {
				set(i, reflect.ValueOf(text))
			}
			continue
		}
		if changed := s.value(field); changed.IsValid() {
			set(i, changed)
		}
	}
	if out.IsValid() {
		switch n := out.Interface().(type) {
		case *Ident:
			if n.Text != nil {
				n.Name = n.Text.value()
			}
		case *StringLit:
			if n.Text != nil {
				n.Value = n.Text.value()
			}
		}
	}
	return out
}

// text returns t with variables bound, or nil if there is nothing to bind.
func (s *substituter) text(t *Text) *Text {
	if t == nil {
		return nil
	}
	var out *Text
	for i, p := range t.Parts {
		if p.Var == nil || p.Var.Bound || p.Var.Secret {
			continue
		}
		value, ok := s.lookup(p.Var.Name)
		if !ok && p.Var.HasDefault {
			value, ok = p.Var.Default, true
		}
		if !ok {
			continue
		}
		if out == nil {
			out = &Text{Parts: append([]TextPart(nil), t.Parts...)}
		}
		bound := *p.Var
		bound.Value, bound.Bound = value, true
		out.Parts[i].Var = &bound
	}
	return out
}

// SpanOf returns the place in the source that byte i of a literal's value came from: the placeholder if it
// came from a variable, else the whole literal.
func (s *StringLit) SpanOf(i int) (at Loc) {
	if s.Text == nil {
		return s.Loc
	}
	pos := 0
	for _, p := range s.Text.Parts {
		n := len(p.Lit)
		if p.Var != nil {
			n = len(p.Var.source())
			if p.Var.Bound {
				n = len(p.Var.Value)
			}
		}
		if i < pos+n {
			if p.Var != nil {
				return p.Var.Loc
			}
			break
		}
		pos += n
	}
	return s.Loc
}

// Mask replaces secret values of n's literals wherever they occur in text, for messages that come from
// elsewhere.
func Mask(n Node, text string) string {
	Walk(n, func(n Node) bool {
		if s, ok := n.(*StringLit); ok && s.Text.HasSecret() {
			for _, p := range s.Text.Parts {
				if p.Var != nil && p.Var.Secret && p.Var.Value != "" {
					text = strings.ReplaceAll(text, p.Var.Value, mask)
				}
			}
		}
		return true
	})
	return text
}
