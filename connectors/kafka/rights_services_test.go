//go:build services

package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/millrace/millrace/connectors/conntest"
	"github.com/millrace/millrace/connectors/conntest/services"
	"github.com/millrace/millrace/connectors/format/csvfmt"
	"github.com/millrace/millrace/connectors/format/jsonfmt"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/authn"
)

// guarded is a broker with rules, at which alice logs in by PLAIN and bob by SCRAM; who
// does not log in may do everything.
type guarded struct {
	t     *testing.T
	ctx   context.Context
	k     *services.Kafka
	rules *Admin
}

func guardedBroker(t *testing.T, ctx context.Context) *guarded {
	t.Helper()
	const login = "listener.name.secured."
	k, err := services.StartKafka(ctx, services.KafkaOptions{Dir: t.TempDir(), Secured: "SASL_PLAINTEXT", Properties: quickly(map[string]string{
		login + "sasl.enabled.mechanisms":        "PLAIN,SCRAM-SHA-256",
		login + "plain.sasl.jaas.config":         `org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="wonderland";`,
		login + "scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"authorizer.class.name":                  "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users":                            "User:ANONYMOUS",
	})})
	check(t, err)
	t.Cleanup(k.Close)
	rules, err := NewAdmin(k.Addrs(), nil)
	check(t, err)
	t.Cleanup(rules.Close)
	check(t, rules.SetUser(ctx, "bob", "builder", []authn.Mechanism{authn.ScramSHA256}, 4096))
	return &guarded{t, ctx, k, rules}
}

// as are the options of a user who logs in.
func (g *guarded) as(mechanism, user, password string) []string {
	return []string{"properties.bootstrap.servers", g.k.SecuredAddrs(), "properties.security.protocol", "SASL_PLAINTEXT",
		"properties.sasl.mechanism", mechanism, "properties.sasl.username", user, "properties.sasl.password", password}
}

func (g *guarded) alice() []string { return g.as("PLAIN", "alice", "wonderland") }

// right is a rule that allows alice something.
func right(kind acl.ResourceType, name string, op acl.Operation) acl.Rule {
	return acl.Rule{Type: kind, Name: name, Pattern: acl.Literal, Principal: "User:alice", Host: "*", Operation: op, Permission: acl.Allow}
}

func (g *guarded) allow(rules ...acl.Rule) {
	g.t.Helper()
	check(g.t, g.rules.AddRules(g.ctx, rules))
	for _, r := range rules {
		g.heard(r, 1)
	}
}

func filterOf(r acl.Rule) acl.Filter {
	return acl.Filter{Type: r.Type, Name: &r.Name, Pattern: r.Pattern, Principal: &r.Principal, Host: &r.Host, Operation: r.Operation, Permission: r.Permission}
}

// heard waits until the broker goes by a rule, or does not any more.
func (g *guarded) heard(r acl.Rule, n int) {
	g.t.Helper()
	for {
		have, err := g.rules.Rules(g.ctx, filterOf(r))
		check(g.t, err)
		if len(have) == n {
			return
		}
	}
}

func (g *guarded) revoke(r acl.Rule) {
	g.t.Helper()
	gone, err := g.rules.RemoveRules(g.ctx, filterOf(r))
	check(g.t, err)
	g.heard(r, 0)
	if len(gone) != 1 {
		g.t.Fatalf("removed %v", gone)
	}
}

// refusedFor checks that an error stops a lane, and says what is needed.
func refusedFor(t *testing.T, err error, says ...string) {
	t.Helper()
	if err == nil || again(err) {
		t.Fatalf("the error is %v", err)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("the error is %v\nand does not say %q", err, s)
		}
	}
}

