package kafkaproto

// DescribeGroups (15), versions 0 to 6: members with their metadata and
// assignments.
//
//   - A group that only has positions is Empty, one that is not known Dead, from
//     version 6 on with error 69.
//   - The group of a job is Stable with the job as its member.
//   - A group of the newer protocol is not known here, as in Kafka.
//   - 4 adds static members, 5 is flexible.

import (
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/topiclog"
)

func serveDescribeGroups(c *call, req *kmsg.DescribeGroupsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
	stored, jobs := c.s.opts.Store.Groups(), groupsOfJobs(c.s.opts.Store)
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
		case jobs[name] != "":
			describeJob(&rg, jobs[name])
		case gs.consumer[name] == nil && slices.Contains(stored, name):
			rg.State = string(groupEmpty)
		default:
			rg.State = "Dead"
			if c.version >= 6 {
				rg.ErrorCode, rg.ErrorMessage = codeGroupNotFound, message(coded(codeGroupNotFound, "there is no classic group %s", name))
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

// jobProtocol is the type of protocol that the group of a job shows.
const jobProtocol = "millrace-job"

// groupsOfJobs are the groups that jobs read by, with who they are.
func groupsOfJobs(store *topiclog.Store) map[string]string {
	out := map[string]string{}
	for _, s := range store.Subscriptions() {
		if out[s.Group] = s.Owner; s.Owner == "" {
			out[s.Group] = s.Group
		}
	}
	return out
}

func describeJob(out *kmsg.DescribeGroupsResponseGroup, owner string) {
	out.State, out.ProtocolType = string(groupStable), jobProtocol
	m := kmsg.NewDescribeGroupsResponseGroupMember()
	m.MemberID, m.ClientID, m.ClientHost = owner, owner, "/localhost"
	out.Members = append(out.Members, m)
}
