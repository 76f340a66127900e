package metastore

import (
	"errors"
	"fmt"
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
}

func (f *Fault) Error() string {
	if f.Message == "" {
		return f.Method + ": " + f.Cause.Error()
	}
	return fmt.Sprintf("%s: %v: %s", f.Method, f.Cause, f.Message)
}

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

// Retryable implements connector.Retryable: what fails in the metastore itself,
// as its database being busy, may go away.
func (f *Fault) Retryable() bool { return f.Cause == ErrMeta || f.Cause == ErrInternal }

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
