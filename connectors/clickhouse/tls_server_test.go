//go:build services

package clickhouse

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/runtime/batch"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/types"
	"github.com/millrace/millrace/storage/vfs"
)

// TestTLS writes, reads and looks up by TLS, with a client's certificate and a password,
// by both protocols. (The tests' server speaks none, a front does so in its place.) Who
// does not know its authority, or has no certificate that it trusts, is told which option
// says so; a wrong password is said, and not shown.
func TestTLS(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	mine, stranger := conntest.NewCertificates(t), conntest.NewCertificates(t)
	fronts := map[string]string{}
	for scheme, target := range map[string]string{"clickhouses": shared.Proxy.Addr(), "https": shared.Web.Addr()} {
		front, err := services.StartTLSFront(target, mine.Server)
		if err != nil {
			t.Fatal(err)
		}
		defer front.Close()
		fronts[scheme] = scheme + "://" + front.Addr()
	}
	if err := shared.Allow(ctx, "writer", "hush", "SELECT, INSERT ON *.*"); err != nil {
		t.Fatal(err)
	}
	columns := []connector.Column{{Field: types.Field{Name: "k", Type: types.NewBigInt().NotNull()}}}
	good := map[string]string{keyUser: "writer", keyPassword: "hush", "connect.timeout": "5 s",
		"tls.ca-file": mine.CA, "tls.cert-file": mine.ClientCert, "tls.key-file": mine.ClientKey}
	for scheme, url := range fronts {
		t.Run(scheme, func(t *testing.T) {
			name := newTable(t)
			ask(t, "CREATE TABLE %s (k Int64) ENGINE = MergeTree ORDER BY k SETTINGS non_replicated_deduplication_window = 100", name)
			conn := New(vfs.NewOS(), t.TempDir())
			with := func(more map[string]string) map[string]string {
				out := maps.Clone(good)
				out["url"], out["table-name"] = url, name
				maps.Copy(out, more)
				return out
			}
			s, err := conn.OpenSink(ctx, tableOf(t, conn, columns, nil, with(nil)), conntest.OwnerOf(1, 1))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			w, id := freshWriter(t, s)
			publishRows(t, s, w, &batch.Batch{Len: 3, Cols: []batch.Vec{*vec(t, types.NewBigInt(), 1, 2, 3)}}, nil, id)
			if got := ask(t, "SELECT count(), sum(k) FROM %s", name); got != "3\t6" {
				t.Errorf("the table has %s", got)
			}
			table := &connector.Table{Columns: columns}
			if b := readTable(t, table, with(nil), nil); b.Len != 3 {
				t.Errorf("%d rows were read", b.Len)
			}
			l, err := conn.OpenLookup(ctx, tableOf(t, conn, columns, nil, with(nil)), []int{0}, []int{0})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if got := found(t, l, vec(t, types.NewBigInt(), 2, 7)); len(got[0]) != 1 || len(got[1]) != 0 {
				t.Errorf("found %v", got)
			}
			for want, change := range map[string]map[string]string{
				"name the authority of the server's certificate in 'tls.ca-file'": {"tls.ca-file": stranger.CA},
				"a certificate that it trusts: 'tls.cert-file'":                   {"tls.cert-file": stranger.ClientCert, "tls.key-file": stranger.ClientKey},
				"516": {keyPassword: "wrong-hush"},
			} {
				if want == "516" && scheme != "https" {
					continue // at a native login that fails this server ends
				}
				bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
				_, err := conn.OpenSink(bounded, tableOf(t, conn, columns, nil, with(change)), conntest.OwnerOf(1, 2))
				cancel()
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
					t.Errorf("%v, want %q", err, want)
				}
			}
		})
	}
}
