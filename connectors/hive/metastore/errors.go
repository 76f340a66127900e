package metastore

import (
	"errors"
	"fmt"
	"strings"
)

// What the metastore says of a call that it refuses; the causes of a [Fault].
var (
	// ErrMeta is the metastore's own failure: its database, its warehouse, or
	// an argument it cannot work with.
	ErrMeta             = errors.New("metastore error")
	ErrNoSuchObject     = errors.New("no such object")
	ErrAlreadyExists    = errors.New("already exists")
	ErrInvalidObject    = errors.New("invalid object")
	ErrInvalidOperation = errors.New("invalid operation")
	// ErrUnknownMethod: the server does not have the call, being too old or
	// too new.
	ErrUnknownMethod = errors.New("unknown method")
	// ErrInternal is an exception that the server did not declare.
	ErrInternal = errors.New("internal error of the metastore")
)

// Fault is an exception that the metastore answered with.
type Fault struct {
	// Method is the Thrift call, Message the server's own words.
	Method, Message string
	// Cause is one of the errors above.
	Cause error
	// Hint says what to do about it; "" when there is nothing to say.
	Hint string
}

func (f *Fault) Error() string {
	s := f.Method + ": " + f.Cause.Error()
	if f.Message != "" {
		s += ": " + f.Message
	}
	if f.Hint != "" {
		s += " (" + f.Hint + ")"
	}
	return s
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

// Retryable implements connector.Retryable: what fails in the metastore itself,
// as its database being busy, may go away.
func (f *Fault) Retryable() bool {
	return (f.Cause == ErrMeta || f.Cause == ErrInternal) && !f.denied()
}

// withoutStack leaves out where in the server's code, or in that of a file system behind it,
// the exception comes from: dozens of lines between what happened and the hint.
func withoutStack(message string) string {
	var kept []string
	for line := range strings.Lines(message) {
		if !strings.HasPrefix(line, "\tat ") {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, ""))
}

// denied reports that the user of the call lacks a right. The metastore has no exception of
// its own for that: it gives the text of the file system's.
func (f *Fault) denied() bool {
	return strings.Contains(f.Message, "AccessControlException") || strings.Contains(f.Message, "Permission denied")
}

// CallError is a call without an answer.
type CallError struct {
	Method, Address string
	// Sent: the request left, and may have been carried out.
	Sent bool
	Err  error
}

func (e *CallError) Error() string {
	if e.Sent {
		return fmt.Sprintf("%s at %s: no answer, the outcome is unknown: %v", e.Method, e.Address, e.Err)
	}
	return fmt.Sprintf("%s at %s: %v", e.Method, e.Address, e.Err)
}

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// Retryable implements connector.Retryable.
func (e *CallError) Retryable() bool { return true }

// ErrUnavailable is the cause of a CallError when no address could be reached.
var ErrUnavailable = errors.New("no metastore can be reached")

var errClosed = errors.New("client is closed")
