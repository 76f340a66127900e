package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/authn"
	"github.com/millrace/millrace/storage/quota"
)

// adminPatience bounds one call of an Admin.
const adminPatience = 10 * time.Second

// Admin manages the users, access rules and quotas of a Kafka cluster. Its methods
// are safe for concurrent use.
type Admin struct{ client *kgo.Client }

// NewAdmin returns an Admin for the cluster of brokers, host:port separated by
// commas. properties are those of Java's clients (security.protocol and the like),
// as the tables' options have them without "properties."; an unknown one is a
// *connector.OptionError. Nothing is asked yet.
func NewAdmin(brokers string, properties map[string]string) (*Admin, error) {
	with := maps.Clone(properties)
	if with == nil {
		with = map[string]string{}
	}
	with["bootstrap.servers"] = brokers
	v, err := resolveProperties(with, consumerOptions()...)
	if err != nil {
		return nil, err
	}
	opts, err := clientOptions(v)
	if err != nil {
		return nil, err
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &Admin{client}, nil
}

// Close ends the connections.
func (a *Admin) Close() { a.client.Close() }

// request asks the cluster.
func request[R kmsg.Response](ctx context.Context, a *Admin, op string, req kmsg.Request) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, adminPatience)
	defer cancel()
	var none R
	resp, err := a.client.Request(ctx, req)
	if err != nil {
		return none, failed(err, "%s", op)
	}
	return resp.(R), nil
}

// coded is the error of a code, nil for none, with the broker's text.
func coded(op string, code int16, text *string) error {
	err := kerr.ErrorForCode(code)
	if err == nil {
		return nil
	}
	if text != nil && *text != "" {
		err = fmt.Errorf("%w (%s)", err, *text)
	}
	return failed(err, "%s", op)
}

// ErrNoUser says that a cluster has no such user, or not with this mechanism.
var ErrNoUser = errors.New("there is no such user")

// Refused reports an error that the brokers gave because of what was asked, not
// because something failed.
func Refused(err error) bool {
	var broker *kerr.Error
	return errors.As(err, &broker) && !broker.Retriable
}

// ScramUser is a user with the iterations of its credential for each mechanism.
type ScramUser struct {
	Name       string
	Mechanisms map[authn.Mechanism]int
}

// Users lists the users that have SCRAM credentials. A cluster does not tell of
// others.
func (a *Admin) Users(ctx context.Context) ([]ScramUser, error) {
	const op = "listing users"
	resp, err := request[*kmsg.DescribeUserSCRAMCredentialsResponse](ctx, a, op, kmsg.NewPtrDescribeUserSCRAMCredentialsRequest())
	if err == nil {
		err = coded(op, resp.ErrorCode, resp.ErrorMessage)
	}
	if err != nil {
		return nil, err
	}
	out := make([]ScramUser, 0, len(resp.Results))
	for _, r := range resp.Results {
		if err := coded(op, r.ErrorCode, r.ErrorMessage); err != nil {
			return nil, err
		}
		u := ScramUser{r.User, map[authn.Mechanism]int{}}
		for _, c := range r.CredentialInfos {
			u.Mechanisms[authn.Mechanism(c.Mechanism)] = int(c.Iterations)
		}
		out = append(out, u)
	}
	return out, nil
}

// SetUser gives a user a password for SCRAM mechanisms. The password is salted here:
// it is not sent.
func (a *Admin) SetUser(ctx context.Context, user, password string, ms []authn.Mechanism, iterations int) error {
	req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	for _, m := range ms {
		salt, salted, err := authn.Salt(m, password, iterations)
		if err != nil {
			return err
		}
		up := kmsg.NewAlterUserSCRAMCredentialsRequestUpsertion()
		up.Name, up.Mechanism, up.Iterations, up.Salt, up.SaltedPassword = user, int8(m), int32(iterations), salt, salted
		req.Upsertions = append(req.Upsertions, up)
	}
	return a.alterUsers(ctx, "setting the password of user "+user, req)
}

// RemoveUser takes SCRAM credentials of a user away.
func (a *Admin) RemoveUser(ctx context.Context, user string, ms []authn.Mechanism) error {
	req := kmsg.NewPtrAlterUserSCRAMCredentialsRequest()
	for _, m := range ms {
		d := kmsg.NewAlterUserSCRAMCredentialsRequestDeletion()
		d.Name, d.Mechanism = user, int8(m)
		req.Deletions = append(req.Deletions, d)
	}
	err := a.alterUsers(ctx, "removing user "+user, req)
	if errors.Is(err, kerr.ResourceNotFound) {
		return fmt.Errorf("%w: %s", ErrNoUser, user)
	}
	return err
}

