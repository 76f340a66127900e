package kafkaproto

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/topiclog"
)

// guard asks the access rules about a request before it is served. It takes what is
// denied out of the request, serves the rest, and puts the answers together; so
// handlers know nothing of rules. Every key has one, in guards.
type guard func(c *call, req kmsg.Request, serve func() kmsg.Response) kmsg.Response

// guarded makes a guard of a function over one key's messages.
func guarded[Q kmsg.Request, R kmsg.Response](f func(c *call, req Q, serve func() R) R) guard {
	return func(c *call, req kmsg.Request, serve func() kmsg.Response) kmsg.Response {
		return f(c, req.(Q), func() R { return serve().(R) })
	}
}

// everybody is for keys that tell everybody the same, or that a login is made of.
func everybody(_ *call, _ kmsg.Request, serve func() kmsg.Response) kmsg.Response { return serve() }

// inHandler is for keys that are not decoded by kmsg: their handlers ask, by
// topicFor and mayUseTransaction.
func inHandler(*call, kmsg.Request, func() kmsg.Response) kmsg.Response { return nil }

// guards are the rules of every key, Kafka's: operation on resource, and the error
// code when it is denied.
func guards() map[int16]guard {
	return map[int16]guard{
		0:  inHandler,                          // Write Topic 29, Write TransactionalId 53
		1:  inHandler,                          // Read Topic 29
		2:  guarded(guardListOffsets),          // Describe Topic 29
		3:  guarded(guardMetadata),             // Describe Topic 29, Create Topic or Cluster 29
		8:  guarded(guardOffsetCommit),         // Read Group 30, Read Topic 29
		9:  guarded(guardOffsetFetch),          // Describe Group 30, Describe Topic 29
		10: guarded(guardFindCoordinator),      // Describe Group 30, Describe TransactionalId 53
		11: guarded(guardJoinGroup),            // Read Group 30
		12: guarded(guardHeartbeat),            // Read Group 30
		13: guarded(guardLeaveGroup),           // Read Group 30
		14: guarded(guardSyncGroup),            // Read Group 30
		15: guarded(guardDescribeGroups),       // Describe Group 30
		16: guarded(guardListGroups),           // Describe Cluster, else Describe Group, left out
		17: everybody,                          //
		18: everybody,                          //
		19: guarded(guardCreateTopics),         // Create Cluster, else Create Topic 29
		20: guarded(guardDeleteTopics),         // Delete Topic 29
		21: guarded(guardDeleteRecords),        // Delete Topic 29
		22: guarded(guardInitProducerID),       // Write TransactionalId 53, or Write on any topic or IdempotentWrite Cluster 31
		23: guarded(guardOffsetForLeaderEpoch), // Describe Topic 29
		24: guarded(guardAddPartitionsToTxn),   // Write TransactionalId 53, Write Topic 29; from 4 ClusterAction 31
		25: guarded(guardAddOffsetsToTxn),      // Write TransactionalId 53, Read Group 30
		26: guarded(guardEndTxn),               // Write TransactionalId 53
		27: guarded(guardWriteTxnMarkers),      // Alter or ClusterAction Cluster 31
		28: guarded(guardTxnOffsetCommit),      // Write TransactionalId 53, Read Group 30, Read Topic 29
		29: guarded(guardDescribeACLs),         // Describe Cluster 31
		30: guarded(guardCreateACLs),           // Alter Cluster 31
		31: guarded(guardDeleteACLs),           // Alter Cluster 31
		32: guarded(guardDescribeConfigs),      // DescribeConfigs Topic 29, Group 30, Cluster 31
		33: guarded(guardAlterConfigs),         // AlterConfigs Topic 29, Group 30, Cluster 31
		34: guarded(guardAlterReplicaLogDirs),  // Alter Cluster 31
		35: guarded(guardDescribeLogDirs),      // Describe Cluster 31
		36: everybody,
		37: guarded(guardCreatePartitions),        // Alter Topic 29
		42: guarded(guardDeleteGroups),            // Delete Group 30
		43: guarded(guardElectLeaders),            // Alter Cluster 31
		44: guarded(guardIncrementalAlterConfigs), // AlterConfigs Topic 29, Group 30, Cluster 31
		45: guarded(guardAlterReassignments),      // Alter Cluster 31
		46: guarded(guardListReassignments),       // Describe Cluster 31
		47: guarded(guardOffsetDelete),            // Delete Group 30, Read Topic 29
		48: guarded(guardDescribeQuotas),          // DescribeConfigs Cluster 31
		49: guarded(guardAlterQuotas),             // AlterConfigs Cluster 31
		50: guarded(guardDescribeScram),           // Describe Cluster 31
		51: guarded(guardAlterScram),              // Alter Cluster 31
		55: guarded(guardDescribeQuorum),          // Describe Cluster 31
		57: guarded(guardUpdateFeatures),          // Alter Cluster 31
		60: guarded(guardDescribeCluster),         // open but for the operations
		61: guarded(guardDescribeProducers),       // Read Topic 29
		65: guarded(guardDescribeTransactions),    // Describe TransactionalId 53, Describe Topic, left out
		66: guarded(guardListTransactions),        // Describe TransactionalId, left out
		68: guarded(guardConsumerGroupHeartbeat),  // Read Group 30, Describe Topic 29
		69: guarded(guardConsumerGroupDescribe),   // Describe Group 30, Describe Topic 29
		74: guarded(guardListConfigResources),     // DescribeConfigs Cluster 31
		75: guarded(guardDescribeTopicPartitions), // Describe Topic 29
	}
}

