package kafkaproto

// Produce (0), versions 0 to 13: appends one record batch to each partition.
//
//   - Versions 0 to 2 carry the message formats before 2, which are not stored:
//     each partition is answered with error 43 (unsupported for message format).
//   - zstd is for version 7 and later, as in Kafka.
//   - From 8 a response has the error's text, and which records of a batch it is
//     about (KIP-467): those without a key on a compacted topic, those with a
//     timestamp out of bounds. 9 is flexible; 13 names topics by id.
//   - acks 1 and -1 are the same: the answer comes after the store acknowledged,
//     which on fsync topics is after the fdatasync. acks 0 has no answer; an error
//     closes the connection, so that the client learns of it.
//   - A batch of an idempotent producer goes in once: one of its last five is
//     answered with its offset again, one that does not follow the last with error
//     45 (out of order sequence), one of an older epoch with error 47. A producer of
//     which nothing is known may begin with any sequence, as in Kafka 4.
//   - A transactional batch goes in only as long as its producer's transaction is
//     open and has the partition (transaction.go has the codes); from 12 the request
//     adds its partitions to the transaction itself (KIP-890), and a producer that
//     the partition does not know must begin with sequence 0.
//   - What the header claims is checked against the records (count, offsets,
//     checksum), and the largest timestamp is put right, as Kafka does: librdkafka
//     says 0 of records without times. Else the bytes go to the log as they are.
//   - A record without a time, -1, is within all bounds for timestamps.

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/quota"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// produceRequest is a decoded request. Records are views of its bytes. Its memory is
// used again: a request may have thousands of partitions.
type produceRequest struct {
	transactionalID []byte
	acks            int16
	topics          []produceTopic
	all             []producePartition // of all topics
	headers         []record.Header    // of the batches that were not refused
	bytes           int                // of all records

	appends []topiclog.AppendRequest // what goes to the log
	handed  []int32                  // for each of appends, its place in all
	out     []byte                   // memory of the answer
}

type produceTopic struct {
	topicRef
	partitions []producePartition // a part of all
}

// producePartition is a partition of a request. It is small: a request can name very many
// in few bytes, and they are gone over several times.
type producePartition struct {
	index  int32
	header int32 // of the records, in headers
	id     topiclog.PartitionID
	code   int16
	handed bool // to the log
	// transactional batches have a producer, whose open transaction must have them.
	transactional bool
	records       []byte

	base  int64
	start int64
	// stamped is the time that the records got, on a topic with log-append time.
	stamped int64
	why     *refusal // of code, may be nil
}

// refusal says why records were not stored.
type refusal struct {
	err error
	// bad are the records, counted from the batch's first, that err is about; the
	// others were not stored because of them.
	bad []int32
}

func (p *producePartition) refuse(code int16, err error, bad ...int32) {
	p.code, p.why = code, &refusal{err, bad}
}

// err says why the records were not stored, if they were not.
func (p *producePartition) err() error {
	if p.why == nil {
		return nil
	}
	return p.why.err
}

// maxPooledPartitions bounds the requests whose memory is kept for use again: their
// partitions, and their topics, which need not have any.
const maxPooledPartitions = 1 << 13

// reset lets go of everything but the memory.
func (p *produceRequest) reset() {
	clear(p.topics)
	clear(p.all)
	clear(p.appends)
	*p = produceRequest{topics: p.topics[:0], all: p.all[:0], headers: p.headers[:0], appends: p.appends[:0], handed: p.handed[:0], out: p.out[:0]}
}

// parse decodes a request of a version.
func (p *produceRequest) parse(version int16, b []byte) error {
	r := reader{b: b, flexible: version >= 9}
	if version >= 3 {
		p.transactionalID = r.nullableString()
	}
	p.acks = r.int16()
	r.int32() // how long to wait for followers, of which there are none
	n := r.arrayLen(3)
	p.topics = slices.Grow(p.topics[:0], n)[:n]
	for i := range p.topics {
		p.topics[i].read(&r, version >= 13)
		p.parsePartitions(&r, &p.topics[i])
		r.tags()
		if r.bad {
			break
		}
	}
	r.tags()
	// Now that they do not move any more.
	from := 0
	for i := range p.topics {
		n := len(p.topics[i].partitions)
		p.topics[i].partitions = p.all[from : from+n : from+n]
		from += n
	}
	return r.end()
}

// parsePartitions decodes the partitions of a topic; t.partitions has their number.
func (p *produceRequest) parsePartitions(r *reader, t *produceTopic) {
	n, from := r.arrayLen(5), len(p.all)
	p.all = slices.Grow(p.all, n)[:from+n]
	t.partitions = p.all[from:]
	for j := range t.partitions {
		part := &t.partitions[j]
		*part = producePartition{index: r.int32(), records: r.nullableBytes(), base: -1, start: -1, stamped: -1}
		r.tags()
		p.bytes += len(part.records)
	}
}

