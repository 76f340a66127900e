package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPropertiesShowNoValues: a file of properties holds passwords.
func TestPropertiesShowNoValues(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) string {
		path := filepath.Join(dir, "p")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	got, err := readProperties(write("# c\n\n a = b=c \r\n!x\nsasl.password=se same\n"))
	if err != nil || got["a"] != "b=c" || got["sasl.password"] != "se same" || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"sesame\n", "a=sesame\na=sesame\n", "=sesame\n"} {
		if _, err := readProperties(write(bad)); err == nil || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

// TestPassword: one line, with or without its end.
func TestPassword(t *testing.T) {
	for in, want := range map[string]string{"x\n": "x", "x": "x", "x\r\n": "x", " x y \n\n": " x y ", "": "", "\n": "", "x\ny\n": ""} {
		e := &Env{Stdin: strings.NewReader(in)}
		got, err := e.password("")
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", in, string(got), err)
		}
	}
}

// TestCertificateIsRenewed: a new file is taken, a broken one is not.
func TestCertificateIsRenewed(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	at := time.Now().Add(-time.Hour)
	put := func(cert, key string) {
		for file, text := range map[string]string{certFile: cert, keyFile: key} {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			at = at.Add(time.Second)
			if err := os.Chtimes(file, at, at); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := &certificate{cert: certFile, key: keyFile}
	if _, err := c.current(); err == nil {
		t.Error("a missing certificate was loaded")
	}
	put(selfSigned(t))
	first, err := c.current()
	if err != nil {
		t.Fatal(err)
	}
	put("broken", "broken")
	if again, err := c.current(); err != nil || again != first {
		t.Errorf("a broken file took the place of a good one: %v", err)
	}
	put(selfSigned(t))
	if next, err := c.current(); err != nil || string(next.Certificate[0]) == string(first.Certificate[0]) {
		t.Errorf("the new certificate is not used: %v", err)
	}
}
