package clickhouse

import (
	_ "embed" // the page
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/connectors/partialcache"
	"github.com/millrace/millrace/connectors/tlsfiles"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

//go:embed page.md
var page string

// Option keys.
const (
	keyURL         = "url"
	keyDatabase    = "database-name"
	keyTable       = "table-name"
	keyUser        = "username"
	keyPassword    = "password"
	keyGuarantee   = "sink.delivery-guarantee"
	keyMethod      = "sink.commit-method"
	keyFlushBytes  = "sink.buffer-flush.max-bytes"
	keyFlushAge    = "sink.buffer-flush.interval"
	keyCompression = "sink.compression"
	keyCreate      = "sink.create-table"
	keyCreateOrder = "sink.create-table.order-by"
	keyWiden       = "sink.widen-table"
	keyConnect     = "connect.timeout"
	keyRequest     = "request.timeout"
	keySettings    = "settings.*"

	keyFilter      = "scan.filter"
	keyRangeColumn = "scan.partition.column"
	keyRanges      = "scan.partition.num"
	keyRangeLower  = "scan.partition.lower-bound"
	keyRangeUpper  = "scan.partition.upper-bound"
)

// Commit methods.
const (
	methodAuto    = "auto"
	methodToken   = "token"
	methodColumn  = "column"
	methodReplace = "replace"
	methodUpsert  = "upsert"
)

const (
	exactlyOnce = "exactly-once"
	atLeastOnce = "at-least-once"
)

// Connector is the connector `clickhouse`. It has no state besides its parts.
type Connector struct {
	fs      vfs.FS
	staging string
	spec    connector.Spec
}

// New makes the connector. staging is the directory, of the data directory, in
// which sealed blocks lie until the server has them; "" serves for checking
// files only.
func New(fsys vfs.FS, staging string) *Connector {
	return &Connector{fs: fsys, staging: staging, spec: connector.Spec{
		Name:    "clickhouse",
		Summary: "Tables of a ClickHouse server.",
		Doc:     strings.TrimSpace(page),
		Source:  true, Sink: true, Lookup: true, Bounded: true,
		Options:     options(),
		Changelog:   connector.InsertOnly,
		Partitioned: true,
		Places:      places,
		Guarantee: "Exactly once: a sealed block is inserted under its artefact id as deduplication token (`token`), or looked up by its id in the column `_mr_artifact` before it is sent again (`column`), or a table partition's whole content takes its place (`replace`); " +
			"with `sink.delivery-guarantee` = 'at-least-once' or method `upsert` a block may come twice.",
		Validate: validate,
	}}
}

// Spec implements connector.Connector.
func (c *Connector) Spec() *connector.Spec { return &c.spec }

func options() []connector.Option {
	return slices.Concat([]connector.Option{
		{Key: keyURL, Type: connector.OptString, Required: true, Check: checkURL,
			Doc: "The servers: `clickhouse://host:9000[,host2:9000]`; further ones are replicas, tried in order. `clickhouses://` uses TLS, `http://host:8123` and `https://` the HTTP protocol."},
		{Key: keyDatabase, Type: connector.OptString, Default: "default", Doc: "The database."},
		{Key: keyTable, Type: connector.OptString, Required: true, Doc: "The table. Of a `Distributed` one the local tables are written, each row on the shard that the table's sharding key gives."},
		{Key: keyUser, Type: connector.OptString, Default: "default", Doc: "The user."},
		{Key: keyPassword, Type: connector.OptString, Secret: true, Doc: "The user's password."},
		{Key: keyGuarantee, Type: connector.OptEnum, Enum: []string{exactlyOnce, atLeastOnce}, Default: exactlyOnce,
			Doc: "`exactly-once` refuses a table for which no method gives it; `at-least-once` sends a block again after a lost answer, whatever the table."},
		{Key: keyMethod, Type: connector.OptEnum, Enum: []string{methodAuto, methodToken, methodColumn, methodReplace, methodUpsert}, Default: methodAuto,
			Doc: "How a block is kept from coming twice: `token` (deduplication by the server), `column` (by looking for its id in column `_mr_artifact`), `replace` (results of windows and wide tables take the place of a table partition), `upsert` (a ReplacingMergeTree merges the copies; at least once), " +
				"or `auto`: the first of token and column that the table allows."},
		{Key: keyFlushBytes, Type: connector.OptBytes, Default: "32MB", Doc: "A block is sealed when it has this size."},
		{Key: keyFlushAge, Type: connector.OptDuration, Default: "5 s", Doc: "A block is sealed at this age; its rows are visible afterwards."},
		{Key: keyCompression, Type: connector.OptEnum, Enum: []string{"none", "lz4", "zstd"}, Default: "lz4",
			Doc: "Compression of what is sent. `none` is the cheapest on one machine, `zstd` the smallest."},
		{Key: keyCreate, Type: connector.OptBool, Default: "false",
			Doc: "Create the table when it is missing: MergeTree, with the columns of this table, PARTITIONED BY as its partition key and a deduplication window."},
		{Key: keyCreateOrder, Type: connector.OptList,
			Doc: "The columns of ORDER BY of a table that is created, separated by `;`. Unset: the primary key, else none."},
		{Key: keyWiden, Type: connector.OptBool, Default: "false",
			Doc: "Add columns that the table lacks (ALTER TABLE ... ADD COLUMN) before the first block. Nothing else is ever altered."},
		{Key: keyConnect, Type: connector.OptDuration, Default: "10 s", Doc: "How long a connection may take."},
		{Key: keyRequest, Type: connector.OptDuration, Default: "2 min", Doc: "How long one INSERT may take before its outcome counts as unknown and is looked for."},
		{Key: keySettings, Type: connector.OptString, Doc: "Settings of the server for each INSERT, e.g. `settings.insert_quorum` = '2'."},
	}, tlsfiles.Options(), scanOptionList(), partialcache.SpecOptions())
}

// ownSettings are the settings that the sink itself decides.
var ownSettings = [...]string{"insert_deduplication_token", "insert_deduplicate", "deduplicate_insert", "async_insert", "wait_for_async_insert",
	"max_partitions_per_insert_block", "async_insert_deduplicate"}

func validate(v connector.Values) error {
	for name := range v.Family(strings.TrimSuffix(keySettings, "*")) {
		for _, own := range ownSettings {
			if name == own {
				return &connector.OptionError{Key: "settings." + name, Message: "setting " + name + " is the sink's own: the guarantee depends on it"}
			}
		}
	}
	if v.Bytes(keyFlushBytes) < 1<<10 || v.Bytes(keyFlushBytes) > 1<<30 {
		return &connector.OptionError{Key: keyFlushBytes, OnValue: true, Message: "a block has between 1 KB and 1 GB"}
	}
	for _, check := range []func(connector.Values) error{validateTLS, validateScan, partialcache.Validate} {
		if err := check(v); err != nil {
			return err
		}
	}
	if v.Has(keyCreateOrder) && !v.Bool(keyCreate) {
		return &connector.OptionError{Key: keyCreateOrder, Message: "'" + keyCreateOrder + "' has no effect without '" + keyCreate + "' = 'true'"}
	}
	if v.String(keyMethod) == methodUpsert && v.String(keyGuarantee) == exactlyOnce {
		return &connector.OptionError{Key: keyMethod, OnValue: true,
			Message: "method upsert is at least once: copies are merged some time after they are visible",
			Hint:    "'" + keyGuarantee + "' = 'at-least-once'"}
	}
	return nil
}

func validateTLS(v connector.Values) error {
	addr, err := parseURL(v.String(keyURL))
	if err != nil {
		return nil // which its own check says
	}
	return tlsfiles.Validate(v, addr.tls, "clickhouses:// or https:// in '"+keyURL+"'")
}

func checkURL(s string) error {
	_, err := parseURL(s)
	return err
}

// address is where the servers are.
type address struct {
	hosts []string
	tls   bool
	http  bool
}

func parseURL(s string) (address, error) {
	var a address
	scheme, rest, ok := strings.Cut(s, "://")
	if !ok {
		return a, errors.New("it is not of the form clickhouse://host:9000")
	}
	port := "9000"
	switch scheme {
	case "clickhouse", "tcp":
	case "clickhouses":
		a.tls, port = true, "9440"
	case "http":
		a.http, port = true, "8123"
	case "https":
		a.http, a.tls, port = true, true, "8443"
	default:
		return a, fmt.Errorf("%q is no protocol of ClickHouse; use clickhouse://host:9000", scheme)
	}
	for h := range strings.SplitSeq(strings.TrimSuffix(rest, "/"), ",") {
		// A password may stand in what is refused: no message repeats it.
		if strings.Contains(h, "@") {
			return a, errors.New("a user in the URL is not taken: use '" + keyUser + "' and '" + keyPassword + "'")
		}
		u, err := url.Parse("//" + h)
		if err != nil || u.Hostname() == "" {
			return a, fmt.Errorf("server %d is not host:port", len(a.hosts)+1)
		}
		if u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
			return a, errors.New("after host:port nothing is taken: use '" + keyDatabase + "', '" + keyUser + "', '" + keyPassword + "' and 'settings.*'")
		}
		if u.Port() == "" {
			h = u.Host + ":" + port
		}
		a.hosts = append(a.hosts, h)
	}
	return a, nil
}

