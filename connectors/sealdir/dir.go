package sealdir

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
	Sealed = ".sealed" // durable, and for certain not delivered
	Tried  = ".tried"  // may have been sent
	Done   = ".done"   // delivered
	Void   = ".void"   // given up; it will never be sent

	fencedSuffix = ".fenced" // of an attempt's directory
	ownerFile    = "owner"
)

var states = [...]string{Sealed, Tried, Done, Void}

// Dir is the directory of one table of one job.
type Dir struct {
	// FS is the filesystem that it lies on.
	FS    vfs.FS
	dir   string
	epoch uint64 // of the job
}

// ownerRecord is the content of the owner file.
type ownerRecord struct {
	Version  int    `json:"version"`
	JobEpoch uint64 `json:"job_epoch"`
}

const ownerVersion = 1

// Open makes the directory of a table of a connector, kind, and claims it for a run of
// the job. *connector.OwnedError: a later run has it.
func Open(fsys vfs.FS, root, kind, table string, o connector.Owner) (*Dir, error) {
	if root == "" {
		return nil, errors.New("this program was started without a data directory, in which rows could be sealed")
	}
	d := &Dir{FS: fsys, dir: fsys.Join(root, kind, o.Job.String(), "t-"+url.PathEscape(table)), epoch: o.JobEpoch}
	if err := vfs.MkdirAllSync(fsys, d.dir); err != nil {
		return nil, fmt.Errorf("making %s: %w", d.dir, err)
	}
	have, err := d.owner()
	switch {
	case err != nil:
		return nil, err
	case have > o.JobEpoch:
		return nil, &connector.OwnedError{Location: d.dir, Owner: fmt.Sprintf("epoch %d of the same job, this is epoch %d", have, o.JobEpoch)}
	case have == o.JobEpoch && have > 0:
		return d, nil
	}
	b, err := json.Marshal(ownerRecord{Version: ownerVersion, JobEpoch: o.JobEpoch})
	if err != nil {
		return nil, fmt.Errorf("encoding owner record: %w", err)
	}
	if err := vfs.WriteFileAtomic(fsys, fsys.Join(d.dir, ownerFile), b); err != nil {
		return nil, fmt.Errorf("writing owner record: %w", err)
	}
	return d, nil
}

// owner is the job epoch that owns the directory, 0 for none.
func (d *Dir) owner() (uint64, error) {
	b, err := vfs.ReadFile(d.FS, d.FS.Join(d.dir, ownerFile))
	if errors.Is(err, vfs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading owner record: %w", err)
	}
	var r ownerRecord
	if err := json.Unmarshal(b, &r); err != nil {
		return 0, fmt.Errorf("owner record of %s: %w", d.dir, err)
	}
	if r.Version != ownerVersion {
		return 0, fmt.Errorf("owner record of %s has version %d; this program knows %d", d.dir, r.Version, ownerVersion)
	}
	return r.JobEpoch, nil
}

// Owned is ErrFenced when a later run of the job has taken over. Invariant 9.
func (d *Dir) Owned() error {
	have, err := d.owner()
	if err == nil && have != d.epoch {
		err = fmt.Errorf("job epoch %d, now %d: %w", d.epoch, have, connector.ErrFenced)
	}
	return err
}

// Own is a path in the table's directory for what a sink keeps beside its lanes.
func (d *Dir) Own(name string) string { return d.FS.Join(d.dir, name) }

// Epoch is the job's, which owns the directory as long as Owned is nil.
func (d *Dir) Epoch() uint64 { return d.epoch }

// LaneName is the directory of a lane or of a keyed stage's subtask.
func LaneName(id connector.ArtifactID) string {
	if id.Keyed {
		return fmt.Sprintf("k%d", id.Subtask)
	}
	return fmt.Sprintf("%x-l%d", id.Lane.Topic[:], id.Lane.Set)
}

// Lane is the path of an artefact's lane, for messages.
func (d *Dir) Lane(id connector.ArtifactID) string { return d.FS.Join(d.dir, LaneName(id)) }

func epochName(e uint64) string { return "e" + strconv.FormatUint(e, 10) }

func parseEpoch(name string) (epoch uint64, fenced, ok bool) {
	name, fenced = strings.CutSuffix(name, fencedSuffix)
	if !strings.HasPrefix(name, "e") {
		return 0, false, false
	}
	epoch, err := strconv.ParseUint(name[1:], 10, 64)
	return epoch, fenced, err == nil
}

