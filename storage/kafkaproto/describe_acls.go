package kafkaproto

// DescribeAcls (29), versions 1 to 3: the access rules that a filter selects, by
// resource.
//
//   - Where clients do not authenticate, and rules are not asked for all the same, the
//     three keys of access rules are answered with error 54 (security disabled): rules
//     would not hold.
//   - 2 is flexible, 3 adds the resource type user.

import (
	"errors"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/access"
	"github.com/millrace/millrace/storage/acl"
)

// rules are the access rules in force, or why there are none.
func (c *call) rules() (*access.Store, error) {
	if sec := &c.s.opts.Security; sec.Access != nil && sec.enforces() {
		return sec.Access, nil
	}
	return nil, coded(codeSecurityDisabled, "clients of this server do not authenticate: no access rules hold")
}

func serveDescribeACLs(c *call, req *kmsg.DescribeACLsRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeACLsResponse)
	f := acl.Filter{Type: acl.ResourceType(req.ResourceType), Name: req.ResourceName, Pattern: acl.Pattern(req.ResourcePatternType),
		Principal: req.Principal, Host: req.Host, Operation: acl.Operation(req.Operation), Permission: acl.Permission(req.PermissionType)}
	store, err := c.rules()
	if err == nil {
		err = checkFilter(&f)
	}
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = adminCode(err), message(err)
		return resp
	}
	// Rules are sorted by resource.
	for _, r := range store.Rules().Rules() {
		if !f.Matches(&r) {
			continue
		}
		n := len(resp.Resources)
		if n == 0 || resp.Resources[n-1].ResourceName != r.Name || resp.Resources[n-1].ResourceType != kmsg.ACLResourceType(r.Type) ||
			resp.Resources[n-1].ResourcePatternType != kmsg.ACLResourcePatternType(r.Pattern) {
			res := kmsg.NewDescribeACLsResponseResource()
			res.ResourceType, res.ResourceName, res.ResourcePatternType = kmsg.ACLResourceType(r.Type), r.Name, kmsg.ACLResourcePatternType(r.Pattern)
			resp.Resources = append(resp.Resources, res)
			n++
		}
		a := kmsg.NewDescribeACLsResponseResourceACL()
		a.Principal, a.Host, a.Operation, a.PermissionType = r.Principal, r.Host, kmsg.ACLOperation(r.Operation), kmsg.ACLPermissionType(r.Permission)
		resp.Resources[n-1].ACLs = append(resp.Resources[n-1].ACLs, a)
	}
	return resp
}

// checkFilter refuses what is of no kind that is known: it would select nothing,
// and look as if there were nothing.
func checkFilter(f *acl.Filter) error {
	for _, v := range []struct {
		what   string
		n, max int8
	}{{"resource type", int8(f.Type), int8(acl.User)}, {"pattern", int8(f.Pattern), int8(acl.Prefixed)},
		{"operation", int8(f.Operation), int8(acl.TwoPhaseCommit)}, {"permission", int8(f.Permission), int8(acl.Allow)}} {
		if v.n < 1 || v.n > v.max {
			return coded(codeInvalidRequest, "there is no %s %d", v.what, v.n)
		}
	}
	return nil
}

// ruleError gives an error of the store its code.
func ruleError(err error) error {
	var c *codedError
	switch {
	case err == nil || errors.As(err, &c):
		return err
	case errors.Is(err, access.ErrInvalid):
		return coded(codeInvalidRequest, "%w", err)
	case errors.Is(err, access.ErrTooMany):
		return coded(codePolicyViolation, "%w", err)
	}
	return coded(codeStorageError, "%w", err)
}
