package redis

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// fake is a server in memory with the commands of the sink and of lookups, without
// transactions: what unit tests talk to.
type fake struct {
	t  testing.TB
	ln net.Listener

	mu   sync.Mutex
	keys map[string]any // map[string]string, string, set or map[string]float64
	// asked counts commands by name; fail answers a command with an error, once.
	asked map[string]int
	fail  map[string]string
	// cut ends the connection in front of the answer to a command, once.
	cut string
}

type set map[string]bool

func newFake(t testing.TB) *fake {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{t: t, ln: ln, keys: map[string]any{}, asked: map[string]int{}, fail: map[string]string{}}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go f.serve(c)
		}
	}()
	return f
}

func (f *fake) url() string { return "redis://" + f.ln.Addr().String() + "/0" }

// serve answers one connection.
func (f *fake) serve(c net.Conn) {
	defer c.Close()
	r, w := bufio.NewReader(c), bufio.NewWriter(c)
	for {
		args, err := readCommand(r)
		if err != nil {
			return
		}
		answer, ok := f.do(args)
		if !ok {
			return
		}
		if _, err := w.WriteString(answer); err != nil {
			return
		}
		if r.Buffered() == 0 && w.Flush() != nil {
			return
		}
	}
}

func readCommand(r *bufio.Reader) ([]string, error) {
	number := func(prefix byte) (int, error) {
		line, err := r.ReadString('\n')
		if err != nil {
			return 0, err
		}
		if line[0] != prefix {
			return 0, fmt.Errorf("%q is no command", line)
		}
		return strconv.Atoi(strings.TrimSpace(line[1:]))
	}
	n, err := number('*')
	args := make([]string, n)
	for i := range args {
		var size int
		if size, err = number('$'); err != nil {
			return nil, err
		}
		b := make([]byte, size+2)
		if _, err = io.ReadFull(r, b); err != nil {
			return nil, err
		}
		args[i] = string(b[:size])
	}
	return args, err
}

func bulk(s string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(s), s) }

func bulks(of []string) string {
	out := fmt.Sprintf("*%d\r\n", len(of))
	for _, s := range of {
		out += bulk(s)
	}
	return out
}

const nothing = "$-1\r\n"

// put carries out the commands of a body, as the sink's transaction does.
func (f *fake) put(body []byte) {
	for _, cmd := range commandsOf(f.t, body) {
		if answer, _ := f.do(cmd); answer[0] == '-' {
			f.t.Fatalf("%q: %s", cmd, answer)
		}
	}
}

// do answers a command; ok false ends the connection.
func (f *fake) do(args []string) (answer string, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	name := strings.ToUpper(args[0])
	f.asked[name]++
	if why := f.fail[name]; why != "" {
		delete(f.fail, name)
		return "-" + why + "\r\n", true
	}
	if f.cut == name {
		f.cut = ""
		return "", false
	}
	switch name {
	case "INFO":
		return bulk("redis_mode:standalone\r\nredis_version:0\r\nrole:master\r\n"), true
	case "AUTH":
		return "+OK\r\n", true
	case "SCAN":
		return f.scan(args), true
	case "HELLO", "CLIENT", "CONFIG", "SELECT", "PING":
		return "-ERR unknown command\r\n", true
	}
	switch v := f.keys[args[1]].(type) {
	case map[string]string:
		return f.hash(name, args[1], v, args[2:]), true
	case string:
		return f.text(name, args[1], v, args[2:]), true
	case set:
		return f.members(name, args[1], v, args[2:]), true
	case map[string]float64:
		return f.scored(name, args[1], v, args[2:]), true
	}
	switch name[0] {
	case 'H':
		return f.hash(name, args[1], nil, args[2:]), true
	case 'S':
		if name != "SET" {
			return f.members(name, args[1], nil, args[2:]), true
		}
	case 'Z':
		return f.scored(name, args[1], nil, args[2:]), true
	}
	return f.text(name, args[1], "", args[2:]), true
}

