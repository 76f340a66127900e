package cli

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/output"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/readrange"
)

func topicsConsume(e *Env) *cobra.Command {
	var rng string
	var partitions []int32
	var limit int64
	cmd := &cobra.Command{
		Use:   "consume TOPIC",
		Short: "print records",
		Long: `Prints records of a topic, each partition in offset order.

  --range start:end   everything there is now (the default)
  --range start       and what comes after it, until stopped
  --range end         what is written from now on
  --range +n, -n      the first, the last n of each partition
  --range o1:o2       offsets from o1 up to, not including, o2
  --range @t1:t2      by timestamp: RFC 3339, a date, or -48h

-o table has what people look for, with times in UTC; -o wide, jsonl and csv have
every field, with timestamps in ms since 1970.`,
		Example: `  millrace topics consume clicks --range -10
  millrace topics consume clicks --range @-1h:end -o jsonl | jq .value`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := readrange.Parse(rng, e.Now())
			if err != nil {
				return exitcode.With(exitcode.Input, err)
			}
			out, err := newRecordWriter(e, r.Endless())
			if err != nil {
				return err
			}
			return e.withAPI(cmd, func(ctx context.Context, api control.API) error {
				err := api.Consume(ctx, control.Consume{Topic: args[0], Range: rng, Partitions: partitions, Limit: limit}, func(r *control.Record) error {
					return out.write(args[0], r)
				})
				if errors.Is(err, context.Canceled) && ctx.Err() != nil {
					err = nil // stopped by a signal: what was read is printed
				}
				return errors.Join(err, out.close())
			})
		},
	}
	cmd.Flags().StringVar(&rng, "range", "start:end", "print this `RANGE`")
	cmd.Flags().Int32SliceVar(&partitions, "partition", nil, "print only these `PARTITIONS`, such as 0,2")
	cmd.Flags().Int64Var(&limit, "limit", 0, "stop after `N` records; 0: no limit")
	return cmd
}

// consumedRecord is a line of `topics consume -o jsonl`, which `topics produce
// -i json-envelope` reads: bytes that are no UTF-8 come as base64, so that
// nothing is changed silently.
type consumedRecord struct {
	Topic       string           `json:"topic"`
	Partition   int32            `json:"partition"`
	Offset      int64            `json:"offset"`
	Timestamp   int64            `json:"timestamp"`
	Key         *string          `json:"key"`
	KeyBase64   []byte           `json:"key_base64,omitempty"`
	Value       *string          `json:"value"`
	ValueBase64 []byte           `json:"value_base64,omitempty"`
	Headers     []envelopeHeader `json:"headers"`
}

// textOrBytes gives b as text if it is text, else as bytes; nil is neither.
func textOrBytes(b []byte) (text *string, raw []byte) {
	if b == nil {
		return nil, nil
	}
	if !utf8.Valid(b) {
		return nil, b
	}
	s := string(b)
	return &s, nil
}

func consumed(topic string, r *control.Record) consumedRecord {
	c := consumedRecord{Topic: topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.TimestampMillis, Headers: []envelopeHeader{}}
	c.Key, c.KeyBase64 = textOrBytes(r.Key)
	c.Value, c.ValueBase64 = textOrBytes(r.Value)
	for _, h := range r.Headers {
		if utf8.Valid(h.Value) {
			c.Headers = append(c.Headers, envelopeHeader{Key: h.Key, Value: string(h.Value)})
		} else {
			c.Headers = append(c.Headers, envelopeHeader{Key: h.Key, ValueBase64: h.Value})
		}
	}
	return c
}

// recordWriter prints consumed records in the format asked for.
type recordWriter struct {
	rows *output.Rows
	// people: a table for people, with readable times and without what is the
	// same in each row.
	people bool
	line   *json.Encoder
	buf    *bufio.Writer
	live   bool
}

// newRecordWriter makes a writer; endless says that records are waited for,
// which must be seen as they come.
func newRecordWriter(e *Env, endless bool) (*recordWriter, error) {
	f, err := e.format()
	if err != nil {
		return nil, err
	}
	w := &recordWriter{live: endless && e.StdoutTerminal}
	switch f.ForRows(e.StdoutTerminal) {
	case output.JSONL:
		w.buf = bufio.NewWriterSize(e.Stdout, 64<<10)
		w.line = json.NewEncoder(w.buf)
		w.line.SetEscapeHTML(false)
		return w, nil
	case output.Table:
		w.people = true
		w.rows, err = e.rows("PARTITION", "OFFSET", "TIME", "KEY", "VALUE")
		return w, err
	}
	w.rows, err = e.rows("topic", "partition", "offset", "timestamp", "key", "value", "headers")
	return w, err
}

func (w *recordWriter) write(topic string, r *control.Record) error {
	c := consumed(topic, r)
	if w.line != nil {
		if err := w.line.Encode(c); err != nil || !w.live {
			return err
		}
		return w.buf.Flush()
	}
	var err error
	if w.people {
		at := time.UnixMilli(c.Timestamp).UTC().Format("2006-01-02T15:04:05.000Z")
		err = w.rows.Write(output.Number(c.Partition), output.Number(c.Offset), output.Text(at), bytesCell(r.Key), bytesCell(r.Value))
	} else {
		var headers []byte
		if headers, err = json.Marshal(c.Headers); err != nil {
			return err
		}
		err = w.rows.Write(output.Text(topic), output.Number(c.Partition), output.Number(c.Offset), output.Number(c.Timestamp),
			bytesCell(r.Key), bytesCell(r.Value), output.Cell{Text: string(headers), JSON: headers})
	}
	if err != nil || !w.live {
		return err
	}
	return w.rows.Flush()
}

func (w *recordWriter) close() error {
	if w.line != nil {
		return w.buf.Flush()
	}
	return w.rows.Close()
}

func bytesCell(b []byte) output.Cell {
	text, raw := textOrBytes(b)
	switch {
	case text != nil:
		return output.Text(*text)
	case raw != nil:
		return output.Text("base64:" + base64.StdEncoding.EncodeToString(raw))
	}
	return output.Null()
}
