package format

import (
	"fmt"

	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
)

// Policy is `<format>.on-error`: what becomes of faulty records and values.
type Policy uint8

const (
	// DeadLetter: a malformed record, and a row that a faulty value reaches,
	// go to the dead letter. The default.
	DeadLetter Policy = iota
	// Drop: they are dropped and counted.
	Drop
	// Null: a faulty value becomes NULL; what cannot be NULL (a malformed
	// record, a NOT NULL column) goes to the dead letter.
	Null
	// NullOrDrop: a faulty value becomes NULL; what cannot is dropped.
	NullOrDrop
	// Fail: the lane stops.
	Fail
)

var policyNames = []string{"dead-letter", "drop", "null", "null-or-drop", "fail"}

// String is the policy as the option spells it.
func (p Policy) String() string { return policyNames[p] }

// Nulls reports whether the decoder makes faulty values NULL.
func (p Policy) Nulls() bool { return p == Null || p == NullOrDrop }

// Remaining is the policy for what the decoder could not make NULL: one of
// DeadLetter, Drop and Fail.
func (p Policy) Remaining() Policy {
	switch p {
	case Null:
		return DeadLetter
	case NullOrDrop:
		return Drop
	}
	return p
}

// DecodeErrors is the answer of connector.DecodePolicy: what becomes of rows that the
// decoder could not make good, and which codes are a decoder's.
func (p Policy) DecodeErrors() (connector.OnError, func(code string) bool) {
	on := connector.OnErrorDeadLetter
	switch p.Remaining() {
	case Drop:
		on = connector.OnErrorDrop
	case Fail:
		on = connector.OnErrorFail
	}
	return on, func(code string) bool { return IsDecodeError(batch.Code(code)) }
}

// ParsePolicy reads `<name>.on-error` and `<name>.ignore-parse-errors`.
func ParsePolicy(name string, o Options) (Policy, error) {
	onKey, ignoreKey := name+".on-error", name+".ignore-parse-errors"
	on, ignore := o.Value(onKey, ""), o.Value(ignoreKey, "")
	switch {
	case on != "" && ignore != "":
		return 0, &connector.OptionError{Key: ignoreKey,
			Message: fmt.Sprintf("options %q and %q both say what happens to faulty records", onKey, ignoreKey),
			Hint:    fmt.Sprintf("keep %q: ignore-parse-errors 'true' is on-error 'null-or-drop', 'false' is 'fail'", onKey)}
	case ignore == "true":
		return NullOrDrop, nil
	case ignore == "false":
		return Fail, nil
	case ignore != "":
		return 0, BadValue(ignoreKey, ignore, "true or false")
	case on == "":
		return DeadLetter, nil
	}
	for i, n := range policyNames {
		if on == n {
			return Policy(i), nil
		}
	}
	return 0, BadValue(onKey, on, "dead-letter, drop, null, null-or-drop or fail")
}

// PolicyOptions declares the two options that ParsePolicy reads.
func PolicyOptions(name string) []connector.Option {
	return []connector.Option{
		{Key: name + ".on-error", Type: connector.OptEnum, Enum: policyNames, Default: "dead-letter",
			Doc: "What happens to malformed records and to rows with a value that does not fit its column. `null` makes the value NULL and dead-letters what cannot be NULL; `null-or-drop` drops that instead; `fail` stops the lane."},
		{Key: name + ".ignore-parse-errors", Type: connector.OptBool,
			Doc: "Flink's option: `true` is on-error `null-or-drop`, `false` written out is on-error `fail`. Not together with `" + name + ".on-error`."},
	}
}

// BadValue is the error of an option value that is none of those allowed.
func BadValue(key, value, want string) error {
	return &connector.OptionError{Key: key, OnValue: true, Message: fmt.Sprintf("%q is not %s", value, want)}
}

// IsDecodeError reports whether a code in Vec.Errs comes from a decoder, so
// that the format's policy applies to it and not `lane.on-error`.
func IsDecodeError(c batch.Code) bool {
	switch c {
	case batch.CodeMalformed, batch.CodeTypeMismatch, batch.CodeMissingField, batch.CodeNullInNotNull:
		return true
	}
	return false
}
