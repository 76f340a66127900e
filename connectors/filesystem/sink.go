package filesystem

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/millrace/millrace/connectors/format"
	"github.com/millrace/millrace/connectors/format/parquetfmt"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// Sink writes one table. It is safe for concurrent use.
type Sink struct {
	fs       vfs.FS
	dir      string
	prefix   string // of names that people see
	linkless bool   // see place
	release  func() error
	locks    string // of commands
	owner    connector.Owner
	table    *connector.Table
	opts     tableOptions

	// Columns of the batches: fields are what goes into files, columns their
	// places in the batch, partCols the places of the partition keys.
	fields    []types.Field
	columns   []int
	partNames []string
	partCols  []int
	ext       string
	encode    format.Encoder     // text formats
	parquet   parquetfmt.Options // parquet

	mu          sync.Mutex
	durable     map[string]bool   // directories known to be durable with all parents
	fenced      map[string]uint64 // by lane directory: epochs below were fenced by this sink
	swept       map[string]uint64 // by lane directory: what epochs below left is gone
	chunks      [][]byte          // free buffers of file writers
	compressors []*compressor     // free compressors
}

var (
	_ connector.Sink               = (*Sink)(nil)
	_ connector.PartitionCommitter = (*Sink)(nil)
	_ connector.PartitionDescriber = (*Sink)(nil)
	_ connector.Settler            = (*Sink)(nil)
	_ connector.Replacer           = (*Sink)(nil)
	_ connector.ReplacingConnector = (*Connector)(nil)
	_ connector.Hurrier            = (*Sink)(nil)
	_ connector.PartitionCommitter = (*asideSink)(nil)
	_ connector.Settler            = (*asideSink)(nil)
)

// OpenSink implements connector.SinkConnector.
func (c *Connector) OpenSink(ctx context.Context, t *connector.Table, o connector.Owner) (connector.Sink, error) {
	opts, err := c.tableOptions(t)
	if err != nil {
		return nil, err
	}
	at, err := c.place(ctx, t.Options.String(keyPath), t.Options)
	if err != nil {
		return nil, err
	}
	s := &Sink{fs: at.fs, dir: at.dir, prefix: at.prefix, linkless: at.linkless, release: at.release, locks: c.locks, owner: o, table: t, opts: opts, durable: map[string]bool{}, fenced: map[string]uint64{}, swept: map[string]uint64{}}
	err = s.bind(c)
	if err == nil {
		defer context.AfterFunc(ctx, s.Hurry)()
		err = s.claim()
	}
	if err != nil {
		return nil, errors.Join(err, s.release())
	}
	if t.Options.String(keyLate) != lateSide {
		return s, nil
	}
	both, err := c.withAside(ctx, s)
	if err != nil {
		return nil, errors.Join(err, s.release())
	}
	return both, nil
}

