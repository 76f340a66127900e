package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// What a sealed file is called says what is known of it.
const (
	suffixSealed = ".sealed" // durable, and never sent
	suffixTried  = ".tried"  // may have been sent
	suffixDone   = ".done"   // acknowledged
	suffixVoid   = ".void"   // given up; it will never be sent
	fencedSuffix = ".fenced" // of an attempt's directory
	ownerFile    = "owner"
)

var suffixes = [...]string{suffixSealed, suffixTried, suffixDone, suffixVoid}

// staging is the directory of one table of one job.
type staging struct {
	fs    vfs.FS
	dir   string
	epoch uint64 // of the job
}

// ownerRecord is the content of the owner file.
type ownerRecord struct {
	Version  int    `json:"version"`
	JobEpoch uint64 `json:"job_epoch"`
}

const ownerVersion = 1

// openStaging makes the directory and claims it for a run of the job.
func openStaging(fsys vfs.FS, root, kind, table string, o connector.Owner) (*staging, error) {
	if root == "" {
		return nil, errors.New("this program was started without a data directory, in which rows could be sealed")
	}
	st := &staging{fs: fsys, dir: fsys.Join(root, kind, o.Job.String(), "t-"+url.PathEscape(table)), epoch: o.JobEpoch}
	if err := vfs.MkdirAllSync(fsys, st.dir); err != nil {
		return nil, fmt.Errorf("making %s: %w", st.dir, err)
	}
	have, err := st.owner()
	switch {
	case err != nil:
		return nil, err
	case have > o.JobEpoch:
		return nil, &connector.OwnedError{Location: st.dir, Owner: fmt.Sprintf("epoch %d of the same job, this is epoch %d", have, o.JobEpoch)}
	case have == o.JobEpoch && have > 0:
		return st, nil
	}
	b, err := json.Marshal(ownerRecord{Version: ownerVersion, JobEpoch: o.JobEpoch})
	if err != nil {
		return nil, fmt.Errorf("encoding owner record: %w", err)
	}
	if err := vfs.WriteFileAtomic(fsys, fsys.Join(st.dir, ownerFile), b); err != nil {
		return nil, fmt.Errorf("writing owner record: %w", err)
	}
	return st, nil
}

// owner is the job epoch that owns the directory, 0 for none.
func (st *staging) owner() (uint64, error) {
	b, err := vfs.ReadFile(st.fs, st.fs.Join(st.dir, ownerFile))
	if errors.Is(err, vfs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading owner record: %w", err)
	}
	var r ownerRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return 0, fmt.Errorf("owner record of %s: %w", st.dir, err)
	}
	if r.Version != ownerVersion {
		return 0, fmt.Errorf("owner record of %s has version %d; this program knows %d", st.dir, r.Version, ownerVersion)
	}
	return r.JobEpoch, nil
}

// owned is ErrFenced when a later run of the job has taken over. Invariant 9.
func (st *staging) owned() error {
	have, err := st.owner()
	if err == nil && have != st.epoch {
		err = fmt.Errorf("job epoch %d, now %d: %w", st.epoch, have, connector.ErrFenced)
	}
	return err
}

// laneName is the directory of a lane or of a keyed stage's subtask.
func laneName(id connector.ArtifactID) string {
	if id.Keyed {
		return fmt.Sprintf("k%d", id.Subtask)
	}
	return fmt.Sprintf("%x-l%d", id.Lane.Topic[:], id.Lane.Set)
}

func (st *staging) lane(id connector.ArtifactID) string { return st.fs.Join(st.dir, laneName(id)) }

func epochName(e uint64) string { return "e" + strconv.FormatUint(e, 10) }

func parseEpoch(name string) (epoch uint64, fenced, ok bool) {
	name, fenced = strings.CutSuffix(name, fencedSuffix)
	if !strings.HasPrefix(name, "e") {
		return 0, false, false
	}
	epoch, err := strconv.ParseUint(name[1:], 10, 64)
	return epoch, fenced, err == nil
}

// maxEpoch is the highest epoch of a lane.
func (st *staging) maxEpoch(id connector.ArtifactID) (uint64, error) {
	names, err := st.fs.List(st.lane(id))
	if errors.Is(err, vfs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("listing %s: %w", st.lane(id), err)
	}
	high := uint64(0)
	for _, n := range names {
		if e, _, ok := parseEpoch(n); ok {
			high = max(high, e)
		}
	}
	return high, nil
}

