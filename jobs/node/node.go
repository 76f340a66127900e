package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/userfunc"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/ledger"
	"github.com/millrace/millrace/storage/access"
	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// Connectors makes the registry of a program's connectors for a node. The log
// is nil where nothing is read or written (checking a file offline).
type Connectors func(log *client.Client, fsys vfs.FS) (*connector.Registry, error)

// Options of Open. Dir and Connectors are required.
type Options struct {
	// Dir is the data directory; made if missing.
	Dir string
	// FS is the filesystem of the data directory and of local tables; nil: the
	// operating system's.
	FS         vfs.FS
	Connectors Connectors
	// Functions are the program's own functions, known to every SQL text that is
	// compiled here; nil: none.
	Functions *userfunc.Set
	// Version and Command are shown to whoever asks who owns the directory.
	Version, Command string
	// Brief: the node is for one command that ends within moments.
	Brief bool
	Now   func() time.Time
	Log   *slog.Logger
	// Store tunes the log store; FS and Dir are set by Open.
	Store topiclog.Options
}

// OwnedError says that another process owns the data directory.
type OwnedError struct {
	Dir string
	PID int
}

func (e *OwnedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("another process owns the data directory %s", e.Dir)
	}
	return fmt.Sprintf("process %d owns the data directory %s; stop it first, or give another --data", e.PID, e.Dir)
}

// Node is the owner of a data directory.
type Node struct {
	opts     Options
	started  time.Time
	store    *topiclog.Store
	client   *client.Client
	registry *connector.Registry
	records  *jobRecords
	ledger   *ledger.Ledger
	server   *control.Server

	mu        sync.Mutex
	running   map[string]*Running
	replaying map[string]bool // by job
	dead      map[string]*deadTopic

	coordinator Coordinator // nil where no Kafka clients are served

	accessMu sync.Mutex
	access   *access.Store // nil until somebody asks
}

var _ control.API = (*Node)(nil)

// Open takes the data directory, recovers its log and ledger, and serves
// control.sock. *OwnedError: another process has it.
func Open(ctx context.Context, o Options) (*Node, error) {
	if o.FS == nil {
		o.FS = vfs.NewOS()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	if err := o.FS.MkdirAll(o.Dir); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	n := &Node{opts: o, started: o.Now(), running: map[string]*Running{}, replaying: map[string]bool{}, dead: map[string]*deadTopic{}}
	if err := n.open(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) open(ctx context.Context) error {
	so := n.opts.Store
	so.FS, so.Dir = n.opts.FS, n.opts.FS.Join(n.opts.Dir, "log")
	if so.Logger == nil {
		so.Logger = n.opts.Log
	}
	store, err := topiclog.Open(so)
	var owned *topiclog.OwnedError
	if errors.As(err, &owned) {
		return &OwnedError{Dir: n.opts.Dir, PID: owned.PID}
	}
	if err != nil {
		return err
	}
	n.store = store
	n.client = client.New(store)
	if err := n.emptySpill(); err != nil {
		return fmt.Errorf("removing spilled state of an earlier run: %w", err)
	}
	if n.records, err = openJobRecords(n.opts.FS, n.opts.FS.Join(n.opts.Dir, "jobs"), newUUID); err != nil {
		return err
	}
	ls, err := openLedgerStore(ctx, store, n.opts.Now)
	if err != nil {
		return err
	}
	if n.ledger, err = ledger.OpenLedger(ctx, ls); err != nil {
		return fmt.Errorf("opening the ledger: %w", err)
	}
	if n.registry, err = n.opts.Connectors(n.client, n.opts.FS); err != nil {
		return err
	}
	n.server, err = control.Serve(n.opts.Dir, n)
	return err
}

// Close stops serving, stops running jobs (finishing and committing what is
// open) and gives the directory back.
func (n *Node) Close() error {
	var errs []error
	if n.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		errs = append(errs, ignoreDeadline(n.server.Close(ctx)))
		cancel()
	}
	n.mu.Lock()
	var running []*Running
	for _, r := range n.running {
		running = append(running, r)
	}
	n.mu.Unlock()
	for _, r := range running {
		errs = append(errs, r.Stop(context.Background()))
	}
	if n.records != nil {
		errs = append(errs, n.records.close())
	}
	errs = append(errs, n.closeAccess())
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	return errors.Join(errs...)
}

// ignoreDeadline: calls of others that are cut off at the end are theirs to
// notice.
func ignoreDeadline(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// Info implements control.API.
func (n *Node) Info(context.Context) (control.Info, error) {
	return control.Info{PID: os.Getpid(), Version: n.opts.Version, Started: n.started, Command: n.opts.Command, Directory: n.opts.Dir, Brief: n.opts.Brief}, nil
}

// Recovery is what opening the log store found.
func (n *Node) Recovery() topiclog.RecoveryReport { return n.store.Status().Recovery }

// Registry is the node's connectors.
func (n *Node) Registry() *connector.Registry { return n.registry }

// notFound is a *control.Error for a name that is not there, with the nearest
// one as a hint.
func notFound(kind, name string, names []string) error {
	e := &control.Error{Kind: "not_found", Message: fmt.Sprintf("there is no %s %q", kind, name)}
	if near, ok := nearest(name, names); ok {
		e.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return e
}

func inputError(err error) error { return &control.Error{Kind: "input", Message: err.Error()} }