// MaxEpoch is the highest epoch of a lane.
func (d *Dir) MaxEpoch(id connector.ArtifactID) (uint64, error) {
	names, err := d.FS.List(d.Lane(id))
	if errors.Is(err, vfs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("listing %s: %w", d.Lane(id), err)
	}
	high := uint64(0)
	for _, n := range names {
		if e, _, ok := parseEpoch(n); ok {
			high = max(high, e)
		}
	}
	return high, nil
}

// Fence makes the directory of an attempt and renames those of lower epochs, so
// that an attempt which is still alive finds its own gone. The own one is made
// first: of two attempts that start at once the lower one sees the higher one.
func (d *Dir) Fence(id connector.ArtifactID) (dir string, err error) {
	lane := d.Lane(id)
	if err := vfs.MkdirAllSync(d.FS, lane); err != nil {
		return "", fmt.Errorf("making %s: %w", lane, err)
	}
	own := d.FS.Join(lane, epochName(id.Epoch))
	err = d.FS.Mkdir(own)
	if errors.Is(err, vfs.ErrExist) {
		return "", fmt.Errorf("%w: epoch %d of %s was used before", connector.ErrFenced, id.Epoch, lane)
	}
	if err != nil {
		return "", fmt.Errorf("making %s: %w", own, err)
	}
	names, err := d.FS.List(lane)
	if err != nil {
		return "", fmt.Errorf("listing %s: %w", lane, err)
	}
	for _, n := range names {
		if e, _, ok := parseEpoch(n); ok && e > id.Epoch {
			if err := d.FS.Rename(own, own+fencedSuffix); err != nil && !errors.Is(err, vfs.ErrNotExist) {
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
		old := d.FS.Join(lane, n)
		if err := d.FS.Rename(old, old+fencedSuffix); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return "", fmt.Errorf("fencing %s: %w", old, err)
		}
	}
	if err := d.FS.SyncDir(lane); err != nil {
		return "", fmt.Errorf("syncing %s: %w", lane, err)
	}
	return own, nil
}

// Find gives the file of an artefact and what its name says, "" and "" when there
// is none. A rename may happen meanwhile, so that it looks twice.
func (d *Dir) Find(id connector.ArtifactID) (path, suffix string, err error) {
	dir := d.FS.Join(d.Lane(id), epochName(id.Epoch))
	for range 2 {
		for _, attempt := range []string{dir, dir + fencedSuffix} {
			for _, x := range states {
				path := d.FS.Join(attempt, id.String()+x)
				ok, err := vfs.Exists(d.FS, path)
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

// Mark renames an artefact's file to another state.
func (d *Dir) Mark(path, from, to string) (string, error) {
	next := strings.TrimSuffix(path, from) + to
	err := d.FS.Rename(path, next)
	if errors.Is(err, vfs.ErrNotExist) {
		return "", fmt.Errorf("%w: %s is gone", connector.ErrFenced, path)
	}
	if err != nil {
		return "", fmt.Errorf("renaming %s: %w", path, err)
	}
	return next, nil
}

// Settle removes what nobody will ask for again: files of id's attempt before
// it, and all of lower epochs.
func (d *Dir) Settle(id connector.ArtifactID) error {
	lane := d.Lane(id)
	names, err := d.FS.List(lane)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing %s: %w", lane, err)
	}
	for _, n := range names {
		e, fenced, ok := parseEpoch(n)
		dir := d.FS.Join(lane, n)
		switch {
		case !ok:
		case e == id.Epoch:
			err = d.settleFiles(dir, id)
		case fenced && e < id.Epoch:
			err = d.FS.RemoveAll(dir)
		}
		if err != nil {
			return fmt.Errorf("removing settled files: %w", err)
		}
	}
	return nil
}

func (d *Dir) settleFiles(dir string, id connector.ArtifactID) error {
	files, err := d.FS.List(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		stem, done := strings.CutSuffix(f, Done)
		if !done {
			if stem, done = strings.CutSuffix(f, Void); !done {
				continue
			}
		}
		if !before(stem, id) {
			continue
		}
		if err := d.FS.Remove(d.FS.Join(dir, f)); err != nil && !errors.Is(err, vfs.ErrNotExist) {
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
