// Package kafkaproto serves the log store to Kafka clients, over TCP and over a
// Unix socket.
//
//	New(Options) (*Server, error)
//	(*Server) Serve(net.Listener) error      // until Shutdown; any number of listeners
//	(*Server) Shutdown(ctx) error            // drains: what was read is answered
//	Supported() []APIRange                   // exactly what ApiVersions advertises
//
// A frame is a length and a request; each request gets one response, in the
// order of the requests (only a Produce with acks 0 has none):
//
//	+--------+---------+-----------+----------------+-----------+--------+------+
//	| length | API key | version 2 | correlation 4  | client id | tags   | body |
//	| 4      | 2       |           |                | string    | (v2)   |      |
//	+--------+---------+-----------+----------------+-----------+--------+------+
//
// The table in dispatch.go names the served API keys with their versions; each
// key has a file of its own that begins with what it does and what differs
// between its versions. Control keys are decoded by kmsg; Produce and Fetch have
// their own codec: batches go from the request to the log and from the log to
// the socket as they are, never recompressed and not copied in between.
//
// What it is not: it keeps no records and no positions (storage/topiclog does),
// and it is one node: it is the leader, controller and coordinator of
// everything. The members of groups are known as long as the process lives; after
// a restart they join again, by either protocol; transactions go on where they were.
// What is not served is not advertised.
//
// Who a client is, is said by SASL (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512), by its TLS
// certificate, or by a Unix socket; what it may do, by the access rules of
// Options.Security. guards in authorize.go has the rules of every key: handlers
// know nothing of them, but for Produce and Fetch. Without authentication
// everything is allowed, and a server refuses to listen beyond loopback unless
// Options.AllowUnauthenticated says so. Quotas make a client wait: it is told so in
// the answer, and its connection's next request is not read before.
//
// Invariants:
//   - Invariant 5, acknowledged is durable: a Produce is answered after the store
//     has acknowledged every batch in it, whatever acks the client asks for.
//   - What cannot be parsed closes its own connection and nothing else.
//   - No allocation is made from a length in a request before it is known to be
//     within the bounds and the bytes that it promises; requests under way stay
//     within Options.MaxInFlightBytes.
//   - A lease of the store is released after its bytes were written, whether or
//     not writing succeeded.
//   - What a client may not do has no effect and tells nothing: a topic that is
//     denied looks the same whether or not there is one.
//   - Before its login a client is served nothing but the login, in small requests
//     that share a budget of their own.
//   - No secret is logged.
//
// Concurrency: a connection has a reader, which also handles requests one after
// the other, and a writer, which waits for appends and sends responses in order.
// So Produce requests of one connection share group commits, and a waiting Fetch
// delays the requests behind it on its connection as it does with Kafka.
//
// Memory is used again of Produce alone: the bytes of a request, its decoded form and its
// answer. All three are the request's until its reply is released: by the connection's
// writer, after the store has told of every batch and the answer was written or writing
// has failed. A request that ends before it has a reply leaves its memory to the garbage
// collector. Options.PoisonReleased overwrites what is released.
package kafkaproto