func (a *Admin) alterUsers(ctx context.Context, op string, req *kmsg.AlterUserSCRAMCredentialsRequest) error {
	resp, err := request[*kmsg.AlterUserSCRAMCredentialsResponse](ctx, a, op, req)
	if err != nil {
		return err
	}
	for _, r := range resp.Results {
		if err := coded(op, r.ErrorCode, r.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}

// Rules lists the access rules that a filter selects.
func (a *Admin) Rules(ctx context.Context, f acl.Filter) ([]acl.Rule, error) {
	const op = "listing access rules"
	req := kmsg.NewPtrDescribeACLsRequest()
	req.ResourceType, req.ResourceName, req.ResourcePatternType = kmsg.ACLResourceType(f.Type), f.Name, kmsg.ACLResourcePatternType(f.Pattern)
	req.Principal, req.Host, req.Operation, req.PermissionType = f.Principal, f.Host, kmsg.ACLOperation(f.Operation), kmsg.ACLPermissionType(f.Permission)
	resp, err := request[*kmsg.DescribeACLsResponse](ctx, a, op, req)
	if err == nil {
		err = coded(op, resp.ErrorCode, resp.ErrorMessage)
	}
	if err != nil {
		return nil, err
	}
	var out []acl.Rule
	for _, res := range resp.Resources {
		for _, x := range res.ACLs {
			out = append(out, acl.Rule{Type: acl.ResourceType(res.ResourceType), Name: res.ResourceName, Pattern: acl.Pattern(res.ResourcePatternType),
				Principal: x.Principal, Host: x.Host, Operation: acl.Operation(x.Operation), Permission: acl.Permission(x.PermissionType)})
		}
	}
	return out, nil
}

// AddRules adds access rules.
func (a *Admin) AddRules(ctx context.Context, rules []acl.Rule) error {
	const op = "adding access rules"
	req := kmsg.NewPtrCreateACLsRequest()
	for _, r := range rules {
		n := kmsg.NewCreateACLsRequestCreation()
		n.ResourceType, n.ResourceName, n.ResourcePatternType = kmsg.ACLResourceType(r.Type), r.Name, kmsg.ACLResourcePatternType(r.Pattern)
		n.Principal, n.Host, n.Operation, n.PermissionType = r.Principal, r.Host, kmsg.ACLOperation(r.Operation), kmsg.ACLPermissionType(r.Permission)
		req.Creations = append(req.Creations, n)
	}
	resp, err := request[*kmsg.CreateACLsResponse](ctx, a, op, req)
	if err != nil {
		return err
	}
	for _, r := range resp.Results {
		if err := coded(op, r.ErrorCode, r.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}

// RemoveRules removes the access rules that a filter selects and returns them.
func (a *Admin) RemoveRules(ctx context.Context, f acl.Filter) ([]acl.Rule, error) {
	const op = "removing access rules"
	req := kmsg.NewPtrDeleteACLsRequest()
	n := kmsg.NewDeleteACLsRequestFilter()
	n.ResourceType, n.ResourceName, n.ResourcePatternType = kmsg.ACLResourceType(f.Type), f.Name, kmsg.ACLResourcePatternType(f.Pattern)
	n.Principal, n.Host, n.Operation, n.PermissionType = f.Principal, f.Host, kmsg.ACLOperation(f.Operation), kmsg.ACLPermissionType(f.Permission)
	req.Filters = append(req.Filters, n)
	resp, err := request[*kmsg.DeleteACLsResponse](ctx, a, op, req)
	if err != nil {
		return nil, err
	}
	var out []acl.Rule
	for _, r := range resp.Results {
		if err := coded(op, r.ErrorCode, r.ErrorMessage); err != nil {
			return nil, err
		}
		for _, x := range r.MatchingACLs {
			if err := coded(op, x.ErrorCode, x.ErrorMessage); err != nil {
				return nil, err
			}
			out = append(out, acl.Rule{Type: acl.ResourceType(x.ResourceType), Name: x.ResourceName, Pattern: acl.Pattern(x.ResourcePatternType),
				Principal: x.Principal, Host: x.Host, Operation: acl.Operation(x.Operation), Permission: acl.Permission(x.PermissionType)})
		}
	}
	return out, nil
}

// EntityQuota is an entity with its limits, by the protocol's names: a cluster may
// have more kinds than storage/quota.
type EntityQuota struct {
	Entity quota.Entity
	Limits map[string]float64
}

// Quotas lists the limits of users and client ids.
func (a *Admin) Quotas(ctx context.Context) ([]EntityQuota, error) {
	const op = "listing quotas"
	resp, err := request[*kmsg.DescribeClientQuotasResponse](ctx, a, op, kmsg.NewPtrDescribeClientQuotasRequest())
	if err == nil {
		err = coded(op, resp.ErrorCode, resp.ErrorMessage)
	}
	if err != nil {
		return nil, err
	}
	var out []EntityQuota
	for _, entry := range resp.Entries {
		q := EntityQuota{Limits: map[string]float64{}}
		for _, p := range entry.Entity {
			part := quota.Default()
			if p.Name != nil {
				part = quota.Named(*p.Name)
			}
			switch p.Type {
			case "user":
				q.Entity.User = part
			case "client-id":
				q.Entity.Client = part
			}
		}
		if q.Entity == (quota.Entity{}) {
			continue // of an IP address
		}
		for _, v := range entry.Values {
			q.Limits[v.Key] = v.Value
		}
		out = append(out, q)
	}
	return out, nil
}

// SetQuota sets limits of an entity; 0 removes one.
func (a *Admin) SetQuota(ctx context.Context, e quota.Entity, set map[string]float64) error {
	op := "setting quotas of " + e.String()
	req := kmsg.NewPtrAlterClientQuotasRequest()
	entry := kmsg.NewAlterClientQuotasRequestEntry()
	for _, p := range []struct {
		kind string
		quota.Part
	}{{"user", e.User}, {"client-id", e.Client}} {
		if p.Set {
			part := kmsg.NewAlterClientQuotasRequestEntryEntity()
			if part.Type = p.kind; !p.Default {
				part.Name = &p.Name
			}
			entry.Entity = append(entry.Entity, part)
		}
	}
	for k, v := range set {
		o := kmsg.NewAlterClientQuotasRequestEntryOp()
		o.Key, o.Value, o.Remove = k, v, v == 0
		entry.Ops = append(entry.Ops, o)
	}
	req.Entries = append(req.Entries, entry)
	resp, err := request[*kmsg.AlterClientQuotasResponse](ctx, a, op, req)
	if err != nil {
		return err
	}
	for _, r := range resp.Entries {
		if err := coded(op, r.ErrorCode, r.ErrorMessage); err != nil {
			return err
		}
	}
	return nil
}
