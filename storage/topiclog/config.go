package topiclog

import (
	"maps"
	"slices"
	"sort"
	"strconv"
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
}

type configKey struct {
	name, doc, def string
	set            func(s *Settings, v string) string
}

// maxBatchLimit is the largest max.message.bytes that can be configured: a
// journal group must fit into memory and into one file.
const maxBatchLimit = 256 << 20

func configKeys() []configKey {
	ms := func(field func(*Settings) *time.Duration, min int64) func(*Settings, string) string {
		return func(s *Settings, v string) string {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < min || n > int64(1<<63-1)/int64(time.Millisecond) {
				return "must be a number of milliseconds, at least " + strconv.FormatInt(min, 10)
			}
			*field(s) = time.Duration(n) * time.Millisecond
			return ""
		}
	}
	return []configKey{
		{"cleanup.policy", "what old records make room for: delete (by age and size), compact (by newer records of the same key) or both, separated by a comma", "delete", setPolicy},
		{"compression.type", "compression that producers use for this topic: producer (their own choice), none, gzip, snappy, lz4 or zstd", "producer", func(s *Settings, v string) string {
			if !slices.Contains([]string{"producer", "none", "gzip", "snappy", "lz4", "zstd"}, v) {
				return "must be producer, none, gzip, snappy, lz4 or zstd"
			}
			s.Compression = v
			return ""
		}},
		{"delete.retention.ms", "how long a compacted topic keeps the null value that deletes a key, in milliseconds", "86400000",
			ms(func(s *Settings) *time.Duration { return &s.DeleteRetention }, 0)},
		{"max.message.bytes", "largest record batch accepted, in bytes", "1048588", func(s *Settings, v string) string {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || n > maxBatchLimit {
				return "must be a number of bytes from 1 to " + strconv.Itoa(maxBatchLimit)
			}
			s.MaxMessageBytes = n
			return ""
		}},
		{"millrace.durability", "when an append is acknowledged: fsync (it survives a power cut) or os (it survives the process)", "fsync", func(s *Settings, v string) string {
			switch v {
			case "fsync":
				s.Durability = Fsync
			case "os":
				s.Durability = OS
			default:
				return "must be fsync or os"
			}
			return ""
		}},
		{"min.compaction.lag.ms", "how long a record stays in a compacted topic even if a newer one has its key, in milliseconds", "0",
			ms(func(s *Settings) *time.Duration { return &s.MinCompactionLag }, 0)},
		{"retention.bytes", "how much of each partition is kept, in bytes; -1 for all", "-1", func(s *Settings, v string) string {
			n, err := strconv.ParseInt(v, 10, 64)
			if err != nil || n < -1 {
				return "must be a number of bytes, or -1"
			}
			s.RetentionBytes = n
			return ""
		}},
		{"retention.ms", "how long records are kept after they were appended, in milliseconds; -1 for ever", "604800000",
			ms(func(s *Settings) *time.Duration { return &s.Retention }, -1)},
	}
}

func setPolicy(s *Settings, v string) string {
	s.Compact, s.Delete = false, false
	switch v {
	case "delete":
		s.Delete = true
	case "compact":
		s.Compact = true
	case "compact,delete", "delete,compact":
		s.Compact, s.Delete = true, true
	default:
		return "must be delete, compact or both separated by a comma"
	}
	return ""
}

// ConfigKey documents a topic option.
type ConfigKey struct {
	Name, Default, Doc string
}

// ConfigKeys lists the topic options in the order of their names.
func ConfigKeys() []ConfigKey {
	var out []ConfigKey
	for _, k := range configKeys() {
		out = append(out, ConfigKey{Name: k.name, Default: k.def, Doc: k.doc})
	}
	return out
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
