package services

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"time"
)

// hdfsVersion is the Hadoop that StartHDFS runs.
const hdfsVersion = "3.4.1"

// HDFSOptions describe a cluster. The zero value, with Dir, is one NameNode and
// one DataNode.
type HDFSOptions struct {
	// Dir takes configuration, data and logs.
	Dir string
	// DataNodes is how many there are; default 1.
	DataNodes int
	// Replication of files that name none; default 1.
	Replication int
	// HA makes a pair of NameNodes, the first active, with one JournalNode,
	// under the name service "ns1". Nothing fails over by itself.
	HA bool
	// NameNodePort is what clients are told of the NameNode's port when it is
	// not its own: a proxy's.
	NameNodePort int
}

// HDFS is a running cluster.
type HDFS struct {
	// NameNodes are one, or two with HA; DataNodes are in the order of their
	// directories dn1, dn2...
	NameNodes []*Process
	DataNodes []*Process
	// Journal is the JournalNode of a pair.
	Journal *Process
	// Addresses are the NameNodes' RPC addresses, as "127.0.0.1:port".
	Addresses []string
	// ConfDir has the core-site.xml and hdfs-site.xml of clients.
	ConfDir string

	opts  HDFSOptions
	jars  string
	roles map[string]*hdfsRole
}

// hdfsRole is one daemon's place.
type hdfsRole struct {
	name, class string
	heapMiB     int
	rpc, http   int
	extra       int // further ports
	props       map[string]string
}

const (
	classNameNode    = "org.apache.hadoop.hdfs.server.namenode.NameNode"
	classDataNode    = "org.apache.hadoop.hdfs.server.datanode.DataNode"
	classJournalNode = "org.apache.hadoop.hdfs.qjournal.server.JournalNode"
	classShell       = "org.apache.hadoop.fs.FsShell"
	classEC          = "org.apache.hadoop.hdfs.tools.ECAdmin"
	classAdmin       = "org.apache.hadoop.hdfs.tools.DFSAdmin"
	classHAAdmin     = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"
)

// HDFSJars fetches Hadoop and returns the directory of its jars.
func HDFSJars(ctx context.Context) (string, error) {
	return Jars(ctx, "hdfs",
		Jar{Group: "org.apache.hadoop", Artifact: "hadoop-common", Version: hdfsVersion},
		Jar{Group: "org.apache.hadoop", Artifact: "hadoop-hdfs", Version: hdfsVersion},
		Jar{Group: "org.apache.hadoop", Artifact: "hadoop-hdfs-client", Version: hdfsVersion},
		// Otherwise an older one is chosen, in which the NameNode misses a class.
		Jar{Group: "com.fasterxml.jackson.core", Artifact: "jackson-core", Version: "2.12.7"})
}

// StartHDFS formats and starts a cluster and waits until all DataNodes serve.
func StartHDFS(ctx context.Context, o HDFSOptions) (*HDFS, error) {
	if o.Dir == "" {
		return nil, errors.New("starting HDFS: it needs a directory")
	}
	o.DataNodes, o.Replication = max(o.DataNodes, 1), max(o.Replication, 1)
	jars, err := HDFSJars(ctx)
	if err != nil {
		return nil, err
	}
	h := &HDFS{opts: o, jars: jars, roles: map[string]*hdfsRole{}}
	if err := h.layout(); err != nil {
		return nil, fmt.Errorf("starting HDFS: %w", err)
	}
	if err := h.start(ctx); err != nil {
		h.Close()
		return nil, fmt.Errorf("starting HDFS: %w", err)
	}
	return h, nil
}

