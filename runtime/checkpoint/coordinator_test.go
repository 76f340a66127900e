package checkpoint

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/millrace/millrace/runtime/connector"
)

// ids turns "abc" into artefacts named a, b and c.
func ids(text string) []connector.ArtifactID {
	var out []connector.ArtifactID
	for _, r := range text {
		out = append(out, connector.ArtifactID{Keyed: true, Sequence: uint64(r)})
	}
	return out
}

func names(ids []connector.ArtifactID) string {
	var b strings.Builder
	for _, id := range ids {
		b.WriteRune(rune(id.Sequence))
	}
	if b.Len() == 0 {
		return "nothing"
	}
	return b.String()
}

func tell(a Action) string {
	switch a := a.(type) {
	case Inject:
		return fmt.Sprintf("inject barrier %d", a.N)
	case Write:
		if len(a.Carry) == 0 {
			return fmt.Sprintf("write manifest %d", a.N)
		}
		return fmt.Sprintf("write manifest %d, carrying %s", a.N, names(a.Carry))
	case Record:
		return fmt.Sprintf("record %d in the ledger, publishing %s", a.N, names(a.IDs))
	case Publish:
		return fmt.Sprintf("publish %s of %d", names(a.IDs), a.N)
	case PublishEnd:
		return fmt.Sprintf("publish the end of %d", a.N)
	case Remove:
		return fmt.Sprintf("remove manifests %v", a.Ns)
	case Wake:
		return fmt.Sprintf("wake at %d", a.AtMillis)
	case Done:
		return "done"
	case Fail:
		return fmt.Sprintf("fail: %v", a.Err)
	}
	return fmt.Sprintf("%T", a)
}

// TestCoordinator plays the scripts in testdata/coordinator: a command is an
// event, the output is what the coordinator wants done.
func TestCoordinator(t *testing.T) {
	datadriven.Walk(t, "testdata/coordinator", func(t *testing.T, path string) {
		var c *Coordinator
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			num := func(key string) uint64 {
				var s string
				d.ScanArgs(t, key, &s)
				n, err := strconv.ParseUint(s, 10, 64)
				if err != nil {
					d.Fatalf(t, "%s: %v", key, err)
				}
				return n
			}
			text := func(key string) string {
				var s string
				d.MaybeScanArgs(t, key, &s)
				return s
			}
			var e Event
			switch d.Cmd {
			case "start":
				cfg := Config{Tasks: int(num("tasks")), Next: num("next")}
				d.MaybeScanArgs(t, "interval", &cfg.IntervalMillis)
				d.MaybeScanArgs(t, "pause", &cfg.MinPauseMillis)
				d.MaybeScanArgs(t, "timeout", &cfg.TimeoutMillis)
				d.MaybeScanArgs(t, "whole", &cfg.AtEnd)
				d.MaybeScanArgs(t, "retained", &cfg.Retained)
				d.MaybeScanArgs(t, "unpublished", &cfg.MaxUnpublished)
				var kept uint64
				if d.MaybeScanArgs(t, "kept", &kept); kept > 0 {
					cfg.Kept = []uint64{kept}
				}
				c = NewCoordinator(cfg)
				e = Tick{0}
			case "tick":
				e = Tick{int64(num("at"))}
			case "trigger":
				e = Trigger{}
			case "ack":
				e = Acked{Task: int(num("task")), N: num("n"), Sealed: ids(text("sealed"))}
			case "written":
				e = Written{num("n")}
			case "recorded":
				e = Recorded{num("n")}
			case "committed":
				e = Committed{ids(text("ids"))}
			case "ended":
				e = Ended{int(num("task"))}
			case "published":
				e = EndPublished{}
			case "stop":
				e = Stop{}
			case "failed":
				e = Failed{errors.New(text("why"))}
			}
			var b strings.Builder
			for _, a := range c.Step(e) {
				b.WriteString(tell(a))
				b.WriteByte('\n')
			}
			if b.Len() == 0 {
				return "nothing to do\n"
			}
			return b.String()
		})
	})
}
