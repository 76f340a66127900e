package filesystem

import (
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace/storage/vfs"
)

// contentFile says, in the directory of a table partition that was replaced, which
// content it has.
const contentFile = ".content"

// contentRecord is the content of contentFile.
type contentRecord struct {
	Version int `json:"version"`
	// Job made the content, as its version Content.
	Job     string `json:"job"`
	Content uint64 `json:"content"`
}

const contentVersion = 1

func (s *Sink) content(dir string) (contentRecord, error) {
	name := s.fs.Join(dir, contentFile)
	b, err := vfs.ReadFile(s.fs, name)
	if err != nil {
		return contentRecord{}, err
	}
	return readContent(b, name)
}

func readContent(b []byte, name string) (contentRecord, error) {
	var r contentRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("content record %s: %w", name, err)
	}
	if r.Version != contentVersion {
		return r, fmt.Errorf("content record %s has version %d; this program knows %d", name, r.Version, contentVersion)
	}
	return r, nil
}

func (r contentRecord) encode() ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding content record: %w", err)
	}
	return append(b, '\n'), nil
}
