package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The server is that of the library which the engine is also published as.
const (
	clickHousePackage = "@chdb/lib-linux-x64-gnu"
	clickHouseVersion = "26.7.3-stable.1"
)

// clickHouseMain runs the command line that the library holds: a server while its
// last query runs.
const clickHouseMain = `import ctypes, sys
h = ctypes.CDLL(sys.argv[1])
h.chdb_query_cmdline.restype = ctypes.c_void_p
h.chdb_result_error.argtypes = [ctypes.c_void_p]
h.chdb_result_error.restype = ctypes.c_char_p
a = [b"clickhouse"] + [x.encode() for x in sys.argv[2:]]
r = h.chdb_query_cmdline(len(a), (ctypes.c_char_p * (len(a) + 1))(*a, None))
e = h.chdb_result_error(r) if r else None
if e: sys.exit(e.decode())
`

const clickHouseConfig = `<clickhouse>
 <logger><level>information</level><log>%[1]s/server.log</log><errorlog>%[1]s/error.log</errorlog><size>100M</size><count>2</count></logger>
 <path>%[1]s/data/</path><tmp_path>%[1]s/data/tmp/</tmp_path><user_files_path>%[1]s/data/user_files/</user_files_path>
 <listen_host>127.0.0.1</listen_host>
 <tcp_port>%[2]d</tcp_port><http_port>%[3]d</http_port>
 <timezone>UTC</timezone>
 <max_server_memory_usage>3000000000</max_server_memory_usage>
 <mark_cache_size>67108864</mark_cache_size><uncompressed_cache_size>0</uncompressed_cache_size>
 <remote_servers>%[4]s</remote_servers>
 <user_directories><users_xml><path>%[1]s/users.xml</path></users_xml></user_directories>
</clickhouse>
`

// clickHouseUsers are user default and more of them.
const clickHouseUsers = `<clickhouse>
 <profiles><default/></profiles><quotas><default/></quotas>
 <users><default><password/><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default>%s</users>
</clickhouse>
`

// ClickHouse is one ClickHouse 26.7 without replication, behind a proxy. It ends
// when a connection of a client is reset, which the proxy keeps from it.
type ClickHouse struct {
	*Process
	// Proxy is where clients connect, Web where they do so by HTTP.
	Proxy, Web *Proxy
	dir        string
	tcp        string
	http       string
}

// StartClickHouse starts a server whose data lie in dir. User default has no
// password.
func StartClickHouse(ctx context.Context, dir string) (*ClickHouse, error) {
	ports, err := Ports(2)
	if err != nil {
		return nil, err
	}
	proxy, err := StartProxy(fmt.Sprintf("127.0.0.1:%d", ports[0]))
	if err != nil {
		return nil, err
	}
	return startClickHouse(ctx, dir, ports, proxy, "")
}

// StartClickHouseShards starts n servers that know each other, by their proxies, as
// the shards of the cluster "shards".
func StartClickHouseShards(ctx context.Context, dir string, n int) ([]*ClickHouse, error) {
	ports, err := Ports(2 * n)
	if err != nil {
		return nil, err
	}
	var proxies []*Proxy
	cluster := "<shards>"
	for i := range n {
		p, err := StartProxy(fmt.Sprintf("127.0.0.1:%d", ports[2*i]))
		if err != nil {
			return nil, err
		}
		proxies = append(proxies, p)
		host, port, _ := strings.Cut(p.Addr(), ":")
		cluster += fmt.Sprintf("<shard><weight>%d</weight><replica><host>%s</host><port>%s</port></replica></shard>", i+1, host, port)
	}
	cluster += "</shards>"
	var out []*ClickHouse
	for i := range n {
		c, err := startClickHouse(ctx, filepath.Join(dir, fmt.Sprintf("shard%d", i+1)), ports[2*i:2*i+2], proxies[i], cluster)
		if err != nil {
			for _, c := range out {
				c.Close()
			}
			return nil, err
		}
		out = append(out, c)
	}
	return out, nil
}

