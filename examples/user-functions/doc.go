// Command user-functions runs a SQL job with functions that are written in Go:
// MASK_EMAIL hides whom an address belongs to, DOMAIN_LEVELS gives a row for each
// domain that an address lies in, WEEKDAYS is an aggregate. The job reads JSON lines
// and writes JSON lines.
//
//	go run ./examples/user-functions -in examples/user-functions/orders.ndjson -out OUT
//
// functions.go has the functions, job.sql the job, job.test.yaml its tests;
// docs/sql/user-functions.md explains all of it.
package main
