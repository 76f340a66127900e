package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/millrace/millrace/cmd/internal/sysmon"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// System ceiling shows how fast the clients are. Its server counts the records it is
// given and keeps one batch of each topic; readers get that batch over and over, as many
// records as were counted, out of memory that is near. It has no disk and looks at no
// checksum: a rate near the ceiling's is the client's limit, whatever the server.
//
// Topics, groups and everything else but Produce, Fetch and ListOffsets are those of
// Millrace's own server, which is behind it.

// ceilingEnv, if it is set, makes this program a ceiling's server: ADDRESS|DIRECTORY.
const ceilingEnv = "KAFKABENCH_CEILING"

// startCeiling starts the server as a process of its own, so that its processor time is
// told apart from the bench's.
func startCeiling(ctx context.Context, addr, dir string) (*services.Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	return services.Launch(ctx, services.Command{Name: ceilingSystem, Dir: dir, Path: self, Env: []string{ceilingEnv + "=" + addr + "|" + dir}, Ready: services.AcceptsTCP(addr)})
}

// runAsCeiling serves until the process is told to end, if it was started for that.
func runAsCeiling() (asked bool, err error) {
	addr, dir, asked := strings.Cut(os.Getenv(ceilingEnv), "|")
	if !asked {
		return false, nil
	}
	_ = sysmon.Relax() // as `millrace server` does
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return true, fmt.Errorf("listening: %w", err)
	}
	return true, serveCeiling(ctx, l, dir)
}

// ceiling is the server.
type ceiling struct {
	behind string // address of the server behind

	mu     sync.Mutex
	topics map[string]*ceilingTopic
}

// ceilingTopic is what a topic was given; the ceiling's mutex guards it.
type ceilingTopic struct {
	batch   []byte // the one with the most records, of which it has this many
	records int64
	given   map[int32]int64 // records, by partition
}

// end is the offset after the last record for readers, who get whole batches.
func (t *ceilingTopic) end(partition int32) int64 {
	if t.records == 0 {
		return 0
	}
	return (t.given[partition] + t.records - 1) / t.records * t.records
}

// serveCeiling serves until ctx ends.
func serveCeiling(ctx context.Context, l net.Listener, dir string) error {
	store, err := topiclog.Open(topiclog.Options{FS: vfs.NewOS(), Dir: filepath.Join(dir, "data"), ReserveBytes: -1})
	if err != nil {
		return err
	}
	defer store.Close()
	s, err := kafkaproto.New(kafkaproto.Options{Store: store, Advertised: l.Addr().String()})
	if err != nil {
		return err
	}
	behind, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	var all sync.WaitGroup
	all.Go(func() { _ = s.Serve(behind) })
	c := &ceiling{behind: behind.Addr().String(), topics: map[string]*ceilingTopic{}}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if err != nil {
			_ = s.Shutdown(ctx)
			all.Wait()
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accepting: %w", err)
		}
		all.Go(func() {
			if err := c.serve(ctx, conn); err != nil && !errors.Is(err, io.EOF) && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "a connection ended:", err)
			}
		})
	}
}

// Places in a batch: how many records it has beyond its first, and its first offset.
const (
	batchLastDelta = 23
	batchBase      = 0
)

// give counts a batch in and returns the offset of its first record.
func (c *ceiling) give(topic string, partition int32, batch []byte) (base int64, err error) {
	if len(batch) < batchHead {
		return 0, fmt.Errorf("a batch of %d bytes", len(batch))
	}
	n := int64(binary.BigEndian.Uint32(batch[batchLastDelta:])) + 1
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.topics[topic]
	if t == nil {
		t = &ceilingTopic{given: map[int32]int64{}}
		c.topics[topic] = t
	}
	if n > t.records {
		t.batch, t.records = append([]byte(nil), batch...), n
	}
	base = t.given[partition]
	t.given[partition] += n
	return base, nil
}

// end is the offset after the last record of a partition, and what its topic's batch is.
func (c *ceiling) end(topic string, partition int32) (end int64, batch []byte, records int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.topics[topic]
	if t == nil {
		return 0, nil, 0
	}
	return t.end(partition), t.batch, t.records
}
