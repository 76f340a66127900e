package http

import (
	"context"
	_ "embed" // the page
	"fmt"
	nethttp "net/http"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/outbox"
	"github.com/millrace/millrace/connectors/tlsfiles"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

//go:embed page.md
var page string

// Option keys.
const (
	keyURL        = "url"
	keyBody       = "body"
	keyHeaders    = "headers.*"
	keyFlushBytes = "sink.buffer-flush.max-bytes"
	keyFlushAge   = "sink.buffer-flush.interval"
	keyRequest    = "request.timeout"
)

const (
	bodyLines = "ndjson"
	bodyArray = "array"
)

// Connector is the connector `http`. It has no state besides its parts.
type Connector struct {
	fs      vfs.FS
	staging string
	spec    connector.Spec
}

// New makes the connector. staging is the directory, of the data directory, in
// which sealed rows lie until the receiver has them; "" serves for checking files
// only.
func New(fsys vfs.FS, staging string) *Connector {
	return &Connector{fs: fsys, staging: staging, spec: connector.Spec{
		Name:    "http",
		Summary: "Rows as JSON in POST requests to a webhook.",
		Doc:     strings.TrimSpace(page),
		Sink:    true,
		Options: append([]connector.Option{
			{Key: keyURL, Type: connector.OptString, Required: true, Check: checkURL, Doc: "Where requests go: `http://` or `https://`."},
			{Key: keyBody, Type: connector.OptEnum, Enum: []string{bodyLines, bodyArray}, Default: bodyLines,
				Doc: "`ndjson`: a JSON object a line; `array`: one JSON array of objects."},
			{Key: keyHeaders, Type: connector.OptString, Secret: true, Doc: "Headers of each request, e.g. `headers.Authorization`. Their values are masked."},
			{Key: keyFlushBytes, Type: connector.OptBytes, Default: "1MB", Doc: "A request is sent when its rows have this size."},
			{Key: keyFlushAge, Type: connector.OptDuration, Default: "1 s", Doc: "A request is sent at this age."},
			{Key: keyRequest, Type: connector.OptDuration, Default: "30 s", Doc: "How long one request may take before it is sent again."},
		}, tlsfiles.Options()...),
		Guarantee: "At least once: a request without an answer is sent again, the same bytes under the same `Idempotency-Key`, by which a receiver takes each artefact once.",
		Validate: func(v connector.Values) error {
			for name := range v.Family(strings.TrimSuffix(keyHeaders, "*")) {
				switch nethttp.CanonicalHeaderKey(name) {
				case idempotencyKey, "Content-Type", "Content-Length", "Host":
					return &connector.OptionError{Key: "headers." + name, Message: "header " + name + " is the sink's own"}
				}
			}
			return tlsfiles.Validate(v, strings.HasPrefix(strings.ToLower(v.String(keyURL)), "https://"), "https:// in '"+keyURL+"'")
		},
	}}
}

// Spec implements connector.Connector.
func (c *Connector) Spec() *connector.Spec { return &c.spec }

func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("it is not of the form https://host/path")
	case u.User != nil:
		return fmt.Errorf("a user in the URL is not taken: use 'headers.Authorization'")
	}
	return nil
}

// OpenSink implements connector.SinkConnector. Nothing is sent yet.
func (c *Connector) OpenSink(_ context.Context, t *connector.Table, o connector.Owner) (connector.Sink, error) {
	cfg := format.EncoderConfig{}
	nested := false
	for i, col := range t.Columns {
		cfg.Fields, cfg.Columns = append(cfg.Fields, col.Field), append(cfg.Columns, i)
		nested = nested || len(col.Type.Fields) > 0 || col.Type.Elem != nil
	}
	json, err := jsonfmt.NewEncoder(cfg)
	if err != nil {
		return nil, err
	}
	target := t.Options.String(keyURL)
	place, _, _ := strings.Cut(target, "?")
	secure, err := tlsfiles.Of(t.Options).Config()
	if err != nil {
		return nil, err
	}
	s := newSender(target, t.Options.String(keyBody) == bodyArray, t.Options.Duration(keyRequest), t.Options.Family(strings.TrimSuffix(keyHeaders, "*")), secure)
	return outbox.Open(outbox.Config{FS: c.fs, Root: c.staging, Kind: c.spec.Name, Table: t, Owner: o, Location: place,
		Roll:       connector.RollPolicy{Bytes: t.Options.Bytes(keyFlushBytes), Age: t.Options.Duration(keyFlushAge)},
		Sender:     s,
		NewEncoder: func() (outbox.Encoder, error) { return &encoder{json: json, nested: nested}, nil },
	})
}

// encoder writes rows as lines. It belongs to one writer.
type encoder struct {
	json    *jsonfmt.Encoder
	nested  bool
	scratch []byte
}

// Check implements outbox.Encoder: only a map can fail to be JSON.
func (e *encoder) Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError {
	if !e.nested {
		return bad
	}
	_ = sel.Each(b.Len, func(row int) (err error) { // the callback returns no error
		if e.scratch, err = e.json.AppendRow(e.scratch[:0], b, row); err != nil {
			bad = append(bad, batch.ValueError{Row: int32(row), Code: batch.CodeSinkRefused, Message: err.Error()})
		}
		return nil
	})
	return bad
}

// Append implements outbox.Encoder.
func (e *encoder) Append(body []byte, b *batch.Batch, row int) ([]byte, int64, error) {
	body, err := e.json.AppendRow(body, b, row)
	if err != nil {
		return body, 0, err
	}
	return append(body, '\n'), 1, nil
}

// wait waits for d, or for the end of ctx.
func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
