package catalog

import (
	"slices"

	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// Object is what a name in FROM or INSERT INTO stands for: *Table, *View or
// *Broken.
type Object interface {
	// ObjectName is the name as declared.
	ObjectName() string
	// Declared is where.
	Declared() diag.Span
}

// View is a named query. Views are macros: the query is bound anew at each
// reference.
type View struct {
	Name    string
	Columns []*syntax.Ident // nil: the query's own names
	Query   *syntax.Query
	Span    diag.Span
}

// ObjectName implements Object.
func (v *View) ObjectName() string { return v.Name }

// Declared implements Object.
func (v *View) Declared() diag.Span { return v.Span }

// Broken stands for an object whose declaration has errors, so that those who
// use it are not reported as well.
type Broken struct {
	Name string
	Span diag.Span
	// Table is the declaration when only its options are wrong: queries over
	// it are still checked against its columns. nil: nothing is known.
	Table *Table
}

// ObjectName implements Object.
func (b *Broken) ObjectName() string { return b.Name }

// Declared implements Object.
func (b *Broken) Declared() diag.Span { return b.Span }

// Catalog is the named objects of a session.
type Catalog struct {
	objects map[string]Object
	order   []string
}

// New returns an empty catalog.
func New() *Catalog { return &Catalog{objects: map[string]Object{}} }

// Lookup finds an object. Names are case-sensitive.
func (c *Catalog) Lookup(name string) (Object, bool) {
	o, ok := c.objects[name]
	return o, ok
}

// Add puts an object in, or reports that the name is taken.
func (c *Catalog) Add(o Object, at diag.Span) *diag.Diagnostic {
	name := o.ObjectName()
	if old, ok := c.objects[name]; ok {
		if _, broken := old.(*Broken); broken {
			return nil
		}
		return diag.Errorf(diag.CodeDuplicateTable, at, "%q exists already", name).
			WithNote(old.Declared(), "declared here").
			WithHelp("choose another name, or write IF NOT EXISTS")
	}
	c.objects[name] = o
	c.order = append(c.order, name)
	return nil
}

// Remove takes an object out; false when there is none.
func (c *Catalog) Remove(name string) bool {
	if _, ok := c.objects[name]; !ok {
		return false
	}
	delete(c.objects, name)
	c.order = slices.DeleteFunc(c.order, func(n string) bool { return n == name })
	return true
}

// Names are the names in the order of declaration.
func (c *Catalog) Names() []string { return slices.Clone(c.order) }

// Clone returns a copy that can change without touching c.
func (c *Catalog) Clone() *Catalog {
	n := New()
	for k, v := range c.objects {
		n.objects[k] = v
	}
	n.order = slices.Clone(c.order)
	return n
}
