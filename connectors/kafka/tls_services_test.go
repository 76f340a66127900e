//go:build services

package kafka

import (
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/runtime/connector"
)

// TestBrokerTLS speaks TLS with a real broker that asks clients for their certificates:
// rows go in and come out; certificates that do not fit are said on either side.
func TestBrokerTLS(t *testing.T) {
	ctx := faultContext(t)
	dir := t.TempDir()
	ours, others := conntest.NewAuthority(t, "our authority"), conntest.NewAuthority(t, "another authority")
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		check(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	certify := func(change func(*x509.Certificate)) string {
		chain, key := ours.Issue(t, "broker", change)
		return write("broker.pem", key+chain)
	}
	const l = "listener.name.secured.ssl."
	k, err := services.StartKafka(ctx, services.KafkaOptions{Dir: filepath.Join(dir, "kafka"), Secured: "SSL", Properties: quickly(map[string]string{
		l + "keystore.type": "PEM", l + "keystore.location": certify(nil),
		l + "truststore.type": "PEM", l + "truststore.location": write("ca.pem", ours.PEM),
		l + "client.auth": "required",
		// Only who has the name of the client's certificate may write.
		"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":           "User:ANONYMOUS;User:CN=maker",
	})})
	check(t, err)
	t.Cleanup(k.Close)
	w := &sinkWorld{world: &world{t: t, ctx: ctx, addrs: []string{k.Addrs()}, conn: New(jsonfmt.Format{})}, out: "out", job: jobOf(jobs.Add(1)), patience: brokerPatience}
	w.client, w.admin = w.dial()
	w.topic(w.out, 1, nil)
	of := func(a *conntest.Authority, name string) string {
		chain, key := a.Issue(t, name, nil)
		return write(strings.ReplaceAll(fmt.Sprintf("%s of %s.pem", name, a.Cert.Subject.CommonName), " ", "-"), key+chain)
	}
	maker := of(ours, "maker")
	w.with = overTLS(ours, "properties.bootstrap.servers", k.SecuredAddrs(), keyKeyFile, maker)

	s, a := w.sink(1), w.attempt(1)
	wr, err := s.OpenWriter(ctx, a)
	check(t, err)
	check(t, s.Publish(ctx, []connector.Artifact{w.seal(wr, a, 0, conntest.Rows(0, 10))})...)
	if have := w.visible(t, 10); !slices.Equal(have, ids(0, 10)) {
		t.Fatalf("visible are %v", have)
	}
	have, err := w.open(w.source(w.table(w.out, idOnly, append(w.with, "scan.bounded.mode", "latest-offset")...)), nil).collect(-1, 100, 1<<20, nil)
	check(t, err)
	if n := have.rows(); n != 10 {
		t.Fatalf("read %d rows: %v", n, have)
	}

	byName := strings.ReplaceAll(k.SecuredAddrs(), "127.0.0.1", "localhost")
	try := func(name, says string, with ...string) {
		t.Run(name, func(t *testing.T) {
			s, err := w.conn.OpenSource(ctx, w.table(w.out, idOnly, append(overTLS(ours, "properties.bootstrap.servers", k.SecuredAddrs()), with...)...))
			if err == nil {
				check(t, s.Close())
			}
			if says == "" {
				check(t, err)
				return
			}
			refusedFor(t, err, says)
		})
	}
	try("good", "", keyKeyFile, maker)
	try("unknown authority", "its certificate was issued by CN=our authority", "properties.ssl.truststore.certificates", others.PEM, keyKeyFile, maker)
	try("another host", "name it by a name of its certificate", "properties.bootstrap.servers", byName, keyKeyFile, maker)
	try("names not checked", "", "properties.bootstrap.servers", byName, keyKeyFile, maker, keyHostCheck, "")
	try("client without a certificate", "has to name one, and there is none")
	try("client of another authority", "names one that it trusts and that is valid", keyKeyFile, of(others, "maker"))
	try("client without rights", "the user needs Read on topic out: kafka-acls.sh --add --allow-principal 'User:CN=taker'", keyKeyFile, of(ours, "taker"))
	_, err = w.conn.OpenSource(ctx, w.table(w.out, idOnly, overTLS(ours, keyAPITimeout, "2000", keyKeyFile, maker)...))
	if err == nil || !strings.Contains(err.Error(), "speak TLS at this port") {
		t.Errorf("a port without TLS: %v", err)
	}
	k.Brokers[0].Kill()
	certify(expired)
	check(t, k.Brokers[0].Start(ctx))
	try("expired", "the broker needs a new certificate", keyKeyFile, maker)
}
