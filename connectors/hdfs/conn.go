package hdfs

import (
	"context"
	"net"
	"sync"
	"time"
)

// The library puts no deadline on anything. Each connection gets one for every
// read and write, which rolls: a stream may take for ever, a stalled one not.

// rpcConn is a connection to a NameNode. The first error of any kind marks its
// client: after a time-out the answers that come are those of earlier questions.
type rpcConn struct {
	net.Conn
	d *dialer
}

func (c *rpcConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.d.patience())); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if err != nil {
		c.d.markBroken()
	}
	return n, err
}

func (c *rpcConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.d.patience())); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	if err != nil {
		c.d.markBroken()
	}
	return n, err
}

// dataConn is a connection to a DataNode. A write that fails is reported by
// the next read, which is what waits for the acknowledgement: the library's
// writer leaves goroutines behind for ever when a write itself fails. So every
// path of it ends, and none ends well, since acknowledgements are missing.
type dataConn struct {
	net.Conn
	d *dialer

	mu  sync.Mutex
	err error
}

func (c *dataConn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
		_ = c.Conn.Close() // it is given up
	}
}

func (c *dataConn) failed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *dataConn) Read(b []byte) (int, error) {
	if err := c.failed(); err != nil {
		return 0, err
	}
	err := c.Conn.SetReadDeadline(time.Now().Add(c.d.patience()))
	n := 0
	if err == nil {
		n, err = c.Conn.Read(b)
	}
	if err != nil {
		c.fail(err)
		// The first error is the cause: a failed write closes the connection.
		err = c.failed()
	}
	return n, err
}

func (c *dataConn) Write(b []byte) (int, error) {
	if c.failed() != nil {
		return len(b), nil
	}
	err := c.Conn.SetWriteDeadline(time.Now().Add(c.d.patience()))
	if err == nil {
		_, err = c.Conn.Write(b)
	}
	if err != nil {
		c.fail(err)
	}
	return len(b), nil
}

// SetDeadline is what the library calls with its own, absent deadline.
func (c *dataConn) SetDeadline(time.Time) error { return nil }

// dialer dials for one client and remembers what it dialed.
type dialer struct {
	mu      sync.Mutex
	timeout time.Duration
	addr    string // NameNode dialed last
	broken  bool
	names   map[*rpcConn]bool // open connections to NameNodes
	data    map[*dataConn]bool
	dials   map[*context.CancelFunc]bool // under way
}

func newDialer(timeout time.Duration) *dialer {
	return &dialer{timeout: timeout, names: map[*rpcConn]bool{}, data: map[*dataConn]bool{}, dials: map[*context.CancelFunc]bool{}}
}

// hurryTimeout is how long a connection may say nothing once somebody is in a
// hurry.
const hurryTimeout = 5 * time.Second

// hurry shortens what connections may say nothing, those that wait now included:
// what moves goes on, what hangs ends soon.
func (d *dialer) hurry() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timeout <= hurryTimeout {
		return
	}
	d.timeout = hurryTimeout
	by := time.Now().Add(hurryTimeout)
	// An error means that the connection is closed.
	for c := range d.names {
		_ = c.Conn.SetDeadline(by)
	}
	for c := range d.data {
		_ = c.Conn.SetDeadline(by)
	}
	time.AfterFunc(hurryTimeout, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		for cancel := range d.dials {
			(*cancel)()
		}
	})
}

func (d *dialer) patience() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.timeout
}

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.mu.Lock()
	timeout := d.timeout
	d.dials[&cancel] = true
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.dials, &cancel)
		d.mu.Unlock()
	}()
	return (&net.Dialer{Timeout: timeout, KeepAlive: 30 * time.Second}).DialContext(ctx, network, addr)
}

func (d *dialer) nameNode(ctx context.Context, network, addr string) (net.Conn, error) {
	d.mu.Lock()
	d.addr = addr
	d.mu.Unlock()
	c, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	rc := &rpcConn{Conn: c, d: d}
	d.mu.Lock()
	d.names[rc] = true
	d.mu.Unlock()
	return rc, nil
}

// Close forgets the connection.
func (c *rpcConn) Close() error {
	c.d.mu.Lock()
	delete(c.d.names, c)
	c.d.mu.Unlock()
	return c.Conn.Close()
}

func (d *dialer) markBroken() {
	d.mu.Lock()
	d.broken = true
	d.mu.Unlock()
}

func (d *dialer) isBroken() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.broken
}

func (d *dialer) nameNodeAddr() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.addr
}

func (d *dialer) dataNode(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	dc := &dataConn{Conn: c, d: d}
	d.mu.Lock()
	d.data[dc] = true
	d.mu.Unlock()
	return &trackedConn{dataConn: dc}, nil
}

// trackedConn forgets the connection when the library closes it.
type trackedConn struct{ *dataConn }

func (t *trackedConn) Close() error {
	t.d.mu.Lock()
	delete(t.d.data, t.dataConn)
	t.d.mu.Unlock()
	return t.dataConn.Close()
}

// dataFailure is the first failure of a connection to a DataNode that is open.
func (d *dialer) dataFailure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.data {
		if err := c.failed(); err != nil {
			return err
		}
	}
	return nil
}

// cut fails all connections to DataNodes.
func (d *dialer) cut(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.data {
		c.fail(err)
	}
}
