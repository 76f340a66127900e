//go:build services

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestKafkasAccessTools: users, access rules and quotas by Kafka's tools, of an
// administrator who logs in.
func TestKafkasAccessTools(t *testing.T) {
	w := newWorld(t)
	w.run("users", "create", "admin", "--mechanism", "SCRAM-SHA-512", "--password-file", w.file("admin.pw", "sesame\n")).must(t, 0)
	w.run("topics", "create", "a").must(t, 0)
	server, addr := w.server("--kafka-sasl", "SCRAM-SHA-512", "--super-user", "admin")
	login := w.file("login.properties", "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"+
		`sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="admin" password="sesame";`+"\n")
	const aclCommand = "org.apache.kafka.tools.AclCommand"
	runTools(t, server, []string{"--bootstrap-server", addr, "--command-config", login}, []toolStep{
		{what: "make a user", class: configCommand, args: []string{"--alter", "--entity-type", "users", "--entity-name", "ann", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=open]"}, want: []string{"Completed updating config for user ann."}},
		{what: "give a quota", class: configCommand, args: []string{"--alter", "--entity-type", "users", "--entity-name", "ann", "--add-config", "producer_byte_rate=1000000"}, want: []string{"Completed updating config for user ann."}},
		{what: "describe the user", class: configCommand, args: []string{"--describe", "--entity-type", "users", "--entity-name", "ann"}, want: []string{"producer_byte_rate=1000000.0", "SCRAM-SHA-512=iterations=8192"}},
		{what: "allow a producer", class: aclCommand, args: []string{"--add", "--producer", "--idempotent", "--transactional-id", "tx", "--allow-principal", "User:ann", "--topic", "a", "--resource-pattern-type", "prefixed"},
			want: []string{"operation=IDEMPOTENT_WRITE", "operation=WRITE", "operation=CREATE"}},
		{what: "list the rules", class: aclCommand, args: []string{"--list", "--principal", "User:ann"}, want: []string{"resourceType=TOPIC, name=a, patternType=PREFIXED", "(principal=User:ann, host=*, operation=WRITE, permissionType=ALLOW)"}},
	})
	ann := w.file("ann.properties", "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"+
		`sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password="open";`+"\n")
	tool(t, "one\ntwo\n", consoleProducer, "--bootstrap-server", addr, "--command-config", ann, "--topic", "a")
	if got := len(w.consume("a")); got != 2 {
		t.Errorf("the user who was made produced %d records, want 2", got)
	}
	out := tool(t, "", aclCommand, "--bootstrap-server", addr, "--command-config", login, "--remove", "--force", "--topic", "a", "--resource-pattern-type", "prefixed")
	if left := w.run("acls", "ls", "--topic", "a").must(t, 0).stdout; strings.Contains(left, "ann") {
		t.Errorf("rules of the topic are left:\n%s\nthe tool said\n%s", left, out)
	}
}

// TestKafkasTransactionsCommand: a transaction that its producer left open is found
// and aborted by Kafka's tool.
func TestKafkasTransactionsCommand(t *testing.T) {
	w := newWorld(t)
	w.run("topics", "create", "t", "--partitions", "1").must(t, 0)
	server, addr := w.server()
	ctx, cancel := context.WithTimeout(context.Background(), javaPatience)
	defer cancel()
	c, err := kgo.NewClient(kgo.SeedBrokers(addr), kgo.TransactionalID("left"), kgo.DefaultProduceTopic("t"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	if err := c.ProduceSync(ctx, kgo.StringRecord("x")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	id, _, err := c.ProducerID(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const class = "org.apache.kafka.tools.TransactionsCommand"
	runTools(t, server, []string{"--bootstrap-server", addr}, []toolStep{
		{what: "list", class: class, args: []string{"list"}, want: []string{"left", "Ongoing"}},
		{what: "describe", class: class, args: []string{"describe", "--transactional-id", "left"}, want: []string{"Ongoing", "t-0"}},
		{what: "describe the producers", class: class, args: []string{"describe-producers", "--topic", "t", "--partition", "0"}, want: []string{fmt.Sprint(id)}},
		{what: "abort", class: class, args: []string{"abort", "--topic", "t", "--partition", "0", "--start-offset", "0"}},
	})
	stable, err := kadm.NewClient(c).ListCommittedOffsets(ctx, "t")
	if err != nil {
		t.Fatal(err)
	}
	if o, _ := stable.Lookup("t", 0); o.Offset != 2 {
		t.Errorf("the last stable offset is %d, want 2: after the record and its marker", o.Offset)
	}
}
