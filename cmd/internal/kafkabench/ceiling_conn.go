package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Versions that the ceiling serves: Produce by the names of topics, Fetch with neither
// sessions nor tags.
const (
	ceilingProduce = 12
	ceilingFetch   = 4
)

// ceilingRun is how many bytes of batches lie one after another in memory.
const ceilingRun = 1 << 20

// ceilingConn is a connection of a client.
type ceilingConn struct {
	c      *ceiling
	conn   net.Conn
	src    *bufio.Reader
	behind net.Conn // nil until something is asked of the server behind
	frame  []byte   // memory of requests
	out    []byte   // and of answers
	runs   map[string]*batchRun
}

// batchRun is a batch many times over; their offsets are written in before it is sent.
type batchRun struct {
	batch   []byte
	records int64 // of a batch
	all     []byte
}

// serve answers the requests of a client in their order, until it or ctx ends.
func (c *ceiling) serve(ctx context.Context, conn net.Conn) error {
	x := &ceilingConn{c: c, conn: conn, src: bufio.NewReader(conn), runs: map[string]*batchRun{}}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer func() {
		stop()
		conn.Close()
		if x.behind != nil {
			x.behind.Close()
		}
	}()
	for {
		var err error
		if x.frame, err = readSized(x.src, x.frame); err != nil {
			return err
		}
		if err := x.request(ctx); err != nil {
			return err
		}
	}
}

// readSized reads what stands behind its length, into b if it has room.
func readSized(src io.Reader, b []byte) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(src, size[:]); err != nil {
		return b, err
	}
	n := int(binary.BigEndian.Uint32(size[:]))
	if n > cap(b) {
		b = make([]byte, n)
	}
	b = b[:n]
	_, err := io.ReadFull(src, b)
	return b, err
}

// request answers one request.
func (x *ceilingConn) request(ctx context.Context) error {
	const head = 10 // key, version, correlation id, length of the client's name
	if len(x.frame) < head {
		return fmt.Errorf("a request of %d bytes", len(x.frame))
	}
	key, version := int16(binary.BigEndian.Uint16(x.frame)), int16(binary.BigEndian.Uint16(x.frame[2:]))
	var req kmsg.Request
	switch kmsg.Key(key) {
	case kmsg.Produce:
		req = kmsg.NewPtrProduceRequest()
	case kmsg.Fetch:
		req = kmsg.NewPtrFetchRequest()
	case kmsg.ListOffsets:
		req = kmsg.NewPtrListOffsetsRequest()
	default:
		return x.pass(key, version)
	}
	req.SetVersion(version)
	body := x.frame[head:]
	if name := int(int16(binary.BigEndian.Uint16(x.frame[head-2:]))); name > 0 {
		body = body[min(name, len(body)):]
	}
	if req.IsFlexible() && len(body) > 0 {
		body = body[1:] // no client has tags here
	}
	if err := req.ReadFrom(body); err != nil {
		return fmt.Errorf("reading a request of key %d version %d: %w", key, version, err)
	}
	x.out = append(append(x.out[:0], 0, 0, 0, 0), x.frame[4:8]...)
	if req.IsFlexible() {
		x.out = append(x.out, 0)
	}
	switch req := req.(type) {
	case *kmsg.FetchRequest:
		return x.fetch(ctx, req)
	case *kmsg.ListOffsetsRequest:
		return x.send(x.listOffsets(req))
	case *kmsg.ProduceRequest:
		resp, err := x.produce(req)
		if err != nil || req.Acks == 0 {
			return err
		}
		return x.send(resp)
	}
	return nil
}

// send sends an answer, whose header is in out.
func (x *ceilingConn) send(resp kmsg.Response) error {
	x.out = resp.AppendTo(x.out)
	binary.BigEndian.PutUint32(x.out, uint32(len(x.out)-4))
	_, err := x.conn.Write(x.out)
	return err
}

// pass has the server behind answer.
func (x *ceilingConn) pass(key, version int16) (err error) {
	if x.behind == nil {
		if x.behind, err = net.Dial("tcp", x.c.behind); err != nil {
			return fmt.Errorf("reaching the server behind: %w", err)
		}
	}
	x.out = append(binary.BigEndian.AppendUint32(x.out[:0], uint32(len(x.frame))), x.frame...)
	if _, err := x.behind.Write(x.out); err != nil {
		return fmt.Errorf("asking the server behind: %w", err)
	}
	answer, err := readSized(x.behind, nil)
	if err != nil {
		return fmt.Errorf("asking the server behind: %w", err)
	}
	if kmsg.Key(key) == kmsg.ApiVersions {
		if answer, err = fewerVersions(answer, version); err != nil {
			return err
		}
	}
	x.out = append(binary.BigEndian.AppendUint32(x.out[:0], uint32(len(answer))), answer...)
	_, err = x.conn.Write(x.out)
	return err
}

// fewerVersions leaves of an answer of ApiVersions what the ceiling serves.
func fewerVersions(answer []byte, version int16) ([]byte, error) {
	const head = 4 // the correlation id
	resp := kmsg.NewPtrApiVersionsResponse()
	resp.SetVersion(version)
	if len(answer) < head+2 || binary.BigEndian.Uint16(answer[head:]) != 0 {
		return answer, nil // an error, in version 0
	}
	if err := resp.ReadFrom(answer[head:]); err != nil {
		return nil, fmt.Errorf("reading the versions of the server behind: %w", err)
	}
	for i := range resp.ApiKeys {
		switch k := &resp.ApiKeys[i]; kmsg.Key(k.ApiKey) {
		case kmsg.Produce:
			k.MaxVersion = ceilingProduce
		case kmsg.Fetch:
			k.MinVersion, k.MaxVersion = ceilingFetch, ceilingFetch
		}
	}
	return resp.AppendTo(answer[:head:head]), nil
}

