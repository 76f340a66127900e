package catalog

import (
	"time"

	"github.com/millrace/millrace/runtime/connector"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// ColumnKind tells physical, computed and metadata columns apart.
type ColumnKind uint8

// The kinds.
const (
	Physical ColumnKind = iota
	Computed
	Metadata
)

// Column is a column of a table.
type Column struct {
	Name    string
	Type    rt.Type
	Kind    ColumnKind
	Comment string
	// Expr is the expression of a computed column.
	Expr syntax.Expr
	// Key is the metadata key; Virtual metadata is read only.
	Key     string
	Virtual bool
	Span    diag.Span
}

// Writable reports whether INSERT may give the column a value.
func (c *Column) Writable() bool {
	return c.Kind == Physical || c.Kind == Metadata && !c.Virtual
}

// Watermark is WATERMARK FOR Column AS Expr.
type Watermark struct {
	Column string
	Expr   syntax.Expr
	Span   diag.Span
}

// Binding is a loop variable and the table that it stands for.
type Binding struct{ Var, Value string }

// Lookup is the value of the variable.
func (b Binding) Lookup(name string) (string, bool) { return b.Value, b.Var != "" && name == b.Var }

// Table is a declared table.
type Table struct {
	Name    string
	Comment string
	Columns []Column

	PrimaryKey    []string
	PartitionKeys []string
	Watermark     *Watermark // nil: none

	// Options are the options in force, those of LIKE included.
	Options []*syntax.Option
	// Template: good for LIKE alone, because it has no 'connector', leaves a loop
	// variable open, or has only the columns that partition. It has no Connector.
	Template bool
	// Loop is the loop variable that it was made under, if any.
	Loop      Binding
	Connector connector.Connector
	Spec      *connector.Spec
	Values    connector.Values
	// Runtime are the options that every sink table has (RuntimeOptions).
	Runtime connector.Values

	// Declaration is what declares the table, nil for a wide table.
	Declaration *syntax.CreateTable
	// Wide is set for CREATE WIDE TABLE; Columns are then filled by the binder.
	Wide *syntax.CreateWideTable

	Span diag.Span // the name in the declaration

	// columnsSound: whatever is wrong with the declaration, the columns are not.
	columnsSound bool
}

// ColumnsSound reports whether the columns, keys and watermark were declared
// without errors and the connector is known.
func (t *Table) ColumnsSound() bool { return t.columnsSound && t.Connector != nil && t.Spec != nil }

// ObjectName implements Object.
func (t *Table) ObjectName() string { return t.Name }

// Declared implements Object.
func (t *Table) Declared() diag.Span { return t.Span }

// Column finds a column by name.
func (t *Table) Column(name string) (*Column, bool) {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i], true
		}
	}
	return nil, false
}

// ColumnNames are the names of all columns.
func (t *Table) ColumnNames() []string {
	names := make([]string, len(t.Columns))
	for i := range t.Columns {
		names[i] = t.Columns[i].Name
	}
	return names
}

// Option finds an option by key.
func (t *Table) Option(key string) *syntax.Option { return findOption(t.Options, key) }

func findOption(opts []*syntax.Option, key string) *syntax.Option {
	for _, o := range opts {
		if o.Key.Value == key {
			return o
		}
	}
	return nil
}

// SourceTable is the table as the connector reads it: physical and metadata
// columns.
func (t *Table) SourceTable(zone *time.Location) *connector.Table {
	return t.connectorTable(zone, func(c *Column) bool { return c.Kind != Computed })
}

// SinkTable is the table as the connector writes it: physical columns and
// metadata that is not VIRTUAL.
func (t *Table) SinkTable(zone *time.Location) *connector.Table {
	return t.connectorTable(zone, (*Column).Writable)
}

func (t *Table) connectorTable(zone *time.Location, keep func(*Column) bool) *connector.Table {
	out := &connector.Table{Name: t.Name, Options: t.Values, Comment: t.Comment, Zone: zone}
	at := map[string]int{}
	for i := range t.Columns {
		c := &t.Columns[i]
		if !keep(c) {
			continue
		}
		at[c.Name] = len(out.Columns)
		out.Columns = append(out.Columns, connector.Column{
			Field:    rt.Field{Name: c.Name, Type: c.Type, Comment: c.Comment},
			Metadata: c.Key,
			Virtual:  c.Virtual,
		})
	}
	for _, k := range t.PrimaryKey {
		if i, ok := at[k]; ok {
			out.PrimaryKey = append(out.PrimaryKey, i)
		}
	}
	for _, k := range t.PartitionKeys {
		if i, ok := at[k]; ok {
			out.PartitionKeys = append(out.PartitionKeys, i)
		}
	}
	return out
}

// WritableColumns are the columns that INSERT gives values to, in order.
func (t *Table) WritableColumns() []*Column {
	var out []*Column
	for i := range t.Columns {
		if t.Columns[i].Writable() {
			out = append(out, &t.Columns[i])
		}
	}
	return out
}

// Bounded reports whether reading the table ends by itself.
func (t *Table) Bounded() bool {
	switch {
	case t.Spec == nil:
		return true
	case declares(t.Spec, t.Values, "scan.bounded.mode") && t.Values.String("scan.bounded.mode") != "" &&
		t.Values.String("scan.bounded.mode") != "unbounded":
		return true
	case t.Spec.BoundedBy != "" && t.Values.Has(t.Spec.BoundedBy):
		return true
	case t.Values.Has("source.monitor-interval"):
		return false
	}
	return t.Spec.Bounded
}

// declares reports whether a table of the spec may set the key.
func declares(s *connector.Spec, v connector.Values, key string) bool {
	format := ""
	if v.Has("format") {
		format = v.String("format")
	}
	for _, k := range s.Keys(format) {
		if k == key {
			return true
		}
	}
	return false
}

// BoundedNow is the table with its reading ended at the present end of its
// data, where the connector can do that; else the table itself.
func (t *Table) BoundedNow() *Table {
	if t.Bounded() || t.Spec == nil || !declares(t.Spec, t.Values, "scan.bounded.mode") {
		return t
	}
	with := optionMap(t.Options)
	with["scan.bounded.mode"] = "latest-offset"
	for _, k := range runtimeKeys() {
		delete(with, k)
	}
	for k := range with {
		if noEffectOption(k) && !declares(t.Spec, t.Values, k) {
			delete(with, k)
		}
	}
	v, errs := t.Spec.Resolve(with)
	if len(errs) > 0 {
		return t
	}
	c := *t
	c.Values = v
	return &c
}

func optionMap(opts []*syntax.Option) map[string]string {
	m := make(map[string]string, len(opts))
	for _, o := range opts {
		m[o.Key.Value] = o.Value.Value
	}
	return m
}

// Declares reports whether the connector knows an option, set or not.
func (t *Table) Declares(key string) bool {
	return t.Spec != nil && declares(t.Spec, t.Values, key)
}
