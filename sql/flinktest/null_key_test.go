package flinktest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/graph"
)

// keyedOperator is an operator of which the tests have cases with NULL among its keys.
type keyedOperator struct {
	name string
	// made reports an operator of the graph that it becomes.
	made func(op graph.Op) bool
	// without are the modes that have none, by why.
	without map[string]string
}

func joinOf(kinds ...graph.JoinKind) func(graph.Op) bool {
	return func(op graph.Op) bool {
		j, ok := op.(*graph.Join)
		return ok && slices.Contains(kinds, j.Kind)
	}
}

func joinThat(f func(*graph.Join) bool) func(graph.Op) bool {
	return func(op graph.Op) bool {
		j, ok := op.(*graph.Join)
		return ok && f(j)
	}
}

func is[T graph.Op](op graph.Op) bool { _, ok := op.(T); return ok }

func either(fs ...func(graph.Op) bool) func(graph.Op) bool {
	return func(op graph.Op) bool {
		return slices.ContainsFunc(fs, func(f func(graph.Op) bool) bool { return f(op) })
	}
}

func windowOf(kind graph.WindowKind) func(graph.Op) bool {
	return func(op graph.Op) bool {
		switch op := op.(type) {
		case *graph.WindowAggregate:
			return op.Window.Kind == kind
		case *graph.WindowAssign:
			return op.Window.Kind == kind
		}
		return false
	}
}

func keyedOperators() []keyedOperator {
	group := is[*graph.GroupAggregate]
	rank := either(is[*graph.Rank], is[*graph.FirstRow])
	exists := joinOf(graph.SemiJoin, graph.AntiJoin, graph.MarkJoin)
	windowJoin := joinThat(func(j *graph.Join) bool { return j.Windows != nil || j.Kind >= graph.SemiJoin || len(j.Keys) > 1 })
	sets := either(is[*graph.SetOperation], group)
	sorts := either(is[*graph.Sort], is[*graph.Rank])
	return []keyedOperator{
		{"GROUP BY", group, nil},
		{"GROUPING SETS", group, nil},
		{"DISTINCT aggregate", group, nil},
		{"DISTINCT", group, nil},
		{"inner join", joinOf(graph.InnerJoin), nil},
		{"inner join IS NOT DISTINCT FROM", joinOf(graph.InnerJoin), nil},
		{"inner join of other conditions", joinOf(graph.InnerJoin), nil},
		{"left join", joinOf(graph.LeftJoin), nil},
		{"right join", joinOf(graph.RightJoin), nil},
		{"full join", joinOf(graph.FullJoin), nil},
		{"IN", exists, nil},
		{"NOT IN", exists, nil},
		{"EXISTS", exists, nil},
		{"NOT EXISTS", exists, nil},
		{"scalar sub-query", joinOf(graph.SingleJoin, graph.LeftJoin), nil},
		{"UNION", group, nil},
		{"UNION ALL", is[*graph.Union], nil},
		{"INTERSECT", sets, nil},
		{"INTERSECT ALL", is[*graph.SetOperation], nil},
		{"EXCEPT", sets, nil},
		{"EXCEPT ALL", is[*graph.SetOperation], nil},
		{"OVER", is[*graph.Over], nil},
		{"first row of each key", rank, nil},
		{"last row of each key", rank, nil},
		{"Top-N", rank, nil},
		{"window TUMBLE", windowOf(graph.Tumble), nil},
		{"window HOP", windowOf(graph.Hop), nil},
		{"window CUMULATE", windowOf(graph.Cumulate), nil},
		{"window SESSION", windowOf(graph.Session), nil},
		{"group window", either(windowOf(graph.Tumble), windowOf(graph.Session)), nil},
		{"window Top-N", rank, nil},
		{"window join", windowJoin, nil},
		{"window semi-join", windowJoin, nil},
		{"window anti-join", windowJoin, nil},
		{"interval join", joinThat(func(*graph.Join) bool { return true }), nil},
		{"temporal join", joinThat(func(j *graph.Join) bool { return j.Temporal != nil }), nil},
		{"ORDER BY", sorts, nil},
		{"ORDER BY with LIMIT", sorts, nil},
		{"MATCH_RECOGNIZE", func(graph.Op) bool { return false }, nil},
	}
}

// nullKeys is the table of operators with a NULL key, with the cells that no case has
// and the cases that have not the operator they name.
func nullKeys(all []*outcome) (page string, wrong []string) {
	type place struct{ mode, operator string }
	cells, known := map[place]*verdicts{}, map[string]bool{}
	operators := keyedOperators()
	for i := range operators {
		known[operators[i].name] = true
		for _, mode := range modes {
			cells[place{mode, operators[i].name}] = &verdicts{}
		}
	}
	for _, o := range all {
		if o.nullKey == "" {
			continue
		}
		if !known[o.nullKey] {
			wrong = append(wrong, "there is no operator "+o.nullKey+": "+o.query)
			continue
		}
		at := slices.IndexFunc(operators, func(k keyedOperator) bool { return k.name == o.nullKey })
		if o.ours.fault == "" && !slices.ContainsFunc(o.ours.ops, operators[at].made) {
			wrong = append(wrong, o.suite+": the plan has no "+o.nullKey+": "+o.query)
		}
		cells[place{modeOf(o), o.nullKey}].add(o)
	}
	var b strings.Builder
	b.WriteString("| operator | batch | streaming |\n|---|---|---|\n")
	for i := range operators {
		fmt.Fprintf(&b, "| %s |", operators[i].name)
		for _, mode := range modes {
			cell := cells[place{mode, operators[i].name}].cell()
			if cell == "" {
				if cell = operators[i].without[mode]; cell == "" {
					wrong = append(wrong, mode+": no case of "+operators[i].name+" with a NULL key")
				}
			}
			fmt.Fprintf(&b, " %s |", cell)
		}
		b.WriteString("\n")
	}
	return b.String(), wrong
}

// TestTablesNameWhatIsMissing takes cases away.
func TestTablesNameWhatIsMissing(t *testing.T) {
	var all []*outcome
	for _, s := range suites(t) {
		for _, q := range s.queries {
			all = append(all, &outcome{suite: s.name, query: q, expr: s.exprs, streaming: s.streaming(), nullKey: s.nullKeys[q],
				ours: &answer{fault: "not run"}, flinks: &answer{fault: "not run"}})
		}
	}
	if _, missing := clausePairs(t, all); len(missing) > 0 {
		t.Fatal(missing)
	}
	if _, wrong := nullKeys(all); len(wrong) > 0 {
		t.Fatal(wrong)
	}
	without := slices.DeleteFunc(slices.Clone(all), func(o *outcome) bool {
		return strings.Contains(o.query, "INTERSECT") && strings.Contains(o.query, "UNNEST") || o.nullKey == "full join"
	})
	if _, missing := clausePairs(t, without); !slices.Equal(missing, []string{"batch: INTERSECT with UNNEST", "streaming: INTERSECT with UNNEST"}) {
		t.Error(missing)
	}
	if _, wrong := nullKeys(without); !slices.Equal(wrong, []string{"batch: no case of full join with a NULL key", "streaming: no case of full join with a NULL key"}) {
		t.Error(wrong)
	}
}
