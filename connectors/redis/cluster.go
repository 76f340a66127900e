package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/millrace/millrace/connectors/outbox"
	"github.com/millrace/millrace/runtime/connector"
)

// A cluster has transactions within a slot alone: an artefact is sent as one script for
// each slot that its keys fall into, all in one pipeline for each node. Each script
// compares the fence of the lane in its slot, sets it and runs the commands, at once or
// not at all. What is sent again sets the same values again.

// clusterFenceLife is how long a fence of a slot outlives its last use: longer than a
// request can be under way, and short, since there are many.
const clusterFenceLife = time.Hour

// codeFenced and codeFence begin the script's own errors.
const (
	codeFenced = "MRFENCED"
	codeFence  = "MRFENCE"
)

// script takes the fence and then each command's key as its keys: while a slot moves, a
// node says of a script which of its keys are elsewhere, and of what the script does not
// name it knows nothing. Its arguments are job epoch, lane epoch, id and life of the fence
// in seconds, then each command as a count, its name and what follows the key. It gives
// key and error, one after the other, of each command that failed.
const script = `local f = redis.call('GET', KEYS[1])
if f then
  local j, e = string.match(f, '^1:(%d+):(%d+):')
  if not j then return redis.error_reply('` + codeFence + ` ' .. f) end
  local dj, de = tonumber(j) - tonumber(ARGV[1]), tonumber(e) - tonumber(ARGV[2])
  if dj > 0 or dj == 0 and de > 0 then return redis.error_reply('` + codeFenced + ` ' .. f) end
end
local s = redis.pcall('SET', KEYS[1], '1:' .. ARGV[1] .. ':' .. ARGV[2] .. ':' .. ARGV[3], 'EX', ARGV[4])
if s.err then return s end
local bad, i = {}, 5
for k = 2, #KEYS do
  local n = tonumber(ARGV[i])
  local r = redis.pcall(ARGV[i + 1], KEYS[k], unpack(ARGV, i + 2, i + n))
  if type(r) == 'table' and r.err then
    bad[#bad + 1] = KEYS[k]
    bad[#bad + 1] = r.err
  end
  i = i + n + 1
end
return bad`

// clusterSender sends artefacts to a cluster. It is safe for concurrent use.
type clusterSender struct {
	client  *goredis.ClusterClient
	request time.Duration
	wrong   *wrongKeys
	typ     string
	tags    []string // by slot
}

// Close implements outbox.Sender.
func (s *clusterSender) Close() error { return s.client.Close() }

// Send implements outbox.Sender.
func (s *clusterSender) Send(ctx context.Context, lane outbox.Lane, m *outbox.Message) error {
	ctx, cancel := context.WithTimeout(ctx, s.request)
	defer cancel()
	type unit struct {
		keys []string
		args []any
	}
	at := map[uint16]int{}
	var units []unit
	head := []any{lane.JobEpoch, lane.Epoch, m.ID, int64(clusterFenceLife / time.Second)}
	err := eachCommand(m, func(args []any) {
		key := args[1].([]byte)
		slot := slotOf(key)
		i, ok := at[slot]
		if !ok {
			i = len(units)
			at[slot] = i
			units = append(units, unit{[]string{fencePrefix + "{" + s.tags[slot] + "}:" + lane.Name}, append([]any(nil), head...)})
		}
		u := &units[i]
		u.keys = append(u.keys, string(key))
		u.args = append(append(u.args, len(args)-1, args[0]), args[2:]...)
	})
	if err != nil {
		return err
	}
	p := s.client.Pipeline()
	cmds := make([]*goredis.Cmd, len(units))
	for i, u := range units {
		cmds[i] = p.Eval(ctx, script, u.keys, u.args...)
	}
	_, whole := p.Exec(ctx)
	return s.judge(cmds, whole, lane)
}

// judge turns the answers of scripts into what becomes of the artefact. Whoever is
// fenced sends nothing more; an outcome that is not known is found out by sending again;
// a key that refuses is a matter of its row when everything else is done.
func (s *clusterSender) judge(cmds []*goredis.Cmd, whole error, lane outbox.Lane) error {
	var again, stop, refused error
	for _, c := range cmds {
		err := c.Err()
		switch code := codeOf(err); {
		case err == nil:
		case code == codeFenced:
			run, epoch, _ := parseFence(strings.TrimPrefix(err.Error(), codeFenced+" "))
			return fencedBy(run, epoch, lane)
		case code == codeFence:
			stop = unknownFence("a fence key of lane "+lane.Name, strings.TrimPrefix(err.Error(), codeFence+" "))
			continue
		case classInCluster(err) == classStop:
			stop = explained(err)
			continue
		default:
			again = explained(err)
			continue
		}
		bad, err := c.StringSlice()
		if err != nil || len(bad)%2 != 0 {
			return fmt.Errorf("BUG: the script answers %v", c.Val())
		}
		for i := 0; i < len(bad); i += 2 {
			cerr := replyError(bad[i+1])
			switch classInCluster(cerr) {
			case classKey:
				if !s.wrong.add([]byte(bad[i])) {
					stop = tooManyWrong(s.typ, bad[i])
				}
				refused = cerr
			case classStop:
				stop = explained(cerr)
			default:
				again = explained(cerr)
			}
		}
	}
	switch {
	case stop != nil:
		return &outbox.StopError{Err: stop}
	case again != nil:
		return again
	case whole != nil && !errors.Is(whole, goredis.Nil):
		return explained(whole)
	case refused != nil:
		return fmt.Errorf("%w: %w", connector.ErrRefused, refused)
	}
	return nil
}

// replyError is the text of an error that a command within a script gave.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError makes it an error of the server, goredis.Error.
func (e replyError) RedisError() {}

// classInCluster is classOf in a cluster, whose nodes change and slots move.
func classInCluster(err error) class {
	switch codeOf(err) {
	case "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN":
		return classRetry
	}
	return classOf(err)
}
