package kafkaproto_test

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/kafkaproto"
)

// session is a raw client of a fetch session.
type session struct {
	t    testing.TB
	ask  func(*kmsg.FetchRequest) *kmsg.FetchResponse
	id   int32
	next int32
}

// fetch sends the partitions given in the session's epoch.
func (s *session) fetch(topics []kmsg.FetchRequestTopic, forgotten ...kmsg.FetchRequestForgottenTopic) *kmsg.FetchResponse {
	s.t.Helper()
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.SessionID, req.SessionEpoch = 1<<20, s.id, s.next
	req.Topics, req.ForgottenTopics = topics, forgotten
	return s.ask(req)
}

func TestFetchSession(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	a, b := r.topic(t, "a", 2, nil), r.topic(t, "b", 1, nil)
	r.produce(t, "a", 0, 2)
	for _, version := range []int16{7, 11, 12, 13, 17, 18} {
		c := r.dial(t)
		st, err := r.store.State(a.Partitions[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		have := st.HighWatermark
		if st, err = r.store.State(b.Partitions[0].ID); err != nil {
			t.Fatal(err)
		}
		s := &session{t: t, ask: func(req *kmsg.FetchRequest) *kmsg.FetchResponse { return ask[*kmsg.FetchResponse](t, c, req, version) }}
		part := func(topic kmsg.FetchRequestTopic, index int32, offset int64) kmsg.FetchRequestTopic {
			p := kmsg.NewFetchRequestTopicPartition()
			p.Partition, p.FetchOffset, p.PartitionMaxBytes = index, offset, 1<<20
			topic.Partitions = append(topic.Partitions, p)
			return topic
		}
		ta, tb := kmsg.FetchRequestTopic{Topic: "a", TopicID: a.ID}, kmsg.FetchRequestTopic{Topic: "b", TopicID: b.ID}
		full := s.fetch([]kmsg.FetchRequestTopic{part(part(ta, 0, have), 1, 0), part(tb, 0, st.HighWatermark)})
		if full.ErrorCode != 0 || full.SessionID == 0 || len(full.Topics) != 2 || len(full.Topics[0].Partitions) != 2 {
			t.Fatalf("version %d: a full fetch: %+v", version, full)
		}
		s.id, s.next = full.SessionID, 1
		if got := s.fetch(nil); got.ErrorCode != 0 || got.SessionID != s.id || len(got.Topics) != 0 {
			t.Fatalf("version %d: nothing is new: %+v", version, got)
		}
		s.next++
		r.produce(t, "a", 0, 1)
		got := s.fetch(nil)
		if len(got.Topics) != 1 || len(got.Topics[0].Partitions) != 1 || got.Topics[0].Partitions[0].HighWatermark != have+1 || len(got.Topics[0].Partitions[0].RecordBatches) == 0 {
			t.Fatalf("version %d: one partition has a record: %+v", version, got)
		}
		s.next++
		// The position moves on; the other topic is read no more.
		got = s.fetch([]kmsg.FetchRequestTopic{part(ta, 0, have+1)}, kmsg.FetchRequestForgottenTopic{Topic: "b", TopicID: b.ID, Partitions: []int32{0}})
		if got.ErrorCode != 0 || len(got.Topics) != 0 {
			t.Fatalf("version %d: read up to the end: %+v", version, got)
		}
		s.next++
		r.produce(t, "b", 0, 1)
		if got = s.fetch(nil); len(got.Topics) != 0 {
			t.Fatalf("version %d: b was forgotten: %+v", version, got)
		}
		s.next++
		// An error is told each time, and then the bounds again.
		for range 2 {
			got = s.fetch([]kmsg.FetchRequestTopic{part(ta, 0, have+9)})
			if len(got.Topics) != 1 || got.Topics[0].Partitions[0].ErrorCode != 1 {
				t.Fatalf("version %d: beyond the end: %+v", version, got)
			}
			s.next++
		}
		got = s.fetch([]kmsg.FetchRequestTopic{part(ta, 0, have+1)})
		if len(got.Topics) != 1 || got.Topics[0].Partitions[0].ErrorCode != 0 || got.Topics[0].Partitions[0].HighWatermark != have+1 {
			t.Fatalf("version %d: after the error: %+v", version, got)
		}
		old := s.next
		s.next = 77
		if got = s.fetch(nil); got.ErrorCode != 71 || got.SessionID != 0 {
			t.Errorf("version %d: another epoch: code %d, want 71", version, got.ErrorCode)
		}
		s.next = old + 1
		s.id ^= 1 << 20
		if got = s.fetch(nil); got.ErrorCode != 70 {
			t.Errorf("version %d: another session: code %d, want 70", version, got.ErrorCode)
		}
		s.id ^= 1 << 20
		// The other way to name topics.
		other := int16(12)
		if version < 13 {
			other = 13
		}
		req := kmsg.NewPtrFetchRequest()
		req.MaxBytes, req.SessionID, req.SessionEpoch = 1<<20, s.id, s.next
		if got := ask[*kmsg.FetchResponse](t, c, req, other); got.ErrorCode != 106 {
			t.Errorf("version %d: topics named otherwise: code %d, want 106", version, got.ErrorCode)
		}
		// A final fetch ends it.
		last := s.next
		s.next = -1
		if got = s.fetch([]kmsg.FetchRequestTopic{part(ta, 1, 0)}); got.ErrorCode != 0 || got.SessionID != 0 || len(got.Topics) != 1 {
			t.Errorf("version %d: the final fetch: %+v", version, got)
		}
		s.next = last
		if got = s.fetch(nil); got.ErrorCode != 70 {
			t.Errorf("version %d: after it: code %d, want 70", version, got.ErrorCode)
		}
	}
}

// TestFetchSessionWaits: a fetch in a session waits for records as one in full.
func TestFetchSessionWaits(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	a := r.topic(t, "a", 1, nil)
	c := r.dial(t)
	full := fetchRequest(a, 0, 0, 1<<20)
	full.SessionEpoch = 0
	first := ask[*kmsg.FetchResponse](t, c, full, 13)
	next := kmsg.NewPtrFetchRequest()
	next.MaxWaitMillis, next.MinBytes, next.MaxBytes, next.SessionID, next.SessionEpoch = int32(time.Minute.Milliseconds()), 1, 1<<20, first.SessionID, 1
	if _, err := c.Write(frame(next, 13)); err != nil {
		t.Fatal(err)
	}
	r.produce(t, "a", 0, 1)
	resp := kmsg.NewPtrFetchResponse()
	resp.SetVersion(13)
	if err := resp.ReadFrom(receive(t, c)[5:]); err != nil {
		t.Fatal(err)
	}
	if len(resp.Topics) != 1 || resp.Topics[0].Partitions[0].HighWatermark != 1 {
		t.Errorf("%+v", resp)
	}
}
