package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/connectors/sealdir"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// Sender delivers sealed bodies to the outside system.
type Sender interface {
	// Send delivers one body; nil means that the system has taken all of it. It is
	// called again with the same message after an error, a crash or a restart, and
	// must leave the system as one call does. An error that wraps
	// connector.ErrRefused gives the artefact up: its rows are read and checked
	// again. A *StopError stops the lane. Any other error is tried again.
	// Called from any goroutine; artefacts of one lane one after another.
	Send(ctx context.Context, lane Lane, m *Message) error
	// Close ends connections.
	Close() error
}

// Lane is who sends: the fence of a Sender whose system can keep late requests of
// an earlier attempt out.
type Lane struct {
	// Name tells lanes of all jobs and tables apart.
	Name string
	// JobEpoch and Epoch are those of the process that sends; Epoch is the highest
	// of the lane.
	JobEpoch, Epoch uint64
}

// Encoder makes bodies. It belongs to one writer.
type Encoder interface {
	// Check appends the rows among sel that cannot be sent, ascending.
	Check(b *batch.Batch, sel batch.Sel, bad []batch.ValueError) []batch.ValueError
	// Append appends one row to a body, and counts the units (commands, lines) it
	// added.
	Append(body []byte, b *batch.Batch, row int) (out []byte, units int64, err error)
}

// StopError is an error that trying again does not mend: a person must act.
type StopError struct{ Err error }

func (e *StopError) Error() string { return e.Err.Error() }

func (e *StopError) Unwrap() error { return e.Err }

// Retryable implements connector.Retryable.
func (e *StopError) Retryable() bool { return false }

// Config is what a sink is made of; all fields but MemoryBytes are needed.
type Config struct {
	FS vfs.FS
	// Root is the program's directory for staging; Kind is the connector's name.
	Root, Kind string
	Table      *connector.Table
	Owner      connector.Owner
	// Location is the table's place for people.
	Location string
	Roll     connector.RollPolicy
	Sender   Sender
	// NewEncoder is called once a writer.
	NewEncoder func() (Encoder, error)
	// Explain is what the start prints.
	Explain []string
}

// Sink implements connector.Sink over a Sender.
type Sink struct {
	c       Config
	staging *sealdir.Dir

	mu sync.Mutex
	// busy are the artefacts somebody works on.
	busy map[string]chan struct{}
	// stopped are artefacts whose last try ended in a StopError that nobody has
	// heard of yet; reasons are the sentences.
	stopped map[string]bool
	reasons map[string]string
	// epochs are the highest epochs of lanes that this process opened.
	epochs map[string]uint64
}

var (
	_ connector.Sink             = (*Sink)(nil)
	_ connector.Settler          = (*Sink)(nil)
	_ connector.SinkExplainer    = (*Sink)(nil)
	_ connector.UnknownExplainer = (*Sink)(nil)
)

// Open claims the table's directory for a run of the job.
func Open(c Config) (*Sink, error) {
	st, err := sealdir.Open(c.FS, c.Root, c.Kind, c.Table.Name, c.Owner)
	if err != nil {
		return nil, err
	}
	return &Sink{c: c, staging: st, busy: map[string]chan struct{}{}, stopped: map[string]bool{},
		reasons: map[string]string{}, epochs: map[string]uint64{}}, nil
}

// ExplainSink implements connector.SinkExplainer.
func (s *Sink) ExplainSink() []string { return s.c.Explain }

// ExplainUnknown implements connector.UnknownExplainer.
func (s *Sink) ExplainUnknown(a connector.Artifact) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reasons[a.Header.ID.String()]
}

// MaxEpoch implements connector.Sink.
func (s *Sink) MaxEpoch(_ context.Context, lane connector.LaneID) (uint64, error) {
	return s.staging.MaxEpoch(connector.ArtifactID{Lane: lane})
}

