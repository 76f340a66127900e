package kafkaproto_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// scribe is an idempotent producer on connections of its own, which it cuts now and then
// with requests under way.
type scribe struct {
	r      *rig
	topic  topiclog.Topic
	random *rand.Rand
	id     int64
	next   []int32 // sequence, by partition
	// again is what was sent and not answered: it goes out as it was.
	again []sentBatch
	// at has the offsets that were answered, by partition and sequence.
	at map[[2]int32]int64
	c  net.Conn
}

// sentBatch is a batch of a request; want is the code of its answer, -1 for an offset.
type sentBatch struct {
	partition, seq int32
	raw            []byte
	want           int16
}

// text is what a scribe writes: long ones, so that requests have different sizes.
func (s *scribe) text(partition, seq int32) string {
	return fmt.Sprintf("%d/%d/%d %0*d", s.id, partition, seq, int(seq%7)*97+1, 0)
}

func (s *scribe) batch(partition, seq int32) ([]byte, error) {
	var b record.Builder
	b.SetProducer(s.id, 0, seq, false)
	if err := b.Append(1000, []byte("k"), []byte(s.text(partition, seq)), nil); err != nil {
		return nil, err
	}
	raw, err := b.Build()
	return append([]byte(nil), raw...), err
}

// request makes up batches for some partitions: mostly the next ones, sometimes one that
// was answered, one too far ahead, one that is damaged, and a partition that is not there.
func (s *scribe) request() (*kmsg.ProduceRequest, []sentBatch, error) {
	list := s.again
	s.again = nil
	taken := map[int32]bool{}
	for _, x := range list {
		taken[x.partition] = true
	}
	for partition := range int32(len(s.next)) {
		if taken[partition] || s.random.IntN(3) == 0 {
			continue
		}
		x := sentBatch{partition: partition, seq: s.next[partition], want: -1}
		switch n := s.random.IntN(12); {
		case n == 0 && x.seq > 0:
			x.seq--
		case n == 1 && x.seq > 0:
			x.seq, x.want = x.seq+3, 45
		case n == 2:
			x.want = 2
		case n == 3:
			x.partition, x.want = int32(len(s.next)), 3
		default:
			s.next[partition]++
		}
		var err error
		if x.raw, err = s.batch(x.partition, x.seq); err != nil {
			return nil, nil, err
		}
		if x.want == 2 {
			x.raw[len(x.raw)-1] ^= 1
		}
		list = append(list, x)
	}
	req := kmsg.NewPtrProduceRequest()
	req.Acks = -1
	rt := kmsg.NewProduceRequestTopic()
	rt.Topic, rt.TopicID = s.topic.Name, s.topic.ID
	for _, x := range list {
		rp := kmsg.NewProduceRequestTopicPartition()
		rp.Partition, rp.Records = x.partition, x.raw
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	return req, list, nil
}

// round sends a request and compares its answer, or cuts the connection.
func (s *scribe) round(cut bool) error {
	if s.c == nil {
		c, err := net.Dial("tcp", s.r.addr)
		if err != nil {
			return err
		}
		s.c = c
		c.SetDeadline(time.Now().Add(time.Minute))
	}
	req, list, err := s.request()
	if err != nil {
		return err
	}
	if _, err := s.c.Write(frame(req, 9)); err != nil {
		return err
	}
	if cut {
		s.c.Close()
		s.c = nil
		for _, x := range list {
			if x.want == -1 && x.seq == s.next[x.partition]-1 && !s.answered(x) {
				s.again = append(s.again, x)
			}
		}
		return nil
	}
	var size [4]byte
	if _, err := io.ReadFull(s.c, size[:]); err != nil {
		return err
	}
	b := make([]byte, binary.BigEndian.Uint32(size[:]))
	if _, err := io.ReadFull(s.c, b); err != nil {
		return err
	}
	resp := req.ResponseKind().(*kmsg.ProduceResponse)
	if err := resp.ReadFrom(b[5:]); err != nil {
		return err
	}
	if len(resp.Topics) != 1 || len(resp.Topics[0].Partitions) != len(list) || resp.Topics[0].Topic != s.topic.Name {
		return fmt.Errorf("an answer of another request: %+v", resp)
	}
	for i, x := range list {
		p := &resp.Topics[0].Partitions[i]
		if p.Partition != x.partition || max(x.want, 0) != p.ErrorCode || (x.want == -1) != (p.BaseOffset >= 0) {
			return fmt.Errorf("partition %d sequence %d: answered %+v, want code %d", x.partition, x.seq, p, x.want)
		}
		if x.want != -1 {
			continue
		}
		key := [2]int32{x.partition, x.seq}
		if at, ok := s.at[key]; ok && at != p.BaseOffset {
			return fmt.Errorf("partition %d sequence %d: offset %d, and %d before", x.partition, x.seq, p.BaseOffset, at)
		}
		s.at[key] = p.BaseOffset
	}
	return nil
}

func (s *scribe) answered(x sentBatch) bool {
	_, ok := s.at[[2]int32{x.partition, x.seq}]
	return ok
}

// TestRequestsKeepApart: requests of many connections at once, refused and repeated ones
// and those of connections that end meanwhile among them, use the same memory one after
// the other; each answer is that of its request, and the log has each batch once, where
// its answer says.
func TestRequestsKeepApart(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	r := start(t, kafkaproto.Options{})
	const partitions, scribes, rounds = 8, 6, 150
	topic := r.topic(t, "t", partitions, nil)
	all := make([]*scribe, scribes)
	var wg sync.WaitGroup
	for i := range all {
		s := &scribe{r: r, topic: topic, random: rand.New(rand.NewPCG(seed, uint64(i))), id: int64(1000 + i), next: make([]int32, partitions), at: map[[2]int32]int64{}}
		all[i] = s
		wg.Go(func() {
			for n := range rounds {
				if err := s.round(n < rounds-1 && s.random.IntN(8) == 0); err != nil {
					t.Errorf("scribe %d round %d: %v", i, n, err)
					return
				}
			}
			s.c.Close()
		})
	}
	wg.Wait()
	for partition := range int32(partitions) {
		got := map[int64]string{}
		end := int64(0)
		for {
			l, err := r.store.Fetch(context.Background(), topiclog.FetchRequest{Partition: topic.Partitions[partition].ID, Offset: end})
			if err != nil {
				t.Fatal(err)
			}
			if len(l.Chunks) == 0 {
				l.Release()
				break
			}
			for _, chunk := range l.Chunks {
				for len(chunk) > 0 {
					b, rest, err := record.Split(chunk)
					if err != nil {
						t.Fatal(err)
					}
					var d record.Decoder
					it, err := d.Records(b)
					if err != nil {
						t.Fatal(err)
					}
					for rec := (record.Record{}); it.Next(&rec); {
						got[rec.Offset] = string(rec.Value)
					}
					d.Close()
					chunk = rest
				}
			}
			end = l.NextOffset
			l.Release()
		}
		total := 0
		for _, s := range all {
			for seq := range s.next[partition] {
				at, ok := s.at[[2]int32{partition, seq}]
				if !ok || got[at] != s.text(partition, seq) {
					t.Errorf("partition %d: scribe %d was told %d (%v) for sequence %d, and %.40q is there", partition, s.id, at, ok, seq, got[at])
				}
			}
			total += int(s.next[partition])
		}
		if total != len(got) {
			t.Errorf("partition %d has %d records, want %d", partition, len(got), total)
		}
	}
}
