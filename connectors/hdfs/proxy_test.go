//go:build services

package hdfs_test

import (
	"fmt"
	"testing"

	"github.com/millrace/millrace/connectors/conntest/services"
)

// TestSpoiledCalls loses the request, or the reply, of each kind of call, by a
// reset and by silence, and of each rename of a whole cycle.
func TestSpoiledCalls(t *testing.T) {
	p, err := services.NewHDFSProxy(cluster.Addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	spoilt := map[string]int{}
	for _, method := range []string{"rename2", "create", "addBlock", "updateBlockForPipeline", "complete", "getFileInfo", "mkdirs", "delete", "getListing", "getBlockLocations", "getServerDefaults"} {
		for _, how := range []services.Wrong{services.RequestLost, services.ReplyLost, services.RequestHangs, services.ReplyHangs} {
			for nth := 1; ; nth++ {
				c := newCycle(t, "hdfs://"+p.Addr()+newDir(), "hdfs.rpc-timeout", "400 ms", "hdfs.retry-timeout", "5 s")
				if method == "delete" {
					// A second attempt removes what the first one left.
					if err := c.once(nil); err != nil {
						t.Fatal(err)
					}
				}
				p.Spoil(method, nth, how)
				what := fmt.Sprintf("%s %d: %s", method, nth, how)
				_ = c.once(nil) // whatever it says, nothing may be lost or doubled
				fired := p.Fired()
				c.finish(what)
				if !fired {
					break
				}
				spoilt[method]++
				// Renames decide what is visible: each of them. Others: a few.
				if method != "rename2" && (nth == 2 || how >= services.RequestHangs) {
					break
				}
			}
		}
	}
	t.Logf("calls spoilt: %v", spoilt)
	for _, method := range []string{"rename2", "create", "addBlock", "complete", "getFileInfo", "mkdirs", "delete"} {
		if spoilt[method] == 0 {
			t.Errorf("no call of %s was spoilt", method)
		}
	}
}
