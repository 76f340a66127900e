package kafkaproto_test

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/kafkaproto"
)

// joining sends a JoinGroup and gives the function that waits for its answer.
func joining(t testing.TB, c net.Conn, req *kmsg.JoinGroupRequest, version int16) func() *kmsg.JoinGroupResponse {
	t.Helper()
	if _, err := c.Write(frame(req, version)); err != nil {
		t.Fatal(err)
	}
	return func() *kmsg.JoinGroupResponse {
		t.Helper()
		resp := kmsg.NewPtrJoinGroupResponse()
		resp.SetVersion(version)
		b := receive(t, c)[4:]
		if resp.IsFlexible() {
			b = b[1:]
		}
		if err := resp.ReadFrom(b); err != nil {
			t.Fatal(err)
		}
		return resp
	}
}

func syncRequest(group, member string, instance *string, generation int32, work map[string]string) *kmsg.SyncGroupRequest {
	req := kmsg.NewPtrSyncGroupRequest()
	req.Group, req.MemberID, req.InstanceID, req.Generation = group, member, instance, generation
	for id, w := range work {
		req.GroupAssignment = append(req.GroupAssignment, kmsg.SyncGroupRequestGroupAssignment{MemberID: id, MemberAssignment: []byte(w)})
	}
	return req
}

// TestStaticLeaderReturns: the leader of a stable group comes back as another
// process: no rebalance, its work is as before, and it does not assign.
func TestStaticLeaderReturns(t *testing.T) {
	for _, version := range []int16{5, 8, 9} {
		r := start(t, kafkaproto.Options{InitialRebalanceDelay: -1})
		c := r.dial(t)
		name := "leader"
		first := ask[*kmsg.JoinGroupResponse](t, c, joinRequest("g", "", &name, "range"), version)
		if first.ErrorCode != 0 || first.LeaderID != first.MemberID || first.SkipAssignment {
			t.Fatalf("version %d: %+v", version, first)
		}
		ask[*kmsg.SyncGroupResponse](t, c, syncRequest("g", first.MemberID, &name, first.Generation, map[string]string{first.MemberID: "work"}), 3)
		back := ask[*kmsg.JoinGroupResponse](t, c, joinRequest("g", "", &name, "range"), version)
		if back.ErrorCode != 0 || back.Generation != first.Generation || back.MemberID == first.MemberID {
			t.Fatalf("version %d: %+v, want the same generation", version, back)
		}
		if skips := version >= 9; back.SkipAssignment != skips || (back.LeaderID == back.MemberID) != skips || (len(back.Members) == 1) != skips {
			t.Errorf("version %d: %+v: who must not assign is told so, or not told that it leads", version, back)
		}
		if got := ask[*kmsg.SyncGroupResponse](t, c, syncRequest("g", back.MemberID, &name, back.Generation, nil), 3); got.ErrorCode != 0 || string(got.MemberAssignment) != "work" {
			t.Errorf("version %d: its work: %+v", version, got)
		}
		if got := ask[*kmsg.SyncGroupResponse](t, c, syncRequest("g", first.MemberID, &name, first.Generation, nil), 3); got.ErrorCode != 82 {
			t.Errorf("version %d: its former self: code %d, want 82", version, got.ErrorCode)
		}
		// With another subscription there is a rebalance.
		other := joinRequest("g", "", &name, "range")
		other.Protocols[0].Metadata = []byte("other")
		if got := ask[*kmsg.JoinGroupResponse](t, c, other, version); got.ErrorCode != 0 || got.Generation != first.Generation+1 {
			t.Errorf("version %d: another subscription: %+v, want the next generation", version, got)
		}
	}
}

// TestStaticMemberReturnsBeforeTheAssignment: the leader may be assigning to the
// former self, so there is another round.
func TestStaticMemberReturnsBeforeTheAssignment(t *testing.T) {
	r := start(t, kafkaproto.Options{InitialRebalanceDelay: -1})
	c := r.dial(t)
	name := "one"
	first := ask[*kmsg.JoinGroupResponse](t, c, joinRequest("g", "", &name, "range"), 5)
	back := ask[*kmsg.JoinGroupResponse](t, c, joinRequest("g", "", &name, "range"), 5)
	if back.ErrorCode != 0 || back.Generation != first.Generation+1 || back.LeaderID != back.MemberID {
		t.Errorf("%+v, want the next generation with it as the leader", back)
	}
}

// TestMemberThatNeverSyncs: who joins and then does not ask for its assignment is
// out after the rebalance timeout; those that wait go on without it.
func TestMemberThatNeverSyncs(t *testing.T) {
	r := start(t, kafkaproto.Options{InitialRebalanceDelay: -1})
	c, d := r.dial(t), r.dial(t)
	lead := joinRequest("g", "", nil, "range")
	lead.RebalanceTimeoutMillis = 1000
	first := ask[*kmsg.JoinGroupResponse](t, c, lead, 3)
	ask[*kmsg.SyncGroupResponse](t, c, syncRequest("g", first.MemberID, nil, first.Generation, nil), 2)
	other := joinRequest("g", "", nil, "range")
	other.RebalanceTimeoutMillis = 1000
	await := joining(t, d, other, 3)
	for ctx := ctxOf(t); r.server.Groups()[0].State != "PreparingRebalance"; {
		if ctx.Err() != nil {
			t.Fatal("the other's joining does not come")
		}
	}
	lead.MemberID = first.MemberID
	again := ask[*kmsg.JoinGroupResponse](t, c, lead, 3)
	second := await()
	if again.ErrorCode != 0 || second.ErrorCode != 0 || again.Generation != second.Generation || again.LeaderID != first.MemberID {
		t.Fatalf("%+v, %+v", again, second)
	}
	// The leader never assigns.
	if got := ask[*kmsg.SyncGroupResponse](t, d, syncRequest("g", second.MemberID, nil, second.Generation, nil), 2); got.ErrorCode != 27 {
		t.Errorf("who waits for the leader: code %d, want 27", got.ErrorCode)
	}
	other.MemberID = second.MemberID
	if got := ask[*kmsg.JoinGroupResponse](t, d, other, 3); got.ErrorCode != 0 || got.LeaderID != second.MemberID || len(got.Members) != 1 {
		t.Errorf("%+v, want it to lead alone", got)
	}
}

// TestNewGroupWaitsForMore: while members come, a new group waits once more.
func TestNewGroupWaitsForMore(t *testing.T) {
	const delay = 200 * time.Millisecond
	r := start(t, kafkaproto.Options{InitialRebalanceDelay: delay})
	c, d := r.dial(t), r.dial(t)
	began := time.Now()
	one := joining(t, c, joinRequest("g", "", nil, "range"), 3)
	two := joining(t, d, joinRequest("g", "", nil, "range"), 3)
	a, b := one(), two()
	if a.ErrorCode != 0 || b.ErrorCode != 0 || a.Generation != 1 || b.Generation != 1 || !slices.Contains([]int{len(a.Members), len(b.Members)}, 2) {
		t.Errorf("%+v, %+v, want both in the first generation", a, b)
	}
	if waited := time.Since(began); waited < 2*delay {
		t.Errorf("waited %v, want twice %v", waited, delay)
	}
}
