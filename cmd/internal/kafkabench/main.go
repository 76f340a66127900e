package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if asked, err := runAsCeiling(); asked {
		if err != nil {
			fmt.Fprintln(os.Stderr, "kafkabench:", err)
			os.Exit(1)
		}
		return
	}
	b := &bench{out: os.Stdout, progress: os.Stderr}
	err := b.parse(os.Args[1:])
	if err == nil {
		err = b.run(ctx)
	}
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kafkabench:", err)
		os.Exit(1)
	}
}

// bench is what was asked for. Sizes are bytes, if not said otherwise.
type bench struct {
	out, progress io.Writer

	scenario    string
	systems     []string
	records     []int
	batches     []int
	partitions  []int
	repetitions int
	bytes       int64 // per repetition
	flushBytes  int64 // per repetition of kafka-flush, which is slow
	warmBytes   int64
	diskBytes   int64
	properties  string // of the producers, separated by commas
	consume     bool
	pin         bool

	// many and scan
	files    int
	clients  []string
	perBatch int // records of client prepared; 0: as a client would pack them
	buffered int
	scanners int
	rate     int // records/s
	seconds  int

	binary, dir, raw string
}

// parse reads the command line.
func (b *bench) parse(args []string) error {
	fl := flag.NewFlagSet("kafkabench", flag.ContinueOnError)
	fl.SetOutput(b.progress)
	fl.StringVar(&b.scenario, "scenario", "throughput", "throughput, many, scan, idle or restart")
	systems := fl.String("systems", "", "which systems, of millrace, millrace-os, kafka, kafka-flush, ceiling; none: those of the scenario")
	records := fl.String("records", "1000", "bytes of a record, separated by commas")
	batches := fl.String("batches", "16384,262144", "batch.size of the producer, separated by commas")
	partitions := fl.String("partitions", "12", "partitions of the topic, separated by commas; scenarios many and restart: of all topics of three each")
	fl.IntVar(&b.repetitions, "repetitions", 5, "repetitions of everything")
	fl.Int64Var(&b.bytes, "bytes", 4e9, "bytes of records per repetition; scenarios many and restart: of each number of partitions, in restart 120 MB if not given; scan: of old records")
	fl.Int64Var(&b.flushBytes, "flush-bytes", 64e6, "bytes per repetition of kafka-flush")
	fl.Int64Var(&b.warmBytes, "warm-bytes", 200e6, "bytes that warm a server up")
	fl.Int64Var(&b.diskBytes, "disk-bytes", 512<<20, "bytes that measure the disk, three times between two repetitions; 0: do not")
	fl.StringVar(&b.properties, "properties", "", "more properties of the producer, k=v separated by commas")
	fl.BoolVar(&b.consume, "consume", true, "consume what was produced")
	fl.BoolVar(&b.pin, "pin", false, "the server on processor 0, the client on the others")
	fl.IntVar(&b.files, "files", 20000, "limit of the server's open files, in scenario many")
	clients := fl.String("clients", clientFranz, "producers of scenario many: franz, or prepared, which sends what was encoded before")
	fl.IntVar(&b.perBatch, "batch-records", 0, "records in a batch of producer prepared; 0: what one in turn makes of 3,000, which is 1 for 3,000 partitions and more")
	fl.IntVar(&b.buffered, "buffered", 30000, "records that producer franz of scenario many has under way")
	fl.IntVar(&b.scanners, "scanners", 4, "readers of old records in scenario scan")
	fl.IntVar(&b.rate, "rate", 2000, "records per second of the producer in scenario scan")
	fl.IntVar(&b.seconds, "seconds", 20, "how long that producer runs")
	fl.StringVar(&b.binary, "millrace", "bin/millrace", "the binary")
	fl.StringVar(&b.dir, "dir", "", "where the servers have their data: a directory of the disk that counts; none: a temporary one")
	fl.StringVar(&b.raw, "raw", "", "append every measurement to this file, one line of JSON each")
	if err := fl.Parse(args); err != nil {
		return err
	}
	if fl.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", fl.Arg(0))
	}
	sized := false
	fl.Visit(func(f *flag.Flag) { sized = sized || f.Name == "bytes" })
	if b.scenario == "restart" && !sized {
		b.bytes = journalBytes
	}
	var err error
	if b.records, err = numbers("-records", *records, err); err != nil {
		return err
	}
	if b.batches, err = numbers("-batches", *batches, err); err != nil {
		return err
	}
	if b.partitions, err = numbers("-partitions", *partitions, err); err != nil {
		return err
	}
	if *systems != "" {
		b.systems = strings.Split(*systems, ",")
	}
	b.clients = strings.Split(*clients, ",")
	for _, c := range b.clients {
		if c != clientFranz && c != clientPrepared {
			return fmt.Errorf("-clients: %q is none of %s, %s", c, clientFranz, clientPrepared)
		}
	}
	for _, s := range b.systems {
		if !slices.Contains(allSystems(), s) {
			return fmt.Errorf("-systems: %q is none of %s", s, strings.Join(allSystems(), ", "))
		}
		if s == ceilingSystem && b.scenario != "throughput" {
			return fmt.Errorf("-systems: %s is for scenario throughput: it keeps nothing", s)
		}
	}
	for name, n := range map[string]int64{"repetitions": int64(b.repetitions), "bytes": b.bytes, "flush-bytes": b.flushBytes, "warm-bytes": b.warmBytes,
		"files": int64(b.files), "buffered": int64(b.buffered), "scanners": int64(b.scanners), "rate": int64(b.rate), "seconds": int64(b.seconds)} {
		if n < 1 {
			return fmt.Errorf("-%s: at least 1", name)
		}
	}
	if b.perBatch < 0 {
		return fmt.Errorf("-batch-records: at least 0")
	}
	if b.binary, err = filepath.Abs(b.binary); err != nil {
		return fmt.Errorf("finding the binary: %w", err)
	}
	return nil
}

// numbers reads positive numbers that are separated by commas.
func numbers(name, list string, err error) ([]int, error) {
	if err != nil {
		return nil, err
	}
	var out []int
	for _, s := range strings.Split(list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s: %q is no positive number", name, s)
		}
		out = append(out, n)
	}
	return out, nil
}

func (b *bench) run(ctx context.Context) error {
	if _, err := os.Stat(b.binary); err != nil {
		return fmt.Errorf("finding the binary (make build): %w", err)
	}
	dir, err := os.MkdirTemp(b.dir, "kafkabench-")
	if err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	defer os.RemoveAll(dir)
	b.dir = dir
	began := time.Now()
	switch b.scenario {
	case "throughput":
		err = b.throughput(ctx)
	case "many":
		err = b.many(ctx)
	case "scan":
		err = b.scan(ctx)
	case "idle":
		err = b.idle(ctx)
	case "restart":
		err = b.restart(ctx)
	default:
		return fmt.Errorf("-scenario: %q is none of throughput, many, scan, idle, restart", b.scenario)
	}
	b.say("%v in all", time.Since(began).Round(time.Second))
	return err
}

// choose gives the systems that were asked for, or else those of the scenario.
func (b *bench) choose(fallback ...string) []string {
	if len(b.systems) > 0 {
		return b.systems
	}
	return fallback
}

func (b *bench) say(format string, args ...any) {
	fmt.Fprintf(b.progress, format+"\n", args...)
}
