package kafkaproto

// ListGroups (16), versions 0 to 5: groups with members, and those that only have
// positions (Empty).
//
//   - 3 is flexible, 4 adds states and a filter by them, 5 types; all are classic.

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

const classicGroup = "classic"

func serveListGroups(c *call, req *kmsg.ListGroupsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
	resp.Groups = []kmsg.ListGroupsResponseGroup{}
	wanted := func(filter []string, v string) bool {
		return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, v) })
	}
	add := func(name, protocolType string, state groupState) {
		if wanted(req.StatesFilter, string(state)) && wanted(req.TypesFilter, classicGroup) {
			rg := kmsg.NewListGroupsResponseGroup()
			rg.Group, rg.ProtocolType, rg.GroupState, rg.GroupType = name, protocolType, string(state), classicGroup
			resp.Groups = append(resp.Groups, rg)
		}
	}
	stored := c.s.opts.Store.Groups()
	gs := c.s.groups
	gs.mu.Lock()
	for _, g := range gs.byName {
		add(g.name, g.protocolType, g.state)
	}
	stored = slices.DeleteFunc(stored, func(name string) bool { return gs.byName[name] != nil })
	gs.mu.Unlock()
	for _, name := range stored {
		add(name, "", groupEmpty)
	}
	slices.SortFunc(resp.Groups, func(a, b kmsg.ListGroupsResponseGroup) int { return strings.Compare(a.Group, b.Group) })
	return resp
}
