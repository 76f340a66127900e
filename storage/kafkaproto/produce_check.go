package kafkaproto

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// checkProduced applies the rules for what a client may append, and says to which
// partition it goes.
func (c *call) checkProduced(req *produceRequest, topic *topiclog.Target, p *producePartition, dec *record.Decoder, now time.Time) {
	id, ok := topic.Partition(p.index)
	switch {
	case !ok:
		p.refuse(codeUnknownTopic, fmt.Errorf("topic %s has no partition %d", topic.Name, p.index))
		return
	case internalTopic(topic.Name):
		p.refuse(codeInvalidTopic, fmt.Errorf("topic %s is the store's own", topic.Name))
		return
	case req.acks < -1 || req.acks > 1:
		p.refuse(codeInvalidRequiredAcks, fmt.Errorf("acks must be -1, 0 or 1, not %d", req.acks))
		return
	case c.version < 3:
		p.refuse(codeUnsupportedFormat, errors.New("message formats before 2 are not stored"))
		return
	case len(p.records) > topic.Settings.MaxMessageBytes:
		p.refuse(codeMessageTooLarge, fmt.Errorf("batch of %d bytes, max.message.bytes is %d", len(p.records), topic.Settings.MaxMessageBytes))
		return
	}
	b, rest, err := record.Split(p.records)
	switch {
	case errors.Is(err, record.ErrMagic):
		p.refuse(codeInvalidRecord, err)
		return
	case err != nil:
		p.refuse(codeOf(err), err)
		return
	case len(rest) > 0:
		p.refuse(codeInvalidRecord, fmt.Errorf("more than one batch: %d bytes after the first", len(rest)))
		return
	case b.Attributes.Control():
		p.refuse(codeInvalidRecord, errors.New("clients may not append control batches"))
		return
	case b.Attributes.Transactional() && req.transactionalID == nil:
		p.refuse(codeTransactionDenied, errors.New("a transactional batch without a transactional id"))
		return
	case b.Attributes.Codec() == record.Zstd && c.version < 7:
		p.refuse(codeUnsupportedCompression, errors.New("zstd needs Produce version 7"))
		return
	}
	if err := b.CheckProduced(); err != nil {
		p.refuse(codeOf(err), err)
		return
	}
	if err := record.CorrectRecords(&b, dec); err != nil {
		p.refuse(codeOf(err), err)
		return
	}
	if bad, err := checkTimes(b, dec, &topic.Settings, now); err != nil {
		p.refuse(codeInvalidTimestamp, err, bad...)
		return
	}
	if topic.Settings.Compact {
		if bad, err := checkKeys(b, dec); err != nil {
			p.refuse(codeInvalidRecord, err, bad...)
			return
		}
	}
	p.id, p.header, p.transactional = id, int32(len(req.headers)), b.Attributes.Transactional()
	req.headers = append(req.headers, b.Header)
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
