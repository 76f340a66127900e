// Package topicset is a table over several topics: questions about partitions go to
// the source of each one's topic, and the answers come back in the order of the
// questions. The log's and Kafka's connectors have such tables, by a list of topics or
// by a pattern.
//
// It does not know which topics there are: the connector lists their partitions, and
// gives for each name the source that it stands for, also one of a topic that is gone,
// which says so itself. So what befalls a topic keeps nobody from reading the others.
//
// A Set has no state of its own; it is as safe for concurrent use as its Of.
package topicset
