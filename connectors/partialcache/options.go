package partialcache

import (
	"time"

	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/runtime/connector"
)

// Keys of the options, which are Flink's.
const (
	KeyCache       = "lookup.cache"
	KeyRetries     = "lookup.max-retries"
	KeyAfterAccess = "lookup.partial-cache.expire-after-access"
	KeyAfterWrite  = "lookup.partial-cache.expire-after-write"
	KeyMissing     = "lookup.partial-cache.cache-missing-key"
	KeyMaxRows     = "lookup.partial-cache.max-rows"
)

const (
	none    = "NONE"
	partial = "PARTIAL"
	full    = "FULL"
)

// SpecOptions declares the options; those of connectors/fullcache, which keeps tables
// whole, are among them.
func SpecOptions() []connector.Option {
	return append([]connector.Option{
		{Key: KeyCache, Type: connector.OptEnum, Enum: []string{none, partial, full}, Default: none,
			Doc: "What is kept of a table that is looked up: nothing, the rows of the keys asked for last (`PARTIAL`), or the whole table (`FULL`)."},
		{Key: KeyRetries, Type: connector.OptInt, Default: "3", Min: 0, Max: 1000, Doc: "How often a lookup that failed is tried again at once; afterwards the lane waits and tries its rows again."},
		{Key: KeyAfterAccess, Type: connector.OptDuration, Doc: "How long rows are kept since they were last used."},
		{Key: KeyAfterWrite, Type: connector.OptDuration, Doc: "How long rows are kept since they were read: rows are at most this old."},
		{Key: KeyMissing, Type: connector.OptBool, Default: "true", Doc: "Keep that a key has no rows."},
		{Key: KeyMaxRows, Type: connector.OptInt, Min: 1, Max: 1 << 40, Doc: "How many rows are kept; the key that was used the longest time ago leaves first. `PARTIAL` needs it, or one of the times; with a time alone it is 1,048,576."},
	}, fullcache.SpecOptions()...)
}

// Full reports that a table is kept whole.
func Full(v connector.Values) bool { return v.String(KeyCache) == full }

// unlimitedRows is the bound of a cache that only a time bounds.
const unlimitedRows = 1 << 20

// Validate refuses options that contradict each other.
func Validate(v connector.Values) error {
	useless := func(value string, keys ...string) error {
		for _, key := range keys {
			if v.Has(key) {
				return &connector.OptionError{Key: key, Message: "'" + key + "' has no effect " + value}
			}
		}
		return nil
	}
	if Full(v) {
		if err := useless("with '"+KeyCache+"' = '"+full+"'", KeyRetries, KeyAfterAccess, KeyAfterWrite, KeyMissing, KeyMaxRows); err != nil {
			return err
		}
		return fullcache.Validate(v)
	}
	if err := useless("without '"+KeyCache+"' = '"+full+"'", fullcache.Keys()...); err != nil {
		return err
	}
	if v.String(KeyCache) == partial {
		for _, key := range []string{KeyAfterAccess, KeyAfterWrite} {
			if v.Has(key) && v.Duration(key) < time.Millisecond {
				return &connector.OptionError{Key: key, OnValue: true, Message: "rows are kept for at least 1 ms"}
			}
		}
		if !v.Has(KeyMaxRows) && !v.Has(KeyAfterAccess) && !v.Has(KeyAfterWrite) {
			return &connector.OptionError{Key: KeyCache, OnValue: true, Message: "a partial cache needs '" + KeyMaxRows + "', '" + KeyAfterWrite + "' or '" + KeyAfterAccess + "': rows would be kept for ever"}
		}
		return nil
	}
	return useless("without '"+KeyCache+"' = '"+partial+"'", KeyAfterAccess, KeyAfterWrite, KeyMissing, KeyMaxRows)
}

// From fills what a table's options say.
func (o Options) From(v connector.Values) Options {
	o.Retries = int(v.Int(KeyRetries))
	if v.String(KeyCache) == partial {
		o.MaxRows, o.Missing = unlimitedRows, v.Bool(KeyMissing)
		if v.Has(KeyMaxRows) {
			o.MaxRows = v.Int(KeyMaxRows)
		}
		o.AfterAccess, o.AfterWrite = v.Duration(KeyAfterAccess), v.Duration(KeyAfterWrite)
	}
	return o
}