// ask runs the guard of a key around its handler. A key without one is served to
// nobody for whom rules hold.
func (c *call) ask(req kmsg.Request, serve func() kmsg.Response) (kmsg.Response, bool) {
	g, ok := c.s.guards[req.Key()]
	switch {
	case ok:
		return g(c, req, serve), true
	case c.peer.trusted:
		return serve(), true
	}
	return nil, false
}

// split parts a list into what is allowed, never nil, and what is not.
func split[T any](list []T, allowed func(*T) bool) (kept, denied []T) {
	kept = make([]T, 0, len(list))
	for i := range list {
		if allowed(&list[i]) {
			kept = append(kept, list[i])
		} else {
			denied = append(denied, list[i])
		}
	}
	return kept, denied
}

// fresh is an empty response of a request's version.
func fresh[R kmsg.Response](req kmsg.Request) R { return req.ResponseKind().(R) }

// errDenied is the text beside the codes of what is denied.
var errDenied = "not allowed by the access rules"

// onTopic asks about a topic by name.
func (c *call) onTopic(op acl.Operation, name string) bool { return c.allowed(op, acl.Topic, name) }

// onGroup asks about a group.
func (c *call) onGroup(op acl.Operation, name string) bool { return c.allowed(op, acl.Group, name) }

// onTransaction asks about a transactional id.
func (c *call) onTransaction(op acl.Operation, id string) bool {
	return c.allowed(op, acl.TransactionalID, id)
}

// topicName is the name that a request gives a topic, by itself or by id; empty for
// an id that no topic has, which every key answers without telling anything.
func (c *call) topicName(name string, id [16]byte) string {
	if name != "" {
		return name
	}
	if t, err := c.s.opts.Store.TopicByID(id); err == nil {
		return t.Name
	}
	return ""
}

// onTopicOrID asks about a topic by name or id. An id that no topic has passes: the
// handler says that there is none.
func (c *call) onTopicOrID(op acl.Operation, name string, id [16]byte) bool {
	name = c.topicName(name, id)
	return name == "" || c.onTopic(op, name)
}

// topicFor is topicRef.target for a client that wants to do something: what it may
// not do is code 29, whether or not there is such a topic.
func (c *call) topicFor(t *topicRef, op acl.Operation) (topiclog.Target, int16) {
	if !t.byID && !c.onTopic(op, t.name) {
		return topiclog.Target{}, codeTopicDenied
	}
	target, code := t.target(c.s.opts.Store)
	if t.byID && code == codeNone && !c.onTopic(op, target.Name) {
		return topiclog.Target{}, codeTopicDenied
	}
	return target, code
}
