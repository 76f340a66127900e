package syntax

import (
	"strings"

	"github.com/millrace/millrace/sql/diag"
)

// Format tidies a file without moving anything between lines: keywords become upper case, white space at
// line ends goes, runs of blank lines become one, line ends become LF, and the file ends with one. All
// comments stay. The tokens are the same before and after but for the case of reserved words.
//
// A file with errors is not touched; the errors come back.
func Format(f *diag.File) (string, diag.List) {
	if _, errs := Parse(f, Options{}); errs.HasErrors() {
		return "", errs
	}
	if strings.Contains(f.Text(), newlineMark) || strings.Contains(f.Text(), returnMark) {
		return f.Text(), nil
	}
	tokens, _ := Lex(f, Options{})
	var b strings.Builder
	for i, t := range tokens {
		b.WriteString(f.Text()[t.Trivia:t.Start])
		text := f.Text()[t.Start:t.End]
		if t.Kind == Word && IsReserved(t.Upper) && (i == 0 || !tokens[i-1].isOp(".")) {
			text = t.Upper
		}
		if strings.Contains(text, "\n") {
			// Line ends and blanks inside a literal are its value.
			text = strings.NewReplacer("\n", newlineMark, "\r", returnMark).Replace(text)
		}
		b.WriteString(text)
	}
	return unmark.Replace(tidyLines(b.String())), nil
}

// The marks stand for characters inside literals while lines are tidied. They are noncharacters, which no
// text may hold.
const (
	newlineMark = "\uFDD0"
	returnMark  = "\uFDD1"
)

var unmark = strings.NewReplacer(newlineMark, "\n", returnMark, "\r")

// tidyLines trims line ends and blank lines.
func tidyLines(s string) string {
	var out []string
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" && (len(out) == 0 || out[len(out)-1] == "") {
			continue
		}
		out = append(out, line)
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "\n") + "\n"
}
