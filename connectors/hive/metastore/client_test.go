package metastore

import (
	"context"
	"errors"
	"net"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/thrift/lib/go/thrift"
)

// server is a metastore of a few lines: it reads a call, skips its arguments
// and answers by script.
type server struct {
	l      net.Listener
	answer func(method string, args []extra, reply *reply)

	mu    sync.Mutex
	calls []string
}

// reply is what a server does with one call.
type reply struct {
	// result writes the fields of the answer.
	result func(e *encoder)
	// exception of the protocol, by type; 0: none.
	exception int32
	// hangUp closes the connection instead of answering, hold answers nothing.
	hangUp, hold bool
}

func serve(t *testing.T, answer func(method string, args []extra, r *reply)) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{l: l, answer: answer}
	var done sync.WaitGroup
	var conns []net.Conn
	var mu sync.Mutex
	done.Add(1)
	go func() {
		defer done.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			done.Add(1)
			go func() { defer done.Done(); s.connection(c) }()
		}
	}()
	t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		done.Wait()
	})
	return s
}

func (s *server) address() string { return s.l.Addr().String() }

func (s *server) connection(c net.Conn) {
	defer c.Close()
	k := newConn("", c)
	ctx := context.Background()
	for {
		name, _, seq, err := k.p.ReadMessageBegin(ctx)
		if err != nil {
			return
		}
		var args []extra
		d := &decoder{p: k.p}
		d.structure(&args, func(int16, thrift.TType) bool { return false })
		s.mu.Lock()
		s.calls = append(s.calls, name)
		s.mu.Unlock()
		var r reply
		s.answer(name, args, &r)
		switch {
		case r.hold:
			continue
		case r.hangUp || d.err != nil:
			return
		}
		e := &encoder{p: k.p}
		if r.exception != 0 {
			e.do(k.p.WriteMessageBegin(ctx, name, thrift.EXCEPTION, seq))
			e.do(thrift.NewTApplicationException(r.exception, "no").Write(ctx, k.p))
		} else {
			e.do(k.p.WriteMessageBegin(ctx, name, thrift.REPLY, seq))
			e.structure(func() {
				if r.result != nil {
					r.result(e)
				}
			})
		}
		e.do(k.p.WriteMessageEnd(ctx))
		e.do(k.p.Flush(ctx))
		if e.err != nil {
			return
		}
	}
}