func (x *ceilingConn) produce(req *kmsg.ProduceRequest) (kmsg.Response, error) {
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	for i := range req.Topics {
		t := kmsg.NewProduceResponseTopic()
		t.Topic = req.Topics[i].Topic
		for _, part := range req.Topics[i].Partitions {
			base, err := x.c.give(t.Topic, part.Partition, part.Records)
			if err != nil {
				return nil, fmt.Errorf("topic %s partition %d: %w", t.Topic, part.Partition, err)
			}
			p := kmsg.NewProduceResponseTopicPartition()
			p.Partition, p.BaseOffset, p.LogAppendTime, p.LogStartOffset = part.Partition, base, -1, 0
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp, nil
}

func (x *ceilingConn) listOffsets(req *kmsg.ListOffsetsRequest) kmsg.Response {
	const earliest = -2
	resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
	for i := range req.Topics {
		t := kmsg.NewListOffsetsResponseTopic()
		t.Topic = req.Topics[i].Topic
		for _, part := range req.Topics[i].Partitions {
			p := kmsg.NewListOffsetsResponseTopicPartition()
			p.Partition = part.Partition
			if p.Offset = 0; part.Timestamp != earliest {
				p.Offset, _, _ = x.c.end(t.Topic, part.Partition)
			}
			t.Partitions = append(t.Partitions, p)
		}
		resp.Topics = append(resp.Topics, t)
	}
	return resp
}

// fetchPart is what a partition gets in an answer of Fetch.
type fetchPart struct {
	index   int32
	from    int64
	end     int64
	batches int
}

// fetch answers with batches of the run, one partition after another: what is sent is
// free for the next.
func (x *ceilingConn) fetch(ctx context.Context, req *kmsg.FetchRequest) error {
	const (
		head  = 8 + 4 + 4             // length, correlation id, throttle time, topics
		topic = 2 + 4                 // lengths of the name and of the partitions
		part  = 4 + 2 + 8 + 8 + 4 + 4 // index, code, two ends, aborted, length
	)
	size, left, given := head, int(req.MaxBytes), 0
	parts := make([][]fetchPart, len(req.Topics))
	for i := range req.Topics {
		t := &req.Topics[i]
		size += topic + len(t.Topic)
		for j := range t.Partitions {
			asked := &t.Partitions[j]
			p := fetchPart{index: asked.Partition, from: asked.FetchOffset}
			var run *batchRun
			if p.end, run = x.run(t.Topic, p.index); run != nil && p.from < p.end {
				p.from -= p.from % run.records
				p.batches = int(min((p.end-p.from)/run.records, int64(min(left, int(asked.PartitionMaxBytes), ceilingRun)/len(run.batch))))
				if p.batches == 0 && given == 0 {
					p.batches = 1
				}
				given += p.batches
				left -= p.batches * len(run.batch)
				size += p.batches * len(run.batch)
			}
			size += part
			parts[i] = append(parts[i], p)
		}
	}
	if given == 0 {
		timer := time.NewTimer(time.Duration(req.MaxWaitMillis) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	w := x.out
	binary.BigEndian.PutUint32(w, uint32(size-4))
	w = binary.BigEndian.AppendUint32(w, 0)
	w = binary.BigEndian.AppendUint32(w, uint32(len(parts)))
	for i := range parts {
		name := req.Topics[i].Topic
		w = append(binary.BigEndian.AppendUint16(w, uint16(len(name))), name...)
		w = binary.BigEndian.AppendUint32(w, uint32(len(parts[i])))
		for _, p := range parts[i] {
			w = binary.BigEndian.AppendUint32(w, uint32(p.index))
			w = binary.BigEndian.AppendUint16(w, 0)
			w = binary.BigEndian.AppendUint64(w, uint64(p.end))
			w = binary.BigEndian.AppendUint64(w, uint64(p.end))
			w = binary.BigEndian.AppendUint32(w, 1<<32-1) // no list of aborted transactions
			if p.batches == 0 {
				w = binary.BigEndian.AppendUint32(w, 0)
				continue
			}
			run := x.runs[name]
			records := run.at(p.from, p.batches)
			w = binary.BigEndian.AppendUint32(w, uint32(len(records)))
			pieces := net.Buffers{w, records}
			if _, err := pieces.WriteTo(x.conn); err != nil {
				return err
			}
			w = w[:0]
		}
	}
	x.out = w
	_, err := x.conn.Write(w)
	return err
}

// run is the end of a partition and the batches of its topic, nil if it has none.
func (x *ceilingConn) run(topic string, partition int32) (end int64, run *batchRun) {
	end, batch, records := x.c.end(topic, partition)
	if records == 0 {
		return end, nil
	}
	run = x.runs[topic]
	if run == nil || &run.batch[0] != &batch[0] {
		run = &batchRun{batch: batch, records: records}
		for range max(ceilingRun/len(batch), 1) {
			run.all = append(run.all, batch...)
		}
		x.runs[topic] = run
	}
	return end, run
}

// at gives the first n batches offsets from one on.
func (r *batchRun) at(offset int64, n int) []byte {
	size := len(r.batch)
	for i := range n {
		binary.BigEndian.PutUint64(r.all[i*size+batchBase:], uint64(offset+int64(i)*r.records))
	}
	return r.all[:n*size]
}
