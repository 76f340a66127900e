package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/engine"
	"github.com/millrace/millrace/runtime/graph"
	"github.com/millrace/millrace/runtime/lane/lanetest"
	"github.com/millrace/millrace/runtime/ledger"
)

// doorConnector opens its sink when the server behind it is there.
type doorConnector struct {
	*lanetest.Connector
	open func(ctx context.Context) error
}

func (d *doorConnector) OpenSink(ctx context.Context, t *connector.Table, o connector.Owner) (connector.Sink, error) {
	if err := d.open(ctx); err != nil {
		return nil, err
	}
	return d.Connector.OpenSink(ctx, t, o)
}

func startBehind(t *testing.T, ctx context.Context, open func(context.Context) error, retry string) (notices []string, err error) {
	t.Helper()
	w := newWorld("a")
	p := w.Process()
	led, err := ledger.OpenLedger(t.Context(), p.Store())
	if err != nil {
		t.Fatal(err)
	}
	c := &lanetest.Connector{Sources: map[string]connector.Source{"src": p.Source(w.topics["a"], lanetest.SourceOptions{Bounded: true})},
		Sinks: map[string]connector.Sink{"t": p.Sink("t", w.sink)}}
	j := &graph.Job{Name: "job", Bounded: true, Options: map[string]string{"start.retry-timeout": retry}, Nodes: []*graph.Node{
		{ID: 0, Op: &graph.Source{Table: lanetest.Table("src", schema), Connector: c, Columns: []int{0, 1, 2}}, Schema: schema, TimeColumn: -1},
		{ID: 1, Op: &graph.Sink{Table: lanetest.Table("t", schema, 1), Connector: &doorConnector{c, open}}, Inputs: []graph.NodeID{0}, Schema: schema, TimeColumn: -1},
	}}
	var mu sync.Mutex
	r, err := engine.Start(ctx, j, engine.Deps{Ledger: led, Scope: ledger.Scope{Job: connector.UUID{9}}, DeadLetters: p.DeadLetters(),
		Notice: func(line string) {
			mu.Lock()
			defer mu.Unlock()
			notices = append(notices, line)
		}})
	if err == nil {
		err = wait(t, r)
	}
	mu.Lock()
	defer mu.Unlock()
	return notices, err
}

// TestStartWaitsForServer: a server that is away is waited for, with one line that
// says so.
func TestStartWaitsForServer(t *testing.T) {
	tries := 0
	notices, err := startBehind(t, t.Context(), func(context.Context) error {
		if tries++; tries < 3 {
			return &netError{}
		}
		return nil
	}, "1 h")
	if err != nil || tries != 3 {
		t.Fatalf("after %d tries: %v", tries, err)
	}
	if n := strings.Count(strings.Join(notices, "\n"), "table t: its server does not answer (connection refused)"); n != 1 {
		t.Errorf("it was said %d times: %q", n, notices)
	}
}

type netError struct{}

func (*netError) Error() string { return syscall.ECONNREFUSED.Error() }
func (*netError) Away() bool    { return true }

// TestStartGivesUpServer: it is waited for as long as the option says, also by a
// connector that waits by itself.
func TestStartGivesUpServer(t *testing.T) {
	_, err := startBehind(t, t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}, "10 ms")
	var away *connector.AwayError
	if !errors.As(err, &away) || away.What != "table t" {
		t.Fatalf("got %v", err)
	}
}

// TestStartDoesNotWaitInVain: what is no absence ends the start at once, and so
// does the user.
func TestStartDoesNotWaitInVain(t *testing.T) {
	wrong := errors.New("no such table")
	if _, err := startBehind(t, t.Context(), func(context.Context) error { return wrong }, "1 h"); !errors.Is(err, wrong) {
		t.Fatalf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := startBehind(t, ctx, func(context.Context) error {
		cancel()
		return &netError{}
	}, "1 h")
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}
