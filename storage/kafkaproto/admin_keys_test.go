package kafkaproto_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// startOn is start on a file system that may hold a store.
func startOn(t testing.TB, fs vfs.FS, o kafkaproto.Options) *rig {
	t.Helper()
	store, err := topiclog.Open(topiclog.Options{FS: fs, Dir: "data", ReserveBytes: -1, RetentionInterval: -1, PoisonReleased: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	o.Store, o.PoisonReleased = store, true
	s, err := kafkaproto.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{store: store, server: s, addr: l.Addr().String(), served: make(chan error, 2)}
	go func() { r.served <- s.Serve(l) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		s.Shutdown(ctx)
	})
	return r
}

func ptr[T any](v T) *T { return &v }

func (r *rig) produce(t testing.TB, topic string, partition int32, n int) {
	t.Helper()
	c := r.client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	for i := range n {
		if err := c.ProduceSync(ctxOf(t), &kgo.Record{Topic: topic, Partition: partition, Value: []byte(strconv.Itoa(i))}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDescribeCluster(t *testing.T) {
	r := start(t, kafkaproto.Options{NodeID: 7})
	c := r.dial(t)
	_, port, err := net.SplitHostPort(r.addr)
	if err != nil {
		t.Fatal(err)
	}
	metadata := ask[*kmsg.MetadataResponse](t, c, kmsg.NewPtrMetadataRequest(), 9)
	for version := int16(0); version <= 2; version++ {
		req := kmsg.NewPtrDescribeClusterRequest()
		req.EndpointType = 1
		got := ask[*kmsg.DescribeClusterResponse](t, c, req, version)
		if got.ErrorCode != 0 || got.ControllerID != 7 || len(got.Brokers) != 1 || got.Brokers[0].NodeID != 7 || strconv.Itoa(int(got.Brokers[0].Port)) != port {
			t.Errorf("version %d: %+v", version, got)
		}
		if got.ClusterID != *metadata.ClusterID {
			t.Errorf("version %d: cluster %s, metadata says %s", version, got.ClusterID, *metadata.ClusterID)
		}
	}
	req := kmsg.NewPtrDescribeClusterRequest()
	req.EndpointType = 2
	if got := ask[*kmsg.DescribeClusterResponse](t, c, req, 1); got.ErrorCode != 114 {
		t.Errorf("an endpoint of controllers: code %d, want 114", got.ErrorCode)
	}
}

func TestLogDirs(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	r.topic(t, "a", 2, nil)
	r.topic(t, "b", 1, nil)
	r.produce(t, "a", 1, 3)
	c := r.dial(t)
	for version := int16(1); version <= 4; version++ {
		all := ask[*kmsg.DescribeLogDirsResponse](t, c, kmsg.NewPtrDescribeLogDirsRequest(), version)
		if len(all.Dirs) != 1 || all.Dirs[0].Dir != r.store.Dir() || len(all.Dirs[0].Topics) != 2 {
			t.Fatalf("version %d: %+v", version, all)
		}
		if p := all.Dirs[0].Topics[0].Partitions; len(p) != 2 || p[0].Size != 0 || p[1].Size < 3*61 {
			t.Errorf("version %d: sizes %+v", version, p)
		}
		req := kmsg.NewPtrDescribeLogDirsRequest()
		req.Topics = []kmsg.DescribeLogDirsRequestTopic{{Topic: "a", Partitions: []int32{1, 9}}, {Topic: "none", Partitions: []int32{0}}}
		some := ask[*kmsg.DescribeLogDirsResponse](t, c, req, version)
		if ts := some.Dirs[0].Topics; len(ts) != 1 || len(ts[0].Partitions) != 1 || ts[0].Partitions[0].Partition != 1 {
			t.Errorf("version %d: asked for one partition that is there: %+v", version, ts)
		}
	}
	for version := int16(1); version <= 2; version++ {
		req := kmsg.NewPtrAlterReplicaLogDirsRequest()
		req.Dirs = []kmsg.AlterReplicaLogDirsRequestDir{
			{Dir: r.store.Dir(), Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: "a", Partitions: []int32{0, 5}}}},
			{Dir: "/elsewhere", Topics: []kmsg.AlterReplicaLogDirsRequestDirTopic{{Topic: "b", Partitions: []int32{0}}}},
		}
		got := ask[*kmsg.AlterReplicaLogDirsResponse](t, c, req, version)
		codes := []int16{got.Topics[0].Partitions[0].ErrorCode, got.Topics[0].Partitions[1].ErrorCode, got.Topics[1].Partitions[0].ErrorCode}
		if !slices.Equal(codes, []int16{0, 3, 57}) {
			t.Errorf("version %d: codes %v, want 0, 3, 57", version, codes)
		}
	}
}

// TestAlterConfigs: options change all or none, durably, and act.
func TestAlterConfigs(t *testing.T) {
	mem := vfs.NewMem()
	r := startOn(t, mem, kafkaproto.Options{})
	topic := r.topic(t, "a", 1, map[string]string{"retention.ms": "1000"})
	c := r.dial(t)
	incremental := func(kind kmsg.ConfigResourceType, name string, check bool, configs ...kmsg.IncrementalAlterConfigsRequestResourceConfig) int16 {
		t.Helper()
		req := kmsg.NewPtrIncrementalAlterConfigsRequest()
		req.ValidateOnly = check
		req.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kind, ResourceName: name, Configs: configs}}
		one := ask[*kmsg.IncrementalAlterConfigsResponse](t, c, req, 0).Resources[0].ErrorCode
		if check {
			if two := ask[*kmsg.IncrementalAlterConfigsResponse](t, c, req, 1).Resources[0].ErrorCode; two != one {
				t.Errorf("code %d in version 0, %d in version 1", one, two)
			}
		}
		return one
	}
	const set, del, add, sub = kmsg.IncrementalAlterConfigOpSet, kmsg.IncrementalAlterConfigOpDelete, kmsg.IncrementalAlterConfigOpAppend, kmsg.IncrementalAlterConfigOpSubtract
	opt := func(name string, op kmsg.IncrementalAlterConfigOp, v *string) kmsg.IncrementalAlterConfigsRequestResourceConfig {
		return kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: name, Op: op, Value: v}
	}
	const tp = kmsg.ConfigResourceTypeTopic
	config := func() map[string]string {
		now, err := r.store.Topic("a")
		if err != nil {
			t.Fatal(err)
		}
		return now.Config
	}
	for _, x := range []struct {
		what string
		got  int16
		want int16
	}{
		{"unknown option", incremental(tp, "a", true, opt("retention.minutes", set, ptr("1"))), 40},
		{"bad value", incremental(tp, "a", true, opt("segment.bytes", set, ptr("1"))), 40},
		{"one good, one bad", incremental(tp, "a", false, opt("retention.ms", set, ptr("5")), opt("cleanup.policy", set, ptr("keep"))), 40},
		{"named twice", incremental(tp, "a", true, opt("retention.ms", set, ptr("5")), opt("retention.ms", del, nil)), 42},
		{"no value", incremental(tp, "a", true, opt("retention.ms", set, nil)), 42},
		{"no such operation", incremental(tp, "a", true, opt("retention.ms", 9, ptr("1"))), 42},
		{"adding to a number", incremental(tp, "a", true, opt("retention.ms", add, ptr("1"))), 40},
		{"two nodes", incremental(tp, "a", true, opt("min.insync.replicas", set, ptr("2"))), 40},
		{"unknown topic", incremental(tp, "none", true, opt("retention.ms", set, ptr("1"))), 3},
		{"this node", incremental(kmsg.ConfigResourceTypeBroker, "1", true, opt("num.partitions", set, ptr("1"))), 42},
		{"this node, unknown option", incremental(kmsg.ConfigResourceTypeBroker, "1", true, opt("nothing", set, ptr("1"))), 40},
		{"another node", incremental(kmsg.ConfigResourceTypeBroker, "2", true, opt("num.partitions", set, ptr("1"))), 42},
		{"a logger", incremental(kmsg.ConfigResourceTypeBrokerLogger, "1", true, opt("root", set, ptr("INFO"))), 42},
		{"checked only", incremental(tp, "a", true, opt("retention.ms", set, ptr("9"))), 0},
	} {
		if x.got != x.want {
			t.Errorf("%s: code %d, want %d", x.what, x.got, x.want)
		}
	}
	if got := config(); len(got) != 1 || got["retention.ms"] != "1000" {
		t.Errorf("after what was refused or only checked: %v", got)
	}
	if code := incremental(tp, "a", false, opt("cleanup.policy", add, ptr("compact")), opt("retention.ms", del, nil), opt("segment.ms", set, ptr("60000"))); code != 0 {
		t.Fatalf("code %d", code)
	}
	if got := config(); len(got) != 2 || got["cleanup.policy"] != "delete,compact" || got["segment.ms"] != "60000" {
		t.Errorf("options %v", got)
	}
	if code := incremental(tp, "a", false, opt("cleanup.policy", sub, ptr("compact"))); code != 0 || config()["cleanup.policy"] != "delete" {
		t.Errorf("taking from the list: code %d, %v", code, config())
	}
	for version := int16(0); version <= 2; version++ {
		req := kmsg.NewPtrAlterConfigsRequest()
		req.Resources = []kmsg.AlterConfigsRequestResource{
			{ResourceType: tp, ResourceName: "a", Configs: []kmsg.AlterConfigsRequestResourceConfig{{Name: "max.message.bytes", Value: ptr("100")}}},
			{ResourceType: tp, ResourceName: "x"}, {ResourceType: tp, ResourceName: "x"},
		}
		got := ask[*kmsg.AlterConfigsResponse](t, c, req, version).Resources
		if got[0].ErrorCode != 0 || got[1].ErrorCode != 42 || got[2].ErrorCode != 42 {
			t.Errorf("version %d: %+v", version, got)
		}
		if have := config(); len(have) != 1 || have["max.message.bytes"] != "100" {
			t.Errorf("version %d: options %v, want the one that was named", version, have)
		}
	}
	large := produceRequest(topic, -1, batch(t, record.None, make([]byte, 200), 1))
	if got := ask[*kmsg.ProduceResponse](t, c, large, 9).Topics[0].Partitions[0].ErrorCode; got != 10 {
		t.Errorf("a batch beyond max.message.bytes: code %d, want 10", got)
	}
	// What was answered is on disk: a machine that dies now has it.
	crashed := startOn(t, mem.CrashClone(vfs.CrashOptions{}), kafkaproto.Options{})
	now, err := crashed.store.Topic("a")
	if err != nil || len(now.Config) != 1 || now.Config["max.message.bytes"] != "100" {
		t.Errorf("after a crash: %v, %v", now.Config, err)
	}
}

