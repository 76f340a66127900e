package connector

// OnError says what becomes of a row that cannot be used.
type OnError uint8

const (
	// OnErrorDeadLetter: it goes to the table's dead letter. The default.
	OnErrorDeadLetter OnError = iota
	// OnErrorDrop: it is dropped and counted as filtered, by reason.
	OnErrorDrop
	// OnErrorFail: the lane stops at it.
	OnErrorFail
)

// String is the policy as options spell it.
func (o OnError) String() string { return [...]string{"dead-letter", "drop", "fail", "?"}[o&3] }

// DecodePolicy is a Source whose table says what becomes of malformed records
// (Notes) and of values that the decoder marked as errors ('<format>.on-error').
// A Source without it has OnErrorDeadLetter.
type DecodePolicy interface {
	// DecodeErrors gives the policy for what the decoder could not make NULL,
	// and whether a value error's code is one of a decoder, so that this
	// policy holds for it and not 'lane.on-error'.
	DecodeErrors() (OnError, func(code string) bool)
}

// ByteCounter is a Reader that counts its input.
type ByteCounter interface {
	// InputBytes is how many bytes of records, as stored in the source and
	// decompressed, Next has decoded since Open.
	InputBytes() int64
}

// EpochLister is a Reader that knows the leader epoch of what it reads. A
// Reader without it reads at the epoch of its split's start.
type EpochLister interface {
	// LeaderEpoch is the leader epoch of the last record that Next gave of a
	// split; it is stored with the position behind that record.
	LeaderEpoch(split int32) int32
}
