package kafkaproto

import (
	"net"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

// nodeOption is an option of this node that clients may read.
func nodeOption(name, value, def, doc string, kind kmsg.ConfigType) option {
	o := option{name: name, value: value, def: def, doc: doc, kind: kind, source: kmsg.ConfigSourceDefaultConfig, readOnly: true}
	if value != def {
		o.source = kmsg.ConfigSourceStaticBrokerConfig
	}
	return o
}

// listener names how this connection came in, as Kafka names its listeners, and the
// address that its clients are told.
func (c *call) listener() string {
	s := &c.s.opts.Security
	var name string
	switch login := len(s.Mechanisms) > 0; {
	case login && s.TLS != nil:
		name = "SASL_SSL"
	case login:
		name = "SASL_PLAINTEXT"
	case s.TLS != nil:
		name = "SSL"
	default:
		name = "PLAINTEXT"
	}
	host, port := c.s.address(c.conn)
	return name + "://" + net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// nodeOptions lists the options of this node as the client of c sees them.
func (c *call) nodeOptions() []option {
	return append([]option{nodeOption("advertised.listeners", c.listener(), "", "where clients like this one are told to connect to", kmsg.ConfigTypeList)}, c.s.options()...)
}

// options lists how the server was started under Kafka's names, in their order.
// Tools read them; none can be changed while the server runs.
func (s *Server) options() []option {
	num := func(n int64) string { return strconv.FormatInt(n, 10) }
	id := num(int64(s.opts.NodeID))
	topic := map[string]string{}
	for _, k := range topiclog.ConfigKeys() {
		topic[k.Name] = k.Default
	}
	return []option{
		nodeOption("auto.create.topics.enable", strconv.FormatBool(s.opts.AutoCreatePartitions > 0), "true", "make a missing topic that a client asks for", kmsg.ConfigTypeBoolean),
		nodeOption("broker.id", id, "-1", "number of the node", kmsg.ConfigTypeInt),
		nodeOption("compression.type", topic["compression.type"], "producer", "compression of topics that do not say", kmsg.ConfigTypeString),
		nodeOption("connections.max.idle.ms", num(s.opts.IdleTimeout.Milliseconds()), "600000", "a connection without requests is closed after this", kmsg.ConfigTypeLong),
		nodeOption("connections.max.reauth.ms", num(s.opts.Security.MaxSession.Milliseconds()), "0", "a client logs in again after this; 0: never", kmsg.ConfigTypeLong),
		nodeOption("default.replication.factor", "1", "1", "replicas of a topic that does not say", kmsg.ConfigTypeInt),
		nodeOption("delete.topic.enable", "true", "true", "topics can be deleted", kmsg.ConfigTypeBoolean),
		nodeOption("group.consumer.heartbeat.interval.ms", num(s.opts.ConsumerHeartbeat.Milliseconds()), "5000", "how often members of a consumer group say that they live", kmsg.ConfigTypeInt),
		nodeOption("group.consumer.session.timeout.ms", num(s.opts.ConsumerSession.Milliseconds()), "45000", "silence after which a member of a consumer group is out", kmsg.ConfigTypeInt),
		nodeOption("group.initial.rebalance.delay.ms", num(max(s.opts.InitialRebalanceDelay, 0).Milliseconds()), "3000", "how long a new group waits for more members", kmsg.ConfigTypeInt),
		nodeOption("group.max.session.timeout.ms", num(maxSession.Milliseconds()), "1800000", "longest session of a member", kmsg.ConfigTypeInt),
		nodeOption("group.max.size", num(maxMembers), "2147483647", "members of a group", kmsg.ConfigTypeInt),
		nodeOption("group.min.session.timeout.ms", num(minSession.Milliseconds()), "6000", "shortest session of a member", kmsg.ConfigTypeInt),
		nodeOption("log.cleanup.policy", topic["cleanup.policy"], "delete", "cleanup.policy of topics that do not say", kmsg.ConfigTypeList),
		nodeOption("log.dirs", s.opts.Store.Dir(), "", "the data directory", kmsg.ConfigTypeString),
		nodeOption("log.message.timestamp.type", topic["message.timestamp.type"], "CreateTime", "message.timestamp.type of topics that do not say", kmsg.ConfigTypeString),
		nodeOption("log.retention.bytes", topic["retention.bytes"], "-1", "retention.bytes of topics that do not say", kmsg.ConfigTypeLong),
		nodeOption("log.retention.ms", topic["retention.ms"], "604800000", "retention.ms of topics that do not say", kmsg.ConfigTypeLong),
		nodeOption("max.connections", num(int64(s.opts.MaxConnections)), "2147483647", "connections at once", kmsg.ConfigTypeInt),
		nodeOption("message.max.bytes", topic["max.message.bytes"], "1048588", "max.message.bytes of topics that do not say", kmsg.ConfigTypeInt),
		nodeOption("min.insync.replicas", "1", "1", "nodes that must have a record", kmsg.ConfigTypeInt),
		nodeOption("node.id", id, "-1", "number of the node", kmsg.ConfigTypeInt),
		nodeOption("num.partitions", num(int64(s.opts.DefaultPartitions)), "1", "partitions of a topic that does not say", kmsg.ConfigTypeInt),
		nodeOption("offset.metadata.max.bytes", num(maxCommitMetadata), "4096", "text beside a committed position", kmsg.ConfigTypeInt),
		nodeOption("offsets.retention.minutes", num(int64(s.opts.OffsetsRetention/time.Minute)), "10080", "how long positions stay that nobody uses; 0 and less: for ever", kmsg.ConfigTypeInt),
		nodeOption("socket.request.max.bytes", num(int64(s.opts.MaxProduceBytes)), "104857600", "largest request", kmsg.ConfigTypeInt),
	}
}

// groupOptions are the options of every consumer group.
func (s *Server) groupOptions() []option {
	ms := func(name string, d time.Duration, doc string) option {
		value := strconv.FormatInt(d.Milliseconds(), 10)
		return option{name: name, value: value, def: value, doc: doc, kind: kmsg.ConfigTypeInt, source: kmsg.ConfigSourceDefaultConfig, readOnly: true}
	}
	return []option{
		ms("consumer.heartbeat.interval.ms", s.opts.ConsumerHeartbeat, "how often members say that they live"),
		ms("consumer.session.timeout.ms", s.opts.ConsumerSession, "silence after which a member is out"),
	}
}

// alterBroker refuses changes of this node's options, which need a restart.
func (c *call) alterBroker(name string, options []string) error {
	if name != "" && name != strconv.Itoa(int(c.s.opts.NodeID)) {
		return coded(codeInvalidRequest, "there is no broker %q", name)
	}
	known := c.nodeOptions()
	for _, o := range options {
		found := false
		for i := range known {
			found = found || known[i].name == o
		}
		if !found {
			return coded(codeInvalidConfig, "unknown option %s of the broker", o)
		}
		return coded(codeInvalidRequest, "option %s cannot be changed while the server runs", o)
	}
	return nil
}
