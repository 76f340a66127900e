// Package authn proves who a client is: salted credentials, and the server's side
// of the SASL mechanisms PLAIN, SCRAM-SHA-256 and SCRAM-SHA-512.
//
//	Derive(mechanism, password, iterations) (Credential, error)
//	New(lookup, decoy) *Authenticator
//	(*Authenticator) Begin(mechanism) *Exchange     // one login
//	(*Exchange) Step(message) (answer, error)       // until Done
//
// A credential holds a salt and keys that were derived from the password by
// PBKDF2 (RFC 5802, 7677); the password itself is nowhere. A credential is for one
// mechanism: who has only a SCRAM credential cannot log in by PLAIN, where the
// password would cross the wire.
//
// What it is not: it stores nothing (storage/access does) and speaks no Kafka
// (storage/kafkaproto does).
//
// Invariants:
//   - A client learns the same of a user that does not exist and of a wrong
//     password: unknown users get a salt of their own, always the same one, and are
//     refused at the end.
//   - The nonce that comes back must be the very one that was sent, and no exchange
//     goes on after its end.
//   - Credentials print without their salt and keys, whatever the verb.
//   - At most as many PLAIN passwords are hashed at once as there are processors.
//
// Concurrency: an Authenticator is safe for concurrent use, an Exchange is not.
package authn
