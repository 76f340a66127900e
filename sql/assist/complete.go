package assist

import (
	"sort"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/keyed"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/compile"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/syntax"
)

// ItemKind is what a proposal is.
type ItemKind uint8

// The kinds, in the order in which proposals are listed.
const (
	ItemColumn ItemKind = iota
	ItemTable
	ItemOption
	ItemValue
	ItemType
	ItemFunction
	ItemKeyword
)

// Item is one thing that may be written.
type Item struct {
	Kind ItemKind
	// Label is what is listed; Insert is what is written in place of the word
	// begun, quoted as it must be.
	Label, Insert string
	// Detail is a few words (a type); Doc is Markdown.
	Detail, Doc string
}

// Completion is what may be written at a place.
type Completion struct {
	Items []Item
	// Start is where the word begins that an item replaces; it ends at the place.
	Start int
}

// placeholder stands where a word is missing, so that the statement may parse.
const placeholder = "millrace_cursor"

// Complete lists what may be written at an offset of the file named target. Items
// begin with what is written there, in any case, and are sorted by kind and name.
func Complete(files []compile.Source, target string, offset int, o compile.Options) (Completion, error) {
	files = append([]compile.Source{}, files...)
	var text string
	for i, f := range files {
		if f.Name == target {
			text = f.Text
			offset = max(0, min(offset, len(text)))
			c := cursorAt(f.Name, text, offset)
			if c.kind == atNothing {
				return Completion{Start: offset}, nil
			}
			if !c.quote && c.kind != atKey && c.kind != atValue && c.kind != atSettingKey && c.kind != atSettingValue {
				files[i].Text = text[:c.start] + placeholder + text[wordEnd(text, offset):]
			}
		}
	}
	a, err := Analyze(files, target, o)
	if err != nil {
		return Completion{}, err
	}
	c := cursorAt(target, text, offset)
	l := &lister{a: a, c: c, seen: map[string]bool{}}
	l.list(text[offset:])
	sort.SliceStable(l.items, func(i, j int) bool {
		if l.items[i].Kind != l.items[j].Kind {
			return l.items[i].Kind < l.items[j].Kind
		}
		return l.items[i].Kind != ItemColumn && l.items[i].Label < l.items[j].Label
	})
	return Completion{Items: l.items, Start: c.start}, nil
}

// wordEnd is where the word ends that the offset is in.
func wordEnd(text string, offset int) int {
	for offset < len(text) {
		b := text[offset]
		if b != '_' && b < 0x80 && (b < '0' || b > '9') && (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') {
			break
		}
		offset++
	}
	return offset
}

// lister collects the items of one completion.
type lister struct {
	a     *Analysis
	c     cursor
	items []Item
	seen  map[string]bool
}

func (l *lister) add(it Item) {
	if len(it.Label) < len(l.c.prefix) || !strings.EqualFold(it.Label[:len(l.c.prefix)], l.c.prefix) || l.seen[it.Label] {
		return
	}
	l.seen[it.Label] = true
	if it.Insert == "" {
		it.Insert = it.Label
	}
	switch {
	case it.Kind != ItemColumn && it.Kind != ItemTable:
		if l.c.quote {
			it.Insert = syntax.QuoteString(it.Insert)
		}
	case l.c.tick:
		it.Insert = "`" + strings.ReplaceAll(it.Insert, "`", "``") + "`"
	default:
		it.Insert = syntax.Quote(it.Insert)
	}
	l.items = append(l.items, it)
}

func (l *lister) list(behind string) {
	switch l.c.kind {
	case atKey, atSettingKey:
		l.keys(behind)
	case atValue, atSettingValue:
		l.values(behind)
	case atTable:
		l.tables()
		l.words("TABLE", "LATERAL", "UNNEST", "VALUES")
	case atMember:
		l.members()
	case atTarget:
		l.columnsOf(l.c.qualifier)
	case atType:
		for _, t := range strings.Fields(typeWords) {
			l.add(Item{Kind: ItemType, Label: t})
		}
		l.words("AS", "METADATA")
	default:
		l.scope()
		l.tables()
		if !l.c.tick {
			l.functions()
			l.words(strings.Fields(keywords)...)
		}
	}
}

func (l *lister) words(ws ...string) {
	for _, w := range ws {
		l.add(Item{Kind: ItemKeyword, Label: w})
	}
}

func (l *lister) keys(behind string) {
	group := append(l.c.options, optionsBehind(behind)...)
	for _, o := range l.a.optionsAt(l.c.place, group) {
		if valueOf(l.c.options, o.Key) == "" && !strings.HasSuffix(o.Key, "*") {
			l.add(Item{Kind: ItemOption, Label: o.Key, Detail: o.Default, Doc: optionDoc(o)})
		}
	}
}

func (l *lister) values(behind string) {
	group := append(l.c.options, optionsBehind(behind)...)
	for _, o := range l.a.optionsAt(l.c.place, group) {
		if o.Key != l.c.key {
			continue
		}
		values := o.Enum
		if o.Type == connector.OptBool {
			values = []string{"true", "false"}
		}
		for _, v := range values {
			it := Item{Kind: ItemValue, Label: v}
			if c, ok := l.a.registry.Lookup(v); ok && o.Key == "connector" {
				it.Doc = connectorDoc(c.Spec())
			}
			if v == o.Default {
				it.Detail = "default"
			}
			l.add(it)
		}
		if len(values) == 0 && o.Default != "" {
			l.add(Item{Kind: ItemValue, Label: o.Default, Detail: "default"})
		}
	}
}

