package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestMain lets the scenarios start the ceiling's server out of the test's binary.
func TestMain(m *testing.M) {
	if asked, err := runAsCeiling(); asked {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestCeiling: a client writes to it and reads as many records as it has written, in the
// shape of its largest batch and without a gap.
func TestCeiling(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- serveCeiling(serving, l, t.TempDir()) }()
	s := &server{name: ceilingSystem, addr: l.Addr().String()}
	if err := createTopics(ctx, s, 3, "measured"); err != nil {
		t.Fatal(err)
	}
	// Each number is a batch of so many records; the largest is what readers get.
	for partition, batches := range map[int32][]int{0: {20, 7}, 1: {1, 3, 2, 400}} {
		c, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ManualFlushing())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range batches {
			for i := range n {
				c.Produce(ctx, &kgo.Record{Topic: "measured", Partition: partition, Value: fmt.Appendf(nil, "%d of %d", i, n)}, func(_ *kgo.Record, err error) {
					if err != nil {
						t.Errorf("partition %d: %v", partition, err)
					}
				})
			}
			if err := c.Flush(ctx); err != nil {
				t.Fatal(err)
			}
		}
		c.Close()
	}
	t.Run("ends", func(t *testing.T) {
		c, err := kgo.NewClient(kgo.SeedBrokers(s.addr))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		ends, err := kadm.NewClient(c).ListEndOffsets(ctx, "measured")
		if err != nil {
			t.Fatal(err)
		}
		// Of 406 records, whole batches of the 400 that the largest has.
		for partition, want := range map[int32]int64{0: 400, 1: 800, 2: 0} {
			if got, ok := ends.Lookup("measured", partition); !ok || got.Err != nil || got.Offset != want {
				t.Errorf("partition %d ends at %d, %v, want %d", partition, got.Offset, got.Err, want)
			}
		}
	})
	c, err := kgo.NewClient(kgo.SeedBrokers(s.addr), kgo.ConsumeTopics("measured"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	next := map[int32]int64{}
	for next[0] < 400 || next[1] < 800 {
		fetched := c.PollFetches(ctx)
		if err := fetched.Err(); err != nil {
			t.Fatal(err)
		}
		fetched.EachRecord(func(r *kgo.Record) {
			if want := fmt.Sprintf("%d of 400", r.Offset%400); r.Offset != next[r.Partition] || string(r.Value) != want {
				t.Fatalf("partition %d offset %d: %q, want %q at %d", r.Partition, r.Offset, r.Value, want, next[r.Partition])
			}
			next[r.Partition]++
		})
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("the server ended with %v", err)
	}
}
