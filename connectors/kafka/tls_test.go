package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/millrace/millrace/connectors/format/jsonfmt"
)

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	text string // PEM
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	x := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, x, x, &key.PublicKey, key)
	check(t, err)
	x, err = x509.ParseCertificate(der)
	check(t, err)
	return &authority{x, key, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))}
}

// issue gives a certificate for 127.0.0.1, which change may make another one, and its key,
// as PEM.
func (a *authority) issue(t *testing.T, name string, change func(*x509.Certificate)) (chain, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	x := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	if change != nil {
		change(x)
	}
	der, err := x509.CreateCertificate(rand.Reader, x, a.cert, &k.PublicKey, a.key)
	check(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(k)
	check(t, err)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

func expired(x *x509.Certificate) { x.NotAfter = time.Now().Add(-time.Minute) }

func elsewhere(x *x509.Certificate) { x.IPAddresses, x.DNSNames = nil, []string{"broker.example"} }

// overTLS are options of a table that trusts an authority.
func overTLS(trusted *authority, more ...string) []string {
	return append([]string{"properties.security.protocol", "SSL", "properties.default.api.timeout.ms", "10000", "properties.ssl.truststore.certificates", trusted.text}, more...)
}

// TestTLS: certificates of brokers and of clients, and what is said where they do not fit.
func TestTLS(t *testing.T) {
	ours, others := newAuthority(t, "our authority"), newAuthority(t, "another authority")
	clients, clientKey := ours.issue(t, "maker", nil)
	strangers, strangersKey := others.issue(t, "stranger", nil)
	file := filepath.Join(t.TempDir(), "client.pem")
	check(t, os.WriteFile(file, []byte(clientKey+clients), 0o600))
	trust := filepath.Join(t.TempDir(), "ca.pem")
	check(t, os.WriteFile(trust, []byte(ours.text), 0o600))
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
			chain, key := ours.issue(t, "broker", x.broker)
			pair, err := tls.X509KeyPair([]byte(chain), []byte(key))
			check(t, err)
			config := &tls.Config{Certificates: []tls.Certificate{pair}}
			if x.asks {
				config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
				config.ClientCAs.AddCert(ours.cert)
			}
			w := &world{t: t, ctx: t.Context(), conn: New(jsonfmt.Format{})}
			w.cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "t"), kfake.TLS(config))
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