func startClickHouse(ctx context.Context, dir string, ports []int, proxy *Proxy, clusters string) (*ClickHouse, error) {
	module, err := NPM(ctx, clickHousePackage, clickHouseVersion)
	if err != nil {
		return nil, err
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		return nil, fmt.Errorf("looking for python3 (apt-get install python3): %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "data", "tmp"), 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of ClickHouse: %w", err)
	}
	config, main := filepath.Join(dir, "config.xml"), filepath.Join(dir, "main.py")
	if err := os.WriteFile(config, fmt.Appendf(nil, clickHouseConfig, dir, ports[0], ports[1], clusters), 0o644); err != nil {
		return nil, fmt.Errorf("configuring ClickHouse: %w", err)
	}
	for path, text := range map[string]string{main: clickHouseMain, filepath.Join(dir, "users.xml"): fmt.Sprintf(clickHouseUsers, "")} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return nil, fmt.Errorf("configuring ClickHouse: %w", err)
		}
	}
	c := &ClickHouse{Proxy: proxy, dir: dir, tcp: fmt.Sprintf("127.0.0.1:%d", ports[0]), http: fmt.Sprintf("http://127.0.0.1:%d", ports[1])}
	const forever = "SYSTEM START LISTEN TCP; SYSTEM START LISTEN HTTP; " +
		"SELECT sleepEachRow(1) FROM numbers(100000000) SETTINGS max_block_size=1, function_sleep_max_microseconds_per_block=0 FORMAT Null"
	c.Process, err = Launch(ctx, Command{
		Name: "clickhouse", Dir: dir, Path: python,
		Args: []string{main, filepath.Join(module, "node_modules", filepath.FromSlash(clickHousePackage), "libchdb.so"),
			"--config-file", config, "--query", forever},
		Ready: func(ctx context.Context) error { return c.ping(ctx) },
	})
	if err != nil {
		return nil, err
	}
	if c.Web, err = StartProxy(strings.TrimPrefix(c.http, "http://")); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func (c *ClickHouse) ping(ctx context.Context) error {
	_, err := c.get(ctx, "/ping", "")
	return err
}

// URL is the server's address in the form of option `url`.
func (c *ClickHouse) URL() string { return "clickhouse://" + c.Proxy.Addr() }

// WebURL is the server's address for the HTTP protocol.
func (c *ClickHouse) WebURL() string { return "http://" + c.Web.Addr() }

// Direct is the server's own address, past the proxy: for measurements.
func (c *ClickHouse) Direct() string { return c.tcp }

// Query runs a statement, past the proxy, and gives its answer as tab-separated
// lines.
func (c *ClickHouse) Query(ctx context.Context, statement string) (string, error) {
	return c.get(ctx, "/?database=default", statement)
}

// QueryAs is Query under a query id.
func (c *ClickHouse) QueryAs(ctx context.Context, id, statement string) (string, error) {
	return c.get(ctx, "/?database=default&query_id="+url.QueryEscape(id), statement)
}

func (c *ClickHouse) get(ctx context.Context, path, body string) (string, error) {
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, c.http+path, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		return "", fmt.Errorf("asking ClickHouse: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("asking ClickHouse: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("asking ClickHouse: %s", tail(text, 2000))
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}

// Close ends the server and its proxy.
func (c *ClickHouse) Close() {
	_ = c.Proxy.Close()
	if c.Web != nil {
		_ = c.Web.Close()
	}
	c.Kill()
}

// Allow makes a user that has these grants ("SELECT ON *.*") alone, in place of the last
// one that it made. The server, which reads its users at its start, is started again.
func (c *ClickHouse) Allow(ctx context.Context, user, password string, grants ...string) error {
	one := fmt.Sprintf("<%[1]s><password>%[2]s</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota><grants>", user, password)
	for _, g := range grants {
		one += "<query>GRANT " + g + "</query>"
	}
	one += fmt.Sprintf("</grants></%s>", user)
	if err := os.WriteFile(filepath.Join(c.dir, "users.xml"), fmt.Appendf(nil, clickHouseUsers, one), 0o644); err != nil {
		return fmt.Errorf("configuring ClickHouse: %w", err)
	}
	c.Kill()
	return c.Start(ctx)
}
