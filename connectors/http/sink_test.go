package http

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/outbox"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// receiver takes each Idempotency-Key once and fails by script: a status, lose (takes
// the rows and answers nothing) or reset (takes nothing).
type receiver struct {
	t  testing.TB
	mu sync.Mutex
	// script is what becomes of the next requests.
	script []string
	// maxLines refuses larger requests with 413.
	maxLines int
	bodies   map[string]string
	order    []string
	ids      []int64
	headers  nethttp.Header
}

func (r *receiver) ServeHTTP(w nethttp.ResponseWriter, req *nethttp.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers = req.Header
	step := ""
	if len(r.script) > 0 {
		step, r.script = r.script[0], r.script[1:]
	}
	switch step {
	case "", "lose", "hang":
	case "deaf":
		r.waiting(req)
		return
	case "reset":
		panic(nethttp.ErrAbortHandler)
	default:
		var code int
		fmt.Sscan(step, &code)
		w.Header().Set("Location", "/elsewhere")
		nethttp.Error(w, "no", code)
		return
	}
	if n := bytes.Count(body, []byte("\n")); r.maxLines > 0 && n > r.maxLines {
		w.WriteHeader(nethttp.StatusRequestEntityTooLarge)
		return
	}
	key := req.Header.Get(idempotencyKey)
	if have, ok := r.bodies[key]; ok {
		if have != string(body) {
			r.t.Errorf("key %s came with other bytes", key)
		}
	} else {
		r.bodies[key] = string(body)
		r.order = append(r.order, key)
		r.take(body)
	}
	switch step {
	case "lose":
		panic(nethttp.ErrAbortHandler)
	case "hang":
		r.waiting(req)
	}
}

// waiting answers nothing until the client has gone. The caller holds mu.
func (r *receiver) waiting(req *nethttp.Request) {
	r.mu.Unlock()
	<-req.Context().Done()
	r.mu.Lock()
}

func (r *receiver) take(body []byte) {
	type row struct{ ID int64 }
	var rows []row
	if body[0] == '[' {
		if err := json.Unmarshal(body, &rows); err != nil {
			r.t.Errorf("%s: %v", body, err)
		}
	} else {
		for line := range bytes.Lines(body) {
			var x row
			if err := json.Unmarshal(line, &x); err != nil {
				r.t.Errorf("%s: %v", line, err)
			}
			rows = append(rows, x)
		}
	}
	for _, x := range rows {
		r.ids = append(r.ids, x.ID)
	}
}

// world is the suite's table before a receiver.
type world struct {
	*receiver
	conn *Connector
	url  string
	with map[string]string
}

func newWorld(t testing.TB, with map[string]string) *world {
	w := &world{receiver: &receiver{t: t, bodies: map[string]string{}}, conn: New(vfs.NewMem(), "/staging"), with: with}
	s := httptest.NewServer(w.receiver)
	t.Cleanup(s.Close)
	w.url = s.URL
	return w
}

// Shared says that jobs do not exclude each other.
func (w *world) Shared() {}

func (w *world) Open(ctx context.Context, o connector.Owner) (connector.Sink, error) {
	with := map[string]string{"connector": "http", "url": w.url}
	for k, v := range w.with {
		with[k] = v
	}
	v, errs := w.conn.Spec().Resolve(with)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return w.conn.OpenSink(ctx, &connector.Table{Name: "t", Columns: conntest.Columns(), Options: v, Zone: time.UTC}, o)
}

// sealTen opens the table and seals an artefact of 10 rows.
func (w *world) sealTen() (connector.Sink, []connector.Artifact) {
	w.t.Helper()
	ctx := context.Background()
	s, err := w.Open(ctx, conntest.OwnerOf(1, 1))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { s.Close() })
	id := connector.ArtifactID{Job: conntest.UUID(1), Epoch: 1}
	wr, err := s.OpenWriter(ctx, connector.Attempt{ID: id})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := wr.Write(conntest.Rows(0, 10), nil, 0); err != nil {
		w.t.Fatal(err)
	}
	as, err := wr.Seal(ctx, []connector.SealRequest{{Header: connector.Header{ID: id, Rows: 10}}})
	if err != nil {
		w.t.Fatal(err)
	}
	return s, as
}

func (w *world) Visible(testing.TB) []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]int64(nil), w.ids...)
}

func TestAcceptance(t *testing.T) {
	for _, body := range []string{bodyLines, bodyArray} {
		conntest.RunSink(t, func(t testing.TB) conntest.World { return newWorld(t, map[string]string{"body": body}) })
	}
}

// TestAnswers: what each answer makes of an artefact of 10 rows; each row arrives once
// by its key, whatever was lost.
func TestAnswers(t *testing.T) {
	for what, c := range map[string]struct {
		script   []string
		maxLines int
		tries    int
		stop     string
		requests int // of different keys
	}{
		"taken":              {tries: 1, requests: 1},
		"the answer is lost": {script: []string{"lose"}, tries: 2, requests: 1},
		"reset":              {script: []string{"reset", "reset"}, tries: 3, requests: 1},
		"busy":               {script: []string{"503", "429", "500"}, tries: 4, requests: 1},
		"too large":          {maxLines: 4, tries: 1, requests: 4},
		// The library itself sends again what was lost on a connection that had served before.
		"too large, a part is lost": {script: []string{"413", "lose"}, maxLines: 5, tries: 1, requests: 2},
		"bad request":               {script: []string{"400"}, tries: 2, stop: "400", requests: 1},
		"moved":                     {script: []string{"308"}, tries: 2, stop: "redirects are not followed", requests: 1},
	} {
		t.Run(what, func(t *testing.T) {
			ctx := context.Background()
			w := newWorld(t, map[string]string{"headers.Authorization": "Bearer x"})
			w.script, w.maxLines = c.script, c.maxLines
			s, as := w.sealTen()
			for i := range c.tries {
				err := s.Publish(ctx, as)[0]
				if (err == nil) != (i == c.tries-1) {
					t.Fatalf("try %d: %v", i, err)
				}
				var stop *outbox.StopError
				if err != nil && (errors.As(err, &stop) != (c.stop != "") || !strings.Contains(err.Error(), c.stop)) {
					t.Errorf("try %d: %v", i, err)
				}
			}
			if fmt.Sprint(w.Visible(t)) != "[0 1 2 3 4 5 6 7 8 9]" || len(w.order) != c.requests || w.order[0][:8] != as[0].Header.ID.String()[:8] {
				t.Errorf("rows %v by requests %v", w.Visible(t), w.order)
			}
			if w.headers.Get("Authorization") != "Bearer x" || w.headers.Get("Content-Type") != "application/x-ndjson" {
				t.Errorf("headers %v", w.headers)
			}
		})
	}
}

