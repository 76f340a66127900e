package node

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/manifest"
	"github.com/millrace/millrace/storage/vfs"
)

// jobRecord is what the data directory keeps of a job. It is stored as JSON:
// fields may be added, never given another meaning.
type jobRecord struct {
	Name string         `json:"name"`
	ID   connector.UUID `json:"id"`
	// Path is the job file's absolute path: another file of the same base
	// name is another job.
	Path string `json:"path"`
	// Generation rises with --fresh.
	Generation uint32 `json:"generation"`
	// BeganMillis is when the generation first started, in ms since 1970: what
	// clock functions say in a batch job, also after a crash.
	BeganMillis int64 `json:"began_millis"`
	// Finished says that the bounded job has ended; running it again does nothing.
	Finished bool `json:"finished"`
	// Dead is the name of its dead-letter topic.
	Dead string `json:"dead"`
	// Files and Set are what it last ran with, for replays and queries.
	Files []control.SQLFile `json:"files"`
	Set   map[string]string `json:"set"`
}

// Kinds of entries in the manifest.
const (
	entryJob       uint16 = 1
	entryDirectory uint16 = 2
)

// jobRecords is DIR/jobs.
type jobRecords struct {
	mu        sync.Mutex
	log       *manifest.Log
	directory connector.UUID
	byName    map[string]jobRecord
}

func openJobRecords(fsys vfs.FS, dir string, newUUID func() connector.UUID) (*jobRecords, error) {
	r := &jobRecords{byName: map[string]jobRecord{}}
	var zero connector.UUID
	log, _, err := manifest.Open(fsys, dir, manifest.Options{}, func(kind uint16, payload []byte) error {
		switch kind {
		case entryJob:
			var j jobRecord
			if err := json.Unmarshal(payload, &j); err != nil {
				return fmt.Errorf("reading a job's record: %w", err)
			}
			r.byName[j.Name] = j
		case entryDirectory:
			copy(r.directory[:], payload)
		default:
			return fmt.Errorf("job records hold an entry of kind %d, written by a later version", kind)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("opening the jobs' records: %w", err)
	}
	r.log = log
	if r.directory == zero {
		r.directory = newUUID()
		if err := log.Append(manifest.Edit{Kind: entryDirectory, Payload: r.directory[:]}); err != nil {
			log.Close()
			return nil, fmt.Errorf("naming the data directory: %w", err)
		}
	}
	return r, nil
}

func (r *jobRecords) close() error { return r.log.Close() }

func (r *jobRecords) find(name string) (jobRecord, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j, ok := r.byName[name]
	return j, ok
}

func (r *jobRecords) all() []jobRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]jobRecord, 0, len(r.byName))
	for _, j := range r.byName {
		out = append(out, j)
	}
	return out
}

// put makes a record durable.
func (r *jobRecords) put(j jobRecord) error {
	b, err := json.Marshal(j)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.log.Append(manifest.Edit{Kind: entryJob, Payload: b}); err != nil {
		return fmt.Errorf("writing the record of job %s: %w", j.Name, err)
	}
	r.byName[j.Name] = j
	if !r.log.ShouldSnapshot() {
		return nil
	}
	return r.log.Snapshot(func(emit func(uint16, []byte) error) error {
		if err := emit(entryDirectory, r.directory[:]); err != nil {
			return err
		}
		for _, j := range r.byName {
			b, err := json.Marshal(j)
			if err != nil {
				return err
			}
			if err := emit(entryJob, b); err != nil {
				return err
			}
		}
		return nil
	})
}
