package lsp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/millrace/millrace/connectors/all"
	"github.com/millrace/millrace/sql/compile"
)

// client is an editor at the other end of two pipes.
type client struct {
	t    *testing.T
	in   *io.PipeWriter
	out  *bufio.Reader
	id   int
	done chan error
	// published are the last diagnostics of each document.
	published map[string]published
}

type published struct {
	URI         string       `json:"uri"`
	Version     int          `json:"version"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

// list names the SQL files of a folder.
func list(path string) ([]string, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return []string{path}, err
	}
	names, err := filepath.Glob(filepath.Join(path, "*.sql"))
	sort.Strings(names)
	return names, err
}

// connect starts a server and a client that has not spoken yet.
func connect(t *testing.T, ddl ...string) *client {
	t.Helper()
	registry, err := all.Registry(all.Deps{})
	if err != nil {
		t.Fatal(err)
	}
	serverIn, in := io.Pipe()
	out, serverOut := io.Pipe()
	c := &client{t: t, in: in, out: bufio.NewReader(out), done: make(chan error, 1), published: map[string]published{}}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		err := Serve(ctx, serverIn, serverOut, Options{Version: "test", Compile: compile.Options{Registry: registry}, DDL: ddl, List: list, ReadFile: os.ReadFile, Log: io.Discard})
		serverOut.Close()
		serverIn.Close()
		c.done <- err
	}()
	t.Cleanup(func() { cancel(); in.Close(); out.Close() })
	return c
}

// start connects and initializes, with a workspace at root.
func start(t *testing.T, root string, ddl ...string) *client {
	t.Helper()
	c := connect(t, ddl...)
	c.call("initialize", map[string]any{"processId": nil, "rootUri": uriOf(root), "capabilities": map[string]any{}}, nil)
	c.tell("initialized", map[string]any{})
	return c
}

func (c *client) send(m *message) {
	c.t.Helper()
	if err := writeMessage(c.in, m); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) tell(method string, params any) {
	c.t.Helper()
	b, err := json.Marshal(params)
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(&message{Method: method, Params: b})
}

// next reads a message; notifications of diagnostics are noted.
func (c *client) next() *message {
	c.t.Helper()
	body, err := readMessage(c.out)
	if err != nil {
		c.t.Fatalf("reading from the server: %v", err)
	}
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		c.t.Fatalf("%v in %s", err, body)
	}
	if m.Method == "textDocument/publishDiagnostics" {
		var p published
		if err := json.Unmarshal(m.Params, &p); err != nil {
			c.t.Fatal(err)
		}
		c.published[p.URI] = p
	}
	return &m
}

// request sends a request and returns its answer.
func (c *client) request(method string, params any) *message {
	c.t.Helper()
	c.id++
	b, err := json.Marshal(params)
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(&message{ID: json.RawMessage(fmt.Sprint(c.id)), Method: method, Params: b})
	for {
		if m := c.next(); m.Method == "" && string(m.ID) == fmt.Sprint(c.id) {
			return m
		}
	}
}

// call is request for one that must not fail.
func (c *client) call(method string, params, result any) {
	c.t.Helper()
	m := c.request(method, params)
	if m.Error != nil {
		c.t.Fatalf("%s: %v", method, m.Error)
	}
	if result != nil {
		if err := json.Unmarshal(m.Result, result); err != nil {
			c.t.Fatalf("%s: %v in %s", method, err, m.Result)
		}
	}
}

// open opens a document and waits for its diagnostics.
func (c *client) open(path, text string) []Diagnostic {
	c.t.Helper()
	c.tell("textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": uriOf(path), "languageId": "sql", "version": 1, "text": text}})
	return c.diagnostics(path, 1)
}

func (c *client) change(path string, version int, text string) {
	c.t.Helper()
	c.tell("textDocument/didChange", map[string]any{"textDocument": map[string]any{"uri": uriOf(path), "version": version}, "contentChanges": []any{map[string]string{"text": text}}})
}

// diagnostics waits for those of a version.
func (c *client) diagnostics(path string, version int) []Diagnostic {
	c.t.Helper()
	for c.published[uriOf(path)].Version < version {
		c.next()
	}
	return c.published[uriOf(path)].Diagnostics
}

// at is the request for a place, which ¦ marks in the text.
func at(path, marked string) map[string]any {
	p := newMapper(strings.Replace(marked, "¦", "", 1)).position(strings.Index(marked, "¦"))
	return map[string]any{"textDocument": map[string]string{"uri": uriOf(path)}, "position": p}
}

// hover is the text at the mark, "" for none.
func (c *client) hover(path, marked string) string {
	c.t.Helper()
	var h *struct{ Contents struct{ Value string } }
	c.call("textDocument/hover", at(path, marked), &h)
	if h == nil {
		return ""
	}
	return h.Contents.Value
}

// complete lists the labels at the mark.
func (c *client) complete(path, marked string) (labels []string, items []completionItem) {
	c.t.Helper()
	var r struct{ Items []completionItem }
	c.call("textDocument/completion", at(path, marked), &r)
	for _, it := range r.Items {
		labels = append(labels, it.Label)
	}
	return labels, r.Items
}
