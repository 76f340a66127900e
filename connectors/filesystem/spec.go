package filesystem

import (
	_ "embed" // the table of failures
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/parquetfmt"
	"github.com/millrace/millrace/connectors/fullcache"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

//go:embed failures.md
var failures string

const formatParquet = "parquet"

// KeyReadiness is the option that names the topic which policy readiness-topic tells.
const KeyReadiness = "sink.partition-commit.readiness-topic.name"

// ReadinessProperties is what the options begin with that say how the Kafka cluster of the
// readiness topic is reached.
const ReadinessProperties = "sink.partition-commit.readiness-topic.properties."

// Option keys, all Flink's but those of policies custom and readiness-topic.
const (
	keyPath           = "path"
	keyDefaultName    = "partition.default-name"
	keyFileSize       = "sink.rolling-policy.file-size"
	keyRollover       = "sink.rolling-policy.rollover-interval"
	keyCheckInterval  = "sink.rolling-policy.check-interval"
	keyInactivity     = "sink.rolling-policy.inactivity-interval"
	keyTrigger        = "sink.partition-commit.trigger"
	keyDelay          = "sink.partition-commit.delay"
	keyZone           = "sink.partition-commit.watermark-time-zone"
	keyPolicy         = "sink.partition-commit.policy.kind"
	keyPolicyClass    = "sink.partition-commit.policy.class"
	keyCommand        = "sink.partition-commit.policy.command"
	keyCommandTimeout = "sink.partition-commit.policy.command.timeout"
	keySuccessName    = "sink.partition-commit.success-file.name"
	keyReadyServers   = ReadinessProperties + "bootstrap.servers"
	keyExtractor      = "partition.time-extractor.kind"
	keyExtractorClass = "partition.time-extractor.class"
	keyPattern        = "partition.time-extractor.timestamp-pattern"
	keyFormatter      = "partition.time-extractor.timestamp-formatter"
	keyCompaction     = "auto-compaction"
	keyCompactionSize = "compaction.file-size"
	keyShuffle        = "sink.shuffle-by-partition.enable"
	keyParallelism    = "sink.parallelism"
	keyMonitor        = "source.monitor-interval"
	keyPathRegex      = "source.path.regex-pattern"
	keySkipLines      = "source.skip-lines"
	keyLookupCache    = "lookup.cache"
	keyCompression    = "sink.compression"
	keyLate           = "sink.late-data"
	keyLatePath       = "sink.late-data.path"
)

// Connector is the connector `filesystem`. It has no state besides its parts.
type Connector struct {
	fs      vfs.FS
	schemes map[string]Scheme
	formats map[string]format.Format
	pools   *parquetfmt.Pools
	spec    connector.Spec
	locks   string           // of commands; "": among temporary files
	now     func() time.Time // nil: the system's clock
}

// New makes the connector over a filesystem. Parquet is built in; formats are
// the text formats that tables may use beside it. pools are shared by all
// Parquet files written; nil makes new ones.
func New(fsys vfs.FS, pools *parquetfmt.Pools, formats ...format.Format) *Connector {
	if pools == nil {
		pools = parquetfmt.NewPools(0)
	}
	c := &Connector{fs: fsys, schemes: map[string]Scheme{}, formats: map[string]format.Format{}, pools: pools}
	specs := []connector.FormatSpec{parquetfmt.Spec()}
	for _, f := range formats {
		spec := f.Spec()
		c.formats[spec.Name] = f
		specs = append(specs, spec)
	}
	c.spec = connector.Spec{
		Name:    "filesystem",
		Summary: "Directories of Parquet, JSON or CSV files in Hive's layout.",
		Doc: "A table is a directory; a partitioned table has sub-directories `dt=2024-05-01/hr=08`. " +
			"Files become visible whole, by one rename, and hold exactly the offsets that the ledger and their footer name. " +
			"Names that start with `.` or `_` are never read. When a partition is complete a `_SUCCESS` file is written into it.\n\n" +
			"Rows that come for a partition which was announced are one more file, and it is announced again; with `'sink.late-data' = 'side-table'` they go to the directory `sink.late-data.path`, exactly once, and the partition stays as it was announced.\n\n" +
			"Reading back: each row group of a Parquet file, and each text file, is a split; files are listed with their length and time, and a file that changes afterwards is an error.\n\n" +
			"Text files whose names end with `.gz`, `.gzip`, `.zst`, `.bz2` or `.deflate` (zlib) are unpacked while they are read; offsets, in dead letters and messages, are those of the text. What one of them unpacks to is known only then, so its lag is an estimate, and after a restart it is unpacked again up to the position. " +
			"Of a file that is torn or damaged the rows before the damage are written; the error names the file, the byte in it and the offset in the text, and the table's other files are read. `millrace jobs resume --skip-lost` goes on behind it. Not yet: `.xz`, which Flink reads, and `.lz4`, `.lzo`, `.snappy`, `.br`, `.zip`: refused by name.\n\n" +
			"Looking up (`JOIN t FOR SYSTEM_TIME AS OF o.proc`): the whole table is read into memory at the first lookup and, with an interval, again; " +
			"a batch is answered from one reading, the old or the new one. A directory that does not exist and a record that cannot be read are errors, with which the lane waits and tries again. " +
			"Replace a table that is looked up by writing a new file beside the others and removing the old one only then, or by one rename.\n\n" + PolicyDoc + "\n\n" + strings.TrimSpace(failures),
		Source: true, Sink: true, Lookup: true, Bounded: true,
		Options:     c.options(),
		Formats:     specs,
		Metadata:    metadataColumns(),
		Changelog:   connector.InsertOnly,
		Partitioned: true,
		Places:      places,
		Guarantee:   "Exactly once: files are sealed, named in the ledger, then renamed without replacing.",
		Validate:    c.validate,
		RefusedFormats: map[string]string{
			"orc": "not_yet: ORC is not written or read; Parquet holds the same types and every engine reads it",
		},
	}
	return c
}

// Spec implements connector.Connector.
func (c *Connector) Spec() *connector.Spec { return &c.spec }

func (c *Connector) options() []connector.Option {
	notYet := func(what string) func(string) error {
		return func(string) error { return fmt.Errorf("not_yet: %s", what) }
	}
	onlyFalse := func(what string) func(string) error {
		return func(s string) error {
			if s == "true" {
				return fmt.Errorf("not_yet: %s", what)
			}
			return nil
		}
	}
	return slices.Concat([]connector.Option{
		{Key: keyPath, Type: connector.OptString, Required: true, Check: c.checkPath,
			Doc: "The table's directory: an absolute or relative path, a `file://` URL, or `hdfs://host:port/dir` (see [HDFS](hdfs.md))."},
		{Key: keyDefaultName, Type: connector.OptString, Default: "__HIVE_DEFAULT_PARTITION__", Check: checkDefaultName,
			Doc: "The directory name that stands for NULL and for the empty string in a partition column."},
		{Key: keyFileSize, Type: connector.OptBytes, Default: "128MB", Doc: "A file is sealed when it has this size."},
		{Key: keyCompression, Type: connector.OptEnum, Enum: []string{compressionNone, compressionGzip, compressionZstd}, Default: compressionNone,
			Doc: "How text files are compressed; their names end with `.gz` or `.zst`, and `" + keyFileSize + "` counts compressed bytes. Files of Parquet have `parquet.compression`. Not Flink's."},
		{Key: keyRollover, Type: connector.OptDuration, Default: "30 min", Doc: "A file is sealed at this age; rows are visible afterwards."},
		{Key: keyCheckInterval, Type: connector.OptDuration, Default: "1 min",
			Doc: "Accepted for Flink's sake: ages are watched all the time."},
		{Key: keyInactivity, Type: connector.OptDuration, Check: notYet("sealing files by inactivity; use '" + keyRollover + "'"), Doc: "Not yet."},
		{Key: keyTrigger, Type: connector.OptEnum, Enum: []string{"process-time", "partition-time"}, Default: "process-time",
			Doc: "What completes a partition: the delay since its first row (`process-time`), or the watermark passing the partition's time plus the delay (`partition-time`)."},
		{Key: keyDelay, Type: connector.OptDuration, Default: "0 s", Doc: "How long after its time a partition is announced: `1 h` for hourly, `1 d` for daily partitions. With `process-time` it is at least the rollover interval."},
		{Key: keyZone, Type: connector.OptString, Check: func(s string) error { _, err := loadZone(s); return err },
			Doc: "The zone in which a partition's values are times. Unset: the session zone."},
		{Key: keyPolicy, Type: connector.OptString, Check: checkPolicy,
			Doc: "How a partition is announced: `success-file`, `custom` (a command), `readiness-topic`, or several, separated by commas; they are carried out in this order. A partitioned table that is written must say."},
		{Key: keyPolicyClass, Type: connector.OptString, Check: func(string) error {
			return errors.New("a Java class cannot run here; policy 'custom' runs the command of '" + keyCommand + "'")
		}, Doc: "Refused: a Java class cannot run here. Policy `custom` runs a command."},
		{Key: keyCommand, Type: connector.OptString, Check: checkCommand,
			Doc: "The program of policy `custom` and its arguments, in which " + strings.Join(placeholders(), ", ") + " stand for the partition's. Words are separated by blanks or held together by quotes; there is no shell. Not Flink's."},
		{Key: keyCommandTimeout, Type: connector.OptDuration, Default: "1 min", Doc: "After how long the command is killed, with all that it started, and counts as failed. Not Flink's."},
		{Key: KeyReadiness, Type: connector.OptString, Check: checkReadiness,
			Doc: "The topic of policy `readiness-topic`; it is made if there is none. Not Flink's."},
		{Key: keyReadyServers, Type: connector.OptString, Doc: "Brokers of the Kafka cluster that has the topic, `host:port`, separated by commas. Unset: it is one of the embedded log."},
		{Key: ReadinessProperties + "*", Type: connector.OptString, Secret: true,
			Doc: "How this cluster is spoken to: what connector `kafka` calls `properties.*` (`security.protocol`, `sasl.*`, `ssl.*`, time-outs)."},
		{Key: keySuccessName, Type: connector.OptString, Default: "_SUCCESS", Check: checkSuccessName, Doc: "Name of the file that announces a partition."},
		{Key: keyExtractor, Type: connector.OptEnum, Enum: []string{"default"}, Default: "default", Doc: "How a partition's time is read: by pattern and formatter."},
		{Key: keyExtractorClass, Type: connector.OptString, Check: notYet("custom time extractors"), Doc: "Not yet."},
		{Key: keyPattern, Type: connector.OptString,
			Doc: "A partition's time from its columns, e.g. `$dt $hr:00:00`. Unset: the first partition column."},
		{Key: keyFormatter, Type: connector.OptString, Check: func(s string) error { _, err := compilePattern(s); return err },
			Doc: "The form of that time as a Java pattern of yyyy MM dd HH mm ss SSS. Unset: `yyyy-MM-dd[ HH:mm:ss]`, with one or two digits."},
		{Key: keyCompaction, Type: connector.OptBool, Default: "false", Check: onlyFalse("compaction of small files"), Doc: "Not yet."},
		{Key: keyCompactionSize, Type: connector.OptBytes, Check: notYet("compaction of small files"), Doc: "Not yet."},
		{Key: keyShuffle, Type: connector.OptBool, Default: "false", Check: onlyFalse("shuffling rows by partition before the sink"), Doc: "Not yet."},
		{Key: keyParallelism, Type: connector.OptInt, Check: notYet("a parallelism of its own for a sink; lanes follow the topics"), Doc: "Not yet."},
		{Key: keyMonitor, Type: connector.OptDuration, Doc: "Look for new files at this interval; unset: the files that are there at the start."},
		{Key: keyPathRegex, Type: connector.OptString, Check: notYet("reading only paths that match a pattern"), Doc: "Not yet."},
		{Key: keySkipLines, Type: connector.OptInt, Min: 0, Max: 1 << 20, Default: "0", Doc: "How many lines at the beginning of each text file are no rows, such as a line of names. Not Flink's."},
		{Key: keyLookupCache, Type: connector.OptEnum, Enum: []string{"FULL"}, Default: "FULL",
			Refused: map[string]string{"NONE": "files have no index: without a cache each lookup would read the whole table",
				"PARTIAL": "files have no index: the whole table is read for one row, and then kept"},
			Doc: "How a table that is looked up is kept: whole, in memory."},
	}, lateOptions(), fullcache.SpecOptions())
}

func (c *Connector) validate(v connector.Values) error {
	if err := c.validateScheme(v); err != nil {
		return err
	}
	if v.Has(keyFormatter) && !v.Has(keyPattern) {
		return &connector.OptionError{Key: keyFormatter, Message: "'" + keyFormatter + "' has no effect without '" + keyPattern + "'"}
	}
	if v.Has(keyTrigger) && v.String(keyTrigger) == "partition-time" && !v.Has(keyPolicy) {
		return &connector.OptionError{Key: keyTrigger, Message: "'" + keyTrigger + "' has no effect without '" + keyPolicy + "'",
			Hint: "'" + keyPolicy + "' = 'success-file'"}
	}
	if err := validatePolicies(v); err != nil {
		return err
	}
	if err := c.validateLate(v); err != nil {
		return err
	}
	if v.Bytes(keyFileSize) <= 0 {
		return &connector.OptionError{Key: keyFileSize, OnValue: true, Message: "files cannot be sealed at 0 bytes"}
	}
	if v.Has(keyCompression) && v.String(keyCompression) != compressionNone && v.String("format") == formatParquet {
		return &connector.OptionError{Key: keyCompression, Message: "files of Parquet are compressed page by page, so that a part can be read",
			Hint: "'parquet.compression' = '" + strings.ToUpper(v.String(keyCompression)) + "'"}
	}
	if v.Has(keySkipLines) && v.String("format") == formatParquet {
		return &connector.OptionError{Key: keySkipLines, Message: "files of Parquet have no lines"}
	}
	return fullcache.Validate(v)
}

func checkDefaultName(s string) error {
	if s == "" || strings.ContainsRune(s, '/') {
		return fmt.Errorf("%q cannot be a directory name", s)
	}
	return nil
}

func checkSuccessName(s string) error {
	if s == "" || strings.ContainsRune(s, '/') || s[0] != '_' && s[0] != '.' {
		return fmt.Errorf("%q would be read as data; the name must start with _ or .", s)
	}
	return nil
}

// tableOptions are a table's options, read once.
type tableOptions struct {
	format      string
	defaultName string
	rollBytes   int64
	rollAge     time.Duration
	policies    Policies
	command     *command                 // policy custom
	readiness   connector.ReadinessTopic // policy readiness-topic
	trigger     connector.CommitTrigger
	delay       time.Duration
	success     string
	time        func(tablePartition string) (int64, error)
	monitor     time.Duration
	skipLines   int    // at the beginning of a text file that is read
	compression string // of text files that are written
}

// compressedEnding is what the names of text files that are written end with.
func (o *tableOptions) compressedEnding() string {
	for _, c := range codecs() {
		if c.name == o.compression {
			return c.endings[0]
		}
	}
	return ""
}

func (c *Connector) tableOptions(t *connector.Table) (tableOptions, error) {
	v := t.Options
	o := tableOptions{
		format:      v.String("format"),
		defaultName: v.String(keyDefaultName),
		rollBytes:   v.Bytes(keyFileSize),
		rollAge:     v.Duration(keyRollover),
		delay:       v.Duration(keyDelay),
		success:     v.String(keySuccessName),
		monitor:     v.Duration(keyMonitor),
		skipLines:   int(v.Int(keySkipLines)),
		compression: v.String(keyCompression),
	}
	if o.format != formatParquet && c.formats[o.format] == nil {
		return o, &connector.OptionError{Key: "format", OnValue: true, Message: fmt.Sprintf("format %q cannot be used in files", o.format)}
	}
	var err error
	if o.policies, err = ParsePolicies(v.String(keyPolicy)); err != nil {
		return o, &connector.OptionError{Key: keyPolicy, OnValue: true, Message: err.Error()}
	}
	if o.policies.Readiness {
		o.readiness = connector.ReadinessTopic{Name: v.String(KeyReadiness), Cluster: v.Family(ReadinessProperties)}
	}
	if o.policies.Command {
		o.command = &command{timeout: v.Duration(keyCommandTimeout)}
		if o.command.words, err = splitCommand(v.String(keyCommand)); err != nil {
			return o, &connector.OptionError{Key: keyCommand, OnValue: true, Message: err.Error()}
		}
	}
	if o.policies.Any() {
		o.trigger = connector.ProcessTime
		if v.String(keyTrigger) == "partition-time" {
			o.trigger = connector.PartitionTime
		} else {
			// Announcing a partition seals its files. By process time, with
			// Flink's default delay of 0, that would be one file a batch; so
			// it waits until they are sealed by age anyway.
			o.delay = max(o.delay, o.rollAge)
		}
	}
	zone := t.Zone
	if zone == nil {
		zone = time.UTC
	}
	if v.Has(keyZone) {
		z, err := loadZone(v.String(keyZone))
		if err != nil {
			return o, &connector.OptionError{Key: keyZone, OnValue: true, Message: err.Error()}
		}
		zone = z
	}
	o.time, err = timeExtractor(v.String(keyPattern), v.String(keyFormatter), zone, o.defaultName)
	return o, err
}

// checkParquet makes and drops a writer of the columns.
func checkParquet(fields []types.Field, o parquetfmt.Options) error {
	w, err := parquetfmt.NewWriter(discard{}, fields, o)
	if err != nil {
		return err
	}
	w.Abort()
	return nil
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
