package kafka

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/keyvalue"
	"github.com/millrace/millrace/connectors/recordmeta"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/connectors/topicset"
	"github.com/millrace/millrace/runtime/connector"
)

// Connector is the connector 'kafka'. It has no state.
type Connector struct {
	formats []format.Format
	upsert  bool // tables of 'upsert-kafka', see Upsert
}

var _ connector.SourceConnector = (*Connector)(nil)

// New returns the connector.
func New(formats ...format.Format) *Connector { return &Connector{formats: formats} }

// Spec implements connector.Connector.
func (c *Connector) Spec() *connector.Spec {
	s := &connector.Spec{
		Name:    "kafka",
		Summary: "Topics of a Kafka cluster.",
		Doc: `A table over topics of a Kafka cluster (3.1 or later, which fetches by topic id). It starts at ` + "`scan.startup.mode`" + `
the first time a job reads it; from then on the job's own positions count, and the group's offsets are
a mirror of them for tools that show lag. Only committed transactions are read.

A topic that was deleted and created again, records that retention removed before they were read, and a log that
was cut back by an unclean leader election stop the lane with a sentence that says what is gone; nothing is reset
silently. Brokers that cannot be reached are tried again.

As a sink it appends records, one transaction of at most 4 MiB about once a second and lane. The last record of a transaction
names its artefact in the compacted topic ` + "`__millrace_commits`" + ` (16 partitions, created when it is missing), by which the job
tells after any crash what was published. Readers with ` + "`read_committed`" + ` see each row once. A declared primary key is the
record's key, unless ` + "`key.format`" + ` says otherwise. Rows above the topic's ` + "`max.message.bytes`" + ` go to the dead letter.

` + faultsDoc + `

Not there yet: Kerberos and OAuth.`,
		Source: true, Sink: true, DefaultFormat: "json", Changelog: connector.InsertOnly,
		Guarantee: "Exactly once: positions (topic id, partition, leader epoch, offset) are kept by the job, and each artefact is one transaction that also says so in `__millrace_commits`.",
		Options: slices.Concat(scanOptions(), keyvalue.Options(c.formats, false), []connector.Option{keyvalue.PartitionerOption(
			"`default` by the murmur2 hash of the primary key, without one whole transactions in turn; `round-robin` gives rows to the partitions in turn")}, sinkOptions(),
			connectionOptions(), consumerOptions()),
		Metadata: recordmeta.Spec(),
		Validate: func(v connector.Values) error { return validate(v, c.formats) },
	}
	for _, f := range c.formats {
		s.Formats = append(s.Formats, f.Spec())
	}
	return s
}

func scanOptions() []connector.Option {
	return []connector.Option{
		scanrange.TopicOption(),
		scanrange.PatternOption("Kafka's internal topics never match"),
		{Key: "scan.startup.mode", Type: connector.OptEnum, Default: scanrange.Group,
			Enum: []string{scanrange.Group, scanrange.Earliest, scanrange.Latest, scanrange.Timestamp, scanrange.Specific},
			Doc:  "Where a job that has no position yet starts. `group-offsets` without a committed offset goes by `properties.auto.offset.reset`; `latest-offset` is behind the last record that is no part of an open transaction."},
		{Key: "scan.startup.timestamp-millis", Type: connector.OptInt, Doc: "With mode `timestamp`: the first record at or after this time, in ms since 1970."},
		{Key: "scan.startup.specific-offsets", Check: scanrange.CheckOffsets, Doc: "With mode `specific-offsets`: `partition:0,offset:42;partition:1,offset:300`. Partitions that are not named start at the earliest record."},
		{Key: "scan.bounded.mode", Type: connector.OptEnum, Default: scanrange.Unbounded,
			Enum: []string{scanrange.Unbounded, scanrange.Latest, scanrange.Group, scanrange.Timestamp, scanrange.Specific},
			Doc:  "Where reading ends; `latest-offset` is the end as it is when the job starts."},
		{Key: "scan.bounded.timestamp-millis", Type: connector.OptInt, Doc: "With mode `timestamp`: up to, not including, the first record at or after this time."},
		{Key: "scan.bounded.specific-offsets", Check: scanrange.CheckOffsets, Doc: "With mode `specific-offsets`: up to, not including, these offsets."},
		topicset.DiscoveryOption("the cluster"),
	}
}

