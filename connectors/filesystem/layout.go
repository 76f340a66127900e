package filesystem

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
)

// Names in a table's directory; see the package comment.
const (
	stagingDir = ".staging"
	ownerFile  = "owner"
	// ownerRecordFile is the record in the directory ownerFile of filesystems
	// without hard links.
	ownerRecordFile = "record"
	fencedSuffix    = ".fenced"
	// voidDir is where void files of a job lie, below its directory of .staging.
	voidDir = "void"
	// takenDir is where copies of files of the other home are made, beside it.
	takenDir   = "taken"
	openPrefix = "open-"
	partPrefix = "part-"
)

// laneDir is a lane's (or keyed subtask's) directory below .staging.
func (s *Sink) laneDir(id connector.ArtifactID) string {
	return s.fs.Join(s.dir, stagingDir, id.Job.String(), laneName(id))
}

func laneName(id connector.ArtifactID) string {
	if id.Keyed {
		return fmt.Sprintf("k%d", id.Subtask)
	}
	return fmt.Sprintf("%x-l%d", id.Lane.Topic[:], id.Lane.Set)
}

func epochName(epoch uint64) string { return strconv.FormatUint(epoch, 10) }

// parseEpoch reads the name of an attempt's directory.
func parseEpoch(name string) (epoch uint64, fenced, ok bool) {
	name, fenced = strings.CutSuffix(name, fencedSuffix)
	epoch, err := strconv.ParseUint(name, 10, 64)
	return epoch, fenced, err == nil && name == epochName(epoch)
}

// payload is what an artefact of this connector carries: its names relative
// to the table's directory, and its length.
//
//	version 1 | uvarint length, bytes: staged name | the same: final name | uvarint bytes
type payload struct {
	staged, final string
	bytes         int64
}

const payloadVersion = 1

var errPayload = errors.New("artefact payload is malformed")

func (p payload) encode() []byte {
	b := []byte{payloadVersion}
	for _, s := range []string{p.staged, p.final} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return binary.AppendUvarint(b, uint64(p.bytes))
}

func decodePayload(b []byte) (payload, error) {
	var p payload
	if len(b) == 0 {
		return p, errPayload
	}
	if b[0] != payloadVersion {
		return p, fmt.Errorf("artefact payload has version %d; this program knows %d", b[0], payloadVersion)
	}
	b = b[1:]
	for _, s := range []*string{&p.staged, &p.final} {
		n, k := binary.Uvarint(b)
		if k <= 0 || n > uint64(len(b)-k) {
			return p, errPayload
		}
		*s, b = string(b[k:k+int(n)]), b[k+int(n):]
		// The names come from the ledger; they may not lead out of the table.
		if *s == "" || strings.HasPrefix(*s, "/") || containsDotDot(*s) {
			return p, errPayload
		}
	}
	n, k := binary.Uvarint(b)
	if k <= 0 || k != len(b) || n > 1<<62 {
		return p, errPayload
	}
	p.bytes = int64(n)
	return p, nil
}

func containsDotDot(s string) bool {
	for part := range strings.SplitSeq(s, "/") {
		if part == ".." || part == "" {
			return true
		}
	}
	return false
}

// path joins a name relative to the table, which has '/' everywhere, to the
// table's directory.
func (s *Sink) path(rel string) string {
	return s.fs.Join(append([]string{s.dir}, strings.Split(rel, "/")...)...)
}

// fencedForm is where a staged file lies after its attempt was fenced.
func fencedForm(staged string) string {
	i := strings.LastIndexByte(staged, '/')
	return staged[:i] + fencedSuffix + staged[i:]
}
