package kafka

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/connector"
)

// TestSinkTopics: topics that are missing, made again, or that forget.
func TestSinkTopics(t *testing.T) {
	w := newSinkWorld(t)
	_, err := w.conn.OpenSink(w.ctx, w.table("nowhere", conntest.Columns()), conntest.OwnerOf(1, 1))
	if !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Errorf("a missing topic: %v", err)
	}
	s := w.sink(1)
	a := attemptOf(1)
	wr, err := s.OpenWriter(w.ctx, a)
	check(t, err)
	x := w.seal(wr, a, 0, conntest.Rows(0, 5))
	_, err = w.admin.DeleteTopics(w.ctx, "out")
	check(t, err)
	_, err = w.admin.CreateTopic(w.ctx, 3, 1, nil, "out")
	check(t, err)
	var replaced *replacedError
	if err := s.Publish(w.ctx, []connector.Artifact{x})[0]; !errors.As(err, &replaced) || !errors.Is(err, connector.ErrRefused) {
		t.Errorf("publishing to a topic made again: %v", err)
	}
	if _, err := s.OpenWriter(w.ctx, attemptOf(2)); !errors.As(err, &replaced) {
		t.Errorf("writing on to a topic made again: %v", err)
	}
	out, err := s.Resolve(w.ctx, []connector.Artifact{x})
	check(t, err)
	if have := w.Visible(t); out[0] == connector.Published || len(have) > 0 {
		t.Errorf("it is %s, visible are %v", out[0], have)
	}
	// The topic of commits, made again: nothing is claimed about what was in it.
	_, err = w.admin.DeleteTopics(w.ctx, commitsTopic)
	check(t, err)
	_, err = w.admin.CreateTopic(w.ctx, commitsPartitions, 1, map[string]*string{"cleanup.policy": kadm.StringPtr("compact")}, commitsTopic)
	check(t, err)
	var lost *commitsError
	if _, err := s.Resolve(w.ctx, []connector.Artifact{x}); !errors.As(err, &lost) {
		t.Errorf("the topic of commits was made again: %v", err)
	}
	next := w.sink(2)
	out, err = next.Resolve(w.ctx, []connector.Artifact{x})
	check(t, err)
	if out[0] != connector.Unknown || next.ExplainUnknown(x) == "" {
		t.Errorf("with another topic of commits it is %s", out[0])
	}
	for _, bad := range []struct {
		partitions int32
		policy     string
	}{{commitsPartitions, "delete"}, {4, "compact"}, {commitsPartitions, "compact,delete"}} {
		_, err = w.admin.DeleteTopics(w.ctx, commitsTopic)
		check(t, err)
		_, err = w.admin.CreateTopic(w.ctx, bad.partitions, 1, map[string]*string{"cleanup.policy": &bad.policy}, commitsTopic)
		check(t, err)
		if _, err := w.Open(w.ctx, conntest.OwnerOf(1, 3)); !errors.As(err, &lost) {
			t.Errorf("%d partitions, %s: %v", bad.partitions, bad.policy, err)
		}
	}
}

// TestSinkTopicGone: a topic is deleted while rows are sent to it. The client would go on
// trying; the error says what is wrong.
func TestSinkTopicGone(t *testing.T) {
	w := newSinkWorld(t, "properties.transaction.timeout.ms", "1000")
	s := w.sink(1)
	wr, err := s.OpenWriter(w.ctx, attemptOf(1))
	check(t, err)
	first, second := w.seal(wr, attemptOf(1), 0, conntest.Rows(0, 5)), w.seal(wr, attemptOf(1), 1, conntest.Rows(5, 5))
	check(t, s.Publish(w.ctx, []connector.Artifact{first})...)
	_, err = w.admin.DeleteTopics(w.ctx, "out")
	check(t, err)
	if err := s.Publish(w.ctx, []connector.Artifact{second})[0]; !unknownTopic(err) || !errors.Is(err, connector.ErrRefused) {
		t.Errorf("publishing to a topic that was deleted: %v", err)
	}
}

// TestSinkTopicIsNews: a broker of several has not heard yet of the topic that the sink has
// just made. It is asked again.
func TestSinkTopicIsNews(t *testing.T) {
	w := newSinkWorld(t)
	var unheard atomic.Int32
	w.cluster.ControlKey(int16(kmsg.DescribeConfigs), func(r kmsg.Request) (kmsg.Response, error, bool) {
		if unheard.Add(1) > 2 {
			return nil, nil, false
		}
		w.cluster.KeepControl()
		resp := r.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, x := range r.(*kmsg.DescribeConfigsRequest).Resources {
			y := kmsg.NewDescribeConfigsResponseResource()
			y.ErrorCode, y.ResourceType, y.ResourceName = kerr.UnknownTopicOrPartition.Code, x.ResourceType, x.ResourceName
			resp.Resources = append(resp.Resources, y)
		}
		return resp, nil, true
	})
	w.sink(1)
	if unheard.Load() < 3 {
		t.Error("nobody asked for the topic's settings")
	}
}

// TestUnhealthyTopic: an error of rows that nobody takes says what the topic's partitions tell.
func TestUnhealthyTopic(t *testing.T) {
	for _, c := range []struct {
		led  led
		want string
	}{
		{led{inSync: 3, replicas: 3}, ""},
		{led{inSync: 1, replicas: 3}, "partition 0 has 1 of 3 replicas in sync"},
		{led{err: kerr.LeaderNotAvailable}, "partition 0: LEADER_NOT_AVAILABLE"},
	} {
		if got := (described{partitions: map[int32]led{0: c.led}}).unhealthy(); !strings.HasPrefix(got, c.want) || (c.want == "") != (got == "") {
			t.Errorf("%+v: %q, want %q", c.led, got, c.want)
		}
	}
}
