package topiclog

import (
	"maps"
	"slices"
	"sort"
	"time"
)

// Durability says when an append is acknowledged.
type Durability uint8

const (
	// Fsync acknowledges what survives a power cut.
	Fsync Durability = iota
	// OS acknowledges what survives the process; a power cut may lose the last
	// moments, and the offsets of what it lost are never given again.
	OS
)

// String is the option's value.
func (d Durability) String() string {
	if d == OS {
		return "os"
	}
	return "fsync"
}

// Settings are a topic's options, parsed.
type Settings struct {
	// Retention is how long after their append records are kept; negative
	// means for ever. Option retention.ms, default 7 days.
	Retention time.Duration
	// RetentionBytes is how much of each partition is kept; negative means
	// all. Option retention.bytes, default -1.
	RetentionBytes int64
	// Durability is option millrace.durability, default fsync.
	Durability Durability
	// Compact keeps the last record of each key; Delete applies the two limits
	// above. Option cleanup.policy, a list of delete and compact, default
	// delete.
	Compact, Delete bool
	// MaxMessageBytes is the largest batch accepted. Option max.message.bytes,
	// default 1 MiB + 12 bytes like Kafka's.
	MaxMessageBytes int
	// MinCompactionLag is how long after its append a record stays even if a
	// newer one has its key. Option min.compaction.lag.ms, default 0.
	MinCompactionLag time.Duration
	// DeleteRetention is how long a compacted topic keeps the null value that
	// deletes a key. Option delete.retention.ms, default 24 hours.
	DeleteRetention time.Duration
	// Compression is what a producer of this topic should use; the store does
	// not recompress. Option compression.type, default producer.
	Compression string
	// LogAppendTime gives every record the time at which it was appended in place
	// of its producer's. Option message.timestamp.type, default CreateTime.
	LogAppendTime bool
	// MaxBeforeMillis and MaxAfterMillis are how far in the past and in the future
	// the timestamp of a client's record may lie; math.MaxInt64 for no bound. The
	// store does not check them, the Kafka front does. Options
	// message.timestamp.before.max.ms, default no bound, and
	// message.timestamp.after.max.ms, default an hour.
	MaxBeforeMillis, MaxAfterMillis int64
}

// ParseConfig checks topic options and fills in the defaults. The error is a
// *ConfigError.
func ParseConfig(config map[string]string) (Settings, error) {
	var s Settings
	keys := configKeys()
	byName := make(map[string]*configKey, len(keys))
	for i := range keys {
		keys[i].set(&s, keys[i].def)
		byName[keys[i].name] = &keys[i]
	}
	// Invariant 10: an unknown key is an error, the first by name.
	for _, name := range slices.Sorted(maps.Keys(config)) {
		k := byName[name]
		if k == nil {
			return Settings{}, &ConfigError{Key: name, Value: config[name], Nearest: nearestKey(name, keys)}
		}
		if reason := k.set(&s, config[name]); reason != "" {
			return Settings{}, &ConfigError{Key: name, Value: config[name], Reason: reason}
		}
	}
	return s, nil
}

// nearestKey returns the known key with the smallest edit distance to name if
// that is at most a third of its length.
func nearestKey(name string, keys []configKey) string {
	type candidate struct {
		name string
		d    int
	}
	var cs []candidate
	for _, k := range keys {
		if d := editDistance(name, k.name); d <= max(len(k.name)/3, 1) {
			cs = append(cs, candidate{k.name, d})
		}
	}
	sort.SliceStable(cs, func(i, j int) bool { return cs[i].d < cs[j].d })
	if len(cs) == 0 {
		return ""
	}
	return cs[0].name
}

func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diag
			if a[i] != b[j] {
				cost++
			}
			diag = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
