package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
)

// webhook is a receiver as the page of connector `http` wants one: it takes each
// Idempotency-Key once. Until it is calm it fails at each third request, before or after
// it has taken it.
type webhook struct {
	t    testing.TB
	addr string

	mu     sync.Mutex
	server *http.Server // nil: it is down
	calm   bool
	taken  map[string]string           // bodies by table and key
	rows   map[string][]map[string]any // by table
	// requests are those before it was calm, every third of which met a fault.
	requests int
	faults   map[string]int
}

func newWebhook(t testing.TB) *webhook {
	h := &webhook{t: t, addr: "127.0.0.1:0", taken: map[string]string{}, rows: map[string][]map[string]any{}, faults: map[string]int{}}
	h.start()
	t.Cleanup(h.stop)
	return h
}

// start listens, at the address that it had before.
func (h *webhook) start() {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.server != nil {
		return
	}
	l, err := net.Listen("tcp4", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.addr = l.Addr().String()
	h.server = &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
	go h.server.Serve(l)
}

// stop cuts all connections.
func (h *webhook) stop() {
	h.mu.Lock()
	server := h.server
	h.server = nil
	h.mu.Unlock()
	if server != nil {
		_ = server.Close()
	}
}

func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the process was killed in the middle of it
	}
	h.mu.Lock()
	fault := ""
	if kinds := []string{"busy", "answer lost", "no answer", "reset", "deaf"}; !h.calm {
		if h.requests++; h.requests%3 == 0 {
			fault = kinds[h.requests/3%len(kinds)]
			h.faults[fault]++
		}
	}
	if fault == "" || strings.Contains(fault, "answer") {
		h.take(strings.TrimPrefix(r.URL.Path, "/"), r.Header.Get("Idempotency-Key"), body)
	}
	h.mu.Unlock()
	switch fault {
	case "busy":
		http.Error(w, "later", http.StatusServiceUnavailable)
	case "reset", "answer lost":
		panic(http.ErrAbortHandler)
	case "deaf", "no answer":
		<-r.Context().Done()
	}
}

// take takes the rows of a request, lines or an array, unless it has its key. The caller
// holds mu.
func (h *webhook) take(table, key string, body []byte) {
	if have, ok := h.taken[table+" "+key]; ok {
		if have != string(body) {
			h.t.Errorf("table %s: key %s came with other bytes", table, key)
		}
		return
	}
	h.taken[table+" "+key] = string(body)
	var rows []map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if body[0] == '[' {
		if err := d.Decode(&rows); err != nil {
			h.t.Errorf("table %s: %s: %v", table, body, err)
		}
	}
	for body[0] != '[' && d.More() {
		row := map[string]any{}
		if err := d.Decode(&row); err != nil {
			h.t.Errorf("table %s: %s: %v", table, body, err)
			break
		}
		rows = append(rows, row)
	}
	h.rows[table] = append(h.rows[table], rows...)
}

// table gives a table's rows as the oracle does.
func (h *webhook) table(table string, columns []string) multiset {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := multiset{}
	for _, r := range h.rows[table] {
		var fields []string
		for _, c := range columns {
			v := "NULL"
			if r[c] != nil {
				v = microsText(fmt.Sprint(r[c]))
			}
			fields = append(fields, c+"="+v)
		}
		out[strings.Join(fields, " ")]++
	}
	return out
}

// TestKilledJobIntoAWebhook kills the real binary with SIGKILL at random moments, and
// beside it the receiver, which loses requests and answers, hangs and is busy: a receiver
// that knows keys has each row of lanes and of a keyed stage once.
func TestKilledJobIntoAWebhook(t *testing.T) {
	h := newWebhook(t)
	sql, err := os.ReadFile("testdata/kill_http.sql")
	if err != nil {
		t.Fatal(err)
	}
	columns := map[string][]string{
		"events": {"event_id", "type", "actor_id", "actor_login"}, "star": {"event_id", "actor_id", "repo_name"}, "commit_of": {"event_id", "sha", "author"},
		"push_minute": {"window_start", "window_end", "pushes", "commits", "top_actor"},
	}
	killRunOf(t, killRunOptions{kills: 5, events: 3_000,
		sql: func(string) string { return strings.ReplaceAll(string(sql), "${URL}", "http://"+h.addr) },
		during: func(_ *world, _ *process, i int) {
			if h.stop(); i%2 == 0 {
				h.start()
			}
		},
		calm: func() {
			h.mu.Lock()
			h.calm = true
			h.mu.Unlock()
			h.start()
		},
		verify: func(w *world, want *outcome) {
			w.run("ledger", "show", "--check").must(t, 0)
			for table, rows := range want.rows {
				if columns[table] == nil {
					delete(want.rows, table)
					delete(want.accounts, table)
					continue
				}
				compare(t, table, h.table(table, columns[table]), rows)
			}
			w.verifyLedger(want)
		}})
	t.Logf("beside the kills: %v", h.faults)
	if len(h.faults) == 0 {
		t.Error("no request met a fault")
	}
}
