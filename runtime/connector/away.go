package connector

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Hurrier is a Sink whose calls can wait for a system that does not serve them.
type Hurrier interface {
	// Hurry says that the table is about to be closed: from now on calls, those
	// under way included, do not wait for a system that is away; what it serves
	// goes on. It is called from any goroutine, and is final.
	Hurry()
}

// Away is implemented by errors that know whether the system was away: it could
// not be reached, or serves nobody at present.
type Away interface{ Away() bool }

// IsAway reports an error that means that a system is away.
func IsAway(err error) bool {
	var a Away
	if errors.As(err, &a) {
		return a.Away()
	}
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// AwayError ends a start whose system stayed away.
type AwayError struct {
	// What is the table, as "table t".
	What string
	// For is how long it was waited for.
	For time.Duration
	Err error
}

func (e *AwayError) Error() string {
	return fmt.Sprintf("%s: its server was away for %v: %v", e.What, e.For.Round(time.Second), e.Err)
}

// Unwrap gives the last answer, if it was one.
func (e *AwayError) Unwrap() error { return e.Err }
