package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/millrace/millrace/runtime/connector"
)

// Error is a request that the cluster did not answer, or refused.
type Error struct {
	// Op is what was tried, as a gerund with its object.
	Op  string
	Err error
}

func (e *Error) Error() string { return e.Op + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable implements connector.Retryable: what brokers call so, and whatever
// kept them from being reached, but not a wrong password, certificate or right.
func (e *Error) Retryable() bool {
	var broker *kerr.Error
	if errors.As(e.Err, &broker) {
		return broker.Retriable
	}
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	return !errors.As(e.Err, &unknown) && !errors.As(e.Err, &host) && !errors.As(e.Err, &invalid) && !errors.As(e.Err, &verification)
}

var _ connector.Retryable = (*Error)(nil)

// errHungUp stands for io.EOF, which the client gives when a broker closes a
// connection: to who reads a source that would be the end of its input.
var errHungUp = errors.New("the broker closed the connection")

func failed(err error, format string, args ...any) error {
	if errors.Is(err, io.EOF) {
		err = errHungUp
	}
	return &Error{Op: fmt.Sprintf(format, args...), Err: err}
}

// clientOptions are the table's properties in the client's terms.
func clientOptions(v connector.Values) ([]kgo.Opt, error) {
	var seeds []string
	for _, s := range strings.Split(v.String("properties.bootstrap.servers"), ",") {
		seeds = append(seeds, strings.TrimSpace(s))
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(seeds...), kgo.ClientID(v.String("properties.client.id")), kgo.DisableClientMetrics(),
		kgo.RequestTimeoutOverhead(millis(v, "properties.request.timeout.ms")),
		kgo.RetryTimeout(millis(v, "properties.default.api.timeout.ms")),
		kgo.DialTimeout(millis(v, "properties.request.timeout.ms")),
	}
	t, err := transport(v)
	if err != nil {
		return nil, err
	}
	if t != nil {
		opts = append(opts, kgo.DialTLSConfig(t))
	}
	m, err := login(v)
	if err != nil {
		return nil, err
	}
	if m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}

// conn is a connection to the cluster. Each reader has its own: brokers answer
// the requests of one connection in turn, and a fetch may wait.
type conn struct {
	client *kgo.Client
	admin  *kadm.Client
}

func connect(v connector.Values, opts []kgo.Opt) (*conn, error) {
	c, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("setting up a Kafka client: %w", err)
	}
	a := kadm.NewClient(c)
	a.SetTimeoutMillis(int32(brokerTime(v).Milliseconds()))
	return &conn{client: c, admin: a}, nil
}

// brokerTime is what requests that say how long the broker may take say. The client
// waits for as long as a request may take in addition to it.
func brokerTime(v connector.Values) time.Duration {
	return min(millis(v, "properties.request.timeout.ms"), 10*time.Second)
}

func (c *conn) close() { c.client.Close() }
