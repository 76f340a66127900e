package assist

import (
	"regexp"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// kind is what a place is good for.
type kind uint8

const (
	atWord         kind = iota // an expression, a name, a keyword
	atNothing                  // a comment, a string that is no option
	atKey                      // a key of WITH
	atValue                    // a value of WITH
	atSettingKey               // SET 'key'
	atSettingValue             // SET 'key' = 'value'
	atTable                    // a table's name
	atMember                   // behind "name."
	atTarget                   // a column of the table that INSERT INTO writes
	atType                     // a data type
)

// place is where something is to be written, by the tokens before it.
type place struct {
	kind kind
	// qualifier is the name before the dot, or INSERT's table.
	qualifier string
	key       string   // of a value
	options   []option // those of the group before the place
	alter     string   // the table whose options ALTER TABLE sets
}

type option struct{ key, value string }

func isName(t syntax.Token) bool { return t.Kind == syntax.Word || t.Kind == syntax.QuotedName }

func isOp(t syntax.Token, op string) bool { return t.Kind == syntax.Op && t.Text == op }

func isWord(t syntax.Token, words ...string) bool {
	for _, w := range words {
		if t.Kind == syntax.Word && t.Upper == w {
			return true
		}
	}
	return false
}

// statementStart is the index of the first token of the last statement.
func statementStart(ts []syntax.Token) int {
	for i := len(ts) - 1; i >= 0; i-- {
		if isOp(ts[i], ";") {
			return i + 1
		}
	}
	return 0
}

// placeAfter says what comes after the tokens of a statement so far.
func placeAfter(ts []syntax.Token) place {
	var open []int // the brackets that are open
	for i, t := range ts {
		switch {
		case isOp(t, "("):
			open = append(open, i)
		case isOp(t, ")") && len(open) > 0:
			open = open[:len(open)-1]
		}
	}
	if len(ts) == 0 {
		return place{}
	}
	last := ts[len(ts)-1]
	if isWord(ts[0], "SET", "RESET") {
		switch {
		case len(ts) == 1:
			return place{kind: atSettingKey}
		case isOp(last, "=") && ts[1].Kind == syntax.String:
			return place{kind: atSettingValue, key: ts[1].Text}
		}
		return place{}
	}
	if len(open) > 0 {
		if p, ok := inBrackets(ts, open); ok {
			return p
		}
	}
	switch {
	case isOp(last, ".") && len(ts) > 1 && isName(ts[len(ts)-2]):
		return place{kind: atMember, qualifier: ts[len(ts)-2].Text}
	case isWord(last, "FROM", "JOIN", "INTO", "OVERWRITE", "DESCRIBE", "DESC"):
		return place{kind: atTable}
	case isWord(last, "TABLE", "VIEW") && len(ts) > 1 && !isWord(ts[len(ts)-2], "CREATE", "TEMPORARY", "WIDE"):
		return place{kind: atTable}
	case isWord(last, "LIKE") && isWord(ts[0], "CREATE") && len(open) == 0 && !hasWord(ts, "SELECT"):
		return place{kind: atTable}
	case isWord(last, "OF") && len(ts) > 1 && isWord(ts[len(ts)-2], "COLUMNS"):
		return place{kind: atTable}
	}
	return place{}
}

func hasWord(ts []syntax.Token, w string) bool {
	for _, t := range ts {
		if isWord(t, w) {
			return true
		}
	}
	return false
}

// inBrackets is placeAfter within the innermost open bracket.
func inBrackets(ts []syntax.Token, open []int) (place, bool) {
	at := open[len(open)-1]
	last := ts[len(ts)-1]
	if at == 0 {
		return place{}, false
	}
	before := ts[at-1]
	inside := ts[at+1:]
	switch {
	case isWord(before, "WITH"), isWord(before, "SET") && isWord(ts[0], "ALTER"):
		p := place{options: optionsOf(inside)}
		if isWord(ts[0], "ALTER") && len(ts) > 2 {
			p.alter = ts[2].Text
		}
		switch {
		case isOp(last, "=") && len(inside) > 1:
			p.kind, p.key = atValue, inside[len(inside)-2].Text
		case len(inside) == 0 || isOp(last, ","):
			p.kind = atKey
		default:
			p.kind = atNothing
		}
		return p, true
	case isWord(ts[0], "INSERT") && len(open) == 1 && at >= 3 && !hasWord(ts, "SELECT") && !hasWord(ts, "VALUES") && isName(before):
		if len(inside) == 0 || isOp(last, ",") {
			return place{kind: atTarget, qualifier: before.Text}, true
		}
	case isWord(last, "AS") && isWord(before, "CAST", "TRY_CAST"):
		return place{kind: atType}, true
	case isWord(ts[0], "CREATE") && hasWord(ts[:at], "TABLE") && len(open) == 1 && len(inside) > 0 && isName(last) && !hasWord(ts[:at], "AS"):
		if len(inside) == 1 || isOp(inside[len(inside)-2], ",") {
			return place{kind: atType}, true
		}
	}
	return place{}, false
}

// optionsOf are the complete options of a group, up to its end.
func optionsOf(ts []syntax.Token) []option {
	var out []option
	for i := 0; i < len(ts) && !isOp(ts[i], ")"); i++ {
		if i+2 < len(ts) && ts[i].Kind == syntax.String && isOp(ts[i+1], "=") && ts[i+2].Kind == syntax.String {
			out = append(out, option{ts[i].Text, ts[i+2].Text})
			i += 2
		}
	}
	return out
}

// laterOption finds options behind the place, where the text may not lex because
// a string is open.
var laterOption = regexp.MustCompile(`'(connector|format)'\s*=\s*'([^'\n]*)'`)

func optionsBehind(text string) []option {
	if i := strings.IndexByte(text, ';'); i >= 0 {
		text = text[:i]
	}
	var out []option
	for _, m := range laterOption.FindAllStringSubmatch(text, -1) {
		out = append(out, option{m[1], m[2]})
	}
	return out
}

func valueOf(opts []option, key string) string {
	for _, o := range opts {
		if o.key == key {
			return o.value
		}
	}
	return ""
}

// optionsAt are the options that may be written at a place.
func (a *Analysis) optionsAt(p place, group []option) []connector.Option {
	if p.kind == atSettingKey || p.kind == atSettingValue {
		return a.settings()
	}
	name, format := valueOf(group, "connector"), valueOf(group, "format")
	if t := a.tableNamed(p.alter); t != nil && name == "" && t.Spec != nil {
		name = t.Spec.Name
		if o := t.Option("format"); o != nil {
			format = o.Value.Value
		}
	}
	conn := connector.Option{Key: "connector", Type: connector.OptEnum, Enum: a.registry.Names(), Required: true, Doc: "The system that the table lies in."}
	c, ok := a.registry.Lookup(name)
	if !ok {
		return []connector.Option{conn}
	}
	spec := c.Spec()
	if format == "" {
		format = spec.DefaultFormat
	}
	out := append([]connector.Option{conn}, spec.Options...)
	if len(spec.Formats) > 0 {
		f := connector.Option{Key: "format", Type: connector.OptEnum, Default: spec.DefaultFormat, Required: spec.DefaultFormat == "", Doc: "How rows are written as bytes."}
		for _, s := range spec.Formats {
			f.Enum = append(f.Enum, s.Name)
			if s.Name == format {
				out = append(out, s.Options...)
			}
		}
		out = append(out, f)
	}
	return append(out, catalog.RuntimeOptions()...)
}

func (a *Analysis) tableNamed(name string) *catalog.Table {
	for _, t := range a.tables() {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// cursor is the word being typed at an offset.
type cursor struct {
	place
	// start is where the replacement begins; it ends at the offset.
	start  int
	prefix string
	// quote is set where the word still needs the quotes of a string; tick where
	// a quoted name was begun.
	quote, tick bool
	statement   []syntax.Token // before the word
}

// cursorAt looks at the text before the offset alone: what follows may not even
// lex.
func cursorAt(name, text string, offset int) cursor {
	f := diag.NewFile(name, text[:offset])
	tokens, faults := syntax.Lex(f, syntax.Options{})
	c := cursor{start: offset}
	eof := tokens[len(tokens)-1]
	tokens = tokens[:len(tokens)-1]
	for _, d := range faults {
		switch {
		case d.Code == diag.CodeUnterminatedComment:
			return cursor{place: place{kind: atNothing}}
		case d.Span.End < len(strings.TrimRight(text[:offset], " \t")):
		case d.Code == diag.CodeUnterminatedString:
			return c.inString(tokens, d.Span.Start, text[:offset])
		case d.Code == diag.CodeUnterminatedName:
			c.tick, c.start, c.prefix = true, d.Span.Start, text[d.Span.Start+1:offset]
			tokens = tokens[:len(tokens)-1]
		}
	}
	for _, k := range syntax.Comments(f, eof) {
		if strings.HasPrefix(k.Text, "--") && k.Span().End == offset {
			return cursor{place: place{kind: atNothing}}
		}
	}
	if n := len(tokens); n > 0 && tokens[n-1].End == offset && !c.tick {
		switch tokens[n-1].Kind {
		case syntax.Word:
			c.start, c.prefix = tokens[n-1].Start, tokens[n-1].Text
			tokens = tokens[:n-1]
		case syntax.Number, syntax.String, syntax.QuotedName, syntax.BinaryString:
			return cursor{place: place{kind: atNothing}}
		}
	}
	c.statement = tokens[statementStart(tokens):]
	c.place = placeAfter(c.statement)
	switch c.kind {
	case atKey, atValue, atSettingKey, atSettingValue:
		c.quote = true
	}
	return c
}

// inString is the cursor within a string that begins at open.
func (c cursor) inString(tokens []syntax.Token, open int, text string) cursor {
	for len(tokens) > 0 && tokens[len(tokens)-1].End > open {
		tokens = tokens[:len(tokens)-1]
	}
	c.start, c.prefix = open+1, text[open+1:]
	c.statement = tokens[statementStart(tokens):]
	c.place = placeAfter(c.statement)
	switch c.kind {
	case atKey, atValue, atSettingKey, atSettingValue:
	default:
		c.place = place{kind: atNothing}
	}
	return c
}
