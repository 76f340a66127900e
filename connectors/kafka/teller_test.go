package kafka

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/runtime/connector"
)

func (w *world) told(topic string) (out []string) {
	w.t.Helper()
	for _, r := range w.committed(topic) {
		out = append(out, string(r.Key)+"="+string(r.Value))
	}
	slices.Sort(out)
	return out
}

// TestTeller: the topic is made where there is none, also when it was deleted meanwhile;
// keys lie where Kafka's own producer puts them.
func TestTeller(t *testing.T) {
	w := newWorld(t)
	cluster := map[string]string{"bootstrap.servers": strings.Join(w.brokers(), ","), "default.api.timeout.ms": "5000"}
	teller, err := NewTeller(w.ctx, "ready", cluster)
	check(t, err, teller.Tell(w.ctx, "a", []byte("1")), teller.Tell(w.ctx, "b", []byte("2")))
	if have := w.told("ready"); !slices.Equal(have, []string{"a=1", "b=2"}) {
		t.Errorf("told %v", have)
	}
	_, err = w.admin.DeleteTopics(w.ctx, "ready")
	check(t, err)
	w.patientlyTell(teller, "c", "3")
	if have := w.told("ready"); !slices.Equal(have, []string{"c=3"}) {
		t.Errorf("told %v", have)
	}
	// Three partitions: murmur2 of "a" and "b" modulo 3, by Kafka's DefaultPartitioner.
	w.topic("three", 3, nil)
	teller, err = NewTeller(w.ctx, "three", cluster)
	check(t, err)
	for range 3 {
		check(t, teller.Tell(w.ctx, "a", nil), teller.Tell(w.ctx, "b", nil))
	}
	places := map[string]map[int32]bool{}
	for _, r := range w.committed("three") {
		if places[string(r.Key)] == nil {
			places[string(r.Key)] = map[int32]bool{}
		}
		places[string(r.Key)][r.Partition] = true
	}
	if len(places["a"]) != 1 || len(places["b"]) != 1 {
		t.Errorf("the keys lie in %v", places)
	}
}

// patientlyTell tells until it is told.
func (w *world) patientlyTell(teller *Teller, key, value string) {
	w.t.Helper()
	err := teller.Tell(w.ctx, key, []byte(value))
	for err != nil && w.ctx.Err() == nil {
		err = teller.Tell(w.ctx, key, []byte(value))
	}
	check(w.t, err)
}

// TestTellerFaults: an answer that is lost leaves one record, since the producer is
// idempotent; a missing right is said at the start, and a wrong property by its name.
func TestTellerFaults(t *testing.T) {
	w := newWorld(t)
	cluster := map[string]string{"bootstrap.servers": strings.Join(w.brokers(), ","), "default.api.timeout.ms": "5000"}
	teller, err := NewTeller(w.ctx, "ready", cluster)
	check(t, err)
	lost := 0
	w.cluster.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		lost++
		return nil, errors.New("hang up"), true
	})
	check(t, teller.Tell(w.ctx, "a", []byte("1")))
	if have := w.told("ready"); lost != 1 || !slices.Equal(have, []string{"a=1"}) {
		t.Errorf("%d requests were lost, told %v", lost, have)
	}
	w.cluster.ControlKey(int16(kmsg.Produce), func(req kmsg.Request) (kmsg.Response, error, bool) {
		return producedWith(req.(*kmsg.ProduceRequest), kerr.TopicAuthorizationFailed), nil, true
	})
	err = teller.Tell(w.ctx, "a", []byte("1"))
	if again(err) || !strings.Contains(err.Error(), "the user needs Write on topic ready: kafka-acls.sh") {
		t.Errorf("without the right: %v", err)
	}
	for _, x := range []struct {
		key, value, says string
	}{{"bootstrap.server", "h:1", "bootstrap.server"}, {"security.protocol", "TLS", "security.protocol"}, {"sasl.username", "u", "sasl.username"}} {
		_, err := NewTeller(w.ctx, "ready", map[string]string{"bootstrap.servers": "127.0.0.1:1", x.key: x.value})
		var option *connector.OptionError
		if !errors.As(err, &option) || option.Key != x.says {
			t.Errorf("%s = %s: %v", x.key, x.value, err)
		}
	}
}

// TestTellerOfABrokerThatIsAway: the job starts, and its first message waits.
func TestTellerOfABrokerThatIsAway(t *testing.T) {
	w := newWorld(t, kfake.NumBrokers(1))
	var down atomic.Bool
	down.Store(true)
	w.cluster.Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		w.cluster.KeepControl()
		return nil, errors.New("hang up"), down.Load()
	})
	teller, err := NewTeller(w.ctx, "ready", map[string]string{"bootstrap.servers": strings.Join(w.brokers(), ","), "default.api.timeout.ms": "1000"})
	check(t, err)
	if err := teller.Tell(w.ctx, "a", []byte("1")); !again(err) {
		t.Fatalf("telling while nobody answers: %v", err)
	}
	down.Store(false)
	w.patientlyTell(teller, "a", "1")
	if have := w.told("ready"); !slices.Equal(have, []string{"a=1"}) {
		t.Errorf("told %v", have)
	}
}
