package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/millrace/millrace/runtime/connector"
)

// SocketName is the socket's name in the data directory.
const SocketName = "control.sock"

// maxRequest bounds the JSON part of a request: SQL files are small.
const maxRequest = 64 << 20

// Server serves an API on a data directory's socket.
type Server struct {
	http     *http.Server
	listener net.Listener
	done     chan struct{}
	path     string
}

// Serve starts serving api on DIR/control.sock and returns at once. Whoever
// holds the directory's lock may call it: a socket that is there is a dead
// owner's and is removed.
func Serve(dir string, api API) (*Server, error) {
	path := filepath.Join(dir, SocketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing a dead owner's socket: %w", err)
	}
	var l net.Listener
	err := withShortPath(dir, func(short string) error {
		var err error
		l, err = net.Listen("unix", filepath.Join(short, SocketName))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listening on %s: %w", path, err)
	}
	// The path that was listened on may be a /proc one; Close removes the file itself.
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("protecting %s: %w", path, err)
	}
	s := &Server{listener: l, done: make(chan struct{}), path: path,
		http: &http.Server{Handler: handler(api), ReadHeaderTimeout: 10 * time.Second}}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(l) // ends with ErrServerClosed
	}()
	return s, nil
}

// Close stops serving: calls under way may end until ctx does.
func (s *Server) Close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.done
	if rm := os.Remove(s.path); rm != nil && !errors.Is(rm, os.ErrNotExist) {
		err = errors.Join(err, rm)
	}
	return err
}

// socketPathMax is what fits sockaddr_un with its closing zero.
const socketPathMax = 107

// withShortPath calls f with a path of dir that is short enough for a socket
// in it: dir itself, or one through /proc/self/fd.
func withShortPath(dir string, f func(dir string) error) error {
	if len(filepath.Join(dir, SocketName)) <= socketPathMax {
		return f(dir)
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d", d.Fd()))
}

// handler maps the calls to paths.
func handler(api API) http.Handler {
	mux := http.NewServeMux()
	unary(mux, "/v1/info", func(ctx context.Context, _ struct{}) (Info, error) { return api.Info(ctx) })
	unary(mux, "/v1/topics", func(ctx context.Context, _ struct{}) ([]Topic, error) { return api.Topics(ctx) })
	unary(mux, "/v1/topic", api.Topic)
	unary(mux, "/v1/topic/create", api.CreateTopic)
	unary(mux, "/v1/topic/delete", func(ctx context.Context, r DeleteTopic) (struct{}, error) {
		return struct{}{}, api.DeleteTopic(ctx, r)
	})
	unary(mux, "/v1/dead/replay", api.Replay)
	unary(mux, "/v1/ledger", api.Ledger)
	unary(mux, "/v1/jobs", func(ctx context.Context, _ struct{}) ([]Job, error) { return api.Jobs(ctx) })
	unary(mux, "/v1/job/roll", api.Roll)
	unary(mux, "/v1/lane/resume", func(ctx context.Context, r ResumeLane) (struct{}, error) {
		return struct{}{}, api.ResumeLane(ctx, r)
	})
	unary(mux, "/v1/homes", func(ctx context.Context, _ struct{}) ([]TableHome, error) { return api.Homes(ctx) })
	unary(mux, "/v1/table/switch", api.SwitchTable)
	groupPaths(mux, api)
	accessCalls(mux, api)
	mux.HandleFunc("POST /v1/produce", func(w http.ResponseWriter, r *http.Request) { serveProduce(api, w, r) })
	stream(mux, "/v1/consume", func(ctx context.Context, req Consume, out *frameWriter) error {
		var buf []byte
		return api.Consume(ctx, req, func(rec *Record) error {
			buf = appendRecord(buf[:0], rec)
			return out.write(buf)
		})
	})
	stream(mux, "/v1/dead", func(ctx context.Context, req DeadQuery, out *frameWriter) error {
		return api.Dead(ctx, req, func(rec *DeadRecord) error {
			b, err := json.Marshal(rec)
			if err != nil {
				return err
			}
			return out.write(b)
		})
	})
	stream(mux, "/v1/query", func(ctx context.Context, req Query, out *frameWriter) error {
		return api.Query(ctx, req, queryFrames{out})
	})
	stream(mux, "/v1/preview", func(ctx context.Context, req Preview, out *frameWriter) error {
		return api.Preview(ctx, req, queryFrames{out})
	})
	return mux
}

// accessCalls are those of Access.
func accessCalls(mux *http.ServeMux, api Access) {
	unary(mux, "/v1/users", func(ctx context.Context, _ struct{}) ([]User, error) { return api.Users(ctx) })
	unary(mux, "/v1/user/set", api.SetUser)
	unary(mux, "/v1/user/remove", func(ctx context.Context, r RemoveUser) (struct{}, error) {
		return struct{}{}, api.RemoveUser(ctx, r)
	})
	unary(mux, "/v1/acls", api.ACLs)
	unary(mux, "/v1/acls/add", func(ctx context.Context, r []ACL) (struct{}, error) { return struct{}{}, api.AddACLs(ctx, r) })
	unary(mux, "/v1/acls/remove", api.RemoveACLs)
	unary(mux, "/v1/quotas", func(ctx context.Context, _ struct{}) ([]Quota, error) { return api.Quotas(ctx) })
	unary(mux, "/v1/quota/set", func(ctx context.Context, r SetQuota) (struct{}, error) { return struct{}{}, api.SetQuota(ctx, r) })
}

// unary serves a call of one request and one answer.
func unary[Req, Resp any](mux *http.ServeMux, path string, call func(context.Context, Req) (Resp, error)) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var req Req
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
			writeError(w, &Error{Kind: "input", Message: "malformed request: " + err.Error()})
			return
		}
		resp, err := call(r.Context(), req)
		if err != nil {
			writeError(w, classify(err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(resp) // the client sees a broken answer
	})
}

