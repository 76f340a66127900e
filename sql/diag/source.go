package diag

import (
	"slices"
	"sort"
	"strings"
	"sync"
	"unicode/utf8"
)

// bom is the UTF-8 byte order mark that some editors put in front of a file.
const bom = "\ufeff"

// File is one source text: a job file, a line typed in the shell, the value of -e. Its text is immutable;
// it is safe for concurrent use.
type File struct {
	name  string
	text  string
	lines []int // byte offset of the first byte of each line

	mu     sync.RWMutex
	hidden [][2]int // byte ranges that are never shown
}

// Hide makes excerpts show '*' for the text of a span: the value of a password.
func (s Span) Hide() {
	if s.IsZero() {
		return
	}
	s.File.mu.Lock()
	defer s.File.mu.Unlock()
	if r := [2]int{s.Start, s.End}; !slices.Contains(s.File.hidden, r) {
		s.File.hidden = append(s.File.hidden, r)
	}
}

// shown is a part of the text as excerpts may show it, of the same length.
func (f *File) shown(start, end int) string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	text := []byte(f.text[start:end])
	for _, r := range f.hidden {
		for i := max(r[0], start); i < min(r[1], end); i++ {
			text[i-start] = '*'
		}
	}
	return string(text)
}

// NewFile makes a File. name is what messages print ("job.sql", "<stdin>"). One leading byte order mark
// is dropped, so offset 0 is the first byte after it.
func NewFile(name, text string) *File {
	text = strings.TrimPrefix(text, bom)
	f := &File{name: name, text: text, lines: []int{0}}
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	return f
}

// Name returns the name as given to NewFile.
func (f *File) Name() string { return f.name }

// Text returns the whole text, without a leading byte order mark.
func (f *File) Text() string { return f.text }

// LineCount returns the number of lines; an empty file has one.
func (f *File) LineCount() int { return len(f.lines) }

// Line returns the text of line n (1-based) without its line end (LF or CRLF). Lines out of range are
// empty.
func (f *File) Line(n int) string {
	start, end := f.lineBounds(n)
	return strings.TrimSuffix(f.text[start:end], "\r")
}

// lineBounds returns the byte range of line n without its LF.
func (f *File) lineBounds(n int) (start, end int) {
	if n < 1 || n > len(f.lines) {
		return len(f.text), len(f.text)
	}
	start, end = f.lines[n-1], len(f.text)
	if n < len(f.lines) {
		end = f.lines[n] - 1
	}
	return start, end
}

// Pos converts a byte offset to a position. Offsets beyond the end give the end.
func (f *File) Pos(offset int) Pos {
	offset = max(0, min(offset, len(f.text)))
	line := sort.SearchInts(f.lines, offset+1) // first line that starts after offset
	start := f.lines[line-1]
	return Pos{Offset: offset, Line: line, Col: utf8.RuneCountInString(f.text[start:offset]) + 1}
}

// Span makes a span of this file from byte offsets, end exclusive.
func (f *File) Span(start, end int) Span { return Span{File: f, Start: start, End: end} }

// Pos is a place in a file.
type Pos struct {
	Offset int // bytes from the start of the text, 0-based
	Line   int // 1-based
	Col    int // code points from the start of the line, 1-based
}

// Span is a piece of a file: bytes [Start, End). The zero Span (no file) means "no position"; an empty
// span (Start == End) is a place between two bytes. Spans compare with ==.
type Span struct {
	File  *File
	Start int // bytes, 0-based
	End   int // bytes, exclusive
}

// IsZero reports whether the span has no position.
func (s Span) IsZero() bool { return s.File == nil }

// StartPos returns the position of the first byte; the zero Pos if the span has no file.
func (s Span) StartPos() Pos {
	if s.File == nil {
		return Pos{}
	}
	return s.File.Pos(s.Start)
}

// EndPos returns the position after the last byte; the zero Pos if the span has no file.
func (s Span) EndPos() Pos {
	if s.File == nil {
		return Pos{}
	}
	return s.File.Pos(s.End)
}

// Text returns the source text under the span.
func (s Span) Text() string {
	if s.File == nil {
		return ""
	}
	n := len(s.File.text)
	start := max(0, min(s.Start, n))
	return s.File.text[start:max(start, min(s.End, n))]
}

// To returns the span from the start of s to the end of t. A zero span gives the other one; spans of
// different files give s.
func (s Span) To(t Span) Span {
	switch {
	case s.File == nil:
		return t
	case t.File == nil || t.File != s.File:
		return s
	}
	return Span{File: s.File, Start: min(s.Start, t.Start), End: max(s.End, t.End)}
}

// StartOnly returns the empty span at the start of s.
func (s Span) StartOnly() Span { return Span{File: s.File, Start: s.Start, End: s.Start} }

// EndOnly returns the empty span at the end of s.
func (s Span) EndOnly() Span { return Span{File: s.File, Start: s.End, End: s.End} }
