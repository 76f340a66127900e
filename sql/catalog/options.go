package catalog

import (
	"sort"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/sql/diag"
	"github.com/millrace/millrace/sql/syntax"
)

// RuntimeOptions are options that any table may set beside its connector's.
func RuntimeOptions() []connector.Option {
	return []connector.Option{
		{Key: "lane.on-error", Type: connector.OptEnum, Enum: []string{"dead-letter", "drop", "fail"},
			Doc: "What becomes of a row that fails after decoding. Unset: the job's setting, dead-letter."},
		{Key: "window.late-rows", Type: connector.OptString, Default: "",
			Doc: "What becomes of late rows: dead-letter, drop, or the name of a table. Unset: the job's setting, dead-letter."},
		{Key: coverageKey, Type: connector.OptString,
			Doc: "Name of an ARRAY<STRING> column that lists the branches that reached a row of a wide table."},
		{Key: CorrectionKey, Type: connector.OptDuration,
			Doc: "Of a wide table whose partitions are replaced: each is published when its window is over, and again with the rows that came late, at most this often. Unset: once, when ALLOWED LATENESS has passed."},
		{Key: OfflineTimeoutKey, Type: connector.OptDuration, Default: "1 h",
			Doc: "Of a wide table with OFFLINE branches: how long a window that is over waits for a generation that is not there. Then it goes out with NULLs, and the job says so."},
		{Key: "scan.watermark.idle-timeout", Type: connector.OptDuration,
			Doc: "After how long a partition at the end of its log no longer holds windows back. Unset: 'table.exec.source.idle-timeout'."},
	}
}

func runtimeKeys() []string {
	var keys []string
	for _, o := range RuntimeOptions() {
		keys = append(keys, o.Key)
	}
	return keys
}

// resolveOptions checks the options of a table and fills in Connector, Spec,
// Values and Runtime. It reports each fault at its key or value.
func resolveOptions(t *Table, reg *connector.Registry, at diag.Span, diags *diag.List) {
	conn := t.Option("connector")
	if conn == nil {
		// A template for LIKE may leave the connector to its copies.
		for _, o := range t.Options {
			if near, ok := diag.Nearest(o.Key.Value, []string{"connector"}); ok {
				diags.Errorf(diag.CodeUnknownOption, o.Key.Span(), "unknown option %q, and no connector", o.Key.Value).
					WithHelp("did you mean %q?", near)
			}
		}
		return
	}
	c, ok := reg.Lookup(conn.Value.Value)
	if !ok {
		diags.Errorf(diag.CodeUnknownConnector, conn.Value.Span(), "unknown connector %q", conn.Value.Display()).
			WithNearest(conn.Value.Value, reg.Names()).
			WithHelp("connectors here: %s", strings.Join(reg.Names(), ", "))
		return
	}
	spec := c.Spec()
	format := ""
	if f := t.Option("format"); f != nil {
		format = f.Value.Value
	}
	known := spec.Keys(format)
	with, runtime := map[string]string{}, map[string]string{}
	own := runtimeKeys()
	hideSecrets(spec, t.Options)
	if t.Template {
		return // its options are checked when LIKE completes it
	}
	for _, o := range t.Options {
		key := o.Key.Value
		switch {
		case matches(known, key):
			with[key] = o.Value.Value
		case matches(own, key):
			runtime[key] = o.Value.Value
		case noEffectOption(key):
			checkNoEffect(o, diags)
		default:
			with[key] = o.Value.Value
		}
	}
	values, errs := spec.Resolve(with)
	for _, e := range errs {
		reportOption(e, t.Options, spec, format, at, diags)
	}
	rspec := &connector.Spec{Name: "runtime", Options: RuntimeOptions()}
	runtime["connector"] = "runtime"
	rvalues, rerrs := rspec.Resolve(runtime)
	for _, e := range rerrs {
		reportOption(e, t.Options, spec, format, at, diags)
	}
	t.Connector, t.Spec, t.Values, t.Runtime = c, spec, values, rvalues
}

// reportOption turns an option's fault into a diagnostic at the key or value
// literal; a missing one points at the table's name.
func reportOption(e *connector.OptionError, opts []*syntax.Option, spec *connector.Spec, format string, at diag.Span, diags *diag.List) {
	span := at
	if o := findOption(opts, e.Key); o != nil {
		span = o.Key.Span()
		if e.OnValue {
			span = o.Value.Span()
		}
		// The message may repeat the value.
		masked := *e
		masked.Message = syntax.Mask(o.Value, e.Message)
		e = &masked
	}
	var d *diag.Diagnostic
	switch {
	case e.Unknown:
		d = diags.Errorf(diag.CodeUnknownOption, span, "%s", e.Message)
		d.WithNearest(e.Key, append(spec.Keys(format), runtimeKeys()...))
		d.WithHelp("all options: millrace connectors describe %s", spec.Name)
	case e.Missing:
		d = diags.Errorf(diag.CodeMissingOption, span, "%s", e.Message)
	default:
		msg := e.Message
		if !strings.Contains(msg, e.Key) {
			msg = "option " + strconv.Quote(e.Key) + ": " + msg
		}
		if what, later := strings.CutPrefix(e.Message, "not_yet: "); later {
			d = diags.Errorf(diag.CodeNotYet, span, "option %q: not supported yet: %s", e.Key, what)
			break
		}
		d = diags.Errorf(diag.CodeBadOption, span, "%s", msg)
		if o := findOption(opts, e.Key); o != nil && e.OnValue {
			word := e.Word
			if word == "" {
				word = o.Value.Value
			}
			d.WithNearest(word, e.Among)
		}
	}
	if e.Hint != "" {
		d.WithHelp("%s", e.Hint)
	}
}

