// Package acl decides who may do what: access rules as Kafka has them, and the
// set that answers for a principal, a host, an operation and a resource.
//
//	NewSet(rules) *Set                          // immutable; safe for concurrent use
//	(*Set) Allowed(who, host, op, type, name)   // one question
//	(*Set) AllowedAny(who, host, op, type)      // on at least one resource of a type
//	(*Set) Ruled(type, name)                    // whether any rule is on a resource
//	(*Set) Operations(who, host, type, name)    // all that are allowed, as bits
//
// The rules of the decision:
//
//   - A rule applies if its resource type is the same and its pattern fits (the
//     same name, the name "*", or a prefix of the name), its principal is the same
//     or User:*, its host is the same or *, and its operation is the same or All.
//   - One rule that applies and denies decides, whatever allows.
//   - Read, Write, Delete or Alter allowed means Describe allowed, AlterConfigs
//     allowed means DescribeConfigs allowed. Denying has no such consequences.
//   - Without a rule that allows, the answer is no.
//
// What it is not: it keeps nothing durable (storage/access does) and knows no
// super users and no requests (storage/kafkaproto does). Enum values are those of
// the Kafka protocol.
package acl
