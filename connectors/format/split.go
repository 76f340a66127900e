package format

import "bytes"

// SplitLines cuts text into lines; the line end is \n or \r\n.
func SplitLines(data []byte, atEOF bool) (advance int, record []byte) {
	i := bytes.IndexByte(data, '\n')
	if i < 0 {
		if !atEOF {
			return 0, nil
		}
		return len(data), TrimCR(data)
	}
	return i + 1, TrimCR(data[:i])
}

// TrimCR cuts one carriage return off the end.
func TrimCR(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\r' {
		return b[:n-1]
	}
	return b
}
