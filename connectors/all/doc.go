// Package all is the registry of the built-in connectors and formats. Only
// programs import it; everything below takes a connector.Registry.
//
// It is the one list to extend for a new connector or format. It holds no state
// of its own: each call of [Registry] makes new connectors, and connectors of one
// log must be shared, since they know which writers are fenced. A program makes
// one registry for each log that it opens.
package all
