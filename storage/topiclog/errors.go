package topiclog

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// Errors that callers branch on; the returned errors wrap them with names and
// numbers.
var (
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("log store is closed")
	// ErrTopicNotFound says that there is no topic of that name or id.
	ErrTopicNotFound = errors.New("topic not found")
	// ErrTopicExists says that the name is taken.
	ErrTopicExists = errors.New("topic exists already")
	// ErrTopicClosing says that the topic takes no more appends because it is
	// being deleted.
	ErrTopicClosing = errors.New("topic is being deleted")
	// ErrPartitionNotFound says that the partition does not exist or was
	// deleted with its topic.
	ErrPartitionNotFound = errors.New("partition not found")
	// ErrInvalidTopic says that a topic's name or partition count is not
	// acceptable.
	ErrInvalidTopic = errors.New("invalid topic")
	// ErrInvalidBatch says that the batches cannot be appended.
	ErrInvalidBatch = errors.New("invalid record batch")
	// ErrTooLarge says that a batch is larger than the topic's
	// max.message.bytes.
	ErrTooLarge = errors.New("record batch too large")
	// ErrOffsetOutOfRange says that there is no such offset to read; see
	// OffsetError.
	ErrOffsetOutOfRange = errors.New("offset out of range")
	// ErrFenced says that the partition's shard takes no appends since a write
	// or fsync failed; the store must be opened again.
	ErrFenced = errors.New("log shard is fenced")
	// ErrDiskFull says that there is no space; see DiskFullError.
	ErrDiskFull = errors.New("disk is full")
	// ErrCorrupt says that records are lost to damage; see CorruptError.
	ErrCorrupt = errors.New("records are damaged")
	// ErrSubscribed says that a topic still has subscribers; see
	// SubscribedError.
	ErrSubscribed = errors.New("topic has subscribers")
	// ErrSequence says that a batch of an idempotent producer does not follow its
	// last one; see SequenceError.
	ErrSequence = errors.New("out of order sequence")
	// ErrProducerEpoch says that the producer has a newer epoch.
	ErrProducerEpoch = errors.New("producer epoch is not the latest")
	// ErrCoordinatorEpoch says that a marker comes from a coordinator of the past.
	ErrCoordinatorEpoch = errors.New("coordinator epoch is not the latest")
	// ErrTransactionState says that a transaction does not allow that now.
	ErrTransactionState = errors.New("not allowed in this state of the transaction")
	// ErrFormat says that a file is not of a format or version this program
	// knows.
	ErrFormat = errors.New("unknown file format")
	// ErrDamaged says that the store cannot be opened without losing something
	// whose owner is unknown.
	ErrDamaged = errors.New("log store is damaged")
)

// errNoSpace is the cause of refusals while the disk is known to be full.
var errNoSpace = fmt.Errorf("waiting for space: %w", syscall.ENOSPC)

// OffsetError says which offsets can be read.
type OffsetError struct {
	Topic      string
	Index      int32
	Offset     int64
	Start, End int64
}

// Error names the partition and its bounds.
func (e *OffsetError) Error() string {
	return fmt.Sprintf("topic %s partition %d: offset %d is outside %d..%d", e.Topic, e.Index, e.Offset, e.Start, e.End)
}

// Unwrap makes errors.Is(err, ErrOffsetOutOfRange) hold.
func (e *OffsetError) Unwrap() error { return ErrOffsetOutOfRange }

// CorruptError says which offsets are lost. Reading goes on at To + 1.
type CorruptError struct {
	Topic    string
	Index    int32
	From, To int64
	Detail   string
}

// Error names the partition and the offsets.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("topic %s partition %d: offsets %d..%d are damaged: %s", e.Topic, e.Index, e.From, e.To, e.Detail)
}

// Unwrap makes errors.Is(err, ErrCorrupt) hold.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// DiskFullError says that an append did not happen for want of space. It may be
// tried again.
type DiskFullError struct {
	Dir string
	Err error
}

// Error names the directory.
func (e *DiskFullError) Error() string {
	return fmt.Sprintf("no space left in %s: %v", e.Dir, e.Err)
}

// Unwrap makes errors.Is hold for ErrDiskFull and the system's error.
func (e *DiskFullError) Unwrap() []error { return []error{ErrDiskFull, e.Err} }

// Retryable reports that the same request may succeed later.
func (e *DiskFullError) Retryable() bool { return true }

// FencedError says why a shard takes no appends.
type FencedError struct {
	Shard int
	Err   error
}

// Error names the shard and the first failure.
func (e *FencedError) Error() string {
	return fmt.Sprintf("log shard %d takes no appends until it is opened again: %v", e.Shard, e.Err)
}

// Unwrap makes errors.Is hold for ErrFenced and the first failure.
func (e *FencedError) Unwrap() []error { return []error{ErrFenced, e.Err} }

// SequenceError says which sequence number a producer should have sent.
type SequenceError struct {
	ProducerID     int64
	Epoch          int16
	Sequence, Want int32
}

// Error names the producer and the numbers.
func (e *SequenceError) Error() string {
	return fmt.Sprintf("producer %d epoch %d sent sequence %d, expected %d", e.ProducerID, e.Epoch, e.Sequence, e.Want)
}

// Unwrap makes errors.Is(err, ErrSequence) hold.
func (e *SequenceError) Unwrap() error { return ErrSequence }

// SubscribedError says who reads the topic.
type SubscribedError struct {
	Topic  string
	Owners []string
}

// Error names the topic and its subscribers.
func (e *SubscribedError) Error() string {
	return fmt.Sprintf("topic %s is read by %s", e.Topic, strings.Join(e.Owners, ", "))
}

// Unwrap makes errors.Is(err, ErrSubscribed) hold.
func (e *SubscribedError) Unwrap() error { return ErrSubscribed }

// ConfigError says which topic option is wrong.
type ConfigError struct {
	Key, Value string
	// Reason says what is wrong with the value; empty for an unknown key.
	Reason string
	// Nearest is the known key most like an unknown one, if any is.
	Nearest string
}

// Error names the option.
func (e *ConfigError) Error() string {
	switch {
	case e.Reason != "":
		return fmt.Sprintf("topic option %s = %q: %s", e.Key, e.Value, e.Reason)
	case e.Nearest != "":
		return fmt.Sprintf("unknown topic option %s, did you mean %s?", e.Key, e.Nearest)
	default:
		return fmt.Sprintf("unknown topic option %s", e.Key)
	}
}

// OwnedError says that another process owns the data directory.
type OwnedError struct {
	Dir string
	// PID is the owner, 0 if the lock file does not say.
	PID int
	Err error
}

// Error names the owner.
func (e *OwnedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("data directory %s is in use by another process", e.Dir)
	}
	return fmt.Sprintf("data directory %s is in use by process %d", e.Dir, e.PID)
}

// Unwrap returns the lock's error.
func (e *OwnedError) Unwrap() error { return e.Err }
