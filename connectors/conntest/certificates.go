package conntest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
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

// Certificates are PEM files: an authority, and certificates that it signed, of a
// server on loopback and of a client.
type Certificates struct {
	CA, ServerCert, ServerKey, ClientCert, ClientKey string
}

// NewCertificates makes an authority of its own each time, in a directory of the test.
func NewCertificates(t testing.TB) Certificates {
	t.Helper()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		must(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	template := func(name string) *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour)}
	}
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(err)
		return k
	}
	authorityKey, authority := key(), template("authority")
	authority.IsCA, authority.BasicConstraintsValid, authority.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	must(err)
	signed := func(name string, usage x509.ExtKeyUsage) (cert, keyFile string) {
		k, x := key(), template(name)
		x.KeyUsage, x.ExtKeyUsage = x509.KeyUsageDigitalSignature, []x509.ExtKeyUsage{usage}
		x.DNSNames, x.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
		der, err := x509.CreateCertificate(rand.Reader, x, authority, &k.PublicKey, authorityKey)
		must(err)
		private, err := x509.MarshalPKCS8PrivateKey(k)
		must(err)
		return write(name+".pem", "CERTIFICATE", der), write(name+".key", "PRIVATE KEY", private)
	}
	c := Certificates{CA: write("ca.pem", "CERTIFICATE", der)}
	c.ServerCert, c.ServerKey = signed("server", x509.ExtKeyUsageServerAuth)
	c.ClientCert, c.ClientKey = signed("client", x509.ExtKeyUsageClientAuth)
	return c
}