// world is a topic of the guarded broker; its own clients may do everything.
func (g *guarded) world(t *testing.T, with ...string) *sinkWorld {
	t.Helper()
	n := jobs.Add(1)
	w := &sinkWorld{world: &world{t: t, ctx: g.ctx, addrs: []string{g.k.Addrs()}, conn: New(jsonfmt.Format{}, csvfmt.Format{})},
		with: append(g.alice(), with...), out: fmt.Sprintf("out-%d", n), job: jobOf(n), patience: brokerPatience}
	w.client, w.admin = w.dial()
	w.topic(w.out, 1, nil)
	return w
}

// TestBrokerRights takes rights away at a real broker: what is missing is said before
// anything is read or written, with the resource, the operation and the command that gives
// it. A right that is revoked meanwhile stops reading and writing; given back, every row is
// there once.
func TestBrokerRights(t *testing.T) {
	ctx := faultContext(t)
	g := guardedBroker(t, ctx)
	const grant = "kafka-acls.sh --add --allow-principal 'User:alice' "
	onTopic := func(w *sinkWorld, ops ...acl.Operation) (out []acl.Rule) {
		for _, op := range ops {
			out = append(out, right(acl.Topic, w.out, op))
		}
		return out
	}
	open := func(w *sinkWorld, epoch uint64) (*sink, error) {
		o := conntest.OwnerOf(1, epoch)
		o.Job = w.job
		s, err := w.Open(ctx, o)
		if err != nil {
			return nil, err
		}
		t.Cleanup(func() { s.Close() })
		return s.(*sink), nil
	}

	t.Run("source", func(t *testing.T) {
		w := g.world(t, "properties.group.id", "mine", "scan.startup.mode", "group-offsets", "properties.default.api.timeout.ms", "10000")
		table := w.table(w.out, idOnly, w.with...)
		read := grant + "--operation Read --topic " + w.out
		_, err := w.conn.OpenSource(ctx, table)
		refusedFor(t, err, "topic "+w.out, "needs Read on topic "+w.out, read)
		g.allow(onTopic(w, acl.Describe)...)
		_, err = w.conn.OpenSource(ctx, table)
		refusedFor(t, err, "needs Read on topic "+w.out, read)
		g.allow(onTopic(w, acl.Read)...)
		s := w.source(table)
		parts, err := s.Partitions(ctx)
		check(t, err)
		_, err = s.Start(ctx, parts)
		refusedFor(t, err, "needs Read on group mine", grant+"--operation Read --group mine")
		g.allow(right(acl.Group, "mine", acl.Read))
		var from []connector.Position
		w.patiently(func() bool { // the broker makes its topic of offsets
			from, err = s.Start(ctx, parts)
			return !again(err)
		})
		check(t, err)

		w.put(w.out, 0, `{"id":1}`, `{"id":2}`)
		split := connector.Split{From: from[0], End: connector.Unbounded}
		f := w.openAt(s, nil, split)
		first, err := f.collect(2, 100, 1<<20, nil)
		check(t, err)
		g.revoke(onTopic(w, acl.Read)[0])
		w.put(w.out, 0, `{"id":3}`)
		// A Fetch that waits at the broker was allowed before, and may still bring the row.
		pending, err := f.collect(2, 100, 1<<20, nil)
		refusedFor(t, err, "needs Read on topic "+w.out, read)
		split.From.Offset = f.splits[0].next
		f.Close()
		g.allow(onTopic(w, acl.Read)...)
		w.put(w.out, 0, `{"id":4}`)
		rest, err := w.openAt(w.source(table), nil, split).collect(2-pending.rows(), 100, 1<<20, nil)
		check(t, err)
		if got := slices.Concat(first[0], pending[0], rest[0]); !slices.Equal(got, []string{"0:1", "1:2", "2:3", "3:4"}) {
			t.Errorf("read %v", got)
		}
	})

	t.Run("sink", func(t *testing.T) {
		w := g.world(t, "properties.default.api.timeout.ms", "10000")
		// What is missing is said in this order.
		_, err := open(w, 1)
		refusedFor(t, err, "needs Write and DescribeConfigs on topic "+w.out, grant+"--operation Write --operation DescribeConfigs --topic "+w.out)
		g.allow(onTopic(w, acl.Read)...)
		_, err = open(w, 1)
		refusedFor(t, err, "needs Write and DescribeConfigs on topic "+w.out)
		g.allow(onTopic(w, acl.Write, acl.DescribeConfigs)...)
		_, err = open(w, 1)
		refusedFor(t, err, "needs Create, Read, Write and DescribeConfigs on topic "+commitsTopic, "--topic "+commitsTopic)
		for _, op := range []acl.Operation{acl.Create, acl.Read, acl.Write, acl.DescribeConfigs} {
			g.allow(right(acl.Topic, commitsTopic, op))
		}
		_, err = open(w, 1)
		refusedFor(t, err, "needs Write and Describe on the transactional ids that start with 'sink.transactional-id-prefix'",
			grant+"--operation Write --operation Describe --transactional-id millrace --resource-pattern-type prefixed")
		id := right(acl.TransactionalID, "millrace", acl.Write)
		id.Pattern = acl.Prefixed
		g.allow(id)

		s, err := open(w, 1)
		check(t, err)
		a := w.attempt(1)
		wr, err := s.OpenWriter(ctx, a)
		check(t, err)
		as := []connector.Artifact{w.seal(wr, a, 0, conntest.Rows(0, 10)), w.seal(wr, a, 1, conntest.Rows(10, 10)), w.seal(wr, a, 2, conntest.Rows(20, 10))}
		check(t, s.Publish(ctx, as[:1])...)
		for i, r := range []acl.Rule{onTopic(w, acl.Write)[0], id} {
			g.revoke(r)
			err := s.Publish(ctx, as[i+1:i+2])[0]
			refusedFor(t, err, "the user needs Write", grant)
			if have := w.Visible(t); !slices.Equal(have, ids(0, int64(i+1)*10)) {
				t.Errorf("visible are %v", have)
			}
			g.allow(r)
			check(t, s.Publish(ctx, as[i+1:i+2])...)
			if have := w.visible(t, 10*(i+2)); !slices.Equal(have, ids(0, int64(i+2)*10)) {
				t.Errorf("visible are %v", have)
			}
		}
	})

	t.Run("sink at least once", func(t *testing.T) {
		// The right to write idempotently comes with that to write.
		w := g.world(t, "sink.delivery-guarantee", "at-least-once")
		g.allow(onTopic(w, acl.Write, acl.DescribeConfigs)...)
		s, err := open(w, 1)
		check(t, err)
		a := w.attempt(1)
		wr, err := s.OpenWriter(ctx, a)
		check(t, err)
		check(t, s.Publish(ctx, []connector.Artifact{w.seal(wr, a, 0, conntest.Rows(0, 10))})...)
		if have := w.visible(t, 10); !slices.Equal(have, ids(0, 10)) {
			t.Errorf("visible are %v", have)
		}
	})

	t.Run("logins", func(t *testing.T) {
		w := g.world(t, "properties.default.api.timeout.ms", "10000")
		_, err := w.conn.OpenSource(ctx, w.table(w.out, idOnly, g.as("PLAIN", "alice", "looking-glass")...))
		refusedFor(t, err, "user or password are wrong")
		_, err = w.conn.OpenSource(ctx, w.table(w.out, idOnly, g.as("SCRAM-SHA-256", "bob", "wonderland")...))
		refusedFor(t, err, "user or password are wrong")
		_, err = w.conn.OpenSource(ctx, w.table(w.out, idOnly, g.as("SCRAM-SHA-256", "bob", "builder")...))
		refusedFor(t, err, "'User:bob'", "needs Read on topic "+w.out)
		_, err = w.conn.OpenSource(ctx, w.table(w.out, idOnly, g.as("SCRAM-SHA-512", "bob", "builder")...))
		if !errors.Is(err, kerr.UnsupportedSaslMechanism) || again(err) {
			t.Errorf("a mechanism that the broker does not have: %v", err)
		}
	})
}
