package format

// Counter is something that is counted per column.
type Counter uint8

const (
	// Missing: the row's object has no such key; NULL (or an error, see
	// FailedMissing).
	Missing Counter = iota
	// Mismatch: the value does not fit the type; an error.
	Mismatch
	// FailedMissing: a missing key under fail-on-missing-field; an error.
	FailedMissing
	// NullInNotNull: NULL or missing in a NOT NULL column; an error.
	NullInNotNull
	// Nulled: one of the above errors that the policy made NULL instead.
	Nulled
	// Rounded: a DECIMAL lost digits.
	Rounded
	// DuplicateKey: the key came again in one object; the last value stands.
	DuplicateKey

	// NumCounters is the number of counters.
	NumCounters
)

var counterNames = [NumCounters]string{"missing", "type_mismatch", "missing_field", "null_in_not_null", "nulled", "rounded", "duplicate_key"}

// String is the counter's stable name in metrics and reports.
func (c Counter) String() string { return counterNames[c] }

// Counts are the counters of one top-level column; what happens in nested
// values counts for the column they are in.
type Counts [NumCounters]int64

// Add adds o to c.
func (c *Counts) Add(o *Counts) {
	for i := range c {
		c[i] += o[i]
	}
}
