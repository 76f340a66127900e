package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// kafkaVersion is the newest of which broker, tools, Connect and MirrorMaker are all
// published.
const kafkaVersion = "4.3.1"

// KafkaJars returns the directory of the jars of Apache Kafka: broker, clients, the
// command line tools, Streams, Connect and MirrorMaker.
func KafkaJars(ctx context.Context) (dir string, err error) {
	jar := func(artifact string) Jar {
		return Jar{Group: "org.apache.kafka", Artifact: artifact, Version: kafkaVersion}
	}
	log4j := func(artifact string) Jar {
		return Jar{Group: "org.apache.logging.log4j", Artifact: artifact, Version: "2.25.1"}
	}
	return Jars(ctx, "kafka", jar("kafka_2.13"), jar("kafka-tools"), jar("kafka-streams"), jar("kafka-streams-examples"), jar("connect-mirror"), jar("connect-file"),
		log4j("log4j-slf4j-impl"), log4j("log4j-core"))
}

// kafkaLog sends warnings to standard error, and the line that says that the broker
// is up.
const kafkaLog = `status = error
appender.c.type = Console
appender.c.name = C
appender.c.target = SYSTEM_ERR
appender.c.layout.type = PatternLayout
appender.c.layout.pattern = [%d] %p %m (%c)%n
rootLogger.level = WARN
rootLogger.appenderRef.c.ref = C
logger.srv.name = kafka.server.KafkaRaftServer
logger.srv.level = INFO
`

// KafkaOptions say which cluster to start.
type KafkaOptions struct {
	// Dir is the directory of the brokers' data and logs.
	Dir string
	// Brokers is 1 (default) or 3; of three each topic has three replicas, two of
	// them in sync.
	Brokers int
	// Properties are added to each broker's.
	Properties map[string]string
	// JVM are the flags of each broker's JVM; none: those of a functional test.
	JVM []string
	// Proxies puts a KafkaProxy before each broker, for clients that come by ProxyAddrs.
	Proxies bool
	// Secured is the security protocol of one more listener, SECURED, which Properties set
	// up; clients come to it by SecuredAddrs. Empty: there is none.
	Secured string
}

// Kafka is a cluster of Apache Kafka brokers, which are their own controllers.
type Kafka struct {
	Brokers []*KafkaBroker
}

// KafkaBroker is one of them.
type KafkaBroker struct {
	*Process
	Addr string // host:port
	// Secured is the address of listener SECURED; empty: there is none.
	Secured string
	// Proxy is nil unless the options ask for proxies.
	Proxy *KafkaProxy
}

// StartKafka starts the cluster and waits until every broker is up.
func StartKafka(ctx context.Context, o KafkaOptions) (*Kafka, error) {
	jars, err := KafkaJars(ctx)
	if err != nil {
		return nil, err
	}
	java, err := JavaPath()
	if err != nil {
		return nil, err
	}
	jvm := o.JVM
	if len(jvm) == 0 {
		jvm = SmallJVM(256)
	}
	n := max(o.Brokers, 1)
	ports, err := Ports(4 * n)
	if err != nil {
		return nil, err
	}
	logging := filepath.Join(o.Dir, "log4j2.properties")
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("starting Kafka: %w", err)
	}
	if err := os.WriteFile(logging, []byte(kafkaLog), 0o644); err != nil {
		return nil, fmt.Errorf("starting Kafka: %w", err)
	}
	var voters []string
	for i := range n {
		voters = append(voters, fmt.Sprintf("%d@127.0.0.1:%d", i+1, ports[n+i]))
	}
	k := &Kafka{}
	for i := range n {
		dir := filepath.Join(o.Dir, fmt.Sprintf("broker%d", i+1))
		addr := fmt.Sprintf("127.0.0.1:%d", ports[i])
		b := &KafkaBroker{Addr: addr, Process: &Process{}}
		k.Brokers = append(k.Brokers, b)
		properties, err := b.listeners(o, ports[n+i], ports[2*n+i], ports[3*n+i])
		if err != nil {
			return nil, err
		}
		file, err := writeKafkaProperties(dir, i+1, n, properties, strings.Join(voters, ","))
		if err != nil {
			return nil, err
		}
		class := []string{"-cp", filepath.Join(jars, "*"), "-Dlog4j2.configurationFile=" + logging}
		// Any fixed id will do: the brokers of one cluster share it.
		format := exec.CommandContext(ctx, java, append(append(SmallJVM(128), class...), "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", file)...)
		if err := combined(format); err != nil {
			return nil, fmt.Errorf("formatting the storage of a Kafka broker: %w", err)
		}
		b.Process.command = Command{Name: "kafka", Dir: dir, Path: java, Args: append(append(slices.Clone(jvm), class...), "kafka.Kafka", file),
			ReadyTimeout: time.Duration(n) * defaultReadyTimeout, Ready: b.up}
	}
	// None is up before most of them run.
	starting := make(chan error, n)
	for _, b := range k.Brokers {
		go func() { starting <- b.Start(ctx) }()
	}
	var errs []error
	for range n {
		errs = append(errs, <-starting)
	}
	if err := errors.Join(errs...); err != nil {
		k.Close()
		return nil, err
	}
	return k, nil
}

// up looks for the line that a broker prints once it serves. Its log holds one for
// each time that it came up.
func (b *KafkaBroker) up(context.Context) error {
	log, err := os.ReadFile(b.LogPath())
	if err != nil {
		return err
	}
	if n := strings.Count(string(log[b.logStart:]), "Kafka Server started"); n == 0 {
		return errors.New("the broker has not started")
	}
	return nil
}

