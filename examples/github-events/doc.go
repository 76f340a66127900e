// Package githubevents is the main job's example: 800 public GitHub events of
// 15 types, one topic each, and a job that writes them to Hive-layout Parquet
// tables, to one table of all events, and to an hourly wide table per actor.
//
//	data/events.ndjson.zst   the events, in four slices of 200: a few seconds
//	                         each, just after 06, 07, 08 and 09 UTC
//	ddl/*.sql                one CREATE TABLE a topic
//	job.sql                  the job
//
// [Generate] makes any number of events of them: hour by hour, all repeats of
// the 06 h slice with shifted ids and times, then 07 h, and so on, because
// repeating the whole file would make every repeat's early rows late. It can
// spoil rows on purpose. Everything is a pure function of its arguments, so
// that a test knows what must come out.
package githubevents
