package kafkaproto_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/authn"
	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// fastGroups lets members of the newer protocol speak often.
func fastGroups() kafkaproto.Options {
	return kafkaproto.Options{InitialRebalanceDelay: -1, ConsumerHeartbeat: 20 * time.Millisecond}
}

// TestConsumerGroupSharesAndResumes: franz-go with the newer protocol: members share
// the partitions, one leaves and the others take over, positions stay.
func TestConsumerGroupSharesAndResumes(t *testing.T) {
	for assignor, balancer := range map[string]kgo.GroupBalancer{"uniform": kgo.StickyBalancer(), "range": kgo.RangeBalancer()} {
		t.Run(assignor, func(t *testing.T) {
			r := start(t, fastGroups())
			r.topic(t, "a", 6, nil)
			ctx := ctxOf(t)
			owned := make(chan string, 1000)
			consumer := func(name string) *kgo.Client {
				note := func(what string) func(context.Context, *kgo.Client, map[string][]int32) {
					return func(_ context.Context, _ *kgo.Client, m map[string][]int32) {
						if len(m["a"]) > 0 {
							owned <- fmt.Sprintf("%s %s %d", name, what, len(m["a"]))
						}
					}
				}
				return r.client(t, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("a"), kgo.ServerSideBalancer(), kgo.Balancers(balancer), kgo.DisableAutoCommit(),
					kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.OnPartitionsAssigned(note("+")), kgo.OnPartitionsRevoked(note("-")), kgo.OnPartitionsLost(note("!")))
			}
			expect := func(want ...string) {
				t.Helper()
				var got []string
				for len(got) < len(want) {
					select {
					case s := <-owned:
						got = append(got, s)
					case <-ctx.Done():
						t.Fatalf("got %v, want %v", got, want)
					}
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Fatalf("got %v, want %v", got, want)
				}
			}
			one := consumer("one")
			go one.PollFetches(ctx)
			expect("one + 6")
			two := consumer("two")
			go two.PollFetches(ctx)
			expect("one - 3", "two + 3")
			adm := kadm.NewClient(r.client(t))
			listed, err := adm.ListGroups(ctx, "Stable")
			if err != nil || len(listed) != 1 || listed["g"].ProtocolType != "consumer" {
				t.Errorf("groups %+v, %v", listed, err)
			}
			describe := kmsg.NewPtrConsumerGroupDescribeRequest()
			describe.Groups = []string{"g", "none"}
			for version := int16(0); version <= 1; version++ {
				d := ask[*kmsg.ConsumerGroupDescribeResponse](t, r.dial(t), describe, version).Groups
				if d[0].State != "Stable" || d[0].AssignorName != assignor || len(d[0].Members) != 2 || d[0].Epoch != d[0].AssignmentEpoch || d[1].ErrorCode != 69 {
					t.Errorf("version %d: %+v", version, d)
				}
				for _, m := range d[0].Members {
					if a := m.Assignment.TopicPartitions; len(a) != 1 || a[0].Topic != "a" || len(a[0].Partitions) != 3 || m.MemberEpoch != d[0].Epoch {
						t.Errorf("version %d: %+v", version, m)
					}
				}
			}
			// The older description does not know it.
			old := kmsg.NewPtrDescribeGroupsRequest()
			old.Groups = []string{"g"}
			if got := ask[*kmsg.DescribeGroupsResponse](t, r.dial(t), old, 6).Groups[0]; got.ErrorCode != 69 || got.State != "Dead" {
				t.Errorf("%+v", got)
			}
			if gone, err := adm.DeleteGroup(ctx, "g"); err == nil && !errors.Is(gone.Err, kerr.NonEmptyGroup) {
				t.Errorf("deleting a group with members: %v", gone.Err)
			}
			// Members commit at their epoch; outsiders do not.
			one.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{"a": {0: {Epoch: -1, Offset: 5}}}, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, resp *kmsg.OffsetCommitResponse, err error) {
				if err != nil || resp.Topics[0].Partitions[0].ErrorCode != 0 {
					t.Errorf("a member's commit: %+v, %v", resp, err)
				}
			})
			var os kadm.Offsets
			os.AddOffset("a", 1, 9, -1)
			if err := adm.CommitAllOffsets(ctx, "g", os); !errors.Is(err, kerr.UnknownMemberID) {
				t.Errorf("a commit from outside: %v, want %v", err, kerr.UnknownMemberID)
			}
			if err := two.LeaveGroupContext(ctx); err != nil {
				t.Fatal(err)
			}
			expect("two - 3", "one + 3")
			if err := one.LeaveGroupContext(ctx); err != nil {
				t.Fatal(err)
			}
			if got, err := adm.FetchOffsets(ctx, "g"); err != nil || got["a"][0].At != 5 {
				t.Errorf("positions %v, %v", got, err)
			}
			if gone, err := adm.DeleteGroup(ctx, "g"); err != nil || gone.Err != nil {
				t.Errorf("deleting it: %v, %v", err, gone.Err)
			}
		})
	}
}

