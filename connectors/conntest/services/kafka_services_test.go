//go:build services

package services

import (
	"context"
	"strings"
	"testing"
	"time"
)

// The broker comes up, keeps what it was given over SIGKILL, and its own tools work.
func TestKafkaBroker(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	k, err := StartKafka(ctx, KafkaOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if _, err := KafkaTool(ctx, strings.NewReader("one\ntwo\n"), "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", k.Addrs(), "--topic", "t"); err != nil {
		t.Fatal(err)
	}
	k.Brokers[0].Kill()
	if err := k.Brokers[0].Start(ctx); err != nil {
		t.Fatal(err)
	}
	out, err := KafkaTool(ctx, nil, "org.apache.kafka.tools.consumer.ConsoleConsumer", "--bootstrap-server", k.Addrs(), "--topic", "t", "--from-beginning", "--max-messages", "2", "--timeout-ms", "30000")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(out); len(got) != 2 || got[0] != "one" || got[1] != "two" {
		t.Fatalf("consumed %q", got)
	}
}
