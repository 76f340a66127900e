package metastore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
)

// Options of a [Client].
type Options struct {
	// Addresses are tried in order, beginning with the one that answered last.
	Addresses []string
	// User is who the calls are made for in a metastore without Kerberos.
	User string
	// ConnectTimeout bounds one connection attempt (5 s), CallTimeout one call
	// (60 s): the metastore's database may be slow, a call can hold hundreds of
	// partitions.
	ConnectTimeout, CallTimeout time.Duration
	// Connections is how many may be open at once (4).
	Connections int
	// Denied says what to do where a call is refused since its user may not; it is
	// added to the error.
	Denied string
	// Dial replaces TCP, for tests.
	Dial func(ctx context.Context, address string) (net.Conn, error)
}

// downFor is how long, after no address could be reached, calls fail at once:
// hundreds of partitions must not each wait for a time-out.
const downFor = time.Second

// Client is a pool of connections to a metastore.
type Client struct {
	o Options
	// slots holds one entry a connection that may be open; nil: not open.
	slots chan *conn
	// life ends with Close, and with it every connection, under a call or idle.
	life context.Context
	end  context.CancelFunc

	mu    sync.Mutex
	first int // index of the address that answered last
	down  time.Time
	why   error
}

// New makes a client; it connects at the first call.
func New(o Options) *Client {
	if o.ConnectTimeout <= 0 {
		o.ConnectTimeout = 5 * time.Second
	}
	if o.CallTimeout <= 0 {
		o.CallTimeout = time.Minute
	}
	if o.Connections <= 0 {
		o.Connections = 4
	}
	if o.Dial == nil {
		d := &net.Dialer{}
		o.Dial = func(ctx context.Context, address string) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }
	}
	c := &Client{o: o, slots: make(chan *conn, o.Connections)}
	c.life, c.end = context.WithCancel(context.Background())
	for range o.Connections {
		c.slots <- nil
	}
	return c
}

// ParseURIs reads "thrift://host:9083,thrift://other:9083".
func ParseURIs(s string) ([]string, error) {
	var out []string
	for u := range strings.SplitSeq(s, ",") {
		u = strings.TrimSpace(u)
		address, ok := strings.CutPrefix(u, "thrift://")
		if !ok {
			return nil, fmt.Errorf("%q is not of the form thrift://host:9083", u)
		}
		host, port, err := net.SplitHostPort(strings.TrimSuffix(address, "/"))
		if err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("%q is not of the form thrift://host:9083", u)
		}
		out = append(out, net.JoinHostPort(host, port))
	}
	return out, nil
}

// Close closes the connections and waits for nothing; calls that run end with an
// error.
func (c *Client) Close() error {
	c.end()
	return nil
}

// conn is one connection; it belongs to one call at a time.
type conn struct {
	stop    func() bool // of what closes it with the client
	address string
	c       net.Conn
	p       thrift.TProtocol
	seq     int32
}

// maxMessageBytes bounds an answer: a thousand partitions are some megabytes.
const maxMessageBytes = 256 << 20

func newConn(address string, c net.Conn) *conn {
	t := thrift.NewStreamTransport(c, c)
	return &conn{address: address, c: c, p: thrift.NewTBinaryProtocolConf(t, &thrift.TConfiguration{MaxMessageSize: maxMessageBytes})}
}

func (k *conn) close() {
	if k.stop != nil {
		k.stop()
	}
	k.c.Close()
}

// message is a call: what it sends and what it does with the answer.
type message struct {
	method string
	args   func(*encoder)
	// result reads field 0 of the answer.
	result func(d *decoder, t thrift.TType) bool
	// faults are the causes of the exceptions in fields 1, 2, ...
	faults []error
}

// call makes a call, once more if the connection broke.
func (c *Client) call(ctx context.Context, m *message) error {
	var k *conn
	select {
	case k = <-c.slots:
	case <-ctx.Done():
		return &CallError{Method: m.method, Address: strings.Join(c.o.Addresses, ","), Err: ctx.Err()}
	case <-c.life.Done():
		return &CallError{Method: m.method, Address: strings.Join(c.o.Addresses, ","), Err: errClosed}
	}
	defer func() { c.slots <- k }()
	if k != nil && k.address != c.preferred() {
		// It was given up since: what idles there hangs, or breaks at the next call.
		k.close()
		k = nil
	}
	sent := false
	for try := 0; ; try++ {
		if k == nil {
			var err error
			if k, err = c.dial(ctx); err != nil {
				return &CallError{Method: m.method, Address: strings.Join(c.o.Addresses, ","), Sent: sent, Err: err}
			}
		}
		err := k.call(ctx, c.o.CallTimeout, m)
		var fault *Fault
		if errors.As(err, &fault) && fault.denied() {
			fault.Hint = c.o.Denied
		}
		if err == nil || fault != nil {
			return err
		}
		// Out of step with its server: what it says next may answer this call.
		k.close()
		address := k.address
		k = nil
		var timeout net.Error
		late := errors.As(err, &timeout) && timeout.Timeout()
		if cerr := ctx.Err(); cerr != nil {
			// The deadline was moved to end the call; this is why.
			late, err = true, cerr
		} else {
			c.failed(address)
		}
		sent = true
		if try > 0 || late {
			return &CallError{Method: m.method, Address: address, Sent: true, Err: err}
		}
	}
}

