package kafkaproto_test

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/authn"
	"github.com/millrace/millrace/storage/kafkaproto"
)

// TestOtherFormsOfRequests: keys whose rule depends on what is in the request, in
// the forms that TestEveryKeyIsDenied does not send.
func TestOtherFormsOfRequests(t *testing.T) {
	r, a := secured(t, kafkaproto.Options{})
	r.topic(t, "t", 1, nil)
	addUser(t, a, "ann", "ann-secret", authn.Plain)
	c := r.dial(t)
	login(t, c, "ann", "ann-secret")
	grant := func(op acl.Operation, typ acl.ResourceType, name string) {
		t.Helper()
		if err := a.AddRules([]acl.Rule{{Type: typ, Name: name, Pattern: acl.Literal, Principal: "User:ann", Host: acl.Wildcard, Operation: op, Permission: acl.Allow}}); err != nil {
			t.Fatal(err)
		}
	}
	coordinator := func(version int16) int16 {
		req := kmsg.NewPtrFindCoordinatorRequest()
		req.CoordinatorType, req.CoordinatorKey, req.CoordinatorKeys = 1, "x", []string{"x"}
		resp := ask[*kmsg.FindCoordinatorResponse](t, c, req, version)
		if version < 4 {
			return resp.ErrorCode
		}
		return resp.Coordinators[0].ErrorCode
	}
	producer := func() int16 {
		return ask[*kmsg.InitProducerIDResponse](t, c, kmsg.NewPtrInitProducerIDRequest(), 4).ErrorCode
	}
	configs := func(kind kmsg.ConfigResourceType, name string) int16 {
		req := kmsg.NewPtrDescribeConfigsRequest()
		req.Resources = []kmsg.DescribeConfigsRequestResource{{ResourceType: kind, ResourceName: name}}
		return ask[*kmsg.DescribeConfigsResponse](t, c, req, 4).Resources[0].ErrorCode
	}
	for what, got := range map[string][2]int16{
		"coordinator of a transaction": {coordinator(3), 53}, "coordinators of transactions": {coordinator(4), 53},
		"an idempotent producer":  {producer(), 31},
		"options of the server":   {configs(kmsg.ConfigResourceTypeBroker, "1"), 31},
		"options of a group":      {configs(kmsg.ConfigResourceTypeGroupConfig, "g"), 30},
		"options of another kind": {configs(kmsg.ConfigResourceTypeBrokerLogger, "1"), 31},
	} {
		if got[0] != got[1] {
			t.Errorf("%s without a rule: code %d, want %d", what, got[0], got[1])
		}
	}
	grant(acl.Describe, acl.TransactionalID, "x")
	grant(acl.Write, acl.Topic, "t")
	grant(acl.DescribeConfigs, acl.Cluster, acl.ClusterName)
	grant(acl.DescribeConfigs, acl.Group, "g")
	for what, got := range map[string]int16{
		"coordinator of a transaction": coordinator(3), "coordinators of transactions": coordinator(4), "an idempotent producer": producer(),
		"options of the server": configs(kmsg.ConfigResourceTypeBroker, "1"), "options of a group": configs(kmsg.ConfigResourceTypeGroupConfig, "g"),
	} {
		if got != 0 {
			t.Errorf("%s with a rule: code %d", what, got)
		}
	}
	if err := a.AddRules([]acl.Rule{{Type: acl.Topic, Name: "*", Pattern: acl.Literal, Principal: acl.Everyone, Host: acl.Wildcard, Operation: acl.Write, Permission: acl.Deny}}); err != nil {
		t.Fatal(err)
	}
	if got := producer(); got != 31 {
		t.Errorf("an idempotent producer that may write nothing: code %d, want 31", got)
	}
	grant(acl.IdempotentWrite, acl.Cluster, acl.ClusterName)
	if got := producer(); got != 0 {
		t.Errorf("with idempotent-write: code %d", got)
	}
}
