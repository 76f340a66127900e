package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
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
	// Hint is what to do about it; empty: nothing that is known.
	Hint string
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Op + ": " + e.Err.Error()
	}
	return e.Op + ": " + e.Err.Error() + "; " + e.Hint
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Retryable implements connector.Retryable: what brokers call so, and whatever
// kept them from being reached, but not a wrong password, certificate or right.
func (e *Error) Retryable() bool {
	var broker *kerr.Error
	if errors.As(e.Err, &broker) {
		return broker.Retriable
	}
	var handshake *tlsError
	return !errors.As(e.Err, &handshake)
}

var _ connector.Retryable = (*Error)(nil)

// errHungUp stands for io.EOF, which the client gives when a broker closes a
// connection: to who reads a source that would be the end of its input.
var errHungUp = errors.New("the broker closed the connection")

func failed(err error, format string, args ...any) *Error {
	if errors.Is(err, io.EOF) {
		err = errHungUp
	}
	return &Error{Op: fmt.Sprintf(format, args...), Err: err}
}

// failed is that of c's access.
func (c *conn) failed(err error, topic, format string, args ...any) error {
	return c.access.failed(err, topic, format, args...)
}

// resolveProperties reads properties by the names of Java's clients.
func resolveProperties(properties map[string]string, more ...connector.Option) (connector.Values, error) {
	spec := connector.Spec{Name: "kafka", Options: slices.Concat(connectionOptions(), more), Validate: validateSecurity}
	with := map[string]string{"connector": "kafka"}
	for k, v := range properties {
		with["properties."+k] = v
	}
	v, faults := spec.Resolve(with)
	if len(faults) > 0 {
		f := *faults[0]
		f.Key, f.Message = strings.TrimPrefix(f.Key, "properties."), strings.ReplaceAll(f.Message, "properties.", "")
		return v, &f
	}
	return v, nil
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
	}
	dial, err := dialer(v)
	if err != nil {
		return nil, err
	}
	opts = append(opts, kgo.Dialer(dial))
	m, err := login(v)
	if err != nil {
		return nil, err
	}
	if m != nil {
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// dialer opens connections as the table's properties say.
func dialer(v connector.Values) (dialFunc, error) {
	plain := &net.Dialer{Timeout: millis(v, "properties.request.timeout.ms")}
	config, err := transport(v)
	if err != nil || config == nil {
		return plain.DialContext, err
	}
	// The broker's name is that of the address: tls.Dialer sees to it.
	secured := &tls.Dialer{NetDialer: plain, Config: config}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := secured.DialContext(ctx, network, addr)
		if err != nil {
			return nil, explainTLS(v, addr, err)
		}
		return &tlsConn{Conn: c, v: v, addr: addr}, nil
	}, nil
}

// conn is a connection to the cluster. Each reader has its own: brokers answer
// the requests of one connection in turn, and a fetch may wait.
type conn struct {
	client *kgo.Client
	admin  *kadm.Client
	access *access
}

func connect(v connector.Values, opts []kgo.Opt, a *access) (*conn, error) {
	c, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("setting up a Kafka client: %w", err)
	}
	admin := kadm.NewClient(c)
	admin.SetTimeoutMillis(int32(brokerTime(v).Milliseconds()))
	return &conn{client: c, admin: admin, access: a}, nil
}

// brokerTime is what requests that say how long the broker may take say. The client
// waits for as long as a request may take in addition to it.
func brokerTime(v connector.Values) time.Duration {
	return min(millis(v, "properties.request.timeout.ms"), 10*time.Second)
}

func (c *conn) close() { c.client.Close() }
