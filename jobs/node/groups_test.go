package node

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/topiclog"
)

// TestGroupsOfJobs: the group that a job names is the job's, for others to see and
// not to move; once the job reads another topic by no group it is free again.
func TestGroupsOfJobs(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "events", 2)
	w.produce(n, "events", `{"id":1,"a":1,"b":1}`)
	from := strings.Replace(source("e", "events"), "'scan.bounded.mode'='latest-offset'", "'properties.group.id'='shown'", 1)
	sql := from + w.sink("out") + "INSERT INTO `out` SELECT id, a FROM e;"
	r, err := n.Start(w.ctx(), w.options("job", sql))
	if err != nil {
		t.Fatal(explain(err))
	}
	groups, err := n.Groups(w.ctx())
	if err != nil || len(groups) != 2 || groups[0].Name != "job/job" || groups[1].Name != "shown" {
		t.Fatalf("%+v, %v", groups, err)
	}
	for _, g := range groups {
		if g.Type != "job" || g.Owner != "job job" || g.State != "Stable" {
			t.Errorf("%+v", g)
		}
	}
	reset := func(group string, topics ...control.TopicPartitions) (control.GroupReset, error) {
		return n.ResetGroup(w.ctx(), control.ResetGroup{Group: group, Range: "start", Execute: true, Topics: topics})
	}
	var refused *control.Error
	for _, g := range groups {
		if _, err := reset(g.Name, control.TopicPartitions{Topic: "events"}); !errors.As(err, &refused) || refused.Kind != "failed" || !strings.Contains(refused.Message, "job job") {
			t.Errorf("resetting %s: %v", g.Name, err)
		}
	}
	if err := r.Stop(w.ctx()); err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(w.ctx()); err != nil {
		t.Fatal(err)
	}
	// A job that is stopped still reads on from its positions.
	if _, err := reset("shown"); !errors.As(err, &refused) {
		t.Errorf("resetting the group of a stopped job: %v", err)
	}
	// The same job without the group.
	r, err = n.Start(w.ctx(), w.options("job", strings.Replace(sql, "'properties.group.id'='shown', ", "", 1)))
	if err != nil {
		t.Fatal(explain(err))
	}
	if _, err := reset("shown", control.TopicPartitions{Topic: "events"}); err != nil {
		t.Errorf("resetting what no job reads by: %v", err)
	}
	if err := r.Stop(w.ctx()); err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(w.ctx()); err != nil {
		t.Fatal(err)
	}
}

// busy is a coordinator whose group gets a member at the last moment.
type busy struct{}

func (busy) Groups() []kafkaproto.GroupInfo { return nil }

func (busy) CommitOffsets(_ context.Context, group string, _ []topiclog.Cursor) error {
	return &kafkaproto.MembersError{Group: group, Members: 1}
}

func TestResetAsksTheCoordinator(t *testing.T) {
	w := newWorld(t)
	n := w.open()
	w.topic(n, "events", 1)
	n.Coordinate(busy{})
	req := control.ResetGroup{Group: "g", Range: "end", Execute: true, Topics: []control.TopicPartitions{{Topic: "events"}}}
	var refused *control.Error
	if _, err := n.ResetGroup(w.ctx(), req); !errors.As(err, &refused) || refused.Kind != "failed" {
		t.Errorf("%v", err)
	}
	n.Coordinate(nil)
	if out, err := n.ResetGroup(w.ctx(), req); err != nil || !out.Executed {
		t.Errorf("%+v, %v", out, err)
	}
}
