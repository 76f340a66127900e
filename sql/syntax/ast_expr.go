package syntax

// ColumnRef is a, t.a or t.r.f: which parts are table, column and fields is for the binder to say.
type ColumnRef struct {
	Loc
	Parts []*Ident
}

// FieldAccess is base.field where base is not a plain name: (f(x)).a, arr[1].b.
type FieldAccess struct {
	Loc
	Base  Expr
	Field *Ident
}

// Index is base[key]: an array element or a map value.
type Index struct {
	Loc
	Base Expr
	Key  Expr
}

// NumberKind tells the three kinds of number literals apart.
type NumberKind uint8

// The kinds.
const (
	IntegerNumber NumberKind = iota // 12
	DecimalNumber                   // 1.5, .5, 1.
	DoubleNumber                    // 1e3, 1.5E-2
)

// NumberLit is an unsigned number. Text is as written.
type NumberLit struct {
	Loc
	Kind NumberKind
	Text string
}

// StringLit is 'text', with escapes and variables resolved in Value.
type StringLit struct {
	Loc
	Value string
	Text  *Text // non-nil if the literal holds variables
}

// Display returns the value with secrets masked; use it in whatever people or logs see.
func (s *StringLit) Display() string { return s.Text.display(s.Value) }

// BinaryLit is X'0AFF'.
type BinaryLit struct {
	Loc
	Value []byte
}

// BoolLit is TRUE or FALSE.
type BoolLit struct {
	Loc
	Value bool
}

// UnknownLit is UNKNOWN, the NULL of type BOOLEAN.
type UnknownLit struct {
	Loc
}

// NullLit is NULL.
type NullLit struct {
	Loc
}

// DateTimeKind is DATE, TIME or TIMESTAMP.
type DateTimeKind uint8

// The kinds.
const (
	DateLit DateTimeKind = iota
	TimeLit
	TimestampLit
)

// DateTimeLit is DATE '2024-01-31', TIME '10:00:00' or TIMESTAMP '2024-01-31 10:00:00'. The text is not
// checked here.
type DateTimeLit struct {
	Loc
	Kind  DateTimeKind
	Value *StringLit
}

// IntervalLit is INTERVAL [+|-] 'text' qualifier. The text is not checked here.
type IntervalLit struct {
	Loc
	Negative  bool // a minus before the text
	Value     *StringLit
	Qualifier *IntervalQualifier
}

// Unit is a unit of time.
type Unit uint8

// The units. Those up to Second may stand in an interval; the rest in EXTRACT, FLOOR, CEIL, TIMESTAMPADD
// and TIMESTAMPDIFF.
const (
	UnitYear Unit = iota
	UnitMonth
	UnitDay
	UnitHour
	UnitMinute
	UnitSecond
	UnitQuarter
	UnitWeek
	UnitMillisecond
	UnitMicrosecond
	UnitNanosecond
	UnitDecade
	UnitCentury
	UnitMillennium
	UnitEpoch
	UnitDow
	UnitIsoDow
	UnitDoy
	UnitIsoYear
)

// NoPrecision stands for a precision that was not written.
const NoPrecision = -1

// IntervalQualifier is unit[(p)] or unit[(p)] TO unit[(p)].
type IntervalQualifier struct {
	Loc
	From, To      Unit // equal if there is no TO
	Precision     int  // of the leading field, NoPrecision if absent
	FracPrecision int  // of SECOND, NoPrecision if absent
}

// UnaryOp is a prefix operator.
type UnaryOp uint8

// The operators.
const (
	OpNot UnaryOp = iota
	OpNeg
	OpPos
)

// Unary is NOT x, -x or +x.
type Unary struct {
	Loc
	Op   UnaryOp
	Expr Expr
}

// BinaryOp is an infix operator.
type BinaryOp uint8

// The operators.
const (
	OpOr BinaryOp = iota
	OpAnd
	OpEq
	OpNe
	OpLt
	OpLe
	OpGt
	OpGe
	OpAdd
	OpSub
	OpConcat
	OpMul
	OpDiv
	OpMod
	OpOverlaps // of two periods, each a RowExpr of its ends
)

// Binary is left op right.
type Binary struct {
	Loc
	Op          BinaryOp
	Left, Right Expr
	OpLoc       Loc // the operator alone
}

// IsKind is what IS tests for.
type IsKind uint8

// The tests.
const (
	IsNull IsKind = iota
	IsTrue
	IsFalse
	IsUnknown
	IsJSONValue  // IS JSON or IS JSON VALUE
	IsJSONObject // IS JSON OBJECT
	IsJSONArray  // IS JSON ARRAY
	IsJSONScalar // IS JSON SCALAR
)

// Is is x IS [NOT] NULL and the like.
type Is struct {
	Loc
	Expr Expr
	Not  bool
	Kind IsKind
}

// IsDistinct is left IS [NOT] DISTINCT FROM right.
type IsDistinct struct {
	Loc
	Left, Right Expr
	Not         bool
}

// Between is x [NOT] BETWEEN [SYMMETRIC] low AND high.
type Between struct {
	Loc
	Expr      Expr
	Not       bool
	Symmetric bool
	Low, High Expr
}

// In is x [NOT] IN (list) or x [NOT] IN (query); one of List and Query is set. x may be a *RowExpr.
type In struct {
	Loc
	Expr  Expr
	Not   bool
	List  []Expr
	Query *Query
}

// Quantified is left op ANY | SOME | ALL (query).
type Quantified struct {
	Loc
	Left  Expr
	Op    BinaryOp
	All   bool
	Query *Query
}

// Exists is EXISTS (query).
type Exists struct {
	Loc
	Query *Query
}

// LikeKind is LIKE or SIMILAR TO.
type LikeKind uint8

