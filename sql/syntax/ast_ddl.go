package syntax

// CreateTable is
//
//	CREATE [TEMPORARY] TABLE [IF NOT EXISTS] name [( elements )] [COMMENT 'text']
//	[PARTITIONED BY (a, ...)] [WITH ( options )]
//	[LIKE t [( like options )] [WITH COLUMNS OF s [EXCEPT (a, ...)]] | AS query]
//
// PARTITIONED BY, WITH and the column list may be missing when LIKE or AS supplies them.
type CreateTable struct {
	Loc
	Temporary   bool
	IfNotExists bool
	Name        *Name
	Elements    []TableElement
	// Columns are names alone, (a, b): the order of the columns of As. Only together with As.
	Columns    []*Ident
	Comment    *StringLit // nil if absent
	Partitions *PartitionClause
	HasWith    bool // WITH was written, maybe empty
	Options    []*Option
	Like       *Like      // nil if absent
	ColumnsOf  *ColumnsOf // nil if absent; only together with Like
	As         *Query     // nil if absent
}

func (*CreateTable) stmt() {}

// PartitionClause is PARTITIONED BY (a, ...). In Hive's style a partition column may be declared in place
// (dt STRING); such an item has a type.
type PartitionClause struct {
	Loc
	Columns []*PartitionColumn
}

// PartitionColumn is one column of PARTITIONED BY.
type PartitionColumn struct {
	Loc
	Name *Ident
	Type *DataType // nil: the column is declared in the column list
}

// TableElement is an item of a column list: *ColumnDef, *ComputedColumn, *MetadataColumn, *WatermarkDef or
// *PrimaryKeyDef.
type TableElement interface {
	Node
	tableElement()
}

// ColumnDef is a physical column: name type [PRIMARY KEY NOT ENFORCED] [COMMENT 'text'].
type ColumnDef struct {
	Loc
	Name       *Ident
	Type       *DataType // carries NOT NULL
	PrimaryKey *PrimaryKeyDef
	Comment    *StringLit
}

// ComputedColumn is name AS expr [COMMENT 'text'].
type ComputedColumn struct {
	Loc
	Name    *Ident
	Expr    Expr
	Comment *StringLit
}

// MetadataColumn is name type METADATA [FROM 'key'] [VIRTUAL] [COMMENT 'text'].
type MetadataColumn struct {
	Loc
	Name    *Ident
	Type    *DataType
	From    *StringLit // nil: the key is the column's name
	Virtual bool
	Comment *StringLit
}

// WatermarkDef is WATERMARK FOR column AS expr. The column may be a path into a ROW.
type WatermarkDef struct {
	Loc
	Column *Name
	Expr   Expr
}

// PrimaryKeyDef is [CONSTRAINT name] PRIMARY KEY (a, ...) NOT ENFORCED. After a column definition,
// Columns holds that column.
type PrimaryKeyDef struct {
	Loc
	Constraint  *Ident // nil if absent
	Columns     []*Ident
	NotEnforced bool // false if NOT ENFORCED was not written, which the binder refuses
}

func (*ColumnDef) tableElement()      {}
func (*ComputedColumn) tableElement() {}
func (*MetadataColumn) tableElement() {}
func (*WatermarkDef) tableElement()   {}
func (*PrimaryKeyDef) tableElement()  {}

// Like is LIKE source [( INCLUDING | EXCLUDING | OVERWRITING feature ... )].
type Like struct {
	Loc
	Source  *Name
	Options []*LikeOption
}

// LikeOption is one merge rule of Like.
type LikeOption struct {
	Loc
	Merge   LikeMerge
	Feature LikeFeature
}

// LikeMerge says how a feature of the source table is merged.
type LikeMerge uint8

// The merge rules.
const (
	Including LikeMerge = iota
	Excluding
	Overwriting
)

// LikeFeature is what a merge rule applies to.
type LikeFeature uint8

// The features.
const (
	LikeAll LikeFeature = iota
	LikeConstraints
	LikeDistribution
	LikeGenerated
	LikeMetadata
	LikeOptions
	LikePartitions
	LikeWatermarks
)

// ColumnsOf is WITH COLUMNS OF source [EXCEPT (a, ...)], an extension: the columns that SELECT * FROM
// source gives, as physical ones.
type ColumnsOf struct {
	Loc
	Source *Name
	Except []*Ident
}

// CreateView is CREATE [TEMPORARY] VIEW [IF NOT EXISTS] name [(a, ...)] [COMMENT 'text'] AS query.
type CreateView struct {
	Loc
	Temporary   bool
	IfNotExists bool
	Name        *Name
	Columns     []*Ident
	Comment     *StringLit
	Query       *Query
}

func (*CreateView) stmt() {}