// layout chooses ports and writes the configurations.
func (h *HDFS) layout() error {
	names := []string{"nn1"}
	if h.opts.HA {
		names = append(names, "nn2", "jn")
	}
	for i := range h.opts.DataNodes {
		names = append(names, fmt.Sprintf("dn%d", i+1))
	}
	ports, err := Ports(3 * len(names))
	if err != nil {
		return err
	}
	for i, n := range names {
		r := &hdfsRole{name: n, class: classDataNode, heapMiB: 192, rpc: ports[3*i], http: ports[3*i+1], extra: ports[3*i+2], props: map[string]string{}}
		switch n[:2] {
		case "nn":
			r.class, r.heapMiB = classNameNode, 256
			h.Addresses = append(h.Addresses, fmt.Sprintf("127.0.0.1:%d", r.rpc))
		case "jn":
			r.class, r.heapMiB = classJournalNode, 128
		}
		h.roles[n] = r
	}
	// The jars lack the pages that the daemons' HTTP servers look for.
	for _, d := range []string{"hdfs", "datanode", "journal", "secondary", "static"} {
		if err := os.MkdirAll(filepath.Join(h.opts.Dir, "web", "webapps", d), 0o755); err != nil {
			return err
		}
	}
	h.ConfDir = filepath.Join(h.opts.Dir, "client", "conf")
	if err := h.writeConf(h.ConfDir, h.common(true)); err != nil {
		return err
	}
	for _, n := range names {
		props := h.common(false)
		for k, v := range h.own(h.roles[n]) {
			props[k] = v
		}
		if err := h.writeConf(filepath.Join(h.opts.Dir, n, "conf"), props); err != nil {
			return err
		}
	}
	return nil
}

// common are the settings that all daemons, or clients, share.
func (h *HDFS) common(client bool) map[string]string {
	p := map[string]string{
		"hadoop.tmp.dir": filepath.Join(h.opts.Dir, "tmp"),
		// A role's dead DataNode is noticed after 2*2 s + 10*1 s, not 10 min.
		"dfs.namenode.heartbeat.recheck-interval": "2000",
		"dfs.heartbeat.interval":                  "1",
		"dfs.replication":                         fmt.Sprint(h.opts.Replication),
		"dfs.namenode.safemode.extension":         "0",
		// Small files in many blocks are what tests want.
		"dfs.namenode.fs-limits.min-block-size":                "1024",
		"dfs.namenode.datanode.registration.ip-hostname-check": "false",
		"dfs.permissions.enabled":                              "true",
	}
	if !h.opts.HA {
		port := h.roles["nn1"].rpc
		if client && h.opts.NameNodePort != 0 {
			port = h.opts.NameNodePort
		}
		p["fs.defaultFS"] = fmt.Sprintf("hdfs://127.0.0.1:%d", port)
		p["dfs.namenode.rpc-address"] = fmt.Sprintf("127.0.0.1:%d", h.roles["nn1"].rpc)
		p["dfs.namenode.http-address"] = fmt.Sprintf("127.0.0.1:%d", h.roles["nn1"].http)
		return p
	}
	p["fs.defaultFS"] = "hdfs://ns1"
	p["dfs.nameservices"] = "ns1"
	p["dfs.ha.namenodes.ns1"] = "nn1,nn2"
	for _, n := range []string{"nn1", "nn2"} {
		p["dfs.namenode.rpc-address.ns1."+n] = fmt.Sprintf("127.0.0.1:%d", h.roles[n].rpc)
		p["dfs.namenode.http-address.ns1."+n] = fmt.Sprintf("127.0.0.1:%d", h.roles[n].http)
	}
	p["dfs.namenode.shared.edits.dir"] = fmt.Sprintf("qjournal://127.0.0.1:%d/ns1", h.roles["jn"].rpc)
	p["dfs.client.failover.proxy.provider.ns1"] = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
	p["dfs.ha.fencing.methods"] = "shell(/bin/true)"
	p["dfs.ha.automatic-failover.enabled"] = "false"
	p["dfs.ha.tail-edits.period"] = "1s"
	p["dfs.ha.log-roll.period"] = "5s"
	return p
}

