package catalog

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	rt "github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// Scope says what a setting governs.
type Scope uint8

const (
	// Planner settings hold for the statements that follow them.
	Planner Scope = iota
	// JobWide settings hold for the whole job, wherever they stand.
	JobWide
)

// Setting declares a SET key.
type Setting struct {
	connector.Option
	Scope Scope
	// Later: documented, and does not work yet.
	Later bool
}

func checkZone(v string) error {
	_, err := rt.LoadZone(v)
	return err
}

func boolSetting(key, def, doc string, scope Scope) Setting {
	return Setting{Scope: scope, Option: connector.Option{Key: key, Type: connector.OptBool, Default: def, Doc: doc}}
}

func durationSetting(key, def, doc string) Setting {
	return Setting{Scope: JobWide, Option: connector.Option{Key: key, Type: connector.OptDuration, Default: def, Doc: doc}}
}

func bytesSetting(key, def, doc string) Setting {
	return Setting{Scope: JobWide, Option: connector.Option{Key: key, Type: connector.OptBytes, Default: def, Doc: doc}}
}

func intSetting(key, def string, lo, hi int64, doc string) Setting {
	return Setting{Scope: JobWide, Option: connector.Option{Key: key, Type: connector.OptInt, Default: def, Min: lo, Max: hi, Doc: doc}}
}

func enumSetting(key, def string, scope Scope, doc string, values ...string) Setting {
	return Setting{Scope: scope, Option: connector.Option{Key: key, Type: connector.OptEnum, Enum: values, Default: def, Doc: doc}}
}

func textSetting(key, doc string) Setting {
	return Setting{Scope: JobWide, Option: connector.Option{Key: key, Type: connector.OptString, Doc: doc}}
}

func later(s Setting) Setting { s.Later = true; return s }

func planner(s Setting) Setting { s.Scope = Planner; return s }

// Known are the settings, in the order of the docs.
func Known() []Setting {
	return []Setting{
		textSetting("pipeline.name", "The job's name; unset: the file's base name."),
		intSetting("parallelism.default", "1", 1, 1024, "Subtasks of each keyed stage."),
		{Scope: Planner, Option: connector.Option{Key: "table.local-time-zone", Type: connector.OptString, Default: "UTC", Check: checkZone,
			Doc: "The session zone: an IANA name, UTC, or an offset such as GMT+08:00. Never the host's."}},
		enumSetting("execution.runtime-mode", "streaming", Planner, "streaming, or batch: inputs end, nothing is late, GROUP BY gives final rows.", "streaming", "batch"),
		durationSetting("table.exec.source.idle-timeout", "60 s", "After how long a partition at the end of its log no longer holds windows back; 0: never."),
		enumSetting("table.exec.sink.not-null-enforcer", "", JobWide, "What becomes of a row with NULL in a NOT NULL column: ERROR stops the lane, DROP drops and counts it. Unset: as 'lane.on-error'.", "ERROR", "DROP"),
		boolSetting("millrace.sum-widening", "true", "SUM of integers is BIGINT; false: of its argument's type, as in Flink.", Planner),
		enumSetting("lane.on-error", "dead-letter", JobWide, "What becomes of a row that fails after decoding.", "dead-letter", "drop", "fail"),
		later(enumSetting("lane.quarantine-watermark", "hold", JobWide, "Whether a quarantined lane holds windows back.", "hold", "idle")),
		{Scope: JobWide, Option: connector.Option{Key: "window.late-rows", Type: connector.OptString, Default: "dead-letter",
			Doc: "What becomes of late rows: dead-letter, drop, or the name of a table."}},
		boolSetting("table.exec.emit.early-fire.enabled", "false", "Windows give rows before they end, which are taken back when they change.", Planner),
		planner(durationSetting("table.exec.emit.early-fire.delay", "", "How long after it changed a row goes out at most, by the clock; 0: with each batch of rows.")),
		boolSetting("table.exec.emit.late-fire.enabled", "false", "Windows take rows after their end, and give the rows that change by them again.", Planner),
		planner(durationSetting("table.exec.emit.late-fire.delay", "", "How long after a late row that is at most, by the clock; 0: with each batch of rows.")),
		planner(durationSetting("table.exec.emit.allow-lateness", "", "How long a window takes rows after its end, with late firing; unset: table.exec.state.ttl.")),
		textSetting("dead.topic", "Topic for dead letters; unset: <job>.dead."),
		textSetting("manifest.topic", "Topic of the embedded log for messages to those who read the tables: a table partition is complete, with its files; a table has moved to its other cluster. Unset: none."),
		intSetting("dead.max-rate", "", 1, 1<<40, "Dead rows a second, over ten seconds, above which a lane stops, before they become dead letters; other lanes go on. Unset: no limit."),
		later(bytesSetting("retention.hold.max-bytes", "", "How much log a job may keep from being deleted.")),
		durationSetting("execution.checkpointing.interval", "10 s", "Time between checkpoints of keyed stages."),
		intSetting("execution.checkpointing.num-retained", "5", 1, 1000, "Checkpoints kept."),
		enumSetting("execution.checkpointing.mode", "EXACTLY_ONCE", JobWide, "EXACTLY_ONCE is the one mode.", "EXACTLY_ONCE"),
		{Scope: Planner, Option: connector.Option{Key: "table.exec.state.ttl", Type: connector.OptDuration, Default: "0 s",
			Doc: "How long state without an end in time (GROUP BY, joins, Top-N, OVER, the first row of a key) is kept after it was written last; 0: for good."}},
		later(textSetting("execution.state-recovery.path", "A savepoint to start from.")),
		later(textSetting("table.sql-dialect", "The dialect.")),
	}
}