// TestConsumerGroupRegex: topics that match come in as they are made, internal ones
// too, as on Kafka.
func TestConsumerGroupRegex(t *testing.T) {
	r := start(t, fastGroups())
	r.topic(t, "clicks-eu", 1, nil)
	r.topic(t, "old-clicks-eu", 1, nil)
	r.topic(t, "__clicks-own", 1, nil)
	ctx := ctxOf(t)
	c := r.dial(t)
	h := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	h.Group, h.MemberID, h.RebalanceTimeoutMillis, h.Topics, h.SubscribedTopicRegex = "g", "m", 60_000, []kmsg.ConsumerGroupHeartbeatRequestTopic{}, ptr(".*clicks-..|__.*")
	names := func(resp *kmsg.ConsumerGroupHeartbeatResponse) (out []string) {
		if resp.ErrorCode != 0 || resp.Assignment == nil {
			t.Fatalf("%+v", resp)
		}
		for _, x := range resp.Assignment.Topics {
			topic, err := r.store.TopicByID(topiclog.UUID(x.TopicID))
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, topic.Name)
		}
		slices.Sort(out)
		return out
	}
	h.SubscribedTopicRegex = ptr("clicks-..|__.*")
	if got := names(ask[*kmsg.ConsumerGroupHeartbeatResponse](t, c, h, 1)); !slices.Equal(got, []string{"__clicks-own", "clicks-eu"}) {
		t.Errorf("topics %v: the whole name must match", got)
	}
	r.topic(t, "clicks-us", 2, nil)
	next := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	next.Group, next.MemberID, next.MemberEpoch = "g", "m", 1
	for {
		resp := ask[*kmsg.ConsumerGroupHeartbeatResponse](t, c, next, 1)
		if resp.MemberEpoch > 1 {
			if got := names(resp); !slices.Equal(got, []string{"__clicks-own", "clicks-eu", "clicks-us"}) {
				t.Errorf("topics %v after a new one", got)
			}
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the new topic does not come")
		}
	}
	h.SubscribedTopicRegex = ptr("(")
	if got := ask[*kmsg.ConsumerGroupHeartbeatResponse](t, c, h, 1); got.ErrorCode != 128 {
		t.Errorf("a regular expression that is none: code %d, want 128", got.ErrorCode)
	}
}

// heartbeats is a raw member.
type heartbeats struct {
	t   testing.TB
	r   *rig
	ask func(*kmsg.ConsumerGroupHeartbeatRequest) *kmsg.ConsumerGroupHeartbeatResponse
}

func newHeartbeats(t testing.TB, r *rig) *heartbeats {
	c := r.dial(t)
	return &heartbeats{t: t, r: r, ask: func(req *kmsg.ConsumerGroupHeartbeatRequest) *kmsg.ConsumerGroupHeartbeatResponse {
		t.Helper()
		return ask[*kmsg.ConsumerGroupHeartbeatResponse](t, c, req, 1)
	}}
}

// join sends everything.
func (h *heartbeats) join(member string, edit ...func(*kmsg.ConsumerGroupHeartbeatRequest)) *kmsg.ConsumerGroupHeartbeatResponse {
	h.t.Helper()
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.RebalanceTimeoutMillis, req.Topics, req.SubscribedTopicNames = "g", member, 60_000, []kmsg.ConsumerGroupHeartbeatRequestTopic{}, []string{"a"}
	for _, e := range edit {
		e(req)
	}
	return h.ask(req)
}

// beat says what a member owns; nil says nothing.
func (h *heartbeats) beat(member string, epoch int32, topic *topiclog.Topic, owned ...int32) *kmsg.ConsumerGroupHeartbeatResponse {
	h.t.Helper()
	req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	req.Group, req.MemberID, req.MemberEpoch = "g", member, epoch
	if topic != nil {
		req.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{}
		if len(owned) > 0 {
			req.Topics = append(req.Topics, kmsg.ConsumerGroupHeartbeatRequestTopic{TopicID: topic.ID, Partitions: owned})
		}
	}
	return h.ask(req)
}