func (s *server) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func client(t *testing.T, o Options) *Client {
	c := New(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func tableReply(e *encoder) {
	e.field(0, thrift.STRUCT, func() { e.structure(func() { e.table(1, &Table{Database: "d", Name: "t"}) }) })
}

func TestOlderCallWhereTheNewerIsUnknown(t *testing.T) {
	s := serve(t, func(method string, _ []extra, r *reply) {
		switch method {
		case "get_table_req", "alter_partitions_with_environment_context":
			r.exception = thrift.UNKNOWN_METHOD
		case "get_table":
			r.result = func(e *encoder) { e.table(0, &Table{Database: "d", Name: "t"}) }
		}
	})
	c := client(t, Options{Addresses: []string{s.address()}})
	got, err := c.Table(context.Background(), "d", "t")
	if err != nil || got.Name != "t" {
		t.Fatalf("got %+v, %v", got, err)
	}
	if err := c.AlterPartitions(context.Background(), "d", "t", nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{"get_table_req", "get_table", "alter_partitions_with_environment_context", "alter_partitions"}; !slices.Equal(s.seen(), want) {
		t.Errorf("calls %v, want %v", s.seen(), want)
	}
}

func TestFaultsHaveTheirCause(t *testing.T) {
	for field, want := range map[int16]error{1: ErrInvalidObject, 2: ErrAlreadyExists, 3: ErrMeta, 9: ErrInternal} {
		s := serve(t, func(_ string, _ []extra, r *reply) {
			r.result = func(e *encoder) {
				e.field(field, thrift.STRUCT, func() { e.structure(func() { e.str(1, "why") }) })
			}
		})
		c := client(t, Options{Addresses: []string{s.address()}})
		_, err := c.AddPartitions(context.Background(), "d", "t", nil)
		var f *Fault
		if !errors.Is(err, want) || !errors.As(err, &f) || f.Message != "why" {
			t.Errorf("exception in field %d: got %v, want %v", field, err, want)
		}
	}
}

// A connection on which a call timed out may still bring its answer: it must not
// be taken for the next call's.
func TestConnectionIsDroppedAfterATimeout(t *testing.T) {
	slow := make(chan struct{})
	var calls atomic.Int32
	s := serve(t, func(method string, _ []extra, r *reply) {
		if calls.Add(1) == 1 {
			<-slow
		}
		r.result = tableReply
	})
	c := client(t, Options{Addresses: []string{s.address()}, CallTimeout: 100 * time.Millisecond, Connections: 1})
	_, err := c.Table(context.Background(), "d", "t")
	var ce *CallError
	if !errors.As(err, &ce) || !ce.Sent || !ce.Retryable() {
		t.Fatalf("got %v, want a call without an answer that was sent", err)
	}
	close(slow)
	if got, err := c.Table(context.Background(), "d", "t"); err != nil || got.Name != "t" {
		t.Fatalf("the next call got %v, %v", got, err)
	}
	if n := len(s.seen()); n != 2 {
		t.Errorf("%d calls, want 2: a call that ran into its deadline is not made again", n)
	}
}

func TestCallIsCanceled(t *testing.T) {
	called := make(chan struct{})
	s := serve(t, func(_ string, _ []extra, r *reply) { close(called); r.hold = true })
	c := client(t, Options{Addresses: []string{s.address()}})
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-called; cancel() }()
	if _, err := c.Table(ctx, "d", "t"); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want %v", err, context.Canceled)
	}
}

func TestBrokenConnectionIsTriedOnceMore(t *testing.T) {
	var calls atomic.Int32
	s := serve(t, func(_ string, _ []extra, r *reply) {
		n := calls.Add(1)
		r.hangUp, r.result = n == 1 || n > 2, tableReply
	})
	c := client(t, Options{Addresses: []string{s.address()}, Connections: 1})
	if _, err := c.Table(context.Background(), "d", "t"); err != nil {
		t.Fatalf("one broken connection is an error: %v", err)
	}
	_, err := c.Table(context.Background(), "d", "t")
	var ce *CallError
	if !errors.As(err, &ce) || !ce.Sent {
		t.Fatalf("got %v, want an unknown outcome", err)
	}
}

func TestNextAddress(t *testing.T) {
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := dead.Addr().String()
	dead.Close()
	s := serve(t, func(_ string, _ []extra, r *reply) { r.result = tableReply })
	c := client(t, Options{Addresses: []string{gone, s.address()}})
	if _, err := c.Table(context.Background(), "d", "t"); err != nil {
		t.Fatal(err)
	}
	none := client(t, Options{Addresses: []string{gone}})
	for range 2 { // the second one fails at once
		_, err := none.Table(context.Background(), "d", "t")
		var ce *CallError
		if !errors.Is(err, ErrUnavailable) || !errors.As(err, &ce) || ce.Sent {
			t.Fatalf("got %v, want %v, not sent", err, ErrUnavailable)
		}
	}
}

func TestUserIsTold(t *testing.T) {
	s := serve(t, func(_ string, _ []extra, r *reply) { r.result = tableReply })
	c := client(t, Options{Addresses: []string{s.address()}, User: "etl"})
	if _, err := c.Table(context.Background(), "d", "t"); err != nil {
		t.Fatal(err)
	}
	if got := s.seen(); !slices.Equal(got, []string{"set_ugi", "get_table_req"}) {
		t.Errorf("calls %v", got)
	}
}

// What a newer metastore knows of a table must survive being altered by us.
func TestUnknownFieldsAreKept(t *testing.T) {
	write := func(e *encoder) {
		e.structure(func() {
			e.str(1, "t")
			e.str(2, "d")
			e.field(7, thrift.STRUCT, func() {
				e.structure(func() {
					e.columns(1, []Column{{"a", "int", "c"}})
					e.field(7, thrift.STRUCT, func() { e.structure(func() { e.str(2, "serde"); e.str(4, "description") }) })
					e.list(9, thrift.STRUCT, 1, func(int) { e.structure(func() { e.str(1, "a"); e.i32(2, 1) }) })
					e.field(11, thrift.STRUCT, func() {
						e.structure(func() {
							e.list(2, thrift.LIST, 1, func(int) {
								e.do(e.p.WriteListBegin(context.Background(), thrift.STRING, 1))
								e.rawString("x")
							})
						})
					})
				})
			})
			e.str(17, "catalog")
			e.boolean(15, true)
			e.field(30, thrift.I64, func() { e.do(e.p.WriteI64(context.Background(), 1<<40)) })
			e.field(31, thrift.DOUBLE, func() { e.do(e.p.WriteDouble(context.Background(), 1.5)) })
			e.stringMap(32, map[string]string{"k": "v"})
		})
	}
	bytes := func(body func(*encoder)) []byte {
		buf := thrift.NewTMemoryBuffer()
		e := &encoder{p: thrift.NewTBinaryProtocolConf(buf, nil)}
		body(e)
		if e.err != nil {
			t.Fatal(e.err)
		}
		return buf.Bytes()
	}
	read := func(b []byte) *Table {
		buf := thrift.NewTMemoryBuffer()
		buf.Write(b)
		d := &decoder{p: thrift.NewTBinaryProtocolConf(buf, nil)}
		v := new(Table)
		d.table(thrift.STRUCT, v)
		if d.err != nil {
			t.Fatal(d.err)
		}
		return v
	}
	table := read(bytes(write))
	if !table.Storage.Sorted() || table.Storage.SerDe != "serde" {
		t.Fatalf("read %+v", table)
	}
	field := bytes(func(e *encoder) { e.table(1, table) })
	back := read(field[3:]) // behind the field's type and number
	if !reflect.DeepEqual(table.extras, back.extras) || len(table.extras) != 5 ||
		!reflect.DeepEqual(table.Storage.extras, back.Storage.extras) || len(table.Storage.extras) != 1 ||
		!reflect.DeepEqual(table.Storage.serdeExtras, back.Storage.serdeExtras) || !reflect.DeepEqual(table.Storage.sort, back.Storage.sort) {
		t.Errorf("written back\n%+v\nof\n%+v", back, table)
	}
}

func TestParseURIs(t *testing.T) {
	got, err := ParseURIs("thrift://a:9083, thrift://b:1/")
	if err != nil || strings.Join(got, " ") != "a:9083 b:1" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"", "a:9083", "thrift://a", "thrift://:1", "http://a:1"} {
		if _, err := ParseURIs(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// TestCloseEndsACallUnderWay: whoever closes does not wait for the server.
func TestCloseEndsACallUnderWay(t *testing.T) {
	asked := make(chan struct{})
	var once sync.Once
	s := serve(t, func(_ string, _ []extra, r *reply) {
		once.Do(func() { close(asked) })
		r.hold = true
	})
	c := New(Options{Addresses: []string{s.address()}, Connections: 1})
	got := make(chan error, 1)
	go func() {
		_, err := c.Table(context.Background(), "default", "t")
		got <- err
	}()
	<-asked
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	var ce *CallError
	if err := <-got; !errors.As(err, &ce) || !ce.Sent || !errors.Is(err, errClosed) {
		t.Errorf("the call ended with %v", err)
	}
	if _, err := c.Table(context.Background(), "default", "t"); !errors.Is(err, errClosed) {
		t.Errorf("a call afterwards: %v", err)
	}
}

// TestHungMetastoreIsNotAskedAgain: after a call without an answer the next address is
// asked, and connections that idle at the one that hangs are given up.
func TestHungMetastoreIsNotAskedAgain(t *testing.T) {
	var hangs atomic.Bool
	both := make(chan struct{}, 2)
	first := serve(t, func(_ string, _ []extra, r *reply) {
		if hangs.Load() {
			r.hold = true
			return
		}
		// The calls are under way at once, so that there are two connections.
		both <- struct{}{}
		for len(both) < cap(both) {
			runtime.Gosched()
		}
		r.result = tableReply
	})
	second := serve(t, func(_ string, _ []extra, r *reply) { r.result = tableReply })
	c := client(t, Options{Addresses: []string{first.address(), second.address()}, CallTimeout: 2 * time.Second, Connections: 2})
	var done sync.WaitGroup
	for range 2 {
		done.Go(func() {
			if _, err := c.Table(context.Background(), "d", "t"); err != nil {
				t.Error(err)
			}
		})
	}
	done.Wait()
	hangs.Store(true)
	var ce *CallError
	if _, err := c.Table(context.Background(), "d", "t"); !errors.As(err, &ce) || ce.Address != first.address() {
		t.Fatalf("got %v, want a call without an answer", err)
	}
	for range 3 {
		if _, err := c.Table(context.Background(), "d", "t"); err != nil {
			t.Error(err)
		}
	}
	if a, b := len(first.seen()), len(second.seen()); a != 3 || b != 3 {
		t.Errorf("the first metastore has had %d calls, the second %d, want 3 each", a, b)
	}
}

// TestFaultOfARightThatIsMissing: it says for whom it was called, and is not waited for.
func TestFaultOfARightThatIsMissing(t *testing.T) {
	for message, denied := range map[string]bool{
		"java.security.AccessControlException: Permission denied: user=etl, access=WRITE":                  true,
		"Got exception: org.apache.hadoop.security.AccessControlException x":                               true,
		"AccessControlException Permission denied: user=etl\n\tat a.B.c(B.java:1)\n\tat d.E.f(E.java:2)\n": true,
		"database is locked": false,
	} {
		s := serve(t, func(_ string, _ []extra, r *reply) {
			r.result = func(e *encoder) {
				e.field(2, thrift.STRUCT, func() { e.structure(func() { e.str(1, message) }) })
			}
		})
		c := client(t, Options{Addresses: []string{s.address()}, Denied: "ask who may"})
		_, err := c.Database(context.Background(), "d")
		var f *Fault
		if !errors.As(err, &f) || f.Cause != ErrMeta || f.Retryable() == denied || strings.Contains(err.Error(), "(ask who may)") != denied || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, retryable %t", message, err, f != nil && f.Retryable())
		}
	}
}

// TestGivenUpWhileConnecting: an address that one call gives up while another connects to it
// is not the first one again.
func TestGivenUpWhileConnecting(t *testing.T) {
	answer := func(_ string, _ []extra, r *reply) { r.result = tableReply }
	first, second := serve(t, answer), serve(t, answer)
	var c *Client
	c = client(t, Options{Addresses: []string{first.address(), second.address()}, Dial: func(ctx context.Context, address string) (net.Conn, error) {
		if address == first.address() {
			c.failed(address)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}})
	for range 3 {
		if _, err := c.Table(context.Background(), "d", "t"); err != nil {
			t.Fatal(err)
		}
	}
	// A connection each call: the slots are used in turn.
	if a, b := len(first.seen()), len(second.seen()); a != 1 || b != 2 {
		t.Errorf("the first metastore has had %d calls, the second %d, want 1 and 2", a, b)
	}
}
