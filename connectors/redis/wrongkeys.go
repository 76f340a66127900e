package redis

import (
	"fmt"
	"sync"
	"time"
)

const (
	maxWrongKeys = 10_000
	// wrongKeyLife is how long a key is taken for one of another type before it is
	// tried again: long enough for refused rows to be read again.
	wrongKeyLife = 10 * time.Minute
)

// wrongKeys are keys that a transaction found to hold another type. Rows for them
// are refused. Safe for concurrent use.
type wrongKeys struct {
	now func() time.Time

	mu    sync.Mutex
	until map[string]time.Time
}

func newWrongKeys(now func() time.Time) *wrongKeys {
	return &wrongKeys{now: now, until: map[string]time.Time{}}
}

// add remembers a key, an argument of a command; false when there are too many.
func (w *wrongKeys) add(key any) bool {
	k, ok := key.([]byte)
	if !ok {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expire()
	if _, have := w.until[string(k)]; !have && len(w.until) >= maxWrongKeys {
		return false
	}
	w.until[string(k)] = w.now().Add(wrongKeyLife)
	return true
}

// tooManyWrong is what a person has to look at when add is false.
func tooManyWrong(typ string, last any) error {
	return fmt.Errorf("more than %d keys hold other types than %s, the last one %q: check '%s' and '%s', then resume", maxWrongKeys, typ, last, keyKey, keyType)
}

func (w *wrongKeys) expire() {
	now := w.now()
	for k, t := range w.until {
		if now.After(t) {
			delete(w.until, k)
		}
	}
}

// any reports that there are keys to look for.
func (w *wrongKeys) any() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.until) > 0 {
		w.expire()
	}
	return len(w.until) > 0
}

func (w *wrongKeys) has(key []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.until[string(key)]
	return ok
}
