package e2e

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestLanguageServer holds a session with the real binary, and leaves it.
func TestLanguageServer(t *testing.T) {
	w := newWorld(t)
	ddl := w.file("ddl/clicks.sql", "CREATE TABLE clicks (user_id BIGINT) WITH ('connector' = 'log', 'topic' = 'clicks');\nCREATE TABLE out_t (id BIGINT) WITH ('connector' = 'blackhole');\n")
	job := "file://" + w.dir + "/job.sql"
	cmd := w.command("lsp")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := launch(t, cmd)
	send := func(body string) {
		if _, err := io.WriteString(in, fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body)); err != nil {
			t.Fatal(err)
		}
	}
	until := func(text string) {
		t.Helper()
		eventuallyOf(t, p, text, func() (bool, string) { return strings.Contains(p.stdout.String(), text), p.stdout.String() })
	}
	send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"rootUri":"file://` + w.dir + `","capabilities":{}}}`)
	until(`"positionEncoding":"utf-16"`)
	send(`{"jsonrpc":"2.0","method":"initialized","params":{}}`)
	send(`{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"` + job + `","languageId":"sql","version":1,"text":"INSERT INTO out_t SELECT uid FROM clicks;"}}}`)
	until(`"range":{"start":{"line":0,"character":25},"end":{"line":0,"character":28}},"severity":1,"code":"unknown_column"`)
	send(`{"jsonrpc":"2.0","id":2,"method":"textDocument/definition","params":{"textDocument":{"uri":"` + job + `"},"position":{"line":0,"character":36}}}`)
	until(`"uri":"file://` + ddl + `"`)
	send(`{"jsonrpc":"2.0","id":3,"method":"shutdown"}`)
	until(`"id":3`)
	send(`{"jsonrpc":"2.0","method":"exit"}`)
	if code := p.wait(); code != 0 || p.stderr.String() != "" {
		t.Errorf("exit code %d, stderr %q", code, p.stderr.String())
	}
}
