package kafka

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/connectors/scanrange"
	"github.com/millrace/millrace/runtime/connector"
)

const login1 = `org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";`

func TestOptions(t *testing.T) {
	s := New(jsonfmt.Format{}).Spec()
	base := map[string]string{"connector": "kafka", "topic": "t", "properties.bootstrap.servers": "a:9092,b:9092"}
	resolve := func(with ...string) []*connector.OptionError {
		m := maps.Clone(base)
		for i := 0; i < len(with); i += 2 {
			m[with[i]] = with[i+1]
		}
		_, errs := s.Resolve(m)
		return errs
	}
	for _, good := range [][]string{
		nil,
		{"properties.isolation.level", "read_committed", "scan.topic-partition-discovery.interval", "5 min"},
		{"properties.security.protocol", "SASL_SSL", "properties.sasl.mechanism", "PLAIN", "properties.sasl.jaas.config", login1},
		{"properties.security.protocol", "SASL_PLAINTEXT", "properties.sasl.mechanism", "SCRAM-SHA-256", "properties.sasl.username", "u", "properties.sasl.password", "p"},
		{"properties.security.protocol", "SSL", "properties.ssl.endpoint.identification.algorithm", ""},
		{"topic", "a; b;c"},
	} {
		if errs := resolve(good...); len(errs) > 0 {
			t.Errorf("%v: %v", good, errs[0])
		}
	}
	for _, bad := range []struct {
		with      []string
		key, want string
	}{
		{[]string{"topic", "a;;b"}, "topic", "no name"},
		{[]string{"topic", "a,b"}, "topic", "separated by ';'"},
		{[]string{"topic", "a;a"}, "topic", "named twice"},
		{[]string{"topic", ""}, "topic", "no name"},
		{[]string{"topic-pattern", "a.*"}, "topic-pattern", "keep one"},
		{[]string{"topic-pattern", "a(?=b)"}, "topic-pattern", "no look-around"},
		{[]string{"topic", "a;b", "scan.startup.mode", scanrange.Specific, "scan.startup.specific-offsets", "partition:0,offset:1"}, "scan.startup.specific-offsets", "one topic"},
		{[]string{"properties.bootstrap.servers", "a"}, "properties.bootstrap.servers", "host:port"},
		{[]string{"properties.bootstrap.servers", "a:99999"}, "properties.bootstrap.servers", "port"},
		{[]string{"properties.grup.id", "g"}, "properties.grup.id", "unknown option"},
		{[]string{"properties.isolation.level", "read_uncommitted"}, "properties.isolation.level", "not_yet"},
		{[]string{"scan.startup.mode", scanrange.Timestamp}, "scan.startup.mode", "scan.startup.timestamp-millis"},
		{[]string{"scan.startup.timestamp-millis", "1"}, "scan.startup.timestamp-millis", "no effect"},
		{[]string{"scan.bounded.mode", scanrange.Specific}, "scan.bounded.mode", "scan.bounded.specific-offsets"},
		{[]string{"scan.startup.mode", scanrange.Group}, "scan.startup.mode", "properties.group.id"},
		{[]string{"scan.bounded.mode", scanrange.Group}, "scan.bounded.mode", "properties.group.id"},
		{[]string{"scan.startup.mode", scanrange.Specific, "scan.startup.specific-offsets", "partition:0"}, "scan.startup.specific-offsets", "of the form"},
		{[]string{"scan.startup.mode", scanrange.Specific, "scan.startup.specific-offsets", "partition:0,offset:1;partition:0,offset:2"}, "scan.startup.specific-offsets", "twice"},
		{[]string{"scan.startup.mode", scanrange.Specific, "scan.startup.specific-offsets", "partition:0,offset:5",
			"scan.bounded.mode", scanrange.Specific, "scan.bounded.specific-offsets", "partition:0,offset:4"}, "scan.bounded.specific-offsets", "before 5"},
		{[]string{"scan.startup.mode", scanrange.Timestamp, "scan.startup.timestamp-millis", "5",
			"scan.bounded.mode", scanrange.Timestamp, "scan.bounded.timestamp-millis", "4"}, "scan.bounded.timestamp-millis", "before it starts"},
		{[]string{"properties.sasl.mechanism", "GSSAPI"}, "properties.sasl.mechanism", "not_yet"},
		{[]string{"properties.sasl.mechanism", "PLAIN"}, "properties.sasl.mechanism", "no effect"},
		{[]string{"properties.security.protocol", "SASL_SSL"}, "properties.security.protocol", "needs"},
		{[]string{"properties.security.protocol", "SASL_SSL", "properties.sasl.mechanism", "PLAIN"}, "properties.sasl.mechanism", "needs"},
		{[]string{"properties.security.protocol", "SASL_SSL", "properties.sasl.mechanism", "SCRAM-SHA-256", "properties.sasl.jaas.config", login1}, "properties.sasl.jaas.config", "not for mechanism"},
		{[]string{"properties.security.protocol", "SASL_SSL", "properties.sasl.mechanism", "PLAIN", "properties.sasl.jaas.config", login1, "properties.sasl.username", "u"}, "properties.sasl.username", "both"},
		{[]string{"properties.ssl.truststore.location", "x.pem"}, "properties.ssl.truststore.location", "no effect"},
		{[]string{"properties.ssl.truststore.type", "JKS"}, "properties.ssl.truststore.type", "none of PEM"},
	} {
		errs := resolve(bad.with...)
		if len(errs) != 1 || errs[0].Key != bad.key || !strings.Contains(errs[0].Message, bad.want) {
			t.Errorf("%v: %+v, want %q at %q", bad.with, errs, bad.want, bad.key)
		}
	}
	for _, key := range []string{"topic", "properties.bootstrap.servers"} {
		m := maps.Clone(base)
		delete(m, key)
		if _, errs := s.Resolve(m); len(errs) != 1 || !errs[0].Missing || errs[0].Key != key {
			t.Errorf("without %s: %v", key, errs)
		}
	}
	// The front end finds the nearest name among these.
	if keys := s.Keys("json"); !slices.Contains(keys, "properties.group.id") || !slices.Contains(keys, "json.on-error") {
		t.Errorf("keys: %v", keys)
	}
	for _, o := range s.Options {
		if secret := strings.Contains(o.Key, "password") || strings.Contains(o.Key, "jaas") || o.Key == keyKeyText; secret != o.Secret {
			t.Errorf("option %s: secret %t", o.Key, o.Secret)
		}
	}
}

