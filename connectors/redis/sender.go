package redis

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/millrace/millrace/connectors/outbox"
	"github.com/millrace/millrace/runtime/connector"
)

// sender sends transactions to one server. It is safe for concurrent use.
type sender struct {
	client  goredis.UniversalClient
	request time.Duration
	wrong   *wrongKeys
	// typ is the table's data type, for messages.
	typ string
}

// Close implements outbox.Sender.
func (s *sender) Close() error { return s.client.Close() }

// Send implements outbox.Sender: the commands of a body in one transaction, which
// happens only if the fence is still as this process has read it. Invariant 9.
func (s *sender) Send(ctx context.Context, lane outbox.Lane, m *outbox.Message) error {
	ctx, cancel := context.WithTimeout(ctx, s.request)
	defer cancel()
	fence := fencePrefix + lane.Name
	const patience = 5
	for range patience {
		var cmds []goredis.Cmder
		err := s.client.Watch(ctx, func(tx *goredis.Tx) error {
			if err := checkFence(ctx, tx, fence, lane); err != nil {
				return err
			}
			var err error
			cmds, err = tx.TxPipelined(ctx, func(p goredis.Pipeliner) error {
				p.Set(ctx, fence, fenceValue(lane, m.ID), fenceLife)
				return commands(ctx, p, m)
			})
			return err
		}, fence)
		if errors.Is(err, goredis.TxFailedErr) {
			// Somebody wrote the fence in between: an earlier try of this very
			// artefact that arrived late, or another process. Look again.
			continue
		}
		return s.judge(err, cmds)
	}
	return fmt.Errorf("the fence key %s was changed by somebody else %d times while rows were sent", fence, patience)
}

// judge turns the outcome of a transaction into what becomes of the artefact.
func (s *sender) judge(err error, cmds []goredis.Cmder) error {
	if err == nil {
		return nil
	}
	worst := err
	found := false
	for _, c := range cmds {
		cerr := c.Err()
		if cerr == nil || codeOf(cerr) == "EXECABORT" {
			continue
		}
		switch classOf(cerr) {
		case classKey:
			if !s.wrong.add(c.Args()[1]) {
				return &outbox.StopError{Err: tooManyWrong(s.typ, c.Args()[1])}
			}
			if !found {
				worst = cerr
			}
		default:
			if !found {
				worst, found = fmt.Errorf("command %s: %w", c.Name(), cerr), true
			}
		}
	}
	switch classOf(worst) {
	case classKey:
		return fmt.Errorf("%w: %w", connector.ErrRefused, worst)
	case classStop:
		return &outbox.StopError{Err: explained(worst)}
	}
	return explained(worst)
}

// checkFence compares the fence with who sends.
func checkFence(ctx context.Context, tx *goredis.Tx, fence string, lane outbox.Lane) error {
	text, err := tx.Get(ctx, fence).Result()
	if errors.Is(err, goredis.Nil) {
		return nil
	}
	if err != nil {
		return err
	}
	run, epoch, ok := parseFence(text)
	switch {
	case !ok:
		return &outbox.StopError{Err: unknownFence("key "+fence, text)}
	case run > lane.JobEpoch || run == lane.JobEpoch && epoch > lane.Epoch:
		return fencedBy(run, epoch, lane)
	}
	return nil
}

// commands adds the commands of a body to a transaction. Arguments alias the body.
func commands(ctx context.Context, p goredis.Pipeliner, m *outbox.Message) error {
	return eachCommand(m, func(args []any) {
		// The library wants names as text.
		args[0] = string(args[0].([]byte))
		_ = p.Process(ctx, goredis.NewCmd(ctx, args...))
	})
}

// eachCommand calls add with each command of a body: its name and its key, at least.
func eachCommand(m *outbox.Message, add func(args []any)) error {
	b := m.Body
	damaged := func() error { return fmt.Errorf("the sealed file of %s is damaged: its commands end early", m.ID) }
	take := func() (uint64, bool) {
		x, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, false
		}
		b = b[n:]
		return x, true
	}
	units := int64(0)
	for ; len(b) > 0; units++ {
		n, ok := take()
		if !ok || n < 2 || n > uint64(len(b)) {
			return damaged()
		}
		args := make([]any, n)
		for i := range args {
			length, ok := take()
			if !ok || length > uint64(len(b)) {
				return damaged()
			}
			args[i] = b[:length:length]
			b = b[length:]
		}
		add(args)
	}
	if units != m.Units {
		return fmt.Errorf("the sealed file of %s has %d commands instead of %d", m.ID, units, m.Units)
	}
	return nil
}