// OpenWriter implements connector.Sink.
func (s *Sink) OpenWriter(_ context.Context, a connector.Attempt) (connector.Writer, error) {
	if a.ID.Job != s.c.Owner.Job {
		return nil, fmt.Errorf("job %s opens a writer of a table claimed by job %s", a.ID.Job, s.c.Owner.Job)
	}
	if err := s.staging.Owned(); err != nil {
		return nil, err
	}
	enc, err := s.c.NewEncoder()
	if err != nil {
		return nil, err
	}
	dir, err := s.staging.Fence(a.ID)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	name := sealdir.LaneName(a.ID)
	s.epochs[name] = max(s.epochs[name], a.ID.Epoch)
	s.mu.Unlock()
	return newWriter(s, enc, a, dir), nil
}

// lane is who sends an artefact now. A lane's epoch is that of its present
// attempt, not of the artefact, which an earlier one may have sealed.
func (s *Sink) lane(id connector.ArtifactID) Lane {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := sealdir.LaneName(id)
	return Lane{Name: fmt.Sprintf("%x:%x:%s", id.Job[:], id.Table[:6], name),
		JobEpoch: s.c.Owner.JobEpoch, Epoch: max(s.epochs[name], id.Epoch)}
}

// Roll implements connector.Sink.
func (s *Sink) Roll() connector.RollPolicy { return s.c.Roll }

// Settled implements connector.Settler.
func (s *Sink) Settled(_ context.Context, id connector.ArtifactID) error { return s.staging.Settle(id) }

// Close implements connector.Sink.
func (s *Sink) Close() error { return s.c.Sender.Close() }

// Publish implements connector.Committer: artefacts are sent in order.
func (s *Sink) Publish(ctx context.Context, as []connector.Artifact) []error {
	errs := make([]error, len(as))
	// Invariant 9: a process whose job was taken over publishes nothing.
	stopped := s.staging.Owned()
	refused := false
	for i, a := range as {
		if refused {
			errs[i] = s.behindRefused(a)
			continue
		}
		if stopped == nil {
			stopped = ctx.Err()
		}
		if stopped != nil {
			errs[i] = fmt.Errorf("publishing %s: not tried: %w", a.Header.ID, stopped)
			continue
		}
		if err := s.publish(ctx, a); err != nil {
			errs[i] = fmt.Errorf("publishing %s: %w", a.Header.ID, err)
			stopped, refused = err, errors.Is(err, connector.ErrRefused)
		}
	}
	return errs
}

// behindRefused gives up what comes after a refused artefact and was never sent: its
// rows are read again behind the refused ones, so that a key's last row stays the
// last one written.
func (s *Sink) behindRefused(a connector.Artifact) error {
	_, state, err := s.staging.Find(a.Header.ID)
	if err == nil && state == sealdir.Sealed {
		err = fmt.Errorf("%w: its rows come after those of a refused artefact", connector.ErrRefused)
	} else if err == nil {
		err = errors.New("not tried: an artefact before it was refused")
	}
	return fmt.Errorf("publishing %s: %w", a.Header.ID, err)
}

