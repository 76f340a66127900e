package topiclog

import "github.com/millrace/millrace/storage/manifest"

// RewriteAlways makes the metadata log rewrite itself with every commit.
func RewriteAlways(o Options) Options {
	o.manifest = manifest.Options{RewriteFactor: 1, MinRewriteBytes: 1}
	return o
}

// Promoting sets what it takes for a partition to be promoted and demoted, and to
// go past the journal.
func Promoting(o Options, promoteBytes, demoteBytes int64, directBytes int) Options {
	o.promoteBytes, o.demoteBytes, o.DirectBytes = promoteBytes, demoteBytes, directBytes
	o.keepOwnBytes = 1 // merges leave own segments of any size between others
	return o
}

// AppendInJournal is AppendAsync of batches that never go past the journal, such as
// the end of a transaction.
func AppendInJournal(s *Store, req AppendRequest, done func(AppendResult, error)) error {
	r := &request{done: done, bodied: true}
	if err := s.check(req, r); err != nil {
		return err
	}
	return r.part.shard.enqueue(r)
}
