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

	"github.com/millrace/millrace/storage/kafkaproto"
)

// TestGroupSharesAndResumes: two members share the partitions, one leaves and
// the other takes over; a later member goes on where the group committed.
func TestGroupSharesAndResumes(t *testing.T) {
	for _, balancer := range []kgo.GroupBalancer{kgo.RangeBalancer(), kgo.StickyBalancer(), kgo.CooperativeStickyBalancer()} {
		t.Run(balancer.ProtocolName(), func(t *testing.T) {
			r := start(t, kafkaproto.Options{InitialRebalanceDelay: -1})
			r.topic(t, "a", 4, nil)
			ctx := ctxOf(t)
			consumer := func() *kgo.Client {
				return r.client(t, kgo.ConsumerGroup("g"), kgo.ConsumeTopics("a"), kgo.Balancers(balancer), kgo.DisableAutoCommit(), kgo.HeartbeatInterval(100*time.Millisecond),
					kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RecordPartitioner(kgo.ManualPartitioner()))
			}
			produce := func(c *kgo.Client, round int) {
				for p := range int32(4) {
					rec := &kgo.Record{Topic: "a", Partition: p, Value: fmt.Appendf(nil, "%d-%d", round, p)}
					if err := c.ProduceSync(ctx, rec).FirstErr(); err != nil {
						t.Fatal(err)
					}
				}
			}
			one, two := consumer(), consumer()
			type read struct {
				client int
				value  string
			}
			values := make(chan read)
			poll := func(ctx context.Context, n int, c *kgo.Client) {
				for ctx.Err() == nil {
					c.PollFetches(ctx).EachRecord(func(rec *kgo.Record) {
						select {
						case values <- read{n, string(rec.Value)}:
						case <-ctx.Done():
						}
					})
				}
			}
			polling, stop := context.WithCancel(ctx)
			defer stop()
			go poll(polling, 1, one)
			go poll(polling, 2, two)
			// readers produces a round and says how many members read it.
			readers := func(round int) int {
				produce(one, round)
				by, seen := map[int]bool{}, map[string]bool{}
				for len(seen) < 4 {
					select {
					case v := <-values:
						if strings.HasPrefix(v.value, fmt.Sprintf("%d-", round)) {
							seen[v.value] = true
							by[v.client] = true
						}
					case <-ctx.Done():
						t.Fatal("records did not come")
					}
				}
				return len(by)
			}
			round := 0
			for readers(round) < 2 {
				round++
			}
			// One more: what was read again after the rebalance lies before it.
			if n := readers(round + 1); n != 2 {
				t.Errorf("%d members read, want 2", n)
			}
			adm := kadm.NewClient(r.client(t))
			described, err := adm.DescribeGroups(ctx, "g")
			if err != nil || described["g"].State != "Stable" || len(described["g"].Members) != 2 {
				t.Errorf("%+v, %v; want a stable group of 2", described["g"], err)
			}
			if gone, err := adm.DeleteGroup(ctx, "g"); err == nil && !errors.Is(gone.Err, kerr.NonEmptyGroup) {
				t.Errorf("deleting a group with members: %v", gone.Err)
			}
			if err := one.CommitUncommittedOffsets(ctx); err != nil {
				t.Fatal(err)
			}
			if err := two.CommitUncommittedOffsets(ctx); err != nil {
				t.Fatal(err)
			}
			stop()
			one.Close()
			two.Close()
			produce(r.client(t, kgo.RecordPartitioner(kgo.ManualPartitioner())), -1)
			three := consumer()
			var last []string
			for len(last) < 4 {
				fs := three.PollFetches(ctx)
				if err := fs.Err(); err != nil {
					t.Fatal(err)
				}
				fs.EachRecord(func(rec *kgo.Record) { last = append(last, string(rec.Value)) })
			}
			slices.Sort(last)
			if want := []string{"-1-0", "-1-1", "-1-2", "-1-3"}; !slices.Equal(last, want) {
				t.Errorf("after the commit: %d records from %s, want %v", len(last), last[0], want)
			}
			three.Close()
			if _, err := adm.DeleteGroup(ctx, "g"); err != nil {
				t.Errorf("deleting the group: %v", err)
			}
			listed, err := adm.ListGroups(ctx)
			if err != nil || len(listed) != 0 {
				t.Errorf("groups left: %v, %v", listed, err)
			}
		})
	}
}

