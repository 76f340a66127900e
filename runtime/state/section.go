package state

import (
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/millrace/millrace/runtime/types"
)

// Section is the saved state of one operator in one subtask.
type Section struct {
	// Path identifies the operator (graph.Node.Path), Kind its type.
	Path, Kind string
	// Fingerprint is of what the state depends on: types of keys, the window.
	Fingerprint uint64
	// Payload is the one part that the section has, unless there is a Body. Sections of
	// a FileReader have neither.
	Payload []byte
	// Body is the parts of state that is large or partly on disk.
	Body *Payload
}

// IncompatibleError says that saved state cannot be taken over by an operator.
type IncompatibleError struct {
	Path   string
	Reason string
}

func (e *IncompatibleError) Error() string {
	return fmt.Sprintf("the saved state of %q cannot be used: %s", e.Path, e.Reason)
}

// Fingerprint hashes types (without nullability) and whatever else state depends
// on, for Section.Fingerprint.
func Fingerprint(columns []types.Type, more ...string) uint64 {
	var b []byte
	for _, t := range columns {
		b = AppendBytes(b, t.WithNullable(true).String())
	}
	b = append(b, 0)
	for _, s := range more {
		b = AppendBytes(b, s)
	}
	return xxhash.Sum64(b)
}
