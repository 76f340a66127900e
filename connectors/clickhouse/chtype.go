package clickhouse

import (
	"fmt"
	"strconv"
	"strings"
)

// chType is a ClickHouse type as the server spells it, taken apart.
type chType struct {
	// text is the type as the server has it, name its constructor.
	text, name string
	// args are type arguments, names the element names of a named Tuple.
	args  []*chType
	names []string
	// numbers are integer arguments, texts quoted ones, in their order.
	numbers []int
	texts   []string
	// values are an Enum's, by the index of texts.
	values []int
}

// parseType takes a type's text apart.
func parseType(s string) (*chType, error) {
	p := &typeParser{s: s}
	t, err := p.parse()
	if err == nil {
		p.space()
		if p.i != len(p.s) {
			err = fmt.Errorf("%q follows it", p.s[p.i:])
		}
	}
	if err != nil {
		return nil, fmt.Errorf("type %q of ClickHouse cannot be read: %w", s, err)
	}
	return t, nil
}

// typeParser is a recursive-descent parser of type texts.
type typeParser struct {
	s string
	i int
}

func (p *typeParser) space() {
	for p.i < len(p.s) && (p.s[p.i] == ' ' || p.s[p.i] == '\n') {
		p.i++
	}
}

func (p *typeParser) take(c byte) bool {
	p.space()
	if p.i < len(p.s) && p.s[p.i] == c {
		p.i++
		return true
	}
	return false
}

// word is a name: letters, digits and '_', or anything in backticks.
func (p *typeParser) word() (string, error) {
	p.space()
	if p.i < len(p.s) && p.s[p.i] == '`' {
		return p.quoted('`')
	}
	from := p.i
	for p.i < len(p.s) && isWord(p.s[p.i]) {
		p.i++
	}
	if from == p.i {
		return "", fmt.Errorf("a name is missing at byte %d", p.i)
	}
	return p.s[from:p.i], nil
}

func isWord(c byte) bool {
	return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// quoted reads a text in quotes, with backslash escapes.
func (p *typeParser) quoted(q byte) (string, error) {
	var b strings.Builder
	for p.i++; p.i < len(p.s); p.i++ {
		c := p.s[p.i]
		switch {
		case c == '\\' && p.i+1 < len(p.s):
			p.i++
			b.WriteByte(unescaped(p.s[p.i]))
		case c == q && p.i+1 < len(p.s) && p.s[p.i+1] == q:
			p.i++
			b.WriteByte(q)
		case c == q:
			p.i++
			return b.String(), nil
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("a quoted text does not end")
}

// unescaped is what a backslash and c stand for.
func unescaped(c byte) byte {
	switch c {
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case '0':
		return 0
	}
	return c
}

func (p *typeParser) parse() (*chType, error) {
	p.space()
	from := p.i
	name, err := p.word()
	if err != nil {
		return nil, err
	}
	t := &chType{name: name}
	if p.take('(') {
		for !p.take(')') {
			if err := p.argument(t); err != nil {
				return nil, err
			}
			if !p.take(',') && (p.i >= len(p.s) || p.s[p.i] != ')') {
				return nil, fmt.Errorf("',' or ')' is missing at byte %d", p.i)
			}
		}
	}
	t.text = p.s[from:p.i]
	return t, nil
}

func (p *typeParser) argument(t *chType) error {
	p.space()
	if p.i >= len(p.s) {
		return fmt.Errorf("it does not end")
	}
	c := p.s[p.i]
	switch {
	case c == '\'':
		text, err := p.quoted('\'')
		if err != nil {
			return err
		}
		t.texts = append(t.texts, text)
		if p.take('=') {
			n, err := p.number()
			if err != nil {
				return err
			}
			t.values = append(t.values, n)
		}
		return nil
	case c == '-' || c >= '0' && c <= '9':
		n, err := p.number()
		t.numbers = append(t.numbers, n)
		return err
	}
	// A type, or a name and a type.
	at := p.i
	first, err := p.word()
	if err != nil {
		return err
	}
	p.space()
	if p.i < len(p.s) && p.s[p.i] != ',' && p.s[p.i] != ')' && p.s[p.i] != '(' {
		sub, err := p.parse()
		if err != nil {
			return err
		}
		t.names, t.args = append(t.names, first), append(t.args, sub)
		return nil
	}
	p.i = at
	sub, err := p.parse()
	if err != nil {
		return err
	}
	t.args = append(t.args, sub)
	return nil
}

func (p *typeParser) number() (int, error) {
	p.space()
	from := p.i
	for p.i < len(p.s) && (p.s[p.i] == '-' || p.s[p.i] >= '0' && p.s[p.i] <= '9') {
		p.i++
	}
	n, err := strconv.Atoi(p.s[from:p.i])
	if err != nil {
		return 0, fmt.Errorf("a number is missing at byte %d", from)
	}
	return n, nil
}

// number is integer argument i, or def.
func (t *chType) number(i, def int) int {
	if i < len(t.numbers) {
		return t.numbers[i]
	}
	return def
}

// zone is a DateTime's or DateTime64's zone, or "".
func (t *chType) zone() string {
	if len(t.texts) > 0 {
		return t.texts[0]
	}
	return ""
}

// quoteName writes a name in backticks as ClickHouse reads it.
func quoteName(s string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(s) + "`"
}

// quoteText writes a text literal as ClickHouse reads it.
func quoteText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`).Replace(s) + "'"
}
