package hive

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/connectors/filesystem"
	"github.com/millrace/millrace/connectors/hive/metastore"
	"github.com/millrace/millrace/runtime/connector"
)

// Sink writes one table of a metastore: connector filesystem's sink on the
// table's directory, and the metastore's entries. It is safe for concurrent use.
type Sink struct {
	*filesystem.Sink
	client     catalog
	done       func()
	owner      connector.Owner
	opts       tableOptions
	schema     schema
	location   string           // of the table at this home, normal, without a version
	registered string           // of the table in the metastore: at the main home
	other      string           // of the table at its other home; "": it has one home
	clock      func() time.Time // nil: the system's

	// announcing is held by whoever changes the metastore's entries.
	announcing sync.Mutex
	side       *Sink // of late rows; nil: they are appended
	garbage    garbage
	// whole is the version that a table without partitions points to, if any.
	whole filesystem.Version

	mu sync.Mutex
	// rows of the files that this process published, by path: what lies in a
	// partition is then known without opening its files.
	rows map[string]int64
}

// maxKnownFiles bounds Sink.rows; a file that is forgotten is asked by its footer.
const maxKnownFiles = 1 << 16

var (
	_ connector.SinkConnector           = (*Connector)(nil)
	_ connector.Sink                    = (*Sink)(nil)
	_ connector.PartitionBatchCommitter = (*Sink)(nil)
	_ connector.PartitionDescriber      = (*Sink)(nil)
	_ connector.Settler                 = (*Sink)(nil)
)

// OpenSink implements connector.SinkConnector: it finds or creates the table,
// compares it with what is to be written, claims its directory, and only then
// changes its columns, if it may.
func (c *Connector) OpenSink(ctx context.Context, t *connector.Table, o connector.Owner) (connector.Sink, error) {
	opts, err := c.tableOptions(t)
	if err != nil {
		return nil, err
	}
	if len(t.PartitionKeys) > 0 && !opts.policies.Any() {
		return nil, &connector.OptionError{Key: keyPolicy, Missing: true,
			Message: "a partitioned table that is written needs option '" + keyPolicy + "', else no partition is ever announced",
			Hint:    "'" + keyPolicy + "' = 'metastore,success-file'"}
	}
	if len(t.PartitionKeys) == 0 && opts.late == lateSide {
		return nil, &connector.OptionError{Key: keyLate, OnValue: true, Message: "rows are late for partitions, and the table has none"}
	}
	s := &Sink{owner: o, opts: opts, rows: map[string]int64{}}
	if main := t.Options.Family(homePrefix)[homeMain]; main != "" {
		s.opts.path = main // where the metastore has the table
	}
	if s.schema, err = schemaOf(t, opts.int96); err != nil {
		return nil, err
	}
	if s.client, s.done, err = c.client(t.Options, opts.user); err != nil {
		return nil, err
	}
	if err := s.open(ctx, c, t); err != nil {
		s.done()
		return nil, err
	}
	if opts.late == lateSide {
		if err := s.openSide(ctx, c, t); err != nil {
			return nil, errors.Join(err, s.Close())
		}
	}
	return s, nil
}

func (s *Sink) open(ctx context.Context, c *Connector, t *connector.Table) error {
	there, err := s.find(ctx, t)
	if err != nil {
		return err
	}
	if faults := writable(there); len(faults) > 0 {
		return &MismatchError{Database: there.Database, Table: there.Name, Differences: faults}
	}
	diff := compare(there, s.schema)
	if err := mismatch(there, diff, s.opts.evolution); err != nil {
		return err
	}
	if there.Parameters["spark.sql.sources.schema"] != "" || there.Parameters["spark.sql.sources.schema.numParts"] != "" {
		if evolved(there, diff) != nil {
			return &MismatchError{Database: there.Database, Table: there.Name,
				Differences: []string{"its columns are also in properties that Spark wrote: Spark would not see a change"}, Hint: "change them by ALTER TABLE in Spark"}
		}
	}
	s.registered = tableLocation(there)
	if err := s.opts.checkPath(there, s.registered); err != nil {
		return err
	}
	if err := s.settle(c, t); err != nil {
		return err
	}
	ft, err := fileTable(c, t, s.location, stored{format: formatFiles})
	if err != nil {
		return err
	}
	lowerColumns(ft)
	files, err := c.files.OpenSink(ctx, ft, s.owner)
	if err != nil {
		return err
	}
	s.Sink = files.(*filesystem.Sink)
	if len(s.schema.keys) == 0 {
		s.whole, _ = s.version(there.Storage.Location)
	}
	if n := evolved(there, diff); n != nil {
		if err := s.client.AlterTable(ctx, n, len(n.PartitionKeys) > 0); err != nil {
			s.Sink.Close()
			return fmt.Errorf("changing the columns of table %s.%s: %w", n.Database, n.Name, err)
		}
	}
	return nil
}

