// Package client reads and writes the log of this process: no socket, no copy.
//
//	New(store *topiclog.Store) *Client
//	(*Client) Store() *topiclog.Store        // topics, cursors, holds, offsets
//
//	(*Client) NewProducer(ProducerOptions) (*Producer, error)
//	(*Producer) Produce(ctx, ProducerRecord, done func(Result, error)) error
//	(*Producer) Flush(ctx) error             // all earlier records are acknowledged
//	(*Producer) Close(ctx) error
//
//	(*Client) NewFetcher(FetcherOptions) *Fetcher
//	(*Fetcher) Add(id topiclog.PartitionID, offset int64) error
//	(*Fetcher) Remove(id)  Seek(id, offset) error  Pause(id)  Resume(id)
//	(*Fetcher) Poll() (*Fetched, error)      // any partition, never blocks; nil, nil: no data or no credit
//	(*Fetcher) TryNext(id) (*Fetched, error) // one partition, never blocks
//	(*Fetcher) Next(ctx) (*Fetched, error)   // any partition, waits
//	(*Fetched) Release()                     // gives back memory and credit
//
//	EachRecord(lease, decoder, from, func(*record.Record) error) error
//
// Producer batches records per partition until a batch is full or its linger
// time is over, and acknowledges each record (its callback) after the group
// commit that made it durable.
//
// Fetcher is a fetch session over many partitions. One notification (a callback
// or Next) wakes the reader for all of them. A partition has at most one
// unreleased lease; the bytes of all unreleased leases stay within the
// session's credit.
//
// A Fetcher reads committed records only: nothing of a transaction before its
// end, and nothing of one that was aborted. The markers that end transactions are
// in its leases; EachRecord skips them.
//
// What it is not: it keeps no positions (see topiclog's cursors), it balances
// no groups, and it decodes records only through storage/record.
//
// Concurrency: Client, Producer and Fetcher are safe for concurrent use.
package client
