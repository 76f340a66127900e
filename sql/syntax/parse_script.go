package syntax

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/sql/diag"
)

// block parses statements up to the end of the file, or up to END if closer is not empty. It stops before
// END. Each statement recovers on its own.
func (p *parser) block(closer string) []Stmt {
	var stmts []Stmt
	for {
		for p.acceptOp(";") {
		}
		switch {
		case p.cur().Kind == EOF:
			return stmts
		case closer != "" && p.cur().isWord("END"):
			return stmts
		}
		stmts = append(stmts, p.statement(closer))
	}
}

// statement parses one statement and what ends it. On an error it skips to the end of the statement.
func (p *parser) statement(closer string) Stmt {
	start, errs := p.pos, len(p.errs)
	p.declares = nil
	var s Stmt
	done := p.guard(func() {
		s = p.stmt()
		p.endOfStatement(closer)
	})
	declares := p.declares
	p.declares = nil
	if !done && !p.resumes(start) {
		p.skipStatement(start)
	}
	end := max(start, p.pos-1)
	if p.tokens[end].isOp(";") && end > start {
		end--
	}
	loc := Loc{p.file.Span(p.tokens[start].Start, p.tokens[end].End)}
	if !done || p.errs[errs:].HasErrors() || p.lexErrorIn(loc.Src) {
		return &BadStmt{Loc: loc, Declares: declares}
	}
	return s
}

// lexErrorIn reports whether the lexer found an error inside a statement.
func (p *parser) lexErrorIn(s diag.Span) bool {
	return slices.ContainsFunc(p.errs, func(d *diag.Diagnostic) bool {
		return d.Severity == diag.Error && s.Start <= d.Span.Start && d.Span.Start < s.End
	})
}

// endOfStatement takes the semicolon; at the end of the file and before END it may be missing.
func (p *parser) endOfStatement(closer string) {
	if p.acceptOp(";") || p.cur().Kind == EOF {
		return
	}
	if closer != "" && p.is("END") {
		return
	}
	p.unexpected("\";\" or the end of the statement")
}

// resumes reports whether a failed statement that began at start can be left right here, because the
// token in the way begins a line and is the first word of a statement: a semicolon is missing.
func (p *parser) resumes(start int) bool {
	t := p.cur()
	if p.pos == start || t.Kind != Word || !p.startsLine(t) || p.brackets(start) != 0 {
		return false
	}
	switch t.Upper {
	case "INSERT", "CREATE", "DROP", "ALTER", "EXECUTE", "EXPLAIN", "STOP", "RESET", "SHOW":
		return true
	case "SET":
		return p.at(1).Kind == String
	}
	return false
}

// brackets counts the brackets left open from start to the cursor.
func (p *parser) brackets(start int) int {
	n := 0
	for _, t := range p.tokens[start:p.pos] {
		switch {
		case t.isOp("(") || t.isOp("["):
			n++
		case t.isOp(")") || t.isOp("]"):
			n--
		}
	}
	return n
}

func (p *parser) startsLine(t *Token) bool {
	pos := p.file.Pos(t.Start)
	return t.Trivia == 0 || p.file.Pos(t.Trivia).Line < pos.Line
}

// skipStatement moves behind the semicolon that ends the statement that began at token start. Semicolons
// inside BEGIN ... END do not end it, nor does the END of a CASE close a block. It never moves behind the
// END of the block that the statement stands in.
func (p *parser) skipStatement(start int) {
	blocks, cases := 0, 0
	for i := start; ; i++ {
		t := &p.tokens[i]
		switch {
		case t.Kind == EOF:
			p.pos = i
			return
		case t.isOp(";"):
			cases = 0
			if blocks == 0 && i >= p.pos {
				p.pos = i + 1
				return
			}
		case t.isWord("CASE"):
			cases++
		case t.isWord("BEGIN"):
			blocks++
		case t.isWord("END") && cases > 0:
			cases--
		case t.isWord("END") && blocks > 0:
			blocks--
		case t.isWord("END") && i >= p.pos && !t.isWordAfterDot(p.tokens, i):
			p.pos = i
			// At the top level an END closes nothing; take it, so that something is consumed.
			if i == start {
				p.pos = i + 1
			}
			return
		}
	}
}

// isWordAfterDot reports whether the token at i follows a dot, and so is a name.
func (t *Token) isWordAfterDot(tokens []Token, i int) bool { return i > 0 && tokens[i-1].isOp(".") }