// stream serves a call of one request that is answered with frames.
func stream[Req any](mux *http.ServeMux, path string, call func(context.Context, Req, *frameWriter) error) {
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		var req Req
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&req); err != nil {
			writeError(w, &Error{Kind: "input", Message: "malformed request: " + err.Error()})
			return
		}
		out := newFrameWriter(flushWriter{w})
		stop := flushNowAndThen(out)
		err := call(r.Context(), req, out)
		stop()
		t := trailer{}
		if err != nil {
			t.Error = classify(err)
		}
		_ = out.close(t) // the client sees a stream without its trailer
	})
}

// flushInterval is how long a record of a slow stream may wait.
const flushInterval = 200 * time.Millisecond

// flushNowAndThen flushes until the returned function is called.
func flushNowAndThen(out *frameWriter) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(flushInterval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = out.flush() // the error is sticky and comes with the next write
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}

// flushWriter sends what it is given at once: the frame writer in front of it buffers.
type flushWriter struct{ w http.ResponseWriter }

func (f flushWriter) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	if err == nil {
		err = http.NewResponseController(f.w).Flush()
	}
	return n, err
}

func serveProduce(api API, w http.ResponseWriter, r *http.Request) {
	in := newFrameReader(r.Body)
	done := false
	result, err := api.Produce(r.Context(), r.URL.Query().Get("topic"), func(rec *Record) error {
		if done {
			return io.EOF
		}
		b, err := in.next()
		if err != nil {
			return err
		}
		if b == nil {
			done = true
			return io.EOF
		}
		return decodeRecord(b, rec)
	})
	if err != nil {
		writeError(w, classify(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(result) // the client sees a broken answer
}

// classify makes an error fit to cross the socket.
func classify(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var path *os.PathError
	var errno syscall.Errno
	var away *connector.AwayError
	if errors.As(err, &path) || errors.As(err, &errno) || errors.As(err, &away) {
		return &Error{Kind: "environment", Message: err.Error()}
	}
	return &Error{Kind: "failed", Message: err.Error()}
}

func writeError(w http.ResponseWriter, e *Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(e) // the client sees a broken answer
}

// queryFrames sends a query's results: the first byte says what a frame is.
type queryFrames struct{ out *frameWriter }

const (
	frameBegin = 'B'
	frameRow   = 'R'
	frameDone  = 'D'
)

func (q queryFrames) Begin(columns []Column) error {
	b, err := json.Marshal(columns)
	if err != nil {
		return err
	}
	return q.out.write([]byte{frameBegin}, b)
}

func (q queryFrames) Row(object json.RawMessage) error {
	return q.out.write([]byte{frameRow}, object)
}

func (q queryFrames) Done(message string) error {
	return q.out.write([]byte{frameDone}, []byte(message))
}