// TestTimestampOptions: the store's clock in place of the producer's, and bounds.
func TestTimestampOptions(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	c := r.dial(t)
	now := time.Now().UnixMilli()
	send := func(topic topiclog.Topic, times ...int64) kmsg.ProduceResponseTopicPartition {
		return ask[*kmsg.ProduceResponse](t, c, produceRequest(topic, -1, batch(t, record.Gzip, []byte("k"), times...)), 9).Topics[0].Partitions[0]
	}
	log := r.topic(t, "log", 1, map[string]string{"message.timestamp.type": "LogAppendTime"})
	got := send(log, 5, 7)
	if got.ErrorCode != 0 || got.LogAppendTime < now || got.LogAppendTime > time.Now().UnixMilli() {
		t.Errorf("log-append time %d, want about %d: %+v", got.LogAppendTime, now, got)
	}
	cons := r.client(t, kgo.ConsumeTopics("log"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	fs := cons.PollFetches(ctxOf(t))
	if fs.Err() != nil || fs.NumRecords() != 2 {
		t.Fatalf("%d records, %v", fs.NumRecords(), fs.Err())
	}
	fs.EachRecord(func(rec *kgo.Record) {
		if rec.Timestamp.UnixMilli() != got.LogAppendTime || rec.Attrs.TimestampType() != 1 {
			t.Errorf("record at %d of type %d, want %d of type 1", rec.Timestamp.UnixMilli(), rec.Attrs.TimestampType(), got.LogAppendTime)
		}
	})
	create := r.topic(t, "create", 1, map[string]string{"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "60000"})
	for what, x := range map[string]struct {
		times []int64
		want  int16
	}{
		"now": {[]int64{now}, 0}, "old": {[]int64{now, now - 120_000}, 32}, "from the future": {[]int64{now + 120_000, now}, 32},
	} {
		if p := send(create, x.times...); p.ErrorCode != x.want || p.ErrorCode == 0 && p.LogAppendTime != -1 {
			t.Errorf("%s: %+v, want code %d", what, p, x.want)
		}
	}
	if p := send(r.topic(t, "default", 1, nil), 0, now+7_200_000); p.ErrorCode != 32 {
		t.Errorf("two hours in the future with the defaults: code %d, want 32", p.ErrorCode)
	}
}

func TestDescribeConfigsOfNodeAndGroup(t *testing.T) {
	r := start(t, kafkaproto.Options{DefaultPartitions: 6})
	r.topic(t, "a", 1, nil)
	c := r.dial(t)
	for version := int16(1); version <= 4; version++ {
		req := kmsg.NewPtrDescribeConfigsRequest()
		req.IncludeSynonyms, req.IncludeDocumentation = true, true
		req.Resources = []kmsg.DescribeConfigsRequestResource{
			{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: "1", ConfigNames: []string{"num.partitions", "log.retention.ms", "advertised.listeners"}},
			{ResourceType: kmsg.ConfigResourceTypeBroker, ResourceName: "9"},
			{ResourceType: kmsg.ConfigResourceTypeGroupConfig, ResourceName: "g"},
			{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: "a", ConfigNames: []string{"segment.bytes"}},
			{ResourceType: kmsg.ConfigResourceTypeBroker},
		}
		got := ask[*kmsg.DescribeConfigsResponse](t, c, req, version).Resources
		if n := got[0].Configs; len(n) != 3 || *n[0].Value != "PLAINTEXT://"+r.addr || *n[2].Value != "6" || !n[2].ReadOnly || n[2].Source != kmsg.ConfigSourceStaticBrokerConfig {
			t.Errorf("version %d: this node: %+v", version, got[0])
		}
		if got[1].ErrorCode != 42 || got[2].ErrorCode != 0 || len(got[2].Configs) != 2 || got[4].ErrorCode != 0 {
			t.Errorf("version %d: %+v", version, got[1:])
		}
		if s := got[3].Configs; len(s) != 1 || *s[0].Value != "1073741824" || version >= 3 && s[0].ConfigType != kmsg.ConfigTypeInt {
			t.Errorf("version %d: segment.bytes: %+v", version, s)
		}
	}
}

func TestListConfigResources(t *testing.T) {
	r := start(t, kafkaproto.Options{NodeID: 7})
	r.topic(t, "a", 1, nil)
	r.topic(t, "b", 1, nil)
	c := r.dial(t)
	for _, x := range []struct {
		version int16
		kinds   []int8
		want    []string
		code    int16
	}{
		{0, nil, nil, 0},
		{1, nil, []string{"a:2", "b:2", "7:4"}, 0},
		{1, []int8{4}, []string{"7:4"}, 0},
		{1, []int8{32, 16, 8}, nil, 0},
		{1, []int8{2, 99}, nil, 35},
	} {
		req := kmsg.NewPtrListConfigResourcesRequest()
		req.ResourceTypes = x.kinds
		got := ask[*kmsg.ListConfigResourcesResponse](t, c, req, x.version)
		var names []string
		for _, cr := range got.ConfigResources {
			names = append(names, fmt.Sprintf("%s:%d", cr.Name, cr.Type))
		}
		if got.ErrorCode != x.code || !slices.Equal(names, x.want) {
			t.Errorf("version %d, kinds %v: %q, code %d; want %q, %d", x.version, x.kinds, names, got.ErrorCode, x.want, x.code)
		}
	}
}

func TestDeleteRecords(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	r.topic(t, "a", 2, nil)
	r.topic(t, "compact", 1, map[string]string{"cleanup.policy": "compact"})
	r.topic(t, "__own", 1, nil)
	r.produce(t, "a", 0, 10)
	adm := kadm.NewClient(r.client(t))
	c := r.dial(t)
	for version := int16(0); version <= 2; version++ {
		for _, x := range []struct {
			topic     string
			partition int32
			before    int64
			low       int64
			code      int16
		}{
			{"a", 0, 4, 4, 0}, {"a", 0, 2, 4, 0}, {"a", 0, 11, -1, 1}, {"a", 0, -2, -1, 1}, {"a", 7, 0, -1, 3}, {"none", 0, 0, -1, 3}, {"compact", 0, 0, -1, 44}, {"__own", 0, 0, -1, 17}, {"a", 1, -1, 0, 0},
		} {
			req := kmsg.NewPtrDeleteRecordsRequest()
			req.Topics = []kmsg.DeleteRecordsRequestTopic{{Topic: x.topic, Partitions: []kmsg.DeleteRecordsRequestTopicPartition{{Partition: x.partition, Offset: x.before}}}}
			if got := ask[*kmsg.DeleteRecordsResponse](t, c, req, version).Topics[0].Partitions[0]; got.ErrorCode != x.code || got.LowWatermark != x.low {
				t.Errorf("version %d: %+v: %+v", version, x, got)
			}
		}
	}
	var all kadm.Offsets
	all.Add(kadm.Offset{Topic: "a", Partition: 0, At: -1})
	if got, err := adm.DeleteRecords(ctxOf(t), all); err != nil || got["a"][0].LowWatermark != 10 {
		t.Errorf("deleting all: %+v, %v", got, err)
	}
}

func TestOffsetForLeaderEpoch(t *testing.T) {
	mem := vfs.NewMem()
	first := startOn(t, mem, kafkaproto.Options{})
	topic := first.topic(t, "a", 1, map[string]string{"millrace.durability": "os"})
	first.produce(t, "a", 0, 5)
	st, err := first.store.State(topic.Partitions[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	old := st.LeaderEpoch
	if err := first.store.Flush(ctxOf(t)); err != nil {
		t.Fatal(err)
	}
	// An unclean end raises the epoch.
	r := startOn(t, mem.CrashClone(vfs.CrashOptions{}), kafkaproto.Options{})
	r.produce(t, "a", 0, 1)
	if st, err = r.store.State(topic.Partitions[0].ID); err != nil || st.LeaderEpoch <= old {
		t.Fatalf("epoch %d after %d, %v", st.LeaderEpoch, old, err)
	}
	history, err := r.store.EpochHistory(topic.Partitions[0].ID)
	if err != nil || len(history) != 2 {
		t.Fatalf("epochs %+v, %v", history, err)
	}
	c := r.dial(t)
	for version := int16(2); version <= 4; version++ {
		for _, x := range []struct {
			what           string
			partition      int32
			current, epoch int32
			code           int16
			wantEpoch      int32
			end            int64
		}{
			{"the old epoch ends with its last record", 0, -1, old, 0, old, 5},
			{"the current one", 0, st.LeaderEpoch, st.LeaderEpoch, 0, st.LeaderEpoch, st.HighWatermark},
			{"one of the future", 0, -1, st.LeaderEpoch + 1, 0, -1, -1},
			{"a client behind", 0, old, old, 74, -1, -1},
			{"a client ahead", 0, st.LeaderEpoch + 1, old, 75, -1, -1},
			{"no such partition", 3, -1, old, 3, -1, -1},
		} {
			req := kmsg.NewPtrOffsetForLeaderEpochRequest()
			req.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: "a", Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{{Partition: x.partition, CurrentLeaderEpoch: x.current, LeaderEpoch: x.epoch}}}}
			got := ask[*kmsg.OffsetForLeaderEpochResponse](t, c, req, version).Topics[0].Partitions[0]
			if got.ErrorCode != x.code || got.LeaderEpoch != x.wantEpoch || got.EndOffset != x.end {
				t.Errorf("version %d: %s: %+v, want code %d, epoch %d, end %d", version, x.what, got, x.code, x.wantEpoch, x.end)
			}
		}
	}
}

func TestDescribeTopicPartitions(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	for _, n := range []string{"c", "a", "b"} {
		r.topic(t, n, 3, nil)
	}
	c := r.dial(t)
	req := kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.ResponsePartitionLimit = 4
	type at struct {
		topic     string
		partition int32
	}
	var got []at
	pages := 0
	for {
		resp := ask[*kmsg.DescribeTopicPartitionsResponse](t, c, req, 0)
		pages++
		for _, rt := range resp.Topics {
			for _, p := range rt.Partitions {
				got = append(got, at{*rt.Topic, p.Partition})
				if p.LeaderID != 1 || !slices.Equal(p.ISR, []int32{1}) {
					t.Errorf("%+v", p)
				}
			}
		}
		if resp.NextCursor == nil {
			break
		}
		req.Cursor = &kmsg.DescribeTopicPartitionsRequestCursor{Topic: resp.NextCursor.Topic, Partition: resp.NextCursor.Partition}
	}
	want := []at{{"a", 0}, {"a", 1}, {"a", 2}, {"b", 0}, {"b", 1}, {"b", 2}, {"c", 0}, {"c", 1}, {"c", 2}}
	if !slices.Equal(got, want) || pages != 3 {
		t.Errorf("%d pages: %v", pages, got)
	}
	req = kmsg.NewPtrDescribeTopicPartitionsRequest()
	req.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: "none"}, {Topic: "b"}, {Topic: "x/y"}}
	req.ResponsePartitionLimit = 100
	resp := ask[*kmsg.DescribeTopicPartitionsResponse](t, c, req, 0)
	if len(resp.Topics) != 3 || *resp.Topics[0].Topic != "b" || resp.Topics[1].ErrorCode != 3 || resp.Topics[2].ErrorCode != 17 {
		t.Errorf("%+v", resp.Topics)
	}
}

// TestOneNode: what moves partitions and leaders between nodes has nothing to do.
func TestOneNode(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	r.topic(t, "a", 2, nil)
	c := r.dial(t)
	for version := int16(0); version <= 2; version++ {
		req := kmsg.NewPtrElectLeadersRequest()
		req.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: "a", Partitions: []int32{0, 5}}}
		p := ask[*kmsg.ElectLeadersResponse](t, c, req, version).Topics[0].Partitions
		if p[0].ErrorCode != 84 || p[1].ErrorCode != 3 {
			t.Errorf("version %d: %+v", version, p)
		}
		if all := ask[*kmsg.ElectLeadersResponse](t, c, kmsg.NewPtrElectLeadersRequest(), version); len(all.Topics) != 0 {
			t.Errorf("version %d: %+v", version, all)
		}
		quorum := kmsg.NewPtrDescribeQuorumRequest()
		quorum.Topics = []kmsg.DescribeQuorumRequestTopic{{Topic: "__cluster_metadata", Partitions: []kmsg.DescribeQuorumRequestTopicPartition{{}, {Partition: 1}}}}
		q := ask[*kmsg.DescribeQuorumResponse](t, c, quorum, version).Topics[0].Partitions
		if q[0].ErrorCode != 0 || q[0].LeaderID != 1 || len(q[0].CurrentVoters) != 1 || q[1].ErrorCode != 3 {
			t.Errorf("version %d: %+v", version, q)
		}
	}
	for version := int16(0); version <= 1; version++ {
		for _, x := range []struct {
			replicas []int32
			fixed    bool
			want     int16
		}{{[]int32{1}, false, 0}, {[]int32{2}, false, 39}, {[]int32{}, false, 39}, {nil, false, 85}, {[]int32{1, 2}, true, 38}} {
			if x.fixed && version == 0 {
				continue
			}
			req := kmsg.NewPtrAlterPartitionAssignmentsRequest()
			req.AllowReplicationFactorChange = !x.fixed
			req.Topics = []kmsg.AlterPartitionAssignmentsRequestTopic{{Topic: "a", Partitions: []kmsg.AlterPartitionAssignmentsRequestTopicPartition{{Replicas: x.replicas}}}}
			if got := ask[*kmsg.AlterPartitionAssignmentsResponse](t, c, req, version).Topics[0].Partitions[0].ErrorCode; got != x.want {
				t.Errorf("version %d: %+v: code %d", version, x, got)
			}
		}
		req := kmsg.NewPtrUpdateFeaturesRequest()
		req.FeatureUpdates = []kmsg.UpdateFeaturesRequestFeatureUpdate{{Feature: "metadata.version", MaxVersionLevel: 7}}
		if got := ask[*kmsg.UpdateFeaturesResponse](t, c, req, version).Results[0].ErrorCode; got != 95 {
			t.Errorf("version %d: code %d, want 95", version, got)
		}
	}
	if got := ask[*kmsg.ListPartitionReassignmentsResponse](t, c, kmsg.NewPtrListPartitionReassignmentsRequest(), 0); got.ErrorCode != 0 || len(got.Topics) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestOffsetDelete(t *testing.T) {
	mem := vfs.NewMem()
	r := startOn(t, mem, kafkaproto.Options{InitialRebalanceDelay: -1})
	topic := r.topic(t, "a", 2, nil)
	r.topic(t, "b", 1, nil)
	adm := kadm.NewClient(r.client(t))
	ctx := ctxOf(t)
	var os kadm.Offsets
	os.AddOffset("a", 0, 3, -1)
	os.AddOffset("a", 1, 4, -1)
	os.AddOffset("b", 0, 5, -1)
	if err := adm.CommitAllOffsets(ctx, "g", os); err != nil {
		t.Fatal(err)
	}
	c := r.dial(t)
	remove := func(group, topic string, partition int32) (int16, int16) {
		req := kmsg.NewPtrOffsetDeleteRequest()
		req.Group = group
		req.Topics = []kmsg.OffsetDeleteRequestTopic{{Topic: topic, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{Partition: partition}}}}
		resp := ask[*kmsg.OffsetDeleteResponse](t, c, req, 0)
		if resp.ErrorCode != 0 {
			return resp.ErrorCode, 0
		}
		return 0, resp.Topics[0].Partitions[0].ErrorCode
	}
	if top, _ := remove("nobody", "a", 0); top != 69 {
		t.Errorf("an unknown group: code %d, want 69", top)
	}
	if top, part := remove("g", "a", 9); top != 0 || part != 3 {
		t.Errorf("an unknown partition: codes %d, %d", top, part)
	}
	if top, part := remove("g", "a", 0); top != 0 || part != 0 {
		t.Errorf("codes %d, %d", top, part)
	}
	crashed := startOn(t, mem.CrashClone(vfs.CrashOptions{}), kafkaproto.Options{})
	if left := crashed.store.Cursors("g"); len(left) != 2 || left[0].Partition != topic.Partitions[1].ID {
		t.Errorf("after a crash: %+v, want the two positions that stay", left)
	}
	// A consumer that reads a keeps its positions there.
	member := r.client(t, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("a"))
	member.PollRecords(contextOf(t, 100*time.Millisecond), 1)
	for d, err := adm.DescribeGroups(ctx, "g"); err != nil || d["g"].State != "Stable"; d, err = adm.DescribeGroups(ctx, "g") {
		if ctx.Err() != nil {
			t.Fatal("the group does not become stable")
		}
	}
	if top, part := remove("g", "a", 1); top != 0 || part != 86 {
		t.Errorf("a topic that a member reads: codes %d, %d, want 86", top, part)
	}
	if top, part := remove("g", "b", 0); top != 0 || part != 0 {
		t.Errorf("another topic: codes %d, %d", top, part)
	}
	ask[*kmsg.JoinGroupResponse](t, c, func() *kmsg.JoinGroupRequest {
		req := joinRequest("other", "", nil, "x")
		req.ProtocolType = "connect"
		return req
	}(), 3)
	if top, _ := remove("other", "a", 0); top != 68 {
		t.Errorf("members of another protocol: code %d, want 68", top)
	}
}

