package topiclog

import "github.com/millrace/millrace/storage/manifest"

// RewriteAlways makes the metadata log rewrite itself with every commit.
func RewriteAlways(o Options) Options {
	o.manifest = manifest.Options{RewriteFactor: 1, MinRewriteBytes: 1}
	return o
}
