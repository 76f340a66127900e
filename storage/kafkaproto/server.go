package kafkaproto

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/storage/authn"
	"github.com/millrace/millrace/storage/quota"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// ErrServerClosed is what Serve returns after Shutdown.
var ErrServerClosed = errors.New("kafka server is closed")

// ErrRemote says that a listener is reachable from other machines while nothing
// authenticates clients.
var ErrRemote = errors.New("listening beyond loopback without authentication")

// Options say what a server serves and its bounds. Store is needed.
type Options struct {
	Store *topiclog.Store
	// NodeID is the broker's number in metadata; 0 means 1.
	NodeID int32
	// Advertised is the host:port that clients are told to connect to; empty
	// means the address they connected to.
	Advertised string
	// Security is how clients are told apart and what they may do.
	Security Security
	// AllowUnauthenticated lets Serve take listeners beyond loopback although
	// Security authenticates nobody.
	AllowUnauthenticated bool
	// AutoCreatePartitions, if not 0, creates a topic with so many partitions when
	// a client that allows it asks for the metadata of one that does not exist.
	AutoCreatePartitions int
	// DefaultPartitions is for topics created without a number; 0 means 1.
	DefaultPartitions int
	// MaxConnections bounds the connections at once; 0 means 8000. More are
	// closed as they come.
	MaxConnections int
	// MaxConnectionsPerAddress bounds those from one IP address; 0 means no bound but
	// MaxConnections.
	MaxConnectionsPerAddress int
	// MaxProduceBytes bounds a Produce request, 0 means 100 MiB; MaxControlBytes
	// every other one, 0 means 1 MiB.
	MaxProduceBytes, MaxControlBytes int
	// MaxInFlightBytes bounds the requests being read and handled together; 0
	// means 256 MiB. Readers wait beyond it.
	MaxInFlightBytes int64
	// MaxFetchBytes bounds a Fetch response, but for a first batch that is
	// larger; 0 means 55 MiB.
	MaxFetchBytes int
	// IdleTimeout closes a connection without requests; 0 means 10 minutes.
	// RequestTimeout bounds how long one request may take to arrive and one
	// response to be taken; 0 means 30 seconds.
	IdleTimeout, RequestTimeout time.Duration
	// LoginTimeout is how long a client may take until it is logged in, the TLS
	// handshake included; 0 means 10 seconds.
	LoginTimeout time.Duration
	// InitialRebalanceDelay is how long a new group waits for more members before
	// it shares out work; 0 means 3 seconds, as Kafka does, negative not at all.
	InitialRebalanceDelay time.Duration
	// ConsumerSession is the silence after which a member of a consumer group of
	// the newer protocol is out, 0 means 45 seconds; ConsumerHeartbeat how often
	// members are told to speak, 0 means 5 seconds.
	ConsumerSession, ConsumerHeartbeat time.Duration
	// OffsetsRetention is how long positions stay that nobody uses; 0 means 7 days,
	// negative for ever.
	OffsetsRetention time.Duration
	// PoisonReleased overwrites the memory of requests and answers that was given back
	// to be used again, to find who uses it afterwards.
	PoisonReleased bool
	Logger         *slog.Logger

	now func() time.Time // of tests; nil: time.Now
}

// Server serves a store. Its methods are safe for concurrent use.
type Server struct {
	opts     Options
	table    map[int16]api
	ctx      context.Context // ends when draining starts
	cancel   context.CancelFunc
	budget   *budget
	lobby    *budget // of clients that are not logged in yet
	guards   map[int16]guard
	meters   *quota.Meters
	logins   *authn.Authenticator // nil without Security.Access
	groups   *groups
	sessions *fetchSessions
	buffers  sync.Pool // *[]byte for Produce requests
	decoders sync.Pool // *record.Decoder
	produces sync.Pool // *produceRequest
	conns    sync.WaitGroup

	offsetsTopic atomic.Bool // __consumer_offsets is there

	mu        sync.Mutex
	closed    bool
	expires   bool // runExpiry was started
	listeners map[net.Listener]bool
	open      map[net.Conn]string // to the client's address
	perAddr   map[string]int
	refused   refusals
}

