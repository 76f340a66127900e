package record

import "fmt"

// Codec is the compression of a batch, as numbered by the Kafka protocol.
type Codec uint8

// The compressions of the Kafka protocol.
const (
	None   Codec = 0
	Gzip   Codec = 1
	Snappy Codec = 2
	LZ4    Codec = 3
	Zstd   Codec = 4
)

// Known reports whether the codec is one of the five above.
func (c Codec) Known() bool { return c <= Zstd }

// String returns the name used in options: none, gzip, snappy, lz4, zstd.
func (c Codec) String() string {
	switch c {
	case None:
		return "none"
	case Gzip:
		return "gzip"
	case Snappy:
		return "snappy"
	case LZ4:
		return "lz4"
	case Zstd:
		return "zstd"
	}
	return fmt.Sprintf("codec(%d)", uint8(c))
}

// ParseCodec is the reverse of Codec.String for the five known names.
func ParseCodec(name string) (Codec, error) {
	for c := None; c <= Zstd; c++ {
		if c.String() == name {
			return c, nil
		}
	}
	return None, fmt.Errorf("%w: %q (one of none, gzip, snappy, lz4, zstd)", ErrCodec, name)
}
