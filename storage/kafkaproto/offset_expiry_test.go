package kafkaproto

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// hand is a clock that is moved by hand, for the store and the server.
type hand struct{ at atomic.Int64 }

func (h *hand) now() time.Time       { return time.Unix(0, h.at.Load()) }
func (h *hand) mono() time.Duration  { return time.Duration(h.at.Load()) }
func (h *hand) pass(d time.Duration) { h.at.Add(int64(d)) }

func TestOffsetsExpire(t *testing.T) {
	clock := &hand{}
	clock.pass(1_700_000_000 * time.Second)
	store, err := topiclog.Open(topiclog.Options{FS: vfs.NewMem(), Dir: "data", ReserveBytes: -1, RetentionInterval: -1, Clock: topiclog.Clock{Wall: clock.now, Mono: clock.mono}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s, err := New(Options{Store: store, OffsetsRetention: time.Hour, now: clock.now})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	var parts []topiclog.PartitionID
	var topics []topiclog.Topic
	for _, name := range []string{"a", "b"} {
		topic, err := store.CreateTopic(ctx, topiclog.TopicSpec{Name: name, Partitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		topics, parts = append(topics, topic), append(parts, topic.Partitions[0].ID)
	}
	if err := store.Subscribe(ctx, topiclog.Subscription{Group: "job", Topic: topics[0].ID, Owner: "job x"}); err != nil {
		t.Fatal(err)
	}
	groups := []string{"idle", "classic", "consumer", "connect", "job"}
	for _, g := range groups {
		if err := store.CommitCursors(ctx, g, []topiclog.Cursor{{Partition: parts[0], Offset: 1}, {Partition: parts[1], Offset: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	// Members that read topic a.
	md := kmsg.NewConsumerMemberMetadata()
	md.Topics = []string{"a"}
	join := func(group, typ string) {
		m := &member{clientID: group, session: time.Hour, rebalance: time.Hour, protocols: []groupProtocol{{"range", md.AppendTo(nil)}}}
		s.groups.join(group, typ, m, false, false)
	}
	join("classic", consumerProtocol)
	join("connect", "connect")
	if got := s.groups.beat(&beat{group: "consumer", member: "m", names: []string{"a"}, owned: partSet{}, rebalance: time.Hour}); got.err != nil {
		t.Fatal(got.err)
	}
	expect := func(what string, want map[string]int) {
		t.Helper()
		s.expireOffsets()
		for _, g := range groups {
			if n := len(store.Cursors(g)); n != want[g] {
				t.Errorf("%s: group %s has %d positions, want %d", what, g, n, want[g])
			}
		}
	}
	clock.pass(59 * time.Minute)
	expect("before the retention", map[string]int{"idle": 2, "classic": 2, "consumer": 2, "connect": 2, "job": 2})
	clock.pass(2 * time.Minute)
	expect("after it", map[string]int{"idle": 0, "classic": 1, "consumer": 1, "connect": 2, "job": 2})
	if cur := store.Cursors("classic"); len(cur) != 1 || cur[0].Partition != parts[0] {
		t.Errorf("%+v: what members read stays", cur)
	}
	// The retention begins anew when the last member goes.
	if got := s.groups.beat(&beat{group: "consumer", member: "m", epoch: -1}); got.err != nil {
		t.Fatal(got.err)
	}
	clock.pass(59 * time.Minute)
	expect("after the last member went", map[string]int{"classic": 1, "consumer": 1, "connect": 2, "job": 2})
	clock.pass(2 * time.Minute)
	expect("an hour after that", map[string]int{"classic": 1, "connect": 2, "job": 2})
	if len(s.groups.emptied) != 0 || slices.ContainsFunc(store.Groups(), func(g string) bool { return g == "consumer" }) {
		t.Errorf("left behind: %v, %v", s.groups.emptied, store.Groups())
	}
}

// Groups without members are forgotten by and by; one that has members stays.
func TestIdleGroupsAreForgotten(t *testing.T) {
	store, err := topiclog.Open(topiclog.Options{FS: vfs.NewMem(), Dir: "data", ReserveBytes: -1, RetentionInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	s, err := New(Options{Store: store, InitialRebalanceDelay: -1})
	if err != nil {
		t.Fatal(err)
	}
	join := func(group string) string {
		m := &member{clientID: group, session: time.Hour, rebalance: time.Hour, protocols: []groupProtocol{{"range", nil}}}
		return (<-s.groups.join(group, "t", m, false, false)).member
	}
	join("busy")
	if code := s.groups.leave("left", join("left"), nil); code != codeNone {
		t.Fatalf("leaving: code %d", code)
	}
	if n := len(s.groups.byName); n != 2 {
		t.Fatalf("%d groups are known, want 2", n)
	}
	s.groups.forgetIdle()
	if n := len(s.groups.byName); n != 1 || s.groups.byName["busy"] == nil {
		t.Errorf("%d groups are known, want the one with a member", n)
	}
}
