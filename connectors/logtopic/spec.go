package logtopic

import (
	_ "embed" // the table of failures
	"strings"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/connectors/recordmeta"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/connectors/topicset"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/client"
)

//go:embed failures.md
var failures string

// Connector is the connector 'log'. It is shared by all tables of a log, since
// it knows which of their writers are fenced.
type Connector struct {
	log     *client.Client
	formats []format.Format
	lanes   registry
}

var (
	_ connector.SourceConnector = (*Connector)(nil)
	_ connector.SinkConnector   = (*Connector)(nil)
)

// New returns the connector over a log; nil serves for checking files alone.
func New(log *client.Client, formats ...format.Format) *Connector {
	return &Connector{log: log, formats: formats}
}

// Spec implements connector.Connector.
func (c *Connector) Spec() *connector.Spec {
	s := &connector.Spec{
		Name:    "log",
		Summary: "Topics of the embedded log store.",
		Doc: `A table over topics of the log in the data directory. As a source it starts at ` + "`scan.startup.mode`" + `
the first time a job reads it; from then on the job's own positions count. As a sink it appends
records to one topic; a job's records appear exactly once after any crash.

A source over a list or a pattern of topics has a lane for each of them: one that stops keeps nobody from reading
the others. New topics that match, and new partitions, are looked for every ` + "`source.monitor-interval`" + ` of the
job (10 s unless it is set) and read from their first record on, whatever the start mode. Metadata column ` + "`topic`" + ` says where a row comes from.` + "\n\n" + strings.TrimSpace(failures),
		Source: true, Sink: true, DefaultFormat: "json", Changelog: connector.InsertOnly,
		Guarantee: "Exactly once: each append carries its artefact's id in the same journal entry.",
		Options: append([]connector.Option{
			scanrange.TopicOption(),
			scanrange.PatternOption("topics that Millrace keeps for itself (`__millrace_...`) never match"),
			{Key: "properties.group.id", Doc: "The subscription's name: what shows the job's lag, and where `group-offsets` starts."},
			{Key: "scan.startup.mode", Type: connector.OptEnum, Default: scanrange.Group,
				Enum: []string{scanrange.Group, scanrange.Earliest, scanrange.Latest, scanrange.Timestamp, scanrange.Specific},
				Doc:  "Where a job that has no position yet starts. `group-offsets` without a committed position starts at the earliest record."},
			{Key: "scan.startup.timestamp-millis", Type: connector.OptInt, Doc: "With mode `timestamp`: the first record at or after this time, in ms since 1970."},
			{Key: "scan.startup.specific-offsets", Check: scanrange.CheckOffsets, Doc: "With mode `specific-offsets`: `partition:0,offset:42;partition:1,offset:300`. Partitions that are not named start at the earliest record."},
			{Key: "scan.bounded.mode", Type: connector.OptEnum, Default: scanrange.Unbounded,
				Enum: []string{scanrange.Unbounded, scanrange.Latest, scanrange.Group, scanrange.Timestamp, scanrange.Specific},
				Doc:  "Where reading ends; `latest-offset` is the end as it is when the job starts."},
			{Key: "scan.bounded.timestamp-millis", Type: connector.OptInt, Doc: "With mode `timestamp`: up to, not including, the first record at or after this time."},
			{Key: "scan.bounded.specific-offsets", Check: scanrange.CheckOffsets, Doc: "With mode `specific-offsets`: up to, not including, these offsets."},
			topicset.DiscoveryOption("the log"),
			keyvalue.PartitionerOption("`default` by the murmur2 hash of the record's key (without one as `round-robin`); `round-robin` gives whole appends to the partitions in turn"),
		}, keyvalue.Options(c.formats, false)...),
		Metadata: recordmeta.Spec(),
		Validate: func(v connector.Values) error {
			if err := scanrange.CheckTopics(v, "log"); err != nil {
				return err
			}
			if err := keyvalue.Validate(v, c.formats, false); err != nil {
				return err
			}
			return validate(v)
		},
	}
	for _, f := range c.formats {
		s.Formats = append(s.Formats, f.Spec())
	}
	return s
}

// validate finds options that contradict each other.
func validate(v connector.Values) error {
	if err := scanrange.Check(v); err != nil {
		return err
	}
	if (v.String("scan.bounded.mode") == scanrange.Group) && !v.Has("properties.group.id") {
		return &connector.OptionError{Key: "scan.bounded.mode", OnValue: true, Message: "mode group-offsets needs 'properties.group.id'"}
	}
	if v.Has("scan.startup.mode") && v.String("scan.startup.mode") == scanrange.Group && !v.Has("properties.group.id") {
		return &connector.OptionError{Key: "scan.startup.mode", OnValue: true, Message: "mode group-offsets needs 'properties.group.id'"}
	}
	return nil
}
