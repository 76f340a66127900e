package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/millrace/millrace/connectors/conntest/services"
)

// Names of systems.
const (
	millrace   = "millrace"
	millraceOS = "millrace-os"
	kafka      = "kafka"
	kafkaFlush = "kafka-flush"

	ceilingSystem = "ceiling"
)

func allSystems() []string { return []string{millrace, millraceOS, kafka, kafkaFlush, ceilingSystem} }

// topicConfig is what makes a system of a server: the option of its topics.
func topicConfig(system string) (key, value string) {
	switch system {
	case millraceOS:
		return "millrace.durability", "os"
	case kafkaFlush:
		return "flush.messages", "1"
	}
	return "", ""
}

// server is a system that runs.
type server struct {
	*services.Process
	name, addr, dir string
	// again starts it again after Kill, without the arguments of the first time.
	again services.Command
}

// stopTime is how long a server may take to end in order.
const stopTime = time.Minute

// start starts a system on an empty directory, with a limit of open files where one
// is given. The arguments are for `millrace server`.
func (b *bench) start(ctx context.Context, system string, files int, args ...string) (*server, error) {
	dir, err := os.MkdirTemp(b.dir, system+"-")
	if err != nil {
		return nil, fmt.Errorf("making a directory: %w", err)
	}
	s := &server{name: system, dir: dir}
	switch system {
	case kafka, kafkaFlush:
		k, err := services.StartKafka(ctx, services.KafkaOptions{Dir: dir, JVM: []string{"-Xms1g", "-Xmx1g", "-XX:+UseG1GC"},
			Properties: map[string]string{"log.cleaner.dedupe.buffer.size": "134217728", "group.initial.rebalance.delay.ms": "3000"}}) // as by default
		if err != nil {
			return nil, err
		}
		s.Process, s.addr = k.Brokers[0].Process, k.Brokers[0].Addr
	default:
		ports, err := services.Ports(1)
		if err != nil {
			return nil, err
		}
		s.addr = fmt.Sprintf("127.0.0.1:%d", ports[0])
		if system == ceilingSystem {
			s.Process, err = startCeiling(ctx, s.addr, dir)
		} else {
			s.again = services.Command{Name: system, Dir: dir, Path: b.binary, Ready: services.AcceptsTCP(s.addr),
				Args: []string{"server", "--data", filepath.Join(dir, "data"), "--kafka", s.addr}}
			first := s.again
			first.Args = append(slices.Clone(first.Args), args...)
			s.Process, err = services.Launch(ctx, first)
		}
		if err != nil {
			return nil, err
		}
	}
	if files > 0 {
		limit := unix.Rlimit{Cur: uint64(files), Max: uint64(files)}
		if err := unix.Prlimit(s.Pid(), unix.RLIMIT_NOFILE, &limit, nil); err != nil {
			s.end(ctx)
			return nil, fmt.Errorf("limiting the open files of %s: %w", system, err)
		}
	}
	if b.pin {
		if err := pin(s.Pid(), 0); err != nil {
			s.end(ctx)
			return nil, err
		}
	}
	return s, nil
}

// pin puts every thread of a process on one processor; threads that it starts later
// follow.
func pin(pid, cpu int) error {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return fmt.Errorf("reading the server's threads: %w", err)
	}
	var set unix.CPUSet
	set.Set(cpu)
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(id, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("pinning the server: %w", err)
		}
	}
	return nil
}

// end stops the server, deletes its data and waits until the disk has done with it.
func (s *server) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	s.Stop(ctx)
	os.RemoveAll(s.dir)
	unix.Sync()
}

// cpu is the processor time that the server has used.
func (s *server) cpu() (time.Duration, error) {
	cpu, _, err := s.Usage()
	return cpu, err
}

// A server is at rest when it uses less than restShare of a processor for restTime;
// one that never is counts as it is after restLimit.
const (
	restTime  = time.Second
	restShare = 0.05
	restLimit = 30 * time.Second
)

// rested waits until the server has done what it put off, and returns the processor
// time that it has used by then.
func (s *server) rested(ctx context.Context) (time.Duration, error) {
	last, err := s.cpu()
	for limit := time.Now().Add(restLimit); err == nil && time.Now().Before(limit); {
		if err := wait(ctx, restTime); err != nil {
			return 0, err
		}
		var now time.Duration
		if now, err = s.cpu(); now-last < time.Duration(restShare*float64(restTime)) {
			return now, err
		}
		last = now
	}
	return last, err
}

// wait lets d pass.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// memory is the server's resident memory, now and at its highest, in bytes.
func (s *server) memory() (now, peak int64, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Pid()))
	if err != nil {
		return 0, 0, fmt.Errorf("measuring %s: %w", s.name, err)
	}
	return kibibytes(string(status), "VmRSS:") << 10, kibibytes(string(status), "VmHWM:") << 10, nil
}

// kibibytes finds "Name:   123 kB".
func kibibytes(status, name string) int64 {
	_, rest, _ := strings.Cut(status, name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[0], 10, 64)
	return n
}

// descriptors counts the files and connections that the server has open.
func (s *server) descriptors() (int, error) {
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.Pid()))
	if err != nil {
		return 0, fmt.Errorf("counting the files of %s: %w", s.name, err)
	}
	return len(fds), nil
}
