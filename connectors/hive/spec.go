package hive

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/format/parquetfmt"
	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/connector"
)

// Option keys, Hive's and Flink's where they have one.
const (
	keyURIs        = "hive.metastore.uris"
	keyTimeout     = "hive.metastore.client.socket.timeout"
	keyConnect     = "hive.metastore.client.connection.timeout"
	keyUser        = "hive.metastore.user"
	keySASL        = "hive.metastore.sasl.enabled"
	keyDatabase    = "database-name"
	keyTable       = "table-name"
	keyCreate      = "sink.create-table"
	keyEvolution   = "sink.schema-evolution"
	keyPath        = "path"
	keyPolicy      = "sink.partition-commit.policy.kind"
	keyInt64       = "parquet.write.int64.timestamp"
	keyHDFSUser    = "hdfs.user"
	keyStandby     = "hdfs.standby"
	keyDefaultName = "partition.default-name"
	// keyTextCompression is of text files, which are not written here.
	keyTextCompression = "sink.compression"
	keyRetention       = "sink.versions.retention"
	keyLate            = "sink.late-data"
	keyLateTable       = "sink.late-data.table-name"
	keyLatePath        = "sink.late-data.path"
	keyMerge           = "auto-compaction"
	keyMergeBytes      = "compaction.file-size"
	keyFileSize        = "sink.rolling-policy.file-size"
)

// What may be changed in a table whose columns do not match.
const (
	evolveNothing = "none"
	evolveAdd     = "add-columns"
	evolveWiden   = "widen"
)

// Connector is the connector `hive`.
type Connector struct {
	files *filesystem.Connector
	spec  connector.Spec

	// dial makes a client; tests give another.
	dial func(metastore.Options) catalog

	mu      sync.Mutex
	clients map[clientKey]*sharedClient
}

// catalog is what a table needs of a metastore; see *metastore.Client.
type catalog interface {
	Database(ctx context.Context, name string) (*metastore.Database, error)
	Table(ctx context.Context, database, name string) (*metastore.Table, error)
	CreateTable(ctx context.Context, t *metastore.Table) error
	AlterTable(ctx context.Context, t *metastore.Table, cascade bool) error
	Partitions(ctx context.Context, database, table string, names []string) ([]*metastore.Partition, error)
	PartitionNames(ctx context.Context, database, table string) ([]string, error)
	AddPartitions(ctx context.Context, database, table string, parts []*metastore.Partition) ([]*metastore.Partition, error)
	AlterPartitions(ctx context.Context, database, table string, parts []*metastore.Partition) error
	Close() error
}

// clientKey is what tables must have in common to share a client.
type clientKey struct {
	uris, user       string
	connect, timeout time.Duration
}

type sharedClient struct {
	catalog
	users int
}

// New makes the connector; its tables' files are written by files.
func New(files *filesystem.Connector) *Connector {
	c := &Connector{files: files, clients: map[clientKey]*sharedClient{},
		dial: func(o metastore.Options) catalog { return metastore.New(o) }}
	c.spec = connector.Spec{
		Name:          "hive",
		Summary:       "Tables of a Hive Metastore: written as Parquet files, read as Parquet, text or JSON.",
		Doc:           doc,
		Source:        true,
		Sink:          true,
		Bounded:       true,
		FoldsNames:    true,
		Metadata:      files.Spec().Metadata,
		Options:       options(files.Spec().Options),
		Formats:       []connector.FormatSpec{parquetfmt.Spec()},
		DefaultFormat: "parquet",
		Changelog:     connector.InsertOnly,
		Partitioned:   true,
		Places:        places,
		Guarantee:     "Exactly once: files are sealed, named in the ledger, then renamed without replacing; partitions are registered after their files, idempotently.",
		Validate:      func(v connector.Values) error { return validate(files.Spec(), v) },
	}
	return c
}

// Spec implements connector.Connector.
func (c *Connector) Spec() *connector.Spec { return &c.spec }