// CreateWideTable is an extension: rows of many streams merged by key and window.
//
//	CREATE WIDE TABLE [IF NOT EXISTS] name (elements) [COMMENT 'text'] [PARTITIONED BY (a, ...)]
//	WINDOW TUMBLE(SIZE => i [, OFFSET => i]) [ALLOWED LATENESS i] WITH (options)
//	AS UNION OF branch, ...
//
// Elements are *ColumnDef, *ComputedColumn and *PrimaryKeyDef.
type CreateWideTable struct {
	Loc
	IfNotExists bool
	Name        *Name
	Elements    []TableElement
	Comment     *StringLit
	Partitions  *PartitionClause
	Window      *WideWindow
	Lateness    Expr // nil if absent; an *IntervalLit unless the user wrote something else
	HasWith     bool
	Options     []*Option
	Branches    []*WideBranch
}

func (*CreateWideTable) stmt() {}

// WideWindow is WINDOW TUMBLE(SIZE => i [, OFFSET => i]).
type WideWindow struct {
	Loc
	Size   Expr
	Offset Expr // nil if absent
}

// WideBranch is one input of a wide table:
//
//	label TIME col [VERSION BY col] [KEEP NULLS] AS (select)
//	label OFFLINE GENERATION col = expr [CREATES ROWS] AS (select)
type WideBranch struct {
	Loc
	Label *Ident

	Time      *ColumnRef // nil for an offline branch
	VersionBy *ColumnRef // nil if absent
	KeepNulls bool

	Offline     bool
	Generation  *ColumnRef // the generation column, of an offline branch
	GenExpr     Expr       // what it equals
	CreatesRows bool

	Query *Query
}

// ForEach is an extension: statements bound once for each table of a set.
//
//	FOR EACH TABLE var IN (SHOW TABLES LIKE 'pattern') BEGIN stmt; ... END FOR
//
// In the body, ${var} in literals and quoted names is the table's name; see Substitute.
type ForEach struct {
	Loc
	Var  *Ident
	Set  *Show
	Body []Stmt
}

func (*ForEach) stmt() {}

// ObjectKind is a kind of catalog object or of running thing that statements name.
type ObjectKind uint8

// The kinds.
const (
	KindTable ObjectKind = iota
	KindView
	KindFunction
	KindGroup
	KindJob
)

// Drop is DROP [TEMPORARY] TABLE | VIEW [IF EXISTS] name.
type Drop struct {
	Loc
	Kind      ObjectKind // KindTable or KindView
	Temporary bool
	IfExists  bool
	Name      *Name
}

func (*Drop) stmt() {}

// AlterTable is ALTER TABLE [IF EXISTS] name action.
type AlterTable struct {
	Loc
	IfExists bool
	Name     *Name
	Action   AlterAction
}

func (*AlterTable) stmt() {}

// AlterAction is what ALTER TABLE does: *RenameTable, *RenameColumn, *SetOptions, *ResetOptions,
// *AddElements, *ModifyElements or *DropElements.
type AlterAction interface {
	Node
	alterAction()
}

// RenameTable is RENAME TO name.
type RenameTable struct {
	Loc
	To *Name
}

// RenameColumn is RENAME old TO new.
type RenameColumn struct {
	Loc
	From, To *Ident
}

// SetOptions is SET ( options ).
type SetOptions struct {
	Loc
	Options []*Option
}

// ResetOptions is RESET ( 'key', ... ).
type ResetOptions struct {
	Loc
	Keys []*StringLit
}

// AddElements is ADD element or ADD ( element, ... ).
type AddElements struct {
	Loc
	Elements []*PlacedElement
}

// ModifyElements is MODIFY element or MODIFY ( element, ... ).
type ModifyElements struct {
	Loc
	Elements []*PlacedElement
}

// PlacedElement is a table element with the place [FIRST | AFTER column].
type PlacedElement struct {
	Loc
	Element TableElement
	First   bool
	After   *Ident // nil if absent
}

// DropElements is DROP column, DROP (a, ...), DROP PRIMARY KEY, DROP CONSTRAINT name or DROP WATERMARK.
type DropElements struct {
	Loc
	Columns    []*Ident
	PrimaryKey bool
	Constraint *Ident
	Watermark  bool
}

func (*RenameTable) alterAction()    {}
func (*RenameColumn) alterAction()   {}
func (*SetOptions) alterAction()     {}
func (*ResetOptions) alterAction()   {}
func (*AddElements) alterAction()    {}
func (*ModifyElements) alterAction() {}
func (*DropElements) alterAction()   {}

// AlterView is ALTER VIEW name RENAME TO name or ALTER VIEW name AS query; one of both is set.
type AlterView struct {
	Loc
	Name     *Name
	RenameTo *Name
	Query    *Query
}

func (*AlterView) stmt() {}
