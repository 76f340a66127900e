package diag

import (
	"fmt"
	"slices"
)

// Severity says what a diagnostic means for the statement. Only errors stop a job from starting.
type Severity uint8

// The severities, most serious first.
const (
	Error   Severity = iota // the statement is refused
	Warning                 // the statement runs; something is probably not meant
	Info                    // worth knowing (lint)
)

// String returns "error", "warning" or "info".
func (s Severity) String() string {
	switch s {
	case Error:
		return "error"
	case Warning:
		return "warning"
	case Info:
		return "info"
	}
	return "unknown"
}

// Code is the stable name of a kind of diagnostic, in snake_case ("unknown_column"). Each is declared in
// codes*.go with its page.
type Code string

// Note adds a fact to a diagnostic. With a span it prints its own place; without one, a line.
type Note struct {
	Span    Span // may be zero
	Message string
}

// Diagnostic is one message about a source text. Message is one sentence without a final stop, names in
// double quotes. Help says what to do, one entry per way out.
//
// Instance names the expansion that the message is about, when one piece of text is bound many times (the
// table of a FOR EACH body, the table made by LIKE), and Made the names that the text makes of it.
// Diagnostics that differ only in these print once, see List.Dedup. Trace holds, innermost first, the places that led from the file the user runs to
// Span ("in FOR EACH, t = \"app_open\"").
type Diagnostic struct {
	Code     Code
	Severity Severity
	Span     Span
	Message  string
	Notes    []Note
	Help     []string
	Instance string
	Made     []string
	Trace    []Note

	more int // equal diagnostics of other instances that were folded into this one
}

// Errorf makes an error.
func Errorf(code Code, span Span, format string, args ...any) *Diagnostic {
	return &Diagnostic{Code: code, Severity: Error, Span: span, Message: fmt.Sprintf(format, args...)}
}

// Warnf makes a warning.
func Warnf(code Code, span Span, format string, args ...any) *Diagnostic {
	return &Diagnostic{Code: code, Severity: Warning, Span: span, Message: fmt.Sprintf(format, args...)}
}

// Infof makes a diagnostic of severity Info.
func Infof(code Code, span Span, format string, args ...any) *Diagnostic {
	return &Diagnostic{Code: code, Severity: Info, Span: span, Message: fmt.Sprintf(format, args...)}
}

// WithHelp adds a help line and returns d.
func (d *Diagnostic) WithHelp(format string, args ...any) *Diagnostic {
	d.Help = append(d.Help, fmt.Sprintf(format, args...))
	return d
}

// WithNote adds a note and returns d. span may be zero.
func (d *Diagnostic) WithNote(span Span, format string, args ...any) *Diagnostic {
	d.Notes = append(d.Notes, Note{Span: span, Message: fmt.Sprintf(format, args...)})
	return d
}

// WithInstance names the expansion and the places that led to it, innermost first, and returns d.
func (d *Diagnostic) WithInstance(name string, trace ...Note) *Diagnostic {
	d.Instance = name
	d.Trace = append(d.Trace, trace...)
	return d
}

// WithNearest adds `did you mean "x"?` if one of the candidates is near to name, and returns d.
func (d *Diagnostic) WithNearest(name string, candidates []string) *Diagnostic {
	if near, ok := Nearest(name, candidates); ok {
		return d.WithHelp("did you mean %q?", near)
	}
	return d
}

// More returns how many equal diagnostics of other instances stand behind this one.
func (d *Diagnostic) More() int { return d.more }

// Error renders the headline, so that one diagnostic can serve as a Go error:
// "job.sql:12:9: error[unknown_column]: column ...".
func (d *Diagnostic) Error() string { return d.Headline() }

// Headline returns the first line of the rendered form.
func (d *Diagnostic) Headline() string {
	s := fmt.Sprintf("%s[%s]: %s", d.Severity, d.Code, d.Message)
	if d.more > 0 {
		s += fmt.Sprintf(" (+%d tables)", d.more)
	}
	if d.Span.IsZero() {
		return s
	}
	p := d.Span.StartPos()
	return fmt.Sprintf("%s:%d:%d: %s", d.Span.File.Name(), p.Line, p.Col, s)
}

// clone returns a copy that can change without touching d.
func (d *Diagnostic) clone() *Diagnostic {
	c := *d
	c.Notes, c.Help, c.Trace = slices.Clone(d.Notes), slices.Clone(d.Help), slices.Clone(d.Trace)
	return &c
}
