package services

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// oldClickHouse is Debian's server, 18.16: the one with replication that can be
// had.
const oldClickHouse = "/usr/sbin/clickhouse-server"

const zooKeeperConfig = `tickTime=500
dataDir=%s
clientPort=%d
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
`

const oldUsers = `<yandex>
 <profiles><default><max_memory_usage>3000000000</max_memory_usage><load_balancing>in_order</load_balancing></default></profiles>
 <users><default><password></password><networks><ip>127.0.0.1</ip><ip>::1</ip></networks><profile>default</profile><quota>default</quota></default></users>
 <quotas><default><interval><duration>3600</duration><queries>0</queries><errors>0</errors><result_rows>0</result_rows><read_rows>0</read_rows><execution_time>0</execution_time></interval></default></quotas>
</yandex>
`

// ClickHouseReplica is one server of a cluster.
type ClickHouseReplica struct {
	*Process
	tcp, http int
}

// URL is the server's address in the form of option `url`.
func (r *ClickHouseReplica) URL() string { return fmt.Sprintf("clickhouse://%s", r.Addr()) }

// Addr is host:port of the native protocol.
func (r *ClickHouseReplica) Addr() string { return fmt.Sprintf("127.0.0.1:%d", r.tcp) }

// Query runs a statement and gives its answer as tab-separated lines.
func (r *ClickHouseReplica) Query(ctx context.Context, statement string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/", r.http), strings.NewReader(statement))
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", fmt.Errorf("asking ClickHouse: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(string(tail(text, 2000)))
	}
	if err != nil {
		return "", fmt.Errorf("asking ClickHouse: %w", err)
	}
	return strings.TrimSuffix(string(text), "\n"), nil
}

// ClickHouseCluster is ClickHouse 18.16 with ZooKeeper: shards of two replicas
// each, which are the cluster "shards". The macros shard and replica name a server's
// place.
type ClickHouseCluster struct {
	ZooKeeper *Process
	// Replicas by shard and replica.
	Replicas [][2]*ClickHouseReplica
}

// StartClickHouseCluster starts ZooKeeper and the servers in dir.
func StartClickHouseCluster(ctx context.Context, dir string, shards int) (*ClickHouseCluster, error) {
	if err := Debian(ctx, oldClickHouse, "clickhouse-server"); err != nil {
		return nil, err
	}
	if err := Debian(ctx, "/usr/share/java/zookeeper.jar", "zookeeper", "libzookeeper-java"); err != nil {
		return nil, err
	}
	ports, err := Ports(1 + 6*shards)
	if err != nil {
		return nil, err
	}
	c := &ClickHouseCluster{}
	if c.ZooKeeper, err = startZooKeeper(ctx, filepath.Join(dir, "zk"), ports[0]); err != nil {
		return nil, err
	}
	clusters := oldClusters(ports, shards)
	for s := range shards {
		var pair [2]*ClickHouseReplica
		for r := range pair {
			p := ports[1+6*s+3*r:]
			if pair[r], err = startReplica(ctx, filepath.Join(dir, fmt.Sprintf("s%dr%d", s+1, r+1)), s+1, r+1, ports[0], p[0], p[1], p[2], clusters); err != nil {
				c.Close()
				return nil, err
			}
		}
		c.Replicas = append(c.Replicas, pair)
	}
	return c, nil
}

// oldClusters is the cluster of all servers; the native ports lie three apart.
func oldClusters(ports []int, shards int) string {
	out := "<shards>"
	for s := range shards {
		out += "<shard><internal_replication>true</internal_replication>"
		for r := range 2 {
			out += fmt.Sprintf("<replica><host>127.0.0.1</host><port>%d</port></replica>", ports[1+6*s+3*r])
		}
		out += "</shard>"
	}
	return out + "</shards>"
}

// Close ends all servers.
func (c *ClickHouseCluster) Close() {
	for _, pair := range c.Replicas {
		for _, r := range pair {
			if r != nil {
				r.Kill()
			}
		}
	}
	c.ZooKeeper.Kill()
}

