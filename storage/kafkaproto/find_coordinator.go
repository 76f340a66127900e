package kafkaproto

// FindCoordinator (10), versions 0 to 6: this node coordinates every group and every
// transactional producer.
//
//   - 1 adds the kind of key: 0 a group, 1 a transactional id. 3 is flexible, 4 asks
//     for many keys at once; 5 and 6 add errors and kinds of keys that do not come up
//     here.
//   - As on Kafka, the first question for a group makes the topic __consumer_offsets,
//     since tools and clients' own tests look for it. It stays empty: a group's
//     offsets are the store's cursors.

import (
	"context"
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

const offsetsTopic = "__consumer_offsets"

// makeOffsetsTopic makes the topic that groups have on Kafka. A failure is that of the
// disk, which whoever commits will meet.
func (c *call) makeOffsetsTopic() {
	if c.s.offsetsTopic.Load() {
		return
	}
	_, err := c.s.opts.Store.CreateTopic(context.Background(), topiclog.TopicSpec{Name: offsetsTopic, Partitions: 1, Config: map[string]string{"cleanup.policy": "compact"}})
	if err == nil || errors.Is(err, topiclog.ErrTopicExists) {
		c.s.offsetsTopic.Store(true)
		return
	}
	c.s.opts.Logger.Warn("making the topic of groups", "topic", offsetsTopic, "error", err)
}

func serveFindCoordinator(c *call, req *kmsg.FindCoordinatorRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.FindCoordinatorResponse)
	host, port := c.s.address(c.conn)
	keys := req.CoordinatorKeys
	if c.version < 4 {
		keys = []string{req.CoordinatorKey}
	}
	for _, key := range keys {
		rc := kmsg.NewFindCoordinatorResponseCoordinator()
		rc.Key, rc.NodeID, rc.Host, rc.Port = key, c.s.opts.NodeID, host, port
		var err error
		switch {
		case req.CoordinatorType != 0 && req.CoordinatorType != 1:
			err = coded(codeInvalidRequest, "coordinator type %d is not served", req.CoordinatorType)
		case key == "" && req.CoordinatorType == 1:
			err = coded(codeInvalidRequest, "the transactional id is empty")
		case key == "":
			err = coded(codeInvalidGroupID, "the group's name is empty")
		}
		if err != nil {
			rc.ErrorCode, rc.ErrorMessage = adminCode(err), message(err)
			rc.NodeID, rc.Host, rc.Port = -1, "", -1
		} else if req.CoordinatorType == 0 {
			c.makeOffsetsTopic()
		}
		resp.Coordinators = append(resp.Coordinators, rc)
	}
	if c.version < 4 {
		rc := resp.Coordinators[0]
		resp.ErrorCode, resp.ErrorMessage, resp.NodeID, resp.Host, resp.Port = rc.ErrorCode, rc.ErrorMessage, rc.NodeID, rc.Host, rc.Port
		resp.Coordinators = nil
	}
	return resp
}