// New returns a server that listens nowhere yet.
func New(o Options) (*Server, error) {
	if o.Store == nil {
		return nil, fmt.Errorf("kafka server: Store is missing")
	}
	if o.Advertised != "" {
		if _, _, err := splitAddress(o.Advertised); err != nil {
			return nil, fmt.Errorf("kafka server: Advertised: %w", err)
		}
	}
	setDefault(&o.NodeID, 1)
	setDefault(&o.DefaultPartitions, 1)
	setDefault(&o.MaxConnections, 8000)
	setDefault(&o.MaxProduceBytes, 100<<20)
	setDefault(&o.MaxControlBytes, 1<<20)
	setDefault(&o.MaxInFlightBytes, 256<<20)
	setDefault(&o.MaxFetchBytes, 55<<20)
	setDefault(&o.IdleTimeout, 10*time.Minute)
	setDefault(&o.RequestTimeout, 30*time.Second)
	setDefault(&o.InitialRebalanceDelay, 3*time.Second)
	setDefault(&o.OffsetsRetention, defaultOffsetsRetention)
	setDefault(&o.ConsumerSession, consumerSession)
	setDefault(&o.ConsumerHeartbeat, consumerHeartbeat)
	setDefault(&o.LoginTimeout, 10*time.Second)
	if err := o.Security.validate(); err != nil {
		return nil, err
	}
	o.PoisonReleased = o.PoisonReleased || vfs.PoisonAlways
	if o.now == nil {
		o.now = time.Now
	}
	if o.NodeID < 0 || o.DefaultPartitions < 0 || o.AutoCreatePartitions < 0 || o.MaxConnections < 0 || o.MaxConnectionsPerAddress < 0 || o.LoginTimeout < 0 ||
		o.MaxProduceBytes < 0 || o.MaxControlBytes < 0 || o.MaxInFlightBytes < 0 || o.MaxFetchBytes < 0 || o.IdleTimeout < 0 || o.RequestTimeout < 0 ||
		o.ConsumerSession < 0 || o.ConsumerHeartbeat < 0 {
		return nil, fmt.Errorf("kafka server: an option is negative")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{opts: o, table: map[int16]api{}, budget: newBudget(o.MaxInFlightBytes), groups: newGroups(&o),
		sessions: newFetchSessions(), listeners: map[net.Listener]bool{}, open: map[net.Conn]string{}, perAddr: map[string]int{},
		lobby: newBudget(lobbyBudget), guards: guards(), meters: quota.NewMeters(o.now)}
	if o.Security.Access != nil {
		s.logins = o.Security.Access.Authenticator()
	}
	s.buffers.New = func() any { return new([]byte) }
	s.decoders.New = func() any { return new(record.Decoder) }
	s.produces.New = func() any { return new(produceRequest) }
	for _, a := range apis() {
		s.table[a.Key] = a
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s, nil
}

func setDefault[T comparable](v *T, def T) {
	var zero T
	if *v == zero {
		*v = def
	}
}

// Serve accepts connections until Shutdown, then returns ErrServerClosed. It
// closes the listener.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if err := s.opts.Permits(l.Addr()); err != nil {
		return err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return ErrServerClosed
	}
	if s.listeners[l] = true; !s.expires {
		s.expires = true
		s.conns.Add(1)
		go s.runExpiry()
	}
	s.mu.Unlock()
	pause := 5 * time.Millisecond
	for {
		c, err := l.Accept()
		if err != nil {
			s.mu.Lock()
			closed := s.closed
			s.mu.Unlock()
			if closed {
				return ErrServerClosed
			}
			if errors.Is(err, net.ErrClosed) {
				return fmt.Errorf("kafka server: accepting: %w", err)
			}
			// Mostly too many open files: it passes as connections end.
			s.opts.Logger.Warn("accepting a connection failed", "address", l.Addr().String(), "error", err)
			select {
			case <-s.ctx.Done():
			case <-time.After(pause):
			}
			pause = min(2*pause, time.Second)
			continue
		}
		pause = 5 * time.Millisecond
		client := c
		if s.opts.Security.TLS != nil && l.Addr().Network() != "unix" {
			client = tls.Server(c, s.opts.Security.TLS)
		}
		if !s.add(client) {
			c.Close() // without a word: a TLS alert would take time
			continue
		}
		go s.serveConn(client)
	}
}

// Shutdown stops listening and reading, lets every request that was read be
// answered and closes the connections. When ctx ends first it closes them as
// they are and returns ctx's error. The store stays open.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	for l := range s.listeners {
		l.Close()
	}
	for c := range s.open {
		c.SetReadDeadline(time.Unix(1, 0))
	}
	s.mu.Unlock()
	s.cancel()
	s.budget.close()
	s.lobby.close()
	done := make(chan struct{})
	go func() {
		s.conns.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.open {
		c.Close()
	}
	s.mu.Unlock()
	<-done
	return ctx.Err()
}

// Connections is the number of open connections.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// address is what clients of a connection are told to connect to.
func (s *Server) address(c net.Conn) (host string, port int32) {
	a := s.opts.Advertised
	if a == "" {
		a = c.LocalAddr().String()
	}
	host, port, err := splitAddress(a)
	if err != nil {
		// A Unix socket has no port; its clients dial the socket whatever they are
		// told.
		return "localhost", 9092
	}
	return host, port
}

func splitAddress(a string) (string, int32, error) {
	host, p, err := net.SplitHostPort(a)
	if err != nil {
		return "", 0, err
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil || host == "" || n == 0 {
		return "", 0, fmt.Errorf("%q is not host:port", a)
	}
	return host, int32(n), nil
}

// budget bounds the bytes of requests under way.
type budget struct {
	mu     sync.Mutex
	freed  sync.Cond
	left   int64
	total  int64
	closed bool
}

func newBudget(total int64) *budget {
	b := &budget{left: total, total: total}
	b.freed.L = &b.mu
	return b
}

// take waits for n bytes and returns how many to give back: at most the whole
// budget, so that one large request can always go on. It returns -1 once closed.
func (b *budget) take(n int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, b.total)
	for b.left < n && !b.closed {
		b.freed.Wait()
	}
	if b.closed {
		return -1
	}
	b.left -= n
	return n
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	b.left += n
	b.mu.Unlock()
	b.freed.Broadcast()
}

func (b *budget) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.freed.Broadcast()
}
