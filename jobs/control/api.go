package control

import (
	"context"
	"encoding/json"
	"time"
)

// API is what the owner of a data directory does for others. Calls may come
// at any time, several at once.
type API interface {
	Info(ctx context.Context) (Info, error)

	Topics(ctx context.Context) ([]Topic, error)
	Topic(ctx context.Context, name string) (Topic, error)
	CreateTopic(ctx context.Context, req CreateTopic) (Topic, error)
	DeleteTopic(ctx context.Context, req DeleteTopic) error
	// Produce reads records until next returns io.EOF and returns when all of
	// them are durable.
	Produce(ctx context.Context, topic string, next func(*Record) error) (Produced, error)
	// Consume calls f for each record of a range, per partition in offset
	// order. The record is valid until f returns.
	Consume(ctx context.Context, req Consume, f func(*Record) error) error

	// Dead calls f for each dead row's record, oldest first.
	Dead(ctx context.Context, req DeadQuery, f func(*DeadRecord) error) error
	Replay(ctx context.Context, req Replay) (Replayed, error)

	Ledger(ctx context.Context, table string) ([]TableLedger, error)

	Query(ctx context.Context, req Query, f QueryResult) error
	// Preview runs a job over a sample and gives the rows of each table.
	Preview(ctx context.Context, req Preview, f QueryResult) error

	Jobs(ctx context.Context) ([]Job, error)
	// Roll seals and commits what the job has open, now.
	Roll(ctx context.Context, job string) (Rolled, error)
	ResumeLane(ctx context.Context, req ResumeLane) error
	// Homes are the tables that jobs write, with where they are.
	Homes(ctx context.Context) ([]TableHome, error)
	// SwitchTable moves a table to its other home.
	SwitchTable(ctx context.Context, req SwitchTable) (Switched, error)

	Groups
	Access
}

// Info says who owns the data directory.
type Info struct {
	PID       int       `json:"pid"`
	Version   string    `json:"version"`
	Started   time.Time `json:"started"`
	Command   string    `json:"command"`
	Directory string    `json:"directory"`
	// Brief: the owner is a command that ends by itself within moments.
	Brief bool `json:"brief,omitempty"`
}

// Topic describes a topic.
type Topic struct {
	Name       string            `json:"topic"`
	ID         string            `json:"id"`
	Config     map[string]string `json:"config"`
	Partitions []Partition       `json:"partitions"`
	Internal   bool              `json:"internal,omitempty"`
}

// Partition is one partition's bounds: earliest is the first offset that can
// be read, latest the one that the next record will get.
type Partition struct {
	Partition int32 `json:"partition"`
	Earliest  int64 `json:"earliest"`
	Latest    int64 `json:"latest"`
	Bytes     int64 `json:"bytes"`
}

// CreateTopic asks for a topic.
type CreateTopic struct {
	Name        string            `json:"topic"`
	Partitions  int               `json:"partitions"`
	Config      map[string]string `json:"config,omitempty"`
	IfNotExists bool              `json:"if_not_exists,omitempty"`
}

// DeleteTopic removes a topic; Force also while a job reads it.
type DeleteTopic struct {
	Name  string `json:"topic"`
	Force bool   `json:"force,omitempty"`
}

// Record is a record to produce or as consumed. A nil Key or Value is a null.
type Record struct {
	Partition int32
	Offset    int64
	// TimestampMillis is in ms since 1970; producing 0 stands for now.
	TimestampMillis int64
	Key, Value      []byte
	Headers         []Header
	// AnyPartition lets the key, or the turn, decide (producing).
	AnyPartition bool
}

// Header is a record header.
type Header struct {
	Key   string
	Value []byte
}

// Produced says what became durable.
type Produced struct {
	Records int64   `json:"records"`
	Bytes   int64   `json:"bytes"`
	Seconds float64 `json:"seconds"`
}

// Consume asks for records of a topic.
type Consume struct {
	Topic string `json:"topic"`
	// Range is in the grammar of jobs/readrange.
	Range string `json:"range"`
	// Partitions, none: all.
	Partitions []int32 `json:"partitions,omitempty"`
	// Limit is the most records in all, 0: no limit.
	Limit int64 `json:"limit,omitempty"`
}

