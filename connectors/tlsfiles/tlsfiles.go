package tlsfiles

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
)

// Option keys.
const (
	KeyCA   = "tls.ca-file"
	KeyCert = "tls.cert-file"
	KeyKey  = "tls.key-file"
)

// Options are the options of a connector's Spec.
func Options() []connector.Option {
	return []connector.Option{
		{Key: KeyCA, Type: connector.OptString, Doc: "A PEM file of the authorities that the server's certificate is checked against. Unset: the system's."},
		{Key: KeyCert, Type: connector.OptString, Doc: "A PEM file of this client's certificate."},
		{Key: KeyKey, Type: connector.OptString, Doc: "A PEM file of its key."},
	}
}

// Validate refuses a half of a certificate, and files for a connection without TLS; hint
// says how to have it with TLS.
func Validate(v connector.Values, on bool, hint string) error {
	if v.Has(KeyCert) != v.Has(KeyKey) {
		return &connector.OptionError{Key: KeyCert, Message: "'" + KeyCert + "' and '" + KeyKey + "' belong together"}
	}
	for _, key := range []string{KeyCA, KeyCert} {
		if v.Has(key) && !on {
			return &connector.OptionError{Key: key, Message: "'" + key + "' has no effect without TLS", Hint: hint}
		}
	}
	return nil
}

// Files are the options' values; "" where one is not given.
type Files struct{ CA, Cert, Key string }

// Of reads the options.
func Of(v connector.Values) Files {
	return Files{CA: v.String(KeyCA), Cert: v.String(KeyCert), Key: v.String(KeyKey)}
}

// Config is TLS 1.2 and later with the files. The server's name is that of the address
// that is dialled, unless the caller sets another one.
func (f Files) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		pem, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("reading '%s': %w", KeyCA, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, &connector.OptionError{Key: KeyCA, OnValue: true, Message: f.CA + " holds no certificate in PEM form"}
		}
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("reading '%s' and '%s': %w", KeyCert, KeyKey, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// alerts are what a server says of a client's certificate. Go has no type for them.
var alerts = []string{"tls: certificate required", "tls: bad certificate", "tls: unknown certificate authority", "tls: unknown certificate"}

// Error is an error of certificates with what to do about it.
type Error struct {
	err  error
	hint string
}

func (e *Error) Error() string { return e.err.Error() + "; " + e.hint }

func (e *Error) Unwrap() error { return e.err }

// Away implements connector.Away: the server is there, and a person must act.
func (e *Error) Away() bool { return false }

// Refused reports an error of certificates, of the server's or of the client's own.
func Refused(err error) bool { return hint(err) != "" }

// Explain gives an *Error for an error of certificates; any other one stays as it is.
func Explain(err error) error {
	if h := hint(err); h != "" {
		return &Error{err, h}
	}
	return err
}

func hint(err error) string {
	if err == nil {
		return ""
	}
	var refused *tls.CertificateVerificationError
	if errors.As(err, &refused) {
		return "name the authority of the server's certificate in '" + KeyCA + "', and the server as the certificate does"
	}
	for _, alert := range alerts {
		if strings.Contains(err.Error(), alert) {
			return "the server wants a certificate that it trusts: '" + KeyCert + "' and '" + KeyKey + "'"
		}
	}
	return ""
}