// parts are the partitions of a response's assignment; nil if it has none.
func parts(resp *kmsg.ConsumerGroupHeartbeatResponse) []int32 {
	if resp.Assignment == nil {
		return nil
	}
	out := []int32{}
	for _, t := range resp.Assignment.Topics {
		out = append(out, t.Partitions...)
	}
	return out
}

// TestConsumerGroupReconciles follows two members through the protocol: what one
// must let go the other gets only after that.
func TestConsumerGroupReconciles(t *testing.T) {
	r := start(t, fastGroups())
	a := r.topic(t, "a", 4, nil)
	h := newHeartbeats(t, r)
	step := func(what string, resp *kmsg.ConsumerGroupHeartbeatResponse, epoch int32, want []int32) {
		t.Helper()
		if got := parts(resp); resp.ErrorCode != 0 || resp.MemberEpoch != epoch || !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Fatalf("%s: code %d (%v), epoch %d, assignment %v; want epoch %d, %v", what, resp.ErrorCode, resp.ErrorMessage, resp.MemberEpoch, got, epoch, want)
		}
	}
	step("one joins", h.join("one"), 1, []int32{0, 1, 2, 3})
	step("nothing new", h.beat("one", 1, nil), 1, nil)
	step("two joins and waits", h.join("two"), 2, []int32{})
	step("one learns what to let go", h.beat("one", 1, &a, 0, 1, 2, 3), 1, []int32{0, 1})
	step("two still waits", h.beat("two", 2, &a), 2, nil)
	step("one still owns it", h.beat("one", 1, nil), 1, nil)
	step("one has let go", h.beat("one", 1, &a, 0, 1), 2, nil)
	step("two gets it", h.beat("two", 2, &a), 2, []int32{2, 3})
	// A commit of the epoch before counts for what it has had since then.
	commit := func(member string, epoch int32, partition int32) int16 {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Group, req.MemberID, req.Generation = "g", member, epoch
		req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "a", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Partition: partition, Offset: 1}}}}
		return ask[*kmsg.OffsetCommitResponse](t, r.dial(t), req, 9).Topics[0].Partitions[0].ErrorCode
	}
	for _, x := range []struct {
		what      string
		got, want int16
	}{
		{"kept", commit("one", 1, 0), 0}, {"given away", commit("one", 1, 2), 113}, {"of the epoch", commit("two", 2, 2), 0}, {"from before it was its own", commit("two", 1, 2), 113},
	} {
		if x.got != x.want {
			t.Errorf("committing a partition that was %s: code %d, want %d", x.what, x.got, x.want)
		}
	}
	if got := h.beat("one", 9, nil).ErrorCode; got != 110 {
		t.Errorf("an epoch of the future: code %d, want 110", got)
	}
	if got := h.beat("one", 1, nil).ErrorCode; got != 110 {
		t.Errorf("the epoch before without what it owns: code %d, want 110", got)
	}
	if got := h.beat("one", 1, &a, 3).ErrorCode; got != 110 {
		t.Errorf("the epoch before with what it does not own: code %d, want 110", got)
	}
	step("the epoch before, an answer was lost", h.beat("one", 1, &a, 0), 2, nil)
	if got := h.beat("three", 2, nil).ErrorCode; got != 25 {
		t.Errorf("a stranger: code %d, want 25", got)
	}
	// One starts again: it owns nothing from there on.
	step("one joins again", h.join("one"), 2, []int32{0, 1})
	leave := h.beat("two", -1, nil)
	if leave.ErrorCode != 0 || leave.MemberEpoch != -1 {
		t.Fatalf("leaving: %+v", leave)
	}
	step("one gets all again", h.beat("one", 2, &a, 0, 1), 3, []int32{0, 1, 2, 3})
}