// noEffectSettings are SET keys that Flink knows and that have no effect
// here; an entry that ends in '.' is a family.
var noEffectSettings = []string{
	"state.backend.", "state.checkpoints.", "state.checkpoint-storage", "state.savepoints.", "execution.checkpointing.storage",
	"execution.checkpointing.dir", "execution.checkpointing.savepoint-dir", "execution.checkpointing.incremental",
	"execution.checkpointing.unaligned.", "execution.checkpointing.max-concurrent-checkpoints",
	"execution.checkpointing.timeout", "execution.checkpointing.min-pause", "execution.checkpointing.tolerable-failed-checkpoints",
	"restart-strategy.", "restart-strategy", "execution.checkpointing.externalized-checkpoint-retention", "execution.checkpointing.local-backup.",
	"execution.checkpointing.file-merging.", "execution.buffer-timeout.", "execution.batch.", "execution.target", "execution.attached",
	"table.optimizer.", "table.exec.resource.", "table.exec.async-lookup.", "table.exec.spill-compression.",
	"table.exec.operator-fusion-codegen.", "table.exec.hive.", "table.exec.sort.", "table.exec.window-agg.",
	"table.exec.sink.type-length-enforcer", "table.exec.sink.keyed-shuffle", "table.exec.sink.upsert-materialize",
	"table.exec.sink.rowtime-inserter", "table.exec.legacy-", "table.exec.source.cdc-events-duplicate", "table.exec.uid.",
	"table.generated-code.", "table.dynamic-table-options.enabled", "table.dml-sync", "table.plan.", "table.resources.",
	"pipeline.object-reuse", "pipeline.operator-chaining", "pipeline.operator-chaining.", "pipeline.max-parallelism",
	"pipeline.auto-watermark-interval", "pipeline.auto-generate-uids", "pipeline.jars", "pipeline.classpaths", "pipeline.default-kryo-serializers",
	"taskmanager.", "jobmanager.", "rest.", "yarn.", "kubernetes.", "high-availability.", "metrics.", "web.", "env.", "client.",
	"sql-client.", "classloader.", "akka.", "pekko.", "security.", "fs.", "blob.", "cluster.", "heartbeat.", "historyserver.", "jobstore.",
	"slotmanager.", "slot.request.timeout", "parquet.", "table.exec.deduplicate.", "table.exec.rank.", "table.exec.simplify-operator-name-enabled",
}

// miniBatchSettings have no effect because there is nothing left to gather.
var miniBatchSettings = []string{"table.exec.mini-batch.enabled", "table.exec.mini-batch.allow-latency", "table.exec.mini-batch.size"}

func noEffectSetting(key string) bool {
	if slices.Contains(miniBatchSettings, key) {
		return true
	}
	for _, k := range noEffectSettings {
		if key == k || (strings.HasSuffix(k, ".") || strings.HasSuffix(k, "-")) && strings.HasPrefix(key, k) {
			return true
		}
	}
	return false
}

type settingValue struct {
	value string
	at    diag.Span
}

// Settings are the values set so far.
type Settings struct {
	known  []Setting
	values map[string]settingValue
	// Strict refuses a second value for a job-wide key, as job files need it.
	Strict bool
}

// NewSettings returns settings without values. extra are job-wide keys that
// the runtime declares beside Known.
func NewSettings(extra ...connector.Option) *Settings {
	s := &Settings{known: Known(), values: map[string]settingValue{}}
	for _, o := range extra {
		if k, ok := s.find(o.Key); ok {
			k.Check = o.Check // whoever reads it knows which values make sense
		} else {
			s.known = append(s.known, Setting{Option: o, Scope: JobWide})
		}
	}
	return s
}

// Clone returns a copy that can change without touching s.
func (s *Settings) Clone() *Settings {
	c := &Settings{known: s.known, values: map[string]settingValue{}, Strict: s.Strict}
	for k, v := range s.values {
		c.values[k] = v
	}
	return c
}

