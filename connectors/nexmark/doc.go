// Package nexmark is the connector `nexmark`: a source with the events of the
// Nexmark benchmark, an auction house. The queries are in examples/nexmark.
//
// Of every 50 events the first is a person who joins, three are auctions that are
// opened, 46 are bids. Event n is a function of the seed and n, which is its
// offset: a reader that starts again at an offset makes the same events, and no
// clock is read. The distributions are those of the public generator:
//
//	event     kind      n mod 50: 0 person, 1-3 auction, 4-49 bid
//	time      n / rate seconds behind the start; within groups of out-of-order events
//	          n is permuted
//	price     100 * 10^(6u), u uniform in [0, 1)
//	auction   id in order; category 10-14; open for about as long as it takes until
//	          the next 100 are opened; of the seller 3 in 4 are the first of the
//	          last hundred persons, the others one of the last 1000 or of the next 10
//	bid       1 in 2 on the first of the last hundred auctions, the others on one of
//	          the last 100 or of the next 10; by bidders as sellers are, but the
//	          second of the last hundred; 1 in 2 through one of four channels, the
//	          others through one of 10,000, 9 in 10 of these with its id in the URL
//	texts     letters, one in 13 a space or underscore; extra fills up to 200 bytes for
//	          a person, 500 for an auction, 100 for a bid, give or take a fifth
//
// Ids of persons and auctions count from 1000. What differs from the public
// generator: numbers come from a hash of the seed and n, so that events repeat;
// ids of bidders are those of persons (there they are shifted by 1000).
//
// There is one partition. Events come as fast as they are read.
//
// A Generator belongs to one goroutine; a Source is safe for concurrent use, a
// Reader belongs to one goroutine.
package nexmark
