// Package catalog holds what DDL declares: tables, views, wide tables and
// settings, with the places where each part was written.
//
// It checks what a declaration says about itself (names, types, keys, LIKE,
// options against the connector's Spec) and knows no queries: the type of a
// computed column comes from a [Typer] that the binder passes in.
//
// Options are checked strictly (Invariant 10): an unknown key is an error at
// the key with the nearest name; a key that Flink knows and that has no effect
// here is a warning, once a table.
//
// A Catalog and Settings belong to one goroutine; the objects in them are
// immutable once added.
package catalog