// listeners are the broker's listeners, and the options' properties. What comes through
// the proxy comes by a listener of its own, which tells clients the proxy's address.
func (b *KafkaBroker) listeners(o KafkaOptions, controllerPort, proxiedPort, securedPort int) (map[string]string, error) {
	all := fmt.Sprintf("PLAINTEXT://%s,CONTROLLER://127.0.0.1:%d", b.Addr, controllerPort)
	advertised := "PLAINTEXT://" + b.Addr
	p := map[string]string{"controller.listener.names": "CONTROLLER", "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,PROXIED:PLAINTEXT"}
	if o.Proxies {
		proxied := fmt.Sprintf("127.0.0.1:%d", proxiedPort)
		var err error
		if b.Proxy, err = newKafkaProxy(proxied); err != nil {
			return nil, err
		}
		all += ",PROXIED://" + proxied
		advertised += ",PROXIED://" + b.Proxy.Addr()
	}
	if o.Secured != "" {
		b.Secured = fmt.Sprintf("127.0.0.1:%d", securedPort)
		all += ",SECURED://" + b.Secured
		advertised += ",SECURED://" + b.Secured
		p["listener.security.protocol.map"] += ",SECURED:" + o.Secured
	}
	p["listeners"], p["advertised.listeners"] = all, advertised
	maps.Copy(p, o.Properties)
	return p, nil
}

func writeKafkaProperties(dir string, id, brokers int, more map[string]string, voters string) (file string, err error) {
	replicas, inSync := 1, 1
	if brokers > 2 {
		replicas, inSync = 3, 2
	}
	p := map[string]string{
		"process.roles":                        "broker,controller",
		"node.id":                              fmt.Sprint(id),
		"controller.quorum.voters":             voters,
		"log.dirs":                             filepath.Join(dir, "data"),
		"default.replication.factor":           fmt.Sprint(replicas),
		"min.insync.replicas":                  fmt.Sprint(inSync),
		"offsets.topic.num.partitions":         "4",
		"log.cleaner.dedupe.buffer.size":       "4194304", // the default, 128 MiB, does not fit a small heap
		"group.initial.rebalance.delay.ms":     "0",
		"transaction.state.log.num.partitions": "4",
	}
	for _, topic := range []string{"transaction.state.log", "share.coordinator.state.topic"} {
		p[topic+".replication.factor"], p[topic+".min.isr"] = fmt.Sprint(replicas), fmt.Sprint(inSync)
	}
	p["offsets.topic.replication.factor"] = fmt.Sprint(replicas)
	for k, v := range more {
		p[k] = v
	}
	var b strings.Builder
	for k, v := range p {
		fmt.Fprintf(&b, "%s=%s\n", k, v)
	}
	file = filepath.Join(dir, "server.properties")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("configuring a Kafka broker: %w", err)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		return "", fmt.Errorf("configuring a Kafka broker: %w", err)
	}
	return file, nil
}

// Addrs are the brokers' addresses, separated by commas.
func (k *Kafka) Addrs() string {
	var out []string
	for _, b := range k.Brokers {
		out = append(out, b.Addr)
	}
	return strings.Join(out, ",")
}

// SecuredAddrs are the addresses of the brokers' listeners SECURED, separated by commas.
func (k *Kafka) SecuredAddrs() string {
	var out []string
	for _, b := range k.Brokers {
		out = append(out, b.Secured)
	}
	return strings.Join(out, ",")
}

// ProxyAddrs are the addresses of the brokers' proxies, separated by commas.
func (k *Kafka) ProxyAddrs() string {
	var out []string
	for _, b := range k.Brokers {
		out = append(out, b.Proxy.Addr())
	}
	return strings.Join(out, ",")
}

// Close kills the brokers.
func (k *Kafka) Close() {
	for _, b := range k.Brokers {
		b.Kill()
		if b.Proxy != nil {
			b.Proxy.Close()
		}
	}
}

// StartKafkaApp starts a main class of Kafka's jars that runs until it is killed. Its log
// level is that of the brokers' own: warnings.
func StartKafkaApp(ctx context.Context, name, dir string, ready func(ctx context.Context) error, class string, args ...string) (*Process, error) {
	jars, err := KafkaJars(ctx)
	if err != nil {
		return nil, err
	}
	java, err := JavaPath()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	logging := filepath.Join(dir, "log4j2.properties")
	if err := os.WriteFile(logging, []byte(kafkaLog), 0o644); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	jvm := append(SmallJVM(256), "-Dlog4j2.configurationFile="+logging, "-cp", filepath.Join(jars, "*"), class)
	return Launch(ctx, Command{Name: name, Dir: dir, Path: java, Args: append(jvm, args...), Ready: ready})
}

// KafkaTool runs a main class of Kafka's jars with args and stdin, which may be nil,
// and returns what it printed.
func KafkaTool(ctx context.Context, stdin io.Reader, class string, args ...string) (stdout string, err error) {
	return KafkaToolOn(ctx, SmallJVM(256), stdin, class, args...)
}

// KafkaToolOn is KafkaTool on a JVM with these flags.
func KafkaToolOn(ctx context.Context, jvm []string, stdin io.Reader, class string, args ...string) (stdout string, err error) {
	jars, err := KafkaJars(ctx)
	if err != nil {
		return "", err
	}
	java, err := JavaPath()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, java, append(append(slices.Clone(jvm), "-cp", filepath.Join(jars, "*"), class), args...)...)
	cmd.Stdin = stdin
	var errText strings.Builder
	cmd.Stderr = &errText
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("running %s: %w\n%s", class, err, tail([]byte(errText.String()), 4000))
	}
	return string(out), nil
}
