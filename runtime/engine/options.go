package engine

import (
	"fmt"
	"runtime"
	"strconv"
	"time"

	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/runtime/lane"
)

// Options are the job-wide keys that the engine reads (graph.Job.Options).
type Options struct {
	// Slots is how many slots there are; 0: one a processor.
	Slots int
	// SlotMemoryBytes and SlotOpenFiles are the budgets of one slot.
	SlotMemoryBytes int64
	SlotOpenFiles   int
	// Discovery is how often new partitions are looked for; 0: never.
	Discovery time.Duration
	// LedgerKeep is how long artefacts stay in the ledger after their commit.
	LedgerKeep time.Duration
	// StartRetry is how long the start waits for a table's server that is away.
	StartRetry time.Duration
	Lane       lane.Options
}

// Specs declares the options, for checking and documentation.
func Specs() []connector.Option {
	return []connector.Option{
		{Key: "slot.count", Type: connector.OptInt, Max: 1024, Doc: "Number of slots that the job's lanes share; by default one a processor."},
		{Key: "slot.memory", Type: connector.OptBytes, Default: "64 mb", Doc: "Memory for open files, a slot."},
		{Key: "slot.open-files", Type: connector.OptInt, Default: "512", Min: 1, Max: 1 << 20, Doc: "Open files, a slot; beyond it the oldest are sealed."},
		{Key: "source.monitor-interval", Type: connector.OptDuration, Default: "10 s", Doc: "How often new partitions are looked for; 0: never."},
		{Key: "ledger.keep", Type: connector.OptDuration, Default: "7 d", Doc: "How long an artefact stays in the ledger after its commit."},
		{Key: "start.retry-timeout", Type: connector.OptDuration, Default: "30 s", Doc: "How long the start waits for the server of a table that is away, before it ends with exit code 3."},
		{Key: "lane.detach-after", Type: connector.OptDuration, Default: "30 s", Doc: "A table that is blocked this long reads on its own until it has caught up, so that it does not hold its neighbours."},
		{Key: "lane.replay.max-bytes", Type: connector.OptBytes, Default: "256 mb", Doc: "Input that a lane reads again after a crash, at most; beyond it the oldest open files are sealed."},
		{Key: "lane.restart.min-delay", Type: connector.OptDuration, Default: "500 ms", Doc: "First pause before a failed lane tries again; it doubles."},
		{Key: "lane.restart.max-delay", Type: connector.OptDuration, Default: "60 s", Doc: "Longest pause before a failed lane tries again."},
		{Key: "lane.quarantine-after", Type: connector.OptInt, Default: "10", Min: 1, Max: 1 << 20, Doc: "Failed attempts in a row after which a lane is quarantined."},
		{Key: "lane.quarantine-for", Type: connector.OptDuration, Default: "10 min", Doc: "How long a quarantined lane rests."},
		{Key: "lane.linger", Type: connector.OptDuration, Default: "200 ms", Doc: "How long little input waits for more."},
	}
}

// ParseOptions reads the engine's keys out of a job's options; others are left
// to whom they belong.
func ParseOptions(set map[string]string) (Options, error) {
	p := optionParser{set: set}
	o := Options{
		Slots:           int(p.int("slot.count", int64(runtime.GOMAXPROCS(0)))),
		SlotMemoryBytes: p.bytes("slot.memory", 64<<20),
		SlotOpenFiles:   int(p.int("slot.open-files", 512)),
		Discovery:       p.duration("source.monitor-interval", 10*time.Second),
		LedgerKeep:      p.duration("ledger.keep", 7*24*time.Hour),
		StartRetry:      p.duration("start.retry-timeout", 30*time.Second),
		Lane: lane.Options{
			DetachAfter:     p.duration("lane.detach-after", 0),
			ReplayMaxBytes:  p.bytes("lane.replay.max-bytes", 0),
			RestartMin:      p.duration("lane.restart.min-delay", 0),
			RestartMax:      p.duration("lane.restart.max-delay", 0),
			QuarantineAfter: int(p.int("lane.quarantine-after", 0)),
			QuarantineFor:   p.duration("lane.quarantine-for", 0),
			Linger:          p.duration("lane.linger", 0),
			DeadMaxRate:     p.int("dead.max-rate", 0),
		},
	}
	if p.err == nil && o.Slots < 1 {
		o.Slots = runtime.GOMAXPROCS(0)
	}
	if _, ok := set["lane.linger"]; ok && o.Lane.Linger == 0 {
		o.Lane.Linger = -1 // 0 written out: do not wait at all
	}
	return o, p.err
}

type optionParser struct {
	set map[string]string
	err error
}

func (p *optionParser) fail(key string, err error) {
	if p.err == nil {
		p.err = &connector.OptionError{Key: key, OnValue: true, Message: fmt.Sprintf("%s: %v", key, err)}
	}
}

func (p *optionParser) int(key string, def int64) int64 {
	v, ok := p.set[key]
	if !ok {
		return def
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		p.fail(key, fmt.Errorf("%q is not an integer", v))
	}
	return n
}

func (p *optionParser) bytes(key string, def int64) int64 {
	v, ok := p.set[key]
	if !ok {
		return def
	}
	n, err := connector.ParseBytes(v)
	if err != nil {
		p.fail(key, err)
	}
	return n
}

func (p *optionParser) duration(key string, def time.Duration) time.Duration {
	v, ok := p.set[key]
	if !ok {
		return def
	}
	d, err := connector.ParseDuration(v)
	if err != nil {
		p.fail(key, err)
	}
	return d
}
