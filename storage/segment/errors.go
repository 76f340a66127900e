package segment

import (
	"errors"
	"fmt"
)

// Errors that callers branch on.
var (
	// ErrNotSegment says that the file is not a segment, or that nothing in it
	// can be recognized.
	ErrNotSegment = errors.New("not a segment file")
	// ErrVersion says that the file was written by a newer format.
	ErrVersion = errors.New("unknown segment version")
	// ErrNoFooter says that an index was rebuilt because the file has no footer:
	// it was never sealed, or its end is lost.
	ErrNoFooter = errors.New("segment has no footer")
	// ErrFooter says that an index was rebuilt because the footer is damaged.
	ErrFooter = errors.New("segment footer damaged")
	// ErrOffset says that the segment has nothing of the partition at or after
	// the offset.
	ErrOffset = errors.New("offset not in segment")
	// ErrOrder says that batches were appended out of order.
	ErrOrder = errors.New("batches out of order")
	// ErrFailed says that an earlier write or sync failed and the Writer is out
	// of use.
	ErrFailed = errors.New("segment writer failed earlier")
)

// RotError says that stored bytes changed. Offsets From to To of the partition
// cannot be read; reading may go on at To+1.
type RotError struct {
	Path      string
	Partition uint64
	From, To  int64 // offsets, both included
	Position  int64 // in the file, bytes
	Length    int64 // bytes
	Err       error // what was found
}

// Error names the partition, the offsets and the place in the file.
func (e *RotError) Error() string {
	return fmt.Sprintf("%s: rotten batch of partition %d, offsets %d to %d (bytes %d to %d): %v",
		e.Path, e.Partition, e.From, e.To, e.Position, e.Position+e.Length, e.Err)
}

// Unwrap returns what was found.
func (e *RotError) Unwrap() error { return e.Err }

// ShortBufferError says that the caller's buffer cannot take the extent that
// holds the offset. Nothing was read.
type ShortBufferError struct {
	Need int // bytes
}

// Error says how many bytes are needed.
func (e *ShortBufferError) Error() string {
	return fmt.Sprintf("buffer too small: %d bytes needed", e.Need)
}
