package kafkaproto_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/millrace/millrace/storage/authn"
	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/record"
)

// flood opens attempts connections, at most atOnce at a time, and asks a question
// on each. It returns how many were answered and how many were closed.
func flood(t *testing.T, addr string, attempts, atOnce int) (served, refused int64) {
	t.Helper()
	ask := frame(kmsg.NewPtrApiVersionsRequest(), 0)
	var ok, no, failed atomic.Int64
	var wg sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for range attempts {
		turns <- struct{}{}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer func() { <-turns }()
			c, err := net.DialTimeout("tcp", addr, 20*time.Second)
			if err != nil {
				failed.Add(1)
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(20 * time.Second))
			_, werr := c.Write(ask)
			var size [4]byte
			_, rerr := io.ReadFull(c, size[:])
			var timeout net.Error
			switch {
			case rerr == nil:
				ok.Add(1)
			case errors.As(rerr, &timeout) && timeout.Timeout():
				failed.Add(1)
			default:
				no.Add(1) // closed or reset at once
			}
			_ = werr // what counts is whether an answer came
		}()
	}
	wg.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d of %d attempts were neither answered nor refused", n, attempts)
	}
	return ok.Load(), no.Load()
}

// TestConnectionFlood: many more connections than there is room for are refused at
// once, those that are open go on, and memory does not grow. MILLRACE_TORTURE
// makes it 100,000.
func TestConnectionFlood(t *testing.T) {
	attempts, atOnce, room := 3000, 300, 100
	if os.Getenv("MILLRACE_TORTURE") != "" {
		attempts, atOnce, room = 100_000, 8000, 4000
	}
	var log syncBuffer
	r := start(t, kafkaproto.Options{MaxConnections: room, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	mine := r.dial(t)
	ask[*kmsg.ApiVersionsResponse](t, mine, kmsg.NewPtrApiVersionsRequest(), 0)
	// All but one of the places are taken by clients that say nothing.
	var quiet []net.Conn
	for range room - 2 {
		quiet = append(quiet, r.dial(t))
	}
	waitFor(t, "the quiet ones are in", func() bool { return r.server.Connections() >= room-1 })
	before := heap()
	served, refused := flood(t, r.addr, attempts, atOnce)
	t.Logf("%d served, %d refused", served, refused)
	if served+refused != int64(attempts) || refused == 0 || served == 0 {
		t.Errorf("%d served and %d refused of %d", served, refused, attempts)
	}
	if grown := heap() - before; grown > 8<<20 {
		t.Errorf("memory has grown by %d bytes", grown)
	}
	ask[*kmsg.ApiVersionsResponse](t, mine, kmsg.NewPtrApiVersionsRequest(), 0)
	for _, c := range quiet {
		c.Close()
	}
	waitFor(t, "there is room again", func() bool { return r.server.Connections() <= 1 })
	ask[*kmsg.ApiVersionsResponse](t, r.dial(t), kmsg.NewPtrApiVersionsRequest(), 0)
	if n := strings.Count(log.String(), "connections refused"); n < 1 || n > 20 {
		t.Errorf("%d lines in the log about %d refusals", n, refused)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// waitFor polls a condition that nothing signals.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("waited too long until %s", what)
		}
	}
}

func TestConnectionsPerAddress(t *testing.T) {
	r := start(t, kafkaproto.Options{MaxConnectionsPerAddress: 2})
	first, second := r.dial(t), r.dial(t)
	for _, c := range []net.Conn{first, second} {
		ask[*kmsg.ApiVersionsResponse](t, c, kmsg.NewPtrApiVersionsRequest(), 0)
	}
	closedByServer(t, r.dial(t))
	other := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: 10 * time.Second})
	c, err := other.DialContext(context.Background(), "tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	ask[*kmsg.ApiVersionsResponse](t, c, kmsg.NewPtrApiVersionsRequest(), 0)
	first.Close()
	waitFor(t, "the place is free", func() bool { return r.server.Connections() == 2 })
	ask[*kmsg.ApiVersionsResponse](t, r.dial(t), kmsg.NewPtrApiVersionsRequest(), 0)
}

