package compile

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/keyed"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/catalog"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/plan"
	"github.com/millrace/millrace/sql/syntax"
)

// Source is one SQL file: DDL files first, the job file last.
type Source struct {
	// Name is what messages print, e.g. "ddl/clicks.sql".
	Name string
	Text string
}

// Mode says what the statements are compiled for.
type Mode uint8

const (
	// ModeRun: run and submit. All INSERTs form one job; a bare SELECT is an
	// error, and so is a file without an INSERT.
	ModeRun Mode = iota
	// ModeSQL: the shell. Each SELECT, INSERT and statement set is a job of
	// its own, in order. Queries are compiled for batch execution and read up
	// to the present end of their tables, unless 'execution.runtime-mode' was
	// set to 'streaming'.
	ModeSQL
	// ModeCheck: as ModeRun, and files of DDL alone are fine.
	ModeCheck
	// ModePreview: as ModeRun, with every sink replaced by Options.ResultSink
	// and sources read up to their present end.
	ModePreview
)

// Options of Compile. Registry is required.
type Options struct {
	Registry *connector.Registry
	// Functions are those of the program, beside the built-in ones.
	Functions fn.Extra
	// Vars looks up ${NAME} and ${secret:NAME}; nil: none is set.
	Vars syntax.Vars
	// Zone is the session zone as long as 'table.local-time-zone' is not set;
	// "" is UTC. It is never the host's.
	Zone string
	Mode Mode
	// JobName is the job's name unless 'pipeline.name' is set; "" takes the
	// last file's base name without ".sql".
	JobName string
	// ResultSink takes the rows of bare SELECTs (ModeSQL) and of all INSERTs
	// (ModePreview). nil: such statements are planned and have no Job.
	ResultSink connector.SinkConnector
	// Session keeps tables and settings between calls; nil: start empty.
	Session *Session
	// Parallelism of keyed stages unless 'parallelism.default' is set; 0 is 1.
	Parallelism int
	// NoOptimizer leaves the plan as it was bound, without the columns that nobody
	// looks at. Results are the same.
	NoOptimizer bool
	// Overwrite makes every INSERT INTO an INSERT OVERWRITE.
	Overwrite bool
	// Index, if not nil, takes down what names and expressions mean, and what
	// was declared, also when there are errors.
	Index *plan.Index
}

// Session is what statements leave behind for later ones.
type Session struct {
	Catalog  *catalog.Catalog
	Settings *catalog.Settings
}

// NewSession returns an empty session.
func NewSession() *Session {
	return &Session{Catalog: catalog.New(), Settings: catalog.NewSettings(append(engine.Specs(), keyed.Specs()...)...)}
}

// Kind is the kind of a compiled statement.
type Kind uint8

// The kinds.
const (
	KindDDL     Kind = iota // CREATE, DROP: took effect in the session's catalog
	KindSetting             // SET, RESET: took effect in the session's settings
	KindInsert              // INSERT or a statement set
	KindQuery               // SELECT
	KindText                // EXPLAIN, SHOW, DESCRIBE: the answer is in Result
	KindJobs                // of running jobs and groups: who runs them answers, from AST and Keep
)

// Statement is one statement of the input, in order.
type Statement struct {
	Kind Kind
	AST  syntax.Stmt
	// Job runs the statement alone (ModeSQL: KindInsert, KindQuery).
	Job *graph.Job
	// Schema is the result's columns (KindQuery).
	Schema *batch.Schema
	// Changes: rows of the result change (KindQuery).
	Changes bool
	// Result is the answer of KindText, and of DDL a sentence.
	Result *Result
	// Keep says which names LIKE lets through (KindJobs with SHOW).
	Keep func(name string) bool
}

// Result is an answer that needs no job.
type Result struct {
	Columns []string
	Rows    [][]string
}

// Unit is a compiled input.
type Unit struct {
	// Name is the job's name ('pipeline.name', else as in Options.JobName).
	Name string
	// NameSet: the name comes from 'pipeline.name'.
	NameSet    bool
	Statements []Statement
	// Job holds all INSERTs (ModeRun, ModePreview; ModeCheck where there are
	// some). nil when there are errors.
	Job *graph.Job
	// Explain is the plan of Job.
	Explain *Explain
	// Updating are the tables of Job whose rows change.
	Updating []string
	// Session is the one that was given, or a new one.
	Session *Session

	zone *rt.Zone
}

// Explain is the plan of a job for people and scripts.
type Explain struct {
	// Text is the bound plan, the optimized plan and the job graph.
	Text string `json:"plan"`
	// Lanes are the lanes: one topic or file set each.
	Lanes []Lane `json:"lanes"`
	// State lists the stateful operators.
	State []State `json:"state"`
	// Graph is the job graph; inputs come before what reads them.
	Graph []GraphNode `json:"graph"`
	// Functions are the user functions that the job calls, with their versions.
	Functions []string `json:"user_functions,omitempty"`
}

// Lane is a source table with the sink tables that its rows reach.
type Lane struct {
	Table     string   `json:"table"`
	Connector string   `json:"connector"`
	Columns   []string `json:"columns"`
	Watermark string   `json:"watermark,omitempty"`
	// Direct are sink tables reached without an exchange, Keyed the paths of
	// the keyed operators fed.
	Direct []string `json:"direct"`
	Keyed  []string `json:"keyed"`
}

// GraphNode is an operator of the job graph.
type GraphNode struct {
	ID int `json:"id"`
	// Op is its kind, Text what it does: a table, a condition, keys, expressions.
	Op     string `json:"op"`
	Text   string `json:"text"`
	Inputs []int  `json:"inputs"`
	// Lane is the source table in whose lane it runs; "" behind an exchange.
	Lane string `json:"lane,omitempty"`
	// State is the path of its state, where it holds some.
	State string `json:"state,omitempty"`
}

// State is one stateful operator.
type State struct {
	// Path identifies the state across edits of the job.
	Path      string   `json:"path"`
	Kind      string   `json:"kind"`
	Keys      []string `json:"keys"`
	Slots     []string `json:"slots"`
	WindowMs  int64    `json:"window_ms,omitempty"`
	SinkTable string   `json:"sink_table,omitempty"`
	// Spills: beyond 'slot.state-memory' the state goes to disk; else that is an error.
	Spills bool `json:"spills"`
}

// Zone is the session zone after the input.
func (u *Unit) Zone() *rt.Zone { return u.zone }

// SetBatch makes a session run in batch mode, as a backfill does.
func SetBatch(s *Session, diags *diag.List) {
	lit := func(text string) *syntax.StringLit { return &syntax.StringLit{Value: text} }
	s.Settings.Set(lit("execution.runtime-mode"), lit("batch"), diags)
}
