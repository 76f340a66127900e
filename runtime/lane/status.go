package lane

import (
	"time"

	"github.com/millrace/millrace/runtime/connector"
)

// State is what a lane does.
type State uint8

const (
	// Starting: fencing and resolving.
	Starting State = iota
	// Running: reading, or waiting for input.
	Running
	// BackingOff: waits before the next attempt.
	BackingOff
	// Quarantined: failed too often; runs on by command or by time.
	Quarantined
	// Stopped: the lane waits for a decision (a mismatch, an unknown outcome)
	// or was fenced.
	Stopped
	// Finished: all input is committed.
	Finished
	// Failed: ended with an error for good ('fail' policies).
	Failed
)

// String is the state in one word.
func (s State) String() string {
	return [...]string{"starting", "running", "backing-off", "quarantined", "stopped", "finished", "failed", "?"}[s&7]
}

// Ended reports a state that the lane does not leave by itself.
func (s State) Ended() bool { return s >= Stopped }

// Status is a snapshot of a lane.
type Status struct {
	// Name is "topic" or "topic/source", with the set number when it is not 0.
	Name  string
	ID    connector.LaneID
	Epoch uint64
	State State
	// Error is why it is not running; Retry when it will try again.
	Error   string
	Retry   time.Time
	Topic   string
	Source  string
	Outputs []OutputStatus
	// Partitions of the source.
	Partitions []PartitionStatus
}

// PartitionStatus is one source partition of a lane.
type PartitionStatus struct {
	Partition int32
	// Next is the first offset not read yet, End the log's end as far as known:
	// the lag is their difference in offsets.
	Next, End int64
	// Watermark in milliseconds.
	Watermark int64
	Idle      bool
}

// Lag is how many offsets are not read yet.
func (p PartitionStatus) Lag() int64 { return max(p.End-p.Next, 0) }

// OutputStatus is one output of a lane.
type OutputStatus struct {
	Table    string
	Exchange bool
	// Detached: it was blocked too long and reads on its own until it has
	// caught up. Blocked is for how long it is blocked now.
	Detached bool
	Blocked  time.Duration
	OpenRows int64
	Files    int
	// NextFile is when its oldest open file is sealed by age at the latest.
	NextFile time.Time
}
