package logtopic

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// suiteWorld runs the acceptance suite over a log whose filesystem fails.
type suiteWorld struct {
	t    testing.TB
	mem  *vfs.MemFS
	with []string
	log  *logWorld
	*conntest.Faulty
}

const suiteTopic = "suite"

func openSuite(t testing.TB, mem *vfs.MemFS, with []string) *suiteWorld {
	w := &suiteWorld{t: t, mem: mem, with: with, Faulty: conntest.NewFaulty()}
	w.log = openWorld(t, vfs.NewFault(mem, w), func(o *topiclog.Options) { o.MarkDelay = time.Hour })
	if _, err := w.log.store.Topic(suiteTopic); err != nil {
		w.log.topic(suiteTopic, 2, nil)
	}
	w.Recount()
	return w
}

// Inject implements vfs.Injector. Only what changes something counts.
func (w *suiteWorld) Inject(op vfs.Op) error {
	if op.Kind&(vfs.OpWrite|vfs.OpSync) == 0 {
		return nil
	}
	return w.Step()
}

func (w *suiteWorld) Shared() {}

func (w *suiteWorld) AfterCrash(seed uint64) conntest.FaultWorld {
	return openSuite(w.t, w.mem.CrashClone(conntest.PowerCut(seed)), w.with)
}

// reopen is what an operator does about a fenced log.
func (w *suiteWorld) reopen() {
	if w.log.store.Status().Shards[0].Fenced != nil {
		_ = w.log.store.Close()
		*w.log = *openSuite(w.t, w.mem, w.with).log
	}
}

func (w *suiteWorld) Open(ctx context.Context, o connector.Owner) (connector.Sink, error) {
	w.reopen()
	t := w.log.sinkTable(suiteTopic, w.with...)
	if len(w.with) == 0 {
		t.PrimaryKey = []int{0}
	}
	return w.log.conn.OpenSink(ctx, t, o)
}

func (w *suiteWorld) Visible(testing.TB) []int64 { return slices.Concat(w.log.ids(suiteTopic)...) }

func TestAcceptance(t *testing.T) {
	for name, with := range map[string][]string{"by key": nil, "in turn": {"sink.partitioner", "round-robin"}} {
		t.Run(name, func(t *testing.T) {
			conntest.RunSink(t, func(t testing.TB) conntest.World { return openSuite(t, vfs.NewMem(), with) })
		})
	}
}