func sinkOptions() []connector.Option {
	return []connector.Option{
		{Key: keyGuarantee, Type: connector.OptEnum, Default: exactlyOnce, Enum: []string{exactlyOnce, atLeastOnce},
			Refused: map[string]string{"none": "\"none\" would lose rows: there are exactly-once and at-least-once"},
			Doc:     "`exactly-once` by transactions; `at-least-once` without them, so that rows are visible at once, and twice after some failures."},
		{Key: keyTxnPrefix, Default: "millrace", Check: checkPrefix,
			Doc: "What transactional ids start with; job, table and lane follow. Rights can be given by it."},
		{Key: keyTxnTimeout, Type: connector.OptInt, Min: 1000, Max: 900_000, Default: "60000",
			Doc: "How long a transaction may take, and for how long readers wait behind one whose writer has died and not come back."},
		{Key: keyMaxRequest, Type: connector.OptInt, Min: 1024, Max: 64 << 20, Default: "1048576", Doc: "How large a record batch, and so a record, may become."},
		{Key: keyCompression, Type: connector.OptEnum, Default: "none", Enum: []string{"none", "gzip", "snappy", "lz4", "zstd"}, Doc: "How record batches are compressed."},
		{Key: "properties.acks", Default: "all", Check: checkAcks, Doc: "`all`, the only one there is."},
	}
}

func checkAcks(s string) error {
	if s != "all" && s != "-1" {
		return fmt.Errorf("%q would lose rows when a broker fails: it is all", s)
	}
	return nil
}

func checkPrefix(s string) error {
	if s == "" || len(s) > 100 {
		return fmt.Errorf("a prefix has 1 to 100 bytes")
	}
	return nil
}

// connectionOptions say how brokers are spoken to.
func connectionOptions() []connector.Option {
	return []connector.Option{
		{Key: "properties.bootstrap.servers", Required: true, Check: checkServers, Doc: "Brokers to ask first, `host:port`, separated by commas."},
		{Key: "properties.client.id", Default: "millrace", Doc: "The client's name in the brokers' logs and quotas."},
		{Key: "properties.security.protocol", Type: connector.OptEnum, Enum: []string{"PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"}, Default: "PLAINTEXT",
			Doc: "How brokers are spoken to."},
		{Key: "properties.sasl.mechanism", Check: checkMechanism, Doc: "`PLAIN`, `SCRAM-SHA-256` or `SCRAM-SHA-512`."},
		{Key: "properties.sasl.jaas.config", Secret: true, Check: checkJAAS, Doc: "Kafka's form of user and password: `org.apache.kafka.common.security.plain.PlainLoginModule required username=\"u\" password=\"p\";`"},
		{Key: "properties.sasl.username", Doc: "The user, in place of `properties.sasl.jaas.config`."},
		{Key: "properties.sasl.password", Secret: true, Doc: "The password."},
		{Key: "properties.ssl.truststore.type", Type: connector.OptEnum, Enum: []string{"PEM"}, Default: "PEM", Doc: "The form of the trust store; Java's key stores are to be exported as PEM."},
		{Key: "properties.ssl.truststore.location", Doc: "A PEM file with the certificates to trust in place of the system's."},
		{Key: "properties.ssl.truststore.certificates", Doc: "The same certificates as text."},
		{Key: "properties.ssl.keystore.type", Type: connector.OptEnum, Enum: []string{"PEM"}, Default: "PEM", Doc: "The form of the client's key and certificate; Java's key stores are to be exported as PEM."},
		{Key: keyKeyFile, Doc: "A PEM file with the client's private key and its certificates, where brokers ask for one (`ssl.client.auth`). The key must not be encrypted. It is read when the job starts."},
		{Key: keyKeyText, Secret: true, Doc: "The private key as text, with `properties.ssl.keystore.certificate.chain`."},
		{Key: "properties.ssl.key.password", Secret: true, Check: func(string) error {
			return errors.New("not_yet: a key that is encrypted; openssl pkey writes it without its password")
		}, Doc: "Not yet: an encrypted key."},
		{Key: keyChainText, Doc: "The client's certificates as text, its own first."},
		{Key: "properties.ssl.endpoint.identification.algorithm", Type: connector.OptEnum, Enum: []string{"https", ""}, Default: "https",
			Doc: "Whether a broker's certificate must name its host; empty: no."},
		{Key: "properties.request.timeout.ms", Type: connector.OptInt, Min: 100, Max: 900_000, Default: "30000", Doc: "How long one request may take; one for which brokers wait for each other, up to 10 s more."},
		{Key: "properties.default.api.timeout.ms", Type: connector.OptInt, Min: 100, Max: 3_600_000, Default: "60000",
			Doc: "How long failing requests are repeated before the lane says so and starts again."},
	}
}