// fence makes the directory of an attempt and renames those of lower epochs, so
// that an attempt which is still alive finds its own gone. The own one is made
// first: of two attempts that start at once the lower one sees the higher one.
func (st *staging) fence(id connector.ArtifactID) (dir string, err error) {
	lane := st.lane(id)
	if err := vfs.MkdirAllSync(st.fs, lane); err != nil {
		return "", fmt.Errorf("making %s: %w", lane, err)
	}
	own := st.fs.Join(lane, epochName(id.Epoch))
	err = st.fs.Mkdir(own)
	if errors.Is(err, vfs.ErrExist) {
		return "", fmt.Errorf("%w: epoch %d of %s was used before", connector.ErrFenced, id.Epoch, lane)
	}
	if err != nil {
		return "", fmt.Errorf("making %s: %w", own, err)
	}
	names, err := st.fs.List(lane)
	if err != nil {
		return "", fmt.Errorf("listing %s: %w", lane, err)
	}
	for _, n := range names {
		if e, _, ok := parseEpoch(n); ok && e > id.Epoch {
			if err := st.fs.Rename(own, own+fencedSuffix); err != nil && !errors.Is(err, vfs.ErrNotExist) {
				return "", fmt.Errorf("fencing %s: %w", own, err)
			}
			return "", fmt.Errorf("%w: epoch %d of %s has started", connector.ErrFenced, e, lane)
		}
	}
	for _, n := range names {
		e, fenced, ok := parseEpoch(n)
		if !ok || fenced || e >= id.Epoch {
			continue
		}
		old := st.fs.Join(lane, n)
		if err := st.fs.Rename(old, old+fencedSuffix); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return "", fmt.Errorf("fencing %s: %w", old, err)
		}
	}
	if err := st.fs.SyncDir(lane); err != nil {
		return "", fmt.Errorf("syncing %s: %w", lane, err)
	}
	return own, nil
}

// find gives the file of an artefact and what its name says, "" and "" when there
// is none. A rename may happen meanwhile, so that it looks twice.
func (st *staging) find(id connector.ArtifactID) (path, suffix string, err error) {
	dir := st.fs.Join(st.lane(id), epochName(id.Epoch))
	for range 2 {
		for _, d := range []string{dir, dir + fencedSuffix} {
			for _, x := range suffixes {
				path := st.fs.Join(d, id.String()+x)
				ok, err := vfs.Exists(st.fs, path)
				if err != nil {
					return "", "", fmt.Errorf("looking for %s: %w", path, err)
				}
				if ok {
					return path, x, nil
				}
			}
		}
	}
	return "", "", nil
}

// mark renames an artefact's file to another state.
func (st *staging) mark(path, from, to string) (string, error) {
	next := strings.TrimSuffix(path, from) + to
	err := st.fs.Rename(path, next)
	if errors.Is(err, vfs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s is gone", connector.ErrFenced, path)
	}
	if err != nil {
		return "", fmt.Errorf("renaming %s: %w", path, err)
	}
	return next, nil
}

// settle removes what nobody will ask for again: files of id's attempt before
// it, and all of lower epochs.
func (st *staging) settle(id connector.ArtifactID) error {
	lane := st.lane(id)
	names, err := st.fs.List(lane)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", lane, err)
	}
	for _, n := range names {
		e, fenced, ok := parseEpoch(n)
		dir := st.fs.Join(lane, n)
		switch {
		case !ok:
		case e == id.Epoch:
			err = st.settleFiles(dir, id)
		case fenced && e < id.Epoch:
			err = st.fs.RemoveAll(dir)
		}
		if err != nil {
			return fmt.Errorf("removing settled files: %w", err)
		}
	}
	return nil
}

func (st *staging) settleFiles(dir string, id connector.ArtifactID) error {
	files, err := st.fs.List(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		stem, done := strings.CutSuffix(f, suffixDone)
		if !done {
			if stem, done = strings.CutSuffix(f, suffixVoid); !done {
				continue
			}
		}
		if !before(stem, id) {
			continue
		}
		if err := st.fs.Remove(st.fs.Join(dir, f)); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// before reports that the artefact of a name comes before id in the same epoch.
func before(stem string, id connector.ArtifactID) bool {
	parts := strings.Split(stem, "-")
	seq, err := strconv.ParseUint(parts[len(parts)-1], 10, 64)
	if err != nil {
		return false
	}
	if !id.Keyed {
		return seq < id.Sequence
	}
	if len(parts) < 2 || !strings.HasPrefix(parts[len(parts)-2], "m") {
		return false
	}
	m, err := strconv.ParseUint(parts[len(parts)-2][1:], 10, 64)
	return err == nil && (m < id.Manifest || m == id.Manifest && seq < id.Sequence)
}
