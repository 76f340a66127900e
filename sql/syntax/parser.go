package syntax

import (
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/sql/diag"
)

// Limits that keep the parser, and whoever walks its trees, from running out of stack. Both are far above
// what people or generators of SQL write.
const (
	maxNesting = 500    // brackets inside brackets, queries inside queries
	maxHeight  = 10_000 // nodes on the longest way down: a AND b AND c ... makes a tall tree
)

// Parse parses a file. All errors come back at once; a statement that has one is a *BadStmt in the script.
func Parse(f *diag.File, opts Options) (*Script, diag.List) {
	p := newParser(f, opts)
	stmts := p.block("")
	script := &Script{Loc: Loc{f.Span(0, len(f.Text()))}, Stmts: stmts}
	return script, p.errs.Sorted()
}

// ParseExpr parses a text that is a single expression.
func ParseExpr(f *diag.File, opts Options) (Expr, diag.List) {
	p := newParser(f, opts)
	var e Expr
	p.guard(func() {
		e = p.expr()
		if p.cur().Kind != EOF {
			p.unexpected("the end of the expression")
		}
	})
	if p.errs.HasErrors() {
		return nil, p.errs.Sorted()
	}
	return e, p.errs.Sorted()
}

type parser struct {
	file   *diag.File
	tokens []Token
	pos    int
	errs   diag.List

	expected    []string // words asked for at expectedPos, for nearest-keyword hints
	expectedPos int
	aliasAt     int // index of the last word taken as an alias without AS, -1 if none

	nesting int
	height  int   // of the tree built last
	peak    int   // of the trees built since the last measure
	closing []int // index of the matching bracket, by token; built when first needed

	declares *Name // what the current statement creates
	spread   Expr  // the expression behind which .* stands
}

func newParser(f *diag.File, opts Options) *parser {
	tokens, errs := Lex(f, opts)
	return &parser{file: f, tokens: tokens, errs: errs, aliasAt: -1}
}

// bailout unwinds to the statement that is being parsed, after its error has been reported.
type bailout struct{}

// guard runs f and reports whether it got through.
func (p *parser) guard(f func()) (ok bool) {
	nesting := p.nesting
	defer func() {
		if r := recover(); r != nil {
			if _, mine := r.(bailout); !mine {
				panic(r)
			}
			p.nesting, ok = nesting, false
		}
	}()
	f()
	return true
}

func (p *parser) cur() *Token { return &p.tokens[p.pos] }

// at returns the token n places ahead; beyond the end, EOF.
func (p *parser) at(n int) *Token { return &p.tokens[min(p.pos+n, len(p.tokens)-1)] }

func (p *parser) advance() *Token {
	t := p.cur()
	if t.Kind != EOF {
		p.pos++
	}
	return t
}

// span returns the span of a token.
func (p *parser) span(t *Token) diag.Span { return p.file.Span(t.Start, t.End) }

// from returns the place from token index start to the last token that was taken.
func (p *parser) from(start int) Loc {
	end := max(start, p.pos-1)
	return Loc{p.file.Span(p.tokens[start].Start, p.tokens[end].End)}
}

// since returns the place from the start of span to the last token that was taken.
func (p *parser) since(n Node) Loc {
	return Loc{p.file.Span(n.Span().Start, p.tokens[max(0, p.pos-1)].End)}
}

func (p *parser) note(word string) {
	if p.expectedPos != p.pos {
		p.expectedPos, p.expected = p.pos, p.expected[:0]
	}
	p.expected = append(p.expected, word)
}

// is reports whether the words come next.
func (p *parser) is(words ...string) bool {
	p.note(words[0])
	for i, w := range words {
		if !p.at(i).isWord(w) {
			return false
		}
	}
	return true
}

// accept takes the words if they come next.
func (p *parser) accept(words ...string) bool {
	if !p.is(words...) {
		return false
	}
	p.pos += len(words)
	return true
}

// acceptOne takes the next token if it is one of the words, and returns it in upper case.
func (p *parser) acceptOne(words ...string) string {
	for _, w := range words {
		if p.accept(w) {
			return w
		}
	}
	return ""
}

// expect takes the words or reports what stands there instead.
func (p *parser) expect(words ...string) {
	for _, w := range words {
		if !p.accept(w) {
			p.unexpected(fmt.Sprintf("%q", w))
		}
	}
}

func (p *parser) isOp(op string) bool { return p.cur().isOp(op) }

func (p *parser) acceptOp(op string) bool {
	if p.isOp(op) {
		p.pos++
		return true
	}
	return false
}

func (p *parser) expectOp(op string) *Token {
	if !p.isOp(op) {
		if op == ")" || op == "]" {
			p.unclosed()
		}
		p.unexpected(fmt.Sprintf("%q", op))
	}
	return p.advance()
}

