package connector

// AsideWriter is a Writer of a table with partitions that has a place beside it for
// rows which come too late for theirs: a bucket, and artefacts, of table partition "".
type AsideWriter interface {
	Writer
	PartitionNamer
	// Aside is that bucket, the same as long as the writer lives. Every row fits
	// into it.
	Aside() BucketID
}