// bind decides which column goes where and compiles the format.
func (s *Sink) bind(c *Connector) error {
	isKey := map[int]bool{}
	batchColumn := map[int]int{}
	n := 0
	for i, col := range s.table.Columns {
		// A virtual metadata column is read only and in no batch that is written.
		if col.Metadata != "" && !col.Virtual {
			return fmt.Errorf("column %s: metadata %q cannot be written; declare it VIRTUAL", col.Name, col.Metadata)
		}
		if !col.Virtual {
			batchColumn[i] = n
			n++
		}
	}
	for _, k := range s.table.PartitionKeys {
		col := s.table.Columns[k]
		if !partitionType(col.Type) {
			return fmt.Errorf("column %s: a table cannot be partitioned by %s (not_yet: only strings, integers, BOOLEAN and DATE)", col.Name, col.Type)
		}
		if strings.HasPrefix(col.Name, ".") {
			return fmt.Errorf("column %s: directories whose names begin with '.' are read by nobody; it cannot partition a table", col.Name)
		}
		isKey[k] = true
		s.partNames = append(s.partNames, string(escapeName(nil, col.Name)))
		s.partCols = append(s.partCols, batchColumn[k])
	}
	if len(s.partNames) > 0 && !s.opts.policies.Any() {
		return &connector.OptionError{Key: keyPolicy, Missing: true,
			Message: "a partitioned table that is written needs option '" + keyPolicy + "', else no partition is ever announced",
			Hint:    "'" + keyPolicy + "' = 'success-file'"}
	}
	if len(s.partNames) == 0 && (s.opts.policies.Command || s.opts.policies.Readiness) {
		return &connector.OptionError{Key: keyPolicy, OnValue: true,
			Message: "policies '" + policyCustom + "' and '" + policyReadiness + "' tell of partitions, and the table has none"}
	}
	for i, col := range s.table.Columns {
		if !isKey[i] && !col.Virtual {
			s.fields = append(s.fields, col.Field)
			s.columns = append(s.columns, batchColumn[i])
		}
	}
	if len(s.fields) == 0 {
		return errors.New("a table needs at least one column that is no partition key")
	}
	s.ext = s.opts.format + s.opts.compressedEnding()
	if s.opts.format == formatParquet {
		var err error
		if s.parquet, err = parquetfmt.OptionsOf(s.table.Options, c.pools); err != nil {
			return err
		}
		// A column that Parquet cannot hold is refused when the table is
		// opened, not when the first row comes.
		return checkParquet(s.fields, s.parquet)
	}
	f := c.formats[s.opts.format]
	enc, err := f.NewEncoder(format.EncoderConfig{Fields: s.fields, Columns: s.columns, Options: format.FromValues(s.table.Options, "")})
	s.encode = enc
	return err
}

// Roll implements connector.Sink.
func (s *Sink) Roll() connector.RollPolicy {
	return connector.RollPolicy{Bytes: s.opts.rollBytes, Age: s.opts.rollAge}
}

// Hurry implements connector.Hurrier.
func (s *Sink) Hurry() { hurry(s.fs) }

// hurry tells a filesystem that can wait for its system that somebody waits for it.
func hurry(fsys vfs.FS) {
	if h, ok := fsys.(interface{ Hurry() }); ok {
		h.Hurry()
	}
}

// Close implements connector.Sink. The owner record stays: it says whose the
// files are.
func (s *Sink) Close() error { return s.release() }

// MaxEpoch implements connector.Sink.
func (s *Sink) MaxEpoch(_ context.Context, lane connector.LaneID) (uint64, error) {
	dir := s.laneDir(connector.ArtifactID{Job: s.owner.Job, Lane: lane})
	names, err := s.fs.List(dir)
	if errors.Is(err, vfs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("listing %s: %w", dir, err)
	}
	highest := uint64(0)
	for _, n := range names {
		if e, _, ok := parseEpoch(n); ok {
			highest = max(highest, e)
		}
	}
	return highest, nil
}

// durableDir makes a directory below the table, or the table's own, and makes
// it and all its parents durable. It does not trust that a directory which is
// already there is durable: another goroutine may have made it and not synced
// it yet.
func (s *Sink) durableDir(dir string) error {
	s.mu.Lock()
	known := s.durable[dir]
	s.mu.Unlock()
	if known {
		return nil
	}
	if err := vfs.MkdirAllSync(s.fs, dir); err != nil {
		return err
	}
	var made []string
	inside := true
	for d := dir; ; d = s.fs.Dir(d) {
		parent := s.fs.Dir(d)
		err := s.fs.SyncDir(parent)
		if err != nil && inside {
			return err
		}
		// Directories above the table are the user's; we may not be allowed
		// to open them.
		if err != nil || parent == d {
			break
		}
		made = append(made, d)
		inside = inside && d != s.dir
	}
	s.mu.Lock()
	for _, d := range made {
		s.durable[d] = true
	}
	s.mu.Unlock()
	return nil
}

// forget makes durableDir look again: somebody removed a directory.
func (s *Sink) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.durable)
}

func (s *Sink) chunk() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.chunks); n > 0 {
		c := s.chunks[n-1]
		s.chunks = s.chunks[:n-1]
		return c[:0]
	}
	return make([]byte, 0, chunkBytes)
}

func (s *Sink) putChunk(c []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.chunks) < maxFreeChunks && cap(c) == chunkBytes {
		s.chunks = append(s.chunks, c)
	}
}
