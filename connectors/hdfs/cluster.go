package hdfs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/colinmarc/hdfs/v2"
	krb "github.com/jcmturner/gokrb5/v8/client"
)

// Config is a cluster and how to talk to it.
type Config struct {
	// Authority is the part of URLs between "hdfs://" and the path.
	Authority string
	// Addresses are the NameNodes, host:port.
	Addresses []string
	User      string
	// Replication and BlockBytes of new files; 0: the cluster's own.
	Replication int
	BlockBytes  int64
	// RPCTimeout bounds each read and write on a connection, RetryTimeout how
	// long an operation is tried again while the cluster does not serve it.
	RPCTimeout, RetryTimeout time.Duration
	// Transfers bounds the files being written at the same time.
	Transfers   int
	UseHostname bool
	SpoolDir    string
	Kerberos    Kerberos
	// Protection of the data transfer: authentication, integrity, privacy.
	Protection string
}

// client is a client of the library with its connections.
type client struct {
	*hdfs.Client
	dialer *dialer
	once   sync.Once
}

// close gives the connections back; leases of open files end.
func (c *client) close() {
	c.once.Do(func() {
		c.dialer.cut(errors.New("the client was given up"))
		// It waits for a call that is under way, which the dialer's time-outs
		// bound; nobody should wait with it.
		go c.Client.Close()
	})
}

// cluster keeps the connection to one cluster. It is safe for concurrent use.
type cluster struct {
	conf  Config
	slots chan struct{} // one a transfer

	mu     sync.Mutex
	order  []string // NameNodes, the one that answered last first
	shared *client  // for everything but writing files; nil: none yet
	closed bool
	krb    *krb.Client

	replacing map[string]chan struct{} // names that Create is about to give

	defaultsMu sync.Mutex
	defaults   *hdfs.ServerDefaults
}

func newCluster(conf Config) *cluster {
	return &cluster{conf: conf, slots: make(chan struct{}, max(conf.Transfers, 1)), order: slices.Clone(conf.Addresses), replacing: map[string]chan struct{}{}}
}

// alone waits until nobody else replaces the file of a name: they send it under
// one hidden name.
func (c *cluster) alone(ctx context.Context, name string) (done func(), err error) {
	for {
		c.mu.Lock()
		busy := c.replacing[name]
		if busy == nil {
			mine := make(chan struct{})
			c.replacing[name] = mine
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				delete(c.replacing, name)
				c.mu.Unlock()
				close(mine)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// url is a path as users write it.
func (c *cluster) url(name string) string { return "hdfs://" + c.conf.Authority + name }

var errClosed = errors.New("the filesystem is closed")

// dial makes a client. The order of NameNodes is that of their last answers:
// the library stays with the first one that accepts a connection, also when
// that one hangs.
//
// What hangs ends soon once soon has ended.
func (c *cluster) dial(soon context.Context) (*client, error) {
	c.mu.Lock()
	order := slices.Clone(c.order)
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return nil, errClosed
	}
	d := newDialer(c.conf.RPCTimeout)
	defer context.AfterFunc(soon, d.hurry)()
	o := hdfs.ClientOptions{
		Addresses: order, User: c.conf.User, UseDatanodeHostname: c.conf.UseHostname,
		NamenodeDialFunc: d.nameNode, DatanodeDialFunc: d.dataNode, DataTransferProtection: c.conf.Protection,
	}
	if c.conf.Kerberos.on() {
		k, err := c.login()
		if err != nil {
			return nil, err
		}
		o.KerberosClient, o.KerberosServicePrincipleName = k, c.conf.Kerberos.Service
	}
	cl, err := hdfs.NewClient(o)
	if err != nil {
		c.demote(d.nameNodeAddr())
		return nil, err
	}
	return &client{Client: cl, dialer: d}, nil
}

// login gives the one Kerberos client of the cluster.
func (c *cluster) login() (*krb.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.krb == nil {
		k, err := c.conf.Kerberos.client()
		if err != nil {
			return nil, err
		}
		c.krb = k
	}
	return c.krb, nil
}

// demote moves a NameNode that did not answer behind the others.
func (c *cluster) demote(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.order, addr); i >= 0 {
		c.order = append(slices.Delete(c.order, i, i+1), addr)
	}
}

// promote moves the NameNode that answered before the others.
func (c *cluster) promote(addr string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.order, addr); i > 0 {
		c.order = slices.Insert(slices.Delete(c.order, i, i+1), 0, addr)
	}
}

// take gives the shared client, a new one when the last one was given up.
func (c *cluster) take(soon context.Context) (*client, error) {
	c.mu.Lock()
	cl := c.shared
	if cl != nil && cl.dialer.isBroken() {
		c.shared = nil
		defer cl.close()
		cl = nil
	}
	c.mu.Unlock()
	if cl != nil {
		return cl, nil
	}
	cl, err := c.dial(soon)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		defer cl.close()
		return nil, errClosed
	}
	if c.shared != nil {
		// Another goroutine was faster.
		defer cl.close()
		return c.shared, nil
	}
	c.shared = cl
	return cl, nil
}

// drop gives a client up that failed.
func (c *cluster) drop(cl *client) {
	c.mu.Lock()
	if c.shared == cl {
		c.shared = nil
	}
	c.mu.Unlock()
	c.demote(cl.dialer.nameNodeAddr())
	cl.close()
}

// once calls f with the shared client, which does not outlive an error that is
// no answer.
func (c *cluster) once(soon context.Context, f func(*hdfs.Client) error) error {
	cl, err := c.take(soon)
	if err != nil {
		return err
	}
	defer context.AfterFunc(soon, cl.dialer.hurry)()
	return c.with(cl, func(cl *client) error { return f(cl.Client) })
}

func (c *cluster) with(cl *client, f func(*client) error) error {
	err := f(cl)
	if err != nil && !answered(err) {
		c.drop(cl)
		return err
	}
	c.promote(cl.dialer.nameNodeAddr())
	return err
}

const (
	firstPause = 50 * time.Millisecond
	lastPause  = 2 * time.Second
)

// again calls f until it succeeds, is refused for good, or the time for it, which
// begins with the first failure, is over; once soon has ended it is over. f must be
// such that a call whose answer was lost can be repeated; try counts the calls before.
func (c *cluster) again(ctx, soon context.Context, op, name string, f func(try int) error) error {
	var deadline time.Time
	wait := firstPause
	for try := 0; ; try++ {
		err := f(try)
		if err == nil || errors.Is(err, errClosed) {
			return err
		}
		if try == 0 {
			deadline = time.Now().Add(c.conf.RetryTimeout)
		}
		err = c.explain(op, name, err)
		var e *Error
		if !errors.As(err, &e) || !e.Retryable() || !time.Now().Before(deadline) || soon.Err() != nil {
			return err
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-soon.Done():
			t.Stop()
			return err
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		wait = min(2*wait, lastPause)
	}
}

func (c *cluster) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.shared != nil {
		c.shared.close()
		c.shared = nil
	}
}