func (s *Sink) publish(ctx context.Context, a connector.Artifact) error {
	if err := checkPayload(a.Payload); err != nil {
		return err
	}
	id := a.Header.ID.String()
	release, err := s.hold(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	path, state, err := s.staging.Find(a.Header.ID)
	if err != nil {
		return err
	}
	switch state {
	case sealdir.Done:
		return nil
	case sealdir.Void:
		return errors.New("it was discarded")
	case "":
		return errors.New("its sealed file is not in " + s.staging.Lane(a.Header.ID))
	}
	m, err := s.read(path, a)
	if err != nil {
		return err
	}
	if state == sealdir.Sealed {
		if path, err = s.staging.Mark(path, sealdir.Sealed, sealdir.Tried); err != nil {
			return err
		}
	}
	if err := s.c.Sender.Send(ctx, s.lane(a.Header.ID), &m); err != nil {
		return s.failed(id, path, err)
	}
	_, err = s.staging.Mark(path, sealdir.Tried, sealdir.Done)
	return err
}

// failed notes what an error of Send calls for.
func (s *Sink) failed(id, path string, err error) error {
	if errors.Is(err, connector.ErrRefused) {
		if _, merr := s.staging.Mark(path, sealdir.Tried, sealdir.Sealed); merr != nil {
			return errors.Join(merr, errors.New(err.Error()))
		}
		return err
	}
	var stop *StopError
	if errors.As(err, &stop) {
		s.mu.Lock()
		s.stopped[id], s.reasons[id] = true, stop.Error()
		s.mu.Unlock()
	}
	return err
}

// read reads a sealed file and compares it with the artefact.
func (s *Sink) read(path string, a connector.Artifact) (Message, error) {
	file, err := vfs.ReadFile(s.c.FS, path)
	if errors.Is(err, vfs.ErrNotExist) {
		return Message{}, fmt.Errorf("%w: %s is gone", connector.ErrFenced, path)
	}
	if err != nil {
		return Message{}, fmt.Errorf("reading sealed file: %w", err)
	}
	m, err := decodeMessage(file)
	if err != nil {
		return Message{}, fmt.Errorf("%s: %w", path, err)
	}
	if m.ID != a.Header.ID.String() || m.Rows != a.Header.Rows {
		return Message{}, fmt.Errorf("%s holds artefact %s of %d rows, not %s of %d", path, m.ID, m.Rows, a.Header.ID, a.Header.Rows)
	}
	return m, nil
}

// Resolve implements connector.Committer. What was sent and not acknowledged is
// still to be sent: sending it again leaves the same state.
func (s *Sink) Resolve(ctx context.Context, as []connector.Artifact) ([]connector.Outcome, error) {
	out := make([]connector.Outcome, len(as))
	for i, a := range as {
		err := ctx.Err()
		if err == nil {
			err = checkPayload(a.Payload)
		}
		if err == nil {
			out[i], err = s.resolve(ctx, a)
		}
		if err != nil {
			return out, fmt.Errorf("resolving %s: %w", a.Header.ID, err)
		}
	}
	return out, nil
}

func (s *Sink) resolve(ctx context.Context, a connector.Artifact) (connector.Outcome, error) {
	id := a.Header.ID.String()
	release, err := s.hold(ctx, id)
	if err != nil {
		return connector.Unknown, err
	}
	defer release()
	_, state, err := s.staging.Find(a.Header.ID)
	if err != nil {
		return connector.Unknown, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state {
	case sealdir.Done:
		return connector.Published, nil
	case sealdir.Void:
		return connector.Absent, nil
	case "":
		s.reasons[id] = "the sealed file is not in " + s.staging.Lane(a.Header.ID)
		return connector.Unknown, nil
	}
	if s.stopped[id] {
		// Said once: the lane stops, and tries again when it is resumed.
		delete(s.stopped, id)
		return connector.Unknown, nil
	}
	return connector.Sealed, nil
}

var errPublished = errors.New("it is published")

// Discard implements connector.Committer.
func (s *Sink) Discard(ctx context.Context, as []connector.Artifact) error {
	for _, a := range as {
		err := ctx.Err()
		if err == nil {
			err = checkPayload(a.Payload)
		}
		if err == nil {
			err = s.discard(ctx, a)
		}
		if err != nil {
			return fmt.Errorf("discarding %s: %w", a.Header.ID, err)
		}
	}
	return nil
}

func (s *Sink) discard(ctx context.Context, a connector.Artifact) error {
	release, err := s.hold(ctx, a.Header.ID.String())
	if err != nil {
		return err
	}
	defer release()
	path, state, err := s.staging.Find(a.Header.ID)
	if err != nil {
		return err
	}
	switch state {
	case sealdir.Void:
		return nil
	case sealdir.Done:
		return errPublished
	case sealdir.Tried:
		return errors.New("it was sent, and may be published")
	case "":
		return errors.New("its sealed file is not in " + s.staging.Lane(a.Header.ID))
	}
	next, err := s.staging.Mark(path, sealdir.Sealed, sealdir.Void)
	if err != nil {
		return err
	}
	// Discarded stays discarded: a crash must not bring the name back.
	return s.c.FS.SyncDir(s.c.FS.Dir(next))
}

// hold waits until nobody else works on an artefact.
func (s *Sink) hold(ctx context.Context, id string) (release func(), err error) {
	for {
		s.mu.Lock()
		other := s.busy[id]
		if other == nil {
			done := make(chan struct{})
			s.busy[id] = done
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.busy, id)
				s.mu.Unlock()
				close(done)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
