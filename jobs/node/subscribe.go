package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/logtopic"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/storage/topiclog"
)

// subscribe tells the log that the job reads its topics, and no others.
func (n *Node) subscribe(ctx context.Context, r *Running) error {
	topics, err := n.topicsOf(r)
	if err != nil {
		return err
	}
	wanted := map[topiclog.Subscription]bool{}
	for _, t := range topics {
		for _, sub := range subscriptionsOf(r, t) {
			wanted[sub] = true
			if err := n.store.Subscribe(ctx, sub); err != nil && !n.leaving(r, t, err) {
				return fmt.Errorf("subscribing to topic %s: %w", t.Name, err)
			}
		}
	}
	// By another group before: the topic stays, that group is free.
	for _, s := range n.store.Subscriptions() {
		if s.Owner == jobOwner(r.record.Name) && !wanted[s] && slices.ContainsFunc(topics, func(t topiclog.Topic) bool { return t.ID == s.Topic }) {
			if err := n.store.Unsubscribe(ctx, s.Group, s.Topic); err != nil {
				return fmt.Errorf("letting go of group %s: %w", s.Group, err)
			}
		}
	}
	if err := n.release(ctx, r.record, topics); err != nil {
		return fmt.Errorf("letting go of topics that are read no more: %w", err)
	}
	return nil
}

// subscribeFound is subscribe for a topic that a pattern stands for since the job
// runs. Topics of other clusters are none of the log's.
func (n *Node) subscribeFound(ctx context.Context, r *Running, id connector.UUID) error {
	t, err := n.store.TopicByID(topiclog.UUID(id))
	if errors.Is(err, topiclog.ErrTopicNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, sub := range subscriptionsOf(r, t) {
		if err := n.store.Subscribe(ctx, sub); err != nil && !n.leaving(r, t, err) {
			return fmt.Errorf("subscribing to topic %s: %w", t.Name, err)
		}
	}
	return nil
}

// leaving reports that a topic cannot be subscribed to since it is being deleted, and
// that nobody has named it: a pattern stands for what is there.
func (n *Node) leaving(r *Running, t topiclog.Topic, err error) bool {
	if !errors.Is(err, topiclog.ErrTopicClosing) && !errors.Is(err, topiclog.ErrTopicNotFound) {
		return false
	}
	for _, s := range logSources(r.graph) {
		if w, err := scanrange.TopicsOf(s.Options); err == nil && slices.Contains(w.Names, t.Name) {
			return false
		}
	}
	return true
}

// topicsOf are the topics of the log that the job reads. Those that are named are
// there.
func (n *Node) topicsOf(r *Running) ([]topiclog.Topic, error) {
	var topics []topiclog.Topic
	have := map[topiclog.UUID]bool{}
	add := func(t topiclog.Topic) {
		if !have[t.ID] {
			have[t.ID] = true
			topics = append(topics, t)
		}
	}
	for _, s := range logSources(r.graph) {
		wanted, err := scanrange.TopicsOf(s.Options)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", s.Name, err)
		}
		for _, name := range wanted.Names {
			t, err := n.findTopic(name)
			if err != nil {
				var ce *control.Error
				if errors.As(err, &ce) && ce.Hint == "" {
					ce.Hint = "make it: millrace topics create " + name
				}
				return nil, err
			}
			add(t)
		}
		if wanted.Names != nil {
			continue
		}
		if err := readsItself(r, s, wanted); err != nil {
			return nil, err
		}
		for _, t := range logtopic.Matching(n.store, wanted) {
			add(t)
		}
	}
	return topics, nil
}

// readsItself refuses a pattern that stands for a topic that the job writes: each row
// would come round for ever.
func readsItself(r *Running, source *connector.Table, wanted scanrange.Topics) error {
	refused := func(topic, hint string) error {
		return &control.Error{Kind: "input", Hint: hint, Message: fmt.Sprintf("table %s: '%s' = '%s' stands for topic %s too, which this job writes",
			source.Name, scanrange.KeyPattern, source.Options.String(scanrange.KeyPattern), topic)}
	}
	if t := DeadTopic(r.record.Name, r.graph); wanted.Include(t) {
		return refused(t, "name another topic for dead letters: SET 'dead.topic' = '...', or narrow the pattern")
	}
	if t := r.graph.Options[manifestKey]; t != "" && wanted.Include(t) {
		return refused(t, "name another one by 'manifest.topic', or narrow the pattern")
	}
	for _, node := range r.graph.Nodes {
		s, ok := node.Op.(*graph.Sink)
		if !ok {
			continue
		}
		if s.Table.Options.Has(filesystem.KeyReadiness) && len(s.Table.Options.Family(filesystem.ReadinessProperties)) == 0 {
			if t := s.Table.Options.String(filesystem.KeyReadiness); wanted.Include(t) {
				return refused(t, "name another one by '"+filesystem.KeyReadiness+"', or narrow the pattern")
			}
		}
		if s.Connector.Spec().Name != "log" {
			continue
		}
		if t := s.Table.Options.String(scanrange.KeyTopic); wanted.Include(t) {
			return refused(t, "narrow the pattern")
		}
	}
	return nil
}

// subscriptionsOf are a job's subscriptions to a topic. A source with a group of its
// own subscribes by that name as well: clients must not move what the job shows there.
func subscriptionsOf(r *Running, t topiclog.Topic) []topiclog.Subscription {
	groups := []string{jobGroup(r.record.Name)}
	for _, s := range logSources(r.graph) {
		if g := s.Options.String("properties.group.id"); g != "" && scanrange.Reads(s.Options, t.Name) && !slices.Contains(groups, g) {
			groups = append(groups, g)
		}
	}
	out := make([]topiclog.Subscription, len(groups))
	for i, g := range groups {
		out[i] = topiclog.Subscription{Group: g, Topic: t.ID, Owner: jobOwner(r.record.Name)}
	}
	return out
}

// jobGroup is the name of a job's subscriptions.
func jobGroup(job string) string { return "job/" + job }

// jobOwner is who a job's subscriptions belong to, for people.
func jobOwner(job string) string { return "job " + job }

// logSources are the tables over the embedded log that a graph reads.
func logSources(g *graph.Job) []*connector.Table {
	var out []*connector.Table
	for _, node := range g.Nodes {
		if s, ok := node.Op.(*graph.Source); ok && s.Connector.Spec().Name == "log" {
			out = append(out, s.Table)
		}
	}
	return out
}

// release lets topics go that a job reads no more, all but those to keep:
// subscriptions and what it holds back from retention.
func (n *Node) release(ctx context.Context, rec jobRecord, keep []topiclog.Topic) error {
	var errs []error
	for _, s := range n.store.Subscriptions() {
		if s.Owner == jobOwner(rec.Name) && !slices.ContainsFunc(keep, func(t topiclog.Topic) bool { return t.ID == s.Topic }) {
			errs = append(errs, n.store.Unsubscribe(ctx, s.Group, s.Topic))
		}
	}
	kept := map[topiclog.PartitionID]bool{}
	for _, t := range keep {
		for _, p := range t.Partitions {
			kept[p.ID] = true
		}
	}
	for _, h := range n.store.Holds() {
		if strings.HasPrefix(h.Name, rec.ID.String()+"/") && !kept[h.Partition] {
			errs = append(errs, n.store.ReleaseHold(ctx, h.Name))
		}
	}
	return errors.Join(errs...)
}