func (s *Settings) find(key string) (*Setting, bool) {
	for i := range s.known {
		if s.known[i].Key == key {
			return &s.known[i], true
		}
	}
	return nil, false
}

// Set takes SET 'key' = 'value'.
func (s *Settings) Set(key, value *syntax.StringLit, diags *diag.List) {
	k, ok := s.find(key.Value)
	switch {
	case !ok && noEffectSetting(key.Value):
		d := diag.Warnf(diag.CodeNoEffect, key.Span(), "%q has no effect here", key.Value)
		if slices.Contains(miniBatchSettings, key.Value) {
			d.WithHelp("aggregates, joins and Top-N always take rows by the batch, and say once what a batch changes; a batch is what comes within 200 ms, at most")
		}
		diags.Add(d)
		return
	case !ok:
		diags.Errorf(diag.CodeUnknownOption, key.Span(), "unknown setting %q", key.Value).
			WithNearest(key.Value, append(s.Keys(), miniBatchSettings...))
		return
	case k.Later:
		diags.Errorf(diag.CodeNotYet, key.Span(), "setting %q is not supported yet", key.Value)
		return
	}
	v := value.Value
	if k.Type == connector.OptEnum {
		for _, e := range k.Enum {
			if strings.EqualFold(e, v) {
				v = e
			}
		}
	}
	spec := connector.Spec{Name: "setting", Options: []connector.Option{k.Option}}
	if _, errs := spec.Resolve(map[string]string{"connector": "setting", k.Key: v}); len(errs) > 0 {
		diags.Errorf(diag.CodeBadOption, value.Span(), "setting %q: %s", key.Value, errs[0].Message)
		return
	}
	if old, set := s.values[k.Key]; set && s.Strict && k.Scope == JobWide && old.value != v {
		diags.Errorf(diag.CodeConflictingSetting, value.Span(), "%q holds for the whole job and is set to two values", k.Key).
			WithNote(old.at, "set to %q here", old.value)
		return
	}
	s.values[k.Key] = settingValue{v, value.Span()}
}

// Reset takes RESET 'key'; nil resets all.
func (s *Settings) Reset(key *syntax.StringLit, diags *diag.List) {
	if key == nil {
		clear(s.values)
		return
	}
	if _, ok := s.find(key.Value); !ok && !noEffectSetting(key.Value) {
		diags.Errorf(diag.CodeUnknownOption, key.Span(), "unknown setting %q", key.Value).
			WithNearest(key.Value, s.Keys())
		return
	}
	delete(s.values, key.Value)
}

// Keys are the known keys, sorted.
func (s *Settings) Keys() []string {
	keys := make([]string, 0, len(s.known))
	for _, k := range s.known {
		keys = append(keys, k.Key)
	}
	sort.Strings(keys)
	return keys
}

// String is the value of a key: as set, else its default. An unknown key is a
// programming error and panics.
func (s *Settings) String(key string) string {
	if v, ok := s.values[key]; ok {
		return v.value
	}
	k, ok := s.find(key)
	if !ok {
		panic("BUG: undeclared setting " + key)
	}
	return k.Default
}

// Lookup is the value that was set, and where.
func (s *Settings) Lookup(key string) (value string, at diag.Span, ok bool) {
	v, ok := s.values[key]
	return v.value, v.at, ok
}

// Duration is a duration setting.
func (s *Settings) Duration(key string) time.Duration {
	d, _ := connector.ParseDuration(s.String(key))
	return d
}

// Bool is a true|false setting.
func (s *Settings) Bool(key string) bool { return s.String(key) == "true" }

// Batch reports 'execution.runtime-mode' = 'batch'.
func (s *Settings) Batch() bool { return s.String("execution.runtime-mode") == "batch" }

// JobOptions are the job-wide settings that were set.
func (s *Settings) JobOptions() map[string]string {
	out := map[string]string{}
	for k, v := range s.values {
		if d, ok := s.find(k); ok && d.Scope == JobWide {
			out[k] = v.value
		}
	}
	return out
}

// Rows lists key and value of what was set, sorted, for SET alone.
func (s *Settings) Rows() [][]string {
	var rows [][]string
	for k, v := range s.values {
		rows = append(rows, []string{k, v.value})
	}
	sort.Slice(rows, func(i, j int) bool { return rows[i][0] < rows[j][0] })
	return rows
}

// Zone is the session zone: as set, else def ("" is UTC).
func (s *Settings) Zone(def string) (*rt.Zone, error) {
	name := def
	if v, ok := s.values["table.local-time-zone"]; ok {
		name = v.value
	}
	if name == "" {
		return rt.UTC(), nil
	}
	z, err := rt.LoadZone(name)
	if err != nil {
		return nil, fmt.Errorf("reading the session zone: %w", err)
	}
	return z, nil
}
