package lsp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/millrace/millrace/sql/compile"
)

// Options of a server.
type Options struct {
	// Version is what the server calls itself.
	Version string
	// Compile has at least the registry; Mode and Index are set by the server.
	Compile compile.Options
	// DDL are the files and folders read before every document; empty: the folder
	// ddl beside the document, else the one of the workspace.
	DDL []string
	// List names the SQL files of a path, sorted.
	List func(path string) ([]string, error)
	// ReadFile is os.ReadFile.
	ReadFile func(name string) ([]byte, error)
	// Log gets faults of handlers, with their stacks.
	Log io.Writer
}

// ErrNoShutdown is returned by Serve when the client left without the shutdown
// that the protocol asks for.
var ErrNoShutdown = errors.New("the client left without a shutdown request")

// Serve speaks with one client until it leaves or ctx ends.
func Serve(ctx context.Context, in io.Reader, out io.Writer, o Options) error {
	s := &server{o: o, out: out, docs: map[string]*document{}}
	type incoming struct {
		body []byte
		err  error
	}
	inbox := make(chan incoming, 64)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			body, err := readMessage(r)
			select {
			case inbox <- incoming{body, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for {
		if s.dirty && len(inbox) == 0 {
			s.dirty = false
			if err := s.publish(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case m := <-inbox:
			switch {
			case errors.Is(m.err, io.EOF) && !errors.Is(m.err, errFrame):
				return s.ended()
			case m.err != nil:
				return m.err
			}
			exit, err := s.receive(m.body)
			if err != nil {
				return err
			}
			if exit {
				return s.ended()
			}
		}
	}
}

// server is the state of one session. It belongs to one goroutine.
type server struct {
	o    Options
	out  io.Writer
	root string // the workspace's folder, "" for none
	docs map[string]*document
	// order is the documents by when they were opened.
	order                 []string
	initialized, shutdown bool
	// dirty: the diagnostics of the open documents are stale.
	dirty bool
}

func (s *server) ended() error {
	if s.shutdown || !s.initialized {
		return nil
	}
	return ErrNoShutdown
}

// receive handles one message. The error is one of writing.
func (s *server) receive(body []byte) (exit bool, err error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return false, s.reply(json.RawMessage("null"), nil, &rpcError{codeParse, "the message is not JSON: " + err.Error()})
	}
	if m.Method == "exit" {
		return true, nil
	}
	if m.Method == "" {
		return false, nil // an answer; the server asks nothing
	}
	result, fault := s.safely(&m)
	if m.ID == nil {
		return false, nil
	}
	return false, s.reply(m.ID, result, fault)
}

func (s *server) reply(id json.RawMessage, result any, fault *rpcError) error {
	m := &message{ID: id, Error: fault}
	if fault == nil {
		var err error
		if m.Result, err = json.Marshal(result); err != nil {
			return fmt.Errorf("encoding an answer: %w", err)
		}
	}
	return writeMessage(s.out, m)
}

func (s *server) notify(method string, params any) error {
	b, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("encoding a notification: %w", err)
	}
	return writeMessage(s.out, &message{Method: method, Params: b})
}

// safely handles a message; a fault in a handler must not take the editor's
// session along.
func (s *server) safely(m *message) (result any, fault *rpcError) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(s.o.Log, "%s: %v\n%s", m.Method, p, debug.Stack())
			result, fault = nil, &rpcError{codeInternal, fmt.Sprintf("%s failed: %v", m.Method, p)}
		}
	}()
	return s.handle(m)
}

func (s *server) handle(m *message) (any, *rpcError) {
	if m.Method == "initialize" {
		return s.initialize(m.Params)
	}
	if !s.initialized {
		return nil, &rpcError{codeNotInitialized, "initialize comes first"}
	}
	if s.shutdown {
		return nil, &rpcError{codeInvalidRequest, "after shutdown only exit may come"}
	}
	switch m.Method {
	case "initialized", "$/setTrace", "$/cancelRequest", "textDocument/didSave", "workspace/didChangeConfiguration", "workspace/didChangeWatchedFiles":
		s.dirty = len(s.docs) > 0 // files on disk may be others now
		return nil, nil
	case "shutdown":
		s.shutdown = true
		return nil, nil
	case "textDocument/didOpen":
		return nil, with(m.Params, s.didOpen)
	case "textDocument/didChange":
		return nil, with(m.Params, s.didChange)
	case "textDocument/didClose":
		return nil, with(m.Params, s.didClose)
	case "textDocument/hover":
		return ask(m.Params, s.hover)
	case "textDocument/definition":
		return ask(m.Params, s.definition)
	case "textDocument/completion":
		return ask(m.Params, s.completion)
	case "textDocument/formatting":
		return ask(m.Params, s.formatting)
	}
	return nil, &rpcError{codeUnknownMethod, "no method " + m.Method}
}

// ask decodes parameters and calls a handler with an answer.
func ask[P any](params json.RawMessage, f func(P) (any, error)) (any, *rpcError) {
	var p P
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &rpcError{codeInvalidParams, err.Error()}
	}
	result, err := f(p)
	var fault *rpcError
	switch {
	case errors.As(err, &fault):
		return nil, fault
	case err != nil:
		return nil, &rpcError{codeInternal, err.Error()}
	}
	return result, nil
}

// with decodes parameters and calls a handler without an answer.
func with[P any](params json.RawMessage, f func(P) error) *rpcError {
	_, fault := ask(params, func(p P) (any, error) { return nil, f(p) })
	return fault
}

type initializeParams struct {
	RootURI          string `json:"rootUri"`
	WorkspaceFolders []struct {
		URI string `json:"uri"`
	} `json:"workspaceFolders"`
}

func (s *server) initialize(params json.RawMessage) (any, *rpcError) {
	return ask(params, func(p initializeParams) (any, error) {
		if s.initialized {
			return nil, &rpcError{codeInvalidRequest, "initialize comes once"}
		}
		s.initialized = true
		if len(p.WorkspaceFolders) > 0 {
			p.RootURI = p.WorkspaceFolders[0].URI
		}
		s.root, _ = pathOf(p.RootURI)
		return map[string]any{
			"serverInfo": map[string]string{"name": "millrace", "version": s.o.Version},
			"capabilities": map[string]any{
				"positionEncoding":           "utf-16",
				"textDocumentSync":           map[string]any{"openClose": true, "change": 1, "save": true},
				"hoverProvider":              true,
				"definitionProvider":         true,
				"documentFormattingProvider": true,
				"completionProvider":         map[string]any{"triggerCharacters": []string{".", "'", "`"}},
			},
		}, nil
	})
}
