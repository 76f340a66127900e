package redis

import (
	_ "embed" // the page
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
	keyURL       = "url"
	keyMode      = "redis-mode"
	keyNodes     = "cluster-nodes"
	keySentinels = "sentinels.info"
	keyMaster    = "master.name"
	keyDatabase  = "database"
	keyTLS       = "tls.enabled"

	keySentinelPassword = "sentinels.password"

	keyUser       = "username"
	keyPassword   = "password"
	keyType       = "data-type"
	keyKey        = "key"
	keyMember     = "member"
	keyScore      = "score"
	keyFormat     = "value-format"
	keyTTL        = "ttl"
	keyFlushBytes = "sink.buffer-flush.max-bytes"
	keyFlushAge   = "sink.buffer-flush.interval"
	keyConnect    = "connect.timeout"
	keyRequest    = "request.timeout"
)

// Data types.
const (
	typeHash   = "hash"
	typeString = "string"
	typeSet    = "set"
	typeZSet   = "zset"
)

const (
	formatJSON  = "json"
	formatPlain = "plain"
)

// Connector is the connector `redis`. It has no state besides its parts.
type Connector struct {
	fs      vfs.FS
	staging string
	spec    connector.Spec
}

// New makes the connector. staging is the directory, of the data directory, in
// which sealed rows lie until the server has them; "" serves for checking files
// only.
func New(fsys vfs.FS, staging string) *Connector {
	return &Connector{fs: fsys, staging: staging, spec: connector.Spec{
		Name:      "redis",
		Summary:   "Keys of a Redis server, a Redis Cluster or behind Sentinel, written and looked up by primary key.",
		Doc:       strings.TrimSpace(page),
		Sink:      true,
		Lookup:    true,
		Options:   options(),
		Changelog: connector.Upsert,
		Guarantee: "At least once, with the same end state as exactly once: each row sets absolute values under its primary key, a lane's rows are sent in order, " +
			"and a request of an earlier process that arrives late is kept out, so that sending again changes nothing. (In a cluster: slot by slot.)",
		Validate: validate,
	}}
}

// Spec implements connector.Connector.
func (c *Connector) Spec() *connector.Spec { return &c.spec }

func options() []connector.Option {
	return slices.Concat([]connector.Option{
		{Key: keyMode, Type: connector.OptEnum, Enum: []string{modeSingle, modeCluster, modeSentinel}, Default: modeSingle,
			Doc: "What the servers are: one server (`single`), a `cluster`, or a primary with replicas that Sentinel watches (`sentinel`)."},
		{Key: keyURL, Type: connector.OptString, Secret: true, Check: func(s string) error { _, err := parseURL(s); return err },
			Doc: "The server: `redis://[user:password@]host:6379[/db]`; `rediss://` uses TLS. It may hold a password, and is masked. For `single`."},
		{Key: keyNodes, Type: connector.OptString, Check: checkHosts, Doc: "Some nodes of the cluster, `host:6379,host:6379`; the others are found. For `cluster`."},
		{Key: keySentinels, Type: connector.OptString, Check: checkHosts, Doc: "The Sentinels, `host:26379,host:26379`. For `sentinel`."},
		{Key: keyMaster, Type: connector.OptString, Doc: "The name under which they watch the primary. For `sentinel`."},
		{Key: keySentinelPassword, Type: connector.OptString, Secret: true, Doc: "The Sentinels' own password. Unset: they ask for none."},
		{Key: keyDatabase, Type: connector.OptInt, Default: "0", Doc: "The number of the database. For `sentinel`; with `single` it is the URL's, and a cluster has one."},
		{Key: keyTLS, Type: connector.OptBool, Default: "false", Doc: "Use TLS, for `cluster` and `sentinel`; with `single` the URL says so."},
		{Key: keyUser, Type: connector.OptString, Doc: "The user, instead of the URL's. Sentinels are asked without one."},
		{Key: keyPassword, Type: connector.OptString, Secret: true, Doc: "The user's password, instead of the URL's."},
		{Key: keyType, Type: connector.OptEnum, Enum: []string{typeHash, typeString, typeSet, typeZSet}, Default: typeHash,
			Refused: map[string]string{"list": "a list cannot be written by primary key: a row that is sent again would be there twice"},
			Doc:     "What a row is: fields of a `hash`, a `string`, a member of a `set`, a scored member of a `zset` (sorted set)."},
		{Key: keyKey, Type: connector.OptString,
			Doc: "The key, with columns of the primary key in braces: 'user:{uid}'. Unset: the table's name and all of them, separated by `:`."},
		{Key: keyMember, Type: connector.OptString, Doc: "The primary key column that is the member, for `set` and `zset`. Unset: the last one."},
		{Key: keyScore, Type: connector.OptString, Doc: "The numeric column that is the score, for `zset`."},
		{Key: keyFormat, Type: connector.OptEnum, Enum: []string{formatJSON, formatPlain}, Default: formatJSON,
			Doc: "For `string`: `json`, an object of all columns outside the primary key, or `plain`, the text of the only one."},
		{Key: keyTTL, Type: connector.OptDuration, Doc: "How long a key lives after its last row. Unset: for ever."},
		{Key: keyFlushBytes, Type: connector.OptBytes, Default: "1MB", Doc: "Rows are sent when their commands have this size, in one transaction."},
		{Key: keyFlushAge, Type: connector.OptDuration, Default: "1 s", Doc: "Rows are sent at this age."},
		{Key: keyConnect, Type: connector.OptDuration, Default: "5 s", Doc: "How long a connection may take."},
		{Key: keyRequest, Type: connector.OptDuration, Default: "30 s", Doc: "How long one transaction, or one request of a lookup, may take before it is sent again."},
	}, tlsfiles.Options(), partialcache.SpecOptions())
}

func validate(v connector.Values) error {
	typ := v.String(keyType)
	only := func(key string, types ...string) error {
		if !v.Has(key) {
			return nil
		}
		for _, t := range types {
			if t == typ {
				return nil
			}
		}
		return &connector.OptionError{Key: key, Message: "'" + key + "' has no effect with '" + keyType + "' = '" + typ + "'"}
	}
	for _, err := range []error{only(keyMember, typeSet, typeZSet), only(keyScore, typeZSet), only(keyFormat, typeString), partialcache.Validate(v)} {
		if err != nil {
			return err
		}
	}
	switch {
	case typ == typeZSet && !v.Has(keyScore):
		return &connector.OptionError{Key: keyType, OnValue: true, Message: "a sorted set needs '" + keyScore + "', the column of the score"}
	case v.Has(keyTTL) && v.Duration(keyTTL) < time.Millisecond:
		return &connector.OptionError{Key: keyTTL, OnValue: true, Message: "a key lives at least 1 ms"}
	case v.Bytes(keyFlushBytes) < 1<<10 || v.Bytes(keyFlushBytes) > 64<<20:
		return &connector.OptionError{Key: keyFlushBytes, OnValue: true, Message: "a transaction has between 1 KB and 64 MB"}
	}
	a, err := addressOf(v)
	if err != nil {
		return err
	}
	hint := "rediss:// in '" + keyURL + "'"
	if a.mode != modeSingle {
		hint = "'" + keyTLS + "' = 'true'"
	}
	return tlsfiles.Validate(v, a.tls, hint)
}
