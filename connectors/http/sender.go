package http

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	nethttp "net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/millrace/millrace/connectors/outbox"
	"github.com/millrace/millrace/connectors/tlsfiles"
)

const (
	idempotencyKey = "Idempotency-Key"
	// maxRetryAfter bounds how long an answer may make the next request wait.
	maxRetryAfter = 5 * time.Minute
)

// sender posts bodies to one URL. It is safe for concurrent use.
type sender struct {
	client  *nethttp.Client
	url     string
	array   bool
	request time.Duration
	headers map[string]string

	mu sync.Mutex
	// notBefore is when the receiver wants the next request.
	notBefore time.Time
}

func newSender(url string, array bool, request time.Duration, headers map[string]string, secure *tls.Config) *sender {
	t := nethttp.DefaultTransport.(*nethttp.Transport).Clone()
	t.TLSClientConfig = secure
	return &sender{url: url, array: array, request: request, headers: headers, client: &nethttp.Client{Transport: t,
		CheckRedirect: func(*nethttp.Request, []*nethttp.Request) error { return nethttp.ErrUseLastResponse }}}
}

// Close implements outbox.Sender.
func (s *sender) Close() error {
	s.client.CloseIdleConnections()
	return nil
}

// Send implements outbox.Sender.
func (s *sender) Send(ctx context.Context, _ outbox.Lane, m *outbox.Message) error {
	lines := bytes.SplitAfter(bytes.TrimSuffix(m.Body, []byte{'\n'}), []byte{'\n'})
	if int64(len(lines)) != m.Units {
		return fmt.Errorf("the sealed file of %s has %d lines instead of %d", m.ID, len(lines), m.Units)
	}
	return s.part(ctx, m.ID, lines, 0, len(lines))
}

var errTooLarge = errors.New("the receiver takes no request of this size (413)")

// part posts lines [from, to), in halves where they are too large at once.
func (s *sender) part(ctx context.Context, id string, lines [][]byte, from, to int) error {
	key := id
	if to-from < len(lines) {
		key += "-" + strconv.Itoa(from) + "-" + strconv.Itoa(to)
	}
	err := s.post(ctx, key, lines[from:to])
	if !errors.Is(err, errTooLarge) {
		return err
	}
	if to-from == 1 {
		return &outbox.StopError{Err: fmt.Errorf("one row of %d bytes: %w: raise the receiver's limit, then resume", len(lines[from]), err)}
	}
	half := from + (to-from)/2
	if err := s.part(ctx, id, lines, from, half); err != nil {
		return err
	}
	return s.part(ctx, id, lines, half, to)
}

func (s *sender) body(lines [][]byte) (body []byte, kind string) {
	if !s.array {
		return append(bytes.TrimSuffix(bytes.Join(lines, nil), []byte{'\n'}), '\n'), "application/x-ndjson"
	}
	body = append(body, '[')
	for i, l := range lines {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, bytes.TrimSuffix(l, []byte{'\n'})...)
	}
	return append(body, ']'), "application/json"
}

func (s *sender) post(ctx context.Context, key string, lines [][]byte) error {
	s.mu.Lock()
	pause := time.Until(s.notBefore)
	s.mu.Unlock()
	if err := wait(ctx, pause); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.request)
	defer cancel()
	body, kind := s.body(lines)
	req, err := nethttp.NewRequestWithContext(ctx, nethttp.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range s.headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set(idempotencyKey, key)
	resp, err := s.client.Do(req)
	if err != nil {
		return fmt.Errorf("posting: %w", tlsfiles.Explain(err))
	}
	defer resp.Body.Close()
	said, err := io.ReadAll(io.LimitReader(resp.Body, 200))
	return s.judge(resp, said, err)
}

// judge says what an answer means. Any 2xx is taken for all rows.
func (s *sender) judge(resp *nethttp.Response, said []byte, err error) error {
	code := resp.StatusCode
	answer := fmt.Errorf("the receiver answered %s %q", resp.Status, strings.TrimSpace(string(said)))
	switch {
	case code/100 == 2:
		return err
	case code == nethttp.StatusRequestEntityTooLarge:
		return errTooLarge
	case code == nethttp.StatusTooManyRequests || code == nethttp.StatusRequestTimeout || code == nethttp.StatusTooEarly || code/100 == 5:
		s.mu.Lock()
		s.notBefore = time.Now().Add(retryAfter(resp.Header.Get("Retry-After"), time.Now()))
		s.mu.Unlock()
		return answer
	case code/100 == 3:
		return &outbox.StopError{Err: fmt.Errorf("%w, to %s: name that place in '%s'; redirects are not followed", answer, resp.Header.Get("Location"), keyURL)}
	}
	return &outbox.StopError{Err: fmt.Errorf("%w: it will not take these rows as they are; mend the receiver or the table's options, then resume", answer)}
}

// retryAfter reads seconds or a date; what it cannot read is no wait.
func retryAfter(text string, now time.Time) time.Duration {
	var d time.Duration
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		d = time.Duration(min(n, int(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := nethttp.ParseTime(text); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), maxRetryAfter)
}