// options are those of connector filesystem that say how files are written and
// partitions complete, and Hive's own.
func options(files []connector.Option) []connector.Option {
	notYet := func(what string) func(string) error {
		return func(s string) error {
			if s == "true" {
				return fmt.Errorf("not_yet: %s", what)
			}
			return nil
		}
	}
	own := []connector.Option{
		{Key: keyURIs, Type: connector.OptString, Required: true,
			Check: func(s string) error { _, err := metastore.ParseURIs(s); return err },
			Doc:   "Addresses of the metastore, `thrift://host:9083`, separated by commas; the first that answers is used."},
		{Key: keyDatabase, Type: connector.OptString, Default: "default", Doc: "The database of the table."},
		{Key: keyTable, Type: connector.OptString, Doc: "The table's name in the metastore. Unset: its name in SQL, in lower case."},
		{Key: keyPath, Type: connector.OptString,
			Doc: "The table's directory. Unset: where the metastore says. For a table that is there it must be the same; a new one is created there."},
		{Key: keyCreate, Type: connector.OptBool, Default: "false", Doc: "Create the table in the metastore, as an external one, if there is none."},
		{Key: keyEvolution, Type: connector.OptEnum, Enum: []string{evolveNothing, evolveAdd, evolveWiden}, Default: evolveNothing,
			Doc: "What is changed in a table whose columns do not match: nothing (an error names them), missing columns are added to the table and its partitions (`add-columns`), or narrower ones are widened as well (`widen`)."},
		{Key: keyPolicy, Type: connector.OptString, Check: checkPolicy,
			Doc: "How a partition is announced: `metastore`, `success-file`, `custom` (a command), `readiness-topic`, or several, separated by commas; they are carried out in this order. A partitioned table that is written must say."},
		{Key: keyRetention, Type: connector.OptDuration, Default: "1 d",
			Doc: "How long a content that was replaced stays on disk for queries that have begun to read it. It is removed when the table is next written after that."},
		{Key: keyLate, Type: connector.OptEnum, Enum: []string{lateAppend, lateRewrite, lateSide}, Default: lateAppend,
			Doc: "What becomes of rows that come for a partition which was announced: one more file, and the partition is announced again (`append`), or the files of the partition are also written again as few (`rewrite`), or they go to a table of their own and the partition stays as it is (`side-table`)."},
		{Key: keyLateTable, Type: connector.OptString, Check: func(s string) error { _, err := hiveName(s); return err },
			Doc: "The table of the same database for late rows (`side-table`): the same columns and no partitions. `sink.create-table` and `sink.schema-evolution` are for it, too."},
		{Key: keyLatePath, Type: connector.OptString, Doc: "The directory of the table of late rows, as `path` is the table's own."},
		{Key: keyMerge, Type: connector.OptBool, Default: "false",
			Doc: "Write the files of a partition again, as files of `compaction.file-size`, before it is announced, where they are on average smaller than half of that."},
		{Key: keyMergeBytes, Type: connector.OptBytes, Doc: "The size of files that are written again. Unset: `sink.rolling-policy.file-size`."},
		{Key: keyUser, Type: connector.OptString, Doc: "Who calls are made for in a metastore without Kerberos, and who owns a table that is created. Unset: `hdfs.user`, $HADOOP_USER_NAME, else the user of the process."},
		{Key: keyConnect, Type: connector.OptDuration, Default: "5 s", Doc: "How long connecting to one address may take."},
		{Key: keyTimeout, Type: connector.OptDuration, Default: "60 s", Doc: "How long one call may take."},
		{Key: keySASL, Type: connector.OptBool, Default: "false", Check: notYet("a metastore with Kerberos"), Doc: "Not yet."},
	}
	mine := map[string]bool{keyDefaultName: true, keyTextCompression: true}
	for _, o := range own {
		mine[o.Key] = true
	}
	for _, o := range files {
		if !mine[o.Key] && !strings.HasPrefix(o.Key, "source.") && !strings.HasPrefix(o.Key, "lookup.") {
			own = append(own, o)
		}
	}
	return own
}

func checkPolicy(s string) error {
	_, err := filesystem.ParsePolicies(s)
	return err
}

func validate(files *connector.Spec, v connector.Values) error {
	if merges := v.Bool(keyMerge) || v.String(keyLate) == lateRewrite; merges && !strings.Contains(v.String(keyPolicy), "metastore") {
		return &connector.OptionError{Key: keyPolicy, OnValue: v.Has(keyPolicy), Missing: !v.Has(keyPolicy),
			Message: "files that are written again are seen through the metastore alone: '" + keyPolicy + "' needs 'metastore'", Hint: "'" + keyPolicy + "' = 'metastore,success-file'"}
	}
	if err := validateLate(v); err != nil {
		return err
	}
	if v.Has(keyMergeBytes) && v.Bytes(keyMergeBytes) <= 0 {
		return &connector.OptionError{Key: keyMergeBytes, OnValue: true, Message: "files of no bytes hold no rows"}
	}
	for _, k := range []string{keyConnect, keyTimeout} {
		if v.Duration(k) <= 0 {
			return &connector.OptionError{Key: k, OnValue: true, Message: "no call can end within 0 seconds"}
		}
	}
	if v.Has(keyStandby) && !v.Has(keyPath) {
		return &connector.OptionError{Key: keyPath, Missing: true, Message: "a table with a standby needs option '" + keyPath + "', its directory at the main home"}
	}
	if files.Validate == nil {
		return nil
	}
	// Late rows go to a table of the metastore, not to a directory.
	return files.Validate(v.With(map[string]string{keyLate: "", keyLatePath: ""}))
}

