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

// SmallBlocks sets the size of the write cache's blocks, a multiple of vfs.DirectAlign.
func SmallBlocks(o Options, bytes int) Options {
	o.blockBytes, o.ownBlockBytes = bytes, bytes
	return o
}

// AppendInJournal is AppendAsync of batches that never go past the journal, such as
// the end of a transaction.
func AppendInJournal(s *Store, req AppendRequest, done func(AppendResult, error)) error {
	r := &request{done: done, bodied: true}
	s.mu.RLock()
	rules := s.rulesOf(req.Partition)
	s.mu.RUnlock()
	if err := s.check(&req, r, &rules); err != nil {
		return err
	}
	return r.part.shard.enqueue(r)
}

// FlushCutShort is the beginning of a flush that says very much of producers: it commits
// the first n edits of that, and no more. It returns how many there are.
func FlushCutShort(s *Store, n int) (int, error) {
	sh := s.shards[0]
	sh.mu.Lock()
	taken := sh.takeProducers()
	sh.mu.Unlock()
	edits := taken.encode()
	return len(edits), s.meta.commit(nil, edits[:min(n, len(edits))]...)
}
