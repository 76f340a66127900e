package operator

import "fmt"

// KeySizeError says that the rows of one key do not fit into memory, where they have to
// be there at once.
type KeySizeError struct {
	// What has the rows.
	What string
	// Bytes is what they take so far, Limit what they may.
	Bytes, Limit int64
}

func (e *KeySizeError) Error() string {
	return fmt.Sprintf("%s has rows of one key that take more than %d bytes of memory (%d): raise 'slot.state-memory'", e.What, e.Limit, e.Bytes)
}

// keyLimit is what the rows of one key may take.
func keyLimit(budget int64) int64 { return max(budget, 8*leastChunk) }

// checkKey is an error where the rows of a key take more: each batch with one of it
// would read and write them all.
func checkKey(what string, bytes, budget int64) error {
	if limit := keyLimit(budget); bytes > limit {
		return &KeySizeError{what, bytes, limit}
	}
	return nil
}
