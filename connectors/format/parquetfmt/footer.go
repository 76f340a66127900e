package parquetfmt

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// maxFooterBytes bounds a footer, whose length comes from the file.
const maxFooterBytes = 256 << 20

// Metadata reads the key-value metadata and the number of rows from a file's
// footer: two reads, no page is touched.
func Metadata(r io.ReaderAt, size int64) (meta map[string]string, rows int64, err error) {
	m, err := readFooter(r, size)
	if err != nil {
		return nil, 0, err
	}
	meta = make(map[string]string, len(m.KeyValueMetadata))
	for _, kv := range m.KeyValueMetadata {
		meta[kv.Key] = kv.Value
	}
	return meta, m.NumRows, nil
}

func readFooter(r io.ReaderAt, size int64) (*format.FileMetaData, error) {
	const tail = 8
	if size < 4+tail {
		return nil, fmt.Errorf("%w: %d bytes are too few", ErrCorrupt, size)
	}
	var b [tail]byte
	if err := readFull(r, b[:], size-tail); err != nil {
		return nil, err
	}
	if string(b[4:]) != magic {
		return nil, fmt.Errorf("%w: no PAR1 at the end", ErrCorrupt)
	}
	n := int64(binary.LittleEndian.Uint32(b[:4]))
	if n > maxFooterBytes || n+tail+4 > size {
		return nil, fmt.Errorf("%w: a footer of %d bytes in a file of %d", ErrCorrupt, n, size)
	}
	buf := make([]byte, n)
	if err := readFull(r, buf, size-tail-n); err != nil {
		return nil, err
	}
	m := new(format.FileMetaData)
	if err := unmarshal(buf, m); err != nil {
		return nil, fmt.Errorf("%w: footer: %w", ErrCorrupt, err)
	}
	return m, nil
}

// unmarshal shields against a decoder that panics on hostile bytes.
func unmarshal(b []byte, v any) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("decoding: %v", p)
		}
	}()
	return thrift.Unmarshal(new(thrift.CompactProtocol), b, v)
}

func readFull(r io.ReaderAt, b []byte, off int64) error {
	n, err := r.ReadAt(b, off)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		return fmt.Errorf("%w: the file ends before byte %d", ErrCorrupt, off+int64(len(b)))
	}
	return fmt.Errorf("reading parquet footer: %w", err)
}
