package redis

import (
	"errors"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/millrace/millrace/connectors/outbox"
	"github.com/millrace/millrace/runtime/connector"
)

// TestSlots: the check value of CRC-16/XMODEM, and keys of the specification of Redis
// Cluster: {user1000} decides, an empty {} does not.
func TestSlots(t *testing.T) {
	if s := slotOf([]byte("123456789")); s != 0x31c3 {
		t.Errorf("slot %#x, want 0x31c3", s)
	}
	if slotOf([]byte("{user1000}.following")) != slotOf([]byte("{user1000}.followers")) || slotOf([]byte("{user1000}.following")) != slotOf([]byte("user1000")) {
		t.Error("the text in braces does not decide")
	}
	if slotOf([]byte("foo{bar}{zap}")) != slotOf([]byte("bar")) || slotOf([]byte("foo{{bar}}zap")) != slotOf([]byte("{bar")) {
		t.Error("it is not the first text in braces")
	}
	if slotOf([]byte("foo{}{bar}")) == slotOf([]byte("bar")) {
		t.Error("an empty text in braces decides")
	}
	for slot, tag := range slotTags() {
		if got := slotOf([]byte("__millrace:{" + tag + "}:x")); int(got) != slot {
			t.Fatalf("tag %q of slot %d falls into %d", tag, slot, got)
		}
	}
}

// TestAnswersOfSlots: what one slot answers decides for the whole artefact, in this
// order: fenced, stop, once more, refused.
func TestAnswersOfSlots(t *testing.T) {
	answer := func(val any, err error) *goredis.Cmd {
		c := goredis.NewCmd(t.Context(), "eval")
		if err != nil {
			c.SetErr(err)
		} else {
			c.SetVal(val)
		}
		return c
	}
	fine, wrong := answer([]any{}, nil), answer([]any{"k", "WRONGTYPE Operation against a key"}, nil)
	full, moved := answer([]any{"k", "OOM command not allowed"}, nil), answer(nil, replyError("MOVED 1 h:1"))
	noperm, fenced := answer(nil, replyError("NOPERM this user")), answer(nil, replyError("MRFENCED 1:2:3:x"))
	var stop *outbox.StopError
	for name, x := range map[string]struct {
		cmds []*goredis.Cmd
		want func(error) bool
	}{
		"all done":              {[]*goredis.Cmd{fine, fine}, func(err error) bool { return err == nil }},
		"a key of another type": {[]*goredis.Cmd{fine, wrong}, func(err error) bool { return errors.Is(err, connector.ErrRefused) }},
		"another slot is not done": {[]*goredis.Cmd{wrong, moved}, func(err error) bool {
			return err != nil && !errors.Is(err, connector.ErrRefused) && !errors.As(err, &stop)
		}},
		"memory is full": {[]*goredis.Cmd{full, fine}, func(err error) bool {
			return err != nil && !errors.Is(err, connector.ErrRefused) && !errors.As(err, &stop)
		}},
		"a right is missing": {[]*goredis.Cmd{moved, noperm, wrong}, func(err error) bool { return errors.As(err, &stop) }},
		"fenced": {[]*goredis.Cmd{noperm, fenced}, func(err error) bool {
			return errors.Is(err, connector.ErrFenced) && strings.Contains(err.Error(), "epoch 3 of run 2 has written")
		}},
		"the connection broke": {[]*goredis.Cmd{fine, answer(nil, errors.New("EOF"))}, func(err error) bool {
			return err != nil && !errors.As(err, &stop)
		}},
	} {
		s := &clusterSender{wrong: newWrongKeys(time.Now), typ: typeHash}
		if err := s.judge(x.cmds, nil, outbox.Lane{}); !x.want(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
