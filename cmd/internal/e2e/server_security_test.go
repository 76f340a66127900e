package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// produced sends one record and returns the error.
func produced(t testing.TB, addr, topic string, opts ...kgo.Opt) error {
	t.Helper()
	opts = append(opts, kgo.SeedBrokers(addr), kgo.DefaultProduceTopic(topic), kgo.RecordRetries(1), kgo.UnknownTopicRetries(0), kgo.RetryTimeout(5*time.Second))
	c, err := kgo.NewClient(opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr()
}

// TestServerWithUsers: users and rules made before and while the server runs, from
// the data directory and over the Kafka protocol; kept over a SIGKILL; and no
// password anywhere in what is written or printed.
func TestServerWithUsers(t *testing.T) {
	w := newWorld(t)
	secret := func(name, password string) string { return w.file(name, password+"\n") }
	var shown strings.Builder
	run := func(code int, args ...string) string {
		t.Helper()
		r := w.run(args...).must(t, code)
		shown.WriteString(r.stdout + r.stderr)
		return r.stdout + r.stderr
	}
	run(0, "users", "create", "admin", "--password-file", secret("admin.pw", "sesame-admin"))
	run(0, "topics", "create", "clicks")
	p, addr := w.server("--kafka-sasl", "SCRAM-SHA-512", "--kafka-sasl", "PLAIN", "--super-user", "admin")
	run(0, "users", "create", "ann", "--password-file", secret("ann.pw", "sesame-ann"), "-o", "json")
	run(2, "users", "create", "ann", "--password-file", secret("ann.pw", "sesame-ann"))
	run(0, "users", "create", "old", "--mechanism", "PLAIN", "--password-file", secret("old.pw", "sesame-old"))
	ann := kgo.SASL(scram.Auth{User: "ann", Pass: "sesame-ann"}.AsSha512Mechanism())
	if err := produced(t, addr, "clicks", ann); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("without a rule: %v", err)
	}
	if err := produced(t, addr, "clicks", kgo.SASL(plain.Auth{User: "ann", Pass: "sesame-ann"}.AsMechanism())); !errors.Is(err, kerr.SaslAuthenticationFailed) {
		t.Errorf("PLAIN for a user of SCRAM: %v", err)
	}
	config := w.file("admin.properties", "# an administrator\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.username=admin\nsasl.password=sesame-admin\n")
	remote := []string{"--brokers", addr, "--command-config", config}
	run(0, append([]string{"acls", "create", "--allow", "ann", "--allow", "old", "--operation", "write", "--topic", "clicks"}, remote...)...)
	if err := produced(t, addr, "clicks", ann); err != nil {
		t.Errorf("with a rule: %v", err)
	}
	if err := produced(t, addr, "clicks", kgo.SASL(plain.Auth{User: "old", Pass: "sesame-old"}.AsMechanism())); err != nil {
		t.Errorf("PLAIN for a user of PLAIN: %v", err)
	}
	for _, how := range [][]string{nil, remote} {
		if got := run(0, append([]string{"acls", "ls", "-o", "json"}, how...)...); strings.Count(got, `"operation": "write"`) != 2 || !strings.Contains(got, "User:ann") {
			t.Errorf("acls ls %v:\n%s", how, got)
		}
		if got := run(0, append([]string{"users", "ls"}, how...)...); !strings.Contains(got, "ann") || !strings.Contains(got, "SCRAM-SHA-512") {
			t.Errorf("users ls %v:\n%s", how, got)
		}
		run(0, append([]string{"quotas", "alter", "--user", "ann", "--default-client-id", "--set", "producer_byte_rate=1048576"}, how...)...)
		if got := run(0, append([]string{"quotas", "ls", "-o", "json"}, how...)...); !strings.Contains(got, `"producer_byte_rate": 1048576`) || !strings.Contains(got, `"client_id": null`) {
			t.Errorf("quotas ls %v:\n%s", how, got)
		}
		run(0, append([]string{"quotas", "rm", "--user", "ann", "--default-client-id"}, how...)...)
		run(0, append([]string{"users", "alter", "ann", "--password-file", secret("ann2.pw", "sesame-2ann")}, how...)...)
		run(2, append([]string{"users", "alter", "nobody", "--password-file", secret("ann2.pw", "sesame-2ann")}, how...)...)
	}
	p.kill()
	_, addr = w.server("--kafka-sasl", "SCRAM-SHA-512", "--super-user", "admin")
	if err := produced(t, addr, "clicks", kgo.SASL(scram.Auth{User: "ann", Pass: "sesame-2ann"}.AsSha512Mechanism())); err != nil {
		t.Errorf("after SIGKILL: %v", err)
	}
	remote[1] = addr
	run(0, append([]string{"acls", "rm", "--topic", "clicks"}, remote...)...)
	if got := run(0, append([]string{"acls", "rm", "--topic", "clicks", "--yes", "-o", "json"}, remote...)...); strings.Count(got, "User:ann") != 1 {
		t.Errorf("acls rm:\n%s", got)
	}
	run(0, append([]string{"users", "rm", "ann", "--yes"}, remote...)...)
	if err := produced(t, addr, "clicks", ann); !errors.Is(err, kerr.SaslAuthenticationFailed) {
		t.Errorf("a removed user: %v", err)
	}
	wrong := w.file("wrong.properties", "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.username=admin\nsasl.password=sesame-wrong\n")
	run(1, "users", "ls", "--brokers", addr, "--command-config", wrong)
	misspelt := w.file("misspelt.properties", "sasl.pasword=sesame-admin\n")
	if got := run(2, "users", "ls", "--brokers", addr, "--command-config", misspelt); !strings.Contains(got, "sasl.password") {
		t.Errorf("a misspelt property:\n%s", got)
	}
	run(3, "users", "ls", "--brokers", "127.0.0.1:1")
	if strings.Contains(shown.String(), "sesame") || strings.Contains(p.stderr.String(), "sesame") {
		t.Errorf("a password was printed:\n%s\n%s", shown.String(), p.stderr.String())
	}
	err := filepath.WalkDir(w.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), "sesame") {
			t.Errorf("a password is in %s", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestServerWithRulesAlone: rules hold for clients that nobody logs in, and what none
// is on is open.
func TestServerWithRulesAlone(t *testing.T) {
	w := newWorld(t)
	w.run("topics", "create", "clicks").must(t, 0)
	w.run("topics", "create", "open").must(t, 0)
	p, addr := w.server("--allow-unruled")
	rule := []string{"acls", "create", "--deny", "ANONYMOUS", "--operation", "write", "--topic", "clicks", "--brokers", addr}
	w.run(rule...).must(t, 0)
	if err := produced(t, addr, "clicks"); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("what a rule denies: %v", err)
	}
	if err := produced(t, addr, "open"); err != nil {
		t.Errorf("what no rule is on: %v", err)
	}
	p.kill()
	_, rule[len(rule)-1] = w.server()
	w.run(rule...).must(t, 1)
}

// TestServerSecurityRefusals: what cannot be safe is refused with a reason.
func TestServerSecurityRefusals(t *testing.T) {
	w := newWorld(t)
	cert, key := w.certificate()
	broken := w.file("broken.pem", "x")
	on := func(args ...string) []string { return append([]string{"server", "--kafka", "127.0.0.1:0"}, args...) }
	for what, c := range map[string]struct {
		args []string
		says string
	}{
		"everybody, everywhere":      {[]string{"server", "--kafka", "0.0.0.0:0"}, "--kafka-sasl"},
		"encrypted, but everybody":   {[]string{"server", "--kafka", "0.0.0.0:0", "--kafka-tls-cert", cert, "--kafka-tls-key", key}, "--kafka-sasl"},
		"no such mechanism":          {on("--kafka-sasl", "GSSAPI"), "GSSAPI"},
		"a certificate without key":  {on("--kafka-tls-cert", cert), "--kafka-tls-key"},
		"a broken certificate":       {on("--kafka-tls-cert", broken, "--kafka-tls-key", key), "broken.pem"},
		"a broken authority":         {on("--kafka-tls-cert", cert, "--kafka-tls-key", key, "--kafka-tls-client-ca", broken), "broken.pem"},
		"an authority without TLS":   {on("--kafka-tls-client-ca", cert), "--kafka-tls-cert"},
		"a session without login":    {on("--kafka-session", "1h"), "--kafka-sasl"},
		"a super user of nobody":     {on("--super-user", "admin"), "--kafka-sasl"},
		"no connections":             {on("--max-connections", "0"), "--max-connections"},
		"a write cache of nothing":   {on("--write-cache", "64kb"), "at least 1 mb"},
		"a write cache of no size":   {on("--write-cache", "much"), "--write-cache much"},
		"a password by argument":     {[]string{"users", "create", "ann", "secret"}, "argument"},
		"an empty password":          {[]string{"users", "create", "ann"}, "empty"},
		"nobody's rule":              {[]string{"acls", "create", "--operation", "read", "--topic", "t"}, "--allow"},
		"a rule about nothing":       {[]string{"acls", "create", "--allow", "ann", "--topic", "t"}, "--operation"},
		"a rule on nothing":          {[]string{"acls", "create", "--allow", "ann", "--operation", "read"}, "--topic"},
		"no such operation":          {[]string{"acls", "create", "--allow", "ann", "--operation", "reed", "--topic", "t"}, "read"},
		"an operation elsewhere":     {[]string{"acls", "create", "--allow", "ann", "--operation", "write", "--group", "g"}, "write"},
		"every rule":                 {[]string{"acls", "rm", "--yes"}, "--all"},
		"nobody's quota":             {[]string{"quotas", "alter", "--set", "producer_byte_rate=1"}, "--user"},
		"no such quota":              {[]string{"quotas", "alter", "--user", "a", "--set", "rate=1"}, "producer_byte_rate"},
		"a quota of nothing":         {[]string{"quotas", "rm", "--user", "a"}, "no limits"},
		"a config without a cluster": {[]string{"users", "ls", "--command-config", broken}, "--brokers"},
	} {
		if r := w.run(c.args...); r.code != 2 || !strings.Contains(r.stderr, c.says) {
			t.Errorf("%s: exit code %d, want 2 and %q in\n%s", what, r.code, c.says, r.stderr)
		}
	}
}

// certificate makes a certificate of its own authority, for 127.0.0.1.
func (w *world) certificate() (cert, key string) {
	w.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "maker"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.file("cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		w.file("key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text})))
}

// TestServerWithCertificates: TLS, and clients that are who their certificate says.
func TestServerWithCertificates(t *testing.T) {
	w := newWorld(t)
	cert, key := w.certificate()
	w.run("topics", "create", "clicks").must(t, 0)
	_, addr := w.server("--kafka-tls-cert", cert, "--kafka-tls-key", key, "--kafka-tls-client-ca", cert)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	text, err := os.ReadFile(cert)
	if err != nil || !pool.AppendCertsFromPEM(text) {
		t.Fatal(err)
	}
	client := kgo.DialTLSConfig(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}})
	if err := produced(t, addr, "clicks", client); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("without a rule: %v", err)
	}
	w.run("acls", "create", "--allow", "CN=maker", "--operation", "write", "--topic", "clicks").must(t, 0)
	if err := produced(t, addr, "clicks", client); err != nil {
		t.Errorf("with a rule: %v", err)
	}
	if err := produced(t, addr, "clicks", kgo.DialTLSConfig(&tls.Config{RootCAs: pool})); err == nil {
		t.Error("a client without a certificate was served")
	}
}
