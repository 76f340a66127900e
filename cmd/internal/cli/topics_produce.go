package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/jobs/control"
)

// maxLine bounds one input line; a record cannot be larger anyway.
const maxLine = 64 << 20

func topicsProduce(e *Env) *cobra.Command {
	var format, file string
	var partitions int
	cmd := &cobra.Command{
		Use:   "produce TOPIC",
		Short: "append records from stdin, durable when the command ends",
		Long: `Appends records read from stdin to a topic and returns when all of them are
durable. A topic that is not there is made.

  -i jsonl          each line is a value, as it is; empty lines are passed over
  -i json-envelope  each line is {"key","value","value_base64","headers","timestamp","partition"},
                    what 'topics consume -o jsonl' prints; timestamp in ms since 1970`,
		Example: `  millrace topics produce clicks -i jsonl < clicks.jsonl
  echo '{"key":"ann","value":{"item":"shoes"}}' | millrace topics produce clicks -i json-envelope`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			in := e.Stdin
			name := "stdin"
			if file != "" {
				f, err := os.Open(file)
				if err != nil {
					return exitcode.With(exitcode.Environment, err)
				}
				defer f.Close()
				in, name = f, file
			}
			lines := &lineReader{r: bufio.NewReaderSize(in, 1<<20), name: name}
			var next func(*control.Record) error
			switch format {
			case "jsonl":
				next = lines.value
			case "json-envelope":
				next = lines.envelope
			default:
				return usage("-i %s: want jsonl or json-envelope", format)
			}
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				if err := ensureTopic(ctx, e, api, args[0], partitions); err != nil {
					return err
				}
				p, err := api.Produce(ctx, args[0], next)
				if err != nil {
					return err
				}
				return e.done(cmd, fmt.Sprintf("%s, %s, durable in %.3f s", output.Count(p.Records, "record"), output.Size(p.Bytes), p.Seconds), p)
			})
		},
	}
	cmd.Flags().StringVarP(&format, "input", "i", "jsonl", "`FORMAT` of the input: jsonl, json-envelope")
	cmd.Flags().StringVarP(&file, "file", "f", "", "read `FILE` instead of stdin")
	cmd.Flags().IntVar(&partitions, "partitions", 1, "make the topic, if it is new, with `N` partitions")
	return cmd
}

// ensureTopic makes the topic unless it is there.
func ensureTopic(ctx context.Context, e *Env, api control.API, name string, partitions int) error {
	_, err := api.Topic(ctx, name)
	var ce *control.Error
	if err == nil || !errors.As(err, &ce) || ce.Kind != "not_found" {
		return err
	}
	t, err := api.CreateTopic(ctx, control.CreateTopic{Name: name, Partitions: partitions, IfNotExists: true})
	if err == nil {
		e.note("topic %s is new; it has %s", t.Name, output.Count(len(t.Partitions), "partition"))
	}
	return err
}

// lineReader reads records from lines; errors name the line.
type lineReader struct {
	r    *bufio.Reader
	name string
	line int
	long []byte
	// begun: the first value has been looked at.
	begun bool
}

// next is the following line without its end, valid until the next call.
func (l *lineReader) next() ([]byte, error) {
	l.line++
	b, err := l.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		l.long = append(l.long[:0], b...)
		for errors.Is(err, bufio.ErrBufferFull) {
			if len(l.long) > maxLine {
				return nil, l.fail("the line is longer than %d bytes", maxLine)
			}
			b, err = l.r.ReadSlice('\n')
			l.long = append(l.long, b...)
		}
		b = l.long
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(b) == 0) {
		if errors.Is(err, io.EOF) {
			return nil, io.EOF
		}
		return nil, exitcode.With(exitcode.Environment, fmt.Errorf("reading %s: %w", l.name, err))
	}
	return bytes.TrimRight(b, "\r\n"), nil
}

func (l *lineReader) fail(format string, args ...any) error {
	return exitcode.With(exitcode.Input, fmt.Errorf("%s:%d: %s", l.name, l.line, fmt.Sprintf(format, args...)))
}

// value takes the line as it is: what is in it is the table's concern, and a
// broken one belongs into the topic and the dead letter, not on the floor.
// Lines without anything are passed over.
func (l *lineReader) value(r *control.Record) error {
	for {
		b, err := l.next()
		if err != nil {
			return err
		}
		if len(b) == 0 {
			continue
		}
		if !l.begun {
			l.begun = true
			if l.spansLines(b) {
				return l.fail("the first JSON value goes over several lines, and -i jsonl takes one value a line; write each into one line, e.g. with: jq -c .")
			}
		}
		*r = control.Record{Value: b, AnyPartition: true}
		return nil
	}
}

// spansLines reports whether the first line is the beginning of a value that
// the next lines complete, as far as they have been read already: waiting for
// more would hold back a stream.
func (l *lineReader) spansLines(first []byte) bool {
	rest, err := l.r.Peek(min(l.r.Buffered(), 64<<10))
	if err != nil || len(rest) == 0 {
		return false
	}
	return jsonfmt.SpansLines(slices.Concat(first, []byte("\n"), rest), true)
}

// envelopeLine is a line of -i json-envelope.
type envelopeLine struct {
	Topic       string           `json:"topic"`
	Offset      *int64           `json:"offset"`
	Key         *string          `json:"key"`
	KeyBase64   []byte           `json:"key_base64"`
	Value       json.RawMessage  `json:"value"`
	ValueBase64 []byte           `json:"value_base64"`
	Headers     []envelopeHeader `json:"headers"`
	Timestamp   int64            `json:"timestamp"`
	Partition   *int32           `json:"partition"`
}

type envelopeHeader struct {
	Key         string `json:"key"`
	Value       string `json:"value"`
	ValueBase64 []byte `json:"value_base64,omitempty"`
}

func (l *lineReader) envelope(r *control.Record) error {
	var b []byte
	for len(b) == 0 {
		var err error
		if b, err = l.next(); err != nil {
			return err
		}
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	var in envelopeLine
	if err := dec.Decode(&in); err != nil {
		return l.fail("%v; a line is {\"key\",\"value\",\"value_base64\",\"headers\",\"timestamp\",\"partition\"}", err)
	}
	*r = control.Record{TimestampMillis: in.Timestamp, AnyPartition: true}
	if in.Partition != nil {
		r.Partition, r.AnyPartition = *in.Partition, false
	}
	switch {
	case in.Key != nil && in.KeyBase64 != nil:
		return l.fail("key and key_base64 are both given")
	case in.Key != nil:
		r.Key = []byte(*in.Key)
	case in.KeyBase64 != nil:
		r.Key = in.KeyBase64
	}
	switch {
	case len(in.Value) > 0 && string(in.Value) != "null" && in.ValueBase64 != nil:
		return l.fail("value and value_base64 are both given")
	case in.ValueBase64 != nil:
		r.Value = in.ValueBase64
	case len(in.Value) == 0 || string(in.Value) == "null":
	case in.Value[0] == '"':
		var s string
		if err := json.Unmarshal(in.Value, &s); err != nil {
			return l.fail("value: %v", err)
		}
		r.Value = []byte(s)
	default:
		// An object or a number stands for its own text.
		r.Value = in.Value
	}
	for _, h := range in.Headers {
		v := h.ValueBase64
		if v == nil {
			v = []byte(h.Value)
		}
		r.Headers = append(r.Headers, control.Header{Key: h.Key, Value: v})
	}
	return nil
}
