package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
)

// ErrNoOwner is returned by Dial when nobody serves the directory.
var ErrNoOwner = errors.New("no process owns the data directory")

// Client is the API of another process.
type Client struct{ http *http.Client }

var _ API = (*Client)(nil)

// Dial connects to the owner of a data directory.
func Dial(ctx context.Context, dir string) (*Client, error) {
	dial := func(ctx context.Context) (c net.Conn, err error) {
		err = withShortPath(dir, func(short string) error {
			var d net.Dialer
			c, err = d.DialContext(ctx, "unix", filepath.Join(short, SocketName))
			return err
		})
		return c, err
	}
	probe, err := dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoOwner, err)
	}
	probe.Close()
	return &Client{http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
	}}}, nil
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) post(ctx context.Context, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://millrace"+path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("asking the owner of the data directory: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	e := &Error{Kind: "failed", Message: "the owner answered " + resp.Status}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, maxRequest)) // a cut answer keeps the status as the message
	if json.Unmarshal(b, e) != nil || e.Message == "" {
		e = &Error{Kind: "failed", Message: "the owner answered " + resp.Status}
	}
	return nil, e
}

func call[Resp any](ctx context.Context, c *Client, path string, req any) (Resp, error) {
	var out Resp
	b, err := json.Marshal(req)
	if err != nil {
		return out, err
	}
	resp, err := c.post(ctx, path, bytes.NewReader(b))
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("%w: %w", errBroken, err)
	}
	return out, nil
}

func (c *Client) frames(ctx context.Context, path string, req any, f func([]byte) error) error {
	b, err := json.Marshal(req)
	if err != nil {
		return err
	}
	resp, err := c.post(ctx, path, bytes.NewReader(b))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	in := newFrameReader(resp.Body)
	for {
		frame, err := in.next()
		if err != nil {
			return err
		}
		if frame == nil {
			break
		}
		if err := f(frame); err != nil {
			return err
		}
	}
	t, err := in.trailer()
	if err != nil {
		return err
	}
	if t.Error != nil {
		return t.Error
	}
	return nil
}

// Info implements API.
func (c *Client) Info(ctx context.Context) (Info, error) {
	return call[Info](ctx, c, "/v1/info", struct{}{})
}

// Topics implements API.
func (c *Client) Topics(ctx context.Context) ([]Topic, error) {
	return call[[]Topic](ctx, c, "/v1/topics", struct{}{})
}

// Topic implements API.
func (c *Client) Topic(ctx context.Context, name string) (Topic, error) {
	return call[Topic](ctx, c, "/v1/topic", name)
}

// CreateTopic implements API.
func (c *Client) CreateTopic(ctx context.Context, req CreateTopic) (Topic, error) {
	return call[Topic](ctx, c, "/v1/topic/create", req)
}

// DeleteTopic implements API.
func (c *Client) DeleteTopic(ctx context.Context, req DeleteTopic) error {
	_, err := call[struct{}](ctx, c, "/v1/topic/delete", req)
	return err
}

// Produce implements API.
func (c *Client) Produce(ctx context.Context, topic string, next func(*Record) error) (Produced, error) {
	var out Produced
	pr, pw := io.Pipe()
	// What the pipe says when the other side has gone is no error of the input.
	var source error
	done := make(chan struct{})
	go func() {
		defer close(done)
		pw.CloseWithError(writeRecords(pw, func(r *Record) error {
			source = next(r)
			return source
		}))
	}()
	resp, err := c.post(ctx, "/v1/produce?topic="+url.QueryEscape(topic), pr)
	pr.CloseWithError(errBroken) // an answer before the end: stop reading the input
	if <-done; source != nil && !errors.Is(source, io.EOF) {
		// What the caller's own input said is the cause.
		if err == nil {
			resp.Body.Close()
		}
		return out, source
	}
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("%w: %w", errBroken, err)
	}
	return out, nil
}

func writeRecords(w io.Writer, next func(*Record) error) error {
	out := newFrameWriter(w)
	var rec Record
	var buf []byte
	for {
		err := next(&rec)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		buf = appendRecord(buf[:0], &rec)
		if err := out.write(buf); err != nil {
			return err
		}
	}
	if err := out.write(); err != nil {
		return err
	}
	return out.flush()
}

// Consume implements API.
func (c *Client) Consume(ctx context.Context, req Consume, f func(*Record) error) error {
	var rec Record
	return c.frames(ctx, "/v1/consume", req, func(b []byte) error {
		if err := decodeRecord(b, &rec); err != nil {
			return err
		}
		return f(&rec)
	})
}

// Dead implements API.
func (c *Client) Dead(ctx context.Context, req DeadQuery, f func(*DeadRecord) error) error {
	return c.frames(ctx, "/v1/dead", req, func(b []byte) error {
		var rec DeadRecord
		if err := json.Unmarshal(b, &rec); err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		return f(&rec)
	})
}

// Replay implements API.
func (c *Client) Replay(ctx context.Context, req Replay) (Replayed, error) {
	return call[Replayed](ctx, c, "/v1/dead/replay", req)
}

// Ledger implements API.
func (c *Client) Ledger(ctx context.Context, table string) ([]TableLedger, error) {
	return call[[]TableLedger](ctx, c, "/v1/ledger", table)
}

// Query implements API.
func (c *Client) Query(ctx context.Context, req Query, f QueryResult) error {
	return c.results(ctx, "/v1/query", req, f)
}

// Preview implements API.
func (c *Client) Preview(ctx context.Context, req Preview, f QueryResult) error {
	return c.results(ctx, "/v1/preview", req, f)
}

func (c *Client) results(ctx context.Context, path string, req any, f QueryResult) error {
	return c.frames(ctx, path, req, func(b []byte) error {
		switch b[0] {
		case frameBegin:
			var cols []Column
			if err := json.Unmarshal(b[1:], &cols); err != nil {
				return fmt.Errorf("%w: %w", errBroken, err)
			}
			return f.Begin(cols)
		case frameRow:
			return f.Row(b[1:])
		case frameDone:
			return f.Done(string(b[1:]))
		}
		return fmt.Errorf("%w: frame %q", errBroken, b[0])
	})
}

// Jobs implements API.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	return call[[]Job](ctx, c, "/v1/jobs", struct{}{})
}

// Roll implements API.
func (c *Client) Roll(ctx context.Context, job string) (Rolled, error) {
	return call[Rolled](ctx, c, "/v1/job/roll", job)
}

// ResumeLane implements API.
func (c *Client) ResumeLane(ctx context.Context, req ResumeLane) error {
	_, err := call[struct{}](ctx, c, "/v1/lane/resume", req)
	return err
}

// Homes implements API.
func (c *Client) Homes(ctx context.Context) ([]TableHome, error) {
	return call[[]TableHome](ctx, c, "/v1/homes", struct{}{})
}

// SwitchTable implements API.
func (c *Client) SwitchTable(ctx context.Context, req SwitchTable) (Switched, error) {
	return call[Switched](ctx, c, "/v1/table/switch", req)
}
