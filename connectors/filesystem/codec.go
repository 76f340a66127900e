package filesystem

import (
	"compress/bzip2"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

const (
	compressionNone = "none"
	compressionGzip = "gzip"
	compressionZstd = "zstd"
)

// maxWindowBytes bounds what a zstd frame may want to be remembered: that of `zstd --long`.
const maxWindowBytes = 128 << 20

// codec is a compression of whole text files, known by the ending of their names.
type codec struct {
	name    string
	endings []string // in lower case
	open    func(io.Reader) (io.ReadCloser, error)
}

// codecs are those that Flink decompresses, but for xz.
func codecs() []codec {
	return []codec{
		{compressionGzip, []string{".gz", ".gzip"}, func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }},
		{compressionZstd, []string{".zst"}, openZstd},
		{"bzip2", []string{".bz2"}, func(r io.Reader) (io.ReadCloser, error) { return io.NopCloser(bzip2.NewReader(r)), nil }},
		{"deflate", []string{".deflate"}, func(r io.Reader) (io.ReadCloser, error) { return zlib.NewReader(r) }},
	}
}

func openZstd(r io.Reader) (io.ReadCloser, error) {
	// One goroutine: many lanes read at a time, and none of them faster than it parses.
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindowBytes))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// unreadableEndings are of compressions that nothing here decompresses. Some have no magic
// bytes, so that each of their files would be one malformed record.
func unreadableEndings() []string { return []string{".xz", ".lz4", ".lzo", ".snappy", ".br", ".zip"} }

// codecOf finds the compression of a file by its name; ok is false for plain text.
func codecOf(name string) (c codec, ok bool, err error) {
	name = strings.ToLower(name)
	ends := func(e string) bool { return strings.HasSuffix(name, e) }
	for _, c := range codecs() {
		if slices.ContainsFunc(c.endings, ends) {
			return c, true, nil
		}
	}
	if i := slices.IndexFunc(unreadableEndings(), ends); i >= 0 {
		return c, false, fmt.Errorf("not_yet: compressed text that ends with %s; there is %s", unreadableEndings()[i], readableEndings())
	}
	return c, false, nil
}

// readableEndings lists the endings that are decompressed, for people.
func readableEndings() string {
	var all []string
	for _, c := range codecs() {
		all = append(all, c.endings...)
	}
	return strings.Join(all, ", ")
}
