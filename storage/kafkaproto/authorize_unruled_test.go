package kafkaproto_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
)

// TestUnruledIsOpen: where what no rule is on is open, rules hold for clients that do
// not log in, and the first rule on a resource closes it to all whom none allows.
func TestUnruledIsOpen(t *testing.T) {
	r := start(t, kafkaproto.Options{Security: kafkaproto.Security{Access: newAccess(t), AllowUnruled: true}})
	ruled, open := r.topic(t, "t", 1, nil), r.topic(t, "open", 1, nil)
	c := r.dial(t)
	produced := func(topic topiclog.Topic) int16 {
		return ask[*kmsg.ProduceResponse](t, c, produceRequest(topic, -1, batch(t, record.None, nil, 1)), 9).Topics[0].Partitions[0].ErrorCode
	}
	operations := func(topic string) int32 {
		req := kmsg.NewPtrMetadataRequest()
		req.Topics, req.IncludeTopicAuthorizedOperations = []kmsg.MetadataRequestTopic{{Topic: &topic}}, true
		return ask[*kmsg.MetadataResponse](t, c, req, 9).Topics[0].AuthorizedOperations
	}
	producerID := func() int16 {
		return ask[*kmsg.InitProducerIDResponse](t, c, kmsg.NewPtrInitProducerIDRequest(), 4).ErrorCode
	}
	rule := func(perm acl.Permission, op acl.Operation, name string, pattern acl.Pattern) {
		t.Helper()
		req := kmsg.NewPtrCreateACLsRequest()
		n := kmsg.NewCreateACLsRequestCreation()
		n.ResourceType, n.ResourceName, n.ResourcePatternType = kmsg.ACLResourceType(acl.Topic), name, kmsg.ACLResourcePatternType(pattern)
		n.Principal, n.Host, n.Operation, n.PermissionType = "User:ANONYMOUS", "*", kmsg.ACLOperation(op), kmsg.ACLPermissionType(perm)
		req.Creations = append(req.Creations, n)
		if got := ask[*kmsg.CreateACLsResponse](t, c, req, 3).Results[0]; got.ErrorCode != 0 {
			t.Fatalf("making a rule: code %d", got.ErrorCode)
		}
	}
	if code := produced(ruled); code != 0 {
		t.Errorf("without a rule: code %d", code)
	}
	if got := operations("t"); got != acl.AllOperations(acl.Topic) {
		t.Errorf("without a rule: operations %b, want all", got)
	}
	rule(acl.Allow, acl.Read, "t", acl.Literal)
	if code := produced(ruled); code != 29 {
		t.Errorf("a rule that allows reading is on the topic: writing is code %d, want 29", code)
	}
	if got := operations("t"); got != 1<<acl.Read|1<<acl.Describe {
		t.Errorf("operations %b, want read and describe", got)
	}
	if code := produced(open); code != 0 {
		t.Errorf("another topic, which no rule is on: code %d", code)
	}
	if code := producerID(); code != 0 {
		t.Errorf("a producer's id, while there are topics without rules: code %d", code)
	}
	rule(acl.Allow, acl.Write, "t", acl.Prefixed)
	if code := produced(ruled); code != 0 {
		t.Errorf("a rule allows it: code %d", code)
	}
	rule(acl.Deny, acl.Write, "*", acl.Literal)
	if code := produced(open); code != 29 {
		t.Errorf("a rule denies writing every topic: code %d, want 29", code)
	}
}
