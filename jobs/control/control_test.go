package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// fake is an API with one topic in memory.
type fake struct {
	API
	records []Record
	live    chan struct{} // closed when the consumer has seen the first record
}

func (f *fake) Info(context.Context) (Info, error) { return Info{PID: 42, Command: "run"}, nil }

func (f *fake) Topic(_ context.Context, name string) (Topic, error) {
	if name != "clicks" {
		return Topic{}, &Error{Kind: "not_found", Message: "no topic " + name, Hint: "clicks"}
	}
	return Topic{Name: name, Partitions: []Partition{{Partition: 1, Latest: 1 << 60}}}, nil
}

func (f *fake) Produce(_ context.Context, _ string, next func(*Record) error) (Produced, error) {
	var p Produced
	for {
		var r Record
		err := next(&r)
		if errors.Is(err, io.EOF) {
			return p, nil
		}
		if err != nil {
			return p, err
		}
		if string(r.Value) == "refuse" {
			return p, &Error{Kind: "input", Message: "refused"}
		}
		r.Key, r.Value = clone(r.Key), clone(r.Value)
		hs := r.Headers
		r.Headers = nil
		for _, h := range hs {
			r.Headers = append(r.Headers, Header{h.Key, clone(h.Value)})
		}
		f.records = append(f.records, r)
		p.Records++
		p.Bytes += int64(len(r.Value))
	}
}

func clone(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append([]byte{}, b...)
}

