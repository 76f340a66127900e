package cli

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/storage/authn"
	"github.com/millrace/millrace/storage/kafkaproto"
)

// securityFlags say how `server` tells its clients apart.
type securityFlags struct {
	cert, key, clientCA  string
	mechanisms           []string
	superUsers           []string
	session              time.Duration
	allowUnauthenticated bool
	allowUnruled         bool
	connections          int
	perAddress           int
}

func (f *securityFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.cert, "kafka-tls-cert", "", "speak TLS with the certificate in `FILE`, PEM, with its chain")
	fl.StringVar(&f.key, "kafka-tls-key", "", "the certificate's key in `FILE`, PEM")
	fl.StringVar(&f.clientCA, "kafka-tls-client-ca", "", "clients must have a certificate of an authority in `FILE`, PEM; without --kafka-sasl its subject is who they are")
	fl.StringArrayVar(&f.mechanisms, "kafka-sasl", nil, "clients log in by `MECHANISM`: SCRAM-SHA-256, SCRAM-SHA-512 or PLAIN; may be repeated")
	fl.StringArrayVar(&f.superUsers, "super-user", nil, "`USER` may do everything; a user's name, or Kind:name; may be repeated")
	fl.DurationVar(&f.session, "kafka-session", 0, "clients log in again after `DURATION`; 0: never")
	fl.BoolVar(&f.allowUnauthenticated, "allow-unauthenticated", false, "also listen beyond this machine without authentication: anybody who connects may read and write everything")
	fl.BoolVar(&f.allowUnruled, "allow-unruled", false, "let every client do everything with a topic, group, id or cluster that no access rule is on, and hold rules also for clients that do not log in, who are User:ANONYMOUS")
	fl.BoolVar(&f.allowUnauthenticated, "allow-remote", false, "")
	_ = fl.MarkDeprecated("allow-remote", "say --allow-unauthenticated") // an error is of a flag that is not there
	fl.IntVar(&f.connections, "max-connections", 8000, "at most `N` Kafka connections at once")
	fl.IntVar(&f.perAddress, "max-connections-per-address", 0, "at most `N` of them from one IP address; 0: no bound of its own")
}

// options puts the flags into a server's options, but for Access; mistakes are
// found here, before the data directory is touched.
func (f *securityFlags) options(o *kafkaproto.Options) error {
	sec := &o.Security
	o.AllowUnauthenticated, o.MaxConnections, o.MaxConnectionsPerAddress = f.allowUnauthenticated, f.connections, f.perAddress
	sec.MaxSession, sec.AllowUnruled = f.session, f.allowUnruled
	for _, name := range f.mechanisms {
		m, err := authn.ParseMechanism(name)
		if err != nil {
			return usage("--kafka-sasl: %v", err)
		}
		sec.Mechanisms = append(sec.Mechanisms, m)
	}
	for _, u := range f.superUsers {
		sec.SuperUsers = append(sec.SuperUsers, control.Principal(u))
	}
	switch {
	case (f.cert == "") != (f.key == ""):
		return usage("--kafka-tls-cert and --kafka-tls-key go together")
	case f.clientCA != "" && f.cert == "":
		return usage("--kafka-tls-client-ca needs --kafka-tls-cert and --kafka-tls-key")
	case f.session != 0 && len(f.mechanisms) == 0:
		return usage("--kafka-session needs --kafka-sasl")
	case f.session < 0 || f.connections < 1 || f.perAddress < 0:
		return usage("--kafka-session and --max-connections-per-address are at least 0, --max-connections at least 1")
	case len(f.superUsers) > 0 && len(f.mechanisms) == 0 && f.clientCA == "":
		return usage("--super-user needs clients that prove who they are: --kafka-sasl or --kafka-tls-client-ca")
	case f.cert == "":
		return nil
	}
	c := &certificate{cert: f.cert, key: f.key}
	if _, err := c.current(); err != nil {
		return exitcode.With(exitcode.Input, err)
	}
	sec.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current() }}
	if f.clientCA != "" {
		text, err := os.ReadFile(f.clientCA)
		if err != nil {
			return exitcode.With(exitcode.Input, fmt.Errorf("--kafka-tls-client-ca: %w", err))
		}
		sec.TLS.ClientCAs, sec.TLS.ClientAuth = x509.NewCertPool(), tls.RequireAndVerifyClientCert
		if !sec.TLS.ClientCAs.AppendCertsFromPEM(text) {
			return usage("--kafka-tls-client-ca: %s has no certificate in PEM form", f.clientCA)
		}
	}
	return nil
}

// certificate is a server's own, read again when its file has changed, so that it
// can be renewed without a restart.
type certificate struct {
	cert, key string

	mu     sync.Mutex
	loaded *tls.Certificate
	of     time.Time // the file's modification time
}

func (c *certificate) current() (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	st, err := os.Stat(c.cert)
	if err == nil && c.loaded != nil && st.ModTime().Equal(c.of) {
		return c.loaded, nil
	}
	if err == nil {
		var x tls.Certificate
		if x, err = tls.LoadX509KeyPair(c.cert, c.key); err == nil {
			c.loaded, c.of = &x, st.ModTime()
			return c.loaded, nil
		}
	}
	if c.loaded != nil {
		return c.loaded, nil // half written, perhaps: the old one serves until the new one can be read
	}
	return nil, fmt.Errorf("loading the certificate %s with the key %s: %w", c.cert, c.key, err)
}