func (l *lister) tables() {
	cat := l.a.index.Catalog
	for _, name := range cat.Names() {
		if name == placeholder {
			continue
		}
		it := Item{Kind: ItemTable, Label: name}
		switch o, _ := cat.Lookup(name); o := o.(type) {
		case *catalog.Table:
			it.Detail = "table"
			if o.Spec != nil {
				it.Detail += " in " + o.Spec.Name
			}
			it.Doc = o.Comment
		case *catalog.View:
			it.Detail = "view"
		}
		l.add(it)
	}
	// CTEs of the statement: name AS ( behind WITH or a comma.
	ts := l.c.statement
	for i := 1; i+2 < len(ts); i++ {
		if isName(ts[i]) && isWord(ts[i+1], "AS") && isOp(ts[i+2], "(") && (isWord(ts[i-1], "WITH") || isOp(ts[i-1], ",")) {
			l.add(Item{Kind: ItemTable, Label: ts[i].Text, Detail: "WITH"})
		}
	}
}

func (l *lister) column(name, typ, doc string) {
	l.add(Item{Kind: ItemColumn, Label: name, Detail: typ, Doc: doc})
}

func (l *lister) columns(cols []plan.Column) {
	for _, c := range cols {
		if c.Name != placeholder {
			l.column(c.Name, c.Type.String(), "")
		}
	}
}

// columnsOf lists the columns of a table or view.
func (l *lister) columnsOf(name string) bool {
	if cols, ok := l.a.index.Views[name]; ok {
		l.columns(cols)
		return true
	}
	t := l.a.tableNamed(name)
	if t == nil {
		return false
	}
	for _, c := range t.Columns {
		if l.c.kind != atTarget || c.Writable() {
			l.column(c.Name, c.Type.String(), c.Comment)
		}
	}
	return true
}

// scopes are the queries around the cursor, innermost first.
func (l *lister) scopes() []plan.ScopeAt {
	var out []plan.ScopeAt
	for _, s := range l.a.index.Scopes {
		if l.a.covers(s.Span, l.c.start) {
			out = append(out, s)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Span.End-out[i].Span.Start < out[j].Span.End-out[j].Span.Start })
	return out
}

func (l *lister) scope() {
	found := false
	for _, s := range l.scopes() {
		for _, r := range s.Relations {
			l.columns(r.Columns)
			found = true
		}
	}
	if found {
		return
	}
	named := l.mentioned()
	for _, r := range named {
		l.columnsOf(r.table)
	}
	if len(named) == 0 && hasWord(l.c.statement, "SELECT") {
		// FROM is written last: any table may be meant.
		for _, name := range l.a.index.Catalog.Names() {
			l.columnsOf(name)
		}
	}
}

func (l *lister) members() {
	for _, s := range l.scopes() {
		for _, r := range s.Relations {
			if r.Name == l.c.qualifier {
				l.columns(r.Columns)
				return
			}
		}
	}
	for _, r := range l.mentioned() {
		if r.name == l.c.qualifier {
			l.columnsOf(r.table)
			return
		}
	}
	l.columnsOf(l.c.qualifier)
}

type mention struct{ name, table string }

// mentioned are the tables that the statement around the cursor names after FROM,
// JOIN or TABLE, for text that does not parse.
func (l *lister) mentioned() []mention {
	ts := l.a.tokens
	at := 0
	for at < len(ts) && ts[at].Start < l.c.start {
		at++
	}
	ts = ts[statementStart(ts[:at]):]
	var out []mention
	for i := 0; i+1 < len(ts) && !isOp(ts[i], ";"); i++ {
		if !isWord(ts[i], "FROM", "JOIN", "TABLE") || !isName(ts[i+1]) {
			continue
		}
		m := mention{ts[i+1].Text, ts[i+1].Text}
		j := i + 2
		if j < len(ts) && isWord(ts[j], "AS") {
			j++
		}
		if j < len(ts) && isName(ts[j]) && (ts[j].Kind == syntax.QuotedName || !syntax.IsReserved(ts[j].Text)) {
			m.name = ts[j].Text
		}
		out = append(out, m)
	}
	return out
}

func (l *lister) functions() {
	lib := l.a.library
	named := func(name, detail string) {
		if syntax.IsReserved(name) && strings.Contains(" "+strings.Join(strings.Fields(keywords), " ")+" ", " "+name+" ") {
			return // a word with a grammar of its own
		}
		if c := name[0]; c >= 'A' && c <= 'Z' && !strings.Contains(name, " ") {
			l.add(Item{Kind: ItemFunction, Label: name, Detail: detail, Doc: functionDoc(lib, name)})
		}
	}
	for _, f := range lib.Functions() {
		if f.Infix || f.Postfix {
			continue
		}
		for _, n := range append([]string{f.Name}, f.Aliases...) {
			detail := strings.ToLower(string(f.Category))
			if f.Table {
				detail = "table"
			}
			named(n, detail)
		}
	}
	for _, g := range lib.Aggregates() {
		for _, n := range append([]string{g.Name}, g.Aliases...) {
			named(n, "aggregate")
		}
	}
	for _, n := range strings.Fields(windowFunctions) {
		named(n, "window")
	}
}

// settings are the keys of SET.
func (a *Analysis) settings() []connector.Option {
	var out []connector.Option
	for _, s := range catalog.Known() {
		if !s.Later {
			out = append(out, s.Option)
		}
	}
	return append(out, append(engine.Specs(), keyed.Specs()...)...)
}
