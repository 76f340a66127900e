package plan

import (
	"strings"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// relation is one item of FROM that names can refer to.
type relation struct {
	name string // alias or table name; "" for none
	cols []Column
}

// scope is what names of a SELECT can refer to.
type scope struct {
	rels []relation
	// merged are the columns of USING and NATURAL.
	merged []mergedColumn
	// outer is what a sub-query sees beyond its own FROM.
	outer *scope
	// broken: a part of FROM could not be bound, so unknown names are not
	// reported.
	broken bool
	// ctes are those in force, innermost last.
	ctes []*cte
	// aliases are output names, for hints alone.
	aliases []string
	// around is the FROM of which this sees a part or nothing, for messages alone.
	around *scope
}

// part sees, of a FROM, the relations and the merged columns from one to, not including,
// another.
func (s *scope) part(from, to, mergedFrom, mergedTo int) *scope {
	return &scope{rels: s.rels[from:to], merged: s.merged[mergedFrom:mergedTo], broken: s.broken, ctes: s.ctes, outer: s.outer, around: s}
}

// mergedColumn is one column for the equal ones of both sides of a join.
type mergedColumn struct {
	name string
	col  Column
	// hides are the ids of those, which a bare name no longer means.
	hides map[int]bool
}

// visible are the columns that * gives: merged ones first.
func (s *scope) visible() []Column {
	var out []Column
	for _, m := range s.merged {
		out = append(out, m.col)
	}
	for _, c := range s.columns() {
		if !s.hidden(c.ID) {
			out = append(out, c)
		}
	}
	return out
}

func (s *scope) hidden(id int) bool {
	for i := range s.merged {
		if s.merged[i].hides[id] {
			return true
		}
	}
	return false
}

// has reports whether a name may mean something here.
func (s *scope) has(ref *syntax.ColumnRef) bool {
	if len(ref.Parts) > 1 {
		if r, ok := s.relation(ref.Parts[0].Name); ok {
			for i := range r.cols {
				if r.cols[i].Name == ref.Parts[1].Name {
					return true
				}
			}
		}
	}
	found, _ := s.find(ref.Parts[0].Name)
	return len(found) > 0
}

// outerColumns are the columns of all scopes around this one.
func (s *scope) outerColumns() []Column {
	var out []Column
	for o := s; o != nil; o = o.outer {
		out = append(out, o.columns()...)
		for _, m := range o.merged {
			out = append(out, m.col)
		}
	}
	return out
}

type cte struct {
	def   *syntax.CTE
	outer []*cte
}

func findCTE(ctes []*cte, name string) *cte {
	for i := len(ctes) - 1; i >= 0; i-- {
		if ctes[i].def.Name.Name == name {
			return ctes[i]
		}
	}
	return nil
}

// columns are all columns of the scope.
func (s *scope) columns() []Column {
	var out []Column
	for _, r := range s.rels {
		out = append(out, r.cols...)
	}
	return out
}

func (s *scope) names() []string {
	var out []string
	for _, c := range s.columns() {
		out = append(out, c.Name)
	}
	return out
}

// relation finds an item of FROM by name.
func (s *scope) relation(name string) (*relation, bool) {
	for i := range s.rels {
		if s.rels[i].name == name {
			return &s.rels[i], true
		}
	}
	return nil, false
}

// isTable reports a name of a relation.
func (s *scope) isTable(n *syntax.Name) bool {
	_, ok := s.relation(n.Last().Name)
	return ok
}

// find looks a column up in all relations.
func (s *scope) find(name string) (found []*Column, in []string) {
	for i := range s.merged {
		if s.merged[i].name == name {
			found, in = append(found, &s.merged[i].col), append(in, "")
		}
	}
	for i := range s.rels {
		for j := range s.rels[i].cols {
			if s.rels[i].cols[j].Name == name && !s.hidden(s.rels[i].cols[j].ID) {
				found = append(found, &s.rels[i].cols[j])
				in = append(in, s.rels[i].name)
			}
		}
	}
	return found, in
}

// where names the place a column was looked for in.
func (s *scope) where() string {
	var names []string
	for _, r := range s.rels {
		if r.name != "" {
			names = append(names, `"`+r.name+`"`)
		}
	}
	switch len(names) {
	case 0:
		return "the query's input"
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// resolve splits a path into a column and the fields after it. It reports
// what it does not find; ok is false then.
func (s *scope) resolve(b *Binder, ref *syntax.ColumnRef) (c *Column, fields []*syntax.Ident, ok bool) {
	parts := ref.Parts
	if s.outer != nil && !s.has(ref) {
		for o := s.outer; o != nil; o = o.outer {
			if o.has(ref) {
				return o.resolve(b, ref)
			}
		}
	}
	if len(parts) > 1 {
		if r, is := s.relation(parts[0].Name); is {
			for i := range r.cols {
				if r.cols[i].Name == parts[1].Name {
					return &r.cols[i], parts[2:], true
				}
			}
			if found, _ := s.find(parts[0].Name); len(found) == 0 {
				var names []string
				for _, c := range r.cols {
					names = append(names, c.Name)
				}
				if !s.broken {
					b.errorf(diag.CodeUnknownColumn, parts[1].Span(), "column %q not found in %q", parts[1].Name, r.name).
						WithNearest(parts[1].Name, names)
				}
				return nil, nil, false
			}
		}
	}
	name := parts[0].Name
	found, in := s.find(name)
	switch {
	case len(found) == 1:
		return found[0], parts[1:], true
	case len(found) > 1:
		d := b.errorf(diag.CodeAmbiguousColumn, parts[0].Span(), "column %q is ambiguous", name)
		for _, r := range in {
			if r != "" {
				d.WithHelp("write %s.%s", r, name)
			}
		}
		return nil, nil, false
	case s.broken:
		return nil, nil, false
	}
	if s.unseen(b, ref) {
		return nil, nil, false
	}
	if len(s.rels) == 0 {
		d := b.errorf(diag.CodeUnknownColumn, ref.Span(), "column %q: there is no FROM", name)
		if parts[0].Quoted {
			d.WithHelp("text is written in single quotes: '%s'", name)
		}
		return nil, nil, false
	}
	d := b.errorf(diag.CodeUnknownColumn, parts[0].Span(), "column %q not found in %s", name, s.where())
	for _, a := range s.aliases {
		if a == name {
			return nil, nil, d.WithHelp("%q is an alias of this SELECT; repeat its expression here", name) == nil
		}
	}
	candidates := s.names()
	if len(parts) > 1 {
		for _, r := range s.rels {
			candidates = append(candidates, r.name)
		}
	}
	d.WithNearest(name, candidates)
	return nil, nil, false
}

// unseen reports a name that FROM has, but not where this part of it sees it. A JOIN
// binds tighter than a comma, as in Flink: its conditions, and what is made of its
// rows, see its own tables.
func (s *scope) unseen(b *Binder, ref *syntax.ColumnRef) bool {
	if s.around == nil {
		return false
	}
	var names []string
	for _, p := range ref.Parts {
		names = append(names, p.Name)
	}
	name, full := names[0], strings.Join(names, ".")
	_, there := s.around.relation(name)
	there = there && len(ref.Parts) > 1 || s.around.has(ref)
	switch {
	case len(s.rels) > 0 && there:
		b.errorf(diag.CodeUnknownColumn, ref.Span(), "%q is not seen here: a JOIN sees its own tables alone, %s, and none before the comma", full, s.where()).
			WithHelp("write CROSS JOIN for the comma, or a comma for this JOIN")
	case len(s.rels) > 0:
		return false
	case there:
		b.errorf(diag.CodeUnknownColumn, ref.Span(), "%q is not seen here: without LATERAL a table function sees no columns", full).
			WithHelp("FROM t, LATERAL TABLE(...) AS x")
	default:
		b.errorf(diag.CodeUnknownColumn, ref.Span(), "column %q: no table stands on the left", name).
			WithHelp("UNNEST and LATERAL TABLE(...) see the tables on their left: write them behind")
	}
	return true
}
