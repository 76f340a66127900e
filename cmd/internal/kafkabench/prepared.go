package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/record"
)

// The prepared producer sends requests that were encoded before the clock started:
// what it costs itself is next to nothing, so the server shows alone. A request has
// preparedRecords records, spread over its partitions in turn, if not told otherwise; preparedAhead requests
// are under way.
const (
	preparedRecords = 3000
	preparedAhead   = 8
	preparedVersion = 11 // of Produce: the last but one that names topics by name
)

// prepared is an idempotent producer of one connection.
type prepared struct {
	conn net.Conn
	src  *bufio.Reader
	// each has the batch of as many partitions, all requests together one of every
	// partition.
	each    []preparedRequest
	records int // of a batch
	next    int // of each
	seq     int32
}

// preparedRequest is an encoded request whose batches are changed in place.
type preparedRequest struct {
	frame   []byte
	batches []int // where they begin
	size    int   // of each
}

// The places in a batch that change with each request.
const (
	batchHead     = 61
	batchCRC      = 17
	batchBody     = 21 // what the checksum covers
	batchSequence = 53
)

func newPrepared(ctx context.Context, addr string, topics []string, value []byte, perBatch int) (*prepared, error) {
	id, err := producerID(ctx, addr)
	if err != nil {
		return nil, err
	}
	partitions := len(topics) * partitionsEach
	p := &prepared{records: perBatch}
	if perBatch == 0 {
		p.records = max(preparedRecords/partitions, 1)
	}
	var bld record.Builder
	bld.SetProducer(id, 0, 0, false)
	for range p.records {
		if err := bld.Append(time.Now().UnixMilli(), nil, value, nil); err != nil {
			return nil, fmt.Errorf("making a batch: %w", err)
		}
	}
	batch, err := bld.Build()
	if err != nil {
		return nil, fmt.Errorf("making a batch: %w", err)
	}
	for n := max(preparedRecords/partitionsEach, 1); len(topics) > 0; {
		n = min(n, len(topics))
		p.each = append(p.each, prepareRequest(topics[:n], batch))
		topics = topics[n:]
	}
	var d net.Dialer
	if p.conn, err = d.DialContext(ctx, "tcp", addr); err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	p.src = bufio.NewReader(p.conn)
	return p, nil
}

// producerID asks for the id of an idempotent producer.
func producerID(ctx context.Context, addr string) (int64, error) {
	c, err := kgo.NewClient(kgo.SeedBrokers(addr))
	if err != nil {
		return 0, fmt.Errorf("making a client: %w", err)
	}
	defer c.Close()
	req := kmsg.NewPtrInitProducerIDRequest()
	req.ProducerID, req.ProducerEpoch = -1, -1
	resp, err := req.RequestWith(ctx, c)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return 0, fmt.Errorf("asking for a producer id: %w", err)
	}
	return resp.ProducerID, nil
}

func prepareRequest(topics []string, batch []byte) preparedRequest {
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 60_000
	for _, name := range topics {
		t := kmsg.NewProduceRequestTopic()
		t.Topic = name
		for i := range partitionsEach {
			part := kmsg.NewProduceRequestTopicPartition()
			part.Partition, part.Records = int32(i), batch
			t.Partitions = append(t.Partitions, part)
		}
		req.Topics = append(req.Topics, t)
	}
	req.SetVersion(preparedVersion)
	q := preparedRequest{size: len(batch)}
	q.frame = kmsg.NewRequestFormatter(kmsg.FormatterClientID("kafkabench")).AppendRequest(nil, req, 0)
	// The batches lie in the order of the partitions, with few bytes between them.
	for at := 0; len(q.batches) < len(topics)*partitionsEach; at++ {
		if string(q.frame[at:at+batchHead]) == string(batch[:batchHead]) {
			q.batches = append(q.batches, at)
			at += len(batch) - 1
		}
	}
	return q
}

// sequence gives every batch its first sequence number.
func (q *preparedRequest) sequence(seq int32) {
	first := q.frame[q.batches[0] : q.batches[0]+q.size]
	binary.BigEndian.PutUint32(first[batchSequence:], uint32(seq))
	binary.BigEndian.PutUint32(first[batchCRC:], record.Checksum(first[batchBody:]))
	for _, at := range q.batches[1:] {
		copy(q.frame[at:], first[:batchHead])
	}
}

func (p *prepared) close() { p.conn.Close() }

// send writes n records or a few more, one request's worth at a time, and returns
// when all are acknowledged.
func (p *prepared) send(ctx context.Context, n int64) (sent, batches int64, err error) {
	stop := context.AfterFunc(ctx, func() { p.conn.Close() })
	defer stop()
	room := make(chan struct{}, preparedAhead)
	answers := make(chan int, preparedAhead) // batches of the requests under way
	ended := make(chan error, 1)
	go func() {
		var failed error
		for want := range answers {
			if failed == nil {
				if failed = p.answer(want); failed != nil {
					p.conn.Close() // the sender must not wait for a server that waits for us
				}
			}
			<-room
		}
		ended <- failed
	}()
	for sent < n && err == nil {
		q := &p.each[p.next]
		room <- struct{}{}
		q.sequence(p.seq)
		answers <- len(q.batches)
		if _, err = p.conn.Write(q.frame); err != nil {
			err = fmt.Errorf("sending: %w", err)
			break
		}
		batches += int64(len(q.batches))
		sent += int64(len(q.batches) * p.records)
		if p.next++; p.next == len(p.each) {
			p.next = 0
			p.seq += int32(p.records)
		}
	}
	close(answers)
	if failed := <-ended; failed != nil {
		err = failed
	}
	return sent, batches, err
}

// answer reads a response and looks for errors.
func (p *prepared) answer(batches int) error {
	var size [4]byte
	if _, err := io.ReadFull(p.src, size[:]); err != nil {
		return fmt.Errorf("reading an answer: %w", err)
	}
	body := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(p.src, body); err != nil {
		return fmt.Errorf("reading an answer: %w", err)
	}
	const header = 5 // correlation id and tags
	resp := kmsg.NewPtrProduceResponse()
	resp.SetVersion(preparedVersion)
	if err := resp.ReadFrom(body[min(header, len(body)):]); err != nil {
		return fmt.Errorf("reading an answer: %w", err)
	}
	for i := range resp.Topics {
		for j := range resp.Topics[i].Partitions {
			part := &resp.Topics[i].Partitions[j]
			if err := kerr.ErrorForCode(part.ErrorCode); err != nil {
				return fmt.Errorf("topic %s partition %d: %w", resp.Topics[i].Topic, part.Partition, err)
			}
			batches--
		}
	}
	if batches != 0 {
		return fmt.Errorf("an answer with %d partitions too few", batches)
	}
	return nil
}
