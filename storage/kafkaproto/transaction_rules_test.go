package kafkaproto_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/topiclog"
)

// The answers of the coordinator in each version of its keys, and to each mistake.
func TestTransactionCodes(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "t", 2, nil)
	r.topic(t, "__own", 1, nil)
	c := r.dial(t)
	initTxn := func(version int16, id string, timeout int32, pid int64, epoch int16) *kmsg.InitProducerIDResponse {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis, req.ProducerID, req.ProducerEpoch = &id, timeout, pid, epoch
		return ask[*kmsg.InitProducerIDResponse](t, c, req, version)
	}
	add := func(version int16, id string, pid int64, epoch int16, names ...string) []int16 {
		req := kmsg.NewPtrAddPartitionsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch = id, pid, epoch
		for _, name := range names {
			rt := kmsg.NewAddPartitionsToTxnRequestTopic()
			rt.Topic, rt.Partitions = name, []int32{0}
			req.Topics = append(req.Topics, rt)
		}
		var out []int16
		for _, rt := range ask[*kmsg.AddPartitionsToTxnResponse](t, c, req, version).Topics {
			out = append(out, rt.Partitions[0].ErrorCode)
		}
		return out
	}
	end := func(version int16, id string, pid int64, epoch int16, commit bool) *kmsg.EndTxnResponse {
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = id, pid, epoch, commit
		return ask[*kmsg.EndTxnResponse](t, c, req, version)
	}
	produce := func(version int16, id string, pid int64, epoch int16, seq int32, partition int32) int16 {
		req := produceRequest(topic, -1, sequenced(t, pid, epoch, seq, true, 1))
		req.TransactionID = &id
		req.Topics[0].Partitions[0].Partition = partition
		return ask[*kmsg.ProduceResponse](t, c, req, version).Topics[0].Partitions[0].ErrorCode
	}
	want := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	want("empty id", initTxn(4, "", 1000, -1, -1).ErrorCode, 42)
	want("timeout 0", initTxn(4, "a", 0, -1, -1).ErrorCode, 50)
	want("timeout of an hour", initTxn(4, "a", 3_600_000, -1, -1).ErrorCode, 50)
	for version := int16(0); version <= 5; version++ {
		name := fmt.Sprint("v", version)
		a := initTxn(version, name, 1000, -1, -1)
		want(name, fmt.Sprint(a.ErrorCode, a.ProducerEpoch), "0 0")
		want(name+" again", initTxn(version, name, 1000, -1, -1).ProducerEpoch, 1)
	}
	a := initTxn(5, "a", 60_000, -1, -1)
	pid := a.ProducerID
	want("of another producer", initTxn(4, "a", 1000, pid+100, 0).ErrorCode, 90)
	want("of another producer, before 4", initTxn(3, "a", 1000, pid+100, 0).ErrorCode, 47)
	for version := int16(0); version <= 3; version++ {
		fenced := 90
		if version < 2 {
			fenced = 47
		}
		want("unknown transactional id", add(version, "none", pid, 0, "t"), "[49]")
		want("another producer id", add(version, "a", pid+1, 0, "t"), "[49]")
		want("another epoch", add(version, "a", pid, 7, "t"), fmt.Sprint([]int{fenced}))
		want("one topic missing", add(version, "a", pid, 0, "t", "none"), "[55 3]")
		want("the store's own topic", add(version, "a", pid, 0, "__own"), "[17]")
		want("ending as another producer", end(version, "a", pid+1, 0, true).ErrorCode, 49)
		want("ending in another epoch", end(version, "a", pid, 7, true).ErrorCode, fenced)
		want("commit of nothing", end(version, "a", pid, 0, true).ErrorCode, 48)
		want("abort of nothing", end(version, "a", pid, 0, false).ErrorCode, 48)
	}
	want("not added, version 9", produce(9, "a", pid, 0, 0, 0), 48)
	want("not added, version 11", produce(11, "a", pid, 0, 0, 0), 120)
	want("wrong epoch", produce(11, "a", pid, 5, 0, 0), 47)
	want("unknown id", produce(11, "none", pid, 0, 0, 0), 49)
	for version := int16(0); version <= 3; version++ {
		want("adding", add(version, "a", pid, 0, "t"), "[0]")
		want("producing", produce(3, "a", pid, 0, int32(version), 0), 0)
		want("to another partition", produce(11, "a", pid, 0, 0, 1), 120)
		got := end(version, "a", pid, 0, version%2 == 0)
		want("ending", fmt.Sprint(got.ErrorCode, got.ProducerID), "0 -1")
		want("ending again", end(version, "a", pid, 0, version%2 == 0).ErrorCode, 0)
		want("ending otherwise", end(version, "a", pid, 0, version%2 == 1).ErrorCode, 48)
	}
	// With KIP-890.
	want("unknown sequence with a new epoch", produce(12, "a", pid, 0, 5, 1), 45)
	want("joining", produce(12, "a", pid, 0, 0, 1), 0)
	got := end(5, "a", pid, 0, true)
	want("ending", fmt.Sprint(got.ErrorCode, got.ProducerID, got.ProducerEpoch), fmt.Sprint(0, pid, 1))
	got = end(5, "a", pid, 0, true)
	want("ending again", fmt.Sprint(got.ErrorCode, got.ProducerID, got.ProducerEpoch), fmt.Sprint(0, pid, 1))
	want("ending otherwise", end(5, "a", pid, 0, false).ErrorCode, 48)
	want("late", produce(12, "a", pid, 0, 1, 1), 47)
	want("commit of nothing", end(5, "a", pid, 1, true).ErrorCode, 48)
	want("abort of nothing", end(5, "a", pid, 1, false).ProducerEpoch, 2)
	for version := int16(12); version <= 13; version++ {
		want("joining", produce(version, "a", pid, version-10, 0, 1), 0)
		want("ending", end(5, "a", pid, version-10, true).ErrorCode, 0)
	}
}

