package catalog

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
	sqltypes "github.com/millrace/millrace/sql/types"
)

// Typer gives the type of a computed column or a watermark over a table's
// columns. It reports faults itself; ok is false then.
type Typer interface {
	TypeOf(e syntax.Expr, columns []Column) (t rt.Type, ok bool)
}

// Builder makes tables from DDL.
type Builder struct {
	Catalog  *Catalog
	Registry *connector.Registry
	Typer    Typer
	Diags    *diag.List
	// Star gives the columns of SELECT * FROM a table, for WITH COLUMNS OF, and
	// where the table is declared. It reports faults itself; ok is false then.
	Star func(n *syntax.Name) (columns []Column, declared diag.Span, ok bool)
	// Templates are tables that WITH COLUMNS OF completes: they need no columns of
	// their own beside those that partition.
	Templates map[string]bool
	// Loop is the loop variable in force, which templates leave open.
	Loop Binding
}

// Table makes the table of a CREATE TABLE. It reports every fault it finds;
// ok is false if there is one, and the table is then not usable.
func (b *Builder) Table(s *syntax.CreateTable) (*Table, bool) {
	before := b.Diags.Count(diag.Error)
	t := &Table{Name: s.Name.Last().Name, Span: s.Name.Span(), Declaration: s, Loop: b.Loop}
	if s.Comment != nil {
		t.Comment = s.Comment.Value
	}
	if s.As != nil {
		b.Diags.Errorf(diag.CodeNotYet, s.As.Span(), "CREATE TABLE ... AS is not supported yet here").
			WithHelp("declare the table and write INSERT INTO")
	}
	if s.ColumnsOf != nil && !b.columnsOf(t, s) || !b.likeParts(t, s) {
		return t, false
	}
	checkDuplicates(s.Options, b.Diags)
	t.Options = mergeOptions(t.Options, s.Options, s.Like, b.Diags)
	t.Template = b.isTemplate(t, s)
	b.columns(t, s.Elements)
	b.partitions(t, s.Partitions)
	b.keys(t, s.Elements)
	b.watermark(t, s.Elements)
	b.check(t)
	t.columnsSound = b.Diags.Count(diag.Error) == before
	resolveOptions(t, b.Registry, t.Span, b.Diags)
	b.metadata(t)
	b.afterOptions(t)
	return t, b.Diags.Count(diag.Error) == before
}

// columns adds the declared columns. Computed ones are typed last: they see
// all physical and metadata columns.
func (b *Builder) columns(t *Table, elements []syntax.TableElement) {
	inherited := len(t.Columns)
	for _, e := range elements {
		var c Column
		switch e := e.(type) {
		case *syntax.ColumnDef:
			typ, _ := sqltypes.FromAST(e.Type, b.Diags)
			c = Column{Name: e.Name.Name, Type: typ, Kind: Physical, Comment: text(e.Comment), Span: e.Name.Span()}
		case *syntax.ComputedColumn:
			c = Column{Name: e.Name.Name, Kind: Computed, Expr: e.Expr, Comment: text(e.Comment), Span: e.Name.Span()}
		case *syntax.MetadataColumn:
			typ, _ := sqltypes.FromAST(e.Type, b.Diags)
			c = Column{Name: e.Name.Name, Type: typ, Kind: Metadata, Key: e.Name.Name, Virtual: e.Virtual,
				Comment: text(e.Comment), Span: e.Name.Span()}
			if e.From != nil {
				c.Key = e.From.Value
			}
		default:
			continue
		}
		if old, dup := t.Column(c.Name); dup {
			overwrites := old.Kind != Physical && old.Kind == c.Kind && indexOf(t, c.Name) < inherited
			if !overwrites {
				b.Diags.Errorf(diag.CodeDuplicateColumn, c.Span, "column %q is declared twice", c.Name).
					WithNote(old.Span, "declared here")
				continue
			}
			*old = c
			continue
		}
		t.Columns = append(t.Columns, c)
	}
	b.computed(t)
}

func (b *Builder) computed(t *Table) {
	var base []Column
	for _, c := range t.Columns {
		if c.Kind != Computed {
			base = append(base, c)
		}
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Kind != Computed {
			continue
		}
		before := len(*b.Diags)
		typ, ok := b.Typer.TypeOf(c.Expr, base)
		if !ok {
			b.helpComputed(t, (*b.Diags)[before:])
			typ = rt.NewString()
		} else if typ.Kind == rt.Null {
			b.Diags.Errorf(diag.CodeUntypedNull, c.Expr.Span(), "NULL has no type").
				WithHelp("write CAST(NULL AS <type>)")
			typ = rt.NewString()
		}
		c.Type = typ
	}
}

// helpComputed explains why a computed column is not found in another one.
func (b *Builder) helpComputed(t *Table, faults diag.List) {
	for _, d := range faults {
		if d.Code != diag.CodeUnknownColumn {
			continue
		}
		if c, ok := t.Column(d.Span.Text()); ok && c.Kind == Computed {
			d.Help = []string{"a computed column refers to stored columns only; repeat the expression of " + c.Name}
		}
	}
}