// validateLate checks the options of late rows.
func validateLate(v connector.Values) error {
	side := v.String(keyLate) == lateSide
	for _, k := range []string{keyLateTable, keyLatePath} {
		if v.Has(k) && !side {
			return &connector.OptionError{Key: k, Message: "'" + k + "' has no effect unless '" + keyLate + "' is '" + lateSide + "'"}
		}
	}
	if !side {
		return nil
	}
	if !v.Has(keyLateTable) {
		return &connector.OptionError{Key: keyLateTable, Missing: true, Message: "'" + keyLate + "' = '" + lateSide + "' needs option '" + keyLateTable + "'",
			Hint: "'" + keyLateTable + "' = 'events_late'"}
	}
	if strings.EqualFold(v.String(keyLateTable), v.String(keyTable)) {
		return &connector.OptionError{Key: keyLateTable, OnValue: true, Message: "late rows cannot go to the table that they are late for"}
	}
	return nil
}

// tableOptions are a table's options, read once.
type tableOptions struct {
	database, table string
	path            string
	create          bool
	evolution       string
	policies        filesystem.Policies
	user            string
	int96           bool
	retention       time.Duration
	late            string
	merge           bool
	mergeBytes      int64
}

func (c *Connector) tableOptions(t *connector.Table) (tableOptions, error) {
	v := t.Options
	o := tableOptions{
		database: v.String(keyDatabase), table: tableName(t.Name, v), path: v.String(keyPath),
		create: v.Bool(keyCreate), evolution: v.String(keyEvolution),
		user: v.String(keyUser), int96: !v.Bool(keyInt64), retention: v.Duration(keyRetention),
		late: v.String(keyLate), merge: v.Bool(keyMerge), mergeBytes: v.Bytes(keyMergeBytes),
	}
	if o.mergeBytes == 0 {
		o.mergeBytes = v.Bytes(keyFileSize)
	}
	var err error
	if o.policies, err = filesystem.ParsePolicies(v.String(keyPolicy)); err != nil {
		return o, &connector.OptionError{Key: keyPolicy, OnValue: true, Message: err.Error()}
	}
	if o.late == lateSide && strings.EqualFold(o.table, v.String(keyLateTable)) {
		return o, &connector.OptionError{Key: keyLateTable, OnValue: true, Message: "late rows cannot go to the table that they are late for"}
	}
	for key, name := range map[string]*string{keyDatabase: &o.database, keyTable: &o.table} {
		low, err := hiveName(*name)
		if err != nil {
			return o, &connector.OptionError{Key: key, OnValue: true, Message: err.Error()}
		}
		*name = low
	}
	if o.user == "" && v.Has(keyHDFSUser) {
		o.user = v.String(keyHDFSUser)
	}
	if o.user == "" {
		o.user = os.Getenv("HADOOP_USER_NAME")
	}
	if o.user == "" {
		if u, err := user.Current(); err == nil {
			o.user = u.Username
		}
	}
	return o, nil
}

// client gives the client of a table's metastore; done gives it back.
func (c *Connector) client(v connector.Values, user string) (client catalog, done func(), err error) {
	k := clientKey{uris: v.String(keyURIs), user: user, connect: v.Duration(keyConnect), timeout: v.Duration(keyTimeout)}
	addresses, err := metastore.ParseURIs(k.uris)
	if err != nil {
		return nil, nil, &connector.OptionError{Key: keyURIs, OnValue: true, Message: err.Error()}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.clients[k]
	if s == nil {
		s = &sharedClient{catalog: c.dial(metastore.Options{Addresses: addresses, User: k.user, ConnectTimeout: k.connect, CallTimeout: k.timeout,
			Denied: fmt.Sprintf("it is called for user %q: give that user the directory with 'hdfs dfs -chown', or name another '%s'", k.user, keyUser)})}
		c.clients[k] = s
	}
	s.users++
	return s.catalog, sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if s.users--; s.users == 0 {
			delete(c.clients, k)
			s.Close()
		}
	}), nil
}