func TestConsumerGroupStaticMember(t *testing.T) {
	r := start(t, fastGroups())
	a := r.topic(t, "a", 2, nil)
	h := newHeartbeats(t, r)
	instance := func(req *kmsg.ConsumerGroupHeartbeatRequest) { req.InstanceID = ptr("i") }
	if got := h.join("one", instance); got.ErrorCode != 0 || got.MemberEpoch != 1 {
		t.Fatalf("%+v", got)
	}
	if got := h.join("other", instance); got.ErrorCode != 111 {
		t.Errorf("the instance is in use: code %d, want 111", got.ErrorCode)
	}
	with := func(member string, epoch int32) int16 {
		req := kmsg.NewPtrConsumerGroupHeartbeatRequest()
		req.Group, req.MemberID, req.MemberEpoch, req.InstanceID = "g", member, epoch, ptr("i")
		return h.ask(req).ErrorCode
	}
	if got := with("other", 1); got != 82 {
		t.Errorf("another member's instance: code %d, want 82", got)
	}
	// Some clients leave the instance out when they leave for a while.
	if got := h.beat("one", -2, nil); got.ErrorCode != 0 || got.MemberEpoch != -2 {
		t.Fatalf("leaving for a while: %+v", got)
	}
	if got := h.join("two"); got.ErrorCode != 0 || len(parts(got)) != 0 {
		t.Errorf("its partitions wait for it: %+v", got)
	}
	if got := h.beat("two", -2, nil); got.ErrorCode != 42 {
		t.Errorf("a member without an instance leaves for a while: code %d, want 42", got.ErrorCode)
	}
	// The group has changed by the other's joining; the work of the one is what its
	// former self was to have, without one more change.
	back := h.join("again", instance)
	if back.ErrorCode != 0 || back.MemberEpoch != 2 || len(parts(back)) != 1 {
		t.Errorf("it comes back: %+v", back)
	}
	if got := h.beat("two", 2, &a); len(parts(got)) != 1 {
		t.Errorf("the other gets the rest: %+v", got)
	}
	if got := with("one", 1); got != 82 {
		t.Errorf("the former self: code %d, want 82", got)
	}
}

func TestConsumerGroupHeartbeatRules(t *testing.T) {
	r := start(t, fastGroups())
	r.topic(t, "a", 1, nil)
	h := newHeartbeats(t, r)
	type req = *kmsg.ConsumerGroupHeartbeatRequest
	for _, x := range []struct {
		what string
		edit func(req)
		want int16
	}{
		{"no group", func(q req) { q.Group = "" }, 42},
		{"no member", func(q req) { q.MemberID = "" }, 42},
		{"empty instance", func(q req) { q.InstanceID = ptr("") }, 42},
		{"empty rack", func(q req) { q.RackID = ptr("") }, 42},
		{"no rebalance timeout", func(q req) { q.RebalanceTimeoutMillis = -1 }, 42},
		{"no owned partitions", func(q req) { q.Topics = nil }, 42},
		{"owns partitions", func(q req) { q.Topics = []kmsg.ConsumerGroupHeartbeatRequestTopic{{Partitions: []int32{0}}} }, 42},
		{"no subscription", func(q req) { q.SubscribedTopicNames = nil }, 42},
		{"assignor", func(q req) { q.ServerAssignor = ptr("sticky") }, 112},
		{"epoch", func(q req) { q.MemberEpoch = -3 }, 42},
		{"unknown group", func(q req) { q.MemberEpoch = 3 }, 69},
		{"leaves an unknown group", func(q req) { q.MemberEpoch = -1 }, 69},
		{"unknown topic", func(q req) { q.SubscribedTopicNames = []string{"none"} }, 0},
		{"subscribes to nothing", func(q req) { q.SubscribedTopicNames = []string{} }, 0},
	} {
		if got := h.join("m", x.edit); got.ErrorCode != x.want || x.want != 0 && got.ErrorMessage == nil {
			t.Errorf("%s: code %d, want %d", x.what, got.ErrorCode, x.want)
		}
	}
	// Before version 1 the server gives out the id.
	q := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	q.Group, q.RebalanceTimeoutMillis, q.Topics, q.SubscribedTopicNames = "h", 1000, []kmsg.ConsumerGroupHeartbeatRequestTopic{}, []string{"a"}
	if got := ask[*kmsg.ConsumerGroupHeartbeatResponse](t, r.dial(t), q, 0); got.ErrorCode != 0 || got.MemberID == nil || *got.MemberID == "" || got.HeartbeatIntervalMillis != 20 {
		t.Errorf("version 0: %+v", got)
	}
}