func startZooKeeper(ctx context.Context, dir string, port int) (*Process, error) {
	java, err := JavaPath()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o755); err != nil {
		return nil, fmt.Errorf("configuring ZooKeeper: %w", err)
	}
	config := filepath.Join(dir, "zoo.cfg")
	if err := os.WriteFile(config, fmt.Appendf(nil, zooKeeperConfig, filepath.Join(dir, "data"), port), 0o644); err != nil {
		return nil, fmt.Errorf("configuring ZooKeeper: %w", err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	return Launch(ctx, Command{Name: "zookeeper", Dir: dir, Path: java,
		Args:  append(SmallJVM(256), "-cp", "/usr/share/java/zookeeper.jar", "org.apache.zookeeper.server.quorum.QuorumPeerMain", config),
		Ready: func(ctx context.Context) error { return zooKeeperOK(ctx, addr) }})
}

// zooKeeperOK asks whether ZooKeeper serves. An answer may never come while it
// starts.
func zooKeeperOK(ctx context.Context, addr string) error {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("ruok")); err != nil {
		return err
	}
	answer, err := io.ReadAll(conn)
	if err == nil && string(answer) != "imok" {
		err = fmt.Errorf("ZooKeeper says %q", answer)
	}
	return err
}

func startReplica(ctx context.Context, dir string, shard, replica, zooKeeper, tcp, http, interserver int, clusters string) (*ClickHouseReplica, error) {
	for _, d := range []string{"data", "tmp", "user_files", "format_schemas"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			return nil, fmt.Errorf("making the directory of ClickHouse: %w", err)
		}
	}
	type inner struct {
		XML string `xml:",innerxml"`
	}
	type macros struct {
		Shard   int    `xml:"shard"`
		Replica string `xml:"replica"`
	}
	config := struct {
		XMLName     xml.Name `xml:"yandex"`
		Level       string   `xml:"logger>level"`
		Log         string   `xml:"logger>log"`
		ErrorLog    string   `xml:"logger>errorlog"`
		Listen      string   `xml:"listen_host"`
		TCP         int      `xml:"tcp_port"`
		HTTP        int      `xml:"http_port"`
		Interserver int      `xml:"interserver_http_port"`
		Host        string   `xml:"interserver_http_host"`
		Path        string   `xml:"path"`
		Temporary   string   `xml:"tmp_path"`
		Files       string   `xml:"user_files_path"`
		Schemas     string   `xml:"format_schema_path"`
		Users       string   `xml:"users_config"`
		Profile     string   `xml:"default_profile"`
		Database    string   `xml:"default_database"`
		Zone        string   `xml:"timezone"`
		Marks       int      `xml:"mark_cache_size"`
		KeeperHost  string   `xml:"zookeeper>node>host"`
		KeeperPort  int      `xml:"zookeeper>node>port"`
		Session     int      `xml:"zookeeper>session_timeout_ms"`
		Macros      macros   `xml:"macros"`
		Clusters    inner    `xml:"remote_servers"`
	}{
		Level: "information", Log: filepath.Join(dir, "server.log"), ErrorLog: filepath.Join(dir, "error.log"),
		Listen: "127.0.0.1", TCP: tcp, HTTP: http, Interserver: interserver, Host: "127.0.0.1",
		Path: dir + "/data/", Temporary: dir + "/tmp/", Files: dir + "/user_files/", Schemas: dir + "/format_schemas/",
		Users: "users.xml", Profile: "default", Database: "default", Zone: "UTC", Marks: 64 << 20,
		KeeperHost: "127.0.0.1", KeeperPort: zooKeeper, Session: 6000, Macros: macros{shard, fmt.Sprintf("r%d", replica)}, Clusters: inner{clusters},
	}
	text, err := xml.MarshalIndent(config, "", " ")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "config.xml"), text, 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "users.xml"), []byte(oldUsers), 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("configuring ClickHouse: %w", err)
	}
	r := &ClickHouseReplica{tcp: tcp, http: http}
	r.Process, err = Launch(ctx, Command{Name: "clickhouse", Dir: dir, Path: oldClickHouse, Args: []string{"--config-file=" + filepath.Join(dir, "config.xml")},
		Ready: func(ctx context.Context) error { _, err := r.Query(ctx, "SELECT 1"); return err }})
	if err != nil {
		return nil, err
	}
	return r, nil
}