func indexOf(t *Table, name string) int {
	return slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name })
}

func text(s *syntax.StringLit) string {
	if s == nil {
		return ""
	}
	return s.Value
}

func (b *Builder) partitions(t *Table, p *syntax.PartitionClause) {
	if p == nil {
		return
	}
	t.PartitionKeys = nil
	for _, pc := range p.Columns {
		name := pc.Name.Name
		if pc.Type != nil {
			// Hive's spelling: the column is declared in the clause.
			if _, dup := t.Column(name); dup {
				b.Diags.Errorf(diag.CodeDuplicateColumn, pc.Name.Span(), "column %q is declared twice", name)
				continue
			}
			typ, _ := sqltypes.FromAST(pc.Type, b.Diags)
			t.Columns = append(t.Columns, Column{Name: name, Type: typ, Kind: Physical, Span: pc.Name.Span()})
		}
		c, ok := t.Column(name)
		switch {
		case !ok:
			b.Diags.Errorf(diag.CodeUnknownColumn, pc.Name.Span(), "partition column %q is not declared", name).
				WithNearest(name, t.ColumnNames())
			continue
		case c.Kind != Physical:
			b.Diags.Errorf(diag.CodeBadPartition, pc.Name.Span(), "partition column %q is not a physical column", name)
			continue
		case slices.Contains(t.PartitionKeys, name):
			b.Diags.Errorf(diag.CodeBadPartition, pc.Name.Span(), "partition column %q is listed twice", name)
			continue
		case c.Type.IsNested():
			b.Diags.Errorf(diag.CodeBadPartition, pc.Name.Span(), "partition column %q has the type %s; it must be scalar", name, c.Type)
			continue
		}
		t.PartitionKeys = append(t.PartitionKeys, name)
	}
	if !t.Template && len(t.PartitionKeys) > 0 && len(t.PartitionKeys) == physicalCount(t) {
		b.Diags.Errorf(diag.CodeBadPartition, p.Span(), "every column is a partition column; at least one must not be")
	}
}

func physicalCount(t *Table) int {
	n := 0
	for _, c := range t.Columns {
		if c.Kind == Physical {
			n++
		}
	}
	return n
}

func (b *Builder) keys(t *Table, elements []syntax.TableElement) {
	var defs []*syntax.PrimaryKeyDef
	for _, e := range elements {
		switch e := e.(type) {
		case *syntax.PrimaryKeyDef:
			defs = append(defs, e)
		case *syntax.ColumnDef:
			if e.PrimaryKey != nil {
				defs = append(defs, e.PrimaryKey)
			}
		}
	}
	if len(defs) > 1 {
		b.Diags.Errorf(diag.CodeBadKey, defs[1].Span(), "a table has one primary key").
			WithNote(defs[0].Span(), "the first one is here")
	}
	if len(defs) == 0 {
		return
	}
	d := defs[0]
	if !d.NotEnforced {
		b.Diags.Errorf(diag.CodeBadKey, d.Span(), "a primary key is not checked here").
			WithHelp("write PRIMARY KEY (...) NOT ENFORCED")
	}
	if len(t.PrimaryKey) > 0 {
		b.Diags.Errorf(diag.CodeBadKey, d.Span(), "the table gets a primary key from LIKE as well").
			WithHelp("add EXCLUDING CONSTRAINTS")
		return
	}
	for _, id := range d.Columns {
		c, ok := t.Column(id.Name)
		switch {
		case !ok:
			b.Diags.Errorf(diag.CodeUnknownColumn, id.Span(), "key column %q is not declared", id.Name).
				WithNearest(id.Name, t.ColumnNames())
			continue
		case c.Kind != Physical:
			b.Diags.Errorf(diag.CodeBadKey, id.Span(), "key column %q is not a physical column", id.Name)
			continue
		case slices.Contains(t.PrimaryKey, id.Name):
			b.Diags.Errorf(diag.CodeBadKey, id.Span(), "key column %q is listed twice", id.Name)
			continue
		}
		c.Type = c.Type.NotNull() // as in Flink
		t.PrimaryKey = append(t.PrimaryKey, id.Name)
	}
}