// takeAppended moves rows that were appended to a table without partitions into the
// version that it points to.
func (s *Sink) takeAppended(ctx context.Context) error {
	if len(s.schema.keys) > 0 {
		// Announcements do it; publishing does not wait for them.
		return nil
	}
	s.announcing.Lock()
	defer s.announcing.Unlock()
	if s.whole.Name == "" {
		return nil
	}
	_, err := s.TakeIntoVersion(ctx, s.whole)
	return err
}

// find gives the table, after creating it if that is asked for.
func (s *Sink) find(ctx context.Context, t *connector.Table) (*metastore.Table, error) {
	db, name := s.opts.database, s.opts.table
	there, err := lookUp(ctx, s.client, s.opts)
	var absent *connector.OptionError
	if err == nil || !errors.As(err, &absent) {
		return there, err
	}
	if !s.opts.create {
		absent.Hint = "'" + keyCreate + "' = 'true' creates it"
		return nil, absent
	}
	location, err := locationOf(s.opts.path)
	if err != nil {
		return nil, err
	}
	err = s.client.CreateTable(ctx, newTable(&s.opts, s.schema, t.Comment, location))
	if errors.Is(err, metastore.ErrInvalidObject) || errors.Is(err, metastore.ErrNoSuchObject) {
		if _, dberr := s.client.Database(ctx, db); errors.Is(dberr, metastore.ErrNoSuchObject) {
			return nil, &connector.OptionError{Key: keyDatabase, OnValue: true, Message: fmt.Sprintf("the metastore has no database %s", db)}
		}
	}
	// Another process may have been faster, or a first try whose answer was
	// lost: the table that is there is then compared like any other.
	if err != nil && !errors.Is(err, metastore.ErrAlreadyExists) {
		return nil, wrap(err, "creating table %s.%s", db, name)
	}
	there, err = s.client.Table(ctx, db, name)
	return there, wrap(err, "looking up table %s.%s", db, name)
}

func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// Close implements connector.Sink.
func (s *Sink) Close() error {
	err := s.Sink.Close()
	if s.side != nil {
		err = errors.Join(err, s.side.Close())
	}
	s.done()
	return err
}

// publish is Publish of this table's artefacts.
func (s *Sink) publish(ctx context.Context, as []connector.Artifact) []error {
	errs := s.Sink.Publish(ctx, as)
	taken := s.takeAppended(ctx)
	for i := range as {
		if errs[i] == nil {
			errs[i] = taken
		}
		if errs[i] != nil && ctx.Err() == nil {
			// Published before, and moved into a version since.
			if moved, err := s.moved(ctx, as[i]); err == nil && moved {
				errs[i] = nil
				continue
			}
		}
		if errs[i] == nil {
			s.know(&as[i])
		}
	}
	return errs
}

// resolve is Resolve of this table's artefacts.
func (s *Sink) resolve(ctx context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out, err := s.Sink.Resolve(ctx, as)
	if err == nil {
		err = s.takeAppended(ctx)
	}
	if err == nil {
		for i := range as {
			switch out[i] {
			case connector.Published:
				s.know(&as[i])
			case connector.Absent:
				moved, err := s.moved(ctx, as[i])
				if err != nil {
					return out, err
				}
				if moved {
					out[i] = connector.Published
				}
			}
		}
	}
	return out, err
}

// know remembers how many rows a published file has.
func (s *Sink) know(a *connector.Artifact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rows) >= maxKnownFiles {
		for k := range s.rows {
			delete(s.rows, k)
			break
		}
	}
	s.rows[a.Location] = a.Header.Rows
}

func (s *Sink) known(path string) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, ok := s.rows[path]
	return n, ok
}
