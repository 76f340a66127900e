package client

import (
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// Client gives access to one open store.
type Client struct{ store *topiclog.Store }

// New returns a client of the store, which stays the caller's to close.
func New(store *topiclog.Store) *Client { return &Client{store: store} }

// Store is the store: topics, appends of raw batches, cursors, holds.
func (c *Client) Store() *topiclog.Store { return c.store }

// EachRecord calls f with the records of a lease from an offset on, in order. The
// record is only valid during the call. Control batches are skipped. An error of
// f ends the walk and is returned as it is.
func EachRecord(l *topiclog.Lease, d *record.Decoder, from int64, f func(*record.Record) error) error {
	var r record.Record
	for _, chunk := range l.Chunks {
		for len(chunk) > 0 {
			b, rest, err := record.SplitUnverified(chunk)
			if err != nil {
				return err
			}
			chunk = rest
			if b.Attributes.Control() || b.LastOffset() < from {
				continue
			}
			it, err := d.Records(b)
			if err != nil {
				return err
			}
			for it.Next(&r) {
				if r.Offset < from {
					continue
				}
				if err := f(&r); err != nil {
					return err
				}
			}
			if err := it.Err(); err != nil {
				return err
			}
		}
	}
	return nil
}
