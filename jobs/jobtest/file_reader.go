package jobtest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// fileReader reads the nodes of a test file; the first fault stays in err.
type fileReader struct {
	name string
	err  error
	size int // bytes of JSON made so far
}

func (r *fileReader) fail(n *yaml.Node, format string, args ...any) {
	if r.err == nil {
		r.err = &FileError{r.name, n.Line, n.Column, fmt.Sprintf(format, args...)}
	}
}

// entry is a key with its value.
type entry struct {
	key   string
	node  *yaml.Node // the key
	value *yaml.Node
}

// entries are the keys of a mapping, each once; known nil: any.
func (r *fileReader) entries(n *yaml.Node, what string, known ...string) []entry {
	n = resolve(n)
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s: want keys and values", what)
		return nil
	}
	var out []entry
	for i := 0; i+1 < len(n.Content); i += 2 {
		e := entry{n.Content[i].Value, n.Content[i], n.Content[i+1]}
		switch {
		case slices.ContainsFunc(out, func(o entry) bool { return o.key == e.key }):
			r.fail(e.node, "%s: key %q is there twice", what, e.key)
		case known != nil && !slices.Contains(known, e.key):
			r.fail(e.node, "%s: unknown key %q%s", what, e.key, nearest(e.key, slices.Clone(known)))
		}
		out = append(out, e)
	}
	return out
}

// items are the elements of a list.
func (r *fileReader) items(n *yaml.Node, what string) []*yaml.Node {
	n = resolve(n)
	if n.Kind != yaml.SequenceNode {
		r.fail(n, "%s: want a list", what)
		return nil
	}
	return n.Content
}

// text is a scalar as it is written.
func (r *fileReader) text(n *yaml.Node, what string) string {
	n = resolve(n)
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.fail(n, "%s: want a text", what)
		return ""
	}
	return n.Value
}

func resolve(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	return n
}

// suite reads the whole file. Top-level keys that start with "x-" are for
// anchors.
func (r *fileReader) suite(s *Suite, sql *sqlNames) {
	known := []string{"job", "ddl", "set", "tests"}
	root := s.doc.Content[0]
	if root.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(root.Content); i += 2 {
			if k := root.Content[i].Value; strings.HasPrefix(k, "x-") {
				known = append(known, k)
			}
		}
	}
	for _, e := range r.entries(root, "a test file", known...) {
		switch e.key {
		case "job":
			sql.job = r.text(e.value, "job")
		case "ddl":
			if resolve(e.value).Kind == yaml.ScalarNode {
				sql.ddl = []string{r.text(e.value, "ddl")}
				continue
			}
			for _, n := range r.items(e.value, "ddl") {
				sql.ddl = append(sql.ddl, r.text(n, "ddl"))
			}
		case "set":
			s.Set = r.variables(e.value)
		case "tests":
			for _, n := range r.items(e.value, "tests") {
				s.Tests = append(s.Tests, r.test(n))
			}
		}
	}
	if len(s.Tests) == 0 {
		r.fail(root, "the key tests must list at least one test")
	}
	for i, t := range s.Tests {
		if slices.ContainsFunc(s.Tests[:i], func(o *Test) bool { return o.Name == t.Name }) {
			r.fail(t.node, "there are two tests named %q", t.Name)
		}
	}
}

func (r *fileReader) variables(n *yaml.Node) map[string]string {
	out := map[string]string{}
	for _, e := range r.entries(n, "set") {
		out[e.key] = r.text(e.value, "variable "+e.key)
	}
	return out
}

// record reads a given record: an object, or the record's own text. Keys that
// start with $ are about the record.
func (r *fileReader) record(n *yaml.Node) givenRecord {
	rec := givenRecord{line: n.Line}
	n = resolve(n)
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		rec.value = []byte(n.Value)
		return rec
	}
	if n.Kind != yaml.MappingNode {
		r.fail(n, "a given row is an object, or a text that is the record itself")
		return rec
	}
	rest := *n
	rest.Content = nil
	raw := false
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], resolve(n.Content[i+1])
		switch {
		case k.Value == "$partition":
			p, err := strconv.ParseInt(v.Value, 10, 32)
			if err != nil || p < 0 || p >= maxPartitions {
				r.fail(v, "$partition: want a number from 0 to %d", maxPartitions-1)
			}
			rec.partition = int32(p)
		case k.Value == "$timestamp":
			rec.timestamp = r.timestamp(v, "$timestamp")
		case k.Value == "$headers":
			rec.headers = r.headers(v)
		case k.Value == "$raw":
			raw, rec.value = true, []byte(r.text(v, "$raw"))
		case strings.HasPrefix(k.Value, "$"):
			r.fail(k, "unknown key %q; about the record there are $partition, $timestamp, $headers and $raw", k.Value)
		default:
			rest.Content = append(rest.Content, n.Content[i], n.Content[i+1])
		}
	}
	if raw {
		if len(rest.Content) > 0 {
			r.fail(n, "$raw is the whole record; there can be no columns beside it")
		}
		return rec
	}
	rec.object = true
	rec.value = r.json(nil, &rest, 0)
	return rec
}