// preferred is the address to try first.
func (c *Client) preferred() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.o.Addresses[c.first]
}

// failed makes the next address the first one to try.
func (c *Client) failed(address string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.o.Addresses[c.first] == address {
		c.first = (c.first + 1) % len(c.o.Addresses)
	}
}

// dial connects to the first address that answers.
func (c *Client) dial(ctx context.Context) (*conn, error) {
	select {
	case <-c.life.Done():
		return nil, errClosed
	default:
	}
	c.mu.Lock()
	first, wait, why := c.first, time.Until(c.down), c.why
	c.mu.Unlock()
	if wait > 0 {
		return nil, why
	}
	var errs []error
	for i := range c.o.Addresses {
		n := (first + i) % len(c.o.Addresses)
		k, err := c.connect(ctx, c.o.Addresses[n])
		if err == nil {
			c.mu.Lock()
			if c.first == first { // else a call has given an address up since, which may be this one
				c.first = n
			}
			c.mu.Unlock()
			return k, nil
		}
		errs = append(errs, err)
		if cerr := ctx.Err(); cerr != nil {
			return nil, errors.Join(append(errs, cerr)...)
		}
	}
	err := fmt.Errorf("%w: %w", ErrUnavailable, errors.Join(errs...))
	c.mu.Lock()
	c.down, c.why = time.Now().Add(downFor), err
	c.mu.Unlock()
	return nil, err
}

func (c *Client) connect(ctx context.Context, address string) (*conn, error) {
	dctx, cancel := context.WithTimeout(ctx, c.o.ConnectTimeout)
	defer cancel()
	stop := context.AfterFunc(c.life, cancel)
	defer stop()
	nc, err := c.o.Dial(dctx, address)
	if err != nil {
		return nil, err
	}
	k := newConn(address, nc)
	k.stop = context.AfterFunc(c.life, func() { nc.Close() })
	if c.o.User == "" {
		return k, nil
	}
	// The metastore makes directories; they should belong to who writes them.
	err = k.call(ctx, c.o.ConnectTimeout, &message{method: "set_ugi", args: func(e *encoder) {
		e.str(1, c.o.User)
		e.strings(2, []string{c.o.User})
	}, result: func(*decoder, thrift.TType) bool { return false }, faults: []error{ErrMeta}})
	var fault *Fault
	if err != nil && !errors.As(err, &fault) {
		k.close()
		return nil, fmt.Errorf("greeting %s: %w", address, err)
	}
	return k, nil
}

// call sends a message and reads its answer, within the time-out.
func (k *conn) call(ctx context.Context, timeout time.Duration, m *message) error {
	deadline := time.Now().Add(timeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := k.c.SetDeadline(deadline); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { k.c.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	k.seq++
	e := &encoder{p: k.p}
	e.do(k.p.WriteMessageBegin(ctx, m.method, thrift.CALL, k.seq))
	e.structure(func() { m.args(e) })
	e.do(k.p.WriteMessageEnd(ctx))
	e.do(k.p.Flush(ctx))
	if e.err != nil {
		return e.err
	}
	return k.answer(m)
}

func (k *conn) answer(m *message) error {
	ctx := context.Background()
	name, kind, seq, err := k.p.ReadMessageBegin(ctx)
	if err != nil {
		return err
	}
	if name != m.method || seq != k.seq {
		return fmt.Errorf("the answer is to %s, number %d, not to %s, number %d", name, seq, m.method, k.seq)
	}
	d := &decoder{p: k.p}
	switch kind {
	case thrift.EXCEPTION:
		x := thrift.NewTApplicationException(0, "")
		d.do(x.Read(ctx, k.p))
		d.do(k.p.ReadMessageEnd(ctx))
		if d.err != nil {
			return d.err
		}
		f := &Fault{Method: m.method, Message: x.Error(), Cause: ErrInternal}
		if x.TypeId() == thrift.UNKNOWN_METHOD {
			f.Cause = ErrUnknownMethod
		}
		return f
	case thrift.REPLY:
	default:
		return fmt.Errorf("the answer has the unknown message type %d", kind)
	}
	var fault *Fault
	d.structure(nil, func(id int16, t thrift.TType) bool {
		if id == 0 {
			return m.result != nil && m.result(d, t)
		}
		if t != thrift.STRUCT {
			return false
		}
		fault = &Fault{Method: m.method, Cause: ErrInternal}
		if int(id) <= len(m.faults) {
			fault.Cause = m.faults[id-1]
		}
		d.structure(nil, func(id int16, t thrift.TType) bool {
			return id == 1 && d.str(t, &fault.Message)
		})
		return true
	})
	d.do(k.p.ReadMessageEnd(ctx))
	if d.err != nil {
		return d.err
	}
	if fault != nil {
		fault.Message = withoutStack(fault.Message)
		return fault
	}
	return nil
}