// tableOptions are a table's options, read once.
type tableOptions struct {
	addr             address
	database, table  string
	user, password   string
	exactlyOnce      bool
	method           string
	flushBytes       int64
	flushAge         time.Duration
	compression      string
	create, widen    bool
	orderBy          []string
	connect, request time.Duration
	settings         map[string]string
	tls              tlsfiles.Files
}

func optionsOf(v connector.Values) (tableOptions, error) {
	addr, err := parseURL(v.String(keyURL))
	if err != nil {
		return tableOptions{}, &connector.OptionError{Key: keyURL, OnValue: true, Message: err.Error()}
	}
	return tableOptions{
		addr: addr, database: v.String(keyDatabase), table: v.String(keyTable), user: v.String(keyUser), password: v.String(keyPassword),
		exactlyOnce: v.String(keyGuarantee) == exactlyOnce, method: v.String(keyMethod),
		flushBytes: v.Bytes(keyFlushBytes), flushAge: v.Duration(keyFlushAge), compression: v.String(keyCompression),
		create: v.Bool(keyCreate), widen: v.Bool(keyWiden), orderBy: v.List(keyCreateOrder),
		connect: v.Duration(keyConnect), request: v.Duration(keyRequest),
		settings: v.Family(strings.TrimSuffix(keySettings, "*")), tls: tlsfiles.Of(v),
	}, nil
}
