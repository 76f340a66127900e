package filesystem

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// ownerRecord is the content of .staging/owner.
type ownerRecord struct {
	Version       int    `json:"version"`
	Job           string `json:"job"`
	JobName       string `json:"job_name"`
	DataDirectory string `json:"data_directory"`
	JobEpoch      uint64 `json:"job_epoch"`
}

const ownerVersion = 1

func recordOf(o connector.Owner) ownerRecord {
	return ownerRecord{Version: ownerVersion, Job: o.Job.String(), JobName: o.JobName,
		DataDirectory: o.DataDirectory.String(), JobEpoch: o.JobEpoch}
}

func (r ownerRecord) String() string {
	return fmt.Sprintf("job %q (%s) of data directory %s, epoch %d", r.JobName, r.Job, r.DataDirectory, r.JobEpoch)
}

// claim makes the owner the one who writes the table, or says whose it is.
func (s *Sink) claim() error {
	if err := s.finishReplace(); err != nil {
		return fmt.Errorf("finishing the replacing of %s: %w", s.prefix+s.dir, err)
	}
	dir := s.fs.Join(s.dir, stagingDir)
	if err := s.durableDir(dir); err != nil {
		return fmt.Errorf("making %s: %w", dir, err)
	}
	name := s.ownerName()
	mine := recordOf(s.owner)
	have, err := readOwner(s.fs, name)
	if errors.Is(err, vfs.ErrNotExist) {
		err = s.createOwner(dir, mine)
		if !errors.Is(err, vfs.ErrExist) {
			return err
		}
		// Another process was faster.
		have, err = readOwner(s.fs, name)
	}
	if err != nil {
		return fmt.Errorf("reading owner of %s: %w", s.prefix+s.dir, err)
	}
	same := have.Job == mine.Job && have.DataDirectory == mine.DataDirectory
	switch {
	case same && have.JobEpoch == mine.JobEpoch:
		return nil
	case same && have.JobEpoch < mine.JobEpoch, s.owner.Adopt:
		if have.Job != mine.Job {
			if err := s.cutOffOthers(dir); err != nil {
				return err
			}
		}
		b, err := mine.encode()
		if err != nil {
			return err
		}
		if err := vfs.WriteFileAtomic(s.fs, name, b); err != nil {
			return fmt.Errorf("writing owner of %s: %w", s.prefix+s.dir, err)
		}
		return nil
	}
	return &connector.OwnedError{Location: s.prefix + s.dir, Owner: have.String()}
}

// cutOffOthers renames the staging directories of other jobs, so that a
// process of theirs which is still alive can neither seal nor publish.
func (s *Sink) cutOffOthers(dir string) error {
	names, err := s.fs.List(dir)
	if err != nil {
		return fmt.Errorf("listing %s: %w", dir, err)
	}
	for _, n := range names {
		old := s.fs.Join(dir, n)
		info, err := s.fs.Stat(old)
		if err != nil {
			return fmt.Errorf("looking at %s: %w", old, err)
		}
		if !info.IsDir() || n == s.owner.Job.String() || strings.HasPrefix(n, ownerFile) || strings.Contains(n, fencedSuffix) {
			continue
		}
		// A job may be cut off more than once.
		for i := 0; ; i++ {
			to := old + fencedSuffix
			if i > 0 {
				to += fmt.Sprintf("-%d", i)
			}
			ok, err := vfs.Exists(s.fs, to)
			if err == nil && !ok {
				err = s.fs.Rename(old, to)
			}
			if err != nil {
				return fmt.Errorf("cutting off %s: %w", old, err)
			}
			if !ok {
				break
			}
		}
	}
	return s.fs.SyncDir(dir)
}

// ownerName is the record's path: a file, or a file in a directory of that name
// where only the renaming of directories can be exclusive.
func (s *Sink) ownerName() string {
	if s.linkless {
		return s.fs.Join(s.dir, stagingDir, ownerFile, ownerRecordFile)
	}
	return s.fs.Join(s.dir, stagingDir, ownerFile)
}

// createOwner creates the record exclusively and whole: it is written under
// another name, synced, and linked; without links it is written into another
// directory, and that renamed.
func (s *Sink) createOwner(dir string, r ownerRecord) error {
	b, err := r.encode()
	if err != nil {
		return err
	}
	mine := ownerFile + "-" + strings.ReplaceAll(r.Job, "-", "") + "-"
	if err := s.removeOwnTries(dir, mine); err != nil {
		return fmt.Errorf("creating owner record: %w", err)
	}
	tmp := s.fs.Join(dir, mine+epochName(r.JobEpoch))
	if s.linkless {
		err = s.createOwnerDir(tmp, s.fs.Join(dir, ownerFile), b)
	} else {
		err = s.linkOwner(tmp, s.ownerName(), b)
	}
	if err == nil {
		err = s.fs.SyncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("creating owner record: %w", err)
	}
	return nil
}

// removeOwnTries removes what processes of the job that were killed here left.
func (s *Sink) removeOwnTries(dir, prefix string) error {
	names, err := s.fs.List(dir)
	if err != nil {
		return err
	}
	for _, n := range names {
		if strings.HasPrefix(n, prefix) {
			if err := s.fs.RemoveAll(s.fs.Join(dir, n)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Sink) linkOwner(tmp, name string, record []byte) error {
	err := s.writeWhole(tmp, record)
	if err == nil {
		err = s.fs.Link(tmp, name)
	}
	if rerr := s.fs.Remove(tmp); err == nil {
		err = rerr
	}
	return err
}

func (s *Sink) createOwnerDir(tmp, name string, record []byte) error {
	if err := s.fs.MkdirAll(tmp); err != nil {
		return err
	}
	if err := s.writeWhole(s.fs.Join(tmp, ownerRecordFile), record); err != nil {
		return err
	}
	if err := s.fs.SyncDir(tmp); err != nil {
		return err
	}
	err := s.fs.RenameNoReplace(tmp, name)
	if errors.Is(err, vfs.ErrExist) {
		// Another process was faster; ours is garbage.
		if rerr := s.fs.RemoveAll(tmp); rerr != nil {
			return rerr
		}
	}
	return err
}

// writeWhole writes and syncs a file.
func (s *Sink) writeWhole(name string, b []byte) error {
	f, err := s.fs.Create(name)
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func (r ownerRecord) encode() ([]byte, error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding owner record: %w", err)
	}
	return append(b, '\n'), nil
}

func readOwner(fsys vfs.FS, name string) (ownerRecord, error) {
	var r ownerRecord
	b, err := vfs.ReadFile(fsys, name)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("owner record %s: %w", name, err)
	}
	if r.Version != ownerVersion {
		return r, fmt.Errorf("owner record %s has version %d; this program knows %d", name, r.Version, ownerVersion)
	}
	if _, err := hex.DecodeString(strings.ReplaceAll(r.Job, "-", "")); err != nil {
		return r, fmt.Errorf("owner record %s: job %q is no UUID", name, r.Job)
	}
	return r, nil
}

// owned checks that the table still belongs to this process's epoch of the job.
func (s *Sink) owned() error {
	have, err := readOwner(s.fs, s.ownerName())
	if err != nil {
		return fmt.Errorf("reading owner of %s: %w", s.prefix+s.dir, err)
	}
	mine := recordOf(s.owner)
	if have.Job != mine.Job || have.DataDirectory != mine.DataDirectory || have.JobEpoch != mine.JobEpoch {
		return fmt.Errorf("%w: %s belongs to %s", connector.ErrFenced, s.prefix+s.dir, have)
	}
	return nil
}
