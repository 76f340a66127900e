package spec

import (
	"errors"
	"testing"
)

func TestVars(t *testing.T) {
	env := map[string]string{"HOME_DIR": "/home", "BOTH": "env", "MILLRACE_SECRETS": "/run/secrets", "MILLRACE_SECRET_FROM_ENV": "s2"}
	v := Vars{
		Set:       map[string]string{"BOTH": "set", "EMPTY": ""},
		LookupEnv: func(k string) (string, bool) { s, ok := env[k]; return s, ok },
		ReadFile: func(p string) ([]byte, error) {
			if p == "/run/secrets/FILE" {
				return []byte("s1\r\n"), nil
			}
			return nil, errors.New("no such file")
		},
	}
	for name, want := range map[string]string{"BOTH": "set", "HOME_DIR": "/home", "EMPTY": ""} {
		if got, ok := v.Lookup(name); !ok || got != want {
			t.Errorf("%s = %q, %v, want %q", name, got, ok, want)
		}
	}
	if _, ok := v.Lookup("NOT_THERE"); ok {
		t.Error("NOT_THERE is there")
	}
	for name, want := range map[string]string{"FILE": "s1", "FROM_ENV": "s2"} {
		if got, ok := v.Secret(name); !ok || got != want {
			t.Errorf("secret %s = %q, %v, want %q", name, got, ok, want)
		}
	}
	if _, ok := v.Secret("NOT_THERE"); ok {
		t.Error("a secret that is not there")
	}
	if _, ok := (Vars{}).Lookup("X"); ok {
		t.Error("no environment, and still a value")
	}
}
