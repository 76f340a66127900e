package jsonfmt

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/millrace/millrace/connectors/format"
)

// ErrSpansLines says that a text holds JSON values that go over several lines,
// where each line must be a value of its own.
var ErrSpansLines = errors.New("its first JSON value goes over several lines, and each line must hold one JSON value of its own")

var _ format.HeadChecker = Format{}

// CheckHead implements format.HeadChecker: a pretty-printed file, or one array
// over many lines, is refused as a whole. Read line by line it would give a
// malformed record for every line, and rows of a few lines that happen to be
// complete.
func (Format) CheckHead(head []byte, whole bool) error {
	if SpansLines(head, whole) {
		return ErrSpansLines
	}
	return nil
}

// SpansLines reports whether the first JSON value of a text goes on behind its
// first line. whole says that head is the whole text; else the text is cut
// somewhere. A first line that is merely faulty is none: what follows has to
// continue it without a fault.
func SpansLines(head []byte, whole bool) bool {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\ufeff")), " \t\r\n")
	end := bytes.IndexByte(head, '\n')
	if end < 0 || head[0] != '{' && head[0] != '[' {
		return false
	}
	// encoding/json takes no raw control characters within strings; a text
	// with such ones is left to the decoder of records.
	dec := json.NewDecoder(bytes.NewReader(head))
	dec.UseNumber()
	for depth := 0; ; {
		t, err := dec.Token()
		if err != nil {
			cut := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
			return cut && !whole && dec.InputOffset() > int64(end)
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth == 0 {
			return dec.InputOffset() > int64(end)
		}
	}
}
