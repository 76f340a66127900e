package filesystem

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// Versions are for tables whose table partitions lie where something else says
// (connector hive): a version is a directory that holds the whole content of a
// table partition, and nobody reads it before that something points there.
//
//	<table>/.versions/dt=2024-05-01/hr=08/<name>/
//	  _version             the record
//	  part-<...>.parquet   the content
//
// See docs/format/table-directory.md.
const (
	versionsDir = ".versions"
	versionFile = "_version"
)

// Version is the directory of a content of a table partition ("": of the whole of
// a table that has none).
type Version struct{ TablePartition, Name string }

// Dir is the directory's path relative to the table.
func (v Version) Dir() string {
	if v.TablePartition == "" {
		return versionsDir + "/" + v.Name
	}
	return versionsDir + "/" + v.TablePartition + "/" + v.Name
}

// ParseVersion reads the path of a version's directory relative to the table.
func ParseVersion(dir string) (v Version, ok bool) {
	rest, ok := strings.CutPrefix(dir, versionsDir+"/")
	if !ok || rest == "" {
		return Version{}, false
	}
	if i := strings.LastIndexByte(rest, '/'); i >= 0 {
		v.TablePartition, v.Name = rest[:i], rest[i+1:]
	} else {
		v.Name = rest
	}
	return v, true
}

// VersionRecord is what a version says of itself.
type VersionRecord struct {
	Version int `json:"version"`
	// Job made it; Content is the version of the job's content, 0 for one that was
	// made by appending alone.
	Job     string `json:"job"`
	Content uint64 `json:"content"`
	// Parts are the names of the files that make the content; others came later.
	Parts []string `json:"parts,omitempty"`
	// Replaced are the names of the files in the table partition's own directory
	// that this version takes the place of.
	Replaced []string `json:"replaced,omitempty"`
}

const versionRecordVersion = 1

// VersionInfo is a version with the time at which its record was written, zero
// when it has none.
type VersionInfo struct {
	Version
	Record VersionRecord
	Made   time.Time
}

// Versions lists the versions of a table partition, sorted by name.
func (s *Sink) Versions(ctx context.Context, tablePartition string) ([]VersionInfo, error) {
	dir := s.fs.Dir(s.path(Version{tablePartition, "x"}.Dir()))
	names, err := s.fs.List(dir)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", s.prefix+dir, err)
	}
	slices.Sort(names)
	var out []VersionInfo
	for _, n := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v := VersionInfo{Version: Version{tablePartition, n}}
		info, err := s.fs.Stat(s.path(v.Dir() + "/" + versionFile))
		switch {
		case err == nil:
			v.Made = info.ModTime()
			v.Record, err = s.VersionRecord(v.Version)
		case errors.Is(err, vfs.ErrNotExist):
			// Cut short before anything was put there; or a partition's directory
			// that is a level above versions.
			err = nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// VersionedPartitions lists the table partitions that have versions.
func (s *Sink) VersionedPartitions(ctx context.Context) ([]string, error) {
	parts := []string{""}
	for range s.partNames {
		var below []string
		for _, p := range parts {
			infos, err := s.Versions(ctx, p)
			if err != nil {
				return nil, err
			}
			for _, v := range infos {
				below = append(below, strings.TrimPrefix(p+"/"+v.Name, "/"))
			}
		}
		parts = below
	}
	return parts, nil
}

// VersionRecord reads a version's record.
func (s *Sink) VersionRecord(v Version) (VersionRecord, error) {
	var r VersionRecord
	name := s.path(v.Dir() + "/" + versionFile)
	b, err := vfs.ReadFile(s.fs, name)
	if err != nil {
		return r, fmt.Errorf("reading %s: %w", s.prefix+name, err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("version record %s: %w", s.prefix+name, err)
	}
	if r.Version != versionRecordVersion {
		return r, fmt.Errorf("version record %s has version %d; this program knows %d", s.prefix+name, r.Version, versionRecordVersion)
	}
	return r, nil
}

// MakeVersion makes a version of sealed parts, durable: its record first, then the
// parts, moved out of staging. It can be repeated after any failure.
func (s *Sink) MakeVersion(ctx context.Context, v Version, r VersionRecord, parts []connector.Artifact) error {
	dir := s.path(v.Dir())
	if err := s.durableDir(dir); err != nil {
		return fmt.Errorf("making %s: %w", s.prefix+dir, err)
	}
	r.Version = versionRecordVersion
	for _, a := range parts {
		p, err := decodePayload(a.Payload)
		if err != nil {
			return fmt.Errorf("placing part %s: %w", a.Header.ID, err)
		}
		r.Parts = append(r.Parts, s.fs.Base(s.path(p.final)))
	}
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encoding version record: %w", err)
	}
	if err := vfs.WriteFileAtomic(s.fs, s.fs.Join(dir, versionFile), append(b, '\n')); err != nil {
		return fmt.Errorf("writing the version record of %s: %w", s.prefix+dir, err)
	}
	for _, a := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		p, err := decodePayload(a.Payload)
		if err == nil {
			err = s.putPart(dir, a.Header.ID, p)
		}
		if err != nil {
			return fmt.Errorf("placing part %s: %w", a.Header.ID, err)
		}
	}
	if err := s.fs.SyncDir(dir); err != nil {
		return fmt.Errorf("syncing %s: %w", s.prefix+dir, err)
	}
	return nil
}