// unclosed reports the innermost bracket before the cursor that nothing closes, if there is one in the
// statement.
func (p *parser) unclosed() {
	for i := p.pos - 1; i >= 0 && !p.tokens[i].isOp(";"); i-- {
		t := &p.tokens[i]
		if (t.isOp("(") || t.isOp("[")) && p.closingOf(i) < 0 {
			p.fail(diag.Errorf(diag.CodeUnclosedBracket, p.span(t), "bracket is not closed").
				WithNote(p.span(p.cur()), "%s does not fit inside the brackets", p.cur().describe(p.file)))
		}
	}
}

// fail reports an error and gives the statement up.
func (p *parser) fail(d *diag.Diagnostic) {
	p.errs.Add(d)
	panic(bailout{})
}

// unexpected reports the current token where something else was expected, and gives the statement up.
func (p *parser) unexpected(what string) {
	t := p.cur()
	for i := max(0, p.pos-2); i <= p.pos; i++ {
		if p.tokens[i].Kind == Bad {
			panic(bailout{}) // the lexer has reported what is wrong here
		}
	}
	d := diag.Errorf(diag.CodeSyntaxError, p.span(t), "expected %s but found %s", what, t.describe(p.file))
	p.hint(d)
	p.fail(d)
}

// hint adds what the user may have meant.
func (p *parser) hint(d *diag.Diagnostic) {
	t := p.cur()
	if t.Kind == Word && slices.Contains(statementWords, t.Upper) && p.pos > 0 && p.startsLine(t) {
		d.WithHelp("is a semicolon missing before %q?", t.Text)
		return
	}
	if t.Kind == Word && p.expectedPos == p.pos && !IsReserved(t.Upper) {
		if near, ok := diag.Nearest(t.Text, p.expected); ok && near != t.Upper {
			d.WithHelp("did you mean %q?", near)
			return
		}
	}
	if p.pos > 0 && p.pos+1 < len(p.tokens) {
		prev, next := &p.tokens[p.pos-1], p.at(1)
		switch glued := prev.End == t.Start; {
		case glued && t.isOp("=") && prev.isOp("="):
			d.WithHelp("write =")
			return
		case glued && t.isOp("-") && next.Start == t.End && prev.Kind == Word && (next.Kind == Word || next.Kind == Number):
			d.WithHelp("quote the whole name: %s", Quote(p.glued(p.pos-1)))
			return
		}
	}
	if p.aliasAt >= 0 && p.aliasAt == p.pos-1 {
		// "FORM t" parses as an alias FORM; it is the word before that is misspelled.
		prev := &p.tokens[p.aliasAt]
		if near, ok := diag.Nearest(prev.Text, clauseWords); ok && near != prev.Upper {
			d.Span = p.span(prev)
			d.Message = fmt.Sprintf("%q has no meaning here", prev.Text)
			d.WithHelp("did you mean %q?", near)
			return
		}
	}
}

// glued is the text from token i on as far as nothing stands between the tokens: a name such as
// my-topic.v1 that has to be quoted.
func (p *parser) glued(i int) string {
	end := p.tokens[i].End
	for _, t := range p.tokens[i+1:] {
		if t.Start != end || t.Kind != Word && t.Kind != Number && !t.isOp("-") && !t.isOp(".") {
			break
		}
		end = t.End
	}
	return p.file.Text()[p.tokens[i].Start:end]
}

// clauseWords may follow an alias.
var clauseWords = []string{
	"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "INTERSECT", "EXCEPT", "JOIN", "CROSS",
	"INNER", "LEFT", "RIGHT", "FULL", "ON", "USING", "WINDOW",
}

// statementWords begin statements.
var statementWords = []string{
	"SELECT", "WITH", "VALUES", "INSERT", "CREATE", "DROP", "ALTER", "SET", "RESET", "EXECUTE", "EXPLAIN", "SHOW",
	"DESCRIBE", "DESC", "STOP", "FOR", "BEGIN",
}

// enter counts a level of nesting; leave with p.nesting--.
func (p *parser) enter() {
	p.nesting++
	if p.nesting > maxNesting {
		p.fail(diag.Errorf(diag.CodeNestingTooDeep, p.span(p.cur()), "nested deeper than %d levels", maxNesting))
	}
}

// grow sets the height of a tree that was put on top of trees of height h.
func (p *parser) grow(h int) {
	p.height = h + 1
	p.peak = max(p.peak, p.height)
	if p.height > maxHeight {
		p.fail(diag.Errorf(diag.CodeNestingTooDeep, p.span(p.cur()), "a chain of more than %d operators", maxHeight).
			WithHelp("write IN (...) in place of many ORs, or split the statement"))
	}
}

// measure starts a tree whose children are built from here on. The function it returns sets the tree's
// height.
func (p *parser) measure() func() {
	saved := p.peak
	p.peak = 0
	return func() {
		p.height = p.peak + 1
		p.peak = max(saved, p.height)
	}
}

