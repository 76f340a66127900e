package redis

import (
	_ "embed" // the page
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/connectors/partialcache"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

//go:embed page.md
var page string

// Option keys.
const (
	keyURL        = "url"
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
	keyCA         = "tls.ca-file"
	keyCert       = "tls.cert-file"
	keyCertKey    = "tls.key-file"
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
		Summary:   "Keys of a Redis server, written and looked up by primary key.",
		Doc:       strings.TrimSpace(page),
		Sink:      true,
		Lookup:    true,
		Options:   options(),
		Changelog: connector.Upsert,
		Guarantee: "At least once, with the same end state as exactly once: each row sets absolute values under its primary key, a lane's rows are sent in order, " +
			"and a request of an earlier process that arrives late is kept out, so that sending again changes nothing.",
		Validate: validate,
	}}
}

// Spec implements connector.Connector.
func (c *Connector) Spec() *connector.Spec { return &c.spec }

func options() []connector.Option {
	return append([]connector.Option{
		{Key: keyURL, Type: connector.OptString, Required: true, Secret: true, Check: func(s string) error { _, err := parseURL(s); return err },
			Doc: "The server: `redis://[user:password@]host:6379[/db]`; `rediss://` uses TLS. It may hold a password, and is masked."},
		{Key: keyUser, Type: connector.OptString, Doc: "The user, instead of the URL's."},
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
		{Key: keyCA, Type: connector.OptString, Doc: "A PEM file of the authorities that the server's certificate is checked against. Unset: the system's."},
		{Key: keyCert, Type: connector.OptString, Doc: "A PEM file of this client's certificate."},
		{Key: keyCertKey, Type: connector.OptString, Doc: "A PEM file of its key."},
	}, partialcache.SpecOptions()...)
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
	case v.Has(keyCert) != v.Has(keyCertKey):
		return &connector.OptionError{Key: keyCert, Message: "'" + keyCert + "' and '" + keyCertKey + "' belong together"}
	}
	if u, err := parseURL(v.String(keyURL)); err == nil && !u.tls {
		for _, key := range []string{keyCA, keyCert} {
			if v.Has(key) {
				return &connector.OptionError{Key: key, Message: "'" + key + "' has no effect without TLS", Hint: "rediss:// in '" + keyURL + "'"}
			}
		}
	}
	return nil
}

// address is a parsed URL.
type address struct {
	host, user, password string
	db                   int
	tls                  bool
}

// parseURL takes a URL apart. Its errors never print it: it may hold a password.
func parseURL(s string) (address, error) {
	var a address
	u, err := url.Parse(s)
	if err != nil {
		return a, fmt.Errorf("it is not of the form redis://host:6379/0")
	}
	switch u.Scheme {
	case "redis":
	case "rediss":
		a.tls = true
	case "redis-sentinel", "redis+sentinel":
		return a, fmt.Errorf("not_yet: Sentinel; name the server itself, or a proxy that follows it")
	case "unix":
		return a, fmt.Errorf("not_yet: sockets of the file system; use redis://host:6379/0")
	default:
		return a, fmt.Errorf("%q is no protocol of Redis; use redis://host:6379/0", u.Scheme)
	}
	switch {
	case u.Hostname() == "" || strings.Contains(u.Host, ","):
		return a, fmt.Errorf("it does not name one host: redis://host:6379/0 (not_yet: Redis Cluster and Sentinel)")
	case u.RawQuery != "" || u.Fragment != "":
		return a, fmt.Errorf("parameters behind ? are not taken: they are options of the table")
	}
	a.host = u.Host
	if u.Port() == "" {
		a.host = u.Host + ":6379"
	}
	if u.User != nil {
		a.user = u.User.Username()
		a.password, _ = u.User.Password()
	}
	if db := strings.Trim(u.Path, "/"); db != "" {
		if a.db, err = strconv.Atoi(db); err != nil || a.db < 0 {
			return a, fmt.Errorf("%q is no number of a database", db)
		}
	}
	return a, nil
}
