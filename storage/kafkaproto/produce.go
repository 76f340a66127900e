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
	"errors"
	"fmt"
	"math"
	"net"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/quota"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// produceRequest is a decoded request. Records are views of its bytes.
type produceRequest struct {
	transactionalID []byte
	acks            int16
	topics          []produceTopic
	partitions      int
	bytes           int // of all records
}

type produceTopic struct {
	topicRef
	partitions []producePartition
}

type producePartition struct {
	index   int32
	records []byte

	// transactional batches have a producer.
	transactional bool
	who           topiclog.ProducerIdentity

	id     topiclog.PartitionID
	handed bool // to the log
	code   int16
	err    error
	// bad are the records, counted from the batch's first, that err is about; the
	// others were not stored because of them.
	bad   []int32
	base  int64
	start int64
	// stamped is the time that the records got, on a topic with log-append time.
	stamped int64
}

// parse decodes a request of a version.
func (p *produceRequest) parse(version int16, b []byte) error {
	r := reader{b: b, flexible: version >= 9}
	if version >= 3 {
		p.transactionalID = r.nullableString()
	}
	p.acks = r.int16()
	r.int32() // how long to wait for followers, of which there are none
	p.topics = make([]produceTopic, r.arrayLen(3))
	for i := range p.topics {
		t := &p.topics[i]
		t.read(&r, version >= 13)
		t.partitions = make([]producePartition, r.arrayLen(5))
		for j := range t.partitions {
			t.partitions[j] = producePartition{index: r.int32(), records: r.nullableBytes(), base: -1, start: -1, stamped: -1}
			r.tags()
		}
		p.partitions += len(t.partitions)
		for j := range t.partitions {
			p.bytes += len(t.partitions[j].records)
		}
		r.tags()
		if r.bad {
			break
		}
	}
	r.tags()
	return r.end()
}

func serveProduce(c *call) (*reply, error) {
	var req produceRequest
	if err := req.parse(c.version, c.body); err != nil {
		return nil, fmt.Errorf("produce version %d: %w", c.version, err)
	}
	c.throttle = max(c.throttle, c.spend(quota.ProduceRate, req.bytes))
	mayUse := c.mayUseTransaction(req.transactionalID)
	var left atomic.Int64
	left.Store(1)
	wait := make(chan struct{})
	finish := func() {
		if left.Add(-1) == 0 {
			close(wait)
		}
	}
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
			p.id, p.err = c.checkProduced(&req, &topic, p, dec, now)
		}
	}
	c.s.decoders.Put(dec)
	if c.version >= versionProduceJoins {
		c.joinTransaction(&req)
	}
	parts := make([]*producePartition, 0, req.partitions)
	appends := make([]topiclog.AppendRequest, 0, req.partitions)
	for i := range req.topics {
		for j := range req.topics[i].partitions {
			p := &req.topics[i].partitions[j]
			if p.code != codeNone {
				continue
			}
			// Checksums were verified a moment ago.
			r := topiclog.AppendRequest{Partition: p.id, Batches: p.records, Trusted: true}
			if p.transactional {
				r.TransactionalID, r.FreshEpoch = string(req.transactionalID), c.version >= versionProduceJoins
			}
			p.handed = true
			parts, appends = append(parts, p), append(appends, r)
		}
	}
	left.Add(int64(len(appends)))
	c.s.opts.Store.AppendAll(appends, func(i int, res topiclog.AppendResult, err error) {
		p := parts[i]
		p.base, p.start, p.stamped = res.BaseOffset, res.Start, res.StampedMillis
		if err != nil {
			p.base, p.start, p.stamped, p.code, p.err = -1, -1, -1, produceCode(err, c.version), err
		}
		finish()
	})
	finish()
	return &reply{wait: wait, build: func() (net.Buffers, error) { return req.answer(c) }}, nil
}

// joinTransaction adds the partitions of a request to its transaction, durably.
func (c *call) joinTransaction(req *produceRequest) {
	var in []*producePartition
	var ids []topiclog.PartitionID
	for i := range req.topics {
		for j := range req.topics[i].partitions {
			if p := &req.topics[i].partitions[j]; p.code == codeNone && p.transactional {
				in, ids = append(in, p), append(ids, p.id)
			}
		}
	}
	if len(in) == 0 {
		return
	}
	err := c.s.opts.Store.AddToTransaction(context.Background(), string(req.transactionalID), in[0].who, ids)
	for _, p := range in {
		if err != nil {
			p.code, p.err = produceCode(err, c.version), err
		}
	}
}

