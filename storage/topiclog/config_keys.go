package topiclog

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"
)

// ConfigKind is the kind of values that an option takes.
type ConfigKind uint8

// Kinds of options. KindInt has 32 bits, KindLong 64.
const (
	KindString ConfigKind = iota
	KindBool
	KindInt
	KindLong
	KindDouble
	KindList
)

// ConfigKey documents a topic option.
type ConfigKey struct {
	Name, Default, Doc string
	Kind               ConfigKind
	// Inert says that the option is Kafka's and changes nothing in this store. It
	// is checked and kept, because tools set it and read it back.
	Inert bool
}

type configKey struct {
	name, doc, def string
	kind           ConfigKind
	set            func(s *Settings, v string) string
	inert          bool
}

// ConfigKeys lists the topic options in the order of their names.
func ConfigKeys() []ConfigKey {
	var out []ConfigKey
	for _, k := range configKeys() {
		out = append(out, ConfigKey{Name: k.name, Default: k.def, Doc: k.doc, Kind: k.kind, Inert: k.inert})
	}
	slices.SortFunc(out, func(a, b ConfigKey) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// maxBatchLimit is the largest max.message.bytes that can be configured: a
// journal group must fit into memory and into one file.
const maxBatchLimit = 256 << 20

// noLimit is how Kafka writes that a number is not bounded.
const noLimit = "9223372036854775807"

func configKeys() []configKey { return append(effectiveKeys(), inertKeys()...) }

// effectiveKeys are the options that the store and its front act on.
func effectiveKeys() []configKey {
	return []configKey{
		{"cleanup.policy", "what old records make room for: delete (by age and size), compact (by newer records of the same key) or both, separated by a comma", "delete", KindList, setPolicy, false},
		{"compression.type", "compression that producers use for this topic: producer (their own choice), none, gzip, snappy, lz4 or zstd", "producer", KindString, func(s *Settings, v string) string {
			if !slices.Contains([]string{"producer", "none", "uncompressed", "gzip", "snappy", "lz4", "zstd"}, v) {
				return "must be producer, none, uncompressed, gzip, snappy, lz4 or zstd"
			}
			if s.Compression = v; v == "uncompressed" {
				s.Compression = "none"
			}
			return ""
		}, false},
		{"delete.retention.ms", "how long a compacted topic keeps the null value that deletes a key, in milliseconds", "86400000", KindLong,
			duration(func(s *Settings) *time.Duration { return &s.DeleteRetention }, 0), false},
		{"max.message.bytes", "largest record batch accepted, in bytes", "1048588", KindInt, func(s *Settings, v string) string {
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || n > maxBatchLimit {
				return "must be a number of bytes from 1 to " + strconv.Itoa(maxBatchLimit)
			}
			s.MaxMessageBytes = n
			return ""
		}, false},
		{"message.timestamp.after.max.ms", "how far in the future the timestamp of a client's record may lie, in milliseconds", "3600000", KindLong,
			number(func(s *Settings) *int64 { return &s.MaxAfterMillis }, 0, math.MaxInt64), false},
		{"message.timestamp.before.max.ms", "how far in the past the timestamp of a client's record may lie, in milliseconds", noLimit, KindLong,
			number(func(s *Settings) *int64 { return &s.MaxBeforeMillis }, 0, math.MaxInt64), false},
		{"message.timestamp.type", "whose time a record has: CreateTime (its producer's) or LogAppendTime (that of the append)", "CreateTime", KindString, func(s *Settings, v string) string {
			if v != "CreateTime" && v != "LogAppendTime" {
				return "must be CreateTime or LogAppendTime"
			}
			s.LogAppendTime = v == "LogAppendTime"
			return ""
		}, false},
		{"millrace.durability", "when an append is acknowledged: fsync (it survives a power cut) or os (it survives the process)", "fsync", KindString, func(s *Settings, v string) string {
			switch v {
			case "fsync":
				s.Durability = Fsync
			case "os":
				s.Durability = OS
			default:
				return "must be fsync or os"
			}
			return ""
		}, false},
		{"min.compaction.lag.ms", "how long a record stays in a compacted topic even if a newer one has its key, in milliseconds", "0", KindLong,
			duration(func(s *Settings) *time.Duration { return &s.MinCompactionLag }, 0), false},
		{"retention.bytes", "how much of each partition is kept, in bytes; -1 for all", "-1", KindLong,
			number(func(s *Settings) *int64 { return &s.RetentionBytes }, -1, math.MaxInt64), false},
		{"retention.ms", "how long records are kept after they were appended, in milliseconds; -1 for ever", "604800000", KindLong,
			duration(func(s *Settings) *time.Duration { return &s.Retention }, -1), false},
	}
}

// inertKeys are Kafka's options that have nothing to act on here. What would
// promise more than one node without a remote tier can hold is refused.
func inertKeys() []configKey {
	const (
		shared    = "no effect: segment files are shared by partitions; "
		durable   = "no effect: what is acknowledged is on disk, see millrace.durability; "
		alone     = "no effect: there is one node; "
		untouched = "no effect: batches are stored as their producer compressed them; "
		noTier    = "no effect: there is no remote tier; "
		compacts  = "no effect: compaction runs with retention; "
	)
	var keys []configKey
	add := func(kind ConfigKind, name, def, doc string, set func(*Settings, string) string) {
		keys = append(keys, configKey{name, doc, def, kind, set, true})
	}
	integer := func(min, max int64) func(*Settings, string) string {
		var ignored int64
		return number(func(*Settings) *int64 { return &ignored }, min, max)
	}
	add(KindInt, "compression.gzip.level", "-1", untouched+"level of gzip", integer(-1, 9))
	add(KindInt, "compression.lz4.level", "9", untouched+"level of lz4", integer(1, 17))
	add(KindInt, "compression.zstd.level", "3", untouched+"level of zstd", integer(-131072, 22))
	add(KindLong, "file.delete.delay.ms", "60000", shared+"how long a file stays after its deletion", integer(0, math.MaxInt64))
	add(KindLong, "flush.messages", noLimit, durable+"records between two flushes", integer(1, math.MaxInt64))
	add(KindLong, "flush.ms", noLimit, durable+"time between two flushes", integer(0, math.MaxInt64))
	add(KindList, "follower.replication.throttled.replicas", "", alone+"followers that copy slowly", anything)
	add(KindInt, "index.interval.bytes", "4096", shared+"bytes between two entries of an index", integer(0, math.MaxInt32))
	add(KindList, "leader.replication.throttled.replicas", "", alone+"leaders that are copied slowly", anything)
	add(KindLong, "local.retention.bytes", "-2", noTier+"bytes kept locally", integer(-2, math.MaxInt64))
	add(KindLong, "local.retention.ms", "-2", noTier+"time kept locally", integer(-2, math.MaxInt64))
	add(KindLong, "max.compaction.lag.ms", noLimit, compacts+"longest time until a record may be compacted", integer(1, math.MaxInt64))
	add(KindDouble, "min.cleanable.dirty.ratio", "0.5", compacts+"share of new records that starts it", func(_ *Settings, v string) string {
		if n, err := strconv.ParseFloat(v, 64); err != nil || !(n >= 0 && n <= 1) {
			return "must be a number from 0 to 1"
		}
		return ""
	})
	add(KindInt, "min.insync.replicas", "1", alone+"nodes that must have a record", only("1", "there is one node"))
	add(KindBool, "preallocate", "false", shared+"make files in their full size", boolean)
	add(KindBool, "remote.log.copy.disable", "false", noTier+"stop copying to it", boolean)
	add(KindBool, "remote.log.delete.on.disable", "false", noTier+"delete what is on it", boolean)
	add(KindBool, "remote.storage.enable", "false", noTier+"keep old records there", only("false", "there is no remote tier"))
	add(KindInt, "segment.bytes", "1073741824", shared+"size of a segment", integer(1<<20, math.MaxInt32))
	add(KindInt, "segment.index.bytes", "10485760", shared+"size of an index", integer(4, math.MaxInt32))
	add(KindLong, "segment.jitter.ms", "0", shared+"random part of a segment's time", integer(0, math.MaxInt64))
	add(KindLong, "segment.ms", "604800000", shared+"time after which a segment ends", integer(1, math.MaxInt64))
	add(KindBool, "unclean.leader.election.enable", "false", alone+"let a node lead that lacks records", boolean)
	return keys
}

// number reads an integer within bounds into a field.
func number(field func(*Settings) *int64, min, max int64) func(*Settings, string) string {
	return func(s *Settings, v string) string {
		n, err := strconv.ParseInt(v, 10, 64)
		switch {
		case (err != nil || n < min) && max == math.MaxInt64:
			return "must be a number, at least " + strconv.FormatInt(min, 10)
		case err != nil || n < min || n > max:
			return "must be a number from " + strconv.FormatInt(min, 10) + " to " + strconv.FormatInt(max, 10)
		}
		*field(s) = n
		return ""
	}
}

// duration reads a number of milliseconds into a field. More than 292 years are
// as long as that.
func duration(field func(*Settings) *time.Duration, min int64) func(*Settings, string) string {
	return func(s *Settings, v string) string {
		var ms int64
		if number(func(*Settings) *int64 { return &ms }, min, math.MaxInt64)(s, v) != "" {
			return "must be a number of milliseconds, at least " + strconv.FormatInt(min, 10)
		}
		*field(s) = time.Duration(math.MaxInt64)
		if ms <= math.MaxInt64/int64(time.Millisecond) {
			*field(s) = time.Duration(ms) * time.Millisecond
		}
		return ""
	}
}

func anything(*Settings, string) string { return "" }

func boolean(_ *Settings, v string) string {
	if v != "true" && v != "false" {
		return "must be true or false"
	}
	return ""
}

// only accepts one value.
func only(value, why string) func(*Settings, string) string {
	return func(_ *Settings, v string) string {
		if v != value {
			return "must be " + value + ": " + why
		}
		return ""
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
