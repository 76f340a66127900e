package acl

import (
	"fmt"
	"strings"
)

// ResourceType is a kind of resource, numbered as in the Kafka protocol.
type ResourceType int8

// The kinds of resources. AnyType is for filters alone.
const (
	AnyType         ResourceType = 1
	Topic           ResourceType = 2
	Group           ResourceType = 3
	Cluster         ResourceType = 4
	TransactionalID ResourceType = 5
	DelegationToken ResourceType = 6
	User            ResourceType = 7
)

// ClusterName is the name of the only resource of type Cluster.
const ClusterName = "kafka-cluster"

// Wildcard is every resource of a type as a literal pattern, and every host.
const Wildcard = "*"

// Everyone is the principal of a rule that is about all principals.
const Everyone = "User:*"

// Pattern says how a rule's name is compared, numbered as in the protocol.
type Pattern int8

// The patterns. AnyPattern and Match are for filters alone: Match finds what
// applies to a name.
const (
	AnyPattern Pattern = 1
	Match      Pattern = 2
	Literal    Pattern = 3
	Prefixed   Pattern = 4
)

// Operation is what somebody does to a resource, numbered as in the protocol.
type Operation int8

// The operations. AnyOperation is for filters alone.
const (
	AnyOperation    Operation = 1
	All             Operation = 2
	Read            Operation = 3
	Write           Operation = 4
	Create          Operation = 5
	Delete          Operation = 6
	Alter           Operation = 7
	Describe        Operation = 8
	ClusterAction   Operation = 9
	DescribeConfigs Operation = 10
	AlterConfigs    Operation = 11
	IdempotentWrite Operation = 12
	CreateTokens    Operation = 13
	DescribeTokens  Operation = 14
	TwoPhaseCommit  Operation = 15
)

// Permission says whether a rule denies or allows, numbered as in the protocol.
type Permission int8

// The permissions. AnyPermission is for filters alone.
const (
	AnyPermission Permission = 1
	Deny          Permission = 2
	Allow         Permission = 3
)

var typeNames = [...]string{AnyType: "any", Topic: "topic", Group: "group", Cluster: "cluster",
	TransactionalID: "transactional-id", DelegationToken: "delegation-token", User: "user"}

var patternNames = [...]string{AnyPattern: "any", Match: "match", Literal: "literal", Prefixed: "prefixed"}

var operationNames = [...]string{AnyOperation: "any", All: "all", Read: "read", Write: "write", Create: "create", Delete: "delete",
	Alter: "alter", Describe: "describe", ClusterAction: "cluster-action", DescribeConfigs: "describe-configs",
	AlterConfigs: "alter-configs", IdempotentWrite: "idempotent-write", CreateTokens: "create-tokens",
	DescribeTokens: "describe-tokens", TwoPhaseCommit: "two-phase-commit"}

var permissionNames = [...]string{AnyPermission: "any", Deny: "deny", Allow: "allow"}

func nameOf(names []string, i int8) string {
	if i > 0 && int(i) < len(names) && names[i] != "" {
		return names[i]
	}
	return fmt.Sprintf("unknown(%d)", i)
}

// parse finds a word, written with hyphens, underscores or neither.
func parse(kind string, names []string, s string) (int8, error) {
	plain := func(s string) string { return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s)) }
	var known []string
	for i, n := range names {
		if n == "" {
			continue
		}
		if plain(n) == plain(s) {
			return int8(i), nil
		}
		known = append(known, n)
	}
	return 0, fmt.Errorf("%q is no %s; there are %s", s, kind, strings.Join(known, ", "))
}

// String is the name that commands and docs use.
func (t ResourceType) String() string { return nameOf(typeNames[:], int8(t)) }

// String is the name that commands and docs use.
func (p Pattern) String() string { return nameOf(patternNames[:], int8(p)) }

// String is the name that commands and docs use.
func (o Operation) String() string { return nameOf(operationNames[:], int8(o)) }

// String is the name that commands and docs use.
func (p Permission) String() string { return nameOf(permissionNames[:], int8(p)) }

// ParseResourceType reads a name of String; the error lists them.
func ParseResourceType(s string) (ResourceType, error) {
	i, err := parse("resource type", typeNames[:], s)
	return ResourceType(i), err
}

