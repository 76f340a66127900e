package keyed

import (
	"fmt"
	"strconv"
	"time"

	"github.com/millrace/millrace/runtime/checkpoint"
	"github.com/millrace/millrace/runtime/connector"
)

// Keys of graph.Job.Options that are read here.
const (
	optionInterval = "execution.checkpointing.interval"
	optionRetained = "execution.checkpointing.num-retained"
	optionPause    = "execution.checkpointing.min-pause"
	optionTimeout  = "execution.checkpointing.timeout"
	optionState    = "slot.state-memory"
)

// Specs declares the options, for checking and documentation.
func Specs() []connector.Option {
	return []connector.Option{
		{Key: optionInterval, Type: connector.OptDuration, Default: "10 s", Check: aboveZero, Doc: "Time between checkpoints of keyed stages: results become visible with them."},
		{Key: optionRetained, Type: connector.OptInt, Default: "5", Min: 1, Max: 1000, Doc: "Checkpoints kept."},
		{Key: optionPause, Type: connector.OptDuration, Default: "0 s", Doc: "Least time between the end of a checkpoint and the beginning of the next."},
		{Key: optionTimeout, Type: connector.OptDuration, Default: "10 min", Check: aboveZero, Doc: "How long a checkpoint may take; one that takes longer ends the job."},
		{Key: optionState, Type: connector.OptBytes, Default: "256 mb", Check: enoughState, Doc: "Memory for the state of one task of a keyed stage. Beyond it state goes to disk where it can (docs/operations.md); a stage with other state that needs more ends with an error."},
	}
}

// aboveZero refuses a duration of nothing, which would be none at all.
func aboveZero(value string) error {
	if d, err := connector.ParseDuration(value); err == nil && d <= 0 {
		return fmt.Errorf("%q is not above zero", value)
	}
	return nil
}

// leastState is the least value of slot.state-memory: with less, the batches of rows that a
// task takes at once are longer than its state may be.
const leastState = 64 << 10

func enoughState(value string) error {
	if n, err := connector.ParseBytes(value); err == nil && n < leastState {
		return fmt.Errorf("%q is less than 64 kb, the least with which a task can work; the default is 256 mb", value)
	}
	return nil
}

// Options of the stages; zero values are replaced by the job's options, then by
// defaults.
type Options struct {
	// CheckpointInterval is the time between checkpoints (10 s); negative: only
	// the last one.
	CheckpointInterval time.Duration
	// MinPause between a checkpoint's end and the next one's beginning (0), and
	// Timeout of one (10 min; negative: none).
	MinPause, Timeout time.Duration
	// DiscardAfter restores exactly this checkpoint and gives up all above it, also
	// if their results began to be published ('--discard-after'); 0: none.
	DiscardAfter uint64
	// Retained manifests (5).
	Retained int
	// MaxUnpublished is how many checkpoints may wait for their publishing (4).
	MaxUnpublished int
	// StateBytes is what the state of one task may hold in memory (256 MiB).
	StateBytes int64
	// SpillBytes is from which on state goes to disk, where there is a place for it
	// (StateBytes).
	SpillBytes int64
	// MeasureEvery is after how many messages a task looks at the size of its state
	// (16).
	MeasureEvery int
	// ChannelBytes is what one channel may hold (4 MiB).
	ChannelBytes int64
	// WriterBytes is what one writer may hold (32 MiB).
	WriterBytes int64
	// DeadBytes is what dead result rows may hold until the next checkpoint, a
	// task (16 MiB); at half of it a checkpoint is asked for.
	DeadBytes int64
	// RetryMin and RetryMax bound the back-off between tries to publish (500 ms,
	// 30 s).
	RetryMin, RetryMax time.Duration
	// GenerationPoll is after how long a generation that is not there is looked for again
	// (10 s).
	GenerationPoll time.Duration
}

func (o Options) withDefaults(job map[string]string) Options {
	if o.CheckpointInterval == 0 {
		o.CheckpointInterval = 10 * time.Second
		if d, err := connector.ParseDuration(job[optionInterval]); err == nil && d > 0 {
			o.CheckpointInterval = d
		}
	}
	if d, err := connector.ParseDuration(job[optionPause]); err == nil && o.MinPause == 0 {
		o.MinPause = d
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Minute
		if d, err := connector.ParseDuration(job[optionTimeout]); err == nil && d > 0 {
			o.Timeout = d
		}
	}
	if o.Retained == 0 {
		o.Retained = checkpoint.DefaultRetained
		if n, err := strconv.Atoi(job[optionRetained]); err == nil && n > 0 {
			o.Retained = n
		}
	}
	if o.StateBytes == 0 {
		o.StateBytes = 256 << 20
		if n, err := connector.ParseBytes(job[optionState]); err == nil && n > 0 {
			o.StateBytes = n
		}
	}
	def := func(n *int64, v int64) {
		if *n == 0 {
			*n = v
		}
	}
	def(&o.SpillBytes, o.StateBytes)
	if o.MeasureEvery == 0 {
		o.MeasureEvery = 16
	}
	def(&o.ChannelBytes, 4<<20)
	def(&o.WriterBytes, 32<<20)
	def(&o.DeadBytes, 16<<20)
	if o.MaxUnpublished == 0 {
		o.MaxUnpublished = checkpoint.DefaultMaxUnpublished
	}
	if o.GenerationPoll == 0 {
		o.GenerationPoll = 10 * time.Second
	}
	if o.RetryMin == 0 {
		o.RetryMin = 500 * time.Millisecond
	}
	if o.RetryMax == 0 {
		o.RetryMax = 30 * time.Second
	}
	return o
}
