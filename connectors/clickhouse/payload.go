package clickhouse

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// payload is what an artefact's ledger entry carries.
type payload struct {
	rows, bytes int64
	// shard is the number of the block's shard, from 1, 0 for a table without shards.
	shard int64
	// replace: the block is a part of a table partition's whole content.
	replace bool
}

// Versions of the encoding: the second one has a shard and whether it replaces.
const (
	payloadVersion = 1
	payloadLong    = 2
)

func (p payload) encode() []byte {
	b := []byte{payloadVersion}
	long := p.shard != 0 || p.replace
	if long {
		b[0] = payloadLong
	}
	b = binary.AppendUvarint(b, uint64(p.rows))
	b = binary.AppendUvarint(b, uint64(p.bytes))
	if long {
		replace := uint64(0)
		if p.replace {
			replace = 1
		}
		b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(p.shard)), replace)
	}
	return b
}

func decodePayload(b []byte) (p payload, err error) {
	if len(b) == 0 || b[0] != payloadVersion && b[0] != payloadLong {
		return p, fmt.Errorf("artefact of an unknown version; this program knows %d and %d", payloadVersion, payloadLong)
	}
	r := sealedReader{b: b[1:]}
	p.rows, p.bytes = int64(r.uvarint()), int64(r.uvarint())
	if b[0] == payloadLong {
		p.shard = int64(r.uvarint())
		p.replace = r.uvarint() == 1
	}
	if r.bad || len(r.b) > 0 {
		return p, errors.New("artefact payload is damaged")
	}
	return p, nil
}
