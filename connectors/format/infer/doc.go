// Package infer drafts a CREATE TABLE from samples of a topic of JSON.
//
// [New] is a pure function of the samples: it looks at every value, decides
// a type for each column, field and element, and writes a statement that can
// be run as it is, with a comment a column that says what was seen. Every
// sample that is not malformed can be decoded under the drafted types without
// a value error: where samples disagree the type is the one that holds all of
// them, at last STRING, which takes any JSON as it is written.
//
//	integers                  BIGINT, beyond 64 bits DECIMAL(38, 0)
//	numbers with a fraction   DOUBLE
//	times with a zone         TIMESTAMP_LTZ(3), with json.timestamp-format.standard
//	times without             TIMESTAMP(3)
//	integers that are epochs  BIGINT and a computed TIMESTAMP_LTZ(3) beside it
//	objects                   ROW; MAP where the keys are data
//	arrays                    ARRAY of the type that holds all elements
//
// Schemas are drafted for people to edit; no job ever infers one by itself.
package infer
