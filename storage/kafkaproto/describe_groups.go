package kafkaproto

// DescribeGroups (15), versions 0 to 6: members with their metadata and
// assignments.
//
//   - A group that only has positions is Empty, one that is not known Dead, from
//     version 6 on with error 69.
//   - 4 adds static members, 5 is flexible.

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"
)

func serveDescribeGroups(c *call, req *kmsg.DescribeGroupsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
	stored := c.s.opts.Store.Groups()
	gs := c.s.groups
	gs.mu.Lock()
	defer gs.mu.Unlock()
	for _, name := range req.Groups {
		rg := kmsg.NewDescribeGroupsResponseGroup()
		rg.Group, rg.Members = name, []kmsg.DescribeGroupsResponseGroupMember{}
		g := gs.byName[name]
		switch {
		case g != nil:
			g.describe(&rg)
		case slices.Contains(stored, name):
			rg.State = string(groupEmpty)
		default:
			rg.State = "Dead"
			if c.version >= 6 {
				rg.ErrorCode, rg.ErrorMessage = codeGroupNotFound, message(coded(codeGroupNotFound, "there is no group %s", name))
			}
		}
		resp.Groups = append(resp.Groups, rg)
	}
	return resp
}

// describe needs the mutex of groups.
func (g *group) describe(out *kmsg.DescribeGroupsResponseGroup) {
	out.State, out.ProtocolType = string(g.state), g.protocolType
	if g.state == groupStable {
		out.Protocol = g.protocol
	}
	for _, m := range g.members {
		rm := kmsg.NewDescribeGroupsResponseGroupMember()
		rm.MemberID, rm.InstanceID, rm.ClientID, rm.ClientHost = m.id, m.instance, m.clientID, m.host
		if g.state == groupStable {
			rm.ProtocolMetadata, rm.MemberAssignment = m.metadata(g.protocol), m.assignment
		}
		out.Members = append(out.Members, rm)
	}
}
