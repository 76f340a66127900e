//go:build services

package hdfs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/hdfs"
	"github.com/millrace/millrace/storage/vfs"
)

// within is a context for what a server is asked to do.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// atEachStep runs a cycle for each step, with a fault before that step in the
// second round where the step has one.
func atEachStep(t *testing.T, fault func(t *testing.T), options ...string) {
	for i, step := range steps {
		t.Run("before "+step, func(t *testing.T) {
			c := newCycle(t, url(newDir()), options...)
			fired := false
			_ = c.once(func(round int, s string) {
				if s == step && !fired && (round == 1 || i < 2) {
					fired = true
					fault(t)
				}
			})
			if !fired {
				t.Fatalf("the cycle ended before: %v", c.last)
			}
			t.Logf("the attempt with the fault ended with: %v", c.last)
			c.finish("fault before " + step)
		})
	}
}

// TestNameNodeKilled kills the NameNode before each step; it comes back by
// itself, in safe mode at first.
func TestNameNodeKilled(t *testing.T) {
	atEachStep(t, func(t *testing.T) {
		nn := cluster.NameNodes[0]
		nn.Kill()
		var back sync.WaitGroup
		back.Add(1)
		go func() {
			defer back.Done()
			if err := nn.Start(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		t.Cleanup(back.Wait)
	})
	if err := cluster.Await(within(t), 0, 1); err != nil {
		t.Fatal(err)
	}
}

// TestNameNodeHangs stops the NameNode as it stands, for longer than a call may
// take, before each step.
func TestNameNodeHangs(t *testing.T) {
	atEachStep(t, func(t *testing.T) {
		nn := cluster.NameNodes[0]
		nn.Pause()
		goOn := time.AfterFunc(1500*time.Millisecond, nn.Resume)
		t.Cleanup(func() { goOn.Stop(); nn.Resume() })
	}, "hdfs.rpc-timeout", "500 ms")
}

// hook runs do when the n-th piece of a spool is about to be sent.
type hook struct {
	mu sync.Mutex
	n  int
	do func()
}

func (h *hook) Inject(op vfs.Op) error {
	if op.Kind != vfs.OpRead || !strings.Contains(op.Path, "millrace-spool-") {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n--
	if h.n == 0 {
		h.do()
	}
	return nil
}

// bigCycle writes files of several blocks and calls do in the middle of one.
func bigCycle(t *testing.T, url string, do func(), options ...string) *cycle {
	c := newCycle(t, url)
	c.rows = 80_000
	c.conn = newConnector(hdfs.NewScheme(vfs.NewFault(vfs.NewOS(), &hook{n: 6, do: do}), noEnv))
	c.table = tableAt(t, c.conn, url, "json", append([]string{"hdfs.block-size", "512 kb"}, options...)...)
	return c
}

// TestDataNodeKilledInTheMiddleOfAFile: the file is sent again under another
// name when the DataNode is back; the attempt goes on.
func TestDataNodeKilledInTheMiddleOfAFile(t *testing.T) {
	dn := cluster.DataNodes[0]
	var back sync.WaitGroup
	killed := false
	c := bigCycle(t, url(newDir()), func() {
		killed = true
		dn.Kill()
		back.Add(1)
		go func() {
			defer back.Done()
			if err := dn.Start(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		// The NameNode may take longer to count the block than an attempt lasts.
	}, "hdfs.retry-timeout", "2 min")
	err := c.once(nil)
	back.Wait()
	if !killed {
		t.Fatalf("the DataNode was not killed: %v", err)
	}
	if err != nil {
		t.Errorf("the attempt did not outlive it: %v", err)
	}
	c.finish("DataNode killed")
}

// TestDataNodeHangsInTheMiddleOfAFile is the same with a DataNode that stops
// answering.
func TestDataNodeHangsInTheMiddleOfAFile(t *testing.T) {
	dn := cluster.DataNodes[0]
	var goOn *time.Timer
	c := bigCycle(t, url(newDir()), func() {
		dn.Pause()
		goOn = time.AfterFunc(3*time.Second, dn.Resume)
	}, "hdfs.rpc-timeout", "1 s", "hdfs.retry-timeout", "2 min")
	t.Cleanup(dn.Resume)
	began := time.Now()
	if err := c.once(nil); err != nil {
		t.Errorf("the attempt did not outlive it: %v", err)
	}
	if goOn == nil {
		t.Fatal("the DataNode was not stopped")
	}
	if d := time.Since(began); d < 2*time.Second {
		t.Errorf("it took %v: the stop was not noticed", d)
	}
	c.finish("DataNode hung")
}

// TestNameNodeKilledInTheMiddleOfAFile kills it while blocks are being written.
func TestNameNodeKilledInTheMiddleOfAFile(t *testing.T) {
	nn := cluster.NameNodes[0]
	var back sync.WaitGroup
	c := bigCycle(t, url(newDir()), func() {
		nn.Kill()
		back.Add(1)
		go func() {
			defer back.Done()
			if err := nn.Start(context.Background()); err != nil {
				t.Error(err)
			}
		}()
	})
	t.Logf("the attempt ended with: %v", c.once(nil))
	back.Wait()
	c.finish("NameNode killed")
}

// wantKind checks what an attempt failed of, and that the text says what to do.
func wantKind(t *testing.T, err error, kind hdfs.Kind, texts ...string) {
	t.Helper()
	var e *hdfs.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Fatalf("got %v, want an error of kind %d", err, kind)
	}
	for _, s := range texts {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}

func TestSafeMode(t *testing.T) {
	ctx := within(t)
	c := newCycle(t, url(newDir()), "hdfs.retry-timeout", "100 ms")
	err := c.once(func(round int, step string) {
		if round == 1 && step == "seal" {
			if _, err := cluster.Admin(ctx, "-safemode", "enter"); err != nil {
				t.Fatal(err)
			}
		}
	})
	wantKind(t, err, hdfs.SafeMode, "safe mode", "-safemode leave")
	if !retryable(err) {
		t.Error("it may not be tried again")
	}
	// With time to wait, an attempt that starts in safe mode outlives it.
	waits := newCycle(t, url(newDir()))
	left := make(chan error, 1)
	go func() {
		_, err := cluster.Admin(ctx, "-safemode", "leave")
		left <- err
	}()
	if err := waits.once(nil); err != nil {
		t.Errorf("an attempt that may wait: %v", err)
	}
	if err := <-left; err != nil {
		t.Fatal(err)
	}
	waits.finish("safe mode, waiting")
	c.finish("safe mode")
}

func retryable(err error) bool {
	var r interface{ Retryable() bool }
	return errors.As(err, &r) && r.Retryable()
}

// TestQuota fills the space and the name quota of a table in the middle of a
// file, where HDFS closes a short one without an error.
func TestQuota(t *testing.T) {
	ctx := within(t)
	for _, q := range []struct {
		name       string
		set, clear []string
		text       string
	}{
		{"space", []string{"-setSpaceQuota", "1500k"}, []string{"-clrSpaceQuota"}, "quota"},
		{"names", []string{"-setQuota", "9"}, []string{"-clrQuota"}, "quota"},
	} {
		t.Run(q.name, func(t *testing.T) {
			dir := newDir()
			c := newCycle(t, url(dir))
			c.rows = 80_000
			c.table = tableAt(t, c.conn, url(dir), "json", "hdfs.block-size", "512 kb")
			fsys := hdfs.Open(hdfs.Config{Authority: cluster.Addresses[0], Addresses: cluster.Addresses, User: superuser(), RPCTimeout: 5 * time.Second, SpoolDir: t.TempDir()}, vfs.NewOS())
			defer fsys.Close()
			if err := fsys.MkdirAll(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := cluster.Admin(ctx, append(q.set, dir)...); err != nil {
				t.Fatal(err)
			}
			err := c.once(nil)
			wantKind(t, err, hdfs.Quota, q.text, "hdfs dfsadmin")
			if !errors.Is(err, syscall.EDQUOT) || retryable(err) {
				t.Errorf("%v is not a full quota, or is to be tried again at once", err)
			}
			if n := len(visible(t, c.conn, c.table)); n > 0 {
				t.Fatalf("%d rows are visible", n)
			}
			if _, err := cluster.Admin(ctx, append(q.clear, dir)...); err != nil {
				t.Fatal(err)
			}
			c.finish("quota of " + q.name)
		})
	}
}

func TestPermission(t *testing.T) {
	root := hdfs.Open(hdfs.Config{Authority: cluster.Addresses[0], Addresses: cluster.Addresses, User: superuser(), RPCTimeout: 5 * time.Second, SpoolDir: t.TempDir()}, vfs.NewOS())
	defer root.Close()
	dir := newDir()
	if err := root.MkdirAll(dir); err != nil {
		t.Fatal(err)
	}
	c := newCycle(t, url(dir), "hdfs.user", "nobody")
	err := c.once(nil)
	wantKind(t, err, hdfs.Permission, `user "nobody"`, "hdfs.user")
	if retryable(err) {
		t.Error("it is to be tried again at once")
	}
	// The same directory by a user who may.
	c.table = tableAt(t, c.conn, url(dir), "parquet")
	c.finish("permission")
	// Reading needs no right to write.
	reader := newCycle(t, url(dir), "hdfs.user", "nobody")
	if n := len(visible(t, reader.conn, reader.table)); n != rounds*c.rows {
		t.Errorf("another user reads %d rows of %d", n, rounds*c.rows)
	}
}

// TestThreeDataNodes: with three replicas the loss of a DataNode in the middle
// of a file, and for good, costs time alone: until the NameNode notices.
func TestThreeDataNodes(t *testing.T) {
	ctx := within(t)
	h, err := services.StartHDFS(ctx, services.HDFSOptions{Dir: t.TempDir(), DataNodes: 3, Replication: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	erasureCoded(t, h)
	killed := false
	c := bigCycle(t, "hdfs://"+h.Addresses[0]+"/t", func() { killed = true; h.DataNodes[0].Kill() })
	if err := c.once(nil); err != nil {
		t.Errorf("the attempt did not outlive it: %v", err)
	}
	if !killed {
		t.Fatal("no DataNode was killed")
	}
	c.finish("one of three DataNodes killed for good")
	if err := h.Await(ctx, 0, 2); err != nil {
		t.Fatal(err)
	}
}

// erasureCoded writes into a directory whose files would be erasure coded, and
// reads what Hadoop wrote there.
func erasureCoded(t *testing.T, h *services.HDFS) {
	t.Helper()
	ctx := within(t)
	must := func(out string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(h.ErasureCoding(ctx, "-enablePolicy", "-policy", "XOR-2-1-1024k"))
	must(h.Shell(ctx, "-mkdir", "-p", "/ec/dt=2024-05-01"))
	must(h.ErasureCoding(ctx, "-setPolicy", "-path", "/ec", "-policy", "XOR-2-1-1024k"))
	c := newCycle(t, "hdfs://"+h.Addresses[0]+"/ec")
	wantKind(t, c.once(nil), hdfs.Unsupported, "erasure coded")
	local := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(local, []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	must(h.Shell(ctx, "-put", local, "/ec/dt=2024-05-01/data"))
	s, err := c.conn.OpenSource(ctx, tableAt(t, c.conn, "hdfs://"+h.Addresses[0]+"/ec", "json"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, err = s.Partitions(ctx)
	wantKind(t, err, hdfs.Unsupported, "erasure coded")
}

// TestFailover moves the active NameNode of a pair before each step, in order
// and by killing it.
func TestFailover(t *testing.T) {
	ctx := within(t)
	h, err := services.StartHDFS(ctx, services.HDFSOptions{Dir: t.TempDir(), HA: true})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	active := 0
	run := func(name, step string, fault func() error) {
		t.Run(name, func(t *testing.T) {
			c := newCycle(t, "hdfs://ns1"+newDir(), "hdfs.config-dir", h.ConfDir, "hdfs.rpc-timeout", "2 s")
			fired := false
			err := c.once(func(round int, s string) {
				if s == step && !fired && round == 1 {
					fired = true
					if err := fault(); err != nil {
						t.Fatal(err)
					}
				}
			})
			if !fired {
				t.Fatalf("the cycle ended before: %v", err)
			}
			if err != nil {
				t.Errorf("the attempt did not outlive it: %v", err)
			}
			c.finish(name)
		})
	}
	for _, step := range []string{"seal", "publish"} {
		run("graceful before "+step, step, func() error {
			if err := h.Deactivate(ctx, active); err != nil {
				return err
			}
			active = 1 - active
			return h.Activate(ctx, active, false)
		})
	}
	run("killed before publish", "publish", func() error {
		h.NameNodes[active].Kill()
		active = 1 - active
		return h.Activate(ctx, active, true)
	})
	if err := h.NameNodes[1-active].Start(ctx); err != nil {
		t.Fatal(err)
	}
	// The active one hangs and the other takes over: the hung one still accepts
	// connections, and must not hold the client.
	run("hung before seal", "seal", func() error {
		h.NameNodes[active].Pause()
		active = 1 - active
		return h.Activate(ctx, active, true)
	})
}
