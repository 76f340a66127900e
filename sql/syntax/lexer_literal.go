package syntax

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/millrace/millrace/sql/diag"
)

// quoted lexes a string or a quoted name whose opening quote is at open; start is where its prefix starts.
// The quote doubled stands for itself, $${ for ${, and ${...} is a variable.
func (l *lexer) quoted(start, open int, quote byte, kind Kind) {
	var lit strings.Builder
	var parts []TextPart
	flush := func() {
		if lit.Len() > 0 {
			parts = append(parts, TextPart{Lit: lit.String()})
			lit.Reset()
		}
	}
	i, closed := open+1, false
	for i < len(l.text) {
		rest := l.text[i:]
		switch {
		case rest[0] == quote && len(rest) > 1 && rest[1] == quote:
			lit.WriteByte(quote)
			i += 2
			continue
		case rest[0] == quote:
			closed = true
		case strings.HasPrefix(rest, "$${"):
			lit.WriteString("${")
			i += 3
			continue
		case strings.HasPrefix(rest, "${"):
			v, n := l.variable(i, quote)
			if v == nil {
				lit.WriteString(rest[:n])
			} else {
				flush()
				parts = append(parts, TextPart{Var: v})
			}
			i += n
			continue
		}
		if closed {
			break
		}
		lit.WriteByte(rest[0])
		i++
	}
	if !closed {
		l.unterminated(start, open, kind)
		return
	}
	end := i + 1
	t := Token{Kind: kind, Start: start}
	if parts == nil {
		t.Text = lit.String()
	} else {
		flush()
		t.Vars = &Text{Parts: parts}
		t.Text = t.Vars.value()
	}
	if kind == QuotedName && end == open+2 {
		l.errs.Errorf(diag.CodeEmptyName, l.file.Span(start, end), "a name cannot be empty")
		t.Kind = Bad
	}
	l.checkUTF8(open, end)
	l.emit(t, end)
}

// checkUTF8 reports the first invalid byte of a literal.
func (l *lexer) checkUTF8(start, end int) {
	if l.badUTF8 || utf8.ValidString(l.text[start:end]) {
		return
	}
	for i := start; i < end; {
		r, n := utf8.DecodeRuneInString(l.text[i:end])
		if r == utf8.RuneError && n == 1 {
			l.badUTF8 = true
			l.errs.Errorf(diag.CodeInvalidUTF8, l.file.Span(i, i+1), "byte 0x%02X is not valid UTF-8", l.text[i]).
				WithHelp("save the file as UTF-8")
			return
		}
		i += n
	}
}

// unterminated reports a quote without an end. The token ends with its line, so that what follows is
// still looked at.
func (l *lexer) unterminated(start, open int, kind Kind) {
	end := len(l.text)
	if i := strings.IndexByte(l.text[open:], '\n'); i >= 0 {
		end = open + i
	}
	end = open + len(strings.TrimRight(l.text[open:end], " \t\r"))
	if kind == QuotedName {
		l.errs.Errorf(diag.CodeUnterminatedName, l.file.Span(start, end), "quoted name has no closing backtick").
			WithHelp("a backtick inside a quoted name is doubled: `a``b`")
	} else {
		l.errs.Errorf(diag.CodeUnterminatedString, l.file.Span(start, end), "string has no closing quote").
			WithHelp("a quote inside a string is doubled: 'it''s'")
	}
	l.emit(Token{Kind: Bad, Start: start, Text: l.text[start:end]}, end)
}

// doubleQuoted refuses "text", which is a string in some dialects and a name in others.
func (l *lexer) doubleQuoted(start int) {
	end, content := len(l.text), ""
	if i := strings.IndexAny(l.text[start+1:], "\"\n"); i >= 0 {
		content = l.text[start+1 : start+1+i]
		end = start + 1 + i
		if l.text[end] == '"' {
			end++
		}
	}
	l.errs.Errorf(diag.CodeDoubleQuoted, l.file.Span(start, end), "double quotes are not used in this dialect").
		WithHelp("write '%s' for a string, `%s` for a name", clip(content), clip(content))
	l.emit(Token{Kind: Bad, Start: start, Text: l.text[start:end]}, end)
}

// binary lexes X'0AFF'.
func (l *lexer) binary(start, open int) {
	i := strings.IndexByte(l.text[open+1:], '\'')
	if i < 0 {
		l.unterminated(start, open, BinaryString)
		return
	}
	digits, end := l.text[open+1:open+1+i], open+i+2
	b, err := hex.DecodeString(digits)
	if err != nil {
		l.errs.Errorf(diag.CodeMalformedBinary, l.file.Span(start, end), "a binary string takes an even number of hexadecimal digits")
		l.emit(Token{Kind: Bad, Start: start, Text: l.text[start:end]}, end)
		return
	}
	l.emit(Token{Kind: BinaryString, Start: start, Text: string(b)}, end)
}

