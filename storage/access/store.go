package access

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/authn"
	"github.com/millrace/millrace/storage/manifest"
	"github.com/millrace/millrace/storage/quota"
	"github.com/millrace/millrace/storage/vfs"
)

// Errors that callers branch on.
var (
	// ErrNoUser says that there is no such user, or not with this mechanism.
	ErrNoUser = errors.New("no such user")
	// ErrInvalid says that a change makes no sense; the text says why.
	ErrInvalid = errors.New("invalid")
	// ErrTooMany says that there is no room for more; see MaxUsers and MaxRules.
	ErrTooMany = errors.New("too many")
)

// Bounds of the state, which is held in memory.
const (
	MaxUsers    = 100_000
	MaxRules    = 100_000
	MaxEntities = 100_000
)

const decoyBytes = 32

// state is what is known; it is copied, never changed.
type state struct {
	users map[string][]authn.Credential // ascending by mechanism
	rules *acl.Set
	// byRule has the same rules.
	byRule map[acl.Rule]bool
	quotas quota.Table
}

// Store is the state of a directory.
type Store struct {
	decoy []byte
	now   atomic.Pointer[state]

	mu  sync.Mutex // changes
	log *manifest.Log
}

// Open reads the state in dir, made if missing. *manifest.RotError: it is damaged.
func Open(fsys vfs.FS, dir string) (*Store, error) {
	st := &state{users: map[string][]authn.Credential{}, byRule: map[acl.Rule]bool{}, quotas: quota.Table{}}
	s := &Store{}
	log, _, err := manifest.Open(fsys, dir, manifest.Options{}, func(kind uint16, payload []byte) error { return s.apply(st, kind, payload) })
	if err != nil {
		return nil, fmt.Errorf("opening users, rules and quotas: %w", err)
	}
	if err := vfs.Restrict(fsys, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("protecting %s: %w", dir, err), log.Close())
	}
	s.log = log
	st.rules = acl.NewSet(sortedRules(st.byRule))
	s.now.Store(st)
	if s.decoy == nil {
		s.decoy = make([]byte, decoyBytes)
		if _, err := rand.Read(s.decoy); err != nil {
			return nil, errors.Join(fmt.Errorf("making a secret: %w", err), log.Close())
		}
		if err := log.Append(manifest.Edit{Kind: kindDecoy, Payload: s.decoy}); err != nil {
			return nil, errors.Join(fmt.Errorf("writing users, rules and quotas: %w", err), log.Close())
		}
	}
	return s, nil
}

// Close makes the end of the files known as clean.
func (s *Store) Close() error { return s.log.Close() }

// apply is one entry of the files.
func (s *Store) apply(st *state, kind uint16, payload []byte) error {
	switch kind {
	case kindDecoy:
		s.decoy = append([]byte(nil), payload...)
	case kindCredential, kindDropCredential:
		user, c, err := decodeCredential(payload)
		if err != nil {
			return err
		}
		set(st.users, user, c, kind == kindCredential)
	case kindRule, kindDropRule:
		r, err := decodeRule(payload)
		if err != nil {
			return err
		}
		if kind == kindRule {
			st.byRule[r] = true
		} else {
			delete(st.byRule, r)
		}
	case kindLimits:
		e, l, err := decodeLimits(payload)
		if err != nil {
			return err
		}
		if l == (quota.Limits{}) {
			delete(st.quotas, e)
		} else {
			st.quotas[e] = l
		}
	default:
		return fmt.Errorf("%w: kind %d", errEntry, kind)
	}
	return nil
}

// set puts a user's credential in or takes it out; slices are replaced, not
// changed.
func set(users map[string][]authn.Credential, user string, c authn.Credential, in bool) {
	list := slices.DeleteFunc(slices.Clone(users[user]), func(x authn.Credential) bool { return x.Mechanism == c.Mechanism })
	if in {
		list = append(list, c)
		slices.SortFunc(list, func(a, b authn.Credential) int { return int(a.Mechanism) - int(b.Mechanism) })
	}
	if len(list) == 0 {
		delete(users, user)
		return
	}
	users[user] = list
}

func sortedRules(m map[acl.Rule]bool) []acl.Rule {
	return slices.SortedFunc(maps.Keys(m), compareRules)
}

// write makes edits durable, then next visible; the mutex is held. fresh also
// removes from the files what is not in next.
func (s *Store) write(next *state, edits []manifest.Edit, fresh bool) error {
	if len(edits) == 0 {
		return nil
	}
	if err := s.log.Append(edits...); err != nil {
		return fmt.Errorf("writing users, rules and quotas: %w", err)
	}
	s.now.Store(next)
	if !fresh && !s.log.ShouldSnapshot() {
		return nil
	}
	err := s.log.Snapshot(func(emit func(uint16, []byte) error) error { return s.emit(next, emit) })
	if err != nil && fresh {
		return fmt.Errorf("removing old credentials from disk: %w", err)
	}
	return nil // otherwise the old file goes on, only larger
}

func (s *Store) emit(st *state, emit func(uint16, []byte) error) error {
	if err := emit(kindDecoy, s.decoy); err != nil {
		return err
	}
	for _, user := range slices.Sorted(maps.Keys(st.users)) {
		for _, c := range st.users[user] {
			if err := emit(kindCredential, appendCredential(nil, user, c)); err != nil {
				return err
			}
		}
	}
	for _, r := range st.rules.Rules() {
		if err := emit(kindRule, appendRule(nil, r)); err != nil {
			return err
		}
	}
	for e, l := range st.quotas {
		if err := emit(kindLimits, appendLimits(nil, e, l)); err != nil {
			return err
		}
	}
	return nil
}

// Authenticator logs clients in by the store's credentials.
func (s *Store) Authenticator() *authn.Authenticator { return authn.New(s.Credential, s.decoy) }

// Rules are the access rules now.
func (s *Store) Rules() *acl.Set { return s.now.Load().rules }

// Quotas are the limits now; not to be changed.
func (s *Store) Quotas() quota.Table { return s.now.Load().quotas }