func consumerOptions() []connector.Option {
	return []connector.Option{
		{Key: "properties.group.id", Doc: "The group whose offsets `group-offsets` means and that shows the job's lag. The job never joins it."},
		{Key: "properties.auto.offset.reset", Type: connector.OptEnum, Enum: []string{"earliest", "latest", "none"}, Default: "earliest",
			Doc: "Where a partition starts that `group-offsets` has no offset for; `none` is an error. A position that does not fit the log any more is never reset."},
		{Key: "properties.isolation.level", Default: "read_committed", Check: checkIsolation, Doc: "`read_committed`, the only one there is."},
		{Key: "properties.fetch.min.bytes", Type: connector.OptInt, Min: 1, Max: 64 << 20, Default: "1", Doc: "A broker waits until it has this much, at most `fetch.max.wait.ms`."},
		{Key: "properties.fetch.max.wait.ms", Type: connector.OptInt, Min: 1, Max: 60_000, Default: "500", Doc: "How long a broker may wait for records."},
		{Key: "properties.fetch.max.bytes", Type: connector.OptInt, Min: 1024, Max: 256 << 20, Default: "8388608",
			Doc: "How much a fetch brings, and how much may wait in memory to be decoded. A single record batch may be larger."},
		{Key: "properties.max.partition.fetch.bytes", Type: connector.OptInt, Min: 1024, Max: 256 << 20, Default: "1048576", Doc: "How much of it may be of one partition."},
	}
}

func checkIsolation(s string) error {
	if s == "read_uncommitted" {
		return fmt.Errorf("not_yet: %q: records of transactions that are aborted later would be read", s)
	}
	if s != "read_committed" {
		return fmt.Errorf("%q is not read_committed", s)
	}
	return nil
}

var mechanisms = [...]string{"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}

func checkMechanism(s string) error {
	switch {
	case slices.Contains(mechanisms[:], s):
		return nil
	case s == "GSSAPI" || s == "OAUTHBEARER":
		return fmt.Errorf("not_yet: mechanism %q; there are %s", s, strings.Join(mechanisms[:], ", "))
	}
	return fmt.Errorf("%q is none of %s", s, strings.Join(mechanisms[:], ", "))
}

func checkServers(s string) error {
	for _, b := range strings.Split(s, ",") {
		b = strings.TrimSpace(b)
		at := strings.LastIndexByte(b, ':')
		if at <= 0 {
			return fmt.Errorf("%q is not host:port", b)
		}
		if n, err := strconv.ParseUint(b[at+1:], 10, 16); err != nil || n == 0 {
			return fmt.Errorf("%q has no port from 1 to 65535", b)
		}
	}
	return nil
}

// validate finds options that contradict each other.
func validate(v connector.Values, formats []format.Format) error {
	if err := scanrange.CheckTopics(v, "kafka"); err != nil {
		return err
	}
	if err := keyvalue.Validate(v, formats, false); err != nil {
		return err
	}
	if err := scanrange.Check(v); err != nil {
		return err
	}
	if err := validateGroup(v, "scan.startup.mode", "scan.bounded.mode"); err != nil {
		return err
	}
	return validateSecurity(v)
}

// validateGroup finds a mode that goes by the offsets of a group that is not named.
func validateGroup(v connector.Values, modes ...string) error {
	for _, key := range modes {
		if v.Has(key) && v.String(key) == scanrange.Group && !v.Has("properties.group.id") {
			return &connector.OptionError{Key: key, OnValue: true, Message: "mode group-offsets needs 'properties.group.id'"}
		}
	}
	return nil
}

func millis(v connector.Values, key string) time.Duration {
	return time.Duration(v.Int(key)) * time.Millisecond
}
