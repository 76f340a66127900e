package infer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/millrace/millrace/connectors/format/scalar"
	"github.com/millrace/millrace/runtime/types"
)

// writer prints the statement.
type writer struct {
	Options
	*Draft
	root      *objectStat
	standard  scalar.Standard
	faults    []string
	eventTime *eventTime
	b         strings.Builder
}

// line is a line of the statement with its comment.
type line struct{ text, comment string }

func (w *writer) statement() string {
	w.summary()
	w.b.WriteString("CREATE TABLE " + w.name(w.Table) + " (\n")
	var lines []line
	var computed []line
	for i, f := range w.Fields {
		s := w.root.fields[f.Name]
		lines = w.column(lines, "  ", f, s)
		if unit := s.epoch(); unit != "" {
			computed = append(computed, w.computed(f.Name, unit))
		}
		if i < len(w.Fields)-1 {
			lines[len(lines)-1].text += ","
		}
	}
	if w.eventTime != nil {
		computed = append(computed, w.watermark())
	}
	for _, c := range computed {
		if len(lines) > 0 {
			lines[len(lines)-1].text += ","
		}
		lines = append(lines, c)
	}
	if _, ok := w.root.fields[""]; ok {
		lines = append(lines, line{"", "a key is empty and cannot be a column"})
	}
	w.print(lines)
	w.b.WriteString(") WITH (\n")
	options := append(slices.Clone(w.With), [2]string{"format", "json"})
	if w.Standard != scalar.Standards[scalar.SQL] {
		options = append(options, [2]string{"json.timestamp-format.standard", w.Standard})
	}
	for i, o := range options {
		if i > 0 {
			w.b.WriteString(",\n")
		}
		w.b.WriteString("  " + literal(o[0]) + " = " + literal(o[1]))
	}
	w.b.WriteString("\n);\n")
	return w.b.String()
}

func (w *writer) summary() {
	fmt.Fprintf(&w.b, "-- Drafted from %d records with %d rows. Comments: presence, types seen,\n-- partition:offset of an example.\n", w.Records, w.Rows)
	if w.Empty > 0 {
		fmt.Fprintf(&w.b, "-- Empty records: %d.\n", w.Empty)
	}
	if w.Malformed > 0 {
		fmt.Fprintf(&w.b, "-- Malformed records, left out: %d, the first at %s.\n", w.Malformed, oneLine(w.faults[0]))
	}
}

// column prints a column or field; a ROW stands on several lines.
func (w *writer) column(lines []line, indent string, f types.Field, s *stat) []line {
	return w.typed(lines, indent, w.name(f.Name)+" ", f.Type, s, w.seen(s))
}

// typed prints a type behind head. s is nil where nothing was counted.
func (w *writer) typed(lines []line, indent, head string, t types.Type, s *stat, comment string) []line {
	switch {
	case t.Kind == types.Row && s != nil && s.object != nil:
		lines = append(lines, line{indent + head + "ROW<", comment})
		for i, f := range t.Fields {
			lines = w.column(lines, indent+"  ", f, s.object.fields[f.Name])
			if i < len(t.Fields)-1 {
				lines[len(lines)-1].text += ","
			}
		}
		lines[len(lines)-1].text += ">"
		return lines
	case t.Kind == types.Array && s != nil && s.elem != nil && t.Elem.IsNested():
		lines = w.typed(lines, indent, head+"ARRAY<", *t.Elem, s.elem, comment)
		lines[len(lines)-1].text += ">"
		return lines
	}
	return append(lines, line{indent + head + w.typeText(t), comment})
}

// typeText is a type on one line.
func (w *writer) typeText(t types.Type) string {
	switch t.Kind {
	case types.Array:
		return "ARRAY<" + w.typeText(*t.Elem) + ">"
	case types.Map:
		return "MAP<" + w.typeText(t.Key.WithNullable(true)) + ", " + w.typeText(*t.Elem) + ">"
	case types.Row:
		var fields []string
		for _, f := range t.Fields {
			fields = append(fields, w.name(f.Name)+" "+w.typeText(f.Type))
		}
		return "ROW<" + strings.Join(fields, ", ") + ">"
	}
	return t.String()
}

