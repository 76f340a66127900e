package syntax

import "github.com/millrace/millrace/sql/diag"

// Node is a part of a syntax tree. Every node knows the text it was made from.
//
// Trees are immutable once the parser has returned them: no package may write to a field of a node that
// it did not make itself. They may be read from any goroutine.
type Node interface {
	// Span returns the source text of the node. For nodes made by hand it may be zero.
	Span() diag.Span
}

// Loc gives a node its place. It is the first field of every node.
type Loc struct {
	Src diag.Span
}

// Span returns the place.
func (l Loc) Span() diag.Span { return l.Src }

// Script is a parsed file: its statements in order. A statement with a syntax error is a *BadStmt.
type Script struct {
	Loc
	Stmts []Stmt
}

// Stmt is a statement.
type Stmt interface {
	Node
	stmt()
}

// Expr is an expression: scalar, Boolean or aggregate alike, untyped.
type Expr interface {
	Node
	expr()
}

// QueryExpr is the body of a query: *Select, *SetOp, *Values, *ExplicitTable or a nested *Query in
// parentheses.
type QueryExpr interface {
	Node
	queryExpr()
}

// TableExpr is what may stand in FROM: *TableRef, *DerivedTable, *TableFunc, *Unnest or *Join.
type TableExpr interface {
	Node
	tableExpr()
}

// Ident is one name: a bare word or a quoted one. Names are case-sensitive.
type Ident struct {
	Loc
	Name   string // variables replaced, quotes and escapes taken off
	Quoted bool   // written in backticks
	Text   *Text  // non-nil if the name holds variables
}

// Name is a possibly qualified name: table, db.table, catalog.db.table or a function's name.
type Name struct {
	Loc
	Parts []*Ident // at least one
}

// Last returns the last part.
func (n *Name) Last() *Ident { return n.Parts[len(n.Parts)-1] }

// String returns the parts joined by dots, unquoted; for messages.
func (n *Name) String() string {
	s := n.Parts[0].Name
	for _, p := range n.Parts[1:] {
		s += "." + p.Name
	}
	return s
}

// Option is 'key' = 'value' of WITH, SET or a hint. Messages about options point at Key or Value.
type Option struct {
	Loc
	Key   *StringLit
	Value *StringLit
}

// Text is the content of a string literal or a quoted name that holds variables.
type Text struct {
	Parts []TextPart
}

// TextPart is a piece of Text: literal characters, or one variable.
type TextPart struct {
	Lit string // if Var is nil
	Var *Var
}

// Var is a placeholder: ${NAME}, ${NAME:-default} or ${secret:NAME}. Its span covers it from $ to }.
//
// A variable whose value is known when the file is read is bound by the lexer. Loop variables (of FOR
// EACH, also in the options of templates) stay unbound until Substitute.
type Var struct {
	Loc
	Name       string
	Secret     bool
	HasDefault bool
	Default    string
	Bound      bool
	Value      string // if Bound
}

// Pending returns the variables that are not bound yet.
func (t *Text) Pending() []*Var {
	if t == nil {
		return nil
	}
	var out []*Var
	for _, p := range t.Parts {
		if p.Var != nil && !p.Var.Bound {
			out = append(out, p.Var)
		}
	}
	return out
}

// HasSecret reports whether one of the variables is a secret.
func (t *Text) HasSecret() bool {
	if t == nil {
		return false
	}
	for _, p := range t.Parts {
		if p.Var != nil && p.Var.Secret {
			return true
		}
	}
	return false
}

// BadStmt stands for a statement that has a syntax error, so that what follows can still be checked.
// Declares names what it would have created, if it got that far, so that a user of that name is not
// reported as well.
type BadStmt struct {
	Loc
	Declares *Name // may be nil
}

func (*BadStmt) stmt() {}
