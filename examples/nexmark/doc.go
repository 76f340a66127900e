// Package nexmark is the Nexmark benchmark as SQL files: persons, auctions and
// bids of an auction house, and the queries q0 to q23 over them. README.md says
// what each is about and how to run them, also in Flink.
//
//	source/generator.sql   table events, from connector nexmark
//	source/files.sql       table events, from JSON lines
//	views.sql              person, auction and bid
//	generate.sql           writes the JSON lines
//	queries/q0.sql ...     a sink and one INSERT each
//
// The tests run each query over both sources and compare the rows with those of
// the real Flink, which testdata/answers.txt has as hashes.
package nexmark
