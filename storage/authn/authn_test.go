package authn

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xdg-go/scram"
)

func decode(t *testing.T, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestRFC7677 takes the example of the standard: the proof and the signature
// that it prints follow from our keys.
func TestRFC7677(t *testing.T) {
	salt := decode(t, "W22ZaJ0SNY7soEsUEjb6gQ==")
	salted, err := saltedPassword(ScramSHA256, "pencil", salt, 4096)
	if err != nil {
		t.Fatal(err)
	}
	c, err := FromSalted(ScramSHA256, salt, salted, 4096)
	if err != nil {
		t.Fatal(err)
	}
	auth := "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0," +
		"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
	if got, want := base64.StdEncoding.EncodeToString(mac(ScramSHA256, c.ServerKey, auth)), "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="; got != want {
		t.Errorf("server signature %s, want %s", got, want)
	}
	proof := decode(t, "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
	key := mac(ScramSHA256, c.StoredKey, auth)
	for i := range key {
		key[i] ^= proof[i]
	}
	h := ScramSHA256.hash()()
	h.Write(key)
	if string(h.Sum(nil)) != string(c.StoredKey) {
		t.Error("the proof of the standard's example does not fit the stored key")
	}
}

type users map[string][]Credential

func (u users) lookup(user string, m Mechanism) (Credential, bool) {
	for _, c := range u[user] {
		if c.Mechanism == m {
			return c, true
		}
	}
	return Credential{}, false
}

func derive(t *testing.T, m Mechanism, password string) Credential {
	t.Helper()
	c, err := Derive(m, password, MinIterations)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func begin(t *testing.T, a *Authenticator, m Mechanism) *Exchange {
	t.Helper()
	e, err := a.Begin(m)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// login plays a client that is not ours.
func login(t *testing.T, a *Authenticator, m Mechanism, user, password string) (*Exchange, error) {
	t.Helper()
	e := begin(t, a, m)
	if m == Plain {
		_, err := e.Step([]byte("\x00" + user + "\x00" + password))
		return e, err
	}
	gen := scram.SHA256
	if m == ScramSHA512 {
		gen = scram.SHA512
	}
	client, err := gen.NewClientUnprepped(user, password, "")
	if err != nil {
		t.Fatal(err)
	}
	conv := client.NewConversation()
	var from []byte
	for !conv.Done() {
		to, err := conv.Step(string(from))
		if err != nil {
			return e, err
		}
		if conv.Done() {
			break
		}
		if from, err = e.Step([]byte(to)); err != nil {
			return e, err
		}
	}
	return e, nil
}

func TestLogin(t *testing.T) {
	us := users{
		"ann":      {derive(t, ScramSHA256, "a-secret"), derive(t, ScramSHA512, "a-secret")},
		"bob,=nö":  {derive(t, ScramSHA512, "b-secret")},
		"plainuse": {derive(t, Plain, "p-secret")},
	}
	a := New(us.lookup, []byte("decoy"))
	for _, c := range []struct {
		m              Mechanism
		user, password string
		ok             bool
	}{
		{ScramSHA256, "ann", "a-secret", true},
		{ScramSHA512, "ann", "a-secret", true},
		{ScramSHA512, "bob,=nö", "b-secret", true},
		{Plain, "plainuse", "p-secret", true},
		{ScramSHA256, "ann", "wrong", false},
		{ScramSHA256, "bob,=nö", "b-secret", false}, // only has the other hash
		{Plain, "ann", "a-secret", false},           // no downgrade
		{ScramSHA256, "plainuse", "p-secret", false},
		{Plain, "plainuse", "wrong", false},
		{Plain, "nobody", "x", false},
		{ScramSHA512, "nobody", "x", false},
	} {
		e, err := login(t, a, c.m, c.user, c.password)
		user, ok := e.User()
		if ok != c.ok || (c.ok && (err != nil || user != c.user)) || (!c.ok && !errors.Is(err, ErrFailed)) {
			t.Errorf("%s %s/%s: user %q %v, error %v", c.m, c.user, c.password, user, ok, err)
		}
	}
}

// TestUnknownUsersLookReal: a user that is not there gets a challenge like
// everybody, the same one every time.
func TestUnknownUsersLookReal(t *testing.T) {
	a := New(users{"ann": {derive(t, ScramSHA256, "x")}}.lookup, []byte("decoy"))
	salt := func(user string) string {
		answer, err := begin(t, a, ScramSHA256).Step([]byte("n,,n=" + user + ",r=abc"))
		if err != nil {
			t.Fatalf("%s: %v", user, err)
		}
		_, rest, _ := strings.Cut(string(answer), ",s=")
		s, _, _ := strings.Cut(rest, ",")
		return s
	}
	if salt("zoe") != salt("zoe") || salt("zoe") == salt("eve") || len(salt("zoe")) != len(salt("ann")) {
		t.Error("the salt of a user that does not exist gives it away")
	}
}

// TestExchangeIsStrict: what an attacker may change makes the login fail.
func TestExchangeIsStrict(t *testing.T) {
	a := New(users{"ann": {derive(t, ScramSHA256, "x")}}.lookup, []byte("decoy"))
	final := func(change func(nonce string) string) error {
		gen, _ := scram.SHA256.NewClientUnprepped("ann", "x", "")
		conv := gen.NewConversation()
		e := begin(t, a, ScramSHA256)
		first, _ := conv.Step("")
		answer, err := e.Step([]byte(first))
		if err != nil {
			t.Fatal(err)
		}
		last, err := conv.Step(string(answer))
		if err != nil {
			t.Fatal(err)
		}
		nonce, _, _ := strings.Cut(last[strings.Index(last, "r=")+2:], ",")
		_, err = e.Step([]byte(strings.Replace(last, "r="+nonce, "r="+change(nonce), 1)))
		if _, again := e.Step([]byte(last)); again == nil {
			t.Error("the exchange went on after its end")
		}
		return err
	}
	if err := final(func(n string) string { return n }); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	for name, change := range map[string]func(string) string{
		"the client's nonce doubled": func(n string) string { return n[:len(n)/2] + n },
		"cut":                        func(n string) string { return n[:len(n)-1] },
		"longer":                     func(n string) string { return n + "x" },
		"empty":                      func(string) string { return "" },
	} {
		if err := final(change); !errors.Is(err, ErrFailed) {
			t.Errorf("%s: error %v, want a failure", name, err)
		}
	}
	for _, bad := range []string{"", "n", "n,,", "n,,n=,r=", "y,,n=ann", "p=tls-unique,,n=ann,r=abc", "n,a=bob,n=ann,r=abc", "n,,m=x,n=ann,r=abc",
		"n,,n=a=n,r=abc", strings.Repeat("x", MaxMessage+1), "n,,n=" + strings.Repeat("a", MaxMessage)} {
		if _, err := begin(t, a, ScramSHA256).Step([]byte(bad)); !errors.Is(err, ErrFailed) {
			t.Errorf("%.40q: error %v", bad, err)
		}
	}
	for _, bad := range []string{"", "\x00", "\x00\x00", "ann\x00x", "\x00ann\x00", "\x00\x00x", "bob\x00ann\x00x", "\x00ann\x00x\x00"} {
		e := begin(t, New(users{"ann": {derive(t, Plain, "x")}}.lookup, nil), Plain)
		if _, err := e.Step([]byte(bad)); !errors.Is(err, ErrFailed) {
			t.Errorf("PLAIN %q: error %v", bad, err)
		}
	}
}

func TestCredentialsPrintWithoutSecrets(t *testing.T) {
	c := derive(t, ScramSHA256, "a-secret")
	j, err := json.Marshal(map[string]any{"c": c, "p": &c})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprintf("%v %+v %#v %s %q %x %d", c, c, c, c, c, c, &c), string(j), c.LogValue().String(), fmt.Sprintf("%+v", []Credential{c})} {
		for _, secret := range [][]byte{c.Salt, c.StoredKey, c.ServerKey} {
			for _, form := range []string{base64.StdEncoding.EncodeToString(secret), fmt.Sprintf("%x", secret), fmt.Sprint(secret), string(secret)} {
				if strings.Contains(s, form) {
					t.Errorf("%q shows a secret", s)
				}
			}
		}
	}
}

func TestDeriveBounds(t *testing.T) {
	var e *IterationsError
	if _, err := Derive(ScramSHA256, "x", 4095); !errors.As(err, &e) {
		t.Errorf("4095 iterations: %v", err)
	}
	if _, err := Derive(ScramSHA256, "x", 16385); !errors.As(err, &e) {
		t.Errorf("16385 iterations: %v", err)
	}
	if _, err := Derive(ScramSHA256, "", 4096); err == nil {
		t.Error("an empty password was taken")
	}
	for n, ok := range map[int]bool{0: false, 18: true, 64: true, 1024: true, 1025: false} {
		if _, err := FromSalted(ScramSHA256, []byte("salt"), make([]byte, n), 4096); (err == nil) != ok {
			t.Errorf("a salted password of %d bytes: %v", n, err)
		}
	}
}

func FuzzStep(f *testing.F) {
	for _, s := range []string{"n,,n=ann,r=abc", "c=biws,r=abc,p=AAAA", "\x00ann\x00x", "n,a=ann,n=ann,r=abc,ext=1", "y,,", "p=x,,n=,r="} {
		f.Add([]byte(s), []byte("c=biws,r=abc,p=AAAA"))
	}
	a := New(func(string, Mechanism) (Credential, bool) {
		return Credential{Mechanism: ScramSHA256, Iterations: 1, Salt: []byte("salt"), StoredKey: make([]byte, 32), ServerKey: make([]byte, 32)}, true
	}, []byte("decoy"))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		for _, m := range Mechanisms() {
			e, err := a.Begin(m)
			if err != nil {
				t.Fatal(err)
			}
			_, err1 := e.Step(one)
			_, err2 := e.Step(two)
			if _, ok := e.User(); ok {
				t.Fatalf("%s: logged in by %q, %q (%v, %v)", m, one, two, err1, err2)
			}
		}
	})
}
