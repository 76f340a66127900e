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
	KeyTime     = "lookup.full-cache.timed-reload.iso-time"
	KeyDays     = "lookup.full-cache.timed-reload.interval-in-days"
	KeyMaxBytes = "lookup.full-cache.max-bytes"
)

const (
	periodic  = "PERIODIC"
	timed     = "TIMED"
	fixedRate = "FIXED_RATE"
)

// SpecOptions declares the options.
func SpecOptions() []connector.Option {
	return []connector.Option{
		{Key: KeyStrategy, Type: connector.OptEnum, Enum: []string{periodic, timed}, Default: periodic,
			Doc: "When a table that is looked up is read again: after an interval, or at a time of the day. The first lookup after that reads it."},
		{Key: KeyInterval, Type: connector.OptDuration,
			Doc: "With `PERIODIC`: after how long it is read again. Unset: it is read once in a run."},
		{Key: KeyMode, Type: connector.OptEnum, Enum: []string{"FIXED_DELAY", fixedRate}, Default: "FIXED_DELAY",
			Doc: "`FIXED_DELAY`: the interval counts from the end of the last reading; `FIXED_RATE`: the table is read at multiples of it since the first reading, however long reading takes."},
		{Key: KeyTime, Type: connector.OptString, Check: func(s string) error { _, err := parseDaily(s); return err },
			Doc: "With `TIMED`: the time of the day, as `10:15`, `10:15:30`, `10:15:30Z` or `10:15:30+07:00`; without an offset it is the session's (`table.local-time-zone`)."},
		{Key: KeyDays, Type: connector.OptInt, Min: 1, Max: 366, Default: "1", Doc: "With `TIMED`: on each how manyth day; the first is when that time comes next."},
		{Key: KeyMaxBytes, Type: connector.OptBytes, Default: "256MB",
			Doc: "How much memory a table that is looked up may take, for each join with it; one that is bigger is an error. During a reload there are two of them. Not Flink's."},
	}
}

// Keys are those of all options.
func Keys() []string {
	return []string{KeyStrategy, KeyInterval, KeyMode, KeyTime, KeyDays, KeyMaxBytes}
}

// Validate refuses options that make no sense.
func Validate(v connector.Values) error {
	if v.Has(KeyInterval) && v.Duration(KeyInterval) <= 0 {
		return &connector.OptionError{Key: KeyInterval, OnValue: true, Message: "a table cannot be read again after no time"}
	}
	if v.Has(KeyMaxBytes) && v.Bytes(KeyMaxBytes) <= 0 {
		return &connector.OptionError{Key: KeyMaxBytes, OnValue: true, Message: "a table needs memory to be looked up"}
	}
	if v.Has(KeyMode) && !v.Has(KeyInterval) {
		return &connector.OptionError{Key: KeyMode, Message: "'" + KeyMode + "' has no effect without '" + KeyInterval + "'"}
	}
	// A connector that nobody looks up in may share the check, without the options.
	strategy, others := periodic, []string{KeyTime, KeyDays}
	if v.Has(KeyStrategy) && v.String(KeyStrategy) == timed {
		strategy = timed
		if !v.Has(KeyTime) {
			return &connector.OptionError{Key: KeyStrategy, OnValue: true, Message: "'" + timed + "' needs '" + KeyTime + "', the time of the day"}
		}
		others = []string{KeyInterval, KeyMode}
	}
	for _, key := range others {
		if v.Has(key) {
			return &connector.OptionError{Key: key, Message: "'" + key + "' has no effect with '" + KeyStrategy + "' = '" + strategy + "'"}
		}
	}
	return nil
}

// From fills what a table's options say.
func (o Options) From(t *connector.Table) Options {
	v := t.Options
	if v.String(KeyStrategy) == timed {
		if d, err := parseDaily(v.String(KeyTime)); err == nil { // else its check has said so
			o.Daily = d.in(t.Zone)
			o.Days = int(v.Int(KeyDays))
		}
		return o
	}
	o.Interval, o.FixedRate = v.Duration(KeyInterval), v.String(KeyMode) == fixedRate
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