// hideSecrets keeps the values of secret options out of excerpts, also of options
// that were misspelled.
func hideSecrets(spec *connector.Spec, opts []*syntax.Option) {
	var secret []string
	for _, o := range spec.Options {
		if o.Secret {
			secret = append(secret, o.Key)
		}
	}
	for _, f := range spec.Formats {
		for _, o := range f.Options {
			if o.Secret {
				secret = append(secret, o.Key)
			}
		}
	}
	for _, o := range opts {
		key := strings.ToLower(o.Key.Value)
		near, _ := diag.Nearest(key, secret)
		if matches(secret, o.Key.Value) || near != "" && !matches(spec.Keys(""), o.Key.Value) ||
			strings.Contains(key, "password") || strings.Contains(key, "secret") || strings.HasSuffix(key, "token") || strings.HasSuffix(key, "jaas.config") {
			o.Value.Span().Hide()
		}
	}
}

// matches reports whether key is one of keys; keys that end in '*' are
// families.
func matches(keys []string, key string) bool {
	for _, k := range keys {
		if k == key || strings.HasSuffix(k, "*") && strings.HasPrefix(key, k[:len(k)-1]) && len(key) >= len(k) {
			return true
		}
	}
	return false
}

// noEffectOptions are table options that Flink knows and that have no effect
// here, with the reason.
var noEffectOptions = map[string]string{
	"scan.parallelism":                         "lanes are packed by measured traffic",
	"sink.parallelism":                         "each lane writes its own files",
	"scan.watermark.emit.strategy":             "watermarks follow every row",
	"scan.watermark.alignment.group":           "a lane never waits for another one",
	"scan.watermark.alignment.max-drift":       "a lane never waits for another one",
	"scan.watermark.alignment.update-interval": "a lane never waits for another one",
	"auto-compaction":                          "files close by size and age, not by checkpoint",
	"compaction.file-size":                     "files close by size and age, not by checkpoint",
	"compaction.parallelism":                   "files close by size and age, not by checkpoint",
	"sink.shuffle-by-partition.enable":         "a lane's rows stay together",
	"sink.rolling-policy.check-interval":       "ages are checked by the slot's timer",
	"source.report-statistics":                 "the planner uses no statistics",
}

func noEffectOption(key string) bool {
	_, ok := noEffectOptions[key]
	return ok
}

func checkNoEffect(o *syntax.Option, diags *diag.List) {
	if strings.HasSuffix(o.Key.Value, ".parallelism") {
		if n, err := strconv.Atoi(o.Value.Value); err != nil || n < 1 {
			diags.Errorf(diag.CodeBadOption, o.Value.Span(), "option %q: %q is not a positive number", o.Key.Value, o.Value.Display())
			return
		}
	}
	diags.Warnf(diag.CodeNoEffect, o.Key.Span(), "option %q has no effect: %s", o.Key.Value, noEffectOptions[o.Key.Value])
}

// checkDuplicates reports keys that are written twice in one WITH clause.
func checkDuplicates(opts []*syntax.Option, diags *diag.List) {
	first := map[string]*syntax.Option{}
	for _, o := range opts {
		if f, dup := first[o.Key.Value]; dup {
			diags.Errorf(diag.CodeDuplicateOption, o.Key.Span(), "option %q is set twice", o.Key.Value).
				WithNote(f.Key.Span(), "first set here")
			continue
		}
		first[o.Key.Value] = o
	}
}

// SecretKeys are the keys of a table whose values must not be printed.
func (t *Table) SecretKeys() []string {
	var keys []string
	if t.Spec == nil {
		return nil
	}
	secret := map[string]bool{}
	for _, o := range t.Spec.Options {
		if o.Secret {
			secret[o.Key] = true
		}
	}
	for _, f := range t.Spec.Formats {
		for _, o := range f.Options {
			if o.Secret {
				secret[o.Key] = true
			}
		}
	}
	for _, o := range t.Options {
		if secret[o.Key.Value] || o.Value.Text.HasSecret() {
			keys = append(keys, o.Key.Value)
		}
	}
	sort.Strings(keys)
	return keys
}

const coverageKey = "wide.coverage-column"

// CorrectionKey is how often windows of a wide table are published again.
const CorrectionKey = "wide.correction-interval"

// OfflineTimeoutKey is how long windows of a wide table wait for generations.
const OfflineTimeoutKey = "wide.offline-timeout"

const lateRowsKey = "window.late-rows"

// LateTable is the table that 'window.late-rows' names, "" where it is a word.
func LateTable(v string) string {
	if v == "dead-letter" || v == "drop" {
		return ""
	}
	return v
}

// LateRows is 'window.late-rows' of a table, else of the job.
func (t *Table) LateRows(s *Settings) string {
	if t != nil && t.Runtime.Has(lateRowsKey) {
		return t.Runtime.String(lateRowsKey)
	}
	return s.String(lateRowsKey)
}
