package output

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"
)

// Format is the value of -o.
type Format string

// The formats. Auto is what -o is when it is not given.
const (
	Auto  Format = ""
	Table Format = "table"
	Wide  Format = "wide"
	JSON  Format = "json"
	JSONL Format = "jsonl"
	CSV   Format = "csv"
)

// Formats are the values that -o takes.
var Formats = [...]Format{Table, Wide, JSON, JSONL, CSV}

// ParseFormat reads the value of -o.
func ParseFormat(s string) (Format, error) {
	if s == "" {
		return Auto, nil
	}
	var names []string
	for _, f := range Formats {
		if string(f) == s {
			return f, nil
		}
		names = append(names, string(f))
	}
	return Auto, fmt.Errorf("-o %s: want one of %s", s, strings.Join(names, ", "))
}

// ForRows is the format of a stream of rows: a table on a terminal, else
// JSON lines, unless -o says otherwise.
func (f Format) ForRows(terminal bool) Format {
	if f != Auto {
		return f
	}
	if terminal {
		return Table
	}
	return JSONL
}

// ForResult is the format of a one-shot verb.
func (f Format) ForResult() Format {
	if f == Auto {
		return Table
	}
	return f
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Width is the terminal's width in columns, fallback when it is none.
func Width(f *os.File, fallback int) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
		return w
	}
	return fallback
}
