// Package sqltest has connectors for tests of the front end: the surface of
// the real ones (names, options, metadata, what they can do), and rows in
// memory instead of systems.
//
//	given       source: rows that a test puts in (Given)
//	given-upsert  source: newest rows by primary key, out of given rows (GivenUpserts)
//	log         source and sink, insert only; json, with metadata
//	filesystem  source (bounded) and sink with table partitions
//	upsert      takes and gives updates by primary key
//	datagen     source without an end
//	print, blackhole  sinks that take every kind of row
//
// All others cannot be opened; they are there to be bound. Blocks reads and writes
// files of SQL and what is expected of it. Nothing here is used outside of tests.
package sqltest