// own are the settings of one daemon.
func (h *HDFS) own(r *hdfsRole) map[string]string {
	dir := "file://" + filepath.Join(h.opts.Dir, r.name)
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	switch r.class {
	case classNameNode:
		p := map[string]string{"dfs.namenode.name.dir": dir + "/name"}
		if h.opts.HA {
			p["dfs.ha.namenode.id"] = r.name
		}
		return p
	case classJournalNode:
		return map[string]string{"dfs.journalnode.rpc-address": at(r.rpc), "dfs.journalnode.http-address": at(r.http),
			"dfs.journalnode.edits.dir": filepath.Join(h.opts.Dir, r.name, "edits")}
	}
	return map[string]string{"dfs.datanode.data.dir": dir + "/data", "dfs.datanode.address": at(r.rpc), "dfs.datanode.ipc.address": at(r.extra),
		"dfs.datanode.http.address": at(r.http), "dfs.datanode.hostname": "127.0.0.1"}
}

const hdfsLog = `log4j.rootLogger=INFO,console
log4j.appender.console=org.apache.log4j.ConsoleAppender
log4j.appender.console.target=System.err
log4j.appender.console.layout=org.apache.log4j.PatternLayout
log4j.appender.console.layout.ConversionPattern=%d{HH:mm:ss.SSS} %p %c{2}: %m%n
`