// DeadQuery selects dead letters.
type DeadQuery struct {
	Table  string `json:"table,omitempty"`
	Job    string `json:"job,omitempty"`
	Reason string `json:"reason,omitempty"`
	Limit  int64  `json:"limit,omitempty"`
}

// DeadRecord is one entry of `dead ls`.
type DeadRecord struct {
	Table     string    `json:"table"`
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Rows      []int32   `json:"rows,omitempty"`
	Reason    string    `json:"reason"`
	Column    string    `json:"column"`
	Message   string    `json:"message"`
	Value     []byte    `json:"value_base64"`
	Attempts  int32     `json:"attempts"`
	Replayed  bool      `json:"replayed,omitempty"`
	Time      time.Time `json:"time"`
}

// Replay asks for dead letters of a table to be processed again.
type Replay struct {
	Table string `json:"table"`
	Job   string `json:"job,omitempty"`
	// Files are the SQL files to replay through, DDL first; none: as stored
	// with the job.
	Files []SQLFile         `json:"files,omitempty"`
	Set   map[string]string `json:"set,omitempty"`
}

// SQLFile is a named SQL text.
type SQLFile struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Replayed says how a replay ended.
type Replayed struct {
	Table string `json:"table"`
	// Rows were looked at: Written now, Dead again, or Filtered.
	Rows     int64 `json:"rows"`
	Written  int64 `json:"written"`
	Dead     int64 `json:"dead"`
	Filtered int64 `json:"filtered"`
}

// TableLedger is a row of `ledger show`; numbers are rows after decoding,
// Records are records.
type TableLedger struct {
	Table    string `json:"table"`
	Topic    string `json:"topic"`
	Job      string `json:"job"`
	Records  int64  `json:"records"`
	Read     int64  `json:"read"`
	Written  int64  `json:"written"`
	Folded   int64  `json:"folded"`
	Filtered int64  `json:"filtered"`
	Dead     int64  `json:"dead"`
	Late     int64  `json:"late"`
	Open     int64  `json:"open"`
	Emitted  int64  `json:"emitted"`
	Replayed int64  `json:"replayed"`
	Lost     int64  `json:"lost"`
	// FilteredBy and DeadBy count by reason.
	FilteredBy map[string]int64 `json:"filtered_by,omitempty"`
	DeadBy     map[string]int64 `json:"dead_by,omitempty"`
}

// Balanced reports whether the equation holds.
func (l *TableLedger) Balanced() bool {
	return l.Read == l.Written+l.Folded+l.Filtered+l.Dead+l.Late+l.Open
}

// Query asks for the statements of a SQL text to be run in order.
type Query struct {
	Files []SQLFile         `json:"files"`
	Set   map[string]string `json:"set,omitempty"`
	// Job makes the tables of a job known to the query.
	Job string `json:"job,omitempty"`
	// SafeNumbers writes DECIMAL and large BIGINT values as JSON strings.
	SafeNumbers bool `json:"safe_numbers,omitempty"`
}

// Preview asks for a job to be run over a stretch of its topics.
type Preview struct {
	Files []SQLFile         `json:"files"`
	Set   map[string]string `json:"set,omitempty"`
	// Range is in the grammar of jobs/readrange; Limit the rows of each table.
	Range string `json:"range"`
	Limit int64  `json:"limit"`
}

// QueryResult receives the results of a query.
type QueryResult interface {
	// Begin starts the result of a statement that has rows.
	Begin(columns []Column) error
	// Row is a JSON object with the columns in order; valid until it returns.
	Row(object json.RawMessage) error
	// Done ends a statement: a sentence for one without rows.
	Done(message string) error
}

// Column is a result column.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// Job is a job as `jobs ls` shows it.
type Job struct {
	Name    string       `json:"job"`
	ID      string       `json:"id"`
	State   string       `json:"state"`
	Started time.Time    `json:"started"`
	Tables  []TableState `json:"tables"`
	Lanes   []LaneState  `json:"lanes"`
	Stages  []StageState `json:"stages,omitempty"`
}

