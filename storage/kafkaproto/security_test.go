package kafkaproto_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/millrace/millrace/storage/access"
	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/authn"
	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/quota"
	"github.com/millrace/millrace/storage/record"
)

func byPlain(user, password string) kgo.Opt {
	return kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism())
}

func by256(user, password string) kgo.Opt {
	return kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha256Mechanism())
}

func by512(user, password string) kgo.Opt {
	return kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism())
}

func TestLogins(t *testing.T) {
	r, a := secured(t, kafkaproto.Options{})
	addUser(t, a, "ann", "ann-secret", authn.ScramSHA256, authn.ScramSHA512)
	addUser(t, a, "bob", "bob-secret", authn.Plain)
	for name, c := range map[string]struct {
		opt  kgo.Opt
		want error
	}{
		"SCRAM-SHA-256":              {by256("ann", "ann-secret"), nil},
		"SCRAM-SHA-512":              {by512("ann", "ann-secret"), nil},
		"PLAIN":                      {byPlain("bob", "bob-secret"), nil},
		"a wrong password":           {by256("ann", "x"), kerr.SaslAuthenticationFailed},
		"a wrong password by PLAIN":  {byPlain("bob", "x"), kerr.SaslAuthenticationFailed},
		"nobody":                     {by512("zoe", "x"), kerr.SaslAuthenticationFailed},
		"PLAIN for a SCRAM user":     {byPlain("ann", "ann-secret"), kerr.SaslAuthenticationFailed},
		"SCRAM for a PLAIN user":     {by256("bob", "bob-secret"), kerr.SaslAuthenticationFailed},
		"a mechanism not offered":    {kgo.SASL(mechanism("GSSAPI")), kerr.UnsupportedSaslMechanism},
		"without a login at all":     {kgo.ClientID("x"), io.EOF},
		"a user with a zero byte in": {by256("ann\x00", "ann-secret"), kerr.SaslAuthenticationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			client := r.client(t, c.opt, kgo.RequestRetries(0), kgo.RetryTimeout(time.Second))
			_, err := client.Request(ctx, kmsg.NewPtrMetadataRequest())
			if c.want == nil && err != nil || c.want != nil && err == nil {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if c.want != nil && !errors.Is(err, c.want) && !strings.Contains(err.Error(), "SASL") {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// mechanism names a SASL mechanism that nobody has.
type mechanism string

func (m mechanism) Name() string { return string(m) }
func (m mechanism) Authenticate(context.Context, string) (sasl.Session, []byte, error) {
	return nil, []byte("x"), nil
}

// TestWholeClientWithRules: a producer and a group consumer with just the rules
// that they need, made by an administrator's client.
func TestWholeClientWithRules(t *testing.T) {
	r, _ := secured(t, kafkaproto.Options{InitialRebalanceDelay: -1})
	adm := kadm.NewClient(r.client(t, by256("admin", "admin-secret")))
	ctx := ctxOf(t)
	if _, err := adm.CreateTopic(ctx, 1, 1, nil, "clicks"); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"maker", "reader"} {
		got, err := adm.AlterUserSCRAMs(ctx, nil, []kadm.UpsertSCRAM{{User: user, Mechanism: kadm.ScramSha512, Iterations: 4096, Password: user + "-secret"}})
		if err != nil || got.Error() != nil {
			t.Fatal(err, got.Error())
		}
	}
	maker := r.client(t, by512("maker", "maker-secret"), kgo.DefaultProduceTopic("clicks"), kgo.ProduceRequestTimeout(time.Second), kgo.RecordRetries(2),
		kgo.UnknownTopicRetries(0))
	if err := maker.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr(); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Fatalf("without a rule: %v", err)
	}
	rules := []*kadm.ACLBuilder{
		kadm.NewACLs().Topics("clicks").ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpWrite).Allow("User:maker"),
		kadm.NewACLs().Topics("cl").ResourcePatternType(kadm.ACLPatternPrefixed).Operations(kadm.OpRead).Allow("User:reader"),
		kadm.NewACLs().Groups("g").ResourcePatternType(kadm.ACLPatternLiteral).Operations(kadm.OpRead).Allow("User:reader"),
	}
	for _, b := range rules {
		got, err := adm.CreateACLs(ctx, b)
		if err != nil || got[0].Err != nil {
			t.Fatal(err, got)
		}
	}
	maker2 := r.client(t, by512("maker", "maker-secret"), kgo.DefaultProduceTopic("clicks"))
	if err := maker2.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	reader := r.client(t, by512("reader", "reader-secret"), kgo.ConsumerGroup("g"), kgo.ConsumeTopics("clicks"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	fs := reader.PollFetches(ctx)
	if err := fs.Err(); err != nil || fs.NumRecords() != 1 {
		t.Fatalf("%d records, %v", fs.NumRecords(), err)
	}
	if err := reader.CommitUncommittedOffsets(ctx); err != nil {
		t.Fatal(err)
	}
	listed, err := adm.DescribeACLs(ctx, kadm.NewACLs().AnyResource().ResourcePatternType(kadm.ACLPatternAny).Operations().Allow().AllowHosts().Deny().DenyHosts())
	if err != nil || len(listed[0].Described) != 3 {
		t.Fatalf("%v, %v", listed, err)
	}
	gone, err := adm.DeleteACLs(ctx, kadm.NewACLs().Topics().ResourcePatternType(kadm.ACLPatternAny).Operations(kadm.OpWrite).Allow().AllowHosts())
	if err != nil || len(gone) == 0 || len(gone[0].Deleted) != 1 {
		t.Fatalf("deleted %v, %v", gone, err)
	}
	if err := maker2.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr(); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Errorf("after the rule is gone: %v", err)
	}
	users, err := adm.DescribeUserSCRAMs(ctx, "maker", "nobody")
	if err != nil || users["maker"].Err != nil || len(users["maker"].CredInfos) != 1 || users["maker"].CredInfos[0].Iterations != 4096 || !errors.Is(users["nobody"].Err, kerr.ResourceNotFound) {
		t.Errorf("described %v, %v", users, err)
	}
}

func TestAlterScramRefusals(t *testing.T) {
	r, a := secured(t, kafkaproto.Options{})
	c := r.dial(t)
	login(t, c, "admin", "admin-secret")
	up := func(user string, mechanism int8, iterations int32, size int) kmsg.AlterUserSCRAMCredentialsRequestUpsertion {
		return kmsg.AlterUserSCRAMCredentialsRequestUpsertion{Name: user, Mechanism: mechanism, Iterations: iterations, Salt: []byte("salt"), SaltedPassword: make([]byte, size)}
	}
	req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	req.Upsertions = []kmsg.AlterUserSCRAMCredentialsRequestUpsertion{up("few", 1, 4095, 32), up("many", 1, 16385, 32), up("none", 1, 4096, 0), up("short", 1, 4096, 18), up("other", 3, 4096, 32),
		up("", 1, 4096, 32), up("twice", 1, 4096, 32), up("twice", 1, 4096, 32), up("both", 1, 4096, 32), up("both", 2, 4096, 64)}
	req.Deletions = []kmsg.AlterUserSCRAMCredentialsRequestDeletion{{Name: "nobody", Mechanism: 1}}
	want := map[string]int16{"few": 93, "many": 93, "none": 93, "short": 0, "other": 33, "": 93, "twice": 92, "both": 0, "nobody": 91}
	got := ask[*kmsg.AlterUserSCRAMCredentialsResponse](t, c, req, 0)
	for _, u := range got.Results {
		if u.ErrorCode != want[u.User] {
			t.Errorf("%q: code %d, want %d", u.User, u.ErrorCode, want[u.User])
		}
		delete(want, u.User)
	}
	if len(want) > 0 {
		t.Errorf("no answer for %v", want)
	}
	if u, _ := a.User("both"); len(u.Credentials) != 2 {
		t.Errorf("both: %v", u)
	}
}

// TestRulesNeedAuthentication: rules that would not hold are not taken.
func TestRulesNeedAuthentication(t *testing.T) {
	r := start(t, kafkaproto.Options{Security: kafkaproto.Security{Access: newAccess(t)}})
	adm := kadm.NewClient(r.client(t))
	got, err := adm.CreateACLs(ctxOf(t), kadm.NewACLs().Topics("t").Operations(kadm.OpRead).Allow("User:x"))
	if err != nil || !errors.Is(got[0].Err, kerr.SecurityDisabled) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestRemoteNeedsAuthentication: a server does not listen where anybody could
// come, unless it is told to by name.
func TestRemoteNeedsAuthentication(t *testing.T) {
	for _, allow := range []bool{false, true} {
		r := start(t, kafkaproto.Options{AllowUnauthenticated: allow})
		l, err := net.Listen("tcp", "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- r.server.Serve(l) }()
		if allow {
			c, err := net.Dial("tcp", "127.0.0.1:"+portOf(l))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			ask[*kmsg.ApiVersionsResponse](t, c, kmsg.NewPtrApiVersionsRequest(), 0)
			continue
		}
		if err := <-ended; !errors.Is(err, kafkaproto.ErrRemote) {
			t.Errorf("error %v, want %v", err, kafkaproto.ErrRemote)
		}
	}
	r, _ := secured(t, kafkaproto.Options{})
	l, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { r.served <- r.server.Serve(l) }()
	c, err := net.Dial("tcp", "127.0.0.1:"+portOf(l))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	login(t, c, "admin", "admin-secret")
}

func portOf(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// TestHandshakeZero: the old login, whose messages are bare frames.
func TestHandshakeZero(t *testing.T) {
	for password, ok := range map[string]bool{"admin-secret": true, "wrong": false} {
		r, _ := secured(t, kafkaproto.Options{})
		c := r.dial(t)
		hs := kmsg.NewPtrSASLHandshakeRequest()
		hs.Mechanism = "PLAIN"
		if got := ask[*kmsg.SASLHandshakeResponse](t, c, hs, 0); got.ErrorCode != 0 || len(got.SupportedMechanisms) != 3 {
			t.Fatalf("handshake %+v", got)
		}
		token := []byte("\x00admin\x00" + password)
		if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(token))), token...)); err != nil {
			t.Fatal(err)
		}
		if !ok {
			closedByServer(t, c)
			continue
		}
		if got := receive(t, c); len(got) != 0 {
			t.Errorf("answer %q, want an empty one", got)
		}
		ask[*kmsg.MetadataResponse](t, c, kmsg.NewPtrMetadataRequest(), 1)
	}
}

// TestBeforeLogin: nothing but a login is served, and large frames not even read.
func TestBeforeLogin(t *testing.T) {
	r, _ := secured(t, kafkaproto.Options{})
	for name, b := range map[string][]byte{
		"metadata":            frame(kmsg.NewPtrMetadataRequest(), 1),
		"a login out of turn": nil,
		"a large frame":       {0, 1, 0, 1, 0, 18, 0, 0, 0, 0, 0, 0},
		"a huge frame":        {0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0},
		"a negative length":   {0xff, 0xff, 0xff, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			c := r.dial(t)
			if b == nil {
				if got := ask[*kmsg.SASLAuthenticateResponse](t, c, kmsg.NewPtrSASLAuthenticateRequest(), 1); got.ErrorCode != 34 {
					t.Errorf("code %d, want 34", got.ErrorCode)
				}
			} else if _, err := c.Write(b); err != nil {
				t.Fatal(err)
			}
			closedByServer(t, c)
		})
	}
}

// TestSessionLifetime: a client that does not log in again in time is cut off; one
// that does, as the same user, goes on.
func TestSessionLifetime(t *testing.T) {
	clock := newClock()
	a := newAccess(t)
	addUser(t, a, "ann", "ann-secret", authn.Plain)
	addUser(t, a, "bob", "bob-secret", authn.Plain)
	o := kafkaproto.Options{Security: kafkaproto.Security{Access: a, Mechanisms: []authn.Mechanism{authn.Plain}, MaxSession: time.Minute}}
	kafkaproto.SetClock(&o, clock.now)
	r := start(t, o)
	relogin := func(c net.Conn, user string) *kmsg.SASLAuthenticateResponse {
		hs := kmsg.NewPtrSASLHandshakeRequest()
		hs.Mechanism = "PLAIN"
		ask[*kmsg.SASLHandshakeResponse](t, c, hs, 1)
		au := kmsg.NewPtrSASLAuthenticateRequest()
		au.SASLAuthBytes = []byte("\x00" + user + "\x00" + user + "-secret")
		return ask[*kmsg.SASLAuthenticateResponse](t, c, au, 2)
	}
	late, timely, other := r.dial(t), r.dial(t), r.dial(t)
	for _, c := range []net.Conn{late, timely, other} {
		if got := relogin(c, "ann"); got.ErrorCode != 0 || got.SessionLifetimeMillis != 60_000 {
			t.Fatalf("login %+v", got)
		}
	}
	clock.add(61 * time.Second)
	if got := relogin(timely, "ann"); got.ErrorCode != 0 {
		t.Errorf("logging in again: code %d", got.ErrorCode)
	}
	ask[*kmsg.MetadataResponse](t, timely, kmsg.NewPtrMetadataRequest(), 1)
	if got := relogin(other, "bob"); got.ErrorCode != 58 {
		t.Errorf("logging in again as somebody else: code %d, want 58", got.ErrorCode)
	}
	closedByServer(t, other)
	if _, err := late.Write(frame(kmsg.NewPtrMetadataRequest(), 1)); err != nil {
		t.Fatal(err)
	}
	closedByServer(t, late)
}

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Now()} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &authority{cert, key, pool}
}

