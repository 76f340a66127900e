package kafkaproto

// DeleteTopics (20), versions 0 to 6: deletes topics with their records.
//
//   - A topic that a job subscribes to is not deleted: error 44 (policy
//     violation) names the subscribers.
//   - 4 is flexible, 5 adds the error's text, 6 names topics by name or id.

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveDeleteTopics(c *call, req *kmsg.DeleteTopicsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DeleteTopicsResponse)
	topics := req.Topics
	for _, name := range req.TopicNames {
		t := kmsg.NewDeleteTopicsRequestTopic()
		t.Topic = &name
		topics = append(topics, t)
	}
	for _, t := range topics {
		rt := kmsg.NewDeleteTopicsResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		err := c.deleteTopic(t, &rt)
		rt.ErrorCode, rt.ErrorMessage = adminCode(err), message(err)
		resp.Topics = append(resp.Topics, rt)
	}
	return resp
}

func (c *call) deleteTopic(t kmsg.DeleteTopicsRequestTopic, out *kmsg.DeleteTopicsResponseTopic) error {
	var topic topiclog.Topic
	var err error
	if t.Topic == nil {
		if topic, err = c.s.opts.Store.TopicByID(t.TopicID); err != nil {
			return coded(codeUnknownTopicID, "no topic has this id")
		}
	} else if topic, err = c.s.opts.Store.Topic(*t.Topic); err != nil {
		return err
	}
	out.Topic, out.TopicID = &topic.Name, topic.ID
	if internalTopic(topic.Name) {
		return coded(codeInvalidTopic, "topic %s is the store's own", topic.Name)
	}
	return c.s.opts.Store.DeleteTopic(context.Background(), topic.Name, false)
}
