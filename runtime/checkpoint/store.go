package checkpoint

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/millrace/millrace/runtime/connector"
)

// ManifestFile is the name of the manifest among the files of a checkpoint.
const ManifestFile = "manifest"

// File is one file of a checkpoint.
type File struct {
	Name string
	Data []byte
	// Body, if it is not nil, is what the file has in place of Data: more than there
	// should be in memory.
	Body Body
}

// Body is bytes that may be written several times.
type Body interface {
	io.WriterTo
	// Release says that they are not read any more.
	Release()
}

// ErrNotExist is returned for a checkpoint, or a file of one, that is not there.
var ErrNotExist = errors.New("no such checkpoint")

// Store keeps the checkpoints of one job and generation. Methods may be called
// from any goroutine.
type Store interface {
	// Open makes the job epoch the one that may write. connector.ErrFenced: a
	// higher one has opened it.
	Open(ctx context.Context, epoch uint64) error
	// Write makes checkpoint n durable: all of its files or none. They are written in
	// their order, one after the other.
	// connector.ErrFenced: another epoch has opened the store since.
	Write(ctx context.Context, n uint64, files []File) error
	// List gives the numbers of the complete checkpoints, ascending.
	List(ctx context.Context) ([]uint64, error)
	// Read gives a file's bytes; ErrNotExist when it is not there.
	Read(ctx context.Context, n uint64, name string) ([]byte, error)
	// Stream gives a file's bytes one after the other; ErrNotExist when it is not there.
	Stream(ctx context.Context, n uint64, name string) (io.ReadCloser, error)
	// Remove drops a checkpoint; it is no error when it is not there.
	Remove(ctx context.Context, n uint64) error
}

// MemStore is a Store in memory, for tests and for jobs that keep nothing.
type MemStore struct {
	mu    sync.Mutex
	epoch uint64
	files map[uint64]map[string][]byte
	hook  func(op string, n uint64) error
	owner *MemHandle
}

// NewMemStore returns an empty store.
func NewMemStore() *MemStore { return &MemStore{files: map[uint64]map[string][]byte{}} }

// SetHook makes each Write and Remove call f before it does anything.
func (m *MemStore) SetHook(f func(op string, n uint64) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hook = f
}

// Handle returns a new way in, as another process has one: what Open fences.
func (m *MemStore) Handle() *MemHandle { return &MemHandle{store: m} }

// MemHandle is a Store over a MemStore.
type MemHandle struct {
	store *MemStore
	epoch uint64
}

// Open implements Store.
func (h *MemHandle) Open(ctx context.Context, epoch uint64) error {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	if epoch < h.store.epoch {
		return fmt.Errorf("opening checkpoints with epoch %d, now %d: %w", epoch, h.store.epoch, connector.ErrFenced)
	}
	h.store.epoch, h.epoch, h.store.owner = epoch, epoch, h
	return ctx.Err()
}

// Write implements Store.
func (h *MemHandle) Write(ctx context.Context, n uint64, files []File) error {
	m := h.store
	if err := m.before("write", n); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owner != h {
		return fmt.Errorf("writing checkpoint %d with epoch %d, now %d: %w", n, h.epoch, m.epoch, connector.ErrFenced)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	kept := map[string][]byte{}
	for _, f := range files {
		data := slices.Clone(f.Data)
		if f.Body != nil {
			var b bytes.Buffer
			if _, err := f.Body.WriteTo(&b); err != nil {
				return fmt.Errorf("writing checkpoint %d: %w", n, err)
			}
			data = b.Bytes()
		}
		kept[f.Name] = data
	}
	m.files[n] = kept
	return nil
}

func (m *MemStore) before(op string, n uint64) error {
	m.mu.Lock()
	hook := m.hook
	m.mu.Unlock()
	if hook == nil {
		return nil
	}
	return hook(op, n)
}

// List implements Store.
func (h *MemHandle) List(context.Context) ([]uint64, error) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	var out []uint64
	for n := range h.store.files {
		out = append(out, n)
	}
	slices.Sort(out)
	return out, nil
}

// Read implements Store.
func (h *MemHandle) Read(_ context.Context, n uint64, name string) ([]byte, error) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	b, ok := h.store.files[n][name]
	if !ok {
		return nil, fmt.Errorf("%w: %s of checkpoint %d", ErrNotExist, name, n)
	}
	return slices.Clone(b), nil
}

// Stream implements Store.
func (h *MemHandle) Stream(ctx context.Context, n uint64, name string) (io.ReadCloser, error) {
	b, err := h.Read(ctx, n, name)
	return io.NopCloser(bytes.NewReader(b)), err
}

// Remove implements Store.
func (h *MemHandle) Remove(_ context.Context, n uint64) error {
	if err := h.store.before("remove", n); err != nil {
		return err
	}
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	delete(h.store.files, n)
	return nil
}
