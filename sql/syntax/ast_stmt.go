package syntax

// Set is SET 'key' = 'value', or SET alone (lists the settings), or SET 'key' (shows one).
type Set struct {
	Loc
	Key   *StringLit // nil for SET alone
	Value *StringLit // nil if absent
}

func (*Set) stmt() {}

// Reset is RESET 'key', or RESET alone (all).
type Reset struct {
	Loc
	Key *StringLit // nil for RESET alone
}

func (*Reset) stmt() {}

// Insert is INSERT INTO | OVERWRITE name [hints] [PARTITION (a = x, ...)] [(a, ...)] query.
type Insert struct {
	Loc
	Overwrite bool
	Target    *Name
	Hints     []*Hint
	Partition []*PartitionValue
	Columns   []*Ident // nil: all columns that can be written
	Query     *Query
}

func (*Insert) stmt() {}

// PartitionValue is a = literal of PARTITION (...).
type PartitionValue struct {
	Loc
	Column *Ident
	Value  Expr // a literal; nil for a dynamic partition column (PARTITION (dt))
}

// StatementSet is EXECUTE STATEMENT SET BEGIN insert; ... END.
type StatementSet struct {
	Loc
	Inserts []*Insert
}

func (*StatementSet) stmt() {}

// QueryStmt is a query as a statement.
type QueryStmt struct {
	Loc
	Query *Query
}

func (*QueryStmt) stmt() {}

// ExplainDetail asks EXPLAIN for more.
type ExplainDetail uint8

// The details.
const (
	ExplainEstimatedCost ExplainDetail = iota
	ExplainChangelogMode
	ExplainJSONPlan
	ExplainPlanAdvice
)

// Explain is EXPLAIN [PLAN FOR | detail, ...] stmt, or EXPLAIN PLACEMENT [stmt].
type Explain struct {
	Loc
	Details   []ExplainDetail
	Placement bool
	Stmt      Stmt // *QueryStmt, *Insert, *StatementSet or *CreateTable with AS; may be nil with Placement
}

func (*Explain) stmt() {}

// ShowKind is what SHOW lists.
type ShowKind uint8

// The kinds.
const (
	ShowTables ShowKind = iota
	ShowViews
	ShowFunctions
	ShowGroups
	ShowJobs
	ShowColumns
	ShowPartitions
	ShowCreateTable
	ShowCreateView
)

// Show is SHOW TABLES | VIEWS | [USER] FUNCTIONS | GROUPS | JOBS [[NOT] LIKE 'pattern'], SHOW COLUMNS FROM t
// [[NOT] LIKE 'pattern'], SHOW PARTITIONS t, SHOW CREATE TABLE | VIEW t.
type Show struct {
	Loc
	Kind    ShowKind
	Of      *Name      // the table or view, of the last four kinds
	User    bool       // SHOW USER FUNCTIONS
	Not     bool       // NOT LIKE
	ILike   bool       // ILIKE: ignores case
	Pattern *StringLit // nil if absent
}

func (*Show) stmt() {}

// Describe is DESCRIBE | DESC [EXTENDED] name, DESCRIBE FUNCTION name, DESCRIBE GROUP name or
// DESCRIBE JOB 'id'.
type Describe struct {
	Loc
	Kind     ObjectKind // KindTable stands for tables and views
	Extended bool
	Name     *Name      // nil for a job
	ID       *StringLit // of a job
}

func (*Describe) stmt() {}

// StopJob is STOP JOB 'id' [WITH SAVEPOINT] [WITH DRAIN].
type StopJob struct {
	Loc
	ID        *StringLit
	Savepoint bool
	Drain     bool
}

func (*StopJob) stmt() {}
