package kafka

import (
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
)

func expired(x *x509.Certificate) { x.NotAfter = time.Now().Add(-time.Minute) }

func elsewhere(x *x509.Certificate) { x.IPAddresses, x.DNSNames = nil, []string{"broker.example"} }

// overTLS are options of a table that trusts an authority.
func overTLS(trusted *conntest.Authority, more ...string) []string {
	return append([]string{"properties.security.protocol", "SSL", "properties.default.api.timeout.ms", "10000", "properties.ssl.truststore.certificates", trusted.PEM}, more...)
}

// TestTLS: certificates of brokers and of clients, and what is said where they do not fit.
func TestTLS(t *testing.T) {
	ours, others := conntest.NewAuthority(t, "our authority"), conntest.NewAuthority(t, "another authority")
	clients, clientKey := ours.Issue(t, "maker", nil)
	strangers, strangersKey := others.Issue(t, "stranger", nil)
	file := filepath.Join(t.TempDir(), "client.pem")
	check(t, os.WriteFile(file, []byte(clientKey+clients), 0o600))
	trust := filepath.Join(t.TempDir(), "ca.pem")
	check(t, os.WriteFile(trust, []byte(ours.PEM), 0o600))
	const anyName = "properties.ssl.endpoint.identification.algorithm"
	for _, x := range []struct {
		name   string
		broker func(*x509.Certificate)
		asks   bool // for the client's certificate
		with   []string
		says   string // empty: it is read
	}{
		{"good", nil, false, overTLS(ours), ""},
		{"trusted by a file", nil, false, []string{"properties.security.protocol", "SSL", "properties.ssl.truststore.location", trust}, ""},
		{"unknown authority", nil, false, overTLS(others), "its certificate was issued by CN=our authority, which is none of the trust store's authorities: name that authority's certificate by 'properties.ssl.truststore.location'"},
		{"not the system's", nil, false, []string{"properties.security.protocol", "SSL"}, "none of the system's authorities"},
		{"another authority, names not checked", nil, false, overTLS(others, anyName, ""), "issued by CN=our authority"},
		{"another host", elsewhere, false, overTLS(ours), "name it by a name of its certificate"},
		{"another host, names not checked", elsewhere, false, overTLS(ours, anyName, ""), ""},
		{"expired", expired, false, overTLS(ours), "the broker needs a new certificate, or the clock of this machine is wrong"},
		{"client by file", nil, true, overTLS(ours, keyKeyFile, file), ""},
		{"client by text", nil, true, overTLS(ours, keyKeyText, clientKey, keyChainText, clients), ""},
		{"client without a certificate", nil, true, overTLS(ours), "'properties.ssl.keystore.location' has to name one, and there is none"},
		{"client of another authority", nil, true, overTLS(ours, keyKeyText, strangersKey, keyChainText, strangers), "names one that it trusts and that is valid"},
	} {
		t.Run(x.name, func(t *testing.T) {
			chain, key := ours.Issue(t, "broker", x.broker)
			w := &world{t: t, ctx: t.Context(), conn: New(jsonfmt.Format{})}
			var err error
			w.cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"), kfake.TLS(ours.Server(t, chain, key, x.asks)))
			check(t, err)
			t.Cleanup(w.cluster.Close)
			s, err := w.conn.OpenSource(w.ctx, w.table("t", idOnly, x.with...))
			if err == nil {
				check(t, s.Close())
			}
			switch {
			case x.says == "":
				check(t, err)
			case err == nil || again(err) || !strings.Contains(err.Error(), x.says):
				t.Errorf("the error is %v", err)
			}
		})
	}
	t.Run("a port without TLS", func(t *testing.T) {
		for answer, final := range map[string]bool{"HTTP/1.1 400 Bad Request\r\n": true, "": false} {
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			check(t, err)
			t.Cleanup(func() { l.Close() })
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = c.Read(make([]byte, 1)) // of the client's hello
					_, _ = c.Write([]byte(answer)) // the client says what came of it
					c.Close()
				}
			}()
			w := &world{t: t, ctx: t.Context(), conn: New(jsonfmt.Format{}), addrs: []string{l.Addr().String()}}
			_, err = w.conn.OpenSource(w.ctx, w.table("t", idOnly, append(overTLS(ours), keyAPITimeout, "500")...))
			if err == nil || again(err) == final || !strings.Contains(err.Error(), "speak TLS at this port") {
				t.Errorf("answered %q, the error is %v", answer, err)
			}
		}
	})
	t.Run("options", func(t *testing.T) {
		w := &world{t: t, ctx: t.Context(), conn: New(jsonfmt.Format{}), addrs: []string{"127.0.0.1:1"}}
		for _, x := range []struct {
			with []string
			says string
		}{
			{overTLS(ours, "properties.ssl.truststore.certificates", "x"), "no certificate in PEM form"},
			{overTLS(ours, keyKeyText, clientKey, keyChainText, strangers), "private key does not match"},
			{overTLS(ours, keyKeyText, strings.ReplaceAll(clientKey, "PRIVATE", "ENCRYPTED PRIVATE"), keyChainText, clients), "is encrypted"},
			{overTLS(ours, keyKeyFile, file+"x"), "no such file"},
		} {
			_, err := w.conn.OpenSource(w.ctx, w.table("t", idOnly, x.with...))
			if err == nil || !strings.Contains(err.Error(), x.says) || strings.Contains(err.Error(), "PRIVATE KEY") {
				t.Errorf("%q is not said: %v", x.says, err)
			}
		}
	})
}
