package fullcache

import (
	"slices"

	"github.com/millrace/millrace/runtime/connector"
)

// Keys of the options, which are Flink's but for KeyMaxBytes.
const (
	KeyStrategy = "lookup.full-cache.reload-strategy"
	KeyInterval = "lookup.full-cache.periodic-reload.interval"
	KeyMode     = "lookup.full-cache.periodic-reload.schedule-mode"
	KeyMaxBytes = "lookup.full-cache.max-bytes"
)

// SpecOptions declares the options.
func SpecOptions() []connector.Option {
	return []connector.Option{
		{Key: KeyStrategy, Type: connector.OptEnum, Enum: []string{"PERIODIC"}, Default: "PERIODIC",
			Refused: map[string]string{"TIMED": "not_yet: reloading at a time of day; use '" + KeyInterval + "'"},
			Doc:     "When it is read again: after an interval."},
		{Key: KeyInterval, Type: connector.OptDuration,
			Doc: "After how long a table that is looked up is read again, by the first lookup after it. Unset: it is read once in a run."},
		{Key: KeyMode, Type: connector.OptEnum, Enum: []string{"FIXED_DELAY"}, Default: "FIXED_DELAY",
			Refused: map[string]string{"FIXED_RATE": "not_yet: the interval counts from the last reading"},
			Doc:     "The interval counts from the beginning of the last reading."},
		{Key: KeyMaxBytes, Type: connector.OptBytes, Default: "256MB",
			Doc: "How much memory a table that is looked up may take, for each join with it; one that is bigger is an error. During a reload there are two of them. Not Flink's."},
	}
}

// Validate refuses options that make no sense.
func Validate(v connector.Values) error {
	if v.Has(KeyInterval) && v.Duration(KeyInterval) <= 0 {
		return &connector.OptionError{Key: KeyInterval, OnValue: true, Message: "a table cannot be read again after no time"}
	}
	if v.Has(KeyMaxBytes) && v.Bytes(KeyMaxBytes) <= 0 {
		return &connector.OptionError{Key: KeyMaxBytes, OnValue: true, Message: "a table needs memory to be looked up"}
	}
	return nil
}

// From fills what a table's options say.
func (o Options) From(v connector.Values) Options {
	o.Interval = v.Duration(KeyInterval)
	return o
}

// Columns are the columns to read for lookups by keys that give others, in the order of
// the table, and where the keys and the others are among them.
func Columns(keys, columns []int) (read, keyAt, columnAt []int) {
	read = slices.Concat(keys, columns)
	slices.Sort(read)
	read = slices.Compact(read)
	for _, k := range keys {
		keyAt = append(keyAt, slices.Index(read, k))
	}
	for _, c := range columns {
		columnAt = append(columnAt, slices.Index(read, c))
	}
	return read, keyAt, columnAt
}
