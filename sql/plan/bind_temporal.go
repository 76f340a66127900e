package plan

import (
	"slices"

	"github.com/millrace/millrace/runtime/expr"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// versioned is a table of which each row is a version of its key from a time on.
type versioned struct {
	node Node
	keys []int // ids
	time int   // id of the row time, -1: none
	// deletes: a row may say that its key has no version any more.
	deletes bool
}

// rowTime finds the column that AS OF names if it is row time, also of rows that
// change; nil, without a word, if it is none.
func (s *scope) rowTime(e syntax.Expr) *Column {
	ref, ok := e.(*syntax.ColumnRef)
	if !ok || len(ref.Parts) > 2 {
		return nil
	}
	var found []*Column
	if len(ref.Parts) == 2 {
		if r, ok := s.relation(ref.Parts[0].Name); ok {
			for i := range r.cols {
				if r.cols[i].Name == ref.Parts[1].Name {
					found = append(found, &r.cols[i])
				}
			}
		}
	} else {
		found, _ = s.find(ref.Parts[0].Name)
	}
	if len(found) != 1 || !found[0].RowTime && found[0].Changing == NoTime {
		return nil
	}
	return found[0]
}

// joinTemporal binds JOIN t FOR SYSTEM_TIME AS OF a row time. The left side is bound,
// ls its scope, which is that of sc from first and firstMerged on.
func (b *Binder) joinTemporal(j *syntax.Join, t *syntax.TableRef, left Node, asOf *Column, ls, sc *scope, first, firstMerged int) Node {
	if ref, ok := t.AsOf.(*syntax.ColumnRef); ok {
		ls.resolve(b, ref) // for the index
	}
	if !b.lookupKind(j) {
		return nil
	}
	mid := len(sc.rels)
	out := b.namedTable(t.Name, sc.ctes)
	if out == nil {
		return nil
	}
	v := b.versions(out, t)
	if v == nil {
		return nil
	}
	out.Node = v.node
	if b.relate(out, t.Name.Last().Name, t.Alias, sc) == nil {
		return nil
	}
	rs := sc.part(mid, len(sc.rels), len(sc.merged), len(sc.merged))
	both := sc.part(first, len(sc.rels), firstMerged, len(sc.merged))
	on, shared, ok := b.joinCondition(j, ls, rs, both)
	if !ok {
		return nil
	}
	n := b.temporal(v, left, asOf, Conjuncts(on), j, t)
	if n == nil {
		return nil
	}
	for i := mid; i < len(sc.rels); i++ {
		sc.rels[i].cols = retyped(sc.rels[i].cols, n.Cols)
	}
	if len(shared) == 0 {
		return n
	}
	return b.mergeColumns(n, n.Kind, shared, sc, firstMerged)
}

// temporal makes the join. Its keys are those of the versions alone; the other
// conditions decide about the version found.
func (b *Binder) temporal(v *versioned, left Node, asOf *Column, conds []expr.Expr, j *syntax.Join, t *syntax.TableRef) *Join {
	right := v.node.Columns()
	keyCols := make([]Column, 0, len(v.keys))
	for _, id := range v.keys {
		c, _ := ColumnByID(right, id)
		keyCols = append(keyCols, *c)
	}
	ls := columnSet(left.Columns())
	var lk, rk, rest []expr.Expr
	var safe []bool
	bound := make([]bool, len(keyCols))
	for _, c := range conds {
		l, r, nullSafe, ok := equality(c)
		if ok && within(r, ls) {
			l, r = r, l
		}
		at := -1
		if ok && within(l, ls) {
			at = lookupColumn(widened(r), keyCols)
		}
		if at < 0 || bound[at] {
			rest = append(rest, c)
			continue
		}
		bound[at] = true
		lk, rk, safe = append(lk, l), append(rk, r), append(safe, nullSafe)
	}
	if at := slices.Index(bound, false); at >= 0 {
		b.errorf(diag.CodeBadKey, j.Op.Span(), "a temporal join needs an equality with each key column of the versioned table, %q is in none", keyCols[at].Name).
			WithNote(t.Name.Span(), "the key of %q is %s", t.Name.Last().Name, columnNames(keyCols)).
			WithHelp("ON o.%[1]s = r.%[1]s; further conditions may stand beside it", keyCols[at].Name)
		return nil
	}
	time, _ := ColumnByID(right, v.time)
	if time.Type.Kind != asOf.Type.Kind {
		b.errorf(diag.CodeTypeMismatch, t.AsOf.Span(), "the row time %q is %s, that of %q is %s", asOf.Name, asOf.Type.WithNullable(true), t.Name.Last().Name, time.Type.WithNullable(true)).
			WithHelp("declare both as TIMESTAMP(3), or both as TIMESTAMP_LTZ(3)")
		return nil
	}
	if c := ChangelogOf(v.node); c.By != nil {
		b.notYet(t.Name.Span(), "a temporal join with versions that change ("+nameOfUpdate(c.By)+")").
			WithHelp("join first, in a sub-query or view, and put it above")
		return nil
	}
	n := &Join{Kind: joinKinds[j.Kind], Left: left, Right: v.node, Condition: conjunction(rest), Span: j.Op.Span(),
		Temporal: &JoinTemporal{LeftTime: asOf.ID, RightTime: v.time, Deletes: v.deletes}}
	return b.keyedJoin(n, lk, rk, safe)
}

// widened takes a cast to a wider integer type off a key: equal keys stay equal, and
// others differ.
func widened(e expr.Expr) expr.Expr {
	if c, ok := e.(*expr.Cast); ok && c.Arg.Type().IsInteger() && c.To.IsInteger() && c.Arg.Type().Kind < c.To.Kind {
		return c.Arg
	}
	return e
}

// versions reads a versioned table: the last row of each key by row time, of which
// each row is a version while it was the last one, the first row of each key, or a
// table with a primary key. nil means that something was reported.
func (b *Binder) versions(out *Output, t *syntax.TableRef) *versioned {
	projects, n := unprojected(out.Node)
	v, by := &versioned{time: -1}, -1
	switch n := n.(type) {
	case *Rank:
		switch {
		case n.Window == nil && n.Latest:
			v.node = b.allRows(n)
		case n.Window == nil && (n.First || b.Batch && earliest(n)):
			v.node = n // it is the one version of its key, for good
		default:
			b.notVersioned(t, "it keeps other rows than the first or the last one of each key by row time")
			return nil
		}
		v.keys, by = n.Keys, n.Order[0].ID
	case *Scan:
		if v.node, v.keys = n, b.versionKey(n, t); v.keys == nil {
			return nil
		}
	case *Normalize:
		// Each record is a version, or says that there is none any more.
		scan := n.Input.(*Scan)
		if v.node, v.keys = scan, b.versionKey(scan, t); v.keys == nil {
			return nil
		}
		by, v.deletes = scan.Time, true
	default:
		b.notVersioned(t, "it is more than the last row of each key")
		return nil
	}
	for i := len(projects) - 1; i >= 0; i-- {
		// Where Rank had no order in time, its row time is row time again.
		below := v.node.Columns()
		p := *projects[i]
		p.Input = v.node
		p.Cols = retyped(p.Cols, below)
		if _, scan := n.(*Scan); scan {
			p.Cols = projects[i].Cols // a computed row time has its mark here
		}
		if _, newest := n.(*Normalize); newest {
			for c := range p.Cols {
				if p.Cols[c].Changing == RowTimes {
					p.Cols[c].RowTime, p.Cols[c].Changing = true, NoTime
				}
			}
		}
		v.node = &p
	}
	cols := v.node.Columns()
	for _, id := range v.keys {
		if _, ok := ColumnByID(cols, id); !ok {
			b.notVersioned(t, "a column of its key is not among its columns")
			return nil
		}
	}
	for i := range cols {
		if cols[i].RowTime && v.time < 0 && (by < 0 || cols[i].ID == by) {
			v.time = cols[i].ID
		}
	}
	if v.time < 0 {
		b.notVersioned(t, "its row time is not among its columns")
		return nil
	}
	return v
}

// earliest reports a Rank of the first row of each key by row time, in batch mode.
func earliest(n *Rank) bool {
	if n.N != 1 || len(n.Order) != 1 || n.Order[0].Desc {
		return false
	}
	c, ok := ColumnByID(n.Input.Columns(), n.Order[0].ID)
	return ok && c.RowTime
}

// versionKey are the ids of the primary key of a table whose rows are versions; nil
// means that something was reported.
func (b *Binder) versionKey(n *Scan, t *syntax.TableRef) []int {
	switch {
	case len(n.Table.PrimaryKey) == 0:
		b.notVersioned(t, "it has no PRIMARY KEY").WithNote(n.Table.Span, "table %q is declared here", n.Table.Name)
		return nil
	case n.Watermark == nil:
		b.notVersioned(t, "it has no WATERMARK").WithNote(n.Table.Span, "table %q is declared here", n.Table.Name)
		return nil
	}
	var keys []int
	for _, k := range n.Table.PrimaryKey {
		i := slices.IndexFunc(n.Cols, func(c Column) bool { return c.Name == k })
		if i < 0 {
			b.notYet(t.Name.Span(), "a versioned table whose primary key is computed")
			return nil
		}
		keys = append(keys, n.Cols[i].ID)
	}
	return keys
}

// allRows is the input of a Rank that keeps the last row, each row as it was when it
// was the last one: with number 1.
func (b *Binder) allRows(n *Rank) Node {
	in := n.Input.Columns()
	p := &Project{Input: n.Input}
	for i := range in {
		p.Exprs, p.Cols = append(p.Exprs, in[i].Ref()), append(p.Cols, in[i])
	}
	if n.Number {
		number := n.Cols[len(n.Cols)-1]
		p.Exprs, p.Cols = append(p.Exprs, expr.Int(rt.NewBigInt().NotNull(), 1)), append(p.Cols, number)
	}
	return p
}

// notVersioned says that a table has no versions, and what has.
func (b *Binder) notVersioned(t *syntax.TableRef, why string) *diag.Diagnostic {
	return b.errorf(diag.CodeRowTime, t.Name.Span(), "%q is not a versioned table: %s", t.Name.Last().Name, why).
		WithHelp("a versioned table is the last row of each key of a stream: CREATE VIEW v AS SELECT k, x, ts FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY ts DESC) AS rn FROM t) WHERE rn = 1").
		WithHelp("or a table with PRIMARY KEY (k) NOT ENFORCED and a WATERMARK, whose rows are the versions").
		WithHelp("for a table as it is when a row is processed, write AS OF a column that is PROCTIME()")
}
