package outbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/millrace/millrace/storage/vfs"
)

// A sealed file starts with its magic and version; docs/format/outbox.md.
const (
	fileMagic   = "mroutbx"
	fileVersion = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Message is the content of a sealed file: what one artefact sends.
type Message struct {
	// ID is the artefact id.
	ID string
	// Rows counts rows; Units is the number that Encoder.Append counted.
	Rows, Units int64
	// Body is valid during the call only.
	Body []byte
}

func (m *Message) encode() []byte {
	b := make([]byte, 0, len(m.Body)+len(m.ID)+64)
	b = append(append(b, fileMagic...), fileVersion)
	b = binary.AppendUvarint(b, uint64(len(m.ID)))
	b = append(b, m.ID...)
	b = binary.AppendUvarint(b, uint64(m.Rows))
	b = binary.AppendUvarint(b, uint64(m.Units))
	b = binary.AppendUvarint(b, uint64(len(m.Body)))
	b = append(b, m.Body...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

var errFile = errors.New("it is no sealed file of a version that this program knows")

// decodeMessage takes a file apart; the body aliases it.
func decodeMessage(file []byte) (m Message, err error) {
	if len(file) < len(fileMagic)+1+4 || string(file[:len(fileMagic)]) != fileMagic || file[len(fileMagic)] != fileVersion {
		return m, errFile
	}
	content, sum := file[:len(file)-4], binary.LittleEndian.Uint32(file[len(file)-4:])
	if crc32.Checksum(content, castagnoli) != sum {
		return m, errors.New("a sealed file is damaged: its checksum differs")
	}
	r := reader{b: content[len(fileMagic)+1:]}
	m.ID = string(r.take(r.uvarint()))
	m.Rows, m.Units = int64(r.uvarint()), int64(r.uvarint())
	m.Body = r.take(r.uvarint())
	if r.bad || len(r.b) > 0 {
		return m, errors.New("a sealed file has another length than it says")
	}
	return m, nil
}

// reader reads numbers and bytes; bad is set once something is missing.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) uvarint() uint64 {
	x, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.bad = true
		return 0
	}
	r.b = r.b[n:]
	return x
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

// writeFile writes a message into a new file and makes it durable. It gives the
// file's size in bytes.
func writeFile(fsys vfs.FS, name string, m *Message) (int64, error) {
	f, err := fsys.CreateNew(name)
	if err != nil {
		return 0, err
	}
	b := m.encode()
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return 0, fmt.Errorf("writing %s: %w", name, err)
	}
	return int64(len(b)), nil
}

// payload is what an artefact's ledger entry carries.
type payload struct{ rows, bytes int64 }

const payloadVersion = 1

func (p payload) encode() []byte {
	b := []byte{payloadVersion}
	b = binary.AppendUvarint(b, uint64(p.rows))
	return binary.AppendUvarint(b, uint64(p.bytes))
}

func checkPayload(b []byte) error {
	if len(b) == 0 || b[0] != payloadVersion {
		return fmt.Errorf("artefact of an unknown version; this program knows %d", payloadVersion)
	}
	r := reader{b: b[1:]}
	r.uvarint()
	r.uvarint()
	if r.bad || len(r.b) > 0 {
		return errors.New("artefact payload is damaged")
	}
	return nil
}
