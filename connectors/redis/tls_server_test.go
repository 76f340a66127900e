//go:build services

package redis

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/vfs"
)

// TestServerWithTLS writes and looks up on a server that wants a client's certificate.
// Who has none, or does not know the server's authority, is told which option says it.
func TestServerWithTLS(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	mine, stranger := conntest.NewCertificates(t), conntest.NewCertificates(t)
	ports, err := services.Ports(1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := services.StartRedis(ctx, t.TempDir(), fmt.Sprintf("tls-port %d", ports[0]), "tls-cert-file "+mine.ServerCert,
		"tls-key-file "+mine.ServerKey, "tls-ca-cert-file "+mine.CA, "tls-auth-clients yes")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	with := func(more map[string]string) map[string]string {
		out := map[string]string{"url": fmt.Sprintf("rediss://127.0.0.1:%d/0", ports[0]), "key": "tls:{uid}", "connect.timeout": "5 s"}
		maps.Copy(out, more)
		return out
	}
	good := map[string]string{"tls.ca-file": mine.CA, "tls.cert-file": mine.ClientCert, "tls.key-file": mine.ClientKey}
	j := start(t, vfs.NewMem(), 1, people(), []int{0}, with(good))
	a, _ := j.seal(rows("a", "b"))
	j.settle(a)
	if text := j.sink.(connector.SinkExplainer).ExplainSink()[0]; !strings.Contains(text, "is Redis") {
		t.Error(text)
	}
	if have, err := r.Ask(ctx, "HGET", "tls:1", "name"); err != nil || have != "b" {
		t.Errorf("the server has %q, %v", have, err)
	}
	l := openLookup(t, people(), []int{0}, with(good), []int{0}, []int{1})
	expectFound(t, patiently(t, l, batchOf(people(), nil, []int64{1, 7}, []string{"", ""}).Cols[0]), []string{"b"}, nil)

	const authority = "name the authority of the server's certificate in 'tls.ca-file'"
	for _, x := range []struct {
		files map[string]string
		want  string
	}{
		{map[string]string{}, authority},
		{map[string]string{"tls.ca-file": stranger.CA, "tls.cert-file": mine.ClientCert, "tls.key-file": mine.ClientKey}, authority},
		{map[string]string{"tls.ca-file": mine.CA}, "'tls.cert-file' and"},
	} {
		c := New(vfs.NewMem(), "/staging")
		// The server closes the connection behind its alert, which may be all that is seen.
		var err error
		for err == nil && ctx.Err() == nil {
			var s connector.Sink
			if s, err = c.OpenSink(ctx, tableOf(t, c, people(), []int{0}, with(x.files)), conntest.OwnerOf(3, 2)); err == nil {
				if text := s.(connector.SinkExplainer).ExplainSink()[0]; !strings.Contains(text, "does not answer yet") {
					t.Fatal(text)
				}
				s.Close()
			}
		}
		if err == nil || !strings.Contains(err.Error(), x.want) || connector.IsAway(err) {
			t.Errorf("opening the table: %v, want %q", err, x.want)
		}
	}
}
