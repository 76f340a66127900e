package redis

import (
	"context"
	"strings"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/millrace/millrace/connectors/tlsfiles"
	"github.com/millrace/millrace/runtime/connector"
)

// silence keeps the library from writing to stderr: what fails it returns, too, and the
// lane shows it once.
type silence struct{}

// Printf implements the library's interface of loggers.
func (silence) Printf(context.Context, string, ...any) {}

// connect makes a client; no connection is opened yet.
func connect(v connector.Values) (goredis.UniversalClient, address, error) {
	goredis.SetLogger(silence{})
	a, err := addressOf(v)
	if err != nil {
		return nil, a, err
	}
	o := &goredis.UniversalOptions{Addrs: a.hosts, Username: a.user, Password: a.password, DB: a.db, Protocol: 2,
		// Trying again is the lane's, who counts it and says so.
		MaxRetries: -1, DialerRetries: 1, DialTimeout: v.Duration(keyConnect),
		ReadTimeout: v.Duration(keyRequest), WriteTimeout: v.Duration(keyRequest), ContextTimeoutEnabled: true,
		PoolSize: 4, DisableIndentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}}
	if a.tls {
		if o.TLSConfig, err = tlsfiles.Of(v).Config(); err != nil {
			return nil, a, err
		}
		if a.mode == modeSingle { // else the library takes each server's own name
			name := a.hosts[0][:strings.LastIndexByte(a.hosts[0], ':')]
			o.TLSConfig.ServerName = strings.Trim(name, "[]")
		}
	}
	switch a.mode {
	case modeCluster:
		return goredis.NewClusterClient(o.Cluster()), a, nil
	case modeSentinel:
		o.MasterName, o.SentinelPassword = a.master, v.String(keySentinelPassword)
		return goredis.NewFailoverClient(o.Failover()), a, nil
	}
	return goredis.NewClient(o.Simple()), a, nil
}
