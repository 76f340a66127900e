package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

type groupChange struct {
	Partition int32
	From, To  int64
}

// reset runs `groups reset` and gives the changes by partition, in order.
func (w *world) reset(args ...string) []groupChange {
	w.t.Helper()
	var plan struct{ Changes []groupChange }
	w.ask(&plan, append([]string{"groups", "reset"}, args...)...)
	return plan.Changes
}

// TestGroups: who reads is shown with positions and lag; positions move only when
// told to, and only while nobody reads.
func TestGroups(t *testing.T) {
	w := newWorld(t)
	w.run("topics", "create", "clicks", "--partitions", "2").must(t, 0)
	p, addr := w.server()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, x := range []struct {
		kind string
		opts []kgo.Opt
		via  []string // by the owner of the directory, or as of any cluster
	}{
		{"classic", nil, nil}, {"consumer", []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer())}, nil},
		{"classic-c", nil, []string{"--brokers", addr}}, {"consumer-c", []kgo.Opt{kgo.ServerSideBalancer(), kgo.Balancers(kgo.RangeBalancer())}, []string{"--brokers", addr}},
	} {
		kind, opts := x.kind, x.opts
		via := func(args ...string) []string { return append(args, x.via...) }
		c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(addr), kgo.ConsumerGroup(kind), kgo.ConsumeTopics("clicks"), kgo.DisableAutoCommit(), kgo.ClientID("reader"),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for i := range 10 {
			if err := c.ProduceSync(ctx, &kgo.Record{Topic: "clicks", Partition: int32(i % 2), Value: fmt.Append(nil, i)}).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		if fs := c.PollRecords(ctx, 1); fs.Err() != nil {
			t.Fatal(fs.Err())
		}
		c.CommitOffsetsSync(ctx, map[string]map[int32]kgo.EpochOffset{"clicks": {1: {Epoch: -1, Offset: 2}}}, nil)
		var g struct {
			Type, State string
			MemberList  []struct{ Client string } `json:"member_list"`
			Positions   []struct {
				Topic               string
				Partition           int32
				Offset, Latest, Lag int64
				Member              string
			}
		}
		w.ask(&g, via("groups", "describe", kind)...)
		if !strings.HasPrefix(kind, g.Type) || g.State != "Stable" || len(g.MemberList) != 1 || g.MemberList[0].Client != "reader" || len(g.Positions) != 2 {
			t.Fatalf("%+v", g)
		}
		if a, b := g.Positions[0], g.Positions[1]; a.Offset != -1 || a.Member == "" || b.Offset != 2 || b.Lag != b.Latest-2 || b.Member == "" {
			t.Errorf("%s: positions %+v", kind, g.Positions)
		}
		if r := w.run(via("groups", "reset", kind, "--range", "start", "--execute")...); r.code != 1 || !strings.Contains(r.stderr, "1 active member") {
			t.Errorf("%s: a reset while somebody reads: exit code %d\n%s", kind, r.code, r.stderr)
		}
		c.Close()
		if got := w.reset(via(kind, "--range", "start")...); !slices.Equal(got, []groupChange{{1, 2, 0}}) {
			t.Errorf("%s: plan %v", kind, got)
		}
		if got := w.reset(via(kind, "--range", "-1")...); len(got) != 1 || got[0].From != 2 {
			t.Errorf("%s: the plan before has moved something: %v", kind, got)
		}
		if got := w.reset(via(kind, "--range", "3:", "--topic", "clicks", "--execute")...); !slices.Equal(got, []groupChange{{0, -1, 3}, {1, 2, 3}}) {
			t.Errorf("%s: executed %v", kind, got)
		}
	}
	for what, args := range map[string][]string{
		"unknown group":     {"reset", "clasic", "--range", "start"},
		"unknown topic":     {"reset", "classic", "--range", "start", "--topic", "click"},
		"unknown partition": {"reset", "classic", "--range", "start", "--topic", "clicks:7"},
		"describe unknown":  {"describe", "clasic"},
	} {
		if r := w.run(append([]string{"groups", "--brokers", addr}, args...)...); r.code != 2 {
			t.Errorf("of a cluster: %s: exit code %d, want 2\n%s", what, r.code, r.stderr)
		}
	}
	if out := w.run("groups", "ls", "--brokers", addr).must(t, 0).stdout; strings.Count(out, "Empty") != 4 {
		t.Errorf("%s", out)
	}
	if out := w.run("groups", "ls").must(t, 0).stdout; !strings.Contains(out, "classic") || !strings.Contains(out, "Empty") {
		t.Errorf("%s", out)
	}
	p.kill()
	// What was set is there after SIGKILL, for whoever opens the directory.
	if got := w.reset("classic", "--range", "end", "--topic", "clicks:1"); len(got) != 1 || got[0].From != 3 {
		t.Errorf("after SIGKILL: %v", got)
	}
	// A group can be given its first positions.
	if got := w.reset("new", "--range", "@-1h", "--topic", "clicks:0", "--execute"); !slices.Equal(got, []groupChange{{0, -1, 0}}) {
		t.Errorf("a new group: %v", got)
	}
	for what, args := range map[string][]string{
		"no range":          {"groups", "reset", "classic"},
		"bad range":         {"groups", "reset", "classic", "--range", "soon"},
		"unknown group":     {"groups", "reset", "clasic", "--range", "start"},
		"unknown topic":     {"groups", "reset", "classic", "--range", "start", "--topic", "click"},
		"unknown partition": {"groups", "reset", "classic", "--range", "start", "--topic", "clicks:7"},
		"bad partition":     {"groups", "reset", "classic", "--range", "start", "--topic", "clicks:x"},
		"describe unknown":  {"groups", "describe", "clasic"},
	} {
		if r := w.run(args...); r.code != 2 {
			t.Errorf("%s: exit code %d, want 2\n%s", what, r.code, r.stderr)
		}
	}
}
