package sqltest

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
)

// Registry returns the connectors of this package and extra ones.
func Registry(extra ...connector.Connector) *connector.Registry {
	all := append([]connector.Connector{&bound{logSpec()}, &files{bound{fileSpec()}}, &bound{upsertSpec()}, &bound{printSpec("print")}, &bound{printSpec("blackhole")}, &bound{datagenSpec()}}, extra...)
	r, err := connector.NewRegistry(all...)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return r
}

// errBoundOnly is returned by connectors that exist to be bound.
var errBoundOnly = errors.New("this connector of a test cannot be opened")

type bound struct{ spec *connector.Spec }

func (b *bound) Spec() *connector.Spec { return b.spec }

func (b *bound) OpenSource(context.Context, *connector.Table) (connector.Source, error) {
	return nil, errBoundOnly
}

func (b *bound) OpenSink(context.Context, *connector.Table, connector.Owner) (connector.Sink, error) {
	return nil, errBoundOnly
}

// files are tables that can be overwritten, but for those at far://; each result
// replaces whole partitions of those at whole://.
type files struct{ bound }

func (*files) ReplaceMode(t *connector.Table) (connector.ReplaceMode, string) {
	switch path := t.Options.String("path"); {
	case strings.HasPrefix(path, "far://"):
		return connector.ReplaceNever, "what is far stays as it is"
	case strings.HasPrefix(path, "whole://"):
		return connector.ReplaceResults, ""
	}
	return connector.ReplaceOnRequest, ""
}

func jsonFormat() connector.FormatSpec {
	return connector.FormatSpec{Name: "json", Decode: true, Encode: true, Options: []connector.Option{
		{Key: "json.fail-on-missing-field", Type: connector.OptBool, Default: "false"},
		{Key: "json.ignore-parse-errors", Type: connector.OptBool, Default: "false"},
		{Key: "json.on-error", Type: connector.OptEnum, Enum: []string{"dead-letter", "drop", "null", "null-or-drop", "fail"}, Default: "dead-letter"},
		{Key: "json.timestamp-format.standard", Type: connector.OptEnum, Enum: []string{"SQL", "ISO-8601", "ISO-8601-WITH-OFFSET"}, Default: "SQL"},
	}}
}

func logSpec() *connector.Spec {
	return &connector.Spec{
		Name: "log", Source: true, Sink: true, DefaultFormat: "json", Formats: []connector.FormatSpec{jsonFormat()},
		Options: []connector.Option{
			{Key: "topic", Required: true},
			{Key: "scan.startup.mode", Type: connector.OptEnum, Enum: []string{"earliest-offset", "latest-offset", "group-offsets", "timestamp"}, Default: "group-offsets"},
			{Key: "scan.startup.timestamp-millis", Type: connector.OptInt},
			{Key: "scan.bounded.mode", Type: connector.OptEnum, Enum: []string{"unbounded", "latest-offset"}, Default: "unbounded"},
			{Key: "properties.*"},
			{Key: "token", Secret: true},
		},
		Metadata: []connector.MetadataColumn{
			{Key: "topic", Type: "STRING NOT NULL"}, {Key: "partition", Type: "INT NOT NULL"},
			{Key: "offset", Type: "BIGINT NOT NULL"}, {Key: "timestamp", Type: "TIMESTAMP_LTZ(3) NOT NULL", Writable: true},
		},
		Validate: func(v connector.Values) error {
			if v.String("scan.startup.mode") == "timestamp" && !v.Has("scan.startup.timestamp-millis") {
				return &connector.OptionError{Key: "scan.startup.mode", OnValue: true,
					Message: "'scan.startup.mode' = 'timestamp' needs 'scan.startup.timestamp-millis'"}
			}
			if v.Has("format") || !v.Has("json.on-error") {
				return nil
			}
			if v.Has("json.ignore-parse-errors") {
				return &connector.OptionError{Key: "json.on-error", Message: "'json.on-error' and 'json.ignore-parse-errors' say the same; set one of them"}
			}
			return nil
		},
	}
}

func fileSpec() *connector.Spec {
	return &connector.Spec{
		Name: "filesystem", Source: true, Sink: true, Bounded: true, Partitioned: true, Places: func(_ string, v connector.Values) []connector.Place {
			return []connector.Place{{At: path.Clean(v.String("path")), Option: "path"}}
		},
		Formats: []connector.FormatSpec{
			{Name: "parquet", Decode: true, Encode: true, Options: []connector.Option{
				{Key: "parquet.compression", Type: connector.OptEnum, Enum: []string{"SNAPPY", "ZSTD", "GZIP", "UNCOMPRESSED"}, Default: "SNAPPY"}}},
			jsonFormat(),
		},
		Options: []connector.Option{
			{Key: "path", Required: true},
			{Key: "source.monitor-interval", Type: connector.OptDuration},
			{Key: "sink.rolling-policy.file-size", Type: connector.OptBytes, Default: "128MB"},
			{Key: "sink.rolling-policy.rollover-interval", Type: connector.OptDuration, Default: "30 min"},
			{Key: "partition.default-name", Default: "__HIVE_DEFAULT_PARTITION__"},
			{Key: "partition.time-extractor.timestamp-pattern"},
			{Key: "sink.partition-commit.trigger", Type: connector.OptEnum, Enum: []string{"process-time", "partition-time"}, Default: "process-time"},
			{Key: "sink.partition-commit.delay", Type: connector.OptDuration, Default: "0 s"},
			{Key: "sink.partition-commit.policy.kind"},
			{Key: "sink.partition-commit.watermark-time-zone"},
		},
	}
}

func upsertSpec() *connector.Spec {
	return &connector.Spec{Name: "upsert", Source: true, Sink: true, Changelog: connector.Upsert, SourceChangelog: connector.Upsert}
}

func printSpec(name string) *connector.Spec {
	return &connector.Spec{Name: name, Sink: true, Changelog: connector.All}
}

func datagenSpec() *connector.Spec {
	return &connector.Spec{Name: "datagen", Source: true, BoundedBy: "number-of-rows", Options: []connector.Option{
		{Key: "rows-per-second", Type: connector.OptInt, Default: "10000"},
		{Key: "number-of-rows", Type: connector.OptInt},
		{Key: "fields.*"},
	}}
}
