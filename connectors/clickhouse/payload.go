package clickhouse

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// payload is what an artefact's ledger entry carries.
type payload struct{ rows, bytes int64 }

const payloadVersion = 1

func (p payload) encode() []byte {
	b := []byte{payloadVersion}
	b = binary.AppendUvarint(b, uint64(p.rows))
	return binary.AppendUvarint(b, uint64(p.bytes))
}

func decodePayload(b []byte) (p payload, err error) {
	if len(b) == 0 || b[0] != payloadVersion {
		return p, fmt.Errorf("artefact of an unknown version; this program knows %d", payloadVersion)
	}
	r := sealedReader{b: b[1:]}
	p.rows, p.bytes = int64(r.uvarint()), int64(r.uvarint())
	if r.bad || len(r.b) > 0 {
		return p, errors.New("artefact payload is damaged")
	}
	return p, nil
}
