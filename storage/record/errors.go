package record

import "errors"

// Errors that callers branch on; the returned errors wrap them with numbers.
var (
	// ErrTruncated says that the input ends before the batch does. At the end of
	// a growing file this is a torn tail, elsewhere it is damage.
	ErrTruncated = errors.New("batch truncated")
	// ErrMagic says that the batch is not of format 2.
	ErrMagic = errors.New("unsupported batch format")
	// ErrChecksum says that the body does not match the CRC-32C of its header.
	ErrChecksum = errors.New("batch checksum mismatch")
	// ErrCorrupt says that a field contradicts the layout (a negative count, a
	// length past the end, trailing bytes, offsets out of order).
	ErrCorrupt = errors.New("batch corrupt")
	// ErrCodec says that the attributes name a compression this package lacks.
	ErrCodec = errors.New("unknown batch compression")
	// ErrTooLarge says that a batch unpacks to, or would be built to, more bytes
	// than the bound allows.
	ErrTooLarge = errors.New("batch too large")
	// ErrInvalid says that a well-formed batch may not be appended to a log as
	// it is (a gap in its offsets, a header that does not match its records).
	ErrInvalid = errors.New("batch not acceptable")
)
