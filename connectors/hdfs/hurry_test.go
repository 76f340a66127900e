package hdfs

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/millrace/millrace/storage/vfs"
)

// TestHurryEndsTries: a cluster that refuses connections is asked no more as soon
// as somebody is in a hurry.
func TestHurryEndsTries(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	f := Open(Config{Authority: addr, Addresses: []string{addr}, User: "u", RPCTimeout: time.Hour, RetryTimeout: time.Hour}, vfs.NewMem())
	defer f.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := f.Stat("/a")
		ended <- err
	}()
	f.Hurry()
	wantAway(t, ended)
}

// TestHurryEndsSilence: a NameNode that took the connection and says nothing is
// given up, whatever 'hdfs.rpc-timeout' is.
func TestHurryEndsSilence(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := make(chan net.Conn, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(taken)
				return
			}
			taken <- c
		}
	}()
	addr := l.Addr().String()
	f := Open(Config{Authority: addr, Addresses: []string{addr}, User: "u", RPCTimeout: time.Hour, RetryTimeout: time.Hour}, vfs.NewMem())
	defer f.Close()
	ended := make(chan error, 1)
	go func() {
		_, err := f.Stat("/a")
		ended <- err
	}()
	c := <-taken
	defer c.Close()
	f.Hurry()
	wantAway(t, ended)
}

func wantAway(t *testing.T, ended chan error) {
	t.Helper()
	select {
	case err := <-ended:
		var e *Error
		if !errors.As(err, &e) || !e.Away() {
			t.Fatalf("got %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it still waits")
	}
}
