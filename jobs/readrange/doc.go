// Package readrange is the one grammar of ranges over a log, used by every
// command that reads a stretch of it (consume, preview, backfill):
//
//	start:end      everything there is now          (also the empty string)
//	start          from the earliest record on, without an end
//	end            what is written from now on
//	:end           as start:end
//	+n             the first n records of each partition
//	-n             the last n records of each partition, then end
//	o1:o2          offsets o1 up to, not including, o2; either may be left out
//	o1:+n          n offsets from o1 on
//	@t1:t2         records with timestamps from t1 up to, not including, t2
//	@t1            records from t1 on, up to the present end
//
// A time is RFC 3339 (2026-07-21T06:00:00Z), a date (2026-07-21, UTC), a
// date and time without zone (UTC), milliseconds since 1970, or relative to
// now: -48h, -30m, -7d, now.
//
// A [Range] is pure; [Range.Resolve] turns it into offsets with the help of a
// [Log].
package readrange