// unicodeString lexes U&'caf\00e9' [UESCAPE 'c'].
func (l *lexer) unicodeString(start, open int) {
	l.quoted(start, open, '\'', String)
	t := &l.tokens[len(l.tokens)-1]
	if t.Kind != String {
		return
	}
	escape := byte('\\')
	if c, end, ok := l.uescape(t.End); ok {
		escape, t.End, l.pos = c, end, end
	}
	span := l.file.Span(start, t.End)
	if t.Vars != nil {
		l.errs.Errorf(diag.CodeBadEscape, span, "a U&'...' string cannot hold variables")
		t.Kind = Bad
		return
	}
	s, ok := decodeUnicode(t.Text, escape)
	if !ok {
		l.errs.Errorf(diag.CodeBadEscape, span, "bad Unicode escape").
			WithHelp("write %[1]cXXXX with four hexadecimal digits, %[1]c%[1]c for the character itself", escape)
		t.Kind = Bad
		return
	}
	t.Text = s
}

// uescape looks for UESCAPE 'c' after a string.
func (l *lexer) uescape(from int) (escape byte, end int, ok bool) {
	rest := l.text[from:]
	trimmed := strings.TrimLeft(rest, " \t\r\n")
	if len(trimmed) < 7 || !strings.EqualFold(trimmed[:7], "UESCAPE") {
		return 0, 0, false
	}
	s := strings.TrimLeft(trimmed[7:], " \t\r\n")
	if len(s) < 3 || s[0] != '\'' || s[2] != '\'' {
		return 0, 0, false
	}
	return s[1], from + len(rest) - len(s) + 3, true
}

func decodeUnicode(s string, escape byte) (string, bool) {
	var b strings.Builder
	var units []uint16
	flush := func() {
		b.WriteString(string(utf16.Decode(units)))
		units = units[:0]
	}
	for i := 0; i < len(s); {
		switch {
		case s[i] != escape:
			flush()
			b.WriteByte(s[i])
			i++
		case i+1 < len(s) && s[i+1] == escape:
			flush()
			b.WriteByte(escape)
			i += 2
		default:
			if i+5 > len(s) {
				return "", false
			}
			u, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", false
			}
			units = append(units, uint16(u))
			i += 5
		}
	}
	flush()
	return b.String(), true
}

// variable lexes a placeholder at i and returns it with its length. If it is malformed it is reported and
// nil comes back, with a length to take literally.
func (l *lexer) variable(i int, quote byte) (*Var, int) {
	rest := l.text[i:]
	end := strings.IndexByte(rest, '}')
	stop := strings.IndexAny(rest, "\n"+string(quote))
	if end < 0 || stop >= 0 && stop < end {
		l.badVariable(l.file.Span(i, i+2), "variable has no closing brace")
		return nil, 2
	}
	v := &Var{Loc: Loc{l.file.Span(i, i+end+1)}}
	body := rest[2:end]
	v.Name, v.Default, v.HasDefault = strings.Cut(body, ":-")
	if s, ok := strings.CutPrefix(v.Name, "secret:"); ok {
		v.Secret, v.Name = true, s
	}
	if !isVarName(v.Name) {
		l.badVariable(v.Src, "%q is not the name of a variable", clip(v.Name))
		return nil, end + 1
	}
	if v.Secret && v.HasDefault {
		l.badVariable(v.Src, "a secret has no default")
		return nil, end + 1
	}
	l.bind(v)
	return v, end + 1
}

func (l *lexer) badVariable(span diag.Span, format string, args ...any) {
	l.errs.Errorf(diag.CodeBadVariable, span, format, args...).
		WithHelp("write ${NAME}, ${NAME:-default} or ${secret:NAME}; $${ stands for the characters ${")
}

func isVarName(s string) bool {
	for i, r := range s {
		ok := isWordStart(r) || i > 0 && (isDigit(r) || r == '.' || r == '-')
		if !ok {
			return false
		}
	}
	return s != ""
}

// bind gives a variable its value: not to loop variables, and not if there is nobody to ask.
func (l *lexer) bind(v *Var) {
	if l.opts.Vars == nil || !v.Secret && l.loopVars[v.Name] {
		return
	}
	lookup := l.opts.Vars.Lookup
	if v.Secret {
		lookup = l.opts.Vars.Secret
	}
	if value, ok := lookup(v.Name); ok {
		v.Value, v.Bound = value, true
		return
	}
	if v.HasDefault {
		v.Value, v.Bound = v.Default, true
		return
	}
	if v.Secret {
		l.errs.Errorf(diag.CodeUnknownVariable, v.Src, "secret %q is not known", v.Name)
		return
	}
	l.errs.Errorf(diag.CodeUnknownVariable, v.Src, "variable %q is not set", v.Name).
		WithNearest(v.Name, l.opts.Vars.Names()).
		WithHelp("set it with --set %s=..., in the environment, or give a default: ${%s:-...}", v.Name, v.Name)
}
