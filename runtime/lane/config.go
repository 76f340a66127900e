package lane

import (
	"context"
	"log/slog"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/runtime/slot"
	"github.com/millrace/millrace/runtime/types"
)

// Config is a lane.
type Config struct {
	// Name is for people.
	Name string
	// Fact is the lane's identity: one topic, a fixed set of its partitions.
	Fact *ledger.Lane
	// Young: Fact is recorded by this run, and its topic came after the tables of all
	// outputs were first read: from its first record on.
	Young bool
	// Partitions are Fact's partitions, in its order; batch.Run.Partition is an
	// index into them.
	Partitions []connector.Partition
	// Job and Sources: the source nodes that read this topic as one table.
	Job     *graph.Job
	Sources []graph.NodeID
	// Source is that table, open; the caller closes it.
	Source connector.Source
	// Lookups are the tables that are looked up, open, by node; the caller closes
	// them.
	Lookups map[graph.NodeID]connector.Lookup
	// EndsBy is the hash of the options that say where reading ends: while it is
	// the same, a lane that starts again stops where it was to stop at first,
	// unless NewEnds says that every run has its own end.
	EndsBy  uint64
	NewEnds bool
	// ClockMicros, if not 0, is what clock functions say, in microseconds UTC.
	ClockMicros int64
	// Outputs in a fixed order.
	Outputs []OutputConfig

	Book        *ledger.Book
	DeadLetters DeadLetters
	// Slot that the lane starts in.
	Slot *slot.Slot
	Zone *types.Zone
	Log  *slog.Logger
	// Notice tells people what the start of the lane does; never nil.
	Notice func(line string)
	// Changed is called without arguments whenever Status may have changed in
	// a way that others act upon (progress, states); it must not block.
	Changed func()
	// Committed is called after each commit.
	Committed func(table string, artifacts int, rows, bytes int64, took time.Duration)
	// Dead is called with the rows that became dead in this run, by table.
	Dead    func(table string, rows int64)
	Options Options
}

// OutputConfig is one output.
type OutputConfig struct {
	Table *ledger.Table
	// Nodes are the sink nodes of the table, or the one exchange node.
	Nodes []graph.NodeID

	// Sink and what belongs to it; nil for an exchange.
	Sink            connector.Sink
	SinkTable       *connector.Table
	OnError         graph.ErrorPolicy
	NotNull         graph.ErrorPolicy
	PartitionCloser PartitionCloser // nil: the table has no commit policy
	// Aside: rows that are late for their table partition are written aside; Sink's
	// writers are connector.AsideWriter, and PartitionCloser is not nil.
	Aside bool
	// Late, if not nil: the table takes late rows alone.
	Late *graph.LateFilter

	// Exchange and what belongs to it; nil for a sink.
	Exchange Exchange
	Stage    *graph.Node // the stateful node behind it
	// IdleTimeout of the source, 0: never idle.
	IdleTimeout time.Duration
}

// PartitionCloser is a table's one committer, as an output sees it.
type PartitionCloser interface {
	// Intend appends intents whose files are to come into table partitions, of a
	// table whose late rows are written aside: ErrPartitionClosed when one of these
	// takes no more.
	Intend(ctx context.Context, facts []ledger.Fact, tablePartitions []string) error
	// Commit appends the facts of a commit that brought files into table
	// partitions, together with what reopens those that were announced.
	Commit(ctx context.Context, facts []ledger.Fact, tablePartitions []string) error
	// Wanted reports whether the open files of a table partition are to be
	// sealed now.
	Wanted(tablePartition string) bool
}

// Options are the lane.* keys; the zero value works.
type Options struct {
	// DetachAfter: an output blocked this long reads on its own ('lane.detach-after', 30 s).
	DetachAfter time.Duration
	// ReplayMaxBytes bounds head - resume ('lane.replay.max-bytes', 256 MiB).
	ReplayMaxBytes int64
	// BatchRows and BatchBytes bound a batch (4,096 rows, 1 MiB).
	BatchRows, BatchBytes int
	// Linger is how long small input waits for more (200 ms); negative: not.
	Linger time.Duration
	// HeadDelay and HeadEvery: when and how often heads are written (200 ms, 5 s;
	// the waits of an attempt double from one to the other).
	HeadDelay, HeadEvery time.Duration
	// CursorEvery is how often cursors move without a commit (5 s).
	CursorEvery time.Duration
	// RestartMin and RestartMax bound the back-off between attempts (500 ms, 60 s).
	RestartMin, RestartMax time.Duration
	// QuarantineAfter is the number of failed attempts in a row after which the
	// lane is quarantined (10), QuarantineFor how long (10 min).
	QuarantineAfter int
	QuarantineFor   time.Duration
	// PublishTries is how often a publish that left its artefact sealed is tried
	// again within an attempt (3).
	PublishTries int
	// DeadMaxRate is the dead rows a second, over ten seconds, above which the
	// lane stops ('dead.max-rate'); 0: no limit.
	DeadMaxRate int64
	// Seed feeds random functions and the jitter of the back-off.
	Seed uint64
}

// WithDefaults fills in what is zero.
func (o Options) WithDefaults() Options {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&o.DetachAfter, 30*time.Second)
	def(&o.Linger, 200*time.Millisecond)
	def(&o.HeadDelay, 200*time.Millisecond)
	def(&o.HeadEvery, 5*time.Second)
	def(&o.CursorEvery, 5*time.Second)
	def(&o.RestartMin, 500*time.Millisecond)
	def(&o.RestartMax, time.Minute)
	def(&o.QuarantineFor, 10*time.Minute)
	if o.ReplayMaxBytes == 0 {
		o.ReplayMaxBytes = 256 << 20
	}
	if o.BatchRows == 0 {
		o.BatchRows = 4096
	}
	if o.BatchBytes == 0 {
		o.BatchBytes = 1 << 20
	}
	if o.QuarantineAfter == 0 {
		o.QuarantineAfter = 10
	}
	if o.PublishTries == 0 {
		o.PublishTries = 3
	}
	return o
}