// TestConsumerGroupSilence: a silent member is out, and so is one that does not let
// go in its time.
func TestConsumerGroupSilence(t *testing.T) {
	o := fastGroups()
	o.ConsumerSession = 200 * time.Millisecond
	r := start(t, o)
	a := r.topic(t, "a", 2, nil)
	h := newHeartbeats(t, r)
	ctx := ctxOf(t)
	h.join("one")
	two := h.join("two")
	for len(parts(two)) < 2 {
		if two = h.beat("two", two.MemberEpoch, &a, parts(two)...); two.ErrorCode != 0 || ctx.Err() != nil {
			t.Fatalf("%+v", two)
		}
		if two.Assignment == nil {
			two.Assignment = &kmsg.ConsumerGroupHeartbeatResponseAssignment{}
		}
	}
	if got := h.beat("one", 1, nil).ErrorCode; got != 25 {
		t.Errorf("the silent one: code %d, want 25", got)
	}
	slow := start(t, fastGroups())
	a = slow.topic(t, "a", 2, nil)
	h = newHeartbeats(t, slow)
	h.join("one", func(q *kmsg.ConsumerGroupHeartbeatRequest) { q.RebalanceTimeoutMillis = 100 })
	h.join("two")
	// One speaks but never lets go.
	for {
		got := h.beat("one", 1, &a, 0, 1)
		if got.ErrorCode == 25 {
			break
		}
		if got.ErrorCode != 0 || ctx.Err() != nil {
			t.Fatalf("%+v", got)
		}
	}
	if got := h.beat("two", 2, &a); !slices.Equal(parts(got), []int32{0, 1}) {
		t.Errorf("the other gets all: %+v", got)
	}
}

// TestGroupChangesKind: a group without members goes from one protocol to the other
// and back with its positions; with members it does not.
func TestGroupChangesKind(t *testing.T) {
	r := start(t, fastGroups())
	r.topic(t, "a", 1, nil)
	ctx := ctxOf(t)
	adm := kadm.NewClient(r.client(t))
	c := r.dial(t)
	h := newHeartbeats(t, r)
	kind := func() string {
		resp := ask[*kmsg.ListGroupsResponse](t, c, kmsg.NewPtrListGroupsRequest(), 5)
		var all []string
		for _, g := range resp.Groups {
			all = append(all, g.GroupType+" "+g.GroupState)
		}
		return strings.Join(all, ", ")
	}
	var os kadm.Offsets
	os.AddOffset("a", 0, 4, -1)
	if err := adm.CommitAllOffsets(ctx, "g", os); err != nil {
		t.Fatal(err)
	}
	if got := kind(); got != "classic Empty" {
		t.Errorf("with positions only: %s", got)
	}
	classic := ask[*kmsg.JoinGroupResponse](t, c, joinRequest("g", "", nil, "range"), 3)
	if got := h.join("m"); got.ErrorCode != 69 {
		t.Errorf("a group with members of the older protocol: code %d, want 69", got.ErrorCode)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.MemberID = "g", classic.MemberID
	ask[*kmsg.LeaveGroupResponse](t, c, leave, 2)
	if got := h.join("m"); got.ErrorCode != 0 {
		t.Fatalf("after they left: %+v", got)
	}
	if got := kind(); got != "consumer Stable" {
		t.Errorf("as one of the newer protocol: %s", got)
	}
	if got := ask[*kmsg.JoinGroupResponse](t, c, joinRequest("g", "", nil, "range"), 3); got.ErrorCode != 23 {
		t.Errorf("joining it by the older protocol: code %d, want 23", got.ErrorCode)
	}
	fetch := kmsg.NewPtrOffsetFetchRequest()
	fetch.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "g", MemberID: ptr("m"), MemberEpoch: 1}, {Group: "g", MemberID: ptr("m"), MemberEpoch: 2}, {Group: "g", MemberID: ptr("x"), MemberEpoch: 1}, {Group: "g", MemberEpoch: -1}}
	for version := int16(9); version <= 10; version++ {
		got := ask[*kmsg.OffsetFetchResponse](t, c, fetch, version).Groups
		if codes := []int16{got[0].ErrorCode, got[1].ErrorCode, got[2].ErrorCode, got[3].ErrorCode}; !slices.Equal(codes, []int16{0, 113, 25, 0}) {
			t.Errorf("version %d: codes %v", version, codes)
		}
		if got[0].Topics[0].Partitions[0].Offset != 4 {
			t.Errorf("version %d: %+v", version, got[0])
		}
	}
	topic, err := r.store.Topic("a")
	if err != nil {
		t.Fatal(err)
	}
	commit := func(version int16, member string, epoch int32, id [16]byte) int16 {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Group, req.MemberID, req.Generation = "g", member, epoch
		req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "a", TopicID: id, Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 6}}}}
		return ask[*kmsg.OffsetCommitResponse](t, c, req, version).Topics[0].Partitions[0].ErrorCode
	}
	for _, x := range []struct {
		what      string
		got, want int16
	}{
		{"its epoch", commit(9, "m", 1, topic.ID), 0}, {"another epoch", commit(9, "m", 2, topic.ID), 113}, {"a stranger", commit(9, "x", 1, topic.ID), 25},
		{"outside", commit(9, "", -1, topic.ID), 25}, {"too old a version", commit(8, "m", 1, topic.ID), 35},
		{"by id", commit(10, "m", 1, topic.ID), 0}, {"by another id", commit(10, "m", 1, [16]byte{1}), 100},
	} {
		if x.got != x.want {
			t.Errorf("committing: %s: code %d, want %d", x.what, x.got, x.want)
		}
	}
	h.beat("m", -1, nil)
	if got := kind(); got != "consumer Empty" {
		t.Errorf("after its member left: %s", got)
	}
	if got := ask[*kmsg.JoinGroupResponse](t, c, joinRequest("g", "", nil, "range"), 3); got.ErrorCode != 0 {
		t.Errorf("back to the older protocol: code %d", got.ErrorCode)
	}
	if got := kind(); !strings.HasPrefix(got, "classic ") {
		t.Errorf("back: %s", got)
	}
	if got, err := adm.FetchOffsets(ctx, "g"); err != nil || got["a"][0].At != 6 {
		t.Errorf("positions %v, %v", got, err)
	}
}

