package kafkaproto_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/kafkaproto"
)

// TestCommitWithoutMembers: while a group has no members anybody commits with
// generation -1, whatever member id comes along: librdkafka's consumers of the newer
// protocol have one before they join, and when they never do.
func TestCommitWithoutMembers(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "t", 1, nil)
	c := r.dial(t)
	instance := "i"
	commit := func(version int16, group, member string, instance *string, generation int32) int16 {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Group, req.MemberID, req.InstanceID, req.Generation = group, member, instance, generation
		rt := kmsg.NewOffsetCommitRequestTopic()
		rt.Topic, rt.TopicID = topic.Name, topic.ID
		rp := kmsg.NewOffsetCommitRequestTopicPartition()
		rp.Offset = 1
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		return ask[*kmsg.OffsetCommitResponse](t, c, req, version).Topics[0].Partitions[0].ErrorCode
	}
	for version := int16(7); version <= 10; version++ {
		if code := commit(version, "new", "made-up", nil, -1); code != 0 {
			t.Errorf("version %d, an id of its own: code %d", version, code)
		}
		if code := commit(version, "new", "made-up", &instance, -1); code != 0 {
			t.Errorf("version %d, a static one: code %d", version, code)
		}
		if code := commit(version, "new", "made-up", nil, 3); code == 0 {
			t.Errorf("version %d: a member of a generation that never was commits", version)
		}
	}
	join := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	join.Group, join.MemberID, join.MemberEpoch, join.RebalanceTimeoutMillis = "full", "m", 0, 10_000
	join.SubscribedTopicNames, join.Topics = []string{"t"}, []kmsg.ConsumerGroupHeartbeatRequestTopic{}
	if got := ask[*kmsg.ConsumerGroupHeartbeatResponse](t, c, join, 1); got.ErrorCode != 0 {
		t.Fatalf("joining: code %d", got.ErrorCode)
	}
	if code := commit(9, "full", "made-up", nil, -1); code != 25 {
		t.Errorf("a group with a member: code %d, want 25", code)
	}
}