// headers are texts by name; null is a header without a value.
func (r *fileReader) headers(n *yaml.Node) []header {
	var out []header
	for _, e := range r.entries(n, "$headers") {
		h := header{key: e.key}
		if v := resolve(e.value); v.Tag != "!!null" {
			h.value = []byte(r.text(v, "header "+e.key))
		}
		out = append(out, h)
	}
	return out
}

// maxPartitions bounds $partition.
const maxPartitions = 1024

func (r *fileReader) timestamp(n *yaml.Node, what string) int64 {
	if ms, err := strconv.ParseInt(n.Value, 10, 64); err == nil {
		return ms
	}
	t, err := time.Parse(time.RFC3339Nano, n.Value)
	if err != nil {
		r.fail(n, "%s: want a time such as 2026-07-21T06:00:00Z, or milliseconds since 1970", what)
	}
	return t.UnixMilli()
}

// Bounds of what aliases may make of a small file.
const (
	maxDepth = 200
	maxBytes = 64 << 20
)

// merged is the content of a mapping with its merge keys (<<) resolved: keys
// of its own stand above those merged in.
func (r *fileReader) merged(n *yaml.Node, depth int) []*yaml.Node {
	if depth > maxDepth {
		r.fail(n, "nested deeper than %d", maxDepth)
		return nil
	}
	var own, base []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if k.Tag != "!!merge" {
			own = append(own, k, v)
			continue
		}
		v = resolve(v)
		from := []*yaml.Node{v}
		if v.Kind == yaml.SequenceNode {
			from = v.Content
		}
		for _, m := range from {
			if m = resolve(m); m.Kind != yaml.MappingNode {
				r.fail(m, "<< takes an object")
				return nil
			}
			base = append(base, r.merged(m, depth+1)...)
		}
	}
	out := own
	for i := 0; i+1 < len(base); i += 2 {
		if !hasKey(out, base[i].Value) {
			out = append(out, base[i], base[i+1])
		}
	}
	return out
}

func hasKey(content []*yaml.Node, key string) bool {
	for i := 0; i < len(content); i += 2 {
		if content[i].Value == key {
			return true
		}
	}
	return false
}

// json writes a node as JSON. Numbers keep their digits.
func (r *fileReader) json(dst []byte, n *yaml.Node, depth int) []byte {
	n = resolve(n)
	if depth > maxDepth || r.size+len(dst) > maxBytes {
		r.fail(n, "nested deeper than %d, or too large", maxDepth)
	}
	if r.err != nil {
		return dst
	}
	before := len(dst)
	switch n.Kind {
	case yaml.MappingNode:
		dst = append(dst, '{')
		content := r.merged(n, depth)
		for i := 0; i+1 < len(content); i += 2 {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(quote(dst, content[i].Value), ':')
			dst = r.json(dst, content[i+1], depth+1)
		}
		dst = append(dst, '}')
	case yaml.SequenceNode:
		dst = append(dst, '[')
		for i, v := range n.Content {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = r.json(dst, v, depth+1)
		}
		dst = append(dst, ']')
	default:
		dst = r.scalar(dst, n)
	}
	if depth == 0 {
		r.size += len(dst) - before
	}
	return dst
}

func (r *fileReader) scalar(dst []byte, n *yaml.Node) []byte {
	switch n.Tag {
	case "!!null":
		return append(dst, "null"...)
	case "!!bool":
		return append(dst, strings.ToLower(n.Value)...)
	case "!!int", "!!float":
		if !json.Valid([]byte(n.Value)) {
			r.fail(n, "%s is no number in JSON; quote it, or write it out", n.Value)
		}
		return append(dst, n.Value...)
	case "!!binary":
		r.fail(n, "!!binary: write the base64 text as a string, as BYTES have it in JSON")
	}
	return quote(dst, n.Value)
}

func quote(dst []byte, s string) []byte {
	b, _ := json.Marshal(s) // strings always marshal
	return append(dst, b...)
}
