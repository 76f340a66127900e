package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"

	"github.com/millrace/millrace/runtime/connector"
)

// transport is the TLS to speak; nil: none.
func transport(v connector.Values) (*tls.Config, error) {
	if !usesTLS(v) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	text := []byte(v.String(keyTrustText))
	if file := v.String(keyTrustFile); file != "" {
		var err error
		if text, err = os.ReadFile(file); err != nil {
			return nil, fmt.Errorf("reading %q: %w", keyTrustFile, err)
		}
	}
	if len(text) > 0 {
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, errors.New("the trust store has no certificate in PEM form")
		}
	}
	if v.Has(keyKeyFile) || v.Has(keyChainText) {
		pair, err := keyPair(v)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if v.String(keyHostCheck) == "" {
		// The chain is still checked, only the name is not.
		c.InsecureSkipVerify = true
		roots := c.RootCAs
		c.VerifyConnection = func(s tls.ConnectionState) error {
			o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
			for _, x := range s.PeerCertificates[1:] {
				o.Intermediates.AddCert(x)
			}
			_, err := s.PeerCertificates[0].Verify(o)
			return err
		}
	}
	return c, nil
}

// validateKeys finds a key without its certificate and the other way round.
func validateKeys(v connector.Values) error {
	file, key, chain := v.Has(keyKeyFile), v.Has(keyKeyText), v.Has(keyChainText)
	switch {
	case file && key:
		return &connector.OptionError{Key: keyKeyText, Message: fmt.Sprintf("%q and %q are both given", keyKeyFile, keyKeyText)}
	case file && chain:
		return &connector.OptionError{Key: keyChainText, Message: fmt.Sprintf("%q and %q are both given", keyKeyFile, keyChainText)}
	case key && !chain:
		return &connector.OptionError{Key: keyKeyText, Message: fmt.Sprintf("%q needs %q", keyKeyText, keyChainText)}
	case chain && !key:
		return &connector.OptionError{Key: keyChainText, Message: fmt.Sprintf("%q needs %q", keyChainText, keyKeyText)}
	}
	return nil
}

// keyPair is the certificate that the client shows, with its key. Errors do not repeat the
// text: it holds the key.
func keyPair(v connector.Values) (tls.Certificate, error) {
	where, key, chain := keyKeyText, []byte(v.String(keyKeyText)), []byte(v.String(keyChainText))
	if file := v.String(keyKeyFile); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("reading %q: %w", keyKeyFile, err)
		}
		where, key, chain = keyKeyFile, text, text
	}
	if strings.Contains(string(key), "ENCRYPTED") {
		return tls.Certificate{}, fmt.Errorf("not_yet: the key of %q is encrypted; openssl pkey writes it without its password", where)
	}
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("reading key and certificates of %q: %w", where, err)
	}
	return pair, nil
}

// certificateName is who the client is to the brokers by its certificate.
func certificateName(v connector.Values) (string, error) {
	pair, err := keyPair(v)
	if err != nil {
		return "", err
	}
	return pair.Leaf.Subject.String(), nil
}

// tlsError is a TLS connection that did not come about, with what to do. No other try helps.
type tlsError struct {
	addr string
	err  error
	hint string
}

func (e *tlsError) Error() string {
	return fmt.Sprintf("speaking TLS with broker %s: %v; %s", e.addr, e.err, e.hint)
}

// Unwrap returns the cause.
func (e *tlsError) Unwrap() error { return e.err }

// explainTLS gives err as a tlsError, if that is what it is.
func explainTLS(v connector.Values, addr string, err error) error {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var op *net.OpError
	out := &tlsError{addr: addr, err: err}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		// Brokers that stop do so as well: another try may help.
		return fmt.Errorf("speaking TLS with broker %s: %w; does it speak TLS at this port ('%s')?", addr, errHungUp, keyProtocol)
	case errors.As(err, &unknown):
		where := "the system's"
		if v.Has(keyTrustFile) || v.Has(keyTrustText) {
			where = "the trust store's"
		}
		out.hint = fmt.Sprintf("its certificate was issued by %s, which is none of %s authorities: name that authority's certificate by '%s'", unknown.Cert.Issuer, where, keyTrustFile)
	case errors.As(err, &host):
		out.hint = "name it by a name of its certificate, in 'properties.bootstrap.servers' and in the brokers' advertised.listeners, or set '" + keyHostCheck + "' to ''"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		out.hint = "the broker needs a new certificate, or the clock of this machine is wrong"
	case errors.As(err, &invalid), errors.As(err, &verification):
		out.hint = "the broker needs another certificate"
	case errors.As(err, &plain):
		out.hint = "it does not speak TLS at this port: see 'properties.security.protocol'"
	case errors.As(err, &op) && op.Op == "remote error":
		out.hint = "the broker refuses the connection; where it asks for a certificate of the client, '" + keyKeyFile + "' names one that it trusts and that is valid"
		if !v.Has(keyKeyFile) && !v.Has(keyChainText) {
			out.hint = "the broker refuses the connection; where it asks for a certificate of the client, '" + keyKeyFile + "' has to name one, and there is none"
		}
	default:
		return err
	}
	return out
}

// tlsConn explains what the broker says of the client's certificate, which in TLS 1.3 comes
// with the first answer.
type tlsConn struct {
	net.Conn
	v    connector.Values
	addr string
}

// Read implements net.Conn.
func (c *tlsConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		err = explainTLS(c.v, c.addr, err)
	}
	return n, err
}
