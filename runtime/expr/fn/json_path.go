package fn

import (
	"fmt"
	"strconv"
	"strings"
)

// jsonPath is a compiled SQL/JSON path: [lax|strict] $ with .name, ['name'],
// [n], [*] and .*. Strict (the default, as in Flink) makes a missing member
// an error, lax makes it empty.
type jsonPath struct {
	lax   bool
	steps []jsonStep
}

type jsonStep struct {
	name  string
	index int
	kind  byte // n name, i index, * any
}

func compileJSONPath(src string) (*jsonPath, error) {
	s := strings.TrimSpace(src)
	p := &jsonPath{}
	if rest, ok := strings.CutPrefix(s, "lax "); ok {
		p.lax, s = true, strings.TrimSpace(rest)
	} else if rest, ok := strings.CutPrefix(s, "strict "); ok {
		s = strings.TrimSpace(rest)
	}
	if s == "" || s[0] != '$' {
		return nil, fmt.Errorf("a path begins with $")
	}
	s = s[1:]
	for s != "" {
		var err error
		switch s[0] {
		case '.':
			s, err = p.dotStep(s[1:])
		case '[':
			s, err = p.bracketStep(s[1:])
		default:
			err = fmt.Errorf("unexpected %q", s)
		}
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *jsonPath) dotStep(s string) (string, error) {
	switch {
	case strings.HasPrefix(s, "*"):
		p.steps = append(p.steps, jsonStep{kind: '*'})
		return s[1:], nil
	case strings.HasPrefix(s, "["):
		return s, nil // $.['name'], as Flink's examples write it
	case strings.HasPrefix(s, "."):
		return "", fmt.Errorf("recursive descent (..) is not supported")
	}
	n := strings.IndexAny(s, ".[ ()?@*")
	if n < 0 {
		n = len(s)
	}
	if n == 0 {
		return "", fmt.Errorf("a name is missing after .")
	}
	if n < len(s) && s[n] == '(' {
		return "", fmt.Errorf("path functions such as %s() are not supported", s[:n])
	}
	p.steps = append(p.steps, jsonStep{kind: 'n', name: s[:n]})
	return s[n:], nil
}

func (p *jsonPath) bracketStep(s string) (string, error) {
	if s != "" && (s[0] == '\'' || s[0] == '"') {
		q := s[0]
		var name []byte
		for i := 1; i < len(s); i++ {
			switch {
			case s[i] == '\\' && i+1 < len(s):
				i++
				name = append(name, s[i])
			case s[i] == q:
				if !strings.HasPrefix(s[i+1:], "]") {
					return "", fmt.Errorf("] is missing")
				}
				p.steps = append(p.steps, jsonStep{kind: 'n', name: string(name)})
				return s[i+2:], nil
			default:
				name = append(name, s[i])
			}
		}
		return "", fmt.Errorf("open quote")
	}
	in, rest, ok := strings.Cut(s, "]")
	if !ok {
		return "", fmt.Errorf("] is missing")
	}
	if in == "*" {
		p.steps = append(p.steps, jsonStep{kind: '*'})
		return rest, nil
	}
	n, err := strconv.Atoi(in)
	if err != nil {
		return "", fmt.Errorf("[%s] is not supported: only an index, a quoted name or *", in)
	}
	p.steps = append(p.steps, jsonStep{kind: 'i', index: n})
	return rest, nil
}

// find appends the nodes that the path selects. missing reports that a step
// of a strict path before any * had nothing to go to.
func (p *jsonPath) find(dst []int32, j *jsonCache, s []byte, root int32) (found []int32, missing bool) {
	return p.walk(dst, j, s, root, p.steps)
}

func (p *jsonPath) walk(dst []int32, j *jsonCache, s []byte, at int32, steps []jsonStep) ([]int32, bool) {
	for k, step := range steps {
		n := &j.nodes[at]
		switch step.kind {
		case 'n':
			at = 0
			if n.kind == jsonObject {
				at = j.member(n, s, step.name)
			}
		case 'i':
			at = 0
			if n.kind == jsonArray {
				at = j.element(n, step.index)
			}
		default:
			if n.kind != jsonArray && n.kind != jsonObject {
				return dst, false
			}
			// Those that lack what follows are left out, also by a strict path.
			for e := n.child; e != 0; e = j.nodes[e].next {
				dst, _ = p.walk(dst, j, s, e, steps[k+1:])
			}
			return dst, false
		}
		if at == 0 {
			return dst, !p.lax
		}
	}
	return append(dst, at), false
}

// member finds a name; of equal names the last counts, as in the JSON format.
func (j *jsonCache) member(n *jsonNode, s []byte, name string) int32 {
	found := int32(0)
	for e := n.child; e != 0; e = j.nodes[e].next {
		m := &j.nodes[e]
		k := s[m.keyStart:m.keyEnd]
		if !m.keyEscaped {
			if string(k) == name {
				found = e
			}
		} else if string(appendUnescaped(nil, k)) == name {
			found = e
		}
	}
	return found
}

// element finds an index from 0; negative ones count from the end.
func (j *jsonCache) element(n *jsonNode, index int) int32 {
	if index < 0 {
		count := 0
		for e := n.child; e != 0; e = j.nodes[e].next {
			count++
		}
		if index += count; index < 0 {
			return 0
		}
	}
	e := n.child
	for ; e != 0 && index > 0; index-- {
		e = j.nodes[e].next
	}
	return e
}

// wildcard reports whether the path may select several values.
func (p *jsonPath) wildcard() bool {
	for _, s := range p.steps {
		if s.kind == '*' {
			return true
		}
	}
	return false
}
