package clickhouse

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	ch "github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/millrace/millrace/connectors/tlsfiles"
	"github.com/millrace/millrace/runtime/types"
)

// server is the connection to one table's servers.
type server struct {
	conn driver.Conn
	// web sends blocks over HTTP, where the URL says so.
	web *http.Client
	// secure is for connections over TLS.
	secure *tls.Config
	opts   tableOptions
	// version is the server's, as major*1000+minor; tokens: it knows
	// insert_deduplication_token.
	version string
	tokens  bool
	// counts: it says how many rows it wrote.
	counts bool
	// settings are those that an INSERT is sent with.
	settings ch.Settings
	// timeZone is the zone of columns that name none.
	timeZone *types.Zone
	// soon ends when the table is about to be closed.
	soon  context.Context
	hurry context.CancelFunc
}

// hurryTimeout bounds requests once the table is about to be closed.
const hurryTimeout = 10 * time.Second

const (
	// maxConnections bounds the connections of one table: a lane publishes one
	// block at a time, and looks on another.
	maxConnections = 8
	// maxInserts bounds the blocks that are in memory to be sent, however many lanes
	// there are, and leaves connections to look on.
	maxInserts = 4
)

func connect(ctx context.Context, o tableOptions) (*server, error) {
	co := &ch.Options{
		Addr:        o.addr.hosts,
		Auth:        ch.Auth{Database: "", Username: o.user, Password: o.password},
		DialTimeout: o.connect, ReadTimeout: o.request,
		MaxOpenConns: maxConnections, MaxIdleConns: maxConnections,
		ConnOpenStrategy: ch.ConnOpenInOrder,
		// Buffers of sent blocks are large; they are not kept between blocks.
		FreeBufOnConnRelease: true,
		Logger:               slog.New(slog.DiscardHandler),
	}
	switch o.compression {
	case "lz4":
		co.Compression = &ch.Compression{Method: ch.CompressionLZ4}
	case "zstd":
		co.Compression = &ch.Compression{Method: ch.CompressionZSTD}
	}
	secure, err := o.tls.Config()
	if err != nil {
		return nil, err
	}
	if o.addr.tls {
		co.TLS = secure
	}
	if o.addr.http {
		co.Protocol = ch.HTTP
	}
	conn, err := ch.Open(co)
	if err != nil {
		return nil, fmt.Errorf("opening connection: %w", err)
	}
	s := &server{conn: conn, opts: o, secure: secure, web: &http.Client{Transport: &http.Transport{
		DialContext:     (&net.Dialer{Timeout: o.connect}).DialContext,
		TLSClientConfig: secure.Clone(), MaxIdleConnsPerHost: maxConnections, DisableCompression: true,
	}}}
	s.soon, s.hurry = context.WithCancel(context.Background())
	if err := s.probe(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

// countsRevision is the first revision of the protocol in which a server says how
// many rows it wrote.
const countsRevision = 54420

// probe asks what the server can do.
func (s *server) probe(ctx context.Context) error {
	var zone string
	err := s.retried(ctx, func(ctx context.Context) error {
		return s.conn.QueryRow(ctx, "SELECT version(), timezone()").Scan(&s.version, &zone)
	})
	if err != nil {
		return fmt.Errorf("asking the server %s for its version: %w", strings.Join(s.opts.addr.hosts, ", "), tlsfiles.Explain(err))
	}
	if s.timeZone, err = types.LoadZone(zone); err != nil {
		return fmt.Errorf("the server's time zone: %w", err)
	}
	hello, err := s.conn.ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the server for its revision: %w", err)
	}
	s.counts = hello.Revision >= countsRevision
	known, err := s.strings(ctx, "SELECT name FROM system.settings WHERE name IN ('insert_deduplication_token', 'async_insert', 'deduplicate_insert', "+
		"'insert_deduplicate', 'send_profile_events', 'insert_null_as_default', 'receive_timeout')")
	if err != nil {
		return fmt.Errorf("asking the server for its settings: %w", err)
	}
	s.settings = ch.Settings{}
	for _, name := range known {
		switch name {
		case "insert_deduplication_token":
			s.tokens = true
		case "async_insert":
			// One INSERT is one block, written before the answer.
			s.settings["async_insert"] = 0
		case "insert_deduplicate":
			s.settings["insert_deduplicate"] = 1
		case "deduplicate_insert":
			s.settings["deduplicate_insert"] = "enable"
		case "send_profile_events":
			s.settings["send_profile_events"] = 1
		case "insert_null_as_default":
			s.settings["insert_null_as_default"] = 0
		case "receive_timeout":
			// A server that waits for the rest of a block gives up when the client has:
			// until then nobody knows whether the block is going to be there.
			s.settings["receive_timeout"] = max(int(s.opts.request/time.Second), 1)
		}
	}
	for name, value := range s.opts.settings {
		s.settings[name] = settingValue(value)
	}
	return nil
}

// settingValue is a number where the text is one: old servers take numbers alone.
func settingValue(text string) any {
	n := 0
	if _, err := fmt.Sscanf(text, "%d", &n); err == nil && fmt.Sprint(n) == text {
		return n
	}
	return text
}

// connectTries and connectPause bound how long a server that does not answer is
// waited for when a table is opened.
const (
	connectTries = 20
	connectPause = 250 * time.Millisecond
)

// retried repeats f while the server cannot be reached.
func (s *server) retried(ctx context.Context, f func(context.Context) error) error {
	for try := 0; ; try++ {
		err := s.bounded(ctx, f)
		if err == nil || !unreachable(err) || try+1 == connectTries || ctx.Err() != nil {
			return err
		}
		t := time.NewTimer(connectPause)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
	}
}

// bounded runs f with a deadline.
func (s *server) bounded(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := s.deadline(ctx, s.opts.connect+s.opts.request)
	defer cancel()
	return f(ctx)
}

// deadline bounds a request by a time, and by less once the table is about to be
// closed: what hangs must not hold that up.
func (s *server) deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, d)
	stop := context.AfterFunc(s.soon, func() { time.AfterFunc(hurryTimeout, cancel) })
	return ctx, func() {
		stop()
		cancel()
	}
}

// strings is the first column of a query.
func (s *server) strings(ctx context.Context, query string) (out []string, err error) {
	err = s.retried(ctx, func(ctx context.Context) error {
		out = out[:0]
		rows, err := s.conn.Query(ctx, query)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var x string
			if err := rows.Scan(&x); err != nil {
				return err
			}
			out = append(out, x)
		}
		return rows.Err()
	})
	return out, err
}

// exec runs a statement that gives nothing.
func (s *server) exec(ctx context.Context, statement string) error {
	return s.bounded(ctx, func(ctx context.Context) error { return s.conn.Exec(ctx, statement) })
}

// refusedToConnect reports an error before anything was sent.
func refusedToConnect(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// unreachable reports an error of the connection, after which nothing is known
// of what the server did.
func unreachable(err error) bool {
	var e *ch.Exception
	if errors.As(err, &e) || tlsfiles.Refused(err) {
		return false
	}
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, net.ErrClosed)
}