// The kinds.
const (
	LikePattern LikeKind = iota
	SimilarTo
)

// LikeExpr is x [NOT] LIKE | SIMILAR TO pattern [ESCAPE c].
type LikeExpr struct {
	Loc
	Kind    LikeKind
	Expr    Expr
	Not     bool
	Pattern Expr
	Escape  Expr // nil if absent
}

// Case is CASE [operand] WHEN ... THEN ... [ELSE ...] END.
type Case struct {
	Loc
	Operand Expr // nil for the searched form
	Whens   []*When
	Else    Expr // nil if absent
}

// When is one branch of Case.
type When struct {
	Loc
	Cond   Expr
	Result Expr
}

// Cast is CAST(x AS type) or TRY_CAST(x AS type).
type Cast struct {
	Loc
	Expr Expr
	Type *DataType
	Try  bool
}

// Call is a function call. CURRENT_DATE and the like, written without parentheses, are calls too.
type Call struct {
	Loc
	Name        *Name
	NoParens    bool
	Distinct    bool
	Star        bool // f(*)
	Args        []Expr
	OrderBy     []*OrderItem // inside the parentheses: ARRAY_AGG(x ORDER BY y)
	Nulls       NullTreatment
	WithinGroup []*OrderItem // WITHIN GROUP (ORDER BY ...)
	Filter      Expr         // FILTER (WHERE ...)
	Over        *WindowSpec
}

// NullTreatment is RESPECT NULLS or IGNORE NULLS.
type NullTreatment uint8

// The treatments.
const (
	NullsUnspecified NullTreatment = iota
	RespectNulls
	IgnoreNulls
)

// NamedArg is name => value in a call. The value DEFAULT is a *DefaultArg.
type NamedArg struct {
	Loc
	Name  *Ident
	Value Expr
}

// DefaultArg is DEFAULT in place of an argument.
type DefaultArg struct {
	Loc
}

// TableArg is TABLE name or TABLE (query), with [PARTITION BY ...] [ORDER BY ...], in a call of a table
// function; one of Name and Query is set.
type TableArg struct {
	Loc
	Name        *Name
	Query       *Query
	PartitionBy []Expr
	OrderBy     []*OrderItem
}

// Descriptor is DESCRIPTOR(a, ...) in a call of a table function.
type Descriptor struct {
	Loc
	Columns []*Ident
}

// UnitArg is a unit of time as the argument of a call: TIMESTAMPADD(DAY, ...), TIMESTAMPDIFF(...).
type UnitArg struct {
	Loc
	Unit Unit
}

// Extract is EXTRACT(unit FROM x).
type Extract struct {
	Loc
	Unit *UnitArg
	From Expr
}

// RoundTime is FLOOR(x TO unit) or CEIL(x TO unit).
type RoundTime struct {
	Loc
	Ceil bool
	Expr Expr
	Unit *UnitArg
}

// TrimSide says which ends TRIM cuts.
type TrimSide uint8

// The sides.
const (
	TrimBoth TrimSide = iota
	TrimLeading
	TrimTrailing
)

// Trim is TRIM([BOTH | LEADING | TRAILING] [chars] FROM x) or TRIM(x).
type Trim struct {
	Loc
	Side  TrimSide
	Chars Expr // nil: a space
	From  Expr
}

// Position is POSITION(needle IN x [FROM start]).
type Position struct {
	Loc
	Needle Expr
	In     Expr
	From   Expr // nil if absent
}

// Substring is SUBSTRING(x FROM start [FOR length]). The form with commas is a *Call.
type Substring struct {
	Loc
	Expr Expr
	From Expr
	For  Expr // nil if absent
}

// Overlay is OVERLAY(x PLACING y FROM start [FOR length]).
type Overlay struct {
	Loc
	Expr    Expr
	Placing Expr
	From    Expr
	For     Expr // nil if absent
}

// RowExpr is ROW(a, b) or, with two items or more, (a, b).
type RowExpr struct {
	Loc
	Explicit bool // the word ROW was written
	Items    []Expr
}

// ArrayExpr is ARRAY[a, b].
type ArrayExpr struct {
	Loc
	Items []Expr
}

// MapExpr is MAP[k, v, ...]. Items alternate; their number is even.
type MapExpr struct {
	Loc
	Items []Expr
}

// Subquery is (query) as a scalar.
type Subquery struct {
	Loc
	Query *Query
}

func (*ColumnRef) expr()   {}
func (*FieldAccess) expr() {}
func (*Index) expr()       {}
func (*NumberLit) expr()   {}
func (*StringLit) expr()   {}
func (*BinaryLit) expr()   {}
func (*BoolLit) expr()     {}
func (*UnknownLit) expr()  {}
func (*NullLit) expr()     {}
func (*DateTimeLit) expr() {}
func (*IntervalLit) expr() {}
func (*Unary) expr()       {}
func (*Binary) expr()      {}
func (*Is) expr()          {}
func (*IsDistinct) expr()  {}
func (*Between) expr()     {}
func (*In) expr()          {}
func (*Quantified) expr()  {}
func (*Exists) expr()      {}
func (*LikeExpr) expr()    {}
func (*Case) expr()        {}
func (*Cast) expr()        {}
func (*Call) expr()        {}
func (*NamedArg) expr()    {}
func (*DefaultArg) expr()  {}
func (*TableArg) expr()    {}
func (*Descriptor) expr()  {}
func (*UnitArg) expr()     {}
func (*Extract) expr()     {}
func (*RoundTime) expr()   {}
func (*Trim) expr()        {}
func (*Position) expr()    {}
func (*Substring) expr()   {}
func (*Overlay) expr()     {}
func (*RowExpr) expr()     {}
func (*ArrayExpr) expr()   {}
func (*MapExpr) expr()     {}
func (*Subquery) expr()    {}