func (a *authority) issue(t testing.TB, subject pkix.Name) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(2), Subject: subject, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func TestTLSWithSCRAM(t *testing.T) {
	ca := newAuthority(t)
	r, _ := secured(t, kafkaproto.Options{Security: kafkaproto.Security{TLS: &tls.Config{Certificates: []tls.Certificate{ca.issue(t, pkix.Name{CommonName: "server"})}}}})
	r.topic(t, "t", 1, nil)
	c := r.client(t, kgo.DialTLSConfig(&tls.Config{RootCAs: ca.pool}), by512("admin", "admin-secret"), kgo.DefaultProduceTopic("t"))
	if err := c.ProduceSync(ctxOf(t), kgo.StringRecord("x")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	// Without TLS nothing is answered.
	raw := r.dial(t)
	if _, err := raw.Write(frame(kmsg.NewPtrApiVersionsRequest(), 0)); err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(raw); bytes.Contains(b, []byte{0, 0, 0, 7}) {
		t.Errorf("an answer in the clear: %x", b)
	}
}

// TestMutualTLS: a client is its certificate's subject.
func TestMutualTLS(t *testing.T) {
	ca, strangers := newAuthority(t), newAuthority(t)
	a := newAccess(t)
	r := start(t, kafkaproto.Options{Security: kafkaproto.Security{Access: a, TLS: &tls.Config{
		Certificates: []tls.Certificate{ca.issue(t, pkix.Name{CommonName: "server"})}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool}}})
	r.topic(t, "t", 1, nil)
	produce := func(cert *tls.Certificate) error {
		cfg := &tls.Config{RootCAs: ca.pool}
		if cert != nil {
			cfg.Certificates = []tls.Certificate{*cert}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		c := r.client(t, kgo.DialTLSConfig(cfg), kgo.DefaultProduceTopic("t"), kgo.RequestRetries(0), kgo.RecordRetries(0), kgo.RetryTimeout(time.Second))
		return c.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr()
	}
	subject := pkix.Name{CommonName: "maker", OrganizationalUnit: []string{"etl"}, Organization: []string{"Acme, Inc"}}
	mine, foreign := ca.issue(t, subject), strangers.issue(t, subject)
	if err := produce(&mine); !errors.Is(err, kerr.TopicAuthorizationFailed) {
		t.Fatalf("without a rule: %v", err)
	}
	if err := a.AddRules([]acl.Rule{{Type: acl.Topic, Name: "t", Pattern: acl.Literal, Principal: `User:CN=maker,OU=etl,O=Acme\, Inc`, Host: "127.0.0.1", Operation: acl.Write, Permission: acl.Allow}}); err != nil {
		t.Fatal(err)
	}
	if err := produce(&mine); err != nil {
		t.Errorf("with its rule: %v", err)
	}
	if err := produce(&foreign); err == nil {
		t.Error("a certificate of another authority was taken")
	}
	if err := produce(nil); err == nil {
		t.Error("a client without a certificate was served")
	}
}

// TestOwnerBySocket: on a Unix socket this process's user needs no login.
func TestOwnerBySocket(t *testing.T) {
	r, _ := secured(t, kafkaproto.Options{})
	r.topic(t, "t", 1, nil)
	path := filepath.Join(t.TempDir(), "kafka.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go func() { r.served <- r.server.Serve(l) }()
	c := r.client(t, kgo.DefaultProduceTopic("t"), kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", path)
	}))
	if err := c.ProduceSync(ctxOf(t), kgo.StringRecord("x")).FirstErr(); err != nil {
		t.Error(err)
	}
}

// TestSecretsAreNotLogged: whatever happens in a login, neither password nor keys
// are in the log.
func TestSecretsAreNotLogged(t *testing.T) {
	var log syncBuffer
	r, a := secured(t, kafkaproto.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	addUser(t, a, "ann", "open-sesame", authn.Mechanisms()...)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for _, opt := range []kgo.Opt{byPlain("ann", "open-sesame"), byPlain("ann", "open-sesame-not"), byPlain("zoe", "open-sesame"), by256("ann", "open-sesame"), by256("ann", "open-sesame-not")} {
		c := r.client(t, opt, kgo.RequestRetries(0))
		_, _ = c.Request(ctx, kmsg.NewPtrMetadataRequest()) // some fail; what is logged counts
		c.Close()
	}
	raw := r.dial(t)
	if _, err := raw.Write(append([]byte{0, 0, 0, 40, 0, 99, 0, 0}, "\x00ann\x00open-sesame"+strings.Repeat("x", 40)...)); err != nil {
		t.Fatal(err)
	}
	closedByServer(t, raw)
	if !strings.Contains(log.String(), "a login failed") {
		t.Errorf("failed logins are not logged:\n%s", log.String())
	}
	if strings.Contains(log.String(), "sesame") {
		t.Errorf("a password is in the log:\n%s", log.String())
	}
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestQuotas: a client beyond its limit is told to wait, and its next request is
// not read before.
func TestQuotas(t *testing.T) {
	r, a := secured(t, kafkaproto.Options{})
	topic := r.topic(t, "t", 1, nil)
	adm := kadm.NewClient(r.client(t, by256("admin", "admin-secret")))
	name := "ann"
	entry := kadm.AlterClientQuotaEntry{Entity: kadm.ClientQuotaEntity{{Type: "user", Name: &name}},
		Ops: []kadm.AlterClientQuotaOp{{Key: "producer_byte_rate", Value: 100}, {Key: "consumer_byte_rate", Value: 100}}}
	got, err := adm.AlterClientQuotas(ctxOf(t), []kadm.AlterClientQuotaEntry{entry})
	if err != nil || got[0].Err != nil {
		t.Fatal(err, got)
	}
	listed, err := adm.DescribeClientQuotas(ctxOf(t), true, []kadm.DescribeClientQuotaComponent{{Type: "user", MatchName: &name}})
	if err != nil || len(listed) != 1 || len(listed[0].Values) != 2 {
		t.Fatalf("%v, %v", listed, err)
	}
	addUser(t, a, "ann", "ann-secret", authn.Plain)
	if err := a.AddRules([]acl.Rule{{Type: acl.Topic, Name: "*", Pattern: acl.Literal, Principal: "User:ann", Host: "*", Operation: acl.All, Permission: acl.Allow}}); err != nil {
		t.Fatal(err)
	}
	c := r.dial(t)
	login(t, c, "ann", "ann-secret")
	big := batchOf(t, 1200) // a rate of over 120 bytes a second in the window of 10 s: 2 s and more above it
	resp := ask[*kmsg.ProduceResponse](t, c, produceRequest(topic, -1, big), 8)
	if resp.ThrottleMillis < 2000 || resp.ThrottleMillis > 6000 || resp.Topics[0].Partitions[0].ErrorCode != 0 {
		t.Errorf("throttle %d ms, code %d", resp.ThrottleMillis, resp.Topics[0].Partitions[0].ErrorCode)
	}
	began := time.Now()
	ask[*kmsg.ApiVersionsResponse](t, c, kmsg.NewPtrApiVersionsRequest(), 0)
	if waited := time.Since(began); waited < time.Duration(resp.ThrottleMillis)*time.Millisecond*9/10 {
		t.Errorf("the next request was read after %v, the client was told to wait %d ms", waited, resp.ThrottleMillis)
	}
	// Others are not slowed down, and reading has its own limit.
	d := r.dial(t)
	login(t, d, "admin", "admin-secret")
	if resp := ask[*kmsg.ProduceResponse](t, d, produceRequest(topic, -1, big), 8); resp.ThrottleMillis != 0 {
		t.Errorf("another user is throttled for %d ms", resp.ThrottleMillis)
	}
	e := r.dial(t)
	login(t, e, "ann", "ann-secret")
	if resp := ask[*kmsg.FetchResponse](t, e, fetchRequest(topic, 0, 0, 1<<20), 11); resp.ThrottleMillis < 2000 {
		t.Errorf("reading twice the limit of the window: throttle %d ms", resp.ThrottleMillis)
	}
	if err := a.AlterQuotas([]access.QuotaChange{{Entity: quota.Entity{Client: quota.Default()}, Set: map[quota.Kind]float64{quota.RequestPercent: 1e-9}}}); err != nil {
		t.Fatal(err)
	}
	if resp := ask[*kmsg.MetadataResponse](t, d, kmsg.NewPtrMetadataRequest(), 4); resp.ThrottleMillis == 0 {
		t.Error("request time is not limited")
	}
}

func TestQuotaRefusals(t *testing.T) {
	r := start(t, kafkaproto.Options{Security: kafkaproto.Security{Access: newAccess(t)}})
	c := r.dial(t)
	name := "x"
	for what, e := range map[string]kmsg.AlterClientQuotasRequestEntry{
		"nobody":           {Ops: []kmsg.AlterClientQuotasRequestEntryOp{{Key: "producer_byte_rate", Value: 1}}},
		"an address":       {Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "ip", Name: &name}}},
		"unknown entity":   {Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "team", Name: &name}}},
		"two users":        {Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user", Name: &name}, {Type: "user"}}},
		"unknown quota":    {Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user"}}, Ops: []kmsg.AlterClientQuotasRequestEntryOp{{Key: "cpu", Value: 1}}},
		"mutation rate":    {Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user"}}, Ops: []kmsg.AlterClientQuotasRequestEntryOp{{Key: "controller_mutation_rate", Value: 1}}},
		"negative":         {Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user"}}, Ops: []kmsg.AlterClientQuotasRequestEntryOp{{Key: "producer_byte_rate", Value: -1}}},
		"the same twice":   {Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user"}}, Ops: []kmsg.AlterClientQuotasRequestEntryOp{{Key: "producer_byte_rate", Value: 1}, {Key: "producer_byte_rate", Value: 2}}},
		"fractional bytes": {Entity: []kmsg.AlterClientQuotasRequestEntryEntity{{Type: "user"}}, Ops: []kmsg.AlterClientQuotasRequestEntryOp{{Key: "producer_byte_rate", Value: 1.5}}},
	} {
		req := kmsg.NewPtrAlterClientQuotasRequest()
		req.Entries = []kmsg.AlterClientQuotasRequestEntry{e}
		if got := ask[*kmsg.AlterClientQuotasResponse](t, c, req, 1); got.Entries[0].ErrorCode != 42 {
			t.Errorf("%s: code %d, want 42", what, got.Entries[0].ErrorCode)
		}
	}
}

// batchOf builds a batch with a value of so many bytes.
func batchOf(t testing.TB, size int) []byte {
	t.Helper()
	var b record.Builder
	if err := b.Append(1, nil, make([]byte, size), nil); err != nil {
		t.Fatal(err)
	}
	out, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte(nil), out...)
}
