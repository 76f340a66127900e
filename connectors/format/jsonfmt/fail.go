package jsonfmt

import (
	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/runtime/batch"
)

// reason is why a value does not fit its type.
type reason uint8

const (
	notOfType reason = iota
	outOfRange
	tooManyDigits
	tooLong
	noRoom
	badMapKey
)

// null appends NULL, or an error to a column that cannot be NULL.
func (d *Decoder) null(n *node) {
	if n.nullable {
		format.AppendNull(n.vec)
		return
	}
	d.fail(n, batch.CodeNullInNotNull, format.NullInNotNull, func() string { return "null in a NOT NULL column" })
}

// missing fills the place of a key that the object does not have.
func (d *Decoder) missing(n *node) {
	switch {
	case d.failMissing:
		d.fail(n, batch.CodeMissingField, format.FailedMissing, func() string { return "the field is missing" })
	case n.nullable:
		format.AppendNull(n.vec)
		d.a.Count(int(n.column), format.Missing)
	default:
		d.fail(n, batch.CodeNullInNotNull, format.NullInNotNull, func() string { return "the field of a NOT NULL column is missing" })
	}
}

// unfit appends the error of a value, written as token, that does not fit.
func (d *Decoder) unfit(n *node, token []byte, why reason) {
	d.fail(n, batch.CodeTypeMismatch, format.Mismatch, func() string {
		s, t := format.Excerpt(token), n.typ.WithNullable(true).String()
		switch why {
		case outOfRange:
			return s + " is out of range for " + t
		case tooManyDigits:
			return s + " has more digits behind the point than " + t
		case tooLong:
			return s + " is too long for " + t
		case noRoom:
			return s + " does not fit into the batch: a column holds at most 2 GiB"
		case badMapKey:
			return s + " has a key that does not fit " + t
		}
		return s + " is not " + t
	})
}

// fail appends an error, or NULL where the policy and the column allow it.
func (d *Decoder) fail(n *node, code batch.Code, c format.Counter, message func() string) {
	d.a.Count(int(n.column), c)
	if n.nullable && d.policy.Nulls() {
		d.a.Count(int(n.column), format.Nulled)
		format.AppendNull(n.vec)
		return
	}
	// Invariant 8: a record of many faults does not make many messages.
	text := "further values of the record do not fit"
	if d.faults++; d.faults <= maxMessages {
		text = message()
	}
	format.AppendErr(n.vec, code, n.path, text)
}

// maxMessages is how many errors of one record have a message of their own.
const maxMessages = 100
