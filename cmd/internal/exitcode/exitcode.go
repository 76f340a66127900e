package exitcode

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/millrace/millrace/runtime/connector"
)

// Code is a process exit code.
type Code int

// The codes of the command line's contract.
const (
	OK          Code = 0
	Failed      Code = 1
	Input       Code = 2
	Environment Code = 3
	Partial     Code = 4
	Interrupted Code = 130
	Terminated  Code = 143
)

// Error is an error with the exit code it leads to.
type Error struct {
	Code Code
	Err  error
	// Silent: whatever there is to say has been printed already.
	Silent bool
}

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the error itself.
func (e *Error) Unwrap() error { return e.Err }

// With attaches a code to an error; nil stays nil.
func With(code Code, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: code, Err: err}
}

// Printed is an error of which everything has been printed.
func Printed(code Code, err error) error {
	return &Error{Code: code, Err: err, Silent: true}
}

// Of classifies an error: the code that was attached to it, Environment for
// errors of the operating system and for servers that are away, else Failed.
func Of(err error) Code {
	if err == nil {
		return OK
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	var errno syscall.Errno
	var path *fs.PathError
	var away *connector.AwayError
	if errors.As(err, &errno) || errors.As(err, &path) || errors.As(err, &away) {
		return Environment
	}
	return Failed
}

// IsSilent reports whether the error has been printed already.
func IsSilent(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Silent
}