// Positions in a transaction: who may commit them, when they are seen, and that they
// are held back meanwhile.
func TestTransactionOffsets(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "t", 1, nil)
	c := r.dial(t)
	name := "a"
	req := kmsg.NewPtrInitProducerIDRequest()
	req.TransactionalID, req.TransactionTimeoutMillis = &name, 1000
	pid := ask[*kmsg.InitProducerIDResponse](t, c, req, 4).ProducerID
	epoch := int16(0)
	commit := func(version int16, group string, offset int64) int16 {
		req := kmsg.NewPtrTxnOffsetCommitRequest()
		req.TransactionalID, req.Group, req.ProducerID, req.ProducerEpoch, req.Generation = name, group, pid, epoch, -1
		rt := kmsg.NewTxnOffsetCommitRequestTopic()
		rt.Topic = "t"
		rp := kmsg.NewTxnOffsetCommitRequestTopicPartition()
		rp.Offset = offset
		rt.Partitions = append(rt.Partitions, rp)
		req.Topics = append(req.Topics, rt)
		return ask[*kmsg.TxnOffsetCommitResponse](t, c, req, version).Topics[0].Partitions[0].ErrorCode
	}
	addGroup := func(version int16, group string) int16 {
		req := kmsg.NewPtrAddOffsetsToTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Group = name, pid, epoch, group
		return ask[*kmsg.AddOffsetsToTxnResponse](t, c, req, version).ErrorCode
	}
	end := func(version int16, commit bool) {
		req := kmsg.NewPtrEndTxnRequest()
		req.TransactionalID, req.ProducerID, req.ProducerEpoch, req.Commit = name, pid, epoch, commit
		resp := ask[*kmsg.EndTxnResponse](t, c, req, version)
		if resp.ErrorCode != 0 {
			t.Fatalf("ending: code %d", resp.ErrorCode)
		}
		if version >= 5 {
			epoch = resp.ProducerEpoch
		}
	}
	fetch := func(version int16, stable bool) string {
		req := kmsg.NewPtrOffsetFetchRequest()
		req.Group, req.RequireStable = "g", stable
		rt := kmsg.NewOffsetFetchRequestTopic()
		rt.Topic, rt.Partitions = "t", []int32{0}
		req.Topics = append(req.Topics, rt)
		rg := kmsg.NewOffsetFetchRequestGroup()
		rg.Group = "g"
		gt := kmsg.NewOffsetFetchRequestGroupTopic()
		gt.Topic, gt.Partitions = "t", []int32{0}
		rg.Topics = append(rg.Topics, gt)
		req.Groups = append(req.Groups, rg)
		resp := ask[*kmsg.OffsetFetchResponse](t, c, req, version)
		if version >= 8 {
			p := resp.Groups[0].Topics[0].Partitions[0]
			return fmt.Sprint(p.Offset, " ", p.ErrorCode)
		}
		p := resp.Topics[0].Partitions[0]
		return fmt.Sprint(p.Offset, " ", p.ErrorCode)
	}
	want := func(what string, got, want any) {
		t.Helper()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	for version := int16(0); version <= 4; version++ {
		want("a group that was not added", commit(version, "g", 1), 48)
		want("a group without a name", addGroup(version, ""), 24)
		want("adding", addGroup(version, "g"), 0)
		want("committing", commit(version, "g", int64(10+version)), 0)
		want("not stable", fetch(7, true), "-1 88")
		want("not stable", fetch(8, true), "-1 88")
		before := -1
		if version > 0 {
			before = 10 + int(version) - 1
		}
		want("before the end", fetch(8, false), fmt.Sprint(before, " 0"))
		end(min(version, 3), true)
		want("after it", fetch(8, true), fmt.Sprint(10+version, " 0"))
	}
	want("joining", commit(5, "g", 99), 0)
	end(5, false)
	want("after an abort", fetch(8, true), "14 0")
	want("joining", commit(5, "g", 20), 0)
	end(5, true)
	want("after a commit", fetch(8, true), "20 0")
	member := kmsg.NewPtrTxnOffsetCommitRequest()
	member.TransactionalID, member.Group, member.ProducerID, member.ProducerEpoch, member.Generation, member.MemberID = name, "g", pid, epoch, 3, "nobody"
	rt := kmsg.NewTxnOffsetCommitRequestTopic()
	rt.Topic = "t"
	rt.Partitions = append(rt.Partitions, kmsg.NewTxnOffsetCommitRequestTopicPartition())
	member.Topics = append(member.Topics, rt)
	want("a member that is none", ask[*kmsg.TxnOffsetCommitResponse](t, c, member, 4).Topics[0].Partitions[0].ErrorCode, 25)
	if len(r.store.PendingCursors("g")) != 0 || topic.Name != "t" {
		t.Error("positions are pending for ever")
	}
}

