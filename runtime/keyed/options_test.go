package keyed

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
)

// TestValuesThatMakeNoSense are refused, with what is wrong, in place of a default that
// nobody asked for.
func TestValuesThatMakeNoSense(t *testing.T) {
	faults := func(key, value string) []*connector.OptionError {
		_, errs := (&connector.Spec{Options: Specs()}).Resolve(map[string]string{key: value})
		return slices.DeleteFunc(errs, func(e *connector.OptionError) bool { return e.Missing })
	}
	for _, c := range []struct{ key, value, want string }{
		{optionInterval, "0 s", "not above zero"},
		{optionTimeout, "0 s", "not above zero"},
		{optionState, "0 b", "less than 64 kb"},
		{optionState, "10 kb", "less than 64 kb"},
		{optionState, "much", ""},
		{optionRetained, "0", "outside 1 to 1000"},
	} {
		errs := faults(c.key, c.value)
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), c.want) || errs[0].Key != c.key {
			t.Errorf("%s = %q: %v, want %q", c.key, c.value, errs, c.want)
		}
	}
	for key, value := range map[string]string{optionInterval: "1 ms", optionPause: "0 s", optionState: "64 kb"} {
		if errs := faults(key, value); len(errs) > 0 {
			t.Errorf("%s = %q: %v", key, value, errs)
		}
	}
}

// TestWordsOfTheStateLimit: what is wrong, and a value that would do.
func TestWordsOfTheStateLimit(t *testing.T) {
	e := &StateLimitError{Stage: "out/group", Bytes: 90_000, Limit: 65_536, Operator: "out/group", Kind: "GroupAggregate", Spills: true, Spilled: 3_000_000}
	for _, want := range []string{"more than 65536 bytes a task (90000)", "3000000 bytes are on disk already", "raise slot.state-memory (to '256 kb' or more)"} {
		if !strings.Contains(e.Error(), want) {
			t.Errorf("%q does not say %q", e.Error(), want)
		}
	}
	e = &StateLimitError{Bytes: 300 << 20, Limit: 256 << 20, Kind: "StreamJoin"}
	for _, want := range []string{"does not spill to disk yet", "(to '524288 kb' or more)"} {
		if !strings.Contains(e.Error(), want) {
			t.Errorf("%q does not say %q", e.Error(), want)
		}
	}
}