// seen is the comment of a column.
func (w *writer) seen(s *stat) string {
	if s.values == 0 {
		return "only null seen"
	}
	var parts []string
	parts = append(parts, percent(s.values, s.parents))
	kinds := make([]string, 0, len(s.kinds))
	for k := range s.kinds {
		kinds = append(kinds, k)
	}
	slices.SortFunc(kinds, func(a, b string) int {
		if d := s.kinds[b] - s.kinds[a]; d != 0 {
			return int(min(max(d, -1), 1))
		}
		return strings.Compare(a, b)
	})
	for i, k := range kinds {
		if len(kinds) > 1 {
			kinds[i] = fmt.Sprintf("%s %d", k, s.kinds[k])
			if i > 0 { // the odd ones are what one wants to look at
				kinds[i] += " at " + s.firstOf[k].String()
			}
		}
	}
	if _, ok := s.timeForm(w.standard); ok {
		kinds[0] = "string of a date or time"
	}
	parts = append(parts, strings.Join(kinds, " and "))
	if s.digits > bigintDigits {
		parts = append(parts, "beyond BIGINT at "+s.longest.String())
	}
	if s.nulls > 0 {
		parts = append(parts, fmt.Sprintf("null %d", s.nulls))
	}
	if s.object != nil && s.object.isMap() {
		parts = append(parts, fmt.Sprintf("%d different keys", len(s.object.order)))
	}
	return strings.Join(append(parts, s.first.String()), ", ")
}

func percent(n, of int64) string {
	switch {
	case n == of:
		return "100%"
	case n*1000 < of:
		return "<0.1%"
	case n*1000 > of*999:
		return ">99.9%"
	}
	return fmt.Sprintf("%.3g%%", float64(n)*100/float64(of))
}

func (w *writer) computed(name, unit string) line {
	arg, precision := w.name(name), "3"
	switch unit {
	case "s":
		precision = "0"
	case "us":
		arg += " / 1000"
	case "ns":
		arg += " / 1000000"
	}
	return line{"  " + w.name(computedName(name, w.root)) + " AS TO_TIMESTAMP_LTZ(" + arg + ", " + precision + ")",
		map[string]string{"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}[unit] + " since 1970"}
}

var delays = []struct {
	millis int64
	text   string
}{
	{1e3, "'1' SECOND"}, {5e3, "'5' SECOND"}, {10e3, "'10' SECOND"}, {30e3, "'30' SECOND"}, {60e3, "'1' MINUTE"}, {300e3, "'5' MINUTE"},
	{600e3, "'10' MINUTE"}, {1800e3, "'30' MINUTE"}, {3600e3, "'1' HOUR"}, {6 * 3600e3, "'6' HOUR"}, {24 * 3600e3, "'1' DAY"},
}

func (w *writer) watermark() line {
	text := ""
	for _, d := range delays {
		if w.DisorderMillis <= d.millis {
			text = d.text
			break
		}
	}
	if text == "" {
		const day = 24 * 3600e3
		text = fmt.Sprintf("'%d' DAY", (w.DisorderMillis+day-1)/day)
	}
	c := w.name(w.EventTime)
	comment := "rows were in order"
	if w.DisorderMillis > 0 {
		comment = fmt.Sprintf("a row was up to %.4g s behind an earlier one of its partition", float64(w.DisorderMillis)/1000)
	}
	return line{"  WATERMARK FOR " + c + " AS " + c + " - INTERVAL " + text, comment}
}

// print writes lines with their comments aligned, as far as that is wide.
func (w *writer) print(lines []line) {
	width := 0
	for _, l := range lines {
		if n := runewidth.StringWidth(l.text); n <= 60 {
			width = max(width, n)
		}
	}
	for _, l := range lines {
		pad := max(0, width-runewidth.StringWidth(l.text))
		fmt.Fprintf(&w.b, "%s%s  -- %s\n", l.text, strings.Repeat(" ", pad), l.comment)
	}
}

// name quotes a name where SQL needs it.
func (w *writer) name(s string) string {
	plain := s != ""
	for i := range len(s) {
		c := s[i]
		if !(c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || i > 0 && c >= '0' && c <= '9') {
			plain = false
			break
		}
	}
	if plain && (w.Reserved == nil || !w.Reserved(s)) {
		return s
	}
	return strings.ReplaceAll(types.QuoteIdent(s), "${", "$${")
}

func literal(s string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(s, "'", "''"), "${", "$${") + "'"
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
}
