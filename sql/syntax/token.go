package syntax

import (
	"strings"

	"github.com/millrace/millrace/sql/diag"
)

// Kind is a kind of token.
type Kind uint8

// The kinds. A keyword is a Word; which words are keywords depends on the place.
const (
	EOF          Kind = iota
	Word              // abc, SELECT
	QuotedName        // `abc`
	String            // 'abc', N'abc', U&'abc'
	BinaryString      // X'00'
	Number            // 1, 1.5, 1e3
	Op                // an operator or punctuation mark
	HintOpen          // /*+
	HintClose         // */ that ends a hint
	Bad               // what the lexer has already reported
)

// Token is a token with its place. Tokens are immutable.
type Token struct {
	Kind   Kind
	Start  int // bytes
	End    int // bytes, exclusive
	Trivia int // where the white space and comments before the token start

	// Text is the word, operator or number as written; of names and strings, the content without quotes
	// and escapes, variables replaced as far as they are bound.
	Text  string
	Upper string // of a Word, in upper case

	Vars *Text // of a name or string that holds variables
}

// isWord reports whether t is the unquoted word w (upper case).
func (t *Token) isWord(w string) bool { return t.Kind == Word && t.Upper == w }

// isOp reports whether t is the operator op.
func (t *Token) isOp(op string) bool { return t.Kind == Op && t.Text == op }

// describe names the token in messages.
func (t *Token) describe(f *diag.File) string {
	switch t.Kind {
	case EOF:
		return "the end of the file"
	case String:
		return "a string"
	case BinaryString:
		return "a binary string"
	case Number:
		return "the number " + t.Text
	case HintOpen, HintClose:
		return "a hint"
	}
	return "\"" + clip(f.Span(t.Start, t.End).Text()) + "\""
}

// clip keeps messages short.
func clip(s string) string {
	const limit = 40
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit]) + "..."
	}
	return s
}

// Comment is a comment with its place.
type Comment struct {
	Loc
	Text string // with its marks, without the line end
}

// Comments returns the comments in the trivia before a token.
func Comments(f *diag.File, t Token) []Comment {
	var out []Comment
	text := f.Text()
	for i := t.Trivia; i < t.Start; {
		n := commentLen(text[i:t.Start])
		if n == 0 {
			i++
			continue
		}
		out = append(out, Comment{Loc{f.Span(i, i+n)}, strings.TrimRight(text[i:i+n], "\r\n")})
		i += n
	}
	return out
}

// commentLen returns the length of the comment that s starts with, 0 if there is none. A line comment
// ends before its line end; a block comment without an end takes all.
func commentLen(s string) int {
	switch {
	case strings.HasPrefix(s, "--"):
		if i := strings.IndexByte(s, '\n'); i >= 0 {
			return i
		}
		return len(s)
	case strings.HasPrefix(s, "/*"):
		if i := strings.Index(s[2:], "*/"); i >= 0 {
			return i + 4
		}
		return len(s)
	}
	return 0
}
