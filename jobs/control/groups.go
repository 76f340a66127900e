package control

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace/millrace/jobs/readrange"
)

// Groups is what can be asked about groups of consumers: of the owner of a data
// directory and of a Kafka cluster alike.
type Groups interface {
	Groups(ctx context.Context) ([]Group, error)
	Group(ctx context.Context, name string) (GroupDetail, error)
	// ResetGroup plans new positions of a group, and sets them if told to. While
	// the group has members, or a job reads by it, that is an error.
	ResetGroup(ctx context.Context, req ResetGroup) (GroupReset, error)
}

// Group is a group as `groups ls` shows it.
type Group struct {
	Name string `json:"group"`
	// Type is classic, consumer or job; State as Kafka's.
	Type    string `json:"type"`
	State   string `json:"state"`
	Members int    `json:"members"`
	// Partitions have a position; Lag is how many offsets follow these.
	Partitions int   `json:"partitions"`
	Lag        int64 `json:"lag"`
	// Owner is the job that reads by it, such as "job clicks".
	Owner string `json:"owner,omitempty"`
}

// GroupDetail is a group as `groups describe` shows it.
type GroupDetail struct {
	Group
	// Protocol is how partitions are shared out, such as range.
	Protocol  string          `json:"protocol,omitempty"`
	List      []GroupMember   `json:"member_list"`
	Positions []GroupPosition `json:"positions"`
}

// GroupMember is a member of a group.
type GroupMember struct {
	ID       string `json:"member"`
	Instance string `json:"instance,omitempty"`
	ClientID string `json:"client"`
	Host     string `json:"host"`
	// Partitions is how many it reads.
	Partitions int `json:"partitions"`
}

// GroupPosition is a group's position in a partition, or a partition that a member
// reads without one yet: then Offset and Lag are -1.
type GroupPosition struct {
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"`
	Offset    int64      `json:"offset"`
	Latest    int64      `json:"latest"`
	Lag       int64      `json:"lag"`
	Committed *time.Time `json:"committed,omitempty"`
	Metadata  string     `json:"metadata,omitempty"`
	// Member reads it, "" for nobody.
	Member string `json:"member,omitempty"`
}

// ResetGroup asks for positions at the beginning of a range (jobs/readrange).
type ResetGroup struct {
	Group string `json:"group"`
	// Topics to reset, with their partitions or, without any, all; none: what the
	// group has positions of.
	Topics []TopicPartitions `json:"topics,omitempty"`
	Range  string            `json:"range"`
	// Execute sets the positions; else they are only planned.
	Execute bool `json:"execute,omitempty"`
}

// TopicPartitions names partitions of a topic.
type TopicPartitions struct {
	Topic      string  `json:"topic"`
	Partitions []int32 `json:"partitions,omitempty"`
}

// GroupReset is the plan of a reset.
type GroupReset struct {
	Group    string        `json:"group"`
	Executed bool          `json:"executed"`
	Changes  []GroupChange `json:"changes"`
}

// GroupChange is the change of one position; From is -1 without one before.
type GroupChange struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	From      int64  `json:"from"`
	To        int64  `json:"to"`
	Earliest  int64  `json:"earliest"`
	Latest    int64  `json:"latest"`
}

// ResetPartition is a partition to reset: its position now, -1 without one, and its
// log.
type ResetPartition struct {
	Topic     string
	Partition int32
	From      int64
	Log       readrange.Log
}

// PlanReset plans the positions of a reset: the beginning of the range in each
// partition, within what can be read now.
func PlanReset(req ResetGroup, now time.Time, parts []ResetPartition) (GroupReset, error) {
	out := GroupReset{Group: req.Group, Changes: []GroupChange{}}
	r, err := readrange.Parse(req.Range, now)
	if err != nil {
		return out, &Error{Kind: "input", Message: err.Error()}
	}
	for _, p := range parts {
		c := GroupChange{Topic: p.Topic, Partition: p.Partition, From: p.From}
		if c.Earliest, c.Latest, err = p.Log.Bounds(); err == nil {
			c.To, _, err = r.Resolve(p.Log)
		}
		if err != nil {
			return out, fmt.Errorf("finding the position of topic %s partition %d: %w", p.Topic, p.Partition, err)
		}
		out.Changes = append(out.Changes, c)
	}
	return out, nil
}

func groupPaths(mux *http.ServeMux, api Groups) {
	unary(mux, "/v1/groups", func(ctx context.Context, _ struct{}) ([]Group, error) { return api.Groups(ctx) })
	unary(mux, "/v1/group", api.Group)
	unary(mux, "/v1/group/reset", api.ResetGroup)
}

// Groups implements Groups.
func (c *Client) Groups(ctx context.Context) ([]Group, error) {
	return call[[]Group](ctx, c, "/v1/groups", struct{}{})
}

// Group implements Groups.
func (c *Client) Group(ctx context.Context, name string) (GroupDetail, error) {
	return call[GroupDetail](ctx, c, "/v1/group", name)
}

// ResetGroup implements Groups.
func (c *Client) ResetGroup(ctx context.Context, req ResetGroup) (GroupReset, error) {
	return call[GroupReset](ctx, c, "/v1/group/reset", req)
}
