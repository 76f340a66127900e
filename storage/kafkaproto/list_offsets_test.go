package kafkaproto_test

import (
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/record"
)

func TestListOffsets(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "a", 1, nil)
	empty := r.topic(t, "empty", 1, nil)
	c := r.dial(t)
	for _, times := range [][]int64{{100, 300}, {900, 200}, {900, 500}} {
		ask[*kmsg.ProduceResponse](t, c, produceRequest(topic, -1, batch(t, record.None, nil, times...)), 9)
	}
	if _, err := r.store.DeleteRecords(ctxOf(t), topic.Partitions[0].ID, 1); err != nil {
		t.Fatal(err)
	}
	most := int32(1) // offsets, of version 0
	list := func(topic string, ts int64, version int16) kmsg.ListOffsetsResponseTopicPartition {
		req := kmsg.NewPtrListOffsetsRequest()
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = topic
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Timestamp, rp.MaxNumOffsets = ts, most
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		return ask[*kmsg.ListOffsetsResponse](t, c, req, version).Topics[0].Partitions[0]
	}
	for _, x := range []struct {
		what              string
		ts                int64
		version           int16
		offset, timestamp int64
		code              int16
	}{
		{"end", -1, 1, 6, -1, 0}, {"start", -2, 1, 1, -1, 0}, {"largest", -3, 7, 2, 900, 0},
		{"largest, too early a version", -3, 6, -1, -1, 35}, {"local start", -4, 8, 1, -1, 0}, {"remote end", -5, 9, -1, -1, 0},
		{"a time", 301, 10, 2, 900, 0}, {"time 0", 0, 4, 1, 300, 0}, {"after all", 901, 5, -1, -1, 0}, {"-9", -9, 10, -1, -1, 35},
	} {
		got := list("a", x.ts, x.version)
		if got.Offset != x.offset || got.Timestamp != x.timestamp || got.ErrorCode != x.code {
			t.Errorf("%s: offset %d, time %d, code %d; want %d, %d, %d", x.what, got.Offset, got.Timestamp, got.ErrorCode, x.offset, x.timestamp, x.code)
		}
	}
	if got := list(empty.Name, -3, 10); got.Offset != -1 || got.Timestamp != -1 || got.ErrorCode != 0 {
		t.Errorf("largest of an empty partition: %+v", got)
	}
	if got := list("none", -1, 10); got.ErrorCode != 3 {
		t.Errorf("no such topic: code %d, want 3", got.ErrorCode)
	}
	for _, x := range []struct {
		what, topic string
		ts          int64
		most        int32
		want        []int64
		code        int16
	}{
		{"the end", "a", -1, 1, []int64{6}, 0}, {"the end and what is before", "a", -1, 9, []int64{6, 1}, 0}, {"the start", "a", -2, 9, []int64{1}, 0},
		{"before a time", "a", 301, 9, []int64{2, 1}, 0}, {"before a time, one", "a", 301, 1, []int64{2}, 0}, {"before all", "a", 300, 9, nil, 0},
		{"after all", "a", 901, 9, []int64{6, 1}, 0}, {"none wanted", "a", -1, 0, nil, 0}, {"fewer than none", "a", -1, -1, nil, 0},
		{"an empty partition's end", empty.Name, -1, 9, []int64{0}, 0}, {"an empty partition, by time", empty.Name, 300, 9, nil, 0},
		{"largest, which version 0 has not", "a", -3, 9, nil, 35}, {"no such topic", "none", -1, 9, nil, 3},
	} {
		most = x.most
		if got := list(x.topic, x.ts, 0); !slices.Equal(got.OldStyleOffsets, x.want) || got.ErrorCode != x.code {
			t.Errorf("version 0, %s: %v, code %d; want %v, %d", x.what, got.OldStyleOffsets, got.ErrorCode, x.want, x.code)
		}
	}
}
