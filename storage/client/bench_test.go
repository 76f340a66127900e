package client_test

import (
	"bufio"
	"context"
	"os"
	"syscall"
	"testing"

	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/record"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// events are the lines of the file named by MILLRACE_EVENTS, or made-up JSON of
// about 760 bytes.
func events(b *testing.B) [][]byte {
	var lines [][]byte
	if name := os.Getenv("MILLRACE_EVENTS"); name != "" {
		f, err := os.Open(name)
		check(b, err)
		defer f.Close()
		sc := bufio.NewScanner(f)
		sc.Buffer(nil, 1<<20)
		for sc.Scan() {
			if len(sc.Bytes()) <= 1090 {
				lines = append(lines, append([]byte(nil), sc.Bytes()...))
			}
		}
		check(b, sc.Err())
		return lines
	}
	for i := range 500 {
		line := []byte(`{"id":"` + string(rune('a'+i%26)) + `","payload":"`)
		for len(line) < 750 {
			line = append(line, byte('a'+(len(line)*7+i)%26))
		}
		lines = append(lines, append(line, `"}`...))
	}
	return lines
}

func cpuSeconds() float64 {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return float64(ru.Utime.Sec+ru.Stime.Sec) + float64(ru.Utime.Usec+ru.Stime.Usec)/1e6
}

// BenchmarkProduceFetch produces records in batches of 256 KiB, durably, and fetches
// them again.
func BenchmarkProduceFetch(b *testing.B) {
	lines := events(b)
	for _, codec := range []record.Codec{record.None, record.Snappy, record.LZ4, record.Zstd} {
		b.Run(codec.String(), func(b *testing.B) {
			ctx := context.Background()
			s, err := topiclog.Open(topiclog.Options{FS: vfs.NewOS(), Dir: b.TempDir(), ReserveBytes: -1, RetentionInterval: -1})
			check(b, err)
			c := client.New(s)
			tp := create(b, c, "t", 4, nil)
			p, err := c.NewProducer(client.ProducerOptions{Compression: codec, BatchBytes: 256 << 10})
			check(b, err)
			b.ResetTimer()
			cpu := cpuSeconds()
			bytes := 0
			for i := range b.N {
				v := lines[i%len(lines)]
				bytes += len(v)
				check(b, p.Produce(ctx, client.ProducerRecord{Topic: "t", Partition: int32(i / 64 % 4), Value: v}, nil))
			}
			check(b, p.Flush(ctx))
			produced := cpuSeconds()
			f := c.NewFetcher(client.FetcherOptions{})
			for _, part := range tp.Partitions {
				check(b, f.Add(part.ID, 0))
			}
			var d record.Decoder
			for got := 0; got < b.N; {
				x, err := f.Next(ctx)
				check(b, err)
				check(b, client.EachRecord(x.Lease, &d, 0, func(*record.Record) error { got++; return nil }))
				x.Release()
			}
			fetched := cpuSeconds()
			b.StopTimer()
			b.SetBytes(int64(bytes / b.N))
			b.ReportMetric((produced-cpu)/float64(b.N)*1e6, "produce-cpu-s/M")
			b.ReportMetric((fetched-produced)/float64(b.N)*1e6, "fetch-cpu-s/M")
			f.Close()
			check(b, p.Close(ctx))
			check(b, s.Close())
		})
	}
}
