package lsp

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// Position is a place in a document: line and UTF-16 code units, from 0.
type Position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

// Range is a piece of a document, the end exclusive.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// Location is a piece of some document.
type Location struct {
	URI   string `json:"uri"`
	Range Range  `json:"range"`
}

// mapper converts between byte offsets and positions. Lines end with LF, CRLF or
// CR, as the protocol has it.
type mapper struct {
	text  string
	lines []int // where each line starts
	// shift is 1 when the editor's text begins with a byte order mark, which text
	// is without.
	shift int
}

const bom = "\ufeff"

func newMapper(text string) *mapper {
	m := &mapper{text: text, lines: []int{0}}
	if t, ok := strings.CutPrefix(text, bom); ok {
		m.text, m.shift = t, 1
	}
	for i := 0; i < len(m.text); i++ {
		if c := m.text[i]; c == '\n' || c == '\r' && (i+1 == len(m.text) || m.text[i+1] != '\n') {
			m.lines = append(m.lines, i+1)
		}
	}
	return m
}

// width is the UTF-16 code units of a rune.
func width(r rune) int {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// position converts a byte offset; one beyond the end gives the end.
func (m *mapper) position(offset int) Position {
	offset = max(0, min(offset, len(m.text)))
	line := sort.SearchInts(m.lines, offset+1) - 1
	p := Position{Line: line}
	if line == 0 {
		p.Character = m.shift
	}
	for _, r := range m.text[m.lines[line]:offset] {
		p.Character += width(r)
	}
	return p
}

// offset converts a position; one beyond its line gives the line's end, and one
// within a surrogate pair the character's start.
func (m *mapper) offset(p Position) int {
	if p.Line < 0 {
		return 0
	}
	if p.Line >= len(m.lines) {
		return len(m.text)
	}
	at, units := m.lines[p.Line], p.Character
	if p.Line == 0 {
		units -= m.shift
	}
	for units > 0 && at < len(m.text) && m.text[at] != '\n' && m.text[at] != '\r' {
		r, n := utf8.DecodeRuneInString(m.text[at:])
		if units -= width(r); units < 0 {
			break
		}
		at += n
	}
	return at
}

func (m *mapper) rangeOf(start, end int) Range {
	return Range{m.position(start), m.position(end)}
}
