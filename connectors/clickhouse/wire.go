package clickhouse

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	chproto "github.com/ClickHouse/ch-go/proto"
	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/millrace/millrace/connectors/tlsfiles"
	"github.com/millrace/millrace/runtime/batch"
)

// The driver gives rows one value at a time and converts them. What is read in bulk
// comes as columns instead: blocks of the native form, straight into Vecs.

// wireRevision is the protocol that queries of sources and lookups speak: the oldest
// in which blocks have all that is needed. Servers send to such a client no sparse
// columns, no dictionaries, no logs and no profiles.
const wireRevision = 54403

// blocks is the answer to a query.
type blocks interface {
	// next decodes the next block into cols, one a column of the query, and gives its
	// rows; io.EOF after the last.
	next(cols []*readColumn, vecs []batch.Vec) (rows int, err error)
	close()
}

// query asks the first server that answers. The answer ends with ctx.
func (s *server) query(ctx context.Context, text string) (blocks, error) {
	if s.opts.addr.http {
		return s.queryHTTP(ctx, text)
	}
	var errs []error
	for _, host := range s.opts.addr.hosts {
		w, err := s.dial(ctx, host)
		if err == nil {
			if err = w.send(text); err == nil {
				return w, nil
			}
			w.close()
		}
		errs = append(errs, err)
		if !unreachable(err) || ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// firstRow reads one row of a query into vecs, and gives how many there were: 0 or 1.
func (s *server) firstRow(ctx context.Context, text string, cols []*readColumn, vecs []batch.Vec) (int, error) {
	answer, err := s.query(ctx, text+" LIMIT 1")
	if err != nil {
		return 0, err
	}
	defer answer.close()
	n, err := answer.next(cols, vecs)
	if err == io.EOF {
		return 0, nil
	}
	return n, err
}

// wireConn is a connection for one query.
type wireConn struct {
	conn       net.Conn
	r          *chproto.Reader
	out        chproto.Buffer
	compressed bool
	patience   time.Duration
	stop       func() bool
}

// dial connects and greets. Reads are cut off when ctx ends.
func (s *server) dial(ctx context.Context, host string) (*wireConn, error) {
	within, cancel := context.WithTimeout(ctx, s.opts.connect)
	defer cancel()
	var conn net.Conn
	var err error
	if s.opts.addr.tls {
		conn, err = (&tls.Dialer{Config: s.secure}).DialContext(within, "tcp", host)
	} else {
		conn, err = (&net.Dialer{}).DialContext(within, "tcp", host)
	}
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", host, tlsfiles.Explain(err))
	}
	w := &wireConn{conn: conn, r: chproto.NewReader(conn), compressed: s.opts.compression != "none", patience: s.opts.request}
	w.stop = context.AfterFunc(ctx, func() { conn.Close() })
	if err := w.greet(s.opts); err != nil {
		w.close()
		return nil, fmt.Errorf("greeting %s: %w", host, err)
	}
	return w, nil
}

// Codes of the protocol.
const (
	clientHello = 0
	clientQuery = 1
	clientData  = 2

	serverHello       = 0
	serverData        = 1
	serverException   = 2
	serverProgress    = 3
	serverEndOfStream = 5
	serverProfile     = 6

	stageComplete = 2
)

func (w *wireConn) flush() error {
	if err := w.conn.SetWriteDeadline(time.Now().Add(w.patience)); err != nil {
		return err
	}
	_, err := w.conn.Write(w.out.Buf)
	w.out.Reset()
	return err
}

func (w *wireConn) greet(o tableOptions) error {
	b := &w.out
	b.PutUVarInt(clientHello)
	b.PutString("millrace")
	b.PutUVarInt(1)
	b.PutUVarInt(1)
	b.PutUVarInt(wireRevision)
	b.PutString(o.database)
	b.PutString(o.user)
	b.PutString(o.password)
	if err := w.flush(); err != nil {
		return err
	}
	code, err := w.packet()
	if err != nil {
		return err
	}
	if code != serverHello {
		return fmt.Errorf("the server answers with packet %d", code)
	}
	// Name, version and revision; time zone, display name, patch of the version.
	if _, err := w.r.StrRaw(); err != nil {
		return err
	}
	for range 3 {
		if _, err := w.r.UVarInt(); err != nil {
			return err
		}
	}
	for range 2 {
		if _, err := w.r.StrRaw(); err != nil {
			return err
		}
	}
	_, err = w.r.UVarInt()
	return err
}

func (w *wireConn) send(text string) error {
	b := &w.out
	b.PutUVarInt(clientQuery)
	b.PutString("") // the server makes an id
	const initialQuery, overTCP = 1, 1
	b.PutByte(initialQuery)
	b.PutString("")
	b.PutString("")
	b.PutString("0.0.0.0:0")
	b.PutByte(overTCP)
	b.PutString("")
	b.PutString("")
	b.PutString("millrace")
	b.PutUVarInt(1)
	b.PutUVarInt(1)
	b.PutUVarInt(wireRevision)
	b.PutString("") // quota key
	b.PutUVarInt(0)
	b.PutString("") // no settings
	b.PutUVarInt(stageComplete)
	b.PutBool(w.compressed)
	b.PutString(text)
	if err := w.flush(); err != nil {
		return err
	}
	// No external tables: an empty block ends them.
	b.PutUVarInt(clientData)
	b.PutString("")
	empty := chproto.Buffer{}
	chproto.BlockInfo{BucketNum: -1}.Encode(&empty)
	empty.PutUVarInt(0)
	empty.PutUVarInt(0)
	if w.compressed {
		c := compress.NewWriter(compress.LevelZero, compress.None)
		if err := c.Compress(empty.Buf); err != nil {
			return err
		}
		b.PutRaw(c.Data)
	} else {
		b.PutRaw(empty.Buf)
	}
	return w.flush()
}

// packet reads the code of the next packet; an exception is an error.
func (w *wireConn) packet() (uint64, error) {
	if err := w.conn.SetReadDeadline(time.Now().Add(w.patience)); err != nil {
		return 0, err
	}
	code, err := w.r.UVarInt()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF // an answer has its own end
	}
	if err != nil || code != serverException {
		return code, err
	}
	var e chproto.Exception
	if err := e.DecodeAware(w.r, wireRevision); err != nil {
		return 0, err
	}
	return 0, &ch.Exception{Code: int32(e.Code), Name: e.Name, Message: e.Message}
}