// VersionOutcome is Sealed when all parts are staged or in the version already,
// else Absent.
func (s *Sink) VersionOutcome(v Version, parts []connector.Artifact) (connector.Outcome, error) {
	for _, a := range parts {
		p, err := decodePayload(a.Payload)
		if err != nil {
			return connector.Unknown, err
		}
		found := false
		// The version last: a part goes there, and nowhere else from there.
		for _, name := range append(s.sealedNames(p), s.path(p.staged), s.fs.Join(s.path(v.Dir()), s.fs.Base(s.path(p.final)))) {
			err := s.isPublished(name, p)
			if err != nil && !errors.Is(err, vfs.ErrNotExist) {
				return connector.Unknown, err
			}
			found = found || err == nil
		}
		if !found {
			return connector.Absent, nil
		}
	}
	return connector.Sealed, nil
}

// SyncVersion makes a version durable that another process may have made.
func (s *Sink) SyncVersion(v Version) error {
	dir := s.path(v.Dir())
	if err := s.durableDir(dir); err != nil {
		return err
	}
	return s.fs.SyncDir(dir)
}

// Files lists the names of the data files in a directory relative to the table.
func (s *Sink) Files(dir string) ([]string, error) {
	full := s.dir
	if dir != "" {
		full = s.path(dir)
	}
	infos, err := listInfo(s.fs, full)
	if errors.Is(err, vfs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", s.prefix+full, err)
	}
	var names []string
	for _, info := range infos {
		if !info.IsDir() {
			names = append(names, info.Name())
		}
	}
	return names, nil
}

// TakeIntoVersion moves the files of a table partition's own directory that the
// version does not replace into it: rows that were appended.
func (s *Sink) TakeIntoVersion(ctx context.Context, v Version) (taken int, err error) {
	r, err := s.VersionRecord(v)
	if err != nil {
		return 0, err
	}
	names, err := s.Files(v.TablePartition)
	if err != nil {
		return 0, err
	}
	from, to := s.dir, s.path(v.Dir())
	if v.TablePartition != "" {
		from = s.path(v.TablePartition)
	}
	for _, n := range names {
		if slices.Contains(r.Replaced, n) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return taken, err
		}
		old := s.fs.Join(from, n)
		err := s.fs.RenameNoReplace(old, s.fs.Join(to, n))
		if errors.Is(err, vfs.ErrExist) {
			// A crash left both names.
			err = s.fs.Remove(old)
		}
		if err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return taken, fmt.Errorf("moving %s: %w", s.prefix+old, err)
		}
		taken++
	}
	if taken == 0 {
		return 0, nil
	}
	// The new names first: a crash may leave both, never neither.
	for _, dir := range []string{to, from} {
		if err := s.fs.SyncDir(dir); err != nil {
			return taken, fmt.Errorf("syncing %s: %w", s.prefix+dir, err)
		}
	}
	return taken, nil
}

// InVersions looks for an artefact in the versions of its table partition. parts
// are the versions that hold it as a part of their content; published tells that
// one holds it as rows that were appended, or has taken the place of such.
func (s *Sink) InVersions(ctx context.Context, a connector.Artifact) (parts []Version, published bool, err error) {
	p, err := decodePayload(a.Payload)
	if err != nil {
		return nil, false, err
	}
	versions, err := s.Versions(ctx, a.Header.TablePartition)
	if err != nil {
		return nil, false, err
	}
	base := s.fs.Base(s.path(p.final))
	for _, v := range versions {
		err := s.isPublished(s.path(v.Dir()+"/"+base), p)
		switch {
		case slices.Contains(v.Record.Replaced, base):
			published = true
		case errors.Is(err, vfs.ErrNotExist):
		case err != nil:
			return nil, false, err
		case slices.Contains(v.Record.Parts, base):
			parts = append(parts, v.Version)
		default:
			published = true
		}
	}
	return parts, published, nil
}

// RemoveFromVersion removes an artefact's file from a version that nobody reads.
func (s *Sink) RemoveFromVersion(v Version, a connector.Artifact) error {
	p, err := decodePayload(a.Payload)
	if err != nil {
		return err
	}
	dir := s.path(v.Dir())
	err = s.fs.Remove(s.fs.Join(dir, s.fs.Base(s.path(p.final))))
	if err != nil && !errors.Is(err, vfs.ErrNotExist) {
		return err
	}
	return s.fs.SyncDir(dir)
}

// RemoveVersion removes a version that nobody reads any more.
func (s *Sink) RemoveVersion(v Version) error {
	s.forget()
	return s.fs.RemoveAll(s.path(v.Dir()))
}

// RemoveReplaced removes the files of the table partition's own directory that a
// version has replaced.
func (s *Sink) RemoveReplaced(v Version) error {
	r, err := s.VersionRecord(v)
	if err != nil || len(r.Replaced) == 0 {
		return err
	}
	names, err := s.Files(v.TablePartition)
	if err != nil {
		return err
	}
	dir := s.dir
	if v.TablePartition != "" {
		dir = s.path(v.TablePartition)
	}
	for _, n := range names {
		if !slices.Contains(r.Replaced, n) {
			continue
		}
		if err := s.fs.Remove(s.fs.Join(dir, n)); err != nil && !errors.Is(err, vfs.ErrNotExist) {
			return fmt.Errorf("removing %s: %w", s.prefix+s.fs.Join(dir, n), err)
		}
	}
	return nil
}