func (f *fake) Consume(ctx context.Context, req Consume, emit func(*Record) error) error {
	if req.Range == "fail" {
		return &Error{Kind: "input", Message: "bad range"}
	}
	for i := range f.records {
		if err := emit(&f.records[i]); err != nil {
			return err
		}
	}
	if req.Range == "start" {
		// A stream without an end: the record must arrive although nothing
		// follows it.
		select {
		case <-f.live:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (f *fake) Query(_ context.Context, q Query, out QueryResult) error {
	if err := out.Begin([]Column{{"a", "INT"}}); err != nil {
		return err
	}
	if err := out.Row(json.RawMessage(`{"a":1}`)); err != nil {
		return err
	}
	if err := out.Done("1 row"); err != nil {
		return err
	}
	return errors.New("second statement failed")
}

func start(t *testing.T, dir string, api API) *Client {
	t.Helper()
	s, err := Serve(dir, api)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(dir, SocketName)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is still there: %v", err)
		}
	})
	c, err := Dial(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestCalls(t *testing.T) {
	ctx := context.Background()
	c := start(t, t.TempDir(), &fake{})
	if info, err := c.Info(ctx); err != nil || info.PID != 42 {
		t.Errorf("Info: %+v, %v", info, err)
	}
	if topic, err := c.Topic(ctx, "clicks"); err != nil || topic.Partitions[0].Latest != 1<<60 {
		t.Errorf("Topic: %+v, %v", topic, err)
	}
	_, err := c.Topic(ctx, "clacks")
	var e *Error
	if !errors.As(err, &e) || e.Kind != "not_found" || e.Hint != "clicks" {
		t.Errorf("Topic of another name: %v", err)
	}
}

func TestRecordsThereAndBack(t *testing.T) {
	ctx := context.Background()
	c := start(t, t.TempDir(), &fake{})
	sent := []Record{
		{AnyPartition: true, Value: []byte("a")},
		{Partition: 2, Key: []byte{}, Value: nil, TimestampMillis: -5},
		{Partition: 1, Key: []byte("k"), Value: []byte(strings.Repeat("x", 1<<20)), Headers: []Header{{"h", []byte("v")}, {"e", nil}}},
	}
	i := 0
	p, err := c.Produce(ctx, "clicks", func(r *Record) error {
		if i == len(sent) {
			return io.EOF
		}
		*r = sent[i]
		i++
		return nil
	})
	if err != nil || p.Records != 3 || p.Bytes != 1+1<<20 {
		t.Fatalf("Produce: %+v, %v", p, err)
	}
	sent[2].Headers[1].Value = []byte{} // a null header value is an empty one
	var got []Record
	err = c.Consume(ctx, Consume{Topic: "clicks"}, func(r *Record) error {
		x := *r
		x.Key, x.Value = clone(r.Key), clone(r.Value)
		x.Headers = nil
		for _, h := range r.Headers {
			x.Headers = append(x.Headers, Header{h.Key, clone(h.Value)})
		}
		got = append(got, x)
		return nil
	})
	if err != nil || !reflect.DeepEqual(got, sent) {
		t.Errorf("Consume: %v\n%+v\nwant\n%+v", err, got, sent)
	}
}

func TestErrorsOfStreams(t *testing.T) {
	ctx := context.Background()
	c := start(t, t.TempDir(), &fake{})
	var e *Error
	if err := c.Consume(ctx, Consume{Range: "fail"}, nil); !errors.As(err, &e) || e.Kind != "input" {
		t.Errorf("the owner's error: %v", err)
	}
	// The caller's own input fails in the middle.
	own := fmt.Errorf("line 7: no JSON")
	n := 0
	if _, err := c.Produce(ctx, "clicks", func(r *Record) error {
		if n++; n > 2 {
			return own
		}
		*r = Record{Value: []byte("v")}
		return nil
	}); !errors.Is(err, own) {
		t.Errorf("the input's error: %v", err)
	}
	// The owner refuses while records are still coming.
	if _, err := c.Produce(ctx, "clicks", func(r *Record) error {
		*r = Record{Value: []byte("refuse")}
		return nil
	}); !errors.As(err, &e) || e.Message != "refused" {
		t.Errorf("a refusal: %v", err)
	}
	// The reader stops.
	stop := errors.New("enough")
	if _, err := c.Produce(ctx, "clicks", one("v")); err != nil {
		t.Fatal(err)
	}
	if err := c.Consume(ctx, Consume{}, func(*Record) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the reader's error: %v", err)
	}
}

func one(value string) func(*Record) error {
	sent := false
	return func(r *Record) error {
		if sent {
			return io.EOF
		}
		sent = true
		*r = Record{Value: []byte(value)}
		return nil
	}
}

func TestSlowStreamArrives(t *testing.T) {
	ctx := context.Background()
	f := &fake{live: make(chan struct{})}
	c := start(t, t.TempDir(), f)
	if _, err := c.Produce(ctx, "clicks", one("v")); err != nil {
		t.Fatal(err)
	}
	if err := c.Consume(ctx, Consume{Range: "start"}, func(*Record) error {
		close(f.live)
		return nil
	}); err != nil {
		t.Error(err)
	}
}

type collected struct{ log []string }

func (c *collected) Begin(cols []Column) error {
	c.log = append(c.log, cols[0].Name+" "+cols[0].Type)
	return nil
}
func (c *collected) Row(o json.RawMessage) error {
	c.log = append(c.log, string(o))
	return nil
}
func (c *collected) Done(m string) error { c.log = append(c.log, m); return nil }

func TestQuery(t *testing.T) {
	c := start(t, t.TempDir(), &fake{})
	var got collected
	err := c.Query(context.Background(), Query{}, &got)
	if want := []string{"a INT", `{"a":1}`, "1 row"}; !reflect.DeepEqual(got.log, want) {
		t.Errorf("got %q, want %q", got.log, want)
	}
	if err == nil || err.Error() != "second statement failed" {
		t.Errorf("the error of the second statement: %v", err)
	}
}

func TestLongPaths(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long-folder-name/", 12))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := start(t, dir, &fake{})
	if _, err := c.Info(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestDialWithoutOwner(t *testing.T) {
	dir := t.TempDir()
	if _, err := Dial(context.Background(), dir); !errors.Is(err, ErrNoOwner) {
		t.Errorf("nothing there: %v", err)
	}
	// The socket of an owner that was killed.
	s, err := Serve(dir, &fake{})
	if err != nil {
		t.Fatal(err)
	}
	s.http.Close()
	<-s.done
	if _, err := Dial(context.Background(), dir); !errors.Is(err, ErrNoOwner) {
		t.Errorf("a dead socket: %v", err)
	}
	// A new owner takes the name.
	start(t, dir, &fake{})
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(appendRecord(nil, &Record{Key: []byte("k"), Value: []byte("v"), Headers: []Header{{"a", []byte("b")}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r, again Record
		if decodeRecord(b, &r) != nil {
			return
		}
		if err := decodeRecord(appendRecord(nil, &r), &again); err != nil {
			t.Fatal(err)
		}
	})
}
