package jobtest

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	"go.yaml.in/yaml/v3"
)

// Update is the text of the test file with what the tests gave as what they
// want. Columns that no wanted row names stay out; a table that wants no row,
// and in a test without expectations every table that got rows, is written with
// all its columns. Comments stay where they are. The error says which job
// failed, so that there is nothing to take. changed is false when every test
// has what it wants.
func (s *Suite) Update(results []Result) (text []byte, changed bool, err error) {
	for i, r := range results {
		t := s.Tests[i]
		if r.OK && t.wants() {
			continue
		}
		if at := slices.IndexFunc(r.Problems, func(p Problem) bool { return p.failed }); at >= 0 {
			return nil, false, fmt.Errorf("%s:%d: test %q: %s", s.Name, t.Line, t.Name, r.Problems[at].Message)
		}
		if err := s.acceptTest(t, &r); err != nil {
			return nil, false, err
		}
		changed = true
	}
	if !changed {
		return nil, false, nil
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&s.doc); err != nil {
		return nil, false, fmt.Errorf("writing %s: %w", s.Name, err)
	}
	if err := enc.Close(); err != nil {
		return nil, false, fmt.Errorf("writing %s: %w", s.Name, err)
	}
	text = unmarkBlank(b.Bytes())
	var again yaml.Node
	if err := yaml.Unmarshal(text, &again); err != nil || !same(&again, &s.doc) {
		return nil, false, fmt.Errorf("BUG: %s would not say the same any more", s.Name)
	}
	return text, true, nil
}

// acceptTest puts what became of a test into the file: what differs, and, where a test
// wants nothing at all, everything.
func (s *Suite) acceptTest(t *Test, r *Result) error {
	var fresh []string
	all := !t.wants()
	if all {
		for name, tab := range r.actual[len(r.actual)-1].tables {
			if len(tab.rows) > 0 {
				fresh = append(fresh, name)
			}
		}
		sort.Strings(fresh)
	}
	for i, e := range t.all() {
		name := ""
		if i < len(t.steps) {
			name = t.steps[i].name
		}
		if !all && !slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Step == name }) {
			continue
		}
		if err := s.accept(e, t.Ordered, fresh, r.actual[i]); err != nil {
			return err
		}
	}
	return nil
}

// accept puts an outcome into the node of what was expected: the tables that it names,
// and the fresh ones.
func (s *Suite) accept(e *expected, ordered bool, fresh []string, out *outcome) error {
	want := slices.Clone(e.want)
	for _, name := range fresh {
		want = append(want, wantTable{table: name, node: &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}})
	}
	for _, w := range want {
		tab := out.tables[w.table]
		columns, err := s.wantedColumns(w, tab.fields)
		if err != nil {
			return err
		}
		rows, err := actualRows(tab.rows, columns)
		if err != nil {
			return err
		}
		if !ordered {
			sort.Slice(rows, func(i, j int) bool { return rows[i].key() < rows[j].key() })
		}
		var items []*yaml.Node
		for _, r := range rows {
			n, err := flow(r.show(columns))
			if err != nil {
				return err
			}
			// A column that a row does not name is NULL, as long as another names it.
			for k := len(columns) - 1; k >= 0; k-- {
				if r.values[k] == "null" && slices.ContainsFunc(rows, func(o row) bool { return o.values[k] != "null" }) {
					n.Content = slices.Delete(n.Content, 2*k, 2*k+2)
				}
			}
			items = append(items, n)
		}
		setItems(w.node, items)
		if slices.Contains(fresh, w.table) {
			setKey(mapping(e.node, "want"), w.table, w.node)
		}
	}
	return s.acceptDead(e, out.dead, want)
}

// acceptDead writes the dead rows of the tables that the test or step names.
func (s *Suite) acceptDead(e *expected, dead []deadRow, want []wantTable) error {
	problems, _ := compareDead(e, dead)
	if len(problems) == 0 && e.hasDead {
		return nil
	}
	var items []*yaml.Node
	for _, d := range dead {
		named := len(e.want) == 0 || slices.ContainsFunc(want, func(w wantTable) bool { return slices.Contains(d.tables, w.table) }) ||
			slices.ContainsFunc(e.dead, func(w wantDead) bool { return w.table == "" || slices.Contains(d.tables, w.table) })
		if !named {
			continue
		}
		text := append(quote([]byte(`{"table": `), d.tables[0]), `, "reason": `...)
		text = quote(text, d.reason)
		if d.column != "" {
			text = quote(append(text, `, "column": `...), d.column)
		}
		n, err := flow(string(append(text, '}')))
		if err != nil {
			return err
		}
		items = append(items, n)
	}
	if len(items) == 0 && !e.hasDead {
		return nil
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	setItems(list, items)
	setKey(e.node, "dead", list)
	return nil
}

// flow makes a node of JSON, on one line, with keys and texts unquoted where
// YAML allows it.
func flow(json string) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(json), &doc); err != nil {
		return nil, fmt.Errorf("BUG: JSON that is no YAML: %w", err)
	}
	plain(doc.Content[0])
	return doc.Content[0], nil
}

// plain takes the quotes off; what needs them gets them again.
func plain(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		n.Style = 0
	}
	for _, c := range n.Content {
		plain(c)
	}
}

// blank stands for an empty line while a file is a tree, which keeps comments
// alone.
const blank = "#~blank~"

// markBlank puts the mark into empty lines, as deep as the line that follows.
func markBlank(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	var indent []byte
	for i, line := range slices.Backward(lines) {
		if body := bytes.TrimLeft(line, " "); len(bytes.TrimSpace(body)) > 0 {
			indent = line[:len(line)-len(body)]
		} else if i < len(lines)-1 {
			lines[i] = append(slices.Clone(indent), blank...)
		}
	}
	return bytes.Join(lines, []byte("\n"))
}

// unmarkBlank empties the marked lines again.
func unmarkBlank(text []byte) []byte {
	lines := bytes.Split(text, []byte("\n"))
	out := lines[:0]
	for _, line := range lines {
		if string(bytes.TrimSpace(line)) == blank {
			if len(out) > 0 && len(out[len(out)-1]) == 0 {
				continue
			}
			line = nil
		}
		out = append(out, line)
	}
	return bytes.Join(out, []byte("\n"))
}

// tag is a node's type; times are texts, and written with quotes.
func tag(n *yaml.Node) string {
	if t := n.ShortTag(); t != "!!timestamp" {
		return t
	}
	return "!!str"
}

// same reports whether two trees hold the same, comments and style aside.
func same(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || tag(a) != tag(b) || a.Value != b.Value || a.Anchor != b.Anchor {
		return false
	}
	return slices.EqualFunc(a.Content, b.Content, same)
}

// setItems replaces the elements of a list, one a line.
func setItems(n *yaml.Node, items []*yaml.Node) {
	n.Content, n.Style = items, 0
	if len(items) == 0 {
		n.Style = yaml.FlowStyle
	}
}

// mapping is the mapping at a key, made where it is missing.
func mapping(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return resolve(n.Content[i+1])
		}
	}
	m := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	setKey(n, key, m)
	return m
}

// setKey sets a key of a mapping.
func setKey(n *yaml.Node, key string, value *yaml.Node) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			n.Content[i+1] = value
			return
		}
	}
	n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, value)
}