// stmt parses a statement without its semicolon.
func (p *parser) stmt() Stmt {
	start := p.pos
	p.enter()
	defer func() { p.nesting-- }()
	switch {
	case p.isOp("(") || p.is("SELECT") || p.is("WITH") || p.is("VALUES") || p.is("TABLE"):
		q := p.query()
		return &QueryStmt{Loc: q.Loc, Query: q}
	case p.is("INSERT"):
		return p.insert()
	case p.accept("CREATE"):
		return p.create(start)
	case p.accept("DROP"):
		return p.drop(start)
	case p.accept("ALTER"):
		return p.alter(start)
	case p.accept("SET"):
		return p.set(start)
	case p.accept("RESET"):
		s := &Reset{}
		if p.cur().Kind == String {
			s.Key = p.stringLit("a key")
		}
		s.Loc = p.from(start)
		return s
	case p.accept("EXECUTE"):
		p.expect("STATEMENT", "SET", "BEGIN")
		return p.statementSet(start)
	case p.accept("BEGIN"):
		p.expect("STATEMENT", "SET")
		p.expectOp(";")
		return p.statementSet(start)
	case p.accept("EXPLAIN"):
		return p.explain(start)
	case p.is("SHOW"):
		return p.show()
	case p.accept("DESCRIBE") || p.accept("DESC"):
		return p.describe(start)
	case p.accept("STOP"):
		return p.stopJob(start)
	case p.accept("FOR"):
		return p.forEach(start)
	}
	p.otherStatement(start)
	return nil
}

// otherStatement reports a statement that is not ours.
func (p *parser) otherStatement(start int) {
	t := p.cur()
	switch t.Upper {
	case "USE", "LOAD", "UNLOAD", "ANALYZE", "CALL", "TRUNCATE", "UPDATE", "DELETE", "COMPILE", "ADD", "REMOVE", "MERGE", "UPSERT":
		if t.Kind == Word {
			p.advance()
			p.notYet(start, "the statement "+t.Upper)
		}
	case "END":
		d := diag.Errorf(diag.CodeSyntaxError, p.span(t), "\"END\" closes nothing here")
		p.advance()
		p.accept("FOR")
		p.fail(d)
	}
	p.unexpected("a statement")
}

func (p *parser) set(start int) Stmt {
	s := &Set{}
	switch {
	case p.cur().Kind == String:
		s.Key = p.stringLit("a key")
		if p.acceptOp("=") {
			if p.cur().Kind != String {
				p.quoteHint("a value in quotes")
			}
			s.Value = p.anyString()
		}
	case p.cur().Kind == Word:
		p.quoteHint("a key in quotes")
	}
	s.Loc = p.from(start)
	return s
}

// quoteHint reports a bare word or number where a string is wanted. It spans the dotted word.
func (p *parser) quoteHint(what string) {
	start := p.pos
	t := p.cur()
	if t.Kind != Word && t.Kind != Number {
		p.unexpected(what)
	}
	p.advance()
	for p.pos < len(p.tokens) && p.cur().Trivia == p.cur().Start && (p.isOp(".") || p.isOp("-") || p.cur().Kind == Word || p.cur().Kind == Number) {
		p.advance()
	}
	span := p.from(start).Src
	p.fail(diag.Errorf(diag.CodeSyntaxError, span, "expected %s but found %q", what, clip(span.Text())).
		WithHelp("write '%s'", clip(span.Text())))
}

func (p *parser) insert() *Insert {
	start := p.pos
	p.expect("INSERT")
	ins := &Insert{}
	if ins.Overwrite = p.accept("OVERWRITE"); !ins.Overwrite {
		p.expect("INTO")
	}
	p.accept("TABLE")
	ins.Target = p.name("a table")
	ins.Hints = p.hints()
	if p.accept("PARTITION") {
		ins.Partition = p.partitionValues()
	}
	if p.isOp("(") && !p.queryInParens(p.pos) {
		ins.Columns = p.identList("a column")
	}
	ins.Query = p.query()
	ins.Loc = p.from(start)
	return ins
}

func (p *parser) partitionValues() []*PartitionValue {
	p.expectOp("(")
	var list []*PartitionValue
	p.commaList(func() {
		start := p.pos
		v := &PartitionValue{Column: p.ident("a partition column")}
		if p.acceptOp("=") {
			v.Value = p.expr()
		}
		v.Loc = p.from(start)
		list = append(list, v)
	})
	p.expectOp(")")
	return list
}

