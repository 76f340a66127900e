package kafkaproto_test

import (
	"fmt"
	"net"
	"reflect"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/access"
	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/authn"
	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// newAccess is an empty store of users and rules.
func newAccess(t testing.TB) *access.Store {
	t.Helper()
	s, err := access.Open(vfs.NewMem(), "access")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func addUser(t testing.TB, s *access.Store, user, password string, ms ...authn.Mechanism) {
	t.Helper()
	for _, m := range ms {
		c, err := authn.Derive(m, password, authn.MinIterations)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SetCredential(user, c); err != nil {
			t.Fatal(err)
		}
	}
}

// secured starts a server that wants a login by any mechanism.
func secured(t testing.TB, o kafkaproto.Options) (*rig, *access.Store) {
	t.Helper()
	a := newAccess(t)
	o.Security.Access, o.Security.Mechanisms = a, authn.Mechanisms()
	addUser(t, a, "admin", "admin-secret", authn.Mechanisms()...)
	o.Security.SuperUsers = append(o.Security.SuperUsers, "User:admin")
	return start(t, o), a
}

// login authenticates a raw connection by PLAIN.
func login(t testing.TB, c net.Conn, user, password string) {
	t.Helper()
	hs := kmsg.NewPtrSASLHandshakeRequest()
	hs.Mechanism = "PLAIN"
	if got := ask[*kmsg.SASLHandshakeResponse](t, c, hs, 1); got.ErrorCode != 0 {
		t.Fatalf("handshake: code %d", got.ErrorCode)
	}
	au := kmsg.NewPtrSASLAuthenticateRequest()
	au.SASLAuthBytes = []byte("\x00" + user + "\x00" + password)
	if got := ask[*kmsg.SASLAuthenticateResponse](t, c, au, 2); got.ErrorCode != 0 {
		t.Fatalf("login of %s: code %d", user, got.ErrorCode)
	}
}

// need is a permission.
type need struct {
	op   acl.Operation
	typ  acl.ResourceType
	name string
}

func onTopic(op acl.Operation) need   { return need{op, acl.Topic, "t"} }
func onGroup(op acl.Operation) need   { return need{op, acl.Group, "g"} }
func onTxn(op acl.Operation) need     { return need{op, acl.TransactionalID, "x"} }
func onCluster(op acl.Operation) need { return need{op, acl.Cluster, acl.ClusterName} }

// denial says what a key is denied with.
type denial struct {
	// code is the error somewhere in the answer; 0: the answer has nothing in it.
	code int16
	// needs are the permissions; each alone is not enough.
	needs []need
}

// denials says of every key that is served what it needs and what the lack of each
// permission looks like. A key that is not here makes the test fail: it has no
// rule that anybody has thought about. The values are from Kafka's documentation
// of its authorization.
func denials() map[int16][]denial {
	d := func(code int16, needs ...need) []denial { return []denial{{code, needs}} }
	return map[int16][]denial{
		0:  append(d(29, onTopic(acl.Write), onTxn(acl.Write)), d(53, onTxn(acl.Write), onTopic(acl.Write))...),
		1:  d(29, onTopic(acl.Read)),
		2:  d(29, onTopic(acl.Describe)),
		3:  d(29, onTopic(acl.Describe)),
		8:  append(d(30, onGroup(acl.Read), onTopic(acl.Read)), d(29, onTopic(acl.Read), onGroup(acl.Read))...),
		9:  append(d(30, onGroup(acl.Describe), onTopic(acl.Describe)), d(29, onTopic(acl.Describe), onGroup(acl.Describe))...),
		10: d(30, onGroup(acl.Describe)),
		11: d(30, onGroup(acl.Read)),
		12: d(30, onGroup(acl.Read)),
		13: d(30, onGroup(acl.Read)),
		14: d(30, onGroup(acl.Read)),
		15: d(30, onGroup(acl.Describe)),
		16: d(0, onGroup(acl.Describe)),
		17: nil,
		18: nil,
		19: d(29, need{acl.Create, acl.Topic, "new"}),
		20: d(29, onTopic(acl.Delete)),
		21: d(29, onTopic(acl.Delete)),
		22: d(53, onTxn(acl.Write)),
		23: d(29, onTopic(acl.Describe)),
		24: append(d(53, onTxn(acl.Write), onTopic(acl.Write)), d(29, onTopic(acl.Write), onTxn(acl.Write))...),
		25: append(d(53, onTxn(acl.Write), onGroup(acl.Read)), d(30, onGroup(acl.Read), onTxn(acl.Write))...),
		26: d(53, onTxn(acl.Write)),
		27: d(31, onCluster(acl.ClusterAction)),
		28: append(append(d(53, onTxn(acl.Write), onGroup(acl.Read), onTopic(acl.Read)), d(30, onGroup(acl.Read), onTxn(acl.Write), onTopic(acl.Read))...),
			d(29, onTopic(acl.Read), onTxn(acl.Write), onGroup(acl.Read))...),
		29: d(31, onCluster(acl.Describe)),
		30: d(31, onCluster(acl.Alter)),
		31: d(31, onCluster(acl.Alter)),
		32: d(29, onTopic(acl.DescribeConfigs)),
		33: d(29, onTopic(acl.AlterConfigs)),
		34: d(31, onCluster(acl.Alter)),
		35: d(31, onCluster(acl.Describe)),
		36: nil,
		37: d(29, onTopic(acl.Alter)),
		42: d(30, onGroup(acl.Delete)),
		43: d(31, onCluster(acl.Alter)),
		44: d(29, onTopic(acl.AlterConfigs)),
		45: d(31, onCluster(acl.Alter)),
		46: d(31, onCluster(acl.Describe)),
		47: append(d(30, onGroup(acl.Delete), onTopic(acl.Read)), d(29, onTopic(acl.Read), onGroup(acl.Delete))...),
		48: d(31, onCluster(acl.DescribeConfigs)),
		49: d(31, onCluster(acl.AlterConfigs)),
		50: d(31, onCluster(acl.Describe)),
		51: d(31, onCluster(acl.Alter)),
		55: d(31, onCluster(acl.Describe)),
		57: d(31, onCluster(acl.Alter)),
		60: nil, // the brokers' addresses are what Metadata tells everybody
		61: d(29, onTopic(acl.Read)),
		65: d(53, onTxn(acl.Describe)),
		66: d(0, onTxn(acl.Describe)),
		68: append(d(30, onGroup(acl.Read), onTopic(acl.Describe)), d(29, onTopic(acl.Describe), onGroup(acl.Read))...),
		69: d(30, onGroup(acl.Describe)),
		74: d(31, onCluster(acl.DescribeConfigs)),
		75: d(29, onTopic(acl.Describe)),
	}
}

// fill names topic t, group g and transactional id x in every field of a request
// that takes such a name, with one element in every list.
func fill(v reflect.Value, key int16, topic topiclog.Topic) {
	if d := v.Addr().MethodByName("Default"); d.IsValid() {
		d.Call(nil)
	}
	for i := range v.NumField() {
		f := v.Field(i)
		if !v.Type().Field(i).IsExported() || v.Type().Field(i).Name == "UnknownTags" || v.Type().Field(i).Name == "Version" {
			continue
		}
		switch f.Kind() {
		case reflect.Struct:
			fill(f, key, topic)
		case reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
			if e := f.Index(0); e.Kind() == reflect.Struct {
				fill(e, key, topic)
			} else if e.Kind() == reflect.String {
				e.SetString(nameFor(v.Type().Field(i).Name, key))
			}
		case reflect.String:
			f.SetString(nameFor(v.Type().Field(i).Name, key))
		case reflect.Pointer:
			if f.Type().Elem().Kind() == reflect.String {
				s := nameFor(v.Type().Field(i).Name, key)
				f.Set(reflect.ValueOf(&s))
			}
		case reflect.Array:
			f.Set(reflect.ValueOf(topic.ID).Convert(f.Type()))
		}
	}
}

func nameFor(field string, key int16) string {
	switch {
	case field == "TransactionalID" || field == "TransactionID" || field == "TransactionalIDs":
		return "x"
	case strings.HasPrefix(field, "Group") || strings.HasPrefix(field, "Coordinator"):
		return "g"
	case key == 19:
		return "new"
	case strings.HasPrefix(field, "Topic") || field == "SubscribedTopicNames":
		return "t"
	case key == 30 && field == "Principal":
		return "User:x"
	}
	return "t"
}

// requestFor makes a request of a key whose fields name t, g and x.
func requestFor(t *testing.T, key, version int16, topic topiclog.Topic) kmsg.Request {
	req := kmsg.RequestForKey(key)
	fill(reflect.ValueOf(req).Elem(), key, topic)
	switch r := req.(type) {
	case *kmsg.ProduceRequest:
		r.Acks = -1
		r.Topics[0].Partitions[0].Records = batch(t, record.None, nil, 1)
		if version < 3 {
			r.TransactionID = nil
		}
	case *kmsg.FetchRequest:
		r.SessionID, r.SessionEpoch, r.MaxWaitMillis, r.MaxBytes, r.ForgottenTopics = 0, -1, 0, 1<<20, nil
		r.Topics[0].Partitions[0].PartitionMaxBytes = 1 << 20
	case *kmsg.MetadataRequest:
		if version >= 12 {
			r.Topics[0].TopicID = [16]byte{}
		}
	case *kmsg.OffsetFetchRequest:
		r.Groups[0].MemberID, r.Groups[0].MemberEpoch = nil, -1
	case *kmsg.JoinGroupRequest:
		r.SessionTimeoutMillis, r.MemberID, r.InstanceID = 1, "", nil // an answer at once
	case *kmsg.DeleteTopicsRequest:
		r.Topics[0].TopicID = [16]byte{}
	case *kmsg.ConsumerGroupHeartbeatRequest:
		r.SubscribedTopicRegex, r.ServerAssignor, r.InstanceID = nil, nil, nil
	case *kmsg.DescribeConfigsRequest:
		r.Resources[0].ResourceType = kmsg.ConfigResourceTypeTopic
	case *kmsg.AlterConfigsRequest:
		r.Resources[0].ResourceType = kmsg.ConfigResourceTypeTopic
	case *kmsg.IncrementalAlterConfigsRequest:
		r.Resources[0].ResourceType = kmsg.ConfigResourceTypeTopic
	case *kmsg.ListGroupsRequest:
		r.StatesFilter, r.TypesFilter = nil, nil
	case *kmsg.ListTransactionsRequest:
		r.StateFilters, r.ProducerIDFilters, r.TransactionalIDPattern = nil, nil, nil
	case *kmsg.AddPartitionsToTxnRequest:
		if version >= 4 {
			t.Fatal("version 4 is for brokers: give it a case of its own")
		}
	case *kmsg.DescribeTopicPartitionsRequest:
		r.Cursor = nil
	}
	return req
}

// codes collects the error codes of an answer.
func codes(v reflect.Value, out map[int16]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			codes(v.Elem(), out)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name == "ErrorCode" {
				out[int16(v.Field(i).Int())] = true
			} else if v.Type().Field(i).IsExported() {
				codes(v.Field(i), out)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			codes(v.Index(i), out)
		}
	}
}

// TestEveryKeyIsDenied asks every key in every version, with each permission that
// it needs taken away in turn, and with all of them.
func TestEveryKeyIsDenied(t *testing.T) {
	table := denials()
	for _, a := range kafkaproto.Supported() {
		want, thought := table[a.Key]
		if !thought {
			t.Errorf("API key %d has no case: say in guards() who may use it, and here what who may not is told", a.Key)
			continue
		}
		for version := a.Min; version <= a.Max; version++ {
			for i, w := range want {
				t.Run(fmt.Sprintf("%s-%d-%d", kmsg.NameForKey(a.Key), version, i), func(t *testing.T) { checkDenial(t, a.Key, version, w) })
			}
		}
	}
}

// deniedWithoutCode are versions without a place for a code: the answer is empty.
func deniedWithoutCode(key, version int16) bool { return key == 35 && version < 3 }

func checkDenial(t *testing.T, key, version int16, w denial) {
	r, a := secured(t, kafkaproto.Options{})
	topic := r.topic(t, "t", 1, nil)
	if err := r.store.CommitCursors(ctxOf(t), "g", []topiclog.Cursor{{Partition: topic.Partitions[0].ID, Offset: 1}}); err != nil {
		t.Fatal(err)
	}
	addUser(t, a, "ann", "ann-secret", authn.Plain)
	grant := func(needs []need) {
		var rules []acl.Rule
		for _, n := range needs {
			rules = append(rules, acl.Rule{Type: n.typ, Name: n.name, Pattern: acl.Literal, Principal: "User:ann", Host: acl.Wildcard, Operation: n.op, Permission: acl.Allow})
		}
		if err := a.AddRules(rules); err != nil {
			t.Fatal(err)
		}
	}
	asks := func() (map[int16]bool, int) {
		c := r.dial(t)
		login(t, c, "ann", "ann-secret")
		req := requestFor(t, key, version, topic)
		if _, err := c.Write(frame(req, version)); err != nil {
			t.Fatal(err)
		}
		b := receive(t, c)[4:]
		resp := req.ResponseKind()
		if resp.IsFlexible() && resp.Key() != 18 {
			b = b[1:]
		}
		if err := resp.ReadFrom(b); err != nil {
			t.Fatal(err)
		}
		got := map[int16]bool{}
		codes(reflect.ValueOf(resp), got)
		return got, len(b)
	}
	grant(w.needs[1:])
	code := w.code
	if key == 0 && version < 3 && code == 53 {
		return // no transactional id yet
	}
	denied, before := asks()
	if code != 0 && !denied[code] && !deniedWithoutCode(key, version) {
		t.Fatalf("without permission to %s the codes are %v, want %d", w.needs[0].op, denied, code)
	}
	grant(w.needs)
	allowed, after := asks()
	for _, c := range []int16{29, 30, 31, 53} {
		if allowed[c] {
			t.Errorf("with %v the codes are %v", w.needs, allowed)
		}
	}
	if code == 0 && (key == 16 && after <= before || after < before) {
		t.Errorf("nothing was left out of the answer: %d bytes and %d", before, after)
	}
	if deniedWithoutCode(key, version) && after <= before {
		t.Errorf("the denied answer is as long as the other: %d and %d bytes", before, after)
	}
}

// TestWhatIsOpen: what needs no permission is served to who has none.
func TestWhatIsOpen(t *testing.T) {
	r, a := secured(t, kafkaproto.Options{})
	r.topic(t, "hidden", 1, nil)
	addUser(t, a, "ann", "ann-secret", authn.Plain)
	c := r.dial(t)
	login(t, c, "ann", "ann-secret")
	all := ask[*kmsg.MetadataResponse](t, c, kmsg.NewPtrMetadataRequest(), 1)
	if len(all.Brokers) != 1 || len(all.Topics) != 0 {
		t.Errorf("all topics: %d brokers, %d topics; want the broker alone", len(all.Brokers), len(all.Topics))
	}
	req := kmsg.NewPtrMetadataRequest()
	req.Topics = []kmsg.MetadataRequestTopic{{Topic: kmsg.StringPtr("hidden")}, {Topic: kmsg.StringPtr("missing")}}
	for v := int16(0); v <= 12; v++ {
		got := ask[*kmsg.MetadataResponse](t, c, req, v)
		if len(got.Brokers) != 1 || len(got.Topics) != 2 || got.Topics[0].ErrorCode != 29 || got.Topics[1].ErrorCode != 29 || len(got.Topics[0].Partitions) != 0 {
			t.Errorf("version %d: %+v; want one broker, and the same code 29 for a topic that exists and one that does not", v, got.Topics)
		}
	}
}

// TestAuthorizedOperations: what a client may do is told where it asks.
func TestAuthorizedOperations(t *testing.T) {
	r, a := secured(t, kafkaproto.Options{})
	r.topic(t, "t", 1, nil)
	addUser(t, a, "ann", "ann-secret", authn.Plain)
	if err := a.AddRules([]acl.Rule{{Type: acl.Topic, Name: "t", Pattern: acl.Literal, Principal: "User:ann", Host: "*", Operation: acl.Read, Permission: acl.Allow}}); err != nil {
		t.Fatal(err)
	}
	const none = -2147483648
	for user, want := range map[string][2]int32{"ann": {1<<acl.Read | 1<<acl.Describe, 0}, "admin": {acl.AllOperations(acl.Topic), acl.AllOperations(acl.Cluster)}} {
		c := r.dial(t)
		login(t, c, user, user+"-secret")
		req := kmsg.NewPtrMetadataRequest()
		if got := ask[*kmsg.MetadataResponse](t, c, req, 9); got.Topics[0].AuthorizedOperations != none || got.AuthorizedOperations != none {
			t.Errorf("%s did not ask: %d, %d", user, got.Topics[0].AuthorizedOperations, got.AuthorizedOperations)
		}
		req.IncludeTopicAuthorizedOperations, req.IncludeClusterAuthorizedOperations = true, true
		if got := ask[*kmsg.MetadataResponse](t, c, req, 9); got.Topics[0].AuthorizedOperations != want[0] || got.AuthorizedOperations != want[1] {
			t.Errorf("%s: topic %b, cluster %b; want %b", user, got.Topics[0].AuthorizedOperations, got.AuthorizedOperations, want)
		}
	}
}
