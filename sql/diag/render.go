package diag

import (
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// Renderer prints diagnostics for people:
//
//	job.sql:12:9: error[unknown_column]: column "uid" not found in "clicks"
//	 12 |   SELECT uid, COUNT(*)
//	    |          ^^^
//	note: ...
//	help: did you mean "user_id"?
//
// The zero value is ready and prints plain text.
type Renderer struct {
	// Width is the number of terminal columns a source line may take; longer lines are cut around the
	// span. 0 means 120.
	Width int
	// Color turns on ANSI colors.
	Color bool
}

const (
	defaultWidth = 120
	minWidth     = 30
	tabWidth     = 4
)

// Render writes the diagnostics, sorted and without duplicates, with a blank line between them.
func (r Renderer) Render(w io.Writer, l List) error {
	_, err := io.WriteString(w, r.String(l))
	return err
}

// String renders like Render.
func (r Renderer) String(l List) string {
	var b strings.Builder
	for i, d := range l.Sorted().Dedup() {
		if i > 0 {
			b.WriteByte('\n')
		}
		r.one(&b, d)
	}
	return b.String()
}

func (r Renderer) one(b *strings.Builder, d *Diagnostic) {
	head := clean(d.Headline())
	if r.Color {
		mark := fmt.Sprintf("%s[%s]:", d.Severity, d.Code)
		head = strings.Replace(head, mark, severityColor(d.Severity)+mark+colorReset, 1)
	}
	b.WriteString(head + "\n")
	r.snippet(b, d.Span, d.Severity)
	for _, n := range d.Notes {
		r.note(b, n)
	}
	for _, n := range d.Trace {
		r.note(b, n)
	}
	for _, h := range d.Help {
		b.WriteString(r.paint(colorHelp, "help:") + " " + clean(h) + "\n")
	}
}

func (r Renderer) note(b *strings.Builder, n Note) {
	b.WriteString(r.paint(colorNote, "note:") + " ")
	if !n.Span.IsZero() {
		p := n.Span.StartPos()
		fmt.Fprintf(b, "%s:%d:%d: ", clean(n.Span.File.Name()), p.Line, p.Col)
	}
	b.WriteString(clean(n.Message) + "\n")
	r.snippet(b, n.Span, Info)
}

const (
	colorReset = "\x1b[0m"
	colorHelp  = "\x1b[32m"
	colorNote  = "\x1b[36m"
)

func severityColor(s Severity) string {
	if s == Error {
		return "\x1b[1;31m"
	}
	return "\x1b[1;33m"
}

func (r Renderer) paint(color, s string) string {
	if !r.Color {
		return s
	}
	return color + s + colorReset
}

// snippet writes the source lines of a span with carets. Of a long span the first lines and the last one
// are shown.
func (r Renderer) snippet(b *strings.Builder, s Span, sev Severity) {
	if s.IsZero() {
		return
	}
	first, last := s.StartPos().Line, s.EndPos().Line
	if last > first && s.End > s.Start && s.EndPos().Col == 1 {
		last-- // the span ends with a line end
	}
	gutter := len(fmt.Sprint(last))
	const head = 3
	for n := first; n <= last; n++ {
		if last-first > head+1 && n == first+head {
			fmt.Fprintf(b, " %*s | ...\n", gutter, "")
			n = last
		}
		source, carets := r.line(s, n)
		b.WriteString(strings.TrimRight(fmt.Sprintf(" %*d | %s", gutter, n, source), " ") + "\n")
		if carets != "" {
			fmt.Fprintf(b, " %*s | %s%s\n", gutter, "", strings.Repeat(" ", len(carets)-len(strings.TrimLeft(carets, " "))),
				r.paint(severityColor(sev), strings.TrimLeft(carets, " ")))
		}
	}
}

// cell is one character as it is printed.
type cell struct {
	text  string
	width int // terminal columns
	mark  bool
}

// line renders line n of the span's file and the carets under the part that is in the span.
func (r Renderer) line(s Span, n int) (source, carets string) {
	start, end := s.File.lineBounds(n)
	cells := cellsOf(s.File.shown(start, end), s.Start-start, s.End-start)
	if s.Start == s.End && s.Start >= start && s.Start <= end {
		cells = markPoint(cells, s.File.Text()[start:s.Start])
	}
	trimMarks(cells)
	cells = r.cut(cells)
	var src, car strings.Builder
	for _, c := range cells {
		src.WriteString(c.text)
		fill := " "
		if c.mark {
			fill = "^"
		}
		car.WriteString(strings.Repeat(fill, c.width))
	}
	return strings.TrimRight(src.String(), " "), strings.TrimRight(car.String(), " ")
}

// widths measures characters the same everywhere: ambiguous ones are narrow whatever the locale says.
var widths = runewidth.Condition{EastAsianWidth: false, StrictEmojiNeutral: true}

// cellsOf splits a line into cells; those from byte from to byte to are marked. Tabs become spaces and
// control characters marks of their own, so that a file cannot steer the terminal.
func cellsOf(line string, from, to int) []cell {
	line = strings.TrimSuffix(line, "\r")
	var cells []cell
	col := 0
	for i, c := range line {
		text := printable(c)
		w := widths.RuneWidth([]rune(text)[0])
		if c == '\t' {
			w = tabWidth - col%tabWidth
			text = strings.Repeat(" ", w)
		}
		cells = append(cells, cell{text: text, width: w, mark: i >= from && i < to})
		col += w
	}
	return cells
}

func printable(c rune) string {
	if c != '\t' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c)) {
		return string(unicode.ReplacementChar)
	}
	return string(c)
}

