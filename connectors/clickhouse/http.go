package clickhouse

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	chproto "github.com/ClickHouse/ch-go/proto"
	ch "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/millrace/millrace/connectors/tlsfiles"
	"github.com/millrace/millrace/runtime/batch"
)

// Over HTTP a block is the body of a request, or of an answer, in the form Native: the
// same bytes as on a native connection, without the driver.

// httpURL is a request's address on a server.
func (s *server) httpURL(host string, params url.Values) string {
	u := url.URL{Scheme: "http", Host: host, Path: "/", RawQuery: params.Encode()}
	if s.opts.addr.tls {
		u.Scheme = "https"
	}
	return u.String()
}

// post sends a request to the first server that answers. Any answer but 200 is an error.
func (s *server) post(ctx context.Context, params url.Values, body func() io.Reader, length int64) (*http.Response, error) {
	params.Set("database", s.opts.database)
	var errs []error
	for _, host := range s.opts.addr.hosts {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.httpURL(host, params), body())
		if err != nil {
			return nil, err
		}
		req.ContentLength = length
		req.Header.Set("X-ClickHouse-User", s.opts.user)
		if s.opts.password != "" {
			req.Header.Set("X-ClickHouse-Key", s.opts.password)
		}
		resp, err := s.web.Do(req)
		if err == nil && resp.StatusCode == http.StatusOK {
			return resp, nil
		}
		if err == nil {
			defer resp.Body.Close()
			return nil, answerError(resp)
		}
		// The address holds settings, which are the user's.
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		errs = append(errs, fmt.Errorf("asking %s: %w", host, tlsfiles.Explain(err)))
		if !unreachable(err) || ctx.Err() != nil || !refusedToConnect(err) {
			break
		}
	}
	return nil, errors.Join(errs...)
}

// answerError is the exception that an answer holds.
func answerError(resp *http.Response) error {
	const most = 64 << 10
	text, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return fmt.Errorf("reading the answer %s: %w", resp.Status, err)
	}
	code, err := strconv.ParseInt(resp.Header.Get("X-ClickHouse-Exception-Code"), 10, 32)
	if err != nil {
		return fmt.Errorf("the server answers %s: %s", resp.Status, brief(bytes.TrimSpace(text)))
	}
	return &ch.Exception{Code: int32(code), Message: string(bytes.TrimSpace(text))}
}

// httpBlocks is an answer in the form Native.
type httpBlocks struct {
	body     io.ReadCloser
	r        *chproto.Reader
	cancel   context.CancelFunc
	watch    *time.Timer
	patience time.Duration
}

func (s *server) queryHTTP(ctx context.Context, text string) (blocks, error) {
	ctx, cancel := context.WithCancel(ctx)
	h := &httpBlocks{cancel: cancel, watch: time.AfterFunc(s.opts.connect+s.opts.request, cancel), patience: s.opts.request}
	resp, err := s.post(ctx, url.Values{"default_format": {"Native"}}, func() io.Reader { return bytes.NewReader([]byte(text)) }, int64(len(text)))
	if err != nil {
		h.watch.Stop()
		cancel()
		return nil, err
	}
	h.body, h.r = resp.Body, chproto.NewReader(resp.Body)
	return h, nil
}

func (h *httpBlocks) next(cols []*readColumn, vecs []batch.Vec) (int, error) {
	h.watch.Reset(h.patience)
	for {
		rows, err := readBlock(h.r, cols, vecs)
		if err != nil || rows > 0 {
			return rows, err
		}
	}
}

func (h *httpBlocks) close() {
	h.watch.Stop()
	h.cancel()
	h.body.Close()
}

// insertHTTP sends a block in one INSERT. wrote is the number of rows that the server
// says it wrote; sent reports whether the request may have reached it.
func (s *server) insertHTTP(ctx context.Context, statement, query string, settings ch.Settings, b *sealedBlock) (wrote int64, sent bool, err error) {
	params := url.Values{"query": {statement + " FORMAT Native"}}
	if query != "" {
		params.Set("query_id", query)
	}
	for name, value := range settings {
		params.Set(name, fmt.Sprint(value))
	}
	// The summary is complete when the answer waits for the end.
	params.Set("wait_end_of_query", "1")
	parts, length := b.native()
	body := func() io.Reader {
		readers := make([]io.Reader, len(parts))
		for i, p := range parts {
			readers[i] = bytes.NewReader(p)
		}
		return io.MultiReader(readers...)
	}
	resp, err := s.post(ctx, params, body, length)
	if err != nil {
		return 0, !refusedToConnect(err), fmt.Errorf("sending the block: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, true, fmt.Errorf("reading the answer: %w", err)
	}
	var summary struct {
		Wrote string `json:"written_rows"`
	}
	if text := resp.Header.Get("X-ClickHouse-Summary"); text != "" {
		if err := json.Unmarshal([]byte(text), &summary); err != nil {
			return 0, true, fmt.Errorf("the summary of the INSERT: %w", err)
		}
		wrote, _ = strconv.ParseInt(summary.Wrote, 10, 64)
	}
	return wrote, true, nil
}

// native is the block in the form Native, and its length in bytes.
func (b *sealedBlock) native() (parts [][]byte, length int64) {
	var head chproto.Buffer
	head.PutUVarInt(uint64(len(b.columns)))
	head.PutUVarInt(uint64(b.head.rows))
	for i, c := range b.head.columns {
		head.PutString(c.name)
		head.PutString(c.typ)
		parts = append(parts, head.Buf, b.columns[i])
		length += int64(len(head.Buf) + len(b.columns[i]))
		head = chproto.Buffer{}
	}
	return parts, length
}
