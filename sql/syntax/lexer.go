package syntax

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/millrace/millrace/sql/diag"
)

// Lex splits a file into tokens; the last one is EOF. What is not a token is reported and skipped or
// becomes a Bad token, so that parsing can go on.
func Lex(f *diag.File, opts Options) ([]Token, diag.List) {
	l := &lexer{file: f, text: f.Text(), opts: opts, loopVars: map[string]bool{}}
	l.tokens = make([]Token, 0, len(l.text)/4+8) // a token takes three or four bytes of SQL
	for _, v := range opts.LoopVars {
		l.loopVars[v] = true
	}
	if opts.Vars != nil {
		for _, v := range LoopVars(f) {
			l.loopVars[v] = true
		}
	}
	l.run()
	return l.tokens, l.errs
}

// LoopVars returns the names of the variables of all FOR EACH loops in a file.
func LoopVars(f *diag.File) []string {
	l := &lexer{file: f, text: f.Text(), loopVars: map[string]bool{}}
	l.run()
	var names []string
	for i := 0; i+3 < len(l.tokens); i++ {
		t := l.tokens[i:]
		if t[0].isWord("FOR") && t[1].isWord("EACH") && t[2].isWord("TABLE") && (t[3].Kind == Word || t[3].Kind == QuotedName) {
			names = append(names, t[3].Text)
		}
	}
	return names
}

type lexer struct {
	file     *diag.File
	text     string
	opts     Options
	loopVars map[string]bool

	pos     int
	trivia  int
	inHint  bool
	badUTF8 bool // already reported
	tokens  []Token
	errs    diag.List
}

func (l *lexer) run() {
	for {
		l.trivia = l.pos
		l.skipTrivia()
		if l.pos >= len(l.text) {
			l.emit(Token{Kind: EOF, Start: len(l.text)}, len(l.text))
			return
		}
		l.next()
	}
}

// emit appends a token that ends at end and moves there.
func (l *lexer) emit(t Token, end int) {
	t.Trivia, t.End = l.trivia, end
	l.tokens = append(l.tokens, t)
	l.pos = end
}

func (l *lexer) rest() string { return l.text[l.pos:] }

// skipTrivia moves over white space and comments. /*+ opens a hint and is no comment.
func (l *lexer) skipTrivia() {
	for l.pos < len(l.text) {
		r, n := utf8.DecodeRuneInString(l.rest())
		switch {
		case unicode.IsSpace(r):
			l.pos += n
		case strings.HasPrefix(l.rest(), "/*+"):
			return
		case strings.HasPrefix(l.rest(), "--") || strings.HasPrefix(l.rest(), "/*"):
			n := commentLen(l.rest())
			if c := l.text[l.pos : l.pos+n]; c[0] == '/' && (n < 4 || !strings.HasSuffix(c, "*/")) {
				l.errs.Errorf(diag.CodeUnterminatedComment, l.file.Span(l.pos, l.pos+2), "comment is not closed").
					WithHelp("close it with */")
			}
			l.pos += n
		default:
			return
		}
	}
}

// operators with more than one character, longest first. Some exist only to be refused with a hint.
var longOps = []string{"<=>", "<>", "<=", ">=", "!=", "||", "=>", "::", "->"}

// fullWidth maps punctuation that input methods put in place of ASCII.
var fullWidth = map[rune]string{
	'，': ",", '；': ";", '（': "(", '）': ")", '。': ".", '＝': "=", '＊': "*", '＜': "<", '＞': ">", '＋': "+",
	'【': "[", '】': "]",
}

func (l *lexer) next() {
	start := l.pos
	r, n := utf8.DecodeRuneInString(l.rest())
	switch {
	case strings.HasPrefix(l.rest(), "/*+"):
		l.inHint = true
		l.emit(Token{Kind: HintOpen, Start: start, Text: "/*+"}, start+3)
	case l.inHint && strings.HasPrefix(l.rest(), "*/"):
		l.inHint = false
		l.emit(Token{Kind: HintClose, Start: start, Text: "*/"}, start+2)
	case r == '\'':
		l.quoted(start, start, '\'', String)
	case r == '`':
		l.quoted(start, start, '`', QuotedName)
	case r == '"':
		l.doubleQuoted(start)
	case isDigit(r) || r == '.' && l.pos+1 < len(l.text) && isDigit(rune(l.text[l.pos+1])):
		l.number(start)
	case isWordStart(r) || r == '$' && !strings.HasPrefix(l.rest(), "${"):
		l.word(start)
	default:
		l.operator(start, r, n)
	}
}

func isDigit(r rune) bool { return '0' <= r && r <= '9' }

