package conntest

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
	"testing"
	"time"
)

// Authority issues certificates.
type Authority struct {
	Cert *x509.Certificate
	PEM  string // of Cert
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority of its own each time.
func NewAuthority(t testing.TB, name string) *Authority {
	t.Helper()
	a := &Authority{key: newKey(t)}
	x := template(name)
	x.IsCA, x.BasicConstraintsValid, x.KeyUsage = true, true, x509.KeyUsageCertSign|x509.KeyUsageDigitalSignature
	a.Cert, a.PEM = a.sign(t, x, x, &a.key.PublicKey)
	return a
}

// Issue gives a certificate for 127.0.0.1, of a server or a client, which change may make
// another one, and its key, as PEM.
func (a *Authority) Issue(t testing.TB, name string, change func(*x509.Certificate)) (cert, key string) {
	t.Helper()
	k, x := newKey(t), template(name)
	x.KeyUsage, x.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	x.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	if change != nil {
		change(x)
	}
	_, cert = a.sign(t, x, a.Cert, &k.PublicKey)
	return cert, encode("PRIVATE KEY", must[[]byte](t)(x509.MarshalPKCS8PrivateKey(k)))
}

// Server is TLS of a server with a certificate and its key, as PEM; where asks is set, it
// wants clients to have one of the authority.
func (a *Authority) Server(t testing.TB, cert, key string, asks bool) *tls.Config {
	t.Helper()
	c := &tls.Config{Certificates: []tls.Certificate{must[tls.Certificate](t)(tls.X509KeyPair([]byte(cert), []byte(key)))}}
	if asks {
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		c.ClientCAs.AddCert(a.Cert)
	}
	return c
}

// Certificates are PEM files: an authority, and certificates that it signed, of a
// server on loopback and of a client.
type Certificates struct {
	CA, ServerCert, ServerKey, ClientCert, ClientKey string
	// Server is TLS of a server that has them, and wants a client to have its own.
	Server *tls.Config
}

// NewCertificates makes an authority of its own each time, in a directory of the test.
func NewCertificates(t testing.TB) Certificates {
	t.Helper()
	dir, a := t.TempDir(), NewAuthority(t, "authority")
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		noError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	issue := func(name string, usage x509.ExtKeyUsage) (cert, key string) {
		return a.Issue(t, name, func(x *x509.Certificate) {
			x.ExtKeyUsage, x.DNSNames = []x509.ExtKeyUsage{usage}, []string{"localhost"}
		})
	}
	cert, key := issue("server", x509.ExtKeyUsageServerAuth)
	clientCert, clientKey := issue("client", x509.ExtKeyUsageClientAuth)
	return Certificates{CA: write("ca.pem", a.PEM), ServerCert: write("server.pem", cert), ServerKey: write("server.key", key),
		ClientCert: write("client.pem", clientCert), ClientKey: write("client.key", clientKey), Server: a.Server(t, cert, key, true)}
}

func template(name string) *x509.Certificate {
	return &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	return must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
}

// sign makes a certificate of what x says, issued by parent, and gives it as PEM, too.
func (a *Authority) sign(t testing.TB, x, parent *x509.Certificate, key *ecdsa.PublicKey) (*x509.Certificate, string) {
	t.Helper()
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, x, parent, key, a.key))
	return must[*x509.Certificate](t)(x509.ParseCertificate(der)), encode("CERTIFICATE", der)
}

func encode(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
