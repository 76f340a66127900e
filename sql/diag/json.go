package diag

import (
	"encoding/json"
	"strings"
)

// jsonForm is a diagnostic for machines. Lines and columns count from 1, columns in code points (not
// bytes, not UTF-16 units); the end is exclusive. All four are 0 if there is no place.
type jsonForm struct {
	Severity string     `json:"severity"`
	Code     string     `json:"code"`
	Message  string     `json:"message"`
	File     string     `json:"file"`
	Line     int        `json:"line"`
	Col      int        `json:"col"`
	EndLine  int        `json:"end_line"`
	EndCol   int        `json:"end_col"`
	Hint     string     `json:"hint"`
	Notes    []jsonNote `json:"notes,omitempty"`
	More     int        `json:"more,omitempty"`
}

type jsonNote struct {
	Message string `json:"message"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Col     int    `json:"col,omitempty"`
}

// MarshalJSON writes the JSON form: severity, code, message, file, line, col, end_line, end_col, hint (the
// help lines, one a line), and notes and more (the number of equal diagnostics of other tables) if there
// are any.
func (d *Diagnostic) MarshalJSON() ([]byte, error) {
	j := jsonForm{
		Severity: d.Severity.String(), Code: string(d.Code), Message: d.Message,
		Hint: strings.Join(d.Help, "\n"), More: d.more,
	}
	if !d.Span.IsZero() {
		start, end := d.Span.StartPos(), d.Span.EndPos()
		j.File, j.Line, j.Col, j.EndLine, j.EndCol = d.Span.File.Name(), start.Line, start.Col, end.Line, end.Col
	}
	for _, n := range append(append([]Note(nil), d.Notes...), d.Trace...) {
		jn := jsonNote{Message: n.Message}
		if !n.Span.IsZero() {
			p := n.Span.StartPos()
			jn.File, jn.Line, jn.Col = n.Span.File.Name(), p.Line, p.Col
		}
		j.Notes = append(j.Notes, jn)
	}
	return json.Marshal(j)
}