// What tools see of a transaction that is open, and how they end one that hangs.
func TestTransactionTools(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "t", 2, nil)
	ctx := ctxOf(t)
	p := r.transactional(t, "tool", kgo.DefaultProduceTopic("t"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := p.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := p.ProduceSync(ctx, &kgo.Record{Partition: 1, Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	adm := kadm.NewClient(r.client(t))
	listed, err := adm.ListTransactions(ctx, nil, []string{"Ongoing"})
	if err != nil || len(listed) != 1 || listed["tool"].State != "Ongoing" {
		t.Errorf("%+v %v", listed, err)
	}
	described, err := adm.DescribeTransactions(ctx, "tool", "none")
	if err != nil || described["tool"].State != "Ongoing" || fmt.Sprint(described["tool"].Topics.Sorted()) == "[]" || described["tool"].StartTimestamp <= 0 ||
		!errors.Is(described["none"].Err, kerr.TransactionalIDNotFound) {
		t.Errorf("%+v %v", described, err)
	}
	// A transaction of which no coordinator knows.
	if _, err := r.store.Append(ctx, topiclog.AppendRequest{Partition: topic.Partitions[0].ID, Batches: sequenced(t, 9999, 4, 0, true, 1)}); err != nil {
		t.Fatal(err)
	}
	set := kadm.TopicsSet{}
	set.Add("t", 0)
	set.Add("t", 1)
	producers, err := adm.DescribeProducers(ctx, set)
	if err != nil {
		t.Fatal(err)
	}
	hanging, ok := kadm.DescribedProducer{}, false
	for _, p := range producers["t"].Partitions[0].ActiveProducers {
		hanging, ok = p, true
	}
	if !ok || hanging.ProducerID != 9999 || hanging.CurrentTxnStartOffset != 0 || len(producers["t"].Partitions[1].ActiveProducers) != 1 {
		t.Fatalf("%+v", producers)
	}
	only := kadm.TopicsSet{}
	only.Add("t", 0)
	if _, err := adm.WriteTxnMarkers(ctx, kadm.TxnMarkers{ProducerID: 9999, ProducerEpoch: 4, Commit: false, CoordinatorEpoch: max(hanging.CoordinatorEpoch, 0), Topics: only}); err != nil {
		t.Fatal(err)
	}
	st, err := r.store.State(topic.Partitions[0].ID)
	if err != nil || st.StableEnd != 2 {
		t.Errorf("%+v %v", st, err)
	}
	list := func(version int16, f func(*kmsg.ListTransactionsRequest)) *kmsg.ListTransactionsResponse {
		req := kmsg.NewPtrListTransactionsRequest()
		f(req)
		return ask[*kmsg.ListTransactionsResponse](t, r.dial(t), req, version)
	}
	bad, match := "(", "to+l"
	if got := list(2, func(q *kmsg.ListTransactionsRequest) { q.TransactionalIDPattern = &bad }); got.ErrorCode != 128 {
		t.Errorf("a bad pattern: %+v", got)
	}
	if got := list(2, func(q *kmsg.ListTransactionsRequest) { q.TransactionalIDPattern = &match }); len(got.TransactionStates) != 1 {
		t.Errorf("a pattern: %+v", got)
	}
	if got := list(1, func(q *kmsg.ListTransactionsRequest) { q.DurationFilterMillis = 3_600_000 }); len(got.TransactionStates) != 0 {
		t.Errorf("open for an hour: %+v", got)
	}
	if got := list(0, func(q *kmsg.ListTransactionsRequest) { q.StateFilters = []string{"Gone"} }); !slices.Equal(got.UnknownStateFilters, []string{"Gone"}) {
		t.Errorf("an unknown state: %+v", got)
	}
	if err := p.EndTransaction(ctx, kgo.TryAbort); err != nil {
		t.Error(err)
	}
}

// ListOffsets and Fetch by isolation level in all versions.
func TestIsolationLevels(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "t", 1, nil)
	ctx := ctxOf(t)
	p := r.transactional(t, "iso", kgo.DefaultProduceTopic("t"))
	step := func(end *kgo.TransactionEndTry, value string) {
		t.Helper()
		if err := p.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		if err := p.ProduceSync(ctx, kgo.StringRecord(value)).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if end != nil {
			if err := p.EndTransaction(ctx, *end); err != nil {
				t.Fatal(err)
			}
		}
	}
	abort := kgo.TryAbort
	step(&abort, "aborted") // 0, marker 1
	step(nil, "open")       // 2
	c := r.dial(t)
	for version := int16(4); version <= 18; version++ {
		for level, want := range []string{"3 2 -1", "3 2 1"} {
			req := fetchRequest(topic, 0, 0, 1<<20)
			req.IsolationLevel, req.SessionEpoch = int8(level), -1
			got := ask[*kmsg.FetchResponse](t, c, req, version).Topics[0].Partitions[0]
			aborted := -1
			if got.AbortedTransactions != nil {
				aborted = len(got.AbortedTransactions)
			}
			if s := fmt.Sprint(got.HighWatermark, got.LastStableOffset, aborted); s != want {
				t.Errorf("version %d, level %d: %s, want %s", version, level, s, want)
			}
			if aborted == 1 && got.AbortedTransactions[0].FirstOffset != 0 {
				t.Errorf("version %d: %+v", version, got.AbortedTransactions)
			}
			if last := lastOffsetOf(t, got.RecordBatches); last != int64(2-level) {
				t.Errorf("version %d, level %d: records up to %d", version, level, last)
			}
		}
	}
	for version := int16(2); version <= 10; version++ {
		for level, want := range []int64{3, 2} {
			req := kmsg.NewPtrListOffsetsRequest()
			req.IsolationLevel = int8(level)
			rt := kmsg.NewListOffsetsRequestTopic()
			rt.Topic = "t"
			rp := kmsg.NewListOffsetsRequestTopicPartition()
			rp.Timestamp = -1
			rt.Partitions = append(rt.Partitions, rp)
			req.Topics = append(req.Topics, rt)
			if got := ask[*kmsg.ListOffsetsResponse](t, c, req, version).Topics[0].Partitions[0]; got.Offset != want || got.ErrorCode != 0 {
				t.Errorf("version %d, level %d: %+v, want offset %d", version, level, got, want)
			}
		}
	}
}

func TestTransactionFeature(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	c := r.dial(t)
	for version := int16(3); version <= 4; version++ {
		resp := ask[*kmsg.ApiVersionsResponse](t, c, kmsg.NewPtrApiVersionsRequest(), version)
		level := int16(-1)
		for _, f := range resp.FinalizedFeatures {
			if f.Name == "transaction.version" {
				level = f.MaxVersionLevel
			}
		}
		if level != 2 {
			t.Errorf("version %d: transaction.version is %d", version, level)
		}
	}
}