// checkProduced applies the rules for what a client may append, sets p.code and
// returns the partition.
func (c *call) checkProduced(req *produceRequest, topic *topiclog.Target, p *producePartition, dec *record.Decoder, now time.Time) (topiclog.PartitionID, error) {
	refuse := func(code int16, err error) (topiclog.PartitionID, error) {
		p.code = code
		return 0, err
	}
	id, ok := topic.Partition(p.index)
	switch {
	case !ok:
		return refuse(codeUnknownTopic, fmt.Errorf("topic %s has no partition %d", topic.Name, p.index))
	case internalTopic(topic.Name):
		return refuse(codeInvalidTopic, fmt.Errorf("topic %s is the store's own", topic.Name))
	case req.acks < -1 || req.acks > 1:
		return refuse(codeInvalidRequiredAcks, fmt.Errorf("acks must be -1, 0 or 1, not %d", req.acks))
	case c.version < 3:
		return refuse(codeUnsupportedFormat, errors.New("message formats before 2 are not stored"))
	case len(p.records) > topic.Settings.MaxMessageBytes:
		return refuse(codeMessageTooLarge, fmt.Errorf("batch of %d bytes, max.message.bytes is %d", len(p.records), topic.Settings.MaxMessageBytes))
	}
	b, rest, err := record.Split(p.records)
	switch {
	case errors.Is(err, record.ErrMagic):
		return refuse(codeInvalidRecord, err)
	case err != nil:
		return refuse(codeOf(err), err)
	case len(rest) > 0:
		return refuse(codeInvalidRecord, fmt.Errorf("more than one batch: %d bytes after the first", len(rest)))
	case b.Attributes.Control():
		return refuse(codeInvalidRecord, errors.New("clients may not append control batches"))
	case b.Attributes.Transactional() && req.transactionalID == nil:
		return refuse(codeTransactionDenied, errors.New("a transactional batch without a transactional id"))
	case b.Attributes.Codec() == record.Zstd && c.version < 7:
		return refuse(codeUnsupportedCompression, errors.New("zstd needs Produce version 7"))
	}
	if err := b.CheckProduced(); err != nil {
		return refuse(codeOf(err), err)
	}
	if err := record.CorrectRecords(&b, dec); err != nil {
		return refuse(codeOf(err), err)
	}
	if p.bad, err = checkTimes(b, dec, &topic.Settings, now); err != nil {
		return refuse(codeInvalidTimestamp, err)
	}
	if b.Attributes.Transactional() {
		p.transactional, p.who = true, identity(b.ProducerID, b.ProducerEpoch)
	}
	if topic.Settings.Compact {
		if p.bad, err = checkKeys(b, dec); err != nil {
			return refuse(codeInvalidRecord, err)
		}
	}
	return id, nil
}

// checkTimes applies the topic's bounds for timestamps, and returns the records that
// are out of them. The largest timestamp is known to be the header's.
func checkTimes(b record.Batch, dec *record.Decoder, s *topiclog.Settings, now time.Time) (bad []int32, err error) {
	ms := now.UnixMilli()
	switch {
	case s.LogAppendTime:
		return nil, nil // the records get another one
	case b.MaxTimestamp-ms <= s.MaxAfterMillis && s.MaxBeforeMillis == math.MaxInt64:
		return nil, nil
	}
	var refused error
	bad, err = recordsThat(b, dec, func(rec *record.Record) bool {
		switch ahead := rec.Timestamp - ms; {
		case rec.Timestamp == record.NoTimestamp:
			return false
		case ahead > s.MaxAfterMillis:
			refused = fmt.Errorf("timestamp %d is %d ms in the future, message.timestamp.after.max.ms is %d", rec.Timestamp, ahead, s.MaxAfterMillis)
		case s.MaxBeforeMillis != math.MaxInt64 && -ahead > s.MaxBeforeMillis:
			refused = fmt.Errorf("timestamp %d is %d ms in the past, message.timestamp.before.max.ms is %d", rec.Timestamp, -ahead, s.MaxBeforeMillis)
		default:
			return false
		}
		return true
	})
	return bad, errors.Join(err, refused)
}

// checkKeys returns the records without a key: a compacted topic could not keep them
// apart.
func checkKeys(b record.Batch, dec *record.Decoder) (bad []int32, err error) {
	bad, err = recordsThat(b, dec, func(rec *record.Record) bool { return rec.Key == nil })
	if err == nil && len(bad) > 0 {
		err = fmt.Errorf("record %d has no key, which a compacted topic needs", bad[0])
	}
	return bad, err
}

// recordsThat lists the records of a batch, counted from its first, that match.
func recordsThat(b record.Batch, dec *record.Decoder, match func(*record.Record) bool) (found []int32, err error) {
	it, err := dec.Records(b)
	if err != nil {
		return nil, err
	}
	for rec := (record.Record{}); it.Next(&rec); {
		if match(&rec) {
			found = append(found, int32(rec.Offset-b.BaseOffset))
		}
	}
	return found, it.Err()
}

// answer encodes the response; none for acks 0.
func (p *produceRequest) answer(c *call) (net.Buffers, error) {
	if p.acks == 0 {
		for i := range p.topics {
			for _, part := range p.topics[i].partitions {
				if part.code != codeNone {
					return nil, fmt.Errorf("producing without acknowledgement failed: code %d: %w", part.code, part.err)
				}
			}
		}
		return nil, nil
	}
	w := newWriter(c.correlation, c.flexible, c.flexible)
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
			w.int32(part.index)
			w.int16(part.code)
			w.int64(part.base)
			if c.version >= 2 {
				w.int64(part.stamped)
			}
			if c.version >= 5 {
				w.int64(part.start)
			}
			if c.version >= 8 {
				w.arrayLen(len(part.bad))
				for _, at := range part.bad {
					w.int32(at)
					w.nullableString(nil) // the partition's text is each one's
					w.tags()
				}
				w.nullableString(message(part.err))
			}
			w.tags()
		}
		w.tags()
	}
	if c.version >= 1 {
		w.int32(c.throttleMillis())
	}
	w.tags()
	return w.frame(), nil
}