func (b *Builder) watermark(t *Table, elements []syntax.TableElement) {
	var own *syntax.WatermarkDef
	for _, e := range elements {
		if w, ok := e.(*syntax.WatermarkDef); ok {
			if own != nil {
				b.Diags.Errorf(diag.CodeBadWatermark, w.Span(), "a table has one WATERMARK").
					WithNote(own.Span(), "the first one is here")
				continue
			}
			own = w
		}
	}
	if own == nil {
		return
	}
	if t.Watermark != nil {
		b.Diags.Errorf(diag.CodeBadWatermark, own.Span(), "the table gets a WATERMARK from LIKE as well").
			WithHelp("add EXCLUDING WATERMARKS or OVERWRITING WATERMARKS")
		return
	}
	if len(own.Column.Parts) > 1 {
		b.Diags.Errorf(diag.CodeBadWatermark, own.Column.Span(), "row time must be a column, not a field of a ROW").
			WithHelp("declare a computed column, e.g. ts AS %s, and use that", own.Column)
		return
	}
	name := own.Column.Last().Name
	c, ok := t.Column(name)
	if !ok {
		b.Diags.Errorf(diag.CodeUnknownColumn, own.Column.Span(), "row time column %q is not declared", name).
			WithNearest(name, t.ColumnNames())
		return
	}
	if !c.Type.IsTimestamp() || c.Type.Precision > 6 {
		b.Diags.Errorf(diag.CodeBadWatermark, own.Column.Span(), "row time column %q has the type %s; it must be TIMESTAMP(p) or TIMESTAMP_LTZ(p) with p up to 6", name, c.Type.WithNullable(true)).
			WithHelp("declare a computed column, e.g. %s_time AS TO_TIMESTAMP_LTZ(%s, 3)", name, name)
		return
	}
	t.Watermark = &Watermark{Column: name, Expr: own.Expr, Span: own.Span()}
	typ, ok := b.Typer.TypeOf(own.Expr, t.Columns)
	if ok && !typ.IsTimestamp() {
		b.Diags.Errorf(diag.CodeBadWatermark, own.Expr.Span(), "the watermark is %s; it must be a timestamp", typ.WithNullable(true)).
			WithHelp("e.g. WATERMARK FOR %s AS %s - INTERVAL '5' SECOND", name, name)
	} else if ok && typ.Kind != c.Type.Kind {
		b.Diags.Errorf(diag.CodeBadWatermark, own.Expr.Span(), "the watermark is %s and the row time %s", typ.WithNullable(true), c.Type.WithNullable(true))
	}
}

// check looks at the table as a whole.
func (b *Builder) check(t *Table) {
	if len(t.Columns) == 0 && !t.Template {
		b.Diags.Errorf(diag.CodeBadTable, t.Span, "table %q has no columns", t.Name)
	} else if len(t.Columns) > 0 && physicalCount(t) == 0 && !slices.ContainsFunc(t.Columns, func(c Column) bool { return c.Kind == Metadata }) {
		b.Diags.Errorf(diag.CodeBadTable, t.Span, "table %q has computed columns only", t.Name)
	}
	if t.Watermark != nil {
		if _, ok := t.Column(t.Watermark.Column); !ok {
			b.Diags.Errorf(diag.CodeBadLike, t.Span, "table %q gets a WATERMARK for %q from LIKE, but not the column", t.Name, t.Watermark.Column).
				WithNote(t.Watermark.Span, "the WATERMARK is here").
				WithHelp("add EXCLUDING WATERMARKS")
		}
	}
}

// metadata checks metadata columns against the connector's.
func (b *Builder) metadata(t *Table) {
	if t.Spec == nil {
		return
	}
	var keys []string
	for _, m := range t.Spec.Metadata {
		keys = append(keys, m.Key)
	}
	for i := range t.Columns {
		c := &t.Columns[i]
		if c.Kind != Metadata {
			continue
		}
		at := slices.Index(keys, c.Key)
		if at < 0 {
			b.Diags.Errorf(diag.CodeUnknownMetadata, c.Span, "connector %q has no metadata %q", t.Spec.Name, c.Key).
				WithNearest(c.Key, keys)
			continue
		}
		m := t.Spec.Metadata[at]
		if !c.Virtual && !m.Writable && t.Spec.Sink && !t.Spec.Source {
			b.Diags.Errorf(diag.CodeUnknownMetadata, c.Span, "metadata %q of connector %q is read only", c.Key, t.Spec.Name).
				WithHelp("add VIRTUAL")
		}
	}
}

// afterOptions checks what depends on the options.
func (b *Builder) afterOptions(t *Table) {
	if t.Spec == nil {
		return
	}
	if t.Spec.FoldsNames {
		b.foldedNames(t)
	}
	if len(t.PartitionKeys) > 0 && !t.Spec.Partitioned {
		b.Diags.Errorf(diag.CodeBadPartition, t.Span, "connector %q has no table partitions", t.Spec.Name).
			WithHelp("leave PARTITIONED BY out")
	}
	for _, key := range []string{coverageKey, CorrectionKey, OfflineTimeoutKey} {
		if t.Wide == nil && t.Option(key) != nil {
			b.Diags.Errorf(diag.CodeBadOption, t.Option(key).Key.Span(), "option %q belongs to wide tables", key)
		}
	}
}

// foldedNames reports columns that the connector takes for one.
func (b *Builder) foldedNames(t *Table) {
	first := map[string]*Column{}
	for i := range t.Columns {
		c := &t.Columns[i]
		low := strings.ToLower(c.Name)
		if f, dup := first[low]; dup {
			b.Diags.Errorf(diag.CodeDuplicateColumn, c.Span, "columns %q and %q are one column for connector %q, which knows no upper case", f.Name, c.Name, t.Spec.Name).
				WithNote(f.Span, "the first one is here").
				WithHelp("rename one, or leave it out")
			continue
		}
		first[low] = c
	}
}