func TestJAAS(t *testing.T) {
	for text, want := range map[string]jaas{
		login1: {"PlainLoginModule", "u", "p"},
		"org.apache.flink.kafka.shaded.org.apache.kafka.common.security.scram.ScramLoginModule  required\u0020 username=\"a b\"   password=\"x\\\"y\\\\;z\" ;": {"ScramLoginModule", "a b", `x"y\;z`},
	} {
		if have, err := parseJAAS(text); err != nil || have != want {
			t.Errorf("%s: %+v, %v", text, have, err)
		}
	}
	for _, text := range []string{"", ";", "x.PlainLoginModule required username=\"u\" password=\"sesame\"", "x.PlainLoginModule optional username=\"u\" password=\"sesame\";",
		"x.Krb5LoginModule required;", "x.PlainLoginModule required username=u password=sesame;", "x.PlainLoginModule required username=\"u\";",
		"x.PlainLoginModule required username=\"u\" password=\"sesame;", "x.PlainLoginModule required username=\"u\" password=\"sesame\" user_a=\"b\";"} {
		if j, err := parseJAAS(text); err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%s: %+v, %v", text, j, err)
		}
	}
}

func TestSASL(t *testing.T) {
	w := &world{t: t, ctx: t.Context(), conn: New(jsonfmt.Format{})}
	var err error
	w.cluster, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.SeedTopics(1, "t"),
		kfake.Superuser("PLAIN", "plain", "p1"), kfake.Superuser("SCRAM-SHA-256", "s256", "p2"), kfake.Superuser("SCRAM-SHA-512", "s512", "p3"))
	check(t, err)
	t.Cleanup(w.cluster.Close)
	client, _ := w.dial(kgo.SASL(scram.Auth{User: "s256", Pass: "p2"}.AsSha256Mechanism()))
	check(t, client.ProduceSync(w.ctx, rec("t", 0, `{"id":1}`)).FirstErr())
	with := func(mechanism, module, user, password string) []string {
		o := []string{"properties.security.protocol", "SASL_PLAINTEXT", "properties.sasl.mechanism", mechanism, "scan.bounded.mode", scanrange.Latest}
		if module == "" {
			return append(o, "properties.sasl.username", user, "properties.sasl.password", password)
		}
		return append(o, "properties.sasl.jaas.config", "x."+module+` required username="`+user+`" password="`+password+`";`)
	}
	for _, o := range [][]string{
		with("PLAIN", "PlainLoginModule", "plain", "p1"), with("SCRAM-SHA-256", "ScramLoginModule", "s256", "p2"),
		with("SCRAM-SHA-512", "ScramLoginModule", "s512", "p3"), with("PLAIN", "", "plain", "p1"),
	} {
		have, err := w.open(w.source(w.table("t", idOnly, o...)), nil).collect(-1, 10, 1000, nil)
		if err != nil || len(have[0]) != 1 {
			t.Errorf("%v: %v, %v", o, have, err)
		}
	}
	_, err = w.conn.OpenSource(w.ctx, w.table("t", idOnly, append(with("PLAIN", "", "plain", "wrong"), "properties.default.api.timeout.ms", "500")...))
	if err == nil || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a wrong password: %v", err)
	}
}

func TestRetryable(t *testing.T) {
	for err, want := range map[error]bool{
		kerr.SaslAuthenticationFailed: false, kerr.TopicAuthorizationFailed: false, kerr.NotLeaderForPartition: true, io.EOF: true,
		context.DeadlineExceeded: true, &tlsError{err: x509.UnknownAuthorityError{}}: false,
	} {
		var e connector.Retryable
		if !errors.As(failed(err, "doing it"), &e) || e.Retryable() != want {
			t.Errorf("%v: want %t", err, want)
		}
	}
}
