package kafkaproto

// AlterClientQuotas (49), versions 0 to 1: sets and removes limits of entities, each
// entity on its own.
//
//   - The limits are producer_byte_rate and consumer_byte_rate, in bytes a second,
//     and request_percentage, of one thread's time. Others, and entities of type ip,
//     are error 42 by name (not_yet).
//   - 1 is flexible.

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/access"
	"github.com/millrace/millrace/storage/quota"
)

func serveAlterClientQuotas(c *call, req *kmsg.AlterClientQuotasRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.AlterClientQuotasResponse)
	seen := map[quota.Entity]bool{}
	for _, e := range req.Entries {
		change, err := quotaChange(e)
		switch {
		case err != nil:
		case c.s.opts.Security.Access == nil:
			err = coded(codeSecurityDisabled, "%w", errNoAccess)
		case seen[change.Entity]:
			err = coded(codeInvalidRequest, "%s is changed twice", change.Entity)
		case !req.ValidateOnly:
			err = ruleError(c.s.opts.Security.Access.AlterQuotas([]access.QuotaChange{change}))
		}
		seen[change.Entity] = true
		r := kmsg.NewAlterClientQuotasResponseEntry()
		r.ErrorCode, r.ErrorMessage = adminCode(err), message(err)
		for _, p := range e.Entity {
			part := kmsg.NewAlterClientQuotasResponseEntryEntity()
			part.Type, part.Name = p.Type, p.Name
			r.Entity = append(r.Entity, part)
		}
		resp.Entries = append(resp.Entries, r)
	}
	return resp
}

func quotaChange(e kmsg.AlterClientQuotasRequestEntry) (access.QuotaChange, error) {
	out := access.QuotaChange{Set: map[quota.Kind]float64{}}
	refuse := func(err error) (access.QuotaChange, error) { return out, coded(codeInvalidRequest, "%w", err) }
	for _, p := range e.Entity {
		at := &out.Entity.User
		switch p.Type {
		case entityUser:
		case entityClient:
			at = &out.Entity.Client
		case entityIP:
			return refuse(notYet("quotas of IP addresses"))
		default:
			return refuse(fmt.Errorf("there are no quotas of entity type %q", p.Type))
		}
		if at.Set {
			return refuse(fmt.Errorf("entity type %s is given twice", p.Type))
		}
		if *at = quota.Default(); p.Name != nil {
			*at = quota.Named(*p.Name)
		}
	}
	if err := out.Entity.Validate(); err != nil {
		return refuse(err)
	}
	for _, op := range e.Ops {
		k, err := quota.ParseKind(op.Key)
		if err != nil {
			if op.Key == "controller_mutation_rate" || op.Key == "connection_creation_rate" {
				err = notYet("quota " + op.Key)
			}
			return refuse(err)
		}
		if _, twice := out.Set[k]; twice {
			return refuse(fmt.Errorf("%s is given twice", k))
		}
		if out.Set[k] = op.Value; op.Remove {
			out.Set[k] = 0
		} else if err := quota.CheckLimit(k, op.Value); err != nil {
			return refuse(err)
		}
	}
	return out, nil
}