// statementSet parses the inserts and END, after BEGIN.
func (p *parser) statementSet(start int) Stmt {
	s := &StatementSet{}
	before := len(p.errs)
	for _, st := range p.block("END") {
		switch st := st.(type) {
		case *Insert:
			s.Inserts = append(s.Inserts, st)
		case *BadStmt:
		default:
			p.errs.Errorf(diag.CodeSyntaxError, st.Span(), "only INSERT can stand in a statement set")
		}
	}
	p.expect("END")
	s.Loc = p.from(start)
	if len(s.Inserts) == 0 && !p.errs[before:].HasErrors() {
		p.errs.Errorf(diag.CodeSyntaxError, s.Src, "statement set without an INSERT")
	}
	return s
}

func (p *parser) explain(start int) Stmt {
	e := &Explain{}
	switch {
	case p.accept("PLAN"):
		p.expect("FOR")
	case p.accept("PLACEMENT"):
		e.Placement = true
		if p.isOp(";") || p.cur().Kind == EOF {
			e.Loc = p.from(start)
			return e
		}
	default:
		p.explainDetails(e)
	}
	at := p.pos
	e.Stmt = p.stmt()
	switch s := e.Stmt.(type) {
	case *QueryStmt, *Insert, *StatementSet, *CreateWideTable, *ForEach:
	case *CreateTable:
		if s.As == nil {
			p.errs.Errorf(diag.CodeSyntaxError, s.Src, "only CREATE TABLE ... AS can be explained")
		}
	default:
		p.errs.Errorf(diag.CodeSyntaxError, p.from(at).Src, "EXPLAIN takes a query, an INSERT or a statement set")
	}
	p.declares = nil
	e.Loc = p.from(start)
	return e
}

func (p *parser) explainDetails(e *Explain) {
	details := []string{"ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE"}
	w := p.acceptOne(details...)
	for w != "" {
		e.Details = append(e.Details, ExplainDetail(slices.Index(details, w)))
		if !p.acceptOp(",") {
			return
		}
		if w = p.acceptOne(details...); w == "" {
			p.unexpected("a detail")
		}
	}
}

func (p *parser) stopJob(start int) Stmt {
	p.expect("JOB")
	s := &StopJob{ID: p.stringLit("the job's id in quotes")}
	for p.accept("WITH") {
		switch p.acceptOne("SAVEPOINT", "DRAIN") {
		case "SAVEPOINT":
			s.Savepoint = true
		case "DRAIN":
			s.Drain = true
		default:
			p.unexpected("\"SAVEPOINT\" or \"DRAIN\"")
		}
	}
	s.Loc = p.from(start)
	return s
}

// forEach parses FOR EACH TABLE v IN (SHOW TABLES ...) BEGIN ... END FOR, after FOR.
func (p *parser) forEach(start int) Stmt {
	p.expect("EACH", "TABLE")
	f := &ForEach{Var: p.ident("a variable")}
	if !isVarName(f.Var.Name) {
		p.errs.Errorf(diag.CodeBadVariable, f.Var.Src, "%q cannot be a variable", f.Var.Name).
			WithHelp("take letters, digits and _ only, so that ${...} can name it")
	}
	p.expect("IN")
	p.expectOp("(")
	f.Set = p.show()
	if f.Set.Kind != ShowTables {
		p.errs.Errorf(diag.CodeSyntaxError, f.Set.Src, "FOR EACH TABLE takes SHOW TABLES")
	}
	p.expectOp(")")
	p.expect("BEGIN")
	begin := len(p.errs)
	f.Body = p.block("END")
	for _, s := range f.Body {
		switch s.(type) {
		case *CreateTable, *Insert, *BadStmt:
		default:
			p.errs.Errorf(diag.CodeNotInLoop, s.Span(), "only CREATE TABLE and INSERT can stand in FOR EACH")
		}
	}
	if !p.is("END", "FOR") {
		if p.accept("END") {
			p.unexpected(fmt.Sprintf("%q after \"END\"", "FOR"))
		}
		p.unexpected("\"END FOR\"")
	}
	p.pos += 2
	f.Loc = p.from(start)
	if len(f.Body) == 0 && !p.errs[begin:].HasErrors() {
		p.errs.Errorf(diag.CodeSyntaxError, f.Src, "FOR EACH without a statement")
	}
	return f
}