// ParsePattern reads a name of String; the error lists them.
func ParsePattern(s string) (Pattern, error) {
	i, err := parse("pattern", patternNames[:], s)
	return Pattern(i), err
}

// ParseOperation reads a name of String; the error lists them.
func ParseOperation(s string) (Operation, error) {
	i, err := parse("operation", operationNames[:], s)
	return Operation(i), err
}

// ParsePermission reads a name of String; the error lists them.
func ParsePermission(s string) (Permission, error) {
	i, err := parse("permission", permissionNames[:], s)
	return Permission(i), err
}

// Rule allows or denies. It is comparable: two equal rules are one.
type Rule struct {
	Type    ResourceType
	Name    string
	Pattern Pattern
	// Principal is Kind:name, such as User:ann, or Everyone.
	Principal string
	// Host is an IP address or Wildcard.
	Host       string
	Operation  Operation
	Permission Permission
}

// operationsOf lists what can be done to a kind of resource.
func operationsOf(t ResourceType) []Operation {
	switch t {
	case Topic:
		return []Operation{Read, Write, Create, Delete, Alter, Describe, DescribeConfigs, AlterConfigs}
	case Group:
		return []Operation{Read, Delete, Describe, DescribeConfigs, AlterConfigs}
	case Cluster:
		return []Operation{Create, Alter, Describe, ClusterAction, DescribeConfigs, AlterConfigs, IdempotentWrite}
	case TransactionalID:
		return []Operation{Write, Describe, TwoPhaseCommit}
	case DelegationToken:
		return []Operation{Describe}
	case User:
		return []Operation{CreateTokens, DescribeTokens}
	}
	return nil
}

// Bounds of a rule's strings, in bytes.
const (
	maxName      = 1 << 10
	maxPrincipal = 1 << 10
	maxHost      = 256
)

// Validate says what is wrong with a rule.
func (r *Rule) Validate() error {
	kind, name, ok := strings.Cut(r.Principal, ":")
	switch {
	case operationsOf(r.Type) == nil:
		return fmt.Errorf("a rule needs a resource type, not %s", r.Type)
	case r.Pattern != Literal && r.Pattern != Prefixed:
		return fmt.Errorf("a rule's pattern is literal or prefixed, not %s", r.Pattern)
	case r.Permission != Allow && r.Permission != Deny:
		return fmt.Errorf("a rule allows or denies, not %s", r.Permission)
	case r.Name == "" || len(r.Name) > maxName:
		return fmt.Errorf("a resource's name has 1 to %d bytes", maxName)
	case r.Type == Cluster && r.Name != ClusterName:
		return fmt.Errorf("the only name of a cluster is %s, not %q", ClusterName, r.Name)
	case !ok || kind == "" || name == "" || len(r.Principal) > maxPrincipal:
		return fmt.Errorf("principal %q: write Kind:name, such as User:ann", r.Principal)
	case r.Host == "" || len(r.Host) > maxHost:
		return fmt.Errorf("a rule needs a host: an IP address or %s", Wildcard)
	case r.Operation == All:
		return nil
	}
	for _, o := range operationsOf(r.Type) {
		if o == r.Operation {
			return nil
		}
	}
	return fmt.Errorf("there is no operation %s on a %s", r.Operation, r.Type)
}

// Filter selects rules. A nil string and the Any values stand for everything.
type Filter struct {
	Type            ResourceType
	Name            *string
	Pattern         Pattern
	Principal, Host *string
	Operation       Operation
	Permission      Permission
}

// Matches reports whether the filter selects a rule.
func (f *Filter) Matches(r *Rule) bool {
	switch {
	case f.Type != AnyType && f.Type != r.Type,
		f.Principal != nil && *f.Principal != r.Principal,
		f.Host != nil && *f.Host != r.Host,
		f.Operation != AnyOperation && f.Operation != r.Operation,
		f.Permission != AnyPermission && f.Permission != r.Permission,
		(f.Pattern == Literal || f.Pattern == Prefixed) && f.Pattern != r.Pattern:
		return false
	case f.Name == nil || *f.Name == r.Name:
		return true
	case f.Pattern != Match:
		return false
	case r.Pattern == Literal:
		return r.Name == Wildcard
	default:
		return strings.HasPrefix(*f.Name, r.Name)
	}
}
