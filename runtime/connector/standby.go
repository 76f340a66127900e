package connector

import (
	"context"
	"time"
)

// Homes of a table, as Artifact.Home has them. A table without a standby has the
// main one alone.
const (
	MainHome uint8 = iota
	StandbyHome
	// Homes is how many there can be.
	Homes = 2
)

// HomeName is a home in one word.
func HomeName(home uint8) string { return [...]string{"main", "standby"}[home&1] }

// StandbyConnector is a SinkConnector whose tables may have a second home: another
// place of the same kind, where they go on when the main one fails.
type StandbyConnector interface {
	SinkConnector
	// Standby gives the table at its second home; nil: it has none. It does not
	// connect.
	Standby(t *Table) (*Standby, error)
}

// Standby is a table's second home.
type Standby struct {
	// Table has the columns of the table and the options of its second home; it
	// is opened by OpenSink like the first. Sinks of both implement HomeSink, and
	// their writers PartitionNamer.
	Table *Table
	// Main and Standby are the places, for people.
	Main, Standby string
	// Auto: the table moves by itself when its home has failed for After.
	Auto  bool
	After time.Duration
}

// StandbyPlace is what the options of a table say of its second home.
type StandbyPlace struct {
	// Option is the key that names it, Options are those of the table there.
	Option  string
	Options Values
	Auto    bool
	After   time.Duration
}

// HomeSink is a Sink at one of a table's homes.
type HomeSink interface {
	Sink
	Hurrier
	// Probe looks whether the home takes files: nil when it does. It takes as
	// long as ctx at most.
	Probe(ctx context.Context) error
	// Retract takes artefacts of this home, in whatever state, out of readers'
	// sight for good, and keeps what there is of them where no reader looks. After
	// it no Publish of them has an effect, also one that is under way. It is
	// idempotent; an artefact of which there is nothing is no error.
	Retract(ctx context.Context, a []Artifact) error
	// Purge removes what Retract has kept of artefacts whose rows are in others for
	// good. It is idempotent; an artefact of which nothing was kept is no error.
	Purge(ctx context.Context, a []Artifact) error
}

// HomeCatalog is a HomeSink whose readers find a table partition through a catalog that
// has one place for each: a partition lies at one home alone. Rows that come late for
// one that lies at the other home join it there before it is announced again.
type HomeCatalog interface {
	HomeSink
	PartitionCommitter
	// Elsewhere reports a table partition that the catalog has at the other home, and
	// how many rows the catalog says it has, -1 when it does not.
	Elsewhere(ctx context.Context, tablePartition string) (elsewhere bool, rows int64, err error)
	// Take makes artefacts that are published by the sink at the other home published
	// here, too. It is idempotent.
	Take(ctx context.Context, from HomeSink, a []Artifact) error
}

// PartitionNamer is a Writer that knows a bucket's table partition before rows are
// written into it.
type PartitionNamer interface {
	// TablePartition is the table partition of an id that Buckets gave.
	TablePartition(id BucketID) string
}
