package scanrange

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
)

// The options that name topics.
const (
	KeyTopic   = "topic"
	KeyPattern = "topic-pattern"
)

// Topics says which topics a table reads: those of a list, or all whose name
// matches a pattern.
type Topics struct {
	// Names is the list; nil with a pattern.
	Names   []string
	pattern *regexp.Regexp
}

// TopicsOf reads the table's options.
func TopicsOf(v connector.Values) (Topics, error) {
	if !v.Has(KeyPattern) {
		return Topics{Names: splitTopics(v.String(KeyTopic))}, nil
	}
	p, err := compilePattern(v.String(KeyPattern))
	return Topics{pattern: p}, err
}

// One is the name when there is a single one.
func (t Topics) One() (string, bool) {
	if len(t.Names) != 1 {
		return "", false
	}
	return t.Names[0], true
}

// Include reports whether a topic is one of them.
func (t Topics) Include(name string) bool {
	if t.pattern != nil {
		return t.pattern.MatchString(name)
	}
	return slices.Contains(t.Names, name)
}

// Reads reports whether a table with these options reads a topic.
func Reads(v connector.Values, topic string) bool {
	t, err := TopicsOf(v)
	return err == nil && t.Include(topic)
}

func splitTopics(s string) []string {
	names := strings.Split(s, ";")
	for i, n := range names {
		names[i] = strings.TrimSpace(n)
	}
	return names
}

// compilePattern makes a pattern that stands for whole names, as Flink's does.
func compilePattern(s string) (*regexp.Regexp, error) {
	p, err := regexp.Compile("^(?:" + s + ")$")
	if err != nil {
		return nil, fmt.Errorf("%q is no regular expression (RE2's syntax; there is no look-around and no back reference): %w", s, err)
	}
	return p, nil
}

// CheckPattern is the check of option `topic-pattern`.
func CheckPattern(s string) error {
	if s == "" {
		return fmt.Errorf("the pattern is empty")
	}
	_, err := compilePattern(s)
	return err
}

// CheckTopic is the check of option `topic`.
func CheckTopic(s string) error {
	names := splitTopics(s)
	for i, n := range names {
		switch {
		case n == "":
			return fmt.Errorf("a topic has no name")
		case strings.Contains(n, ","):
			return fmt.Errorf("%q is no topic's name; several are separated by ';'", n)
		case slices.Contains(names[:i], n):
			return fmt.Errorf("topic %q is named twice", n)
		}
	}
	return nil
}

// TopicOption is option `topic`.
func TopicOption() connector.Option {
	return connector.Option{Key: KeyTopic, Check: CheckTopic, Doc: "The topic's name; a source may name several, separated by `;`. Each topic is a lane of its own."}
}

// PatternOption is option `topic-pattern`; but: which topics no pattern stands for.
func PatternOption(but string) connector.Option {
	return connector.Option{Key: KeyPattern, Check: CheckPattern,
		Doc: "In place of `topic`: every topic whose whole name matches this regular expression (RE2), also those that are created later; " + but + ". A source only."}
}

// CheckTopics finds topics that contradict other options of a table of a connector.
func CheckTopics(v connector.Values, name string) error {
	switch {
	case v.Has(KeyTopic) && v.Has(KeyPattern):
		return &connector.OptionError{Key: KeyPattern, Message: `"topic" and "topic-pattern" both say what is read: keep one`}
	case !v.Has(KeyTopic) && !v.Has(KeyPattern):
		return &connector.OptionError{Key: KeyTopic, Missing: true, Message: fmt.Sprintf(`connector %q needs option "topic" or "topic-pattern"`, name)}
	}
	t, err := TopicsOf(v)
	if err != nil {
		return &connector.OptionError{Key: KeyPattern, OnValue: true, Message: err.Error()}
	}
	if _, single := t.One(); single {
		return nil
	}
	for _, key := range []string{"scan.startup.specific-offsets", "scan.bounded.specific-offsets"} {
		if v.Has(key) {
			return &connector.OptionError{Key: key, Message: fmt.Sprintf("%q names partitions, not topics: it is for a table over one topic", key)}
		}
	}
	return nil
}
