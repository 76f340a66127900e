package kafkaproto

// DeleteGroups (42), versions 0 to 2: forgets groups with their positions.
//
//   - A group with members, or one that a job reads by, is error 68; one that is not
//     known error 69. 2 is flexible.

import (
	"context"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func serveDeleteGroups(c *call, req *kmsg.DeleteGroupsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DeleteGroupsResponse)
	for _, name := range req.Groups {
		rg := kmsg.NewDeleteGroupsResponseGroup()
		rg.Group, rg.ErrorCode = name, c.deleteGroup(name)
		resp.Groups = append(resp.Groups, rg)
	}
	return resp
}

func (c *call) deleteGroup(name string) int16 {
	store, gs := c.s.opts.Store, c.s.groups
	gs.mu.Lock()
	g := gs.byName[name]
	busy := g != nil && (len(g.members) > 0 || g.state != groupEmpty)
	idle := g != nil && !busy && g.generation > 0
	if idle && !subscribedByJob(store, name) {
		delete(gs.byName, name)
	}
	if cg := gs.consumer[name]; cg != nil {
		if busy = len(cg.members) > 0; !busy {
			delete(gs.consumer, name)
		}
	}
	gs.mu.Unlock()
	switch {
	case busy || subscribedByJob(store, name):
		return codeNonEmptyGroup
	case !slices.Contains(store.Groups(), name):
		if idle {
			return codeNone
		}
		return codeGroupNotFound
	}
	return commitCode(store.DeleteGroup(context.Background(), name))
}
