package format

import (
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
)

// Format makes decoders and encoders of one text format. It has no state.
type Format interface {
	// Spec declares the name and the options, with their full keys
	// ("json.on-error"). Connectors put it into connector.Spec.Formats.
	Spec() connector.FormatSpec
	// Policy is what the table's options say about faulty records and values.
	// The error is a *connector.OptionError.
	Policy(o Options) (Policy, error)
	// NewDecoder compiles a decoder. Errors are *connector.OptionError, or
	// say which column has a type that the format cannot hold.
	NewDecoder(c DecoderConfig) (Decoder, error)
	// NewEncoder compiles an encoder; errors as in NewDecoder.
	NewEncoder(c EncoderConfig) (Encoder, error)
	// Split finds the first record of a file's text: record is its bytes
	// without the line end, advance how far to go on. With atEOF the rest is a
	// record though no line end follows. advance 0: more bytes are needed.
	Split(o Options) SplitFunc
}

// SplitFunc cuts a file into records; see Format.Split.
type SplitFunc func(data []byte, atEOF bool) (advance int, record []byte)

// Options looks up the value of an option that the table sets; ok is false
// when it does not and the default holds. Keys are those of the format's spec.
type Options func(key string) (value string, ok bool)

// HeadChecker is implemented by formats that can tell by its first bytes that a
// file is not of their form at all, so that it is refused instead of giving a
// malformed record for each of its lines.
type HeadChecker interface {
	// CheckHead looks at the first bytes of a file; whole: it is all of them.
	CheckHead(head []byte, whole bool) error
}

// FromValues reads the options of a table. The prefix ("key.", "value." or "")
// stands in front of the format's keys.
func FromValues(v connector.Values, prefix string) Options {
	return func(key string) (string, bool) {
		if key = prefix + key; v.Has(key) {
			return v.String(key), true
		}
		return "", false
	}
}

// FromMap reads options from a map by their full keys; nil is no option.
func FromMap(m map[string]string) Options {
	return func(key string) (string, bool) { s, ok := m[key]; return s, ok }
}

// Value is the option's value, or def when o is nil or does not have the key.
func (o Options) Value(key, def string) string {
	if o != nil {
		if s, ok := o(key); ok {
			return s
		}
	}
	return def
}

// DecoderConfig is what a decoder is compiled from.
type DecoderConfig struct {
	// Fields are the physical columns of the table in declared order.
	Fields []types.Field
	// Columns gives for each field the column of the batch that it fills, -1
	// for a field nobody needs: its text is checked, never converted. nil:
	// field i fills column i.
	Columns []int
	Options Options
}

// Column is the batch column of field i, -1 when it is not needed.
func (c *DecoderConfig) Column(i int) int {
	if c.Columns == nil {
		return i
	}
	return c.Columns[i]
}

// Decoder turns record values into rows. It keeps no reference to the value.
// It may be used for many appenders in turn, so lanes with equal schemas and
// options can share one as long as one of them computes at a time.
type Decoder interface {
	// Decode appends the rows of one record to the columns it was compiled
	// for and returns how many; the other columns of the batch are the
	// caller's to fill. With 0 rows it has added a note. It never fails.
	Decode(value []byte, offset int64, a *Appender) int
}

// EncoderConfig is what an encoder is compiled from.
type EncoderConfig struct {
	// Fields are the columns to write, in order; Columns their columns in the
	// batch (nil: field i is column i).
	Fields  []types.Field
	Columns []int
	Options Options
}

// Column is the batch column of field i.
func (c *EncoderConfig) Column(i int) int {
	if c.Columns == nil {
		return i
	}
	return c.Columns[i]
}

// Encoder writes rows as text. It may be used by several goroutines.
type Encoder interface {
	// AppendRow appends the text of one row to dst, without a line end. An
	// error (a NULL map key under map-null-key.mode FAIL) leaves dst as it
	// was. Values that are errors are written as NULL.
	AppendRow(dst []byte, b *batch.Batch, row int) ([]byte, error)
}

// Refuser is an Encoder that may refuse rows for another reason than the NULL key of
// a map. Sinks that look at a row before they count it as taken ask it.
type Refuser interface {
	// MayRefuse reports whether AppendRow can fail with the columns and options it
	// was compiled for.
	MayRefuse() bool
}

// FieldTypeError says that a format cannot hold a column's type.
type FieldTypeError struct {
	Format, Column string
	Type           types.Type
	Reason         string
}

func (e *FieldTypeError) Error() string {
	return "format " + e.Format + " cannot hold column " + e.Column + " of type " + e.Type.String() + ": " + e.Reason
}
