package syntax

import (
	"math/rand/v2"
	"testing"
)

// exprGen makes random expression trees, to show that the printer puts brackets exactly where the parser
// needs them.
type exprGen struct{ *rand.Rand }

func (g exprGen) expr(depth int) Expr {
	if depth == 0 {
		return g.leaf()
	}
	sub := func() Expr { return g.expr(g.IntN(depth)) }
	flip := func() bool { return g.IntN(2) == 0 }
	query := func() *Query {
		return &Query{Body: &Select{Items: []SelectItem{&SelectExpr{Expr: sub()}}}}
	}
	switch g.IntN(24) {
	case 0, 1, 2, 3, 4, 5, 6:
		return &Binary{Op: BinaryOp(g.IntN(int(OpMod) + 1)), Left: sub(), Right: sub()}
	case 7, 8:
		return &Unary{Op: UnaryOp(g.IntN(3)), Expr: sub()}
	case 9, 10:
		return &Is{Expr: sub(), Not: flip(), Kind: IsKind(g.IntN(int(IsJSONScalar) + 1))}
	case 11, 12:
		return &IsDistinct{Left: sub(), Right: sub(), Not: flip()}
	case 13:
		return &Between{Expr: sub(), Low: sub(), High: sub(), Not: flip(), Symmetric: flip()}
	case 14:
		return &In{Expr: sub(), Not: flip(), List: []Expr{g.leaf(), sub()}}
	case 15:
		return &In{Expr: sub(), Not: flip(), Query: query()}
	case 16:
		l := &LikeExpr{Kind: LikeKind(g.IntN(2)), Expr: sub(), Not: flip(), Pattern: sub()}
		if flip() {
			l.Escape = sub()
		}
		return l
	case 17:
		return &Quantified{Left: sub(), Op: BinaryOp(int(OpEq) + g.IntN(6)), All: flip(), Query: query()}
	case 18:
		return &Index{Base: sub(), Key: sub()}
	case 19:
		return &FieldAccess{Base: sub(), Field: &Ident{Name: "f"}}
	case 20:
		return &Case{Operand: sub(), Whens: []*When{{Cond: sub(), Result: sub()}}, Else: sub()}
	case 21:
		return &RowExpr{Items: []Expr{sub(), sub()}}
	case 22:
		return &Position{Needle: sub(), In: sub(), From: sub()}
	}
	return &Call{Name: &Name{Parts: []*Ident{{Name: "f"}}}, Args: []Expr{sub()}, Over: &WindowSpec{
		PartitionBy: []Expr{sub()}, OrderBy: []*OrderItem{{Expr: sub(), Desc: flip()}},
		Frame: &Frame{Start: &FrameBound{Kind: Preceding, Offset: sub()}, End: &FrameBound{Kind: Following, Offset: sub()}},
	}}
}

func (g exprGen) leaf() Expr {
	switch g.IntN(7) {
	case 0:
		return &NumberLit{Text: "1"}
	case 1:
		return &StringLit{Value: "it's ${x}"}
	case 2:
		return &BoolLit{Value: true}
	case 3:
		return &NullLit{}
	case 4:
		return &IntervalLit{Value: &StringLit{Value: "1"}, Qualifier: &IntervalQualifier{From: UnitDay, To: UnitHour, Precision: NoPrecision, FracPrecision: NoPrecision}}
	case 5:
		return &Call{Name: &Name{Parts: []*Ident{{Name: "CURRENT_DATE"}}}, NoParens: true}
	}
	return &ColumnRef{Parts: []*Ident{{Name: []string{"a", "order", "b c", "地区"}[g.IntN(4)]}}}
}

func TestRandomExpressionsRoundTrip(t *testing.T) {
	for seed := range uint64(4000) {
		g := exprGen{rand.New(rand.NewPCG(seed, 1))}
		e := g.expr(1 + g.IntN(5))
		text := Print(e)
		again := mustParseExpr(t, text)
		if a, b := shape(e), shape(again); a != b {
			t.Fatalf("seed %d: %s\nmade:   %s\nparsed: %s", seed, text, a, b)
		}
	}
}
