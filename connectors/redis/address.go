package redis

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
)

// What servers are, the values of option `redis-mode`.
const (
	modeSingle   = "single"
	modeCluster  = "cluster"
	modeSentinel = "sentinel"
)

// address is where a table's server is.
type address struct {
	mode string
	// hosts are the server, nodes of the cluster or Sentinels, as host:port.
	hosts          []string
	master         string // that the Sentinels watch
	user, password string
	db             int
	tls            bool
}

// String is the server as people know it.
func (a address) String() string {
	switch a.mode {
	case modeCluster:
		return "cluster " + strings.Join(a.hosts, ",")
	case modeSentinel:
		return fmt.Sprintf("redis://%s/%d (by Sentinel)", a.master, a.db)
	}
	return fmt.Sprintf("redis://%s/%d", a.hosts[0], a.db)
}

// addressOf reads the options that say where the server is.
func addressOf(v connector.Values) (address, error) {
	mode := v.String(keyMode)
	needs := map[string][]string{modeSingle: {keyURL}, modeCluster: {keyNodes}, modeSentinel: {keySentinels, keyMaster}}
	for _, key := range needs[mode] {
		if !v.Has(key) {
			return address{}, &connector.OptionError{Key: key, Missing: true, Message: "'" + keyMode + "' = '" + mode + "' needs option '" + key + "'"}
		}
	}
	takes := map[string]string{keyURL: modeSingle, keyNodes: modeCluster, keySentinels: modeSentinel, keyMaster: modeSentinel, keySentinelPassword: modeSentinel, keyDatabase: modeSentinel}
	for _, key := range []string{keyURL, keyNodes, keySentinels, keyMaster, keySentinelPassword, keyDatabase} {
		if v.Has(key) && takes[key] != mode {
			return address{}, &connector.OptionError{Key: key, Message: "'" + key + "' is for '" + keyMode + "' = '" + takes[key] + "'"}
		}
	}
	a := address{mode: mode, master: v.String(keyMaster), tls: v.Bool(keyTLS)}
	if mode == modeSingle {
		if v.Has(keyTLS) {
			return a, &connector.OptionError{Key: keyTLS, Message: "'" + keyTLS + "' is for clusters and Sentinel", Hint: "rediss:// in '" + keyURL + "'"}
		}
		var err error
		if a, err = parseURL(v.String(keyURL)); err != nil {
			return a, &connector.OptionError{Key: keyURL, OnValue: true, Message: err.Error()}
		}
	} else {
		key := needs[mode][0]
		var err error
		if a.hosts, err = parseHosts(v.String(key)); err != nil {
			return a, &connector.OptionError{Key: key, OnValue: true, Message: err.Error()}
		}
		if a.db = int(v.Int(keyDatabase)); a.db < 0 {
			return a, &connector.OptionError{Key: keyDatabase, OnValue: true, Message: fmt.Sprintf("%d is no number of a database", a.db)}
		}
	}
	if v.Has(keyUser) {
		a.user = v.String(keyUser)
	}
	if v.Has(keyPassword) {
		a.password = v.String(keyPassword)
	}
	return a, nil
}

func checkHosts(s string) error {
	_, err := parseHosts(s)
	return err
}

// parseHosts takes host:port,host:port apart.
func parseHosts(s string) ([]string, error) {
	var out []string
	for h := range strings.SplitSeq(s, ",") {
		h = strings.TrimSpace(h)
		host, port, err := net.SplitHostPort(h)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		if err != nil || host == "" {
			return nil, fmt.Errorf("%q is not of the form host:port", h)
		}
		out = append(out, h)
	}
	return out, nil
}

// parseURL takes a URL apart. Its errors never print it: it may hold a password.
func parseURL(s string) (address, error) {
	a := address{mode: modeSingle}
	u, err := url.Parse(s)
	if err != nil {
		return a, errors.New("it is not of the form redis://host:6379/0")
	}
	switch u.Scheme {
	case "redis":
	case "rediss":
		a.tls = true
	case "redis-sentinel", "redis+sentinel":
		return a, fmt.Errorf("Sentinels are named by '%s' = '%s' and '%s'", keyMode, modeSentinel, keySentinels)
	case "unix":
		return a, errors.New("not_yet: sockets of the file system; use redis://host:6379/0")
	default:
		return a, fmt.Errorf("%q is no protocol of Redis; use redis://host:6379/0", u.Scheme)
	}
	switch {
	case u.Hostname() == "" || strings.Contains(u.Host, ","):
		return a, fmt.Errorf("it does not name one host: redis://host:6379/0; several are nodes of a cluster ('%s' = '%s') or Sentinels ('%s')", keyMode, modeCluster, modeSentinel)
	case u.RawQuery != "" || u.Fragment != "":
		return a, errors.New("parameters behind ? are not taken: they are options of the table")
	}
	host := u.Host
	if u.Port() == "" {
		host = u.Host + ":6379"
	}
	a.hosts = []string{host}
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
