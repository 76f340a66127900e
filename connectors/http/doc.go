// Package http is the connector `http`: rows as JSON in POST requests to a webhook.
//
// Sealing, files and fencing are connectors/outbox. A request carries the artefact id
// as Idempotency-Key; the same key always comes with the same body, so that a
// receiver that remembers keys takes each artefact once. It does not read, does not
// follow redirects and sends nothing but POST.
//
// # Invariants
//
//   - Parts of a body that is too large (413) are cut by halves of its lines, always
//     at the same places, and named after them.
//   - Invariant 3: whatever is no answer of 2xx is sent again, or stops the lane.
//
// # Concurrency
//
// A sink is safe for concurrent use. An encoder belongs to one writer.
package http
