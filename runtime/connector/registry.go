package connector

import (
	"fmt"
	"sort"
)

// Registry is the connectors of a program, by name. It is filled once and
// then only read.
type Registry struct{ byName map[string]Connector }

// NewRegistry returns a registry of the given connectors; two of one name
// are an error.
func NewRegistry(cs ...Connector) (*Registry, error) {
	r := &Registry{byName: map[string]Connector{}}
	for _, c := range cs {
		name := c.Spec().Name
		if _, dup := r.byName[name]; dup {
			return nil, fmt.Errorf("connector %q is registered twice", name)
		}
		r.byName[name] = c
	}
	return r, nil
}

// Lookup returns the connector of a name.
func (r *Registry) Lookup(name string) (Connector, bool) {
	c, ok := r.byName[name]
	return c, ok
}

// Names are the registered names, sorted.
func (r *Registry) Names() []string {
	names := make([]string, 0, len(r.byName))
	for n := range r.byName {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}
