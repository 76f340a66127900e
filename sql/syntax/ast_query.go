package syntax

// Query is [WITH cte, ...] body [ORDER BY ...] [LIMIT n] [OFFSET n [ROWS]] [FETCH FIRST n ROWS ONLY]. As a
// QueryExpr it is a query in parentheses.
type Query struct {
	Loc
	With    []*CTE
	Body    QueryExpr
	OrderBy []*OrderItem
	Limit   Expr // nil if absent or LIMIT ALL; FETCH FIRST is the same
	Offset  Expr // nil if absent
}

func (*Query) queryExpr() {}

// CTE is name [(a, ...)] AS (query).
type CTE struct {
	Loc
	Name    *Ident
	Columns []*Ident
	Query   *Query
}

// OrderItem is expr [ASC | DESC] [NULLS FIRST | LAST].
type OrderItem struct {
	Loc
	Expr  Expr
	Desc  bool
	Nulls NullsOrder
}

// NullsOrder says where NULLs are sorted.
type NullsOrder uint8

// The orders. As in Flink, the default is the smallest value: first when ascending, last when descending.
const (
	NullsDefault NullsOrder = iota
	NullsFirst
	NullsLast
)

// SetOpKind is UNION, INTERSECT or EXCEPT.
type SetOpKind uint8

// The kinds.
const (
	Union SetOpKind = iota
	Intersect
	Except
)

// SetOp is left UNION | INTERSECT | EXCEPT [ALL] right.
type SetOp struct {
	Loc
	Kind        SetOpKind
	All         bool
	Left, Right QueryExpr
}

func (*SetOp) queryExpr() {}

// Values is VALUES (a, b), (c, d). A row written without parentheses has one item.
type Values struct {
	Loc
	Rows []*RowExpr
}

func (*Values) queryExpr() {}

// ExplicitTable is TABLE name, the same as SELECT * FROM name.
type ExplicitTable struct {
	Loc
	Name *Name
}

func (*ExplicitTable) queryExpr() {}

// Select is SELECT [hints] [ALL | DISTINCT] items [FROM ...] [WHERE ...] [GROUP BY ...] [HAVING ...]
// [WINDOW name AS (...), ...].
type Select struct {
	Loc
	Hints    []*Hint
	Distinct bool
	Items    []SelectItem
	From     TableExpr // nil if absent; a comma list is a chain of CROSS joins
	Where    Expr
	GroupBy  *GroupBy
	Having   Expr
	Windows  []*NamedWindow
}

func (*Select) queryExpr() {}

// SelectItem is *Star or *SelectExpr.
type SelectItem interface {
	Node
	selectItem()
}

// Star is *, t.* or r.*, with the fields of column r, or (expr).*.
type Star struct {
	Loc
	Of   *Name // nil for * and (expr).*
	Expr Expr  // nil but for (expr).*
}

// SelectExpr is expr [[AS] alias].
type SelectExpr struct {
	Loc
	Expr  Expr
	Alias *Ident // nil if absent
}

func (*Star) selectItem()       {}
func (*SelectExpr) selectItem() {}

// GroupBy is GROUP BY [DISTINCT] element, ... .
type GroupBy struct {
	Loc
	Distinct bool
	Elements []GroupElement
}

// GroupElement is an *GroupExpr or *GroupingSets.
type GroupElement interface {
	Node
	groupElement()
}

// GroupExpr is a single grouping expression.
type GroupExpr struct {
	Loc
	Expr Expr
}

// GroupingKind is GROUPING SETS, ROLLUP or CUBE.
type GroupingKind uint8

// The kinds.
const (
	GroupingSetsOf GroupingKind = iota
	Rollup
	Cube
)

// GroupingSets is GROUPING SETS (...), ROLLUP (...) or CUBE (...). Each set is a list of expressions; the
// empty set is (). GROUP BY () is a GroupingSets with one empty set.
type GroupingSets struct {
	Loc
	Kind GroupingKind
	Sets []*RowExpr
}

func (*GroupExpr) groupElement()    {}
func (*GroupingSets) groupElement() {}

// Alias is [AS] name [(a, ...)].
type Alias struct {
	Loc
	Name    *Ident
	Columns []*Ident
}

// TableRef is name [hints] [FOR SYSTEM_TIME AS OF expr] [alias].
type TableRef struct {
	Loc
	Name  *Name
	Hints []*Hint
	AsOf  Expr // nil if absent
	Alias *Alias
}

// DerivedTable is [LATERAL] (query) [alias].
type DerivedTable struct {
	Loc
	Lateral bool
	Query   *Query
	Alias   *Alias
}

// TableFunc is [LATERAL] TABLE(f(args)) [alias]. Window functions (TUMBLE, HOP, CUMULATE, SESSION) are
// calls with a *TableArg, a *Descriptor and intervals, by position or as *NamedArg.
type TableFunc struct {
	Loc
	Lateral bool
	Call    *Call
	Alias   *Alias
}

// Unnest is UNNEST(expr, ...) [WITH ORDINALITY] [alias].
type Unnest struct {
	Loc
	Args       []Expr
	Ordinality bool
	Alias      *Alias
}

// JoinKind is a kind of join.
type JoinKind uint8

// The kinds.
const (
	CrossJoin JoinKind = iota // CROSS JOIN or a comma
	InnerJoin
	LeftJoin
	RightJoin
	FullJoin
)

// Join is left [NATURAL] kind JOIN right [ON expr | USING (a, ...)].
type Join struct {
	Loc
	Kind        JoinKind
	Comma       bool // written as a comma
	Natural     bool
	Left, Right TableExpr
	On          Expr     // nil if absent
	Using       []*Ident // nil if absent
	Op          Loc      // the words between left and right
}

func (*TableRef) tableExpr()     {}
func (*DerivedTable) tableExpr() {}
func (*TableFunc) tableExpr()    {}
func (*Unnest) tableExpr()       {}
func (*Join) tableExpr()         {}

// Hint is one hint of /*+ ... */: NAME, NAME(a, b), NAME('a', 'b') or NAME('k' = 'v', ...).
type Hint struct {
	Loc
	Name    *Ident
	Args    []Expr    // identifiers (as *ColumnRef) and literals
	Options []*Option // of the key-value form
}

// NamedWindow is name AS (spec) of the WINDOW clause.
type NamedWindow struct {
	Loc
	Name *Ident
	Spec *WindowSpec
}

// WindowSpec is what OVER holds: a name, or ([name] [PARTITION BY ...] [ORDER BY ...] [frame]).
type WindowSpec struct {
	Loc
	Ref         *Ident // OVER name, or the name inside the parentheses
	PartitionBy []Expr
	OrderBy     []*OrderItem
	Frame       *Frame
}

// FrameUnit is ROWS or RANGE.
type FrameUnit uint8

// The units.
const (
	FrameRows FrameUnit = iota
	FrameRange
)

// Frame is ROWS | RANGE bound, or ROWS | RANGE BETWEEN bound AND bound.
type Frame struct {
	Loc
	Unit  FrameUnit
	Start *FrameBound
	End   *FrameBound // nil in the short form
}

// BoundKind is a kind of frame bound.
type BoundKind uint8

// The kinds.
const (
	UnboundedPreceding BoundKind = iota
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

// FrameBound is one end of a frame.
type FrameBound struct {
	Loc
	Kind   BoundKind
	Offset Expr // of Preceding and Following
}
