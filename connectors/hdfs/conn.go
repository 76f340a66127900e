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
	timeout time.Duration
	broken  func()
}

func (c *rpcConn) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if err != nil {
		c.broken()
	}
	return n, err
}

func (c *rpcConn) Write(b []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(b)
	if err != nil {
		c.broken()
	}
	return n, err
}

// dataConn is a connection to a DataNode. A write that fails is reported by
// the next read, which is what waits for the acknowledgement: the library's
// writer leaves goroutines behind for ever when a write itself fails. So every
// path of it ends, and none ends well, since acknowledgements are missing.
type dataConn struct {
	net.Conn
	timeout time.Duration

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
	err := c.Conn.SetReadDeadline(time.Now().Add(c.timeout))
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
	err := c.Conn.SetWriteDeadline(time.Now().Add(c.timeout))
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
	timeout time.Duration

	mu     sync.Mutex
	addr   string // NameNode dialed last
	broken bool
	data   map[*dataConn]bool
}

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return (&net.Dialer{Timeout: d.timeout, KeepAlive: 30 * time.Second}).DialContext(ctx, network, addr)
}

func (d *dialer) nameNode(ctx context.Context, network, addr string) (net.Conn, error) {
	d.mu.Lock()
	d.addr = addr
	d.mu.Unlock()
	c, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &rpcConn{Conn: c, timeout: d.timeout, broken: d.markBroken}, nil
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
	dc := &dataConn{Conn: c, timeout: d.timeout}
	d.mu.Lock()
	d.data[dc] = true
	d.mu.Unlock()
	return &trackedConn{dataConn: dc, d: d}, nil
}

// trackedConn forgets the connection when the library closes it.
type trackedConn struct {
	*dataConn
	d *dialer
}

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