func joinRequest(group, member string, instance *string, protocols ...string) *kmsg.JoinGroupRequest {
	req := kmsg.NewPtrJoinGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.ProtocolType = group, member, instance, "consumer"
	req.SessionTimeoutMillis, req.RebalanceTimeoutMillis = 10_000, 10_000
	for _, p := range protocols {
		rp := kmsg.NewJoinGroupRequestProtocol()
		rp.Name, rp.Metadata = p, []byte("m")
		req.Protocols = append(req.Protocols, rp)
	}
	return req
}

func TestGroupErrors(t *testing.T) {
	r := start(t, kafkaproto.Options{InitialRebalanceDelay: -1})
	r.topic(t, "a", 1, nil)
	c := r.dial(t)
	join := func(req *kmsg.JoinGroupRequest, version int16) *kmsg.JoinGroupResponse {
		return ask[*kmsg.JoinGroupResponse](t, c, req, version)
	}
	short := joinRequest("g", "", nil, "range")
	short.SessionTimeoutMillis = 10
	for what, x := range map[string]struct {
		req  *kmsg.JoinGroupRequest
		want int16
	}{
		"no group":            {joinRequest("", "", nil, "range"), 24},
		"short session":       {short, 26},
		"no protocols":        {joinRequest("g", "", nil), 23},
		"a member of nothing": {joinRequest("g", "who", nil, "range"), 25},
	} {
		if got := join(x.req, 5); got.ErrorCode != x.want {
			t.Errorf("%s: code %d, want %d", what, got.ErrorCode, x.want)
		}
	}
	first := join(joinRequest("g", "", nil, "range", "sticky"), 4)
	if first.ErrorCode != 79 || first.MemberID == "" {
		t.Fatalf("joining without an id: %+v, want error 79 with an id", first)
	}
	id := first.MemberID
	got := join(joinRequest("g", id, nil, "range", "sticky"), 4)
	if got.ErrorCode != 0 || got.LeaderID != id || got.Generation != 1 || *got.Protocol != "range" || len(got.Members) != 1 {
		t.Fatalf("joining with it: %+v", got)
	}
	heartbeat := func(member string, generation int32) int16 {
		req := kmsg.NewPtrHeartbeatRequest()
		req.Group, req.MemberID, req.Generation = "g", member, generation
		return ask[*kmsg.HeartbeatResponse](t, c, req, 3).ErrorCode
	}
	sync := func(member string, generation int32) *kmsg.SyncGroupResponse {
		req := kmsg.NewPtrSyncGroupRequest()
		req.Group, req.MemberID, req.Generation = "g", member, generation
		req.GroupAssignment = []kmsg.SyncGroupRequestGroupAssignment{{MemberID: id, MemberAssignment: []byte("work")}}
		return ask[*kmsg.SyncGroupResponse](t, c, req, 3)
	}
	commit := func(member string, generation int32) int16 {
		req := kmsg.NewPtrOffsetCommitRequest()
		req.Group, req.MemberID, req.Generation = "g", member, generation
		req.Topics = []kmsg.OffsetCommitRequestTopic{{Topic: "a", Partitions: []kmsg.OffsetCommitRequestTopicPartition{{Offset: 3}}}}
		return ask[*kmsg.OffsetCommitResponse](t, c, req, 7).Topics[0].Partitions[0].ErrorCode
	}
	if got := commit(id, 1); got != 27 {
		t.Errorf("a commit before the assignment: code %d, want 27", got)
	}
	if got := sync(id, 9).ErrorCode; got != 22 {
		t.Errorf("sync of another generation: code %d, want 22", got)
	}
	if got := sync("who", 1).ErrorCode; got != 25 {
		t.Errorf("sync of a stranger: code %d, want 25", got)
	}
	if got := sync(id, 1); got.ErrorCode != 0 || string(got.MemberAssignment) != "work" {
		t.Errorf("sync of the leader: %+v", got)
	}
	for _, x := range []struct {
		what      string
		got, want int16
	}{
		{"heartbeat", heartbeat(id, 1), 0}, {"heartbeat of another generation", heartbeat(id, 2), 22}, {"heartbeat of a stranger", heartbeat("who", 1), 25},
		{"commit", commit(id, 1), 0}, {"commit of another generation", commit(id, 0), 22}, {"commit of a stranger", commit("who", 1), 25},
		{"commit from outside", commit("", -1), 25},
	} {
		if x.got != x.want {
			t.Errorf("%s: code %d, want %d", x.what, x.got, x.want)
		}
	}
	if got := join(joinRequest("g", "", nil, "other"), 3); got.ErrorCode != 23 {
		t.Errorf("no protocol in common: code %d, want 23", got.ErrorCode)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.MemberID = "g", id
	if got := ask[*kmsg.LeaveGroupResponse](t, c, leave, 2); got.ErrorCode != 0 {
		t.Errorf("leaving: code %d", got.ErrorCode)
	}
	if got := heartbeat(id, 1); got != 25 {
		t.Errorf("heartbeat after leaving: code %d, want 25", got)
	}
	if got := commit("", -1); got != 0 {
		t.Errorf("commit from outside without members: code %d, want 0", got)
	}
}

// TestEmptyGroupStays: a group whose last member has left, and that has no positions,
// is listed as empty and can be deleted, once.
func TestEmptyGroupStays(t *testing.T) {
	r := start(t, kafkaproto.Options{InitialRebalanceDelay: -1})
	c := r.dial(t)
	id := ask[*kmsg.JoinGroupResponse](t, c, joinRequest("g", "", nil, "range"), 3).MemberID
	remove := func() int16 {
		req := kmsg.NewPtrDeleteGroupsRequest()
		req.Groups = []string{"g"}
		return ask[*kmsg.DeleteGroupsResponse](t, c, req, 2).Groups[0].ErrorCode
	}
	if got := remove(); got != 68 {
		t.Errorf("deleting a group with a member: code %d, want 68", got)
	}
	leave := kmsg.NewPtrLeaveGroupRequest()
	leave.Group, leave.MemberID = "g", id
	if got := ask[*kmsg.LeaveGroupResponse](t, c, leave, 2); got.ErrorCode != 0 {
		t.Fatalf("leaving: code %d", got.ErrorCode)
	}
	listed := ask[*kmsg.ListGroupsResponse](t, c, kmsg.NewPtrListGroupsRequest(), 4).Groups
	if len(listed) != 1 || listed[0].Group != "g" || listed[0].GroupState != "Empty" {
		t.Errorf("listed: %+v", listed)
	}
	if first, second := remove(), remove(); first != 0 || second != 69 {
		t.Errorf("deleting it twice: codes %d and %d, want 0 and 69", first, second)
	}
	// A member that was only promised leaves nothing behind.
	if got := ask[*kmsg.JoinGroupResponse](t, c, joinRequest("promised", "", nil, "range"), 4); got.ErrorCode != 79 {
		t.Fatalf("joining: code %d, want 79", got.ErrorCode)
	} else {
		leave.Group, leave.MemberID = "promised", got.MemberID
	}
	ask[*kmsg.LeaveGroupResponse](t, c, leave, 2)
	if got := ask[*kmsg.ListGroupsResponse](t, c, kmsg.NewPtrListGroupsRequest(), 4).Groups; len(got) != 0 {
		t.Errorf("listed: %+v", got)
	}
}

// TestStaticMemberReturns: a static member takes the place of its former self,
// which is fenced.
func TestStaticMemberReturns(t *testing.T) {
	r := start(t, kafkaproto.Options{InitialRebalanceDelay: -1})
	c := r.dial(t)
	name := "one"
	first := ask[*kmsg.JoinGroupResponse](t, c, joinRequest("g", "", &name, "range"), 5)
	again := ask[*kmsg.JoinGroupResponse](t, c, joinRequest("g", "", &name, "range"), 5)
	if first.ErrorCode != 0 || again.ErrorCode != 0 || first.MemberID == again.MemberID {
		t.Fatalf("%+v, then %+v", first, again)
	}
	beat := kmsg.NewPtrHeartbeatRequest()
	beat.Group, beat.MemberID, beat.InstanceID, beat.Generation = "g", first.MemberID, &name, again.Generation
	if got := ask[*kmsg.HeartbeatResponse](t, c, beat, 3); got.ErrorCode != 82 {
		t.Errorf("the former self: code %d, want 82", got.ErrorCode)
	}
	describe := kmsg.NewPtrDescribeGroupsRequest()
	describe.Groups = []string{"g", "none"}
	got := ask[*kmsg.DescribeGroupsResponse](t, c, describe, 6)
	if len(got.Groups[0].Members) != 1 || got.Groups[0].Members[0].MemberID != again.MemberID {
		t.Errorf("members %+v", got.Groups[0].Members)
	}
	if got.Groups[1].State != "Dead" || got.Groups[1].ErrorCode != 69 {
		t.Errorf("an unknown group: %+v", got.Groups[1])
	}
}
