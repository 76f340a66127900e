package jobtest

import (
	"encoding/json"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

func (r *fileReader) test(n *yaml.Node) *Test {
	t := &Test{Line: n.Line}
	t.node = resolve(n)
	for _, e := range r.entries(n, "a test", "name", "set", "clock", "given", "steps", "want", "dead", "ordered") {
		switch e.key {
		case "name":
			t.Name = r.text(e.value, "name")
		case "set":
			t.Set = r.variables(e.value)
		case "ordered":
			v := resolve(e.value)
			if t.Ordered = v.Value == "true"; v.Tag != "!!bool" {
				r.fail(v, "ordered: want true or false")
			}
		case "steps":
			items := r.items(e.value, "steps")
			if len(items) == 0 {
				r.fail(e.value, "steps: want at least one step")
			}
			for _, item := range items {
				t.steps = append(t.steps, r.step(item, t))
			}
		default:
			r.part(&t.part, e)
		}
	}
	if t.Name == "" {
		r.fail(n, "a test needs a name")
	}
	now := t.clock
	for _, st := range t.steps {
		switch {
		case st.clock.IsZero():
		case now.IsZero():
			r.fail(st.node, "step %q moves a clock that does not stand: say with the key clock of the test where it begins", st.name)
		case st.clock.Before(now):
			r.fail(st.node, "step %q: the clock goes back, from %s to %s", st.name, now.Format(time.RFC3339Nano), st.clock.Format(time.RFC3339Nano))
		default:
			now = st.clock
		}
	}
	return t
}

// step reads a step of a test.
func (r *fileReader) step(n *yaml.Node, t *Test) *step {
	st := &step{line: n.Line}
	st.node = resolve(n)
	for _, e := range r.entries(n, "a step", "name", "clock", "given", "want", "dead") {
		if e.key == "name" {
			st.name = r.text(e.value, "name")
		} else {
			r.part(&st.part, e)
		}
	}
	if st.name == "" {
		r.fail(n, "a step needs a name")
	}
	if slices.ContainsFunc(t.steps, func(o *step) bool { return o.name == st.name }) {
		r.fail(n, "there are two steps named %q", st.name)
	}
	return st
}

// clock is a time at which the clock is put.
func (r *fileReader) clock(n *yaml.Node) time.Time {
	n = resolve(n)
	return time.UnixMilli(r.timestamp(n, "clock")).UTC()
}

func (r *fileReader) given(n *yaml.Node) []givenTable {
	var out []givenTable
	for _, g := range r.entries(n, "given") {
		tab := givenTable{table: g.key, line: g.node.Line}
		for _, item := range r.items(g.value, "the rows of "+g.key) {
			tab.records = append(tab.records, r.record(item))
		}
		out = append(out, tab)
	}
	return out
}

// part reads what a test and a step have in common.
func (r *fileReader) part(x *part, e entry) {
	switch e.key {
	case "clock":
		x.clock = r.clock(e.value)
	case "given":
		x.given = r.given(e.value)
	case "want":
		for _, w := range r.entries(e.value, "want") {
			tab := wantTable{table: w.key, line: w.node.Line, node: resolve(w.value)}
			for _, item := range r.items(w.value, "the rows of "+w.key) {
				tab.rows = append(tab.rows, r.wantRow(item))
			}
			x.want = append(x.want, tab)
		}
	case "dead":
		x.hasDead = true
		for _, item := range r.items(e.value, "dead") {
			x.dead = append(x.dead, r.wantDead(item))
		}
	}
}

func (r *fileReader) wantRow(n *yaml.Node) wantRow {
	row := wantRow{line: n.Line, values: map[string]json.RawMessage{}}
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		r.fail(n, "a wanted row is an object of columns")
		return row
	}
	flat := r.merged(n, 0)
	for i := 0; i+1 < len(flat); i += 2 {
		row.values[flat[i].Value] = r.json(nil, flat[i+1], 0)
	}
	return row
}

func (r *fileReader) wantDead(n *yaml.Node) wantDead {
	d := wantDead{line: n.Line}
	for _, e := range r.entries(n, "dead", "table", "reason", "column") {
		to := map[string]*string{"table": &d.table, "reason": &d.reason, "column": &d.column}[e.key]
		if to != nil {
			*to = r.text(e.value, e.key)
		}
	}
	if d.reason == "" {
		r.fail(n, "a dead row needs a reason, such as type_mismatch or malformed_record")
	}
	return d
}
