package format

import "unicode/utf8"

// maxExcerpt bounds values in messages, in bytes.
const maxExcerpt = 64

// Excerpt is a value for a message, cut at 64 bytes between characters.
func Excerpt(b []byte) string {
	if len(b) <= maxExcerpt {
		return string(b)
	}
	n := maxExcerpt
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return string(b[:n]) + "..."
}
