package syntax

import "strings"

// mask is what a secret prints as.
const mask = "***"

// display returns value with the secrets of t masked; t may be nil.
func (t *Text) display(value string) string {
	if !t.HasSecret() {
		return value
	}
	var b strings.Builder
	for _, p := range t.Parts {
		switch {
		case p.Var == nil:
			b.WriteString(p.Lit)
		case p.Var.Secret:
			b.WriteString(mask)
		case p.Var.Bound:
			b.WriteString(p.Var.Value)
		default:
			b.WriteString(p.Var.source())
		}
	}
	return b.String()
}

// source spells the placeholder.
func (v *Var) source() string {
	s := "${"
	if v.Secret {
		s += "secret:"
	}
	s += v.Name
	if v.HasDefault {
		s += ":-" + v.Default
	}
	return s + "}"
}

// value joins the parts; unbound variables are spelled as placeholders.
func (t *Text) value() string {
	var b strings.Builder
	for _, p := range t.Parts {
		switch {
		case p.Var == nil:
			b.WriteString(p.Lit)
		case p.Var.Bound:
			b.WriteString(p.Var.Value)
		default:
			b.WriteString(p.Var.source())
		}
	}
	return b.String()
}