func serveProduce(c *call) (*reply, error) {
	req := c.s.produces.Get().(*produceRequest)
	if err := req.parse(c.version, c.body); err != nil {
		return nil, fmt.Errorf("produce version %d: %w", c.version, err)
	}
	c.throttle = max(c.throttle, c.spend(quota.ProduceRate, req.bytes))
	mayUse := c.mayUseTransaction(req.transactionalID)
	dec := c.s.decoders.Get().(*record.Decoder)
	now := time.Now()
	for i := range req.topics {
		t := &req.topics[i]
		topic, code := c.topicFor(&t.topicRef, acl.Write)
		if !mayUse {
			code = codeTransactionDenied
		}
		for j := range t.partitions {
			p := &t.partitions[j]
			if p.code = code; code != codeNone {
				continue
			}
			c.checkProduced(req, &topic, p, dec, now)
		}
	}
	c.s.decoders.Put(dec)
	if c.version >= versionProduceJoins {
		c.joinTransaction(req)
	}
	wait := make(chan struct{})
	req.hand(c, func() { close(wait) })
	return &reply{
		wait:    wait,
		build:   func() (net.Buffers, error) { return req.answer(c) },
		release: func() { c.s.keepProduce(req) },
	}, nil
}

// keepProduce keeps the memory of a request that was answered.
func (s *Server) keepProduce(req *produceRequest) {
	if max(cap(req.all), cap(req.topics)) <= maxPooledPartitions {
		if s.opts.PoisonReleased {
			vfs.Poison(req.out[:cap(req.out)])
			for i := range req.headers {
				req.headers[i] = record.Header{BaseOffset: -1, LastOffsetDelta: -1}
			}
		}
		req.reset()
		s.produces.Put(req)
	}
}

// hand gives to the log what was not refused; ended is called when it has answered all.
func (p *produceRequest) hand(c *call, ended func()) {
	p.appends = slices.Grow(p.appends, len(p.all))
	p.handed = slices.Grow(p.handed, len(p.all))
	transactionalID := string(p.transactionalID)
	for i := range p.all {
		part := &p.all[i]
		if part.code != codeNone {
			continue
		}
		// Checksums were verified a moment ago.
		r := topiclog.AppendRequest{Partition: part.id, Batches: part.records, Trusted: true, Header: &p.headers[part.header]}
		if part.transactional {
			r.TransactionalID, r.FreshEpoch = transactionalID, c.version >= versionProduceJoins
		}
		part.handed = true
		p.appends, p.handed = append(p.appends, r), append(p.handed, int32(i))
	}
	c.s.opts.Store.AppendAll(p.appends, func(i int, res topiclog.AppendResult, err error) {
		part := &p.all[p.handed[i]]
		if err == nil {
			part.base, part.start, part.stamped = res.BaseOffset, res.Start, res.StampedMillis
		} else {
			part.refuse(produceCode(err, c.version), err)
		}
	}, ended)
}

// joinTransaction adds the partitions of a request to its transaction, durably.
func (c *call) joinTransaction(req *produceRequest) {
	var in []*producePartition
	var ids []topiclog.PartitionID
	for i := range req.all {
		if p := &req.all[i]; p.code == codeNone && p.transactional {
			in, ids = append(in, p), append(ids, p.id)
		}
	}
	if len(in) == 0 {
		return
	}
	first := &req.headers[in[0].header]
	who := identity(first.ProducerID, first.ProducerEpoch)
	err := c.s.opts.Store.AddToTransaction(context.Background(), string(req.transactionalID), who, ids)
	for _, p := range in {
		if err != nil {
			p.refuse(produceCode(err, c.version), err)
		}
	}
}

// answerBytes is what a topic with a short name, and a partition without an error, take
// in a response, about.
const answerBytes = 40

// answer encodes the response; none for acks 0.
func (p *produceRequest) answer(c *call) (net.Buffers, error) {
	if p.acks == 0 {
		for i := range p.all {
			if part := &p.all[i]; part.code != codeNone {
				return nil, fmt.Errorf("producing without acknowledgement failed: code %d: %w", part.code, part.err())
			}
		}
		return nil, nil
	}
	w := &writer{flexible: c.flexible, cur: slices.Grow(p.out[:0], answerBytes*(len(p.topics)+len(p.all)))}
	defer func() { p.out = w.cur }()
	w.begin(c.correlation, c.flexible)
	w.arrayLen(len(p.topics))
	for i := range p.topics {
		t := &p.topics[i]
		t.write(w)
		w.arrayLen(len(t.partitions))
		for j := range t.partitions {
			part := &t.partitions[j]
			if part.start < 0 && part.handed {
				// Also beside an error.
				if start, err := c.s.opts.Store.Start(part.id); err == nil {
					part.start = start
				}
			}
			part.write(w, c.version)
		}
		w.tags()
	}
	if c.version >= 1 {
		w.int32(c.throttleMillis())
	}
	w.tags()
	return w.frame(), nil
}

// write encodes a partition of the response.
func (p *producePartition) write(w *writer, version int16) {
	w.int32(p.index)
	w.int16(p.code)
	w.int64(p.base)
	if version >= 2 {
		w.int64(p.stamped)
	}
	if version >= 5 {
		w.int64(p.start)
	}
	if version >= 8 {
		var bad []int32
		if p.why != nil {
			bad = p.why.bad
		}
		w.arrayLen(len(bad))
		for _, at := range bad {
			w.int32(at)
			w.nullableString(nil) // the partition's text is each one's
			w.tags()
		}
		w.nullableString(message(p.err()))
	}
	w.tags()
}
