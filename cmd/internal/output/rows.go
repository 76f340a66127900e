package output

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"
)

// Cell is one value of a row.
type Cell struct {
	// Text is the value for tables and CSV.
	Text string
	// JSON is the value as JSON; nil: Text as a JSON string.
	JSON json.RawMessage
	Null bool
	// Right aligns the value in tables: numbers.
	Right bool
}

// Text returns a left-aligned text cell.
func Text(s string) Cell { return Cell{Text: s} }

// Number returns a right-aligned number cell; JSON gets it as a number.
func Number[T ~int | ~int32 | ~int64 | ~uint64 | ~float64](n T) Cell {
	s := fmt.Sprint(n)
	return Cell{Text: s, JSON: json.RawMessage(s), Right: true}
}

// Bytes returns a right-aligned cell with a size; JSON gets it as a number.
func Bytes(n int64) Cell {
	return Cell{Text: Size(n), JSON: json.RawMessage(fmt.Sprint(n)), Right: true}
}

// Null is the NULL cell.
func Null() Cell { return Cell{Null: true} }

// Rows writes a stream of rows in one format.
type Rows struct {
	w      *bufio.Writer
	format Format
	cols   []string
	csv    *csv.Writer
	keys   [][]byte
	// table rows wait for the widths of those to come
	held   [][]Cell
	widths []int
	headed bool
	width  int
	n      int
}

// MaxTableRows is how many rows a table holds back to find its column
// widths; later rows use the widths found.
const MaxTableRows = 1000

// NewRows starts a stream; width is the terminal's width for tables, 0 for
// no limit. Close must be called.
func NewRows(w io.Writer, f Format, width int, columns ...string) *Rows {
	r := &Rows{w: bufio.NewWriterSize(w, 64<<10), format: f, cols: columns, width: width}
	if f == Wide {
		r.format, r.width = Table, 0
	}
	for _, c := range columns {
		k, _ := json.Marshal(c)
		r.keys = append(r.keys, append(k, ':'))
	}
	switch r.format {
	case CSV:
		r.csv = csv.NewWriter(r.w)
		_ = r.csv.Write(columns) // the error is sticky and comes with Close
	case JSON:
		r.w.WriteString("[")
	}
	return r
}

// Write adds a row; it has one cell a column.
func (r *Rows) Write(row ...Cell) error {
	r.n++
	switch r.format {
	case CSV:
		fields := make([]string, len(row))
		for i, c := range row {
			fields[i] = c.Text
		}
		return r.csv.Write(fields)
	case JSON:
		if r.n > 1 {
			r.w.WriteByte(',')
		}
		r.w.WriteString("\n  ")
		return r.object(row)
	case JSONL:
		if err := r.object(row); err != nil {
			return err
		}
		return r.w.WriteByte('\n')
	}
	r.held = append(r.held, append([]Cell(nil), row...))
	if len(r.held) >= MaxTableRows {
		r.flushTable()
	}
	return nil
}

func (r *Rows) object(row []Cell) error {
	r.w.WriteByte('{')
	for i, c := range row {
		if i > 0 {
			r.w.WriteByte(',')
		}
		r.w.Write(r.keys[i])
		switch {
		case c.Null:
			r.w.WriteString("null")
		case c.JSON != nil:
			r.w.Write(c.JSON)
		default:
			b, err := json.Marshal(c.Text)
			if err != nil {
				return err
			}
			r.w.Write(b)
		}
	}
	return r.w.WriteByte('}')
}

// Flush makes what was written so far visible. A table's columns are then as
// wide as those rows need, and wider rows to come are out of line.
func (r *Rows) Flush() error {
	switch r.format {
	case CSV:
		r.csv.Flush()
	case Table:
		r.flushTable()
	}
	return r.w.Flush()
}

// Close ends the stream. It does not close the writer.
func (r *Rows) Close() error {
	switch r.format {
	case CSV:
		r.csv.Flush()
		if err := r.csv.Error(); err != nil {
			return err
		}
	case JSON:
		if r.n > 0 {
			r.w.WriteByte('\n')
		}
		r.w.WriteString("]\n")
	case Table:
		r.flushTable()
	}
	return r.w.Flush()
}

// Count is the number of rows written.
func (r *Rows) Count() int { return r.n }

// flushTable prints the rows held back, the head before the first of them.
func (r *Rows) flushTable() {
	if r.widths == nil {
		for _, c := range r.cols {
			r.widths = append(r.widths, runewidth.StringWidth(c))
		}
	}
	for _, row := range r.held {
		for i, c := range row {
			r.widths[i] = max(r.widths[i], runewidth.StringWidth(c.shown()))
		}
	}
	widths := slices.Clone(r.widths)
	shrink(widths, r.width)
	if !r.headed {
		r.headed = true
		var head []Cell
		for _, c := range r.cols {
			head = append(head, Text(c))
		}
		r.line(head, widths)
	}
	for _, row := range r.held {
		r.line(row, widths)
	}
	r.held = r.held[:0]
}

func (c Cell) shown() string {
	if c.Null {
		return "NULL"
	}
	return strings.NewReplacer("\n", "⏎", "\r", "", "\t", " ").Replace(c.Text)
}

const columnGap = 2

// shrink cuts the widest columns until the table fits.
func shrink(widths []int, width int) {
	if width <= 0 {
		return
	}
	total := -columnGap
	for _, w := range widths {
		total += w + columnGap
	}
	for total > width {
		widest := 0
		for i, w := range widths {
			if w > widths[widest] {
				widest = i
			}
		}
		if len(widths) == 0 || widths[widest] <= 8 {
			return
		}
		widths[widest]--
		total--
	}
}

func (r *Rows) line(row []Cell, widths []int) {
	for i, c := range row {
		s := c.shown()
		if runewidth.StringWidth(s) > widths[i] {
			s = runewidth.Truncate(s, widths[i], "…")
		}
		pad := strings.Repeat(" ", max(0, widths[i]-runewidth.StringWidth(s)))
		last := i == len(row)-1
		switch {
		case c.Right:
			r.w.WriteString(pad + s)
		case last:
			r.w.WriteString(s)
		default:
			r.w.WriteString(s + pad)
		}
		if !last {
			r.w.WriteString(strings.Repeat(" ", columnGap))
		}
	}
	r.w.WriteByte('\n')
}
