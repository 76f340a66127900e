package kafkaproto

// DescribeClientQuotas (48), versions 0 to 1: the limits of the entities that a
// filter selects.
//
//   - Each component of the filter is about one part of an entity, the user or the
//     client id: a name, the default, or any. Strict leaves out entities with parts
//     that the filter does not name. Entities of other kinds there are none of.
//   - 1 is flexible.

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/quota"
)

// Kinds of parts of an entity, as the protocol names them.
const (
	entityUser   = "user"
	entityClient = "client-id"
	entityIP     = "ip"
)

// Kinds of matches.
const (
	matchName    = 0
	matchDefault = 1
	matchAny     = 2
)

func serveDescribeClientQuotas(c *call, req *kmsg.DescribeClientQuotasRequest) kmsg.Response {
	resp := req.ResponseKind().(*kmsg.DescribeClientQuotasResponse)
	f, err := quotaFilter(req)
	if err == nil && c.s.opts.Security.Access == nil {
		err = coded(codeSecurityDisabled, "%w", errNoAccess)
	}
	if err != nil {
		resp.ErrorCode, resp.ErrorMessage = adminCode(err), message(err)
		return resp
	}
	resp.Entries = []kmsg.DescribeClientQuotasResponseEntry{}
	table := c.s.opts.Security.Access.Quotas()
	entities := make([]quota.Entity, 0, len(table))
	for e := range table {
		if f.selects(e) {
			entities = append(entities, e)
		}
	}
	slices.SortFunc(entities, func(a, b quota.Entity) int { return cmp.Compare(a.String(), b.String()) })
	for _, e := range entities {
		entry := kmsg.NewDescribeClientQuotasResponseEntry()
		for _, p := range []struct {
			kind string
			quota.Part
		}{{entityUser, e.User}, {entityClient, e.Client}} {
			if !p.Set {
				continue
			}
			part := kmsg.NewDescribeClientQuotasResponseEntryEntity()
			part.Type = p.kind
			if !p.Default {
				part.Name = &p.Name
			}
			entry.Entity = append(entry.Entity, part)
		}
		for _, k := range quota.Kinds() {
			if v := table[e][k]; v > 0 {
				value := kmsg.NewDescribeClientQuotasResponseEntryValue()
				value.Key, value.Value = k.String(), v
				entry.Values = append(entry.Values, value)
			}
		}
		resp.Entries = append(resp.Entries, entry)
	}
	return resp
}

// entityFilter selects entities by their two parts; nil says nothing about one.
type entityFilter struct {
	user, client *kmsg.DescribeClientQuotasRequestComponent
	none         bool // asks for a kind of which there is none
	strict       bool
}

func quotaFilter(req *kmsg.DescribeClientQuotasRequest) (entityFilter, error) {
	f := entityFilter{strict: req.Strict}
	for i := range req.Components {
		comp := &req.Components[i]
		if comp.MatchType < matchName || comp.MatchType > matchAny || (comp.MatchType == matchName) != (comp.Match != nil) {
			return f, coded(codeInvalidRequest, "a component matches a name, the default or any")
		}
		var at **kmsg.DescribeClientQuotasRequestComponent
		switch comp.EntityType {
		case entityUser:
			at = &f.user
		case entityClient:
			at = &f.client
		case entityIP:
			f.none = true
			continue
		default:
			return f, coded(codeUnsupportedVersion, "there are no quotas of entity type %q", comp.EntityType)
		}
		if *at != nil {
			return f, coded(codeInvalidRequest, "entity type %s is given twice", comp.EntityType)
		}
		*at = comp
	}
	return f, nil
}

func (f *entityFilter) selects(e quota.Entity) bool {
	part := func(c *kmsg.DescribeClientQuotasRequestComponent, p quota.Part) bool {
		switch {
		case c == nil:
			return !f.strict || !p.Set
		case !p.Set:
			return false
		case c.MatchType == matchName:
			return !p.Default && p.Name == *c.Match
		case c.MatchType == matchDefault:
			return p.Default
		}
		return true
	}
	return !f.none && part(f.user, e.User) && part(f.client, e.Client)
}
