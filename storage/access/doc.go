// Package access keeps the users' credentials, the access rules and the client
// quotas of a log store durable, in a directory of their own.
//
//	Open(fs, dir) (*Store, error)
//	(*Store) Users, Credential, AlterUsers
//	(*Store) Rules, AddRules, DropRules
//	(*Store) Quotas, AlterQuotas
//
// The state is a storage/manifest with these entries (docs/format/access.md has
// their bytes):
//
//	1 decoy secret   2 credential set   3 credential dropped
//	4 rule added     5 rule dropped     6 limits of an entity
//
// What it is not: it decides nothing. storage/acl, storage/authn and storage/quota
// do, on the snapshots that it hands out.
//
// Invariants:
//   - What a call returned without an error for is durable.
//   - No password is stored or kept, only salted keys; the directory is for its
//     owner's eyes alone.
//   - A credential that was dropped or replaced is not in the files any more when
//     the call returns.
//
// Concurrency: all methods are safe for concurrent use. Reading takes no lock and
// sees a snapshot; changes are made one after the other.
package access
