// Package datagen is the connector `datagen`: a source of made-up rows, with
// Flink's options.
//
// A row is a function of the seed, the column and the row's number, which is its
// offset. So a reader that starts again at an offset makes the same rows, and a
// job over it is exactly once like one over a log. Times are the exception: they
// lie before the clock, unless `start-time` fixes them.
//
// There is one partition. It ends at `number-of-rows`, or where the first
// sequence ends, and grows by `rows-per-second` until then.
//
// Deviations from Flink: DATE and TIME are random, not the present day and
// time; `seed` and `start-time` are ours; a sequence is not split among
// subtasks.
//
// A Source is safe for concurrent use, a Reader belongs to one goroutine; its
// timer calls notify.
package datagen