// StageState is one keyed stage of a running job.
type StageState struct {
	Stage string `json:"stage"`
	// StateBytes is its state in memory, SpilledBytes what lies on disk of it.
	StateBytes   int64 `json:"state_bytes"`
	SpilledBytes int64 `json:"spilled_bytes"`
	// Emitted counts results, Checkpoint is the last completed one.
	Emitted    int64  `json:"emitted"`
	Checkpoint uint64 `json:"checkpoint"`
}

// TableState is what a job is doing for one table.
type TableState struct {
	Table string `json:"table"`
	// OpenRows wait in open files; NextFile is when the next is due.
	OpenRows int64      `json:"open_rows"`
	NextFile *time.Time `json:"next_file,omitempty"`
	Written  int64      `json:"written"`
	Dead     int64      `json:"dead"`
	Late     int64      `json:"late"`
	Files    int64      `json:"files"`
	// AnnounceError is why complete partitions of the table cannot be announced now;
	// it is tried again.
	AnnounceError string `json:"announce_error,omitempty"`
}

// LaneState is one lane.
type LaneState struct {
	Lane      string `json:"lane"`
	Topic     string `json:"topic"`
	State     string `json:"state"`
	Error     string `json:"error,omitempty"`
	Lag       int64  `json:"lag_records"`
	Group     string `json:"slot_group"`
	SinceMsec int64  `json:"since_ms,omitempty"`
}

// Rolled says what a roll committed.
type Rolled struct {
	Job   string `json:"job"`
	Files int64  `json:"files"`
	Rows  int64  `json:"rows"`
}

// ResumeLane lets a stopped or quarantined lane go on.
type ResumeLane struct {
	Job  string `json:"job"`
	Lane string `json:"lane"`
	// SkipLost goes on although records are gone, and lists them as lost.
	SkipLost bool `json:"skip_lost,omitempty"`
	// Rebuild writes rows of finished files again of which nothing is left.
	Rebuild bool `json:"rebuild,omitempty"`
}

// TableHome is a table and where it is.
type TableHome struct {
	Table string `json:"table"`
	Job   string `json:"job"`
	// Home is "main" or "standby"; Place its directory, while the job runs.
	Home  string `json:"home"`
	Place string `json:"place,omitempty"`
	// Standby: the table has two homes. Switches counts its moves.
	Standby  bool   `json:"standby"`
	Switches uint32 `json:"switches"`
	// Moving are partitions whose rows are being written anew, MovingRows those rows.
	Moving     []string `json:"moving,omitempty"`
	MovingRows int64    `json:"moving_rows,omitempty"`
	// FailingSince is since when the home does not take files, Why says how.
	FailingSince *time.Time `json:"failing_since,omitempty"`
	Why          string     `json:"why,omitempty"`
	// Partitions are those that have a home of their own, by name.
	Partitions []PartitionHome `json:"partitions,omitempty"`
}

// PartitionHome is a table partition and where it is.
type PartitionHome struct {
	Partition string `json:"partition"`
	Home      string `json:"home"`
	Announced bool   `json:"announced"`
}

// SwitchTable asks for a table to move.
type SwitchTable struct {
	Table string `json:"table"`
	Job   string `json:"job,omitempty"`
	// To is "main" or "standby".
	To string `json:"to"`
	// Edge: partitions that have begun stay, new ones begin there.
	Edge   bool   `json:"edge,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Switched says what a switch did.
type Switched struct {
	Table string `json:"table"`
	Job   string `json:"job"`
	Home  string `json:"home"`
	// Number is the switch's; Already: the table was there.
	Number  uint32 `json:"switch"`
	Already bool   `json:"already,omitempty"`
	// Moved are partitions whose rows are written anew, Stayed those of which only
	// what comes later is there.
	Moved  []string `json:"moved"`
	Stayed []string `json:"stayed,omitempty"`
	Rows   int64    `json:"rows"`
	// Running: the job runs, and writes there from now on.
	Running bool `json:"running"`
}

// Error is an error that crossed the socket: the owner classified it.
type Error struct {
	// Kind is "input", "environment", "not_found" or "failed".
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Findings are diagnostics of SQL texts, as `check -o json` has them.
	Findings json.RawMessage `json:"findings,omitempty"`
	// Rendered are the findings with source lines and carets.
	Rendered string `json:"rendered,omitempty"`
}

func (e *Error) Error() string { return e.Message }
