package flinktest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// Clauses of queries, in the order of the tables.
const (
	clauseWhere     = "WHERE"
	clauseGroupBy   = "GROUP BY"
	clauseHaving    = "HAVING"
	clauseDistinct  = "DISTINCT"
	clauseWindow    = "TUMBLE"
	clauseOver      = "OVER"
	clauseOrderBy   = "ORDER BY"
	clauseLimit     = "LIMIT"
	clauseUnion     = "UNION"
	clauseUnionAll  = "UNION ALL"
	clauseIntersect = "INTERSECT"
	clauseExcept    = "EXCEPT"
	clauseJoin      = "JOIN"
	clauseIn        = "IN"
	clauseExists    = "EXISTS"
	clauseWith      = "WITH"
	clauseUnnest    = "UNNEST"
)

var clauses = []string{clauseWhere, clauseGroupBy, clauseHaving, clauseDistinct, clauseWindow, clauseOver, clauseOrderBy, clauseLimit, clauseUnion, clauseUnionAll,
	clauseIntersect, clauseExcept, clauseJoin, clauseIn, clauseExists, clauseWith, clauseUnnest}

// clausesOf are the clauses that a query has, in any of its blocks.
func clausesOf(t *testing.T, sql string) map[string]bool {
	t.Helper()
	script, ds := syntax.Parse(diag.NewFile("query", sql), syntax.Options{})
	if ds.HasErrors() {
		return nil
	}
	out := map[string]bool{}
	note := func(clause string, there bool) {
		if there {
			out[clause] = true
		}
	}
	for _, st := range script.Stmts {
		syntax.Walk(st, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Query:
				note(clauseWith, len(n.With) > 0)
				note(clauseOrderBy, len(n.OrderBy) > 0)
				note(clauseLimit, n.Limit != nil)
			case *syntax.Select:
				note(clauseWhere, n.Where != nil)
				note(clauseGroupBy, n.GroupBy != nil)
				note(clauseHaving, n.Having != nil)
				note(clauseDistinct, n.Distinct)
			case *syntax.SetOp:
				note([]string{clauseUnion, clauseIntersect, clauseExcept}[n.Kind], n.Kind != syntax.Union || !n.All)
				note(clauseUnionAll, n.Kind == syntax.Union && n.All)
			case *syntax.TableFunc:
				note(clauseWindow, true)
			case *syntax.Unnest:
				note(clauseUnnest, true)
			case *syntax.Join:
				_, unnest := n.Right.(*syntax.Unnest)
				note(clauseJoin, !unnest)
			case *syntax.Call:
				note(clauseOver, n.Over != nil)
			case *syntax.In:
				note(clauseIn, n.Query != nil)
			case *syntax.Exists:
				note(clauseExists, true)
			}
			return true
		})
	}
	return out
}

// verdicts counts the cases of a cell by how the answers compare.
type verdicts struct{ same, bothRefuse, refusedHere, deviation, known int }

func (v *verdicts) add(o *outcome) {
	switch {
	case o.differs == "" && o.ours.fault != "":
		v.bothRefuse++
	case o.differs == "":
		v.same++
	case o.flinks.fault == "" && o.ours.fault != "":
		v.refusedHere++
	case strings.HasPrefix(o.cause, known):
		v.known++
	default:
		v.deviation++
	}
}

// cell is "" without a case.
func (v *verdicts) cell() string {
	var parts []string
	for _, c := range []struct {
		n    int
		sign string
	}{{v.same, ""}, {v.bothRefuse, "r"}, {v.refusedHere, "n"}, {v.deviation, "d"}, {v.known, "k"}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprint(c.n)+c.sign)
		}
	}
	return strings.Join(parts, " ")
}

const cellLegend = "A number is of cases with the same answer. *r*: both refuse. *n*: Flink has an answer, Millrace refuses by name. *d*: a deviation. *k*: a known difference.\n\n"

// modes are the columns of what is asked twice.
var modes = []string{"batch", "streaming"}

func modeOf(o *outcome) string {
	if o.streaming {
		return modes[1]
	}
	return modes[0]
}

// clausePairs are the tables of which clauses stand in a query together, with the
// pairs that no case has.
func clausePairs(t *testing.T, all []*outcome) (page string, missing []string) {
	t.Helper()
	type pair struct{ mode, a, b string }
	cells := map[pair]*verdicts{}
	for _, o := range all {
		if o.expr {
			continue
		}
		there := clausesOf(t, o.query)
		for _, a := range clauses {
			for _, b := range clauses {
				if !there[a] || !there[b] {
					continue
				}
				k := pair{modeOf(o), a, b}
				if cells[k] == nil {
					cells[k] = &verdicts{}
				}
				cells[k].add(o)
			}
		}
	}
	var out strings.Builder
	for _, mode := range modes {
		fmt.Fprintf(&out, "\n| %s |", mode)
		for _, b := range clauses {
			fmt.Fprintf(&out, " %s |", b)
		}
		out.WriteString("\n|---|" + strings.Repeat("---|", len(clauses)) + "\n")
		for i, a := range clauses {
			fmt.Fprintf(&out, "| %s |", a)
			for k, b := range clauses {
				cell := ""
				if k >= i {
					if v := cells[pair{mode, a, b}]; v != nil {
						cell = v.cell()
					} else {
						missing = append(missing, mode+": "+a+" with "+b)
					}
				}
				fmt.Fprintf(&out, " %s |", cell)
			}
			out.WriteString("\n")
		}
	}
	return out.String(), missing
}