func (w *wireConn) next(cols []*readColumn, vecs []batch.Vec) (int, error) {
	for {
		code, err := w.packet()
		if err != nil {
			return 0, err
		}
		switch code {
		case serverData:
			if _, err := w.r.StrRaw(); err != nil {
				return 0, err
			}
			if w.compressed {
				w.r.EnableCompression()
			}
			var info chproto.BlockInfo
			rows := 0
			if err = info.Decode(w.r); err == nil {
				rows, err = readBlock(w.r, cols, vecs)
			}
			w.r.DisableCompression()
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			if err != nil || rows > 0 {
				return rows, err
			}
		case serverProgress:
			var p chproto.Progress
			err = p.DecodeAware(w.r, wireRevision)
		case serverProfile:
			var p chproto.Profile
			err = p.DecodeAware(w.r, wireRevision)
		case serverEndOfStream:
			return 0, io.EOF
		default:
			err = fmt.Errorf("the server sends packet %d, which this program did not ask for", code)
		}
		if err != nil {
			return 0, err
		}
	}
}

// close ends the query by ending its connection: the server notices and stops.
func (w *wireConn) close() {
	w.stop()
	w.conn.Close()
}

// readBlock decodes the columns of one block; io.EOF when nothing comes.
func readBlock(r *chproto.Reader, cols []*readColumn, vecs []batch.Vec) (int, error) {
	columns, err := r.UVarInt()
	if errors.Is(err, io.EOF) {
		return 0, io.EOF
	}
	if err != nil {
		return 0, err
	}
	rows, err := r.UVarInt()
	if err != nil {
		return 0, err
	}
	if columns == 0 && rows == 0 {
		return 0, nil
	}
	if int(columns) != len(cols) || rows > maxBlockRows {
		return 0, fmt.Errorf("a block of %d columns and %d rows came for a query of %d columns", columns, rows, len(cols))
	}
	for i, c := range cols {
		if _, err := r.Str(); err != nil {
			return 0, err
		}
		typ, err := r.Str()
		if err != nil {
			return 0, err
		}
		if !sameType(withoutZones(typ), withoutZones(c.text)) {
			return 0, fmt.Errorf("%w: column %s is %s, was %s", errChanged, c.name, typ, c.text)
		}
		if err := c.read(r, &vecs[i], int(rows)); err != nil {
			return 0, fmt.Errorf("reading column %s: %w", c.name, err)
		}
	}
	return int(rows), nil
}

var zoned = regexp.MustCompile(`\bDateTime\('[^']*'\)`)

// withoutZones is a type without the zones of DateTime, which old protocols leave out.
func withoutZones(typ string) string { return zoned.ReplaceAllString(typ, "DateTime") }

// maxBlockRows bounds what one block may claim to have.
const maxBlockRows = 1 << 24

// inColumns names the columns of a SELECT.
func inColumns(cols []*readColumn) string {
	var b []byte
	for i, c := range cols {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = append(b, c.selected...)
	}
	return string(b)
}
