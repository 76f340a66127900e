package manifest

import (
	"encoding/binary"

	"github.com/millrace/millrace/storage/record"
)

// fixFileHeader makes the checksum of an altered file header right.
func fixFileHeader(b []byte) {
	binary.BigEndian.PutUint32(b[28:], record.Checksum(b[:28]))
}
