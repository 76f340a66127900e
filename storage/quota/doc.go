// Package quota limits what clients take: bytes produced and fetched a second,
// and the time of the server's threads.
//
//	Table              which limit holds for a user and a client id
//	NewMeters(now)     the rates of all clients
//	(*Meters) Record(table, kind, user, client, amount) (throttle)
//
// Limits are set for a user, a client id, a user's client id, and the defaults of
// each. The most specific one holds, and all clients that it is about share it:
//
//	1 user + client id   2 user + default client id   3 user
//	4 default user + client id   5 default user + default client id   6 default user
//	7 client id   8 default client id
//
// (In 1 to 5 with a part that is a default, the real name tells those who share.)
//
// A rate is measured over 11 samples of a second. Beyond its limit a client is to
// wait until the rate is down to it: (rate - limit) / limit * window, as in Kafka.
//
// What it is not: it does not wait or mute (storage/kafkaproto does) and keeps
// nothing durable (storage/access does).
//
// Concurrency: a Table does not change; Meters are safe for concurrent use.
package quota
