package access

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/millrace/millrace/storage/acl"
	"github.com/millrace/millrace/storage/authn"
	"github.com/millrace/millrace/storage/quota"
	"github.com/millrace/millrace/storage/vfs"
)

func open(t *testing.T, fsys vfs.FS, dir string) *Store {
	t.Helper()
	s, err := Open(fsys, dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func credential(t *testing.T, m authn.Mechanism, password string) authn.Credential {
	t.Helper()
	c, err := authn.Derive(m, password, authn.MinIterations)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func allow(principal, topic string) acl.Rule {
	return acl.Rule{Type: acl.Topic, Name: topic, Pattern: acl.Prefixed, Principal: principal, Host: acl.Wildcard, Operation: acl.Read, Permission: acl.Allow}
}

var everything = acl.Filter{Type: acl.AnyType, Pattern: acl.AnyPattern, Operation: acl.AnyOperation, Permission: acl.AnyPermission}

// TestDurable: what was acknowledged is there after a power cut.
func TestDurable(t *testing.T) {
	mem := vfs.NewMem()
	s := open(t, mem, "access")
	c := credential(t, authn.ScramSHA256, "x")
	if err := s.SetCredential("ann", c); err != nil {
		t.Fatal(err)
	}
	if err := s.SetCredential("bob", credential(t, authn.Plain, "x")); err != nil {
		t.Fatal(err)
	}
	if err := s.DropUser("bob"); err != nil {
		t.Fatal(err)
	}
	if err := s.AddRules([]acl.Rule{allow("User:ann", "a"), allow("User:ann", "b"), allow("User:ann", "a")}); err != nil {
		t.Fatal(err)
	}
	name := "a"
	f := everything
	f.Name = &name
	dropped, err := s.DropRules([]acl.Filter{f, f})
	if err != nil || len(dropped[0]) != 1 || len(dropped[1]) != 1 {
		t.Fatalf("dropped %v, %v", dropped, err)
	}
	ann := quota.Entity{User: quota.Named("ann")}
	both := quota.Entity{User: quota.Default(), Client: quota.Named("app")}
	if err := s.AlterQuotas([]QuotaChange{
		{ann, map[quota.Kind]float64{quota.ProduceRate: 1024, quota.RequestPercent: 12.5}},
		{both, map[quota.Kind]float64{quota.FetchRate: 5}},
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.AlterQuotas([]QuotaChange{{both, map[quota.Kind]float64{quota.FetchRate: 0}}, {ann, map[quota.Kind]float64{quota.ProduceRate: 0}}}); err != nil {
		t.Fatal(err)
	}
	again := open(t, mem.CrashClone(vfs.CrashOptions{}), "access")
	if got, ok := again.Credential("ann", authn.ScramSHA256); !ok || !reflect.DeepEqual(got, c) {
		t.Errorf("ann's credential is another one: %v %v", got, ok)
	}
	if len(again.Users()) != 1 {
		t.Errorf("users %v", again.Users())
	}
	if got := again.Rules().Rules(); len(got) != 1 || got[0] != allow("User:ann", "b") {
		t.Errorf("rules %v", got)
	}
	if got, want := again.Quotas(), (quota.Table{ann: {quota.RequestPercent: 12.5}}); !reflect.DeepEqual(got, want) {
		t.Errorf("quotas %v, want %v", got, want)
	}
	if string(again.decoy) != string(s.decoy) || len(s.decoy) != decoyBytes {
		t.Error("the decoy secret did not survive")
	}
}

func TestRefusals(t *testing.T) {
	s := open(t, vfs.NewMem(), "access")
	if err := s.DropUser("nobody"); !errors.Is(err, ErrNoUser) {
		t.Errorf("dropping nobody: %v", err)
	}
	if err := s.SetCredential("", authn.Credential{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a user without a name: %v", err)
	}
	bad := allow("ann", "a")
	if err := s.AddRules([]acl.Rule{allow("User:ann", "a"), bad}); !errors.Is(err, ErrInvalid) || len(s.Rules().Rules()) != 0 {
		t.Errorf("a bad rule beside a good one: %v, %v", err, s.Rules().Rules())
	}
	if err := s.AlterQuotas([]QuotaChange{{quota.Entity{}, nil}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a quota of nobody: %v", err)
	}
	if err := s.AlterQuotas([]QuotaChange{{quota.Entity{User: quota.Default()}, map[quota.Kind]float64{quota.FetchRate: -1}}}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a negative quota: %v", err)
	}
}

// TestFilesOfSecrets: nobody else may read the directory, no password is in it,
// and dropped or replaced keys are gone from it.
func TestFilesOfSecrets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "access")
	s := open(t, vfs.NewOS(), dir)
	first, second := credential(t, authn.ScramSHA256, "open-sesame"), credential(t, authn.ScramSHA256, "open-sesame")
	third := credential(t, authn.ScramSHA512, "other-secret")
	for user, c := range map[string]authn.Credential{"ann": first, "bob": third} {
		if err := s.SetCredential(user, c); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SetCredential("ann", second); err != nil {
		t.Fatal(err)
	}
	if err := s.DropUser("bob"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("mode of the directory: %v %v", st.Mode(), err)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, n := range names {
		b, err := os.ReadFile(filepath.Join(dir, n.Name()))
		if err != nil {
			t.Fatal(err)
		}
		for what, secret := range map[string]string{"a password": "open-sesame", "a replaced key": string(first.StoredKey), "a dropped key": string(third.StoredKey)} {
			if strings.Contains(string(b), secret) {
				t.Errorf("%s has %s in it", n.Name(), what)
			}
		}
		found = found || strings.Contains(string(b), string(second.StoredKey))
	}
	if !found {
		t.Error("the key in force is in no file: the test looks in the wrong place")
	}
}

// TestGolden: entries are as docs/format/access.md has them; the bytes in
// testdata stay readable for ever.
func TestGolden(t *testing.T) {
	want := map[string]struct {
		kind uint16
		do   func(b []byte) ([]byte, error)
	}{
		"credential": {kindCredential, func(b []byte) ([]byte, error) {
			user, c, err := decodeCredential(b)
			if err == nil && (user != "ann" || c.Iterations != 4096 || c.Mechanism != authn.ScramSHA256 || len(c.Salt) != 4 || len(c.StoredKey) != 32 || len(c.ServerKey) != 32) {
				t.Errorf("credential of %s: %v", user, c)
			}
			return appendCredential(nil, user, c), err
		}},
		"rule": {kindRule, func(b []byte) ([]byte, error) {
			r, err := decodeRule(b)
			if err == nil && r != allow("User:ann", "clicks-") {
				t.Errorf("rule %v", r)
			}
			return appendRule(nil, r), err
		}},
		"limits": {kindLimits, func(b []byte) ([]byte, error) {
			e, l, err := decodeLimits(b)
			if err == nil && (e != quota.Entity{User: quota.Named("ann"), Client: quota.Default()} || l != quota.Limits{quota.ProduceRate: 1024, quota.RequestPercent: 12.5}) {
				t.Errorf("limits of %v: %v", e, l)
			}
			return appendLimits(nil, e, l), err
		}},
	}
	for name, c := range want {
		text, err := os.ReadFile(filepath.Join("testdata", name+".hex"))
		if err != nil {
			t.Fatal(err)
		}
		b, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.do(b)
		if err != nil || hex.EncodeToString(got) != hex.EncodeToString(b) {
			t.Errorf("%s: read and written again it is %x, %v", name, got, err)
		}
		for n := range b {
			if _, err := c.do(b[:n]); err == nil {
				t.Errorf("%s: %d of %d bytes were taken for a whole entry", name, n, len(b))
			}
		}
	}
}