// clean makes a message safe for a terminal.
func clean(s string) string {
	return strings.Map(func(c rune) rune {
		if c != '\t' && unicode.IsControl(c) {
			return unicode.ReplacementChar
		}
		return c
	}, s)
}

// markPoint marks the cell behind the text before an empty span.
func markPoint(cells []cell, before string) []cell {
	n := len([]rune(strings.TrimSuffix(before, "\r")))
	if n >= len(cells) {
		cells = append(cells, cell{text: " ", width: 1})
		n = len(cells) - 1
	}
	cells[n].mark = true
	if cells[n].width > 1 && strings.TrimSpace(cells[n].text) == "" {
		cells[n] = cell{text: " ", width: 1, mark: true}
		rest := make([]cell, 0, len(cells)+1)
		rest = append(append(rest, cells[:n+1]...), cell{text: strings.Repeat(" ", tabWidth-1), width: tabWidth - 1})
		cells = append(rest, cells[n+1:]...)
	}
	return cells
}

// trimMarks takes the carets away from white space at both ends of the marked part.
func trimMarks(cells []cell) {
	var marked []int
	for i, c := range cells {
		if c.mark {
			marked = append(marked, i)
		}
	}
	if len(marked) < 2 {
		return
	}
	blank := func(i int) bool { return strings.TrimSpace(cells[i].text) == "" }
	for len(marked) > 1 && blank(marked[0]) {
		cells[marked[0]].mark = false
		marked = marked[1:]
	}
	for len(marked) > 1 && blank(marked[len(marked)-1]) {
		cells[marked[len(marked)-1]].mark = false
		marked = marked[:len(marked)-1]
	}
}

// cut shortens a line to the width, keeping what is around the first mark.
func (r Renderer) cut(cells []cell) []cell {
	limit := r.Width
	if limit == 0 {
		limit = defaultWidth
	}
	limit = max(limit, minWidth)
	total, at := 0, 0
	first, last := -1, -1
	for i, c := range cells {
		if c.mark && first < 0 {
			first, at = i, total
		}
		if c.mark {
			last = i
		}
		total += c.width
	}
	if total <= limit {
		return cells
	}
	first, last = max(first, 0), max(last, 0)
	// Start so far left of the mark that a third of the room is before it, more if the line ends soon.
	room := limit - 6
	from := 0
	for skip := min(at-room/3, total-room); from < first && skip > 0; from++ {
		skip -= cells[from].width
	}
	dots := cell{text: "...", width: 3}
	var out []cell
	if from > 0 {
		out = append(out, dots)
	}
	for i := from; i < len(cells); i++ {
		if room -= cells[i].width; room < 0 {
			dots.mark = i <= last
			return append(out, dots)
		}
		out = append(out, cells[i])
	}
	return out
}
