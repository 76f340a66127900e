package kafkaproto

// CreateAcls (30), versions 1 to 3: adds access rules, each on its own; one that is
// there already stays.
//
//   - A rule that makes no sense is error 42 with the reason. 2 is flexible, 3 adds
//     the resource type user.

import (
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/acl"
)

func serveCreateACLs(c *call, req *kmsg.CreateACLsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.CreateACLsResponse)
	store, disabled := c.rules()
	errs := make([]error, len(req.Creations))
	var good []acl.Rule
	for i, n := range req.Creations {
		r := acl.Rule{Type: acl.ResourceType(n.ResourceType), Name: n.ResourceName, Pattern: acl.Pattern(n.ResourcePatternType), Principal: n.Principal,
			Host: n.Host, Operation: acl.Operation(n.Operation), Permission: acl.Permission(n.PermissionType)}
		if errs[i] = disabled; disabled != nil {
			continue
		}
		if err := r.Validate(); err != nil {
			errs[i] = coded(codeInvalidRequest, "%w", err)
			continue
		}
		good = append(good, r)
	}
	if len(good) > 0 {
		if err := ruleError(store.AddRules(good)); err != nil {
			for i := range errs {
				if errs[i] == nil {
					errs[i] = err
				}
			}
		}
	}
	for _, err := range errs {
		r := kmsg.NewCreateACLsResponseResult()
		r.ErrorCode, r.ErrorMessage = adminCode(err), message(err)
		resp.Results = append(resp.Results, r)
	}
	return resp
}
