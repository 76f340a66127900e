package filesystem

import (
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
)

// damage is the error of a compressed file whose text cannot be read from a position on.
// The lane has all that lies before it, and other files go on.
func (s *Source) damage(w *splitWork, at int64, cause error) error {
	s.mu.Lock()
	s.torn[w.split.From.Partition.TopicID] = cause
	s.mu.Unlock()
	p := w.split.From
	p.Offset = at
	return damaged(p, w.end, cause)
}

func (s *Source) tornOf(id connector.UUID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.torn[id]
}

func damaged(at connector.Position, end int64, cause error) *connector.MismatchError {
	return &connector.MismatchError{Position: at, Earliest: end, Latest: end, Lost: -1, Damaged: true, Err: cause,
		Reason: fmt.Sprintf("%s; records from byte %d of the text on cannot be read", cause, at.Offset)}
}