// TestConsumerGroupOverRestart: members of a server that died come to the next one
// by themselves and go on where they committed; nothing of the old life commits.
func TestConsumerGroupOverRestart(t *testing.T) {
	mem := vfs.NewMem()
	r := startOn(t, mem, fastGroups())
	r.topic(t, "a", 1, nil)
	h := newHeartbeats(t, r)
	h.join("m")
	commit := func(r *rig, epoch int32, offset int64) int16 {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Group, req.MemberID, req.Generation = "g", "m", epoch
		req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "a", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: offset}}}}
		return ask[*kmsg.OffsetCommitResponse](t, r.dial(t), req, 9).Topics[0].Partitions[0].ErrorCode
	}
	if got := commit(r, 1, 11); got != 0 {
		t.Fatalf("code %d", got)
	}
	next := startOn(t, mem.CrashClone(vfs.CrashOptions{}), fastGroups())
	if got := commit(next, 1, 12); got != 25 {
		t.Errorf("a commit of the old life: code %d, want 25", got)
	}
	h = newHeartbeats(t, next)
	if got := h.beat("m", 1, nil); got.ErrorCode != 69 && got.ErrorCode != 25 {
		t.Errorf("a heartbeat of the old life: code %d", got.ErrorCode)
	}
	if got := h.join("m"); got.ErrorCode != 0 || len(parts(got)) != 1 {
		t.Errorf("joining again: %+v", got)
	}
	if cur := next.store.Cursors("g"); len(cur) != 1 || cur[0].Offset != 11 {
		t.Errorf("positions %+v, want 11", cur)
	}
}

// TestConsumerGroupRegexSeesWhatIsAllowed: a regular expression finds no topic that
// its member may not describe.
func TestConsumerGroupRegexSeesWhatIsAllowed(t *testing.T) {
	r, a := secured(t, fastGroups())
	open := r.topic(t, "open", 1, nil)
	r.topic(t, "other", 1, nil)
	addUser(t, a, "bob", "bob-secret", authn.Plain)
	if err := a.AddRules([]acl.Rule{
		{Principal: "User:bob", Host: "*", Operation: acl.Read, Type: acl.Group, Name: "g", Pattern: acl.Literal, Permission: acl.Allow},
		{Principal: "User:bob", Host: "*", Operation: acl.Describe, Type: acl.Topic, Name: "open", Pattern: acl.Literal, Permission: acl.Allow},
	}); err != nil {
		t.Fatal(err)
	}
	c := r.dial(t)
	login(t, c, "bob", "bob-secret")
	h := kmsg.NewPtrConsumerGroupHeartbeatRequest()
	h.Group, h.MemberID, h.RebalanceTimeoutMillis, h.Topics, h.SubscribedTopicRegex = "g", "m", 60_000, []kmsg.ConsumerGroupHeartbeatRequestTopic{}, ptr("o.*")
	got := ask[*kmsg.ConsumerGroupHeartbeatResponse](t, c, h, 1)
	if got.ErrorCode != 0 || got.Assignment == nil || len(got.Assignment.Topics) != 1 || got.Assignment.Topics[0].TopicID != [16]byte(open.ID) {
		t.Errorf("%+v, want the open topic alone", got)
	}
}
