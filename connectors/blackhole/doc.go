// Package blackhole is the connector `blackhole`: a sink that takes every row
// and keeps none. It is for measuring what is in front of it, and for checking
// a query without writing.
//
// It takes part in the commit cycle like any sink, so positions move and the
// ledger counts; an artefact is only its header. Nothing is visible, so that
// "published" is always true. It has no options and no state beyond the rows
// counted since an artefact was sealed.
//
// A Sink is safe for concurrent use, a Writer belongs to one goroutine.
package blackhole
