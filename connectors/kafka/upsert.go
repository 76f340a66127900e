package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/connectors/recordmeta"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/connector"
)

// Upsert is the connector 'upsert-kafka': a topic in which each record says what the
// row of its key is from now on, and a record without a value that it is gone. Its
// tables are read and written like those of Connector.
type Upsert struct{ c Connector }

var (
	_ connector.SinkConnector   = (*Upsert)(nil)
	_ connector.SourceConnector = (*Upsert)(nil)
)

// NewUpsert returns the connector.
func NewUpsert(formats ...format.Format) *Upsert {
	return &Upsert{Connector{formats: formats, upsert: true}}
}

// Spec implements connector.Connector.
func (u *Upsert) Spec() *connector.Spec {
	return &connector.Spec{
		Name:    "upsert-kafka",
		Summary: "Topics of a Kafka cluster that hold the newest row of each primary key.",
		Doc: `A table that changes, as a topic: the record's key is the primary key, its value the row, and a record without a value
(a tombstone) deletes the row. Results of ` + "`GROUP BY`" + `, joins and Top-N that change can be written to it. Give the topic
` + "`cleanup.policy=compact`" + `, so that it keeps the newest record of each key.

Rows are written as connector ` + "`kafka`" + ` writes them: one transaction of at most 4 MiB about once a second, whose last record names it in
the compacted topic ` + "`__millrace_commits`" + `. Changes of one key are in the order in which they happened, and in one partition, which is
that of Kafka's own producer.

Read, the topic is that table again, from its earliest record on: the job keeps the last row of each key and gives the changes,
so that ` + "`GROUP BY`" + `, joins and Top-N over it are right at every moment. ` + "`table.exec.state.ttl`" + ` forgets keys that
were not written for that long. A deletion of a key that has no row is nothing. A record without a key, or with one that does not
decode, goes to the dead letter, as does a value that does not decode; the row before it stays. With ` + "`WATERMARK`" + `
the table is versioned (` + "`FOR SYSTEM_TIME AS OF`" + `); elsewhere its row time is a column of rows that change. It is not read in batch mode. With connector ` + "`kafka`" + ` the same records are read as they are, tombstones left out.

` + upsertFaultsDoc,
		Source: true, Sink: true, Changelog: connector.Upsert, SourceChangelog: connector.Upsert,
		Guarantee: "Exactly once: positions and the newest rows are kept by the job, and each artefact is one transaction that also says so in `__millrace_commits`.",
		Options: slices.Concat([]connector.Option{{Key: scanrange.KeyTopic, Required: true, Check: checkOneTopic, Doc: "The topic's name."}},
			upsertScanOptions(), keyvalue.Options(u.c.formats, true), sinkOptions(), connectionOptions(), upsertConsumerOptions()),
		Metadata: recordmeta.Spec(),
		Validate: func(v connector.Values) error {
			if err := keyvalue.Validate(v, u.c.formats, true); err != nil {
				return err
			}
			if err := scanrange.CheckEnd(v); err != nil {
				return err
			}
			if err := validateGroup(v, "scan.bounded.mode"); err != nil {
				return err
			}
			return validateSecurity(v)
		},
	}
}

// upsertScanOptions are those of scanOptions that say where reading ends: it starts at
// the earliest record, for a row that was written before would be unknown.
func upsertScanOptions() []connector.Option {
	return slices.DeleteFunc(scanOptions(), func(o connector.Option) bool {
		return o.Key == scanrange.KeyTopic || o.Key == scanrange.KeyPattern || strings.HasPrefix(o.Key, "scan.startup.")
	})
}

func upsertConsumerOptions() []connector.Option {
	return slices.DeleteFunc(consumerOptions(), func(o connector.Option) bool { return o.Key == "properties.auto.offset.reset" })
}

func checkOneTopic(s string) error {
	if strings.ContainsAny(s, ";,") {
		return fmt.Errorf("%q names several topics: such a table has one", s)
	}
	return scanrange.CheckTopic(s)
}

// OpenSink implements connector.SinkConnector.
func (u *Upsert) OpenSink(ctx context.Context, t *connector.Table, o connector.Owner) (connector.Sink, error) {
	return u.c.OpenSink(ctx, t, o)
}

// OpenSource implements connector.SourceConnector.
func (u *Upsert) OpenSource(ctx context.Context, t *connector.Table) (connector.Source, error) {
	return u.c.OpenSource(ctx, t)
}
