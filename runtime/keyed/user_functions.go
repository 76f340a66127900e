package keyed

import (
	"fmt"

	"github.com/millrace/millrace/runtime/expr/fn"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/state"
)

// kindUserFunctions is the kind of the section that says which user functions the
// values in an operator's state come from; the operator's own section follows it.
const kindUserFunctions = "UserFunctions"

// functionSection is the list for an operator, false where there is none.
func functionSection(job *graph.Job, id graph.NodeID, path string) (state.Section, bool) {
	used := job.UserFunctions(id)
	if len(used) == 0 {
		return state.Section{}, false
	}
	var b []byte
	for _, v := range used {
		b = state.AppendBytes(state.AppendBytes(b, v.Function), v.Version)
	}
	return state.Section{Path: path, Kind: kindUserFunctions, Fingerprint: state.Fingerprint(nil, kindUserFunctions), Payload: b}, true
}

// checkFunctions refuses state into which another version of a function that the
// operator uses has put values: what it would go on with is a mixture of both.
// Functions that came or went are an edit of the SQL like any other.
func checkFunctions(job *graph.Job, id graph.NodeID, path string, saved []byte) error {
	now := map[string]string{}
	for _, v := range job.UserFunctions(id) {
		now[v.Function] = v.Version
	}
	for r := state.NewReader(saved); r.Rest() > 0; {
		was := fn.Version{Function: r.String(), Version: r.String()}
		if r.Err() != nil {
			return state.ErrCorrupt
		}
		if is, used := now[was.Function]; used && is != was.Version {
			return &state.IncompatibleError{Path: path, Reason: fmt.Sprintf("values in it were made by version %s of the user function %s, and this program has version %s; go back to that version, or start a new generation", was.Version, was.Function, is)}
		}
	}
	return nil
}
