package clickhouse

import (
	"errors"
	"fmt"

	ch "github.com/ClickHouse/clickhouse-go/v2"
)

// class is what an answer of the server means for a block.
type class uint8

const (
	// classUnknown: the connection broke, or the server cannot say; the block may
	// be there or not.
	classUnknown class = iota
	// classRetry: the server refused it now and may take it later.
	classRetry
	// classPressure: there are too many parts: later, and slower.
	classPressure
	// classSchema: the table is not what it was when the block was made.
	classSchema
	// classData: a value of the block is refused for good.
	classData
	// classStop: the statement itself is wrong, or not allowed.
	classStop
)

// classes are the server's codes, which are the same in all versions. 242, a table that
// is read-only, may come between a replica's tries to commit: the one before may have
// been carried out.
var classes = map[int32]class{
	3: classRetry, 159: classUnknown, 164: classRetry, 202: classRetry, 203: classRetry, 209: classUnknown, 216: classRetry, 210: classUnknown,
	236: classUnknown, 241: classRetry, 242: classUnknown, 243: classRetry, 252: classPressure, 254: classRetry, 285: classRetry, 286: classUnknown,
	319: classUnknown, 394: classUnknown, 425: classUnknown, 999: classUnknown,

	16: classSchema, 20: classSchema, 33: classSchema, 60: classSchema, 81: classSchema, 131: classSchema, 218: classSchema, 349: classSchema,

	6: classData, 27: classData, 38: classData, 41: classData, 53: classData, 69: classData, 70: classData, 72: classData, 153: classData,
	321: classData, 395: classData, 407: classData, 469: classData,

	36: classStop, 47: classStop, 62: classStop, 115: classStop, 192: classStop, 193: classStop, 194: classStop, 195: classStop, 291: classStop,
	497: classStop, 516: classStop,
}

// classOf classifies an error of an INSERT.
func classOf(err error) class {
	var e *ch.Exception
	if !errors.As(err, &e) {
		return classUnknown
	}
	c, ok := classes[e.Code]
	if !ok {
		// Nothing is known of it: looking is safe, giving up is not.
		return classUnknown
	}
	return c
}

// hint says what to do about an error of a class.
func (c class) hint(table string) string {
	switch c {
	case classRetry:
		return "it is tried again"
	case classPressure:
		return "the table has too many parts: the lane slows down until they are merged; raise '" + keyFlushBytes + "' and '" + keyFlushAge + "' if it goes on"
	case classSchema:
		return "table " + table + " has changed: the lane reads its definition again"
	case classStop:
		return "check '" + keyUser + "', '" + keyPassword + "', the grants and the 'settings.*' options"
	}
	return ""
}

// serverError is an error of the server with what to do about it.
type serverError struct {
	err   error
	class class
	table string
}

func (e *serverError) Error() string {
	if h := e.class.hint(e.table); h != "" {
		return fmt.Sprintf("%v; %s", e.err, h)
	}
	return e.err.Error()
}

func (e *serverError) Unwrap() error { return e.err }

// Retryable implements connector.Retryable.
func (e *serverError) Retryable() bool { return e.class != classStop && e.class != classData }