// TestHalfOpenClients: who does not get on with its login, or with a request, is
// cut off; who has logged in may be quiet.
func TestHalfOpenClients(t *testing.T) {
	a := newAccess(t)
	addUser(t, a, "ann", "ann-secret", authn.Plain)
	r := start(t, kafkaproto.Options{LoginTimeout: 300 * time.Millisecond, RequestTimeout: 300 * time.Millisecond,
		Security: kafkaproto.Security{Access: a, Mechanisms: []authn.Mechanism{authn.Plain}}})
	in := r.dial(t)
	login(t, in, "ann", "ann-secret")
	silent, half, shaken := r.dial(t), r.dial(t), r.dial(t)
	if _, err := half.Write([]byte{0, 0, 0, 20, 0, 18}); err != nil {
		t.Fatal(err)
	}
	hs := kmsg.NewPtrSASLHandshakeRequest()
	hs.Mechanism = "PLAIN"
	ask[*kmsg.SASLHandshakeResponse](t, shaken, hs, 1)
	for _, c := range []net.Conn{silent, half, shaken} {
		closedByServer(t, c)
	}
	ask[*kmsg.MetadataResponse](t, in, kmsg.NewPtrMetadataRequest(), 1)
	if _, err := in.Write([]byte{0, 0, 1, 0, 0, 3, 0, 1, 0, 0, 0, 1, 0, 0}); err != nil {
		t.Fatal(err)
	}
	closedByServer(t, in)
}

// TestStrangersTakeNothingAway: requests that are announced and never come do not
// keep those who are logged in from being served.
func TestStrangersTakeNothingAway(t *testing.T) {
	r, _ := secured(t, kafkaproto.Options{MaxInFlightBytes: 1 << 20})
	head := binary.BigEndian.AppendUint32(nil, 60<<10)
	head = append(head, 0, 18, 0, 0, 0, 0, 0, 1)
	for range 300 {
		c := r.dial(t)
		if _, err := c.Write(head); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	client := r.client(t, by512("admin", "admin-secret"))
	// Then many small ones, which fill what is left of the strangers' budget.
	small := append(binary.BigEndian.AppendUint32(nil, 5<<10), 0, 18, 0, 0, 0, 0, 0, 1)
	for range 30 {
		if _, err := r.dial(t).Write(small); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.Request(ctxOf(t), kmsg.NewPtrMetadataRequest()); err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(began); waited > 8*time.Second {
		t.Errorf("the login took %v: it waited until the strangers were cut off", waited)
	}
}

// TestCompressedBombs: a few bytes that unpack to very many are refused, and do not
// fill the memory on the way.
func TestCompressedBombs(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	topic := r.topic(t, "t", 1, map[string]string{"max.message.bytes": "104857600"})
	zeros := make([]byte, 70<<20) // above the bound of 64 MiB
	for _, codec := range []record.Codec{record.Gzip, record.Snappy, record.LZ4, record.Zstd} {
		b := record.Builder{Codec: codec}
		if err := b.Append(1, nil, zeros, nil); err != nil {
			t.Fatal(err)
		}
		bomb, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		bomb = bytes.Clone(bomb)
		runtime.GC()
		resp := ask[*kmsg.ProduceResponse](t, r.dial(t), produceRequest(topic, -1, bomb), 9)
		if code := resp.Topics[0].Partitions[0].ErrorCode; code == 0 {
			t.Errorf("%v: %d bytes that unpack to %d were taken", codec, len(bomb), len(zeros))
		} else {
			t.Logf("%v: %d bytes, code %d", codec, len(bomb), code)
		}
	}
}

// TestLongLists: a list that claims more than its request holds closes its
// connection, before memory is taken for it.
func TestLongLists(t *testing.T) {
	r := start(t, kafkaproto.Options{})
	other := r.dial(t)
	for _, a := range kafkaproto.Supported() {
		for _, claim := range []uint32{0x7fffffff, 0xfffffffe, 0x00ffffff} {
			t.Run(fmt.Sprintf("%d-%x", a.Key, claim), func(t *testing.T) {
				body := []byte{0, 0, 0, 0, 0, byte(a.Key), 0, byte(a.Min), 0, 0, 0, 7, 0, 0}
				for range 16 {
					body = binary.BigEndian.AppendUint32(body, claim)
				}
				binary.BigEndian.PutUint32(body, uint32(len(body)-4))
				c := r.dial(t)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				if _, err := c.Write(body); err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, io.LimitReader(c, 4)) // an answer's length, or the end
				runtime.ReadMemStats(&after)
				if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
					t.Errorf("%d bytes were allocated for a request of %d", used, len(body))
				}
			})
		}
	}
	ask[*kmsg.ApiVersionsResponse](t, other, kmsg.NewPtrApiVersionsRequest(), 0)
}