// word lexes a word, or a string with a prefix.
func (l *lexer) word(start int) {
	end := start + l.wordLen(start)
	w := l.text[start:end]
	next := byte(0)
	if end < len(l.text) {
		next = l.text[end]
	}
	upper := strings.ToUpper(w)
	switch {
	case next == '\'' && upper == "N":
		l.quoted(start, end, '\'', String)
	case next == '\'' && upper == "X":
		l.binary(start, end)
	case next == '&' && upper == "U" && strings.HasPrefix(l.text[end+1:], "'"):
		l.unicodeString(start, end+1)
	default:
		l.emit(Token{Kind: Word, Start: start, Text: w, Upper: upper}, end)
	}
}

func (l *lexer) wordLen(start int) int {
	for i, r := range l.text[start:] {
		if !isWordPart(r) {
			return i
		}
	}
	return len(l.text) - start
}

// number lexes 12, 1.5, .5, 1., 1e3. A number that runs into a word is refused.
func (l *lexer) number(start int) {
	i := start
	digits := func() {
		for i < len(l.text) && isDigit(rune(l.text[i])) {
			i++
		}
	}
	digits()
	if i < len(l.text) && l.text[i] == '.' {
		i++
		digits()
	}
	if i < len(l.text) && (l.text[i] == 'e' || l.text[i] == 'E') {
		j := i
		i++
		if i < len(l.text) && (l.text[i] == '+' || l.text[i] == '-') {
			i++
		}
		mantissaEnd := i
		if digits(); i == mantissaEnd {
			i = j // no digits: the e belongs to a word, reported below
		}
	}
	if n := l.wordLen(i); n > 0 {
		end := i + n
		l.errs.Errorf(diag.CodeMalformedNumber, l.file.Span(start, end), "%q is neither a number nor a name",
			clip(l.text[start:end])).WithHelp("put a name that starts with a digit in backticks: `%s`", clip(l.text[start:end]))
		l.emit(Token{Kind: Bad, Start: start, Text: l.text[start:end]}, end)
		return
	}
	l.emit(Token{Kind: Number, Start: start, Text: l.text[start:i]}, i)
}

func (l *lexer) operator(start int, r rune, n int) {
	for _, op := range longOps {
		if strings.HasPrefix(l.rest(), op) {
			l.emit(Token{Kind: Op, Start: start, Text: op}, start+len(op))
			return
		}
	}
	switch {
	case strings.ContainsRune("()[]{}<>=+-*/%,.;:?|&^!@#~\\", r):
		if strings.ContainsRune("()[]<>=+-*/%,.;:", r) {
			l.emit(Token{Kind: Op, Start: start, Text: string(r)}, start+n)
			return
		}
		l.badChar(start, n, "character %q has no meaning here", string(r))
	case strings.HasPrefix(l.rest(), "${"):
		end := start + 2
		if i := strings.IndexByte(l.rest(), '}'); i >= 0 && !strings.ContainsAny(l.rest()[:i], "\n;") {
			end = start + i + 1
		}
		l.errs.Errorf(diag.CodeVariableOutsideLiteral, l.file.Span(start, end),
			"a variable can stand only inside a string literal or a name in backticks").
			WithHelp("write '%s' for a value, `%s` for a name", l.text[start:end], l.text[start:end])
		l.emit(Token{Kind: Bad, Start: start, Text: l.text[start:end]}, end)
	case r == utf8.RuneError && n == 1:
		if !l.badUTF8 {
			l.errs.Errorf(diag.CodeInvalidUTF8, l.file.Span(start, start+1), "byte 0x%02X is not valid UTF-8", l.text[start]).
				WithHelp("save the file as UTF-8")
		}
		l.badUTF8 = true
		l.pos += n
	default:
		if ascii, ok := fullWidth[r]; ok {
			l.errs.Errorf(diag.CodeIllegalCharacter, l.file.Span(start, start+n), "character %q is a full-width mark", string(r)).
				WithHelp("write %q", ascii)
			l.emit(Token{Kind: Op, Start: start, Text: ascii}, start+n)
			return
		}
		l.badChar(start, n, "character %q has no meaning here", string(r))
	}
}

// badChar reports a character and drops it.
func (l *lexer) badChar(start, n int, format string, args ...any) {
	d := l.errs.Errorf(diag.CodeIllegalCharacter, l.file.Span(start, start+n), format, args...)
	switch l.text[start : start+n] {
	case "‘", "’", "“", "”":
		d.WithHelp("strings take straight single quotes: 'text'")
	case "?":
		d.WithHelp("there are no statement parameters; use a variable: '${NAME}'")
	case "@", "#":
		end := start + n
		for end < len(l.text) {
			r, size := utf8.DecodeRuneInString(l.text[end:])
			if !isWordPart(r) {
				break
			}
			end += size
		}
		if before, _ := utf8.DecodeLastRuneInString(l.text[:start]); end > start+n && !isWordPart(before) {
			// Most likely a name; taken as one, the rest can be checked.
			d.WithHelp("quote the whole name: %s", Quote(l.text[start:end]))
			l.emit(Token{Kind: QuotedName, Start: start, Text: l.text[start:end]}, end)
			return
		}
	}
	l.emit(Token{Kind: Bad, Start: start, Text: l.text[start : start+n]}, start+n)
}
