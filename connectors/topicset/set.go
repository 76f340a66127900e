package topicset

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/runtime/connector"
)

// Member is the source of one topic.
type Member interface {
	connector.Source
	connector.CursorMirror
	connector.StartExplainer
}

// Set answers what connector.Source is asked about partitions; Partitions and Close are
// the connector's.
type Set[M Member] struct {
	// Of is the source of a topic's name, never nil.
	Of func(topic string) M
}

// ByTopic asks each topic's source about what is the topic's, and puts the answers in
// the order of the questions.
func ByTopic[M, Q, A any](of func(topic string) M, ask []Q, topic func(Q) connector.Partition, f func(M, []Q) ([]A, error)) ([]A, error) {
	places := map[string][]int{}
	var names []string
	for i, q := range ask {
		name := topic(q).Topic
		if places[name] == nil {
			names = append(names, name)
		}
		places[name] = append(places[name], i)
	}
	out := make([]A, len(ask))
	for _, name := range names {
		questions := make([]Q, len(places[name]))
		for k, i := range places[name] {
			questions[k] = ask[i]
		}
		answers, err := f(of(name), questions)
		if err != nil {
			return nil, err
		}
		for k, i := range places[name] {
			out[i] = answers[k]
		}
	}
	return out, nil
}

func itself(p connector.Partition) connector.Partition { return p }

// PartitionOf is a position's partition, for ByTopic.
func PartitionOf(p connector.Position) connector.Partition { return p.Partition }

// Start implements connector.Source.
func (s Set[M]) Start(ctx context.Context, parts []connector.Partition) ([]connector.Position, error) {
	return ByTopic(s.Of, parts, itself, func(m M, of []connector.Partition) ([]connector.Position, error) { return m.Start(ctx, of) })
}

// End implements connector.Source.
func (s Set[M]) End(ctx context.Context, parts []connector.Partition) ([]int64, error) {
	return ByTopic(s.Of, parts, itself, func(m M, of []connector.Partition) ([]int64, error) { return m.End(ctx, of) })
}

// Check implements connector.Source.
func (s Set[M]) Check(ctx context.Context, saved []connector.Position) ([]error, error) {
	return ByTopic(s.Of, saved, PartitionOf, func(m M, of []connector.Position) ([]error, error) { return m.Check(ctx, of) })
}

// ExplainStart implements connector.StartExplainer.
func (s Set[M]) ExplainStart(parts []connector.Partition) []string {
	out, _ := ByTopic(s.Of, parts, itself, func(m M, of []connector.Partition) ([]string, error) { return m.ExplainStart(of), nil })
	return out
}

// MirrorCursor implements connector.CursorMirror.
func (s Set[M]) MirrorCursor(ctx context.Context, next []connector.Position) error {
	var errs []error // one topic's does not keep the others' positions from being shown
	_, err := ByTopic(s.Of, next, PartitionOf, func(m M, of []connector.Position) ([]struct{}, error) {
		errs = append(errs, m.MirrorCursor(ctx, of))
		return make([]struct{}, len(of)), nil
	})
	return errors.Join(append(errs, err)...)
}

// Open implements connector.Source. A lane reads one topic.
func (s Set[M]) Open(ctx context.Context, splits []connector.Split, columns []int, notify func()) (connector.Reader, error) {
	for _, x := range splits[1:] {
		if x.From.Partition.TopicID != splits[0].From.Partition.TopicID {
			return nil, fmt.Errorf("BUG: a reader is asked for topics %s and %s", splits[0].From.Partition.Topic, x.From.Partition.Topic)
		}
	}
	return s.Of(splits[0].From.Partition.Topic).Open(ctx, splits, columns, notify)
}