// writeConf writes both site files with all settings: each daemon reads what is
// its own.
func (h *HDFS) writeConf(dir string, props map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	keys := make([]string, 0, len(props))
	for k := range props {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\"?>\n<configuration>\n")
	for _, k := range keys {
		fmt.Fprintf(&b, "<property><name>%s</name><value>%s</value></property>\n", k, props[k])
	}
	b.WriteString("</configuration>\n")
	for name, text := range map[string]string{"core-site.xml": b.String(), "hdfs-site.xml": b.String(), "log4j.properties": hdfsLog} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// args are the JVM's arguments for a class under a role's configuration.
func (h *HDFS) args(role, class string, heapMiB int, more ...string) []string {
	path := strings.Join([]string{filepath.Join(h.opts.Dir, role, "conf"), filepath.Join(h.opts.Dir, "web"), h.jars + "/*"}, ":")
	return append(append(SmallJVM(heapMiB), "-Djava.net.preferIPv4Stack=true", "-cp", path, class), more...)
}

// tool runs a class of Hadoop to its end, with nothing on its stdin: some ask
// questions there.
func (h *HDFS) tool(ctx context.Context, role, class string, args ...string) (string, error) {
	java, err := JavaPath()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, java, h.args(role, class, 128, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return string(tail(out, 4000)), fmt.Errorf("running %s %s: %w\n%s", class[strings.LastIndexByte(class, '.')+1:], strings.Join(args, " "), err, tail(out, 4000))
	}
	return string(tail(out, 64<<10)), nil
}

// Admin runs dfsadmin, e.g. "-safemode", "enter".
func (h *HDFS) Admin(ctx context.Context, args ...string) (string, error) {
	return h.tool(ctx, "nn1", classAdmin, args...)
}

// Shell runs `hdfs dfs`, e.g. "-put", "file", "/dir".
func (h *HDFS) Shell(ctx context.Context, args ...string) (string, error) {
	return h.tool(ctx, "nn1", classShell, args...)
}

// ErasureCoding runs `hdfs ec`, e.g. "-enablePolicy", "-policy", "XOR-2-1-1024k".
func (h *HDFS) ErasureCoding(ctx context.Context, args ...string) (string, error) {
	return h.tool(ctx, "nn1", classEC, args...)
}

// Activate makes a NameNode of a pair (0 or 1) the active one. forced: the
// other one is dead and cannot be asked.
func (h *HDFS) Activate(ctx context.Context, n int, forced bool) error {
	args := []string{"-ns", "ns1", "-transitionToActive"}
	if forced {
		args = append(args, "--forceactive")
	}
	_, err := h.tool(ctx, "nn1", classHAAdmin, append(args, fmt.Sprintf("nn%d", n+1))...)
	return err
}

// Deactivate makes a NameNode of a pair a standby.
func (h *HDFS) Deactivate(ctx context.Context, n int) error {
	_, err := h.tool(ctx, "nn1", classHAAdmin, "-ns", "ns1", "-transitionToStandby", fmt.Sprintf("nn%d", n+1))
	return err
}

func (h *HDFS) start(ctx context.Context) error {
	if h.opts.HA {
		p, err := h.launch(ctx, h.roles["jn"], AcceptsTCP(fmt.Sprintf("127.0.0.1:%d", h.roles["jn"].rpc)))
		if err != nil {
			return err
		}
		h.Journal = p
	}
	if _, err := h.tool(ctx, "nn1", classNameNode, "-format", "-force", "-nonInteractive", "-clusterId", "CID-test"); err != nil {
		return err
	}
	for i := range h.Addresses {
		r := h.roles[fmt.Sprintf("nn%d", i+1)]
		if i > 0 {
			if _, err := h.tool(ctx, r.name, classNameNode, "-bootstrapStandby", "-force", "-nonInteractive"); err != nil {
				return err
			}
		}
		p, err := h.launch(ctx, r, func(ctx context.Context) error {
			_, err := h.state(ctx, r)
			return err
		})
		if err != nil {
			return err
		}
		h.NameNodes = append(h.NameNodes, p)
	}
	if h.opts.HA {
		if err := h.Activate(ctx, 0, false); err != nil {
			return err
		}
	}
	for i := range h.opts.DataNodes {
		// One after the other: two cores.
		n := i + 1
		p, err := h.launch(ctx, h.roles[fmt.Sprintf("dn%d", n)], func(ctx context.Context) error { return h.Live(ctx, 0, n) })
		if err != nil {
			return err
		}
		h.DataNodes = append(h.DataNodes, p)
	}
	return nil
}

func (h *HDFS) launch(ctx context.Context, r *hdfsRole, ready func(context.Context) error) (*Process, error) {
	java, err := JavaPath()
	if err != nil {
		return nil, err
	}
	return Launch(ctx, Command{Name: r.name, Dir: filepath.Join(h.opts.Dir, r.name), Path: java, Args: h.args(r.name, r.class, r.heapMiB), Ready: ready})
}

// hdfsState is what a NameNode says of itself.
type hdfsState struct {
	FSState          string
	NumLiveDataNodes int
}

// state asks a NameNode over HTTP.
func (h *HDFS) state(ctx context.Context, r *hdfsRole) (hdfsState, error) {
	var s hdfsState
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://127.0.0.1:%d/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState", r.http), nil)
	if err != nil {
		return s, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return s, err
	}
	defer resp.Body.Close()
	var beans struct{ Beans []hdfsState }
	if err := json.NewDecoder(resp.Body).Decode(&beans); err != nil {
		return s, fmt.Errorf("reading the state of %s: %w", r.name, err)
	}
	if len(beans.Beans) == 0 {
		return s, fmt.Errorf("%s has no state yet", r.name)
	}
	return beans.Beans[0], AcceptsTCP(fmt.Sprintf("127.0.0.1:%d", r.rpc))(ctx)
}

// Live answers nil once the NameNode of that number is out of safe mode and
// counts exactly so many live DataNodes.
func (h *HDFS) Live(ctx context.Context, nameNode, dataNodes int) error {
	s, err := h.state(ctx, h.roles[fmt.Sprintf("nn%d", nameNode+1)])
	if err != nil {
		return err
	}
	if s.FSState != "Operational" || s.NumLiveDataNodes != dataNodes {
		return fmt.Errorf("the NameNode is in state %q with %d live DataNodes, not %d", s.FSState, s.NumLiveDataNodes, dataNodes)
	}
	return nil
}

// Await waits until Live says so.
func (h *HDFS) Await(ctx context.Context, nameNode, dataNodes int) error {
	for {
		err := h.Live(ctx, nameNode, dataNodes)
		if err == nil {
			return nil
		}
		if perr := pause(ctx, readyPoll); perr != nil {
			return fmt.Errorf("waiting for HDFS: %w", err)
		}
	}
}

// Close kills all daemons.
func (h *HDFS) Close() {
	for _, p := range append(append(append([]*Process{}, h.DataNodes...), h.NameNodes...), h.Journal) {
		if p != nil {
			p.Resume()
			p.Kill()
		}
	}
}
