package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
)

// Deps is what a run is given from above.
type Deps struct {
	// Ledger is open; the run writes Scope's book. Required.
	Ledger *ledger.Ledger
	Scope  ledger.Scope
	// DataDirectory is the data directory's UUID.
	DataDirectory connector.UUID
	// NewUUID makes ids; nil: random (version 4).
	NewUUID func() connector.UUID
	// DeadLetters takes rows that no table can hold. Required.
	DeadLetters lane.DeadLetters
	// Keyed runs keyed stages; nil: a graph with an exchange is refused.
	Keyed KeyedFactory
	// NewEnds: a bounded run stops at the end that it finds, not where one before
	// it was to stop.
	NewEnds bool
	// LeaveCloses: the run adds to tables whose topics another run reads, which
	// alone closes table partitions for the first time.
	LeaveCloses bool
	// Apart reports topics whose lanes in this scope belong to other runs: the
	// dead letters that a replay has read. nil: none.
	Apart func(topic connector.UUID) bool
	// Found is told of the topic of each new lane,
	// before that is recorded; after an error it is looked for again. nil: nobody.
	Found func(ctx context.Context, topic connector.UUID) error
	// Adopt takes table locations over from another owner.
	Adopt bool
	// BatchTime is what clock functions say in a batch job, the same for every
	// row and after every restart; zero: the time of this start.
	BatchTime time.Time
	// Clock; nil is the system's.
	Clock slot.Clock
	// Log; nil discards.
	Log *slog.Logger
	// Notice is told, in order, what the start does: one line for people each.
	// nil: nobody.
	Notice func(line string)
	// Hooks are told what happens, for metrics; nil functions are not called.
	Hooks Hooks
	// Manifest is told of announced table partitions, before they count as such, and
	// of switches. nil: nobody.
	Manifest func(ctx context.Context, m Manifest) error
	// Readiness opens a topic that is told of complete table partitions, for tables
	// whose policy names one. nil: such a table is refused.
	Readiness func(ctx context.Context, topic connector.ReadinessTopic) (func(context.Context, Ready) error, error)
	// MaxDead ends the run with *MaxDeadError when more rows are dead, late
	// ones not counted; nil: no limit.
	MaxDead *int64
}

// Hooks are called from the lanes' goroutines and must not block.
type Hooks struct {
	// Committed is called after each commit with its rows and bytes.
	Committed func(table string, artifacts int, rows, bytes int64, took time.Duration)
	// Changed is called when a lane's state or progress, as Status has it, may be another.
	Changed func()
}

// KeyedFactory makes keyed stages.
type KeyedFactory interface {
	// Open restores the keyed stages of a job: from the newest checkpoint, with
	// every sealed artefact of it published or resolved.
	Open(ctx context.Context, job *graph.Job, env KeyedEnv) (Keyed, error)
}

// KeyedEnv is what the engine gives a keyed stage.
type KeyedEnv struct {
	Book          *ledger.Book
	DeadLetters   lane.DeadLetters
	DataDirectory connector.UUID
	// JobEpoch is this run's.
	JobEpoch uint64
	// ClockMicros, if not 0, is what clock functions say, in microseconds UTC:
	// a batch job reads the clock once.
	ClockMicros int64
	Clock       slot.Clock
	Log         *slog.Logger
	Notice      func(line string)
	// Sinks are the open sinks of the job's sink nodes; the engine closes them.
	Sinks map[graph.NodeID]SinkHandle
	// Outputs are the table ids of the exchanges that lanes feed.
	Outputs map[graph.NodeID]connector.UUID
}

// SinkHandle is an open table.
type SinkHandle struct {
	Table *ledger.Table
	Sink  connector.Sink
}

// Keyed is the running keyed stages of one job.
type Keyed interface {
	// Exchange is the entrance of an exchange node that lanes feed.
	Exchange(node graph.NodeID) (lane.Exchange, error)
	// Done is closed when every stage has ended: after the watermarks of all
	// inlets stand at batch.MaxWatermark and everything is committed, or with
	// an error.
	Done() <-chan struct{}
	// Err is why it ended; nil when it finished.
	Err() error
	// Stop takes a last checkpoint with the inlets closed, commits it and ends.
	Stop(ctx context.Context) error
	// Status describes the stages.
	Status() []StageStatus
}

// StageStatus is one operator of a keyed stage.
type StageStatus struct {
	Name string
	// Watermark is what it has fired up to, in milliseconds.
	Watermark int64
	// Checkpoint is the last completed one, CheckpointAge how long ago.
	Checkpoint    uint64
	CheckpointAge time.Duration
	// StateBytes is the state in memory, SpilledBytes what lies on disk of it.
	StateBytes   int64
	SpilledBytes int64
	Emitted      int64
	// Expired is how many entries of state (keys, rows) were forgotten since the start
	// because their time to live was over.
	Expired int64
	// Holds names what holds the watermark back, for people.
	Holds []string
}

// Status is a snapshot of a run.
type Status struct {
	Started time.Time
	// Recovering: lanes have not all reached the heads of the last run.
	Recovering bool
	Tables     []TableStatus
	Lanes      []lane.Status
	Stages     []StageStatus
	// Rows are the live equations: one a table, topic and partition.
	Rows []ledger.Row
}

// TableStatus is one output, summed over its lanes.
type TableStatus struct {
	Name     string
	Exchange bool
	// Counts in rows after decoding; Read - Counts.Open() rows are accounted
	// for and Open are in open files.
	Counts ledger.Counts
	Open   int64
	// RowsPerSecond is rows read, over the last ten seconds or so.
	RowsPerSecond float64
	// OpenFiles and NextFile: when the oldest open file will be sealed by age
	// at the latest; zero when none is open.
	OpenFiles int
	NextFile  time.Time
	Committed int64
	// Files is the artefacts committed by this run.
	Files int64
	// Partitions of the table that are open, closed and announced.
	OpenPartitions, Announced int
	// Home is where the table is; nil: it has one home.
	Home *HomeStatus
	// AnnounceError is why partitions that are closed could not be announced;
	// it is tried again.
	AnnounceError string
}
