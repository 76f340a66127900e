package clickhouse

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/tlsfiles"
	"github.com/millrace/millrace/runtime/connector"
)

// TestCertificatesOfARequest: what is wrong with certificates once the sink is open, since
// those of either side were replaced, is said with what to do about it, and is not waited for.
func TestCertificatesOfARequest(t *testing.T) {
	mine, stranger := conntest.NewCertificates(t), conntest.NewCertificates(t)
	there := httptest.NewUnstartedServer(http.NotFoundHandler())
	there.Config.ErrorLog = log.New(io.Discard, "", 0)
	there.TLS = mine.Server
	there.StartTLS()
	defer there.Close()
	for want, files := range map[string]tlsfiles.Files{
		"in 'tls.ca-file'":    {CA: stranger.CA, Cert: mine.ClientCert, Key: mine.ClientKey},
		"'tls.cert-file' and": {CA: mine.CA, Cert: stranger.ClientCert, Key: stranger.ClientKey},
	} {
		config, err := files.Config()
		if err != nil {
			t.Fatal(err)
		}
		s := &server{opts: tableOptions{addr: address{hosts: []string{there.Listener.Addr().String()}, tls: true, http: true}},
			web: &http.Client{Transport: &http.Transport{TLSClientConfig: config}}}
		// The server closes the connection behind its alert, which may be all that is seen.
		err = errors.New("not tried")
		for end := time.Now().Add(time.Minute); !strings.Contains(err.Error(), "tls: ") && time.Now().Before(end); {
			_, err = s.post(t.Context(), url.Values{}, func() io.Reader { return strings.NewReader("x") }, 1)
		}
		if !strings.Contains(err.Error(), want) || connector.IsAway(err) {
			t.Errorf("%v, away %t, want %q", err, connector.IsAway(err), want)
		}
	}
}