// ident takes a name. A reserved word is reported but taken, so that one such name does not hide the
// errors behind it.
func (p *parser) ident(what string) *Ident {
	t := p.cur()
	switch {
	case t.Kind == QuotedName:
		p.advance()
		return p.quotedIdent(t)
	case t.Kind == Word && !IsReserved(t.Upper):
		p.advance()
		return &Ident{Loc: Loc{p.span(t)}, Name: t.Text}
	case t.Kind == Word && !structural[t.Upper]:
		p.reserved(t)
		fallthrough
	case t.Kind == Bad: // reported by the lexer
		p.advance()
		return &Ident{Loc: Loc{p.span(t)}, Name: t.Text}
	}
	if t.Kind == Word {
		d := diag.Errorf(diag.CodeSyntaxError, p.span(t), "expected %s but found the reserved word %q", what, t.Text).
			WithHelp("to use it as a name, quote it: `%s`", t.Text)
		p.fail(d)
	}
	p.unexpected(what)
	return nil
}

// reserved reports a reserved word in place of a name.
func (p *parser) reserved(t *Token) {
	p.errs.Errorf(diag.CodeReservedWord, p.span(t), "%q is a reserved word", t.Text).
		WithHelp("quote it: `%s`", t.Text)
}

func (p *parser) quotedIdent(t *Token) *Ident {
	p.noSecret(t, "a name")
	return &Ident{Loc: Loc{p.span(t)}, Name: t.Text, Quoted: true, Text: t.Vars}
}

// noSecret refuses secrets outside of option values.
func (p *parser) noSecret(t *Token, where string) {
	if t.Vars.HasSecret() {
		p.errs.Errorf(diag.CodeSecretNotAllowed, p.span(t), "a secret cannot be part of %s", where).
			WithHelp("secrets can stand only in the values of options")
	}
}

// canStartName reports whether t can be a name.
func canStartName(t *Token) bool {
	return t.Kind == QuotedName || t.Kind == Word && !IsReserved(t.Upper)
}

// name takes a dotted name.
func (p *parser) name(what string) *Name {
	start := p.pos
	parts := []*Ident{p.ident(what)}
	for p.isOp(".") {
		p.advance()
		parts = append(parts, p.ident("a name"))
	}
	return &Name{Loc: p.from(start), Parts: parts}
}

// identList takes (a, b, ...).
func (p *parser) identList(what string) []*Ident {
	p.expectOp("(")
	var list []*Ident
	p.commaList(func() { list = append(list, p.ident(what)) })
	p.expectOp(")")
	return list
}

// commaList calls item, and again after each comma. A comma before the closing bracket is reported.
func (p *parser) commaList(item func()) {
	for {
		item()
		comma := p.cur()
		if !p.acceptOp(",") {
			return
		}
		if p.isOp(")") || p.cur().Kind == EOF || p.isOp(";") {
			p.errs.Errorf(diag.CodeSyntaxError, p.span(comma), "comma without an item after it").WithHelp("remove it")
			return
		}
	}
}

// stringLit takes a string that cannot hold a secret.
func (p *parser) stringLit(what string) *StringLit {
	t := p.cur()
	if t.Kind == Bad { // reported by the lexer
		p.advance()
		return &StringLit{Loc: Loc{p.span(t)}}
	}
	if t.Kind != String {
		p.unexpected(what)
	}
	p.noSecret(t, what)
	return p.anyString()
}

// anyString takes the string at the cursor, and those that continue it on the following lines, as the
// standard has it.
func (p *parser) anyString() *StringLit {
	start := p.pos
	t := p.advance()
	s := &StringLit{Value: t.Text, Text: t.Vars}
	for p.cur().Kind == String && strings.Contains(p.file.Text()[p.cur().Trivia:p.cur().Start], "\n") {
		more := p.advance()
		if s.Text != nil || more.Vars != nil {
			s.Text = joinTexts(s, more)
		}
		s.Value += more.Text
	}
	s.Loc = p.from(start)
	return s
}

func joinTexts(a *StringLit, b *Token) *Text {
	parts := func(t *Text, lit string) []TextPart {
		if t != nil {
			return t.Parts
		}
		return []TextPart{{Lit: lit}}
	}
	return &Text{Parts: slices.Concat(parts(a.Text, a.Value), parts(b.Vars, b.Text))}
}

// foreignFunction refuses a statement about functions that lie in other files.
func (p *parser) foreignFunction(start int, verb string) {
	p.fail(diag.Errorf(diag.CodeNotYet, p.from(start).Src, "%s FUNCTION is not supported: functions are part of the program and written in Go, not loaded (JAVA, SCALA, PYTHON)", verb).
		WithHelp("register the function with Go package jobs/userfunc and call it by its name: docs/sql/user-functions.md"))
}

// notYet refuses a feature of Flink that is not built, naming it.
func (p *parser) notYet(start int, feature string) {
	p.fail(diag.Errorf(diag.CodeNotYet, p.from(start).Src, "%s is not supported yet", feature))
}