// scan gives two names a time, and the first one of all twice.
func (f *fake) scan(args []string) string {
	if len(args) != 6 || args[2] != "match" || args[4] != "count" {
		return "-ERR syntax error\r\n"
	}
	from, err := strconv.Atoi(args[1])
	if err != nil {
		f.t.Error(err)
	}
	all := slices.Sorted(maps.Keys(f.keys))
	next, until := "0", len(all)
	if from+2 < len(all) {
		until, next = from+2, strconv.Itoa(from+2)
	}
	pattern := ""
	for i := 0; i < len(args[3]); i++ {
		switch c := args[3][i]; c {
		case '*':
			pattern += "(?s:.*)"
		case '\\':
			i++
			pattern += regexp.QuoteMeta(args[3][i : i+1])
		default:
			pattern += regexp.QuoteMeta(string(c))
		}
	}
	glob := regexp.MustCompile("^" + pattern + "$")
	var names []string
	for _, name := range append(all[:min(1, len(all)):1], all[from:until]...) {
		if glob.MatchString(name) {
			names = append(names, name)
		}
	}
	return "*2\r\n" + bulk(next) + bulks(names)
}

const wrongType = "-WRONGTYPE Operation against a key holding the wrong kind of value\r\n"

func (f *fake) hash(name, key string, v map[string]string, args []string) string {
	switch name {
	case "HSET":
		if v == nil {
			v = map[string]string{}
			f.keys[key] = v
		}
		for i := 0; i < len(args); i += 2 {
			v[args[i]] = args[i+1]
		}
	case "HDEL":
		for _, a := range args {
			delete(v, a)
		}
		if len(v) == 0 {
			delete(f.keys, key)
		}
	case "HMGET":
		out := fmt.Sprintf("*%d\r\n", len(args))
		for _, a := range args {
			if s, ok := v[a]; ok {
				out += bulk(s)
			} else {
				out += nothing
			}
		}
		return out
	default:
		return wrongType
	}
	return ":1\r\n"
}

func (f *fake) text(name, key, v string, args []string) string {
	switch name {
	case "SET":
		f.keys[key] = args[0]
	case "DEL":
		delete(f.keys, key)
	case "GET":
		if _, ok := f.keys[key]; !ok {
			return nothing
		}
		return bulk(v)
	default:
		return wrongType
	}
	return ":1\r\n"
}

func (f *fake) members(name, key string, v set, args []string) string {
	switch name {
	case "SADD":
		if v == nil {
			v = set{}
			f.keys[key] = v
		}
		v[args[0]] = true
	case "SREM":
		delete(v, args[0])
	case "SCARD":
		return fmt.Sprintf(":%d\r\n", len(v))
	case "SISMEMBER":
		if !v[args[0]] {
			return ":0\r\n"
		}
	case "SMEMBERS":
		return bulks(slices.Sorted(maps.Keys(v)))
	default:
		return wrongType
	}
	return ":1\r\n"
}

func (f *fake) scored(name, key string, v map[string]float64, args []string) string {
	text := func(x float64) string { return strconv.FormatFloat(x, 'g', 17, 64) }
	switch name {
	case "ZADD":
		if v == nil {
			v = map[string]float64{}
			f.keys[key] = v
		}
		x, err := strconv.ParseFloat(args[0], 64)
		if err != nil {
			f.t.Error(err)
		}
		v[args[1]] = x
	case "ZREM":
		delete(v, args[0])
	case "ZCARD":
		return fmt.Sprintf(":%d\r\n", len(v))
	case "ZSCORE":
		x, ok := v[args[0]]
		if !ok {
			return nothing
		}
		return bulk(text(x))
	case "ZRANGE":
		var out []string
		for _, m := range slices.Sorted(maps.Keys(v)) {
			out = append(out, m, text(v[m]))
		}
		return bulks(out)
	default:
		return wrongType
	}
	return ":1\r\n"
}
