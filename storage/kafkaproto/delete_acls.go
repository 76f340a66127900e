package kafkaproto

// DeleteAcls (31), versions 1 to 3: removes the access rules that filters select and
// says which they were.
//
//   - 2 is flexible, 3 adds the resource type user.

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/acl"
)

func serveDeleteACLs(c *call, req *kmsg.DeleteACLsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DeleteACLsResponse)
	store, err := c.rules()
	filters := make([]acl.Filter, len(req.Filters))
	for i, n := range req.Filters {
		filters[i] = acl.Filter{Type: acl.ResourceType(n.ResourceType), Name: n.ResourceName, Pattern: acl.Pattern(n.ResourcePatternType),
			Principal: n.Principal, Host: n.Host, Operation: acl.Operation(n.Operation), Permission: acl.Permission(n.PermissionType)}
		if err == nil {
			err = checkFilter(&filters[i])
		}
	}
	dropped := make([][]acl.Rule, len(filters))
	if err == nil {
		if dropped, err = store.DropRules(filters); err != nil {
			err = ruleError(err)
			dropped = make([][]acl.Rule, len(filters))
		}
	}
	for i := range filters {
		r := kmsg.NewDeleteACLsResponseResult()
		r.ErrorCode, r.ErrorMessage = adminCode(err), message(err)
		for _, x := range dropped[i] {
			m := kmsg.NewDeleteACLsResponseResultMatchingACL()
			m.ResourceType, m.ResourceName, m.ResourcePatternType = kmsg.ACLResourceType(x.Type), x.Name, kmsg.ACLResourcePatternType(x.Pattern)
			m.Principal, m.Host, m.Operation, m.PermissionType = x.Principal, x.Host, kmsg.ACLOperation(x.Operation), kmsg.ACLPermissionType(x.Permission)
			r.MatchingACLs = append(r.MatchingACLs, m)
		}
		resp.Results = append(resp.Results, r)
	}
	return resp
}
