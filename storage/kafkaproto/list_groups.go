package kafkaproto

// ListGroups (16), versions 0 to 5: groups with members, and those that only have
// positions (Empty).
//
//   - 3 is flexible, 4 adds states and a filter by them, 5 types: consumer for groups
//     of the newer protocol, as long as the process knows them, classic for others.
//   - The group of a job is Stable.

import (
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Types of groups.
const (
	classicGroup      = "classic"
	consumerGroupType = "consumer"
)

func serveListGroups(c *call, req *kmsg.ListGroupsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.ListGroupsResponse)
	resp.Groups = []kmsg.ListGroupsResponseGroup{}
	wanted := func(filter []string, v string) bool {
		return len(filter) == 0 || slices.ContainsFunc(filter, func(f string) bool { return strings.EqualFold(f, v) })
	}
	add := func(name, protocolType string, state groupState, kind string) {
		if wanted(req.StatesFilter, string(state)) && wanted(req.TypesFilter, kind) {
			rg := kmsg.NewListGroupsResponseGroup()
			rg.Group, rg.ProtocolType, rg.GroupState, rg.GroupType = name, protocolType, string(state), kind
			resp.Groups = append(resp.Groups, rg)
		}
	}
	stored, jobs := c.s.opts.Store.Groups(), groupsOfJobs(c.s.opts.Store)
	gs := c.s.groups
	gs.mu.Lock()
	for _, g := range gs.byName {
		add(g.name, g.protocolType, g.state, classicGroup)
	}
	for _, g := range gs.consumer {
		if gs.dropConsumerGroup(g); gs.consumer[g.name] == g {
			add(g.name, consumerProtocol, g.state(), consumerGroupType)
		}
	}
	stored = slices.DeleteFunc(stored, func(name string) bool { return gs.byName[name] != nil || gs.consumer[name] != nil })
	gs.mu.Unlock()
	for _, name := range stored {
		if jobs[name] != "" {
			add(name, jobProtocol, groupStable, classicGroup)
		} else {
			add(name, "", groupEmpty, classicGroup)
		}
	}
	slices.SortFunc(resp.Groups, func(a, b kmsg.ListGroupsResponseGroup) int { return strings.Compare(a.Group, b.Group) })
	return resp
}
