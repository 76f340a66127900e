package syntax

import (
	"encoding/hex"
	"strings"
)

// precOf returns how tightly an expression holds together; 100 for those that need no brackets anywhere.
func precOf(e Expr) int {
	switch e := e.(type) {
	case *Binary:
		return binaryPrec[e.Op]
	case *Unary:
		if e.Op == OpNot {
			return precNot
		}
		return precUnary
	case *Is:
		return precIs
	case *IsDistinct:
		return precIs // the loosest that is always right
	case *Between, *In, *LikeExpr:
		return precLike
	case *Quantified:
		return precCompare
	}
	return 100
}

var binaryPrec = [...]int{
	OpOr: precOr, OpAnd: precAnd, OpEq: precCompare, OpNe: precCompare, OpLt: precCompare, OpLe: precCompare,
	OpGt: precCompare, OpGe: precCompare, OpAdd: precAdd, OpSub: precAdd, OpConcat: precMul, OpMul: precMul,
	OpDiv: precMul, OpMod: precMul, OpOverlaps: precCompare,
}

var binarySigns = [...]string{
	OpOr: "OR", OpAnd: "AND", OpEq: "=", OpNe: "<>", OpLt: "<", OpLe: "<=", OpGt: ">", OpGe: ">=", OpAdd: "+",
	OpSub: "-", OpConcat: "||", OpMul: "*", OpDiv: "/", OpMod: "%", OpOverlaps: "OVERLAPS",
}

// String spells the operator.
func (op BinaryOp) String() string { return binarySigns[op] }

func (p *printer) exprs(list []Expr) {
	p.w("(")
	join(p, list, func(e Expr) { p.expr(e, 0) })
	p.w(")")
}

// expr writes an expression, in brackets if it binds looser than min.
func (p *printer) expr(e Expr, min int) {
	if precOf(e) < min {
		p.w("(")
		defer p.w(")")
	}
	switch e := e.(type) {
	case *Binary:
		prec := binaryPrec[e.Op]
		p.expr(e.Left, prec)
		p.w(" ", e.Op.String(), " ")
		p.expr(e.Right, prec+1)
	case *Unary:
		p.unary(e)
	case *Is:
		p.expr(e.Expr, precIs)
		p.w(" IS ")
		p.wIf(e.Not, "NOT ")
		p.w([...]string{"NULL", "TRUE", "FALSE", "UNKNOWN", "JSON", "JSON OBJECT", "JSON ARRAY", "JSON SCALAR"}[e.Kind])
	case *IsDistinct:
		p.expr(e.Left, precAdd)
		p.w(" IS ")
		p.wIf(e.Not, "NOT ")
		p.w("DISTINCT FROM ")
		p.expr(e.Right, precAdd)
	case *Between:
		p.expr(e.Expr, precLike)
		p.wIf(e.Not, " NOT")
		p.w(" BETWEEN ")
		p.wIf(e.Symmetric, "SYMMETRIC ")
		p.expr(e.Low, precLike+1)
		p.w(" AND ")
		p.expr(e.High, precLike+1)
	case *In:
		p.expr(e.Expr, precLike)
		p.wIf(e.Not, " NOT")
		p.w(" IN ")
		if e.Query != nil {
			p.inlineQuery(e.Query)
		} else {
			p.exprs(e.List)
		}
	case *LikeExpr:
		p.expr(e.Expr, precLike)
		p.wIf(e.Not, " NOT")
		p.w([...]string{" LIKE ", " SIMILAR TO "}[e.Kind])
		p.expr(e.Pattern, precLike+1)
		if e.Escape != nil {
			p.w(" ESCAPE ")
			p.expr(e.Escape, precLike+1)
		}
	case *Quantified:
		p.expr(e.Left, precCompare)
		p.w(" ", e.Op.String())
		if e.All {
			p.w(" ALL ")
		} else {
			p.w(" ANY ")
		}
		p.inlineQuery(e.Query)
	default:
		p.term(e)
	}
}

func (p *printer) unary(e *Unary) {
	switch e.Op {
	case OpNot:
		p.w("NOT ")
		p.expr(e.Expr, precNot)
	case OpNeg, OpPos:
		p.w([...]string{OpNeg: "-", OpPos: "+"}[e.Op])
		if _, ok := e.Expr.(*Unary); ok {
			// -- would start a comment.
			p.w("(")
			defer p.w(")")
		}
		p.expr(e.Expr, precUnary)
	}
}

// inlineQuery writes (query) inside an expression.
func (p *printer) inlineQuery(q *Query) {
	p.w("(")
	p.flat++
	p.query(q)
	p.flat--
	p.w(")")
}

// base writes x of x[k] and x.f.
func (p *printer) base(e Expr) { p.expr(e, 100) }

// term writes what operators combine.
func (p *printer) term(e Expr) {
	switch e := e.(type) {
	case *ColumnRef:
		p.name(&Name{Parts: e.Parts})
	case *FieldAccess:
		switch e.Base.(type) {
		case *ColumnRef, *NumberLit:
			p.w("(")
			p.base(e.Base)
			p.w(")")
		default:
			p.base(e.Base)
		}
		p.w(".")
		p.ident(e.Field)
	case *Index:
		p.base(e.Base)
		p.w("[")
		p.expr(e.Key, 0)
		p.w("]")
	case *NumberLit:
		p.w(e.Text)
	case *StringLit:
		p.str(e)
	case *BinaryLit:
		p.w("X'", strings.ToUpper(hex.EncodeToString(e.Value)), "'")
	case *BoolLit:
		if e.Value {
			p.w("TRUE")
		} else {
			p.w("FALSE")
		}
	case *UnknownLit:
		p.w("UNKNOWN")
	case *NullLit:
		p.w("NULL")
	case *DateTimeLit:
		p.w([...]string{"DATE ", "TIME ", "TIMESTAMP "}[e.Kind])
		p.str(e.Value)
	case *IntervalLit:
		p.w("INTERVAL ")
		p.wIf(e.Negative, "-")
		p.str(e.Value)
		p.w(" ")
		p.qualifier(e.Qualifier)
	case *Exists:
		p.w("EXISTS ")
		p.inlineQuery(e.Query)
	case *Subquery:
		p.inlineQuery(e.Query)
	case *Case:
		p.caseExpr(e)
	case *RowExpr:
		p.wIf(e.Explicit || len(e.Items) < 2, "ROW")
		p.exprs(e.Items)
	case *ArrayExpr:
		p.w("ARRAY[")
		join(p, e.Items, func(e Expr) { p.expr(e, 0) })
		p.w("]")
	case *MapExpr:
		p.w("MAP[")
		join(p, e.Items, func(e Expr) { p.expr(e, 0) })
		p.w("]")
	default:
		p.callLike(e)
	}
}

func (p *printer) caseExpr(e *Case) {
	p.w("CASE")
	if e.Operand != nil {
		p.w(" ")
		p.expr(e.Operand, 0)
	}
	for _, w := range e.Whens {
		p.w(" WHEN ")
		p.expr(w.Cond, 0)
		p.w(" THEN ")
		p.expr(w.Result, 0)
	}
	if e.Else != nil {
		p.w(" ELSE ")
		p.expr(e.Else, 0)
	}
	p.w(" END")
}