// TestReceiverHangs: a request that does not arrive, and an answer that does not come,
// end after 'request.timeout'; the same request is sent again.
func TestReceiverHangs(t *testing.T) {
	for _, step := range []string{"deaf", "hang"} {
		t.Run(step, func(t *testing.T) {
			w := newWorld(t, map[string]string{"request.timeout": "1 s"})
			w.script = []string{step}
			s, as := w.sealTen()
			if err := s.Publish(t.Context(), as)[0]; !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("the first try: %v", err)
			}
			w.publish(s, as)
		})
	}
}

// TestReceiverIsAway: rows wait for it.
func TestReceiverIsAway(t *testing.T) {
	w := newWorld(t, nil)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.url = "http://" + l.Addr().String()
	l.Close()
	s, as := w.sealTen()
	if err := s.Publish(t.Context(), as)[0]; !connector.IsAway(err) {
		t.Fatalf("without a receiver: %v", err)
	}
	if l, err = net.Listen("tcp4", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	back := &nethttp.Server{Handler: w.receiver}
	defer back.Close()
	go back.Serve(l)
	w.publish(s, as)
}

// publish tries as a lane does; each row is there once, by one key.
func (w *world) publish(s connector.Sink, as []connector.Artifact) {
	w.t.Helper()
	err := errors.New("not tried")
	for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); {
		err = s.Publish(context.Background(), as)[0]
	}
	if have := fmt.Sprint(w.Visible(w.t)); err != nil || have != "[0 1 2 3 4 5 6 7 8 9]" || len(w.order) != 1 {
		w.t.Errorf("%v: rows %s by requests %v", err, have, w.order)
	}
}

// TestTLS: the receiver's certificate is checked against the authority that is named,
// and the receiver gets the client's. Who has none is told which option says it.
func TestTLS(t *testing.T) {
	mine, stranger := conntest.NewCertificates(t), conntest.NewCertificates(t)
	good := map[string]string{"tls.ca-file": mine.CA, "tls.cert-file": mine.ClientCert, "tls.key-file": mine.ClientKey}
	for want, change := range map[string]map[string]string{
		"":                                   {},
		"authority of the server's":          {"tls.ca-file": stranger.CA},
		"'tls.cert-file' and 'tls.key-file'": {"tls.cert-file": stranger.ClientCert, "tls.key-file": stranger.ClientKey},
	} {
		t.Run(want, func(t *testing.T) {
			with := maps.Clone(good)
			maps.Copy(with, change)
			w := newWorld(t, with)
			server := httptest.NewUnstartedServer(w.receiver)
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.TLS = mine.Server.Clone()
			server.StartTLS()
			defer server.Close()
			w.url = server.URL
			s, as := w.sealTen()
			if want == "" {
				w.publish(s, as)
				return
			}
			// A server closes the connection behind its alert, which may be all that is seen.
			err := errors.New("not tried")
			for end := time.Now().Add(time.Minute); err != nil && !strings.Contains(err.Error(), want) && time.Now().Before(end); {
				err = s.Publish(t.Context(), as)[0]
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}

// TestOptions: what is given in vain, or is the sink's own, is refused when the job is
// checked.
func TestOptions(t *testing.T) {
	c := New(vfs.NewMem(), "")
	for _, x := range []struct {
		with map[string]string
		want string
	}{
		{map[string]string{"url": "https://h/p?q=1", "tls.ca-file": "/ca"}, ""},
		{map[string]string{"url": "http://h", "tls.ca-file": "/ca"}, "no effect without TLS"},
		{map[string]string{"url": "https://h", "tls.cert-file": "/c"}, "belong together"},
		{map[string]string{"url": "ftp://h"}, "https://host/path"},
		{map[string]string{"url": "https://u:p@h"}, "'headers.Authorization'"},
		{map[string]string{"url": "https://h", "headers.idempotency-key": "1"}, "the sink's own"},
	} {
		x.with["connector"] = "http"
		_, errs := c.Spec().Resolve(x.with)
		text := ""
		for _, e := range errs {
			text += e.Message
		}
		if x.want == "" && text != "" || !strings.Contains(text, x.want) {
			t.Errorf("%v: %q, want %q", x.with, text, x.want)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2024, 5, 1, 8, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{"": 0, "7": 7 * time.Second, "-1": 0, "100000000000": maxRetryAfter, "soon": 0,
		"Wed, 01 May 2024 08:00:30 GMT": 30 * time.Second, "Wed, 01 May 2024 07:00:00 GMT": 0} {
		if have := retryAfter(text, now); have != want {
			t.Errorf("%q: %v, want %v", text, have, want)
		}
	}
}