func contextOf(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// TestGroupOfAJob: the group that a job reads by is the job's: nobody else commits,
// joins, forgets or deletes.
func TestGroupOfAJob(t *testing.T) {
	r := start(t, kafkaproto.Options{InitialRebalanceDelay: -1})
	topic := r.topic(t, "a", 1, nil)
	ctx := ctxOf(t)
	if err := r.store.Subscribe(ctx, topiclog.Subscription{Group: "g", Topic: topic.ID, Owner: "job clicks"}); err != nil {
		t.Fatal(err)
	}
	if err := r.store.CommitCursors(ctx, "g", []topiclog.Cursor{{Partition: topic.Partitions[0].ID, Offset: 7}}); err != nil {
		t.Fatal(err)
	}
	c := r.dial(t)
	for version := int16(2); version <= 8; version++ {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Group = "g"
		req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "a", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 3}}}}
		if got := ask[*kmsg.OffsetCommitResponse](t, c, req, version).Topics[0].Partitions[0].ErrorCode; got != 25 {
			t.Errorf("version %d: a commit from outside: code %d, want 25", version, got)
		}
	}
	if got := ask[*kmsg.JoinGroupResponse](t, c, joinRequest("g", "", nil, "range"), 5); got.ErrorCode != 23 {
		t.Errorf("joining: code %d, want 23", got.ErrorCode)
	}
	del := kmsg.NewPtrDeleteGroupsRequest()
	del.Groups = []string{"g"}
	if got := ask[*kmsg.DeleteGroupsResponse](t, c, del, 1); got.Groups[0].ErrorCode != 68 {
		t.Errorf("deleting: code %d, want 68", got.Groups[0].ErrorCode)
	}
	forget := kmsg.NewPtrOffsetDeleteRequest()
	forget.Group = "g"
	if got := ask[*kmsg.OffsetDeleteResponse](t, c, forget, 0); got.ErrorCode != 68 {
		t.Errorf("forgetting: code %d, want 68", got.ErrorCode)
	}
	if cur := r.store.Cursors("g"); len(cur) != 1 || cur[0].Offset != 7 {
		t.Errorf("positions %+v, want the job's", cur)
	}
}
