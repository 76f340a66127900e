package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/internal/exitcode"
	"github.com/millrace/millrace/cmd/internal/sysmon"
	"github.com/millrace/millrace/jobs/node"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/kafkaproto"
	"github.com/millrace/millrace/storage/topiclog"
	"github.com/millrace/millrace/storage/vfs"
)

// drainTime is how long requests under way may take when the server stops.
const drainTime = 10 * time.Second

// leastWriteCache is the smallest write cache that the log store takes, in bytes.
const leastWriteCache = 1 << 20

// serverFlags are what `server` is told.
type serverFlags struct {
	kafka      []string
	advertise  string
	security   securityFlags
	autoCreate int
	partitions int
	writeCache string
}

func serverCommand(e *Env) *cobra.Command {
	var f serverFlags
	cmd := &cobra.Command{
		Use:   "server --kafka ADDR",
		Short: "serve the log to Kafka clients until stopped",
		Long: `Serves the topics of the data directory to Kafka clients: producers, consumers with
and without a group, and topic administration. The process owns the data directory
meanwhile; other commands given the same --data talk to it.

A write is answered when it is on disk, whatever acks the client asks for. So is the
outcome of a transaction. What is not served is not advertised to clients.

With --kafka-sasl clients log in as one of the users of 'millrace users'; with
--kafka-tls-client-ca they show a certificate. Then they may do what 'millrace acls'
allows them and nothing else. Without either everybody may do everything, and --kafka
takes only addresses of this machine unless --allow-unauthenticated is given.

The first SIGINT or SIGTERM answers what was read, then exits 0.`,
		Example: `  millrace server --kafka 127.0.0.1:9092
  millrace server --kafka 127.0.0.1:9092 --kafka unix:/run/millrace/kafka.sock
  millrace server --kafka :9092 --kafka-tls-cert cert.pem --kafka-tls-key key.pem \
    --kafka-sasl SCRAM-SHA-512 --super-user admin`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return e.serve(cmd, f) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&f.kafka, "kafka", nil, "listen on `ADDR`, HOST:PORT or unix:PATH; may be repeated")
	fl.StringVar(&f.advertise, "advertise", "", "tell clients to connect to `HOST:PORT`; else to the address they came by")
	fl.IntVar(&f.autoCreate, "auto-create", 0, "make a missing topic that a client asks for, with `N` partitions; 0: do not")
	fl.IntVar(&f.partitions, "partitions", 1, "`N` partitions for topics that clients create without a number")
	fl.StringVar(&f.writeCache, "write-cache", "128mb", "`SIZE` of the memory for records that only the journal has yet")
	f.security.add(cmd)
	return cmd
}

func (e *Env) serve(cmd *cobra.Command, f serverFlags) (err error) {
	switch {
	case len(f.kafka) == 0:
		return usage("--kafka is missing: say where to listen, such as --kafka 127.0.0.1:9092")
	case f.autoCreate < 0 || f.partitions < 1:
		return usage("--auto-create is at least 0 and --partitions at least 1")
	}
	// What is wrong with the arguments is said before the data directory is touched.
	o := kafkaproto.Options{Advertised: f.advertise, AutoCreatePartitions: f.autoCreate, DefaultPartitions: f.partitions,
		Logger: slog.New(slog.NewTextHandler(e.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	if err := f.security.options(&o); err != nil {
		return err
	}
	if err := checkAddresses(f.kafka, &o); err != nil {
		return err
	}
	cache, err := connector.ParseBytes(f.writeCache)
	if err == nil && cache < leastWriteCache {
		err = errors.New("at least 1 mb")
	}
	if err != nil {
		return usage("--write-cache %s: %v", f.writeCache, err)
	}
	n, store, err := e.openLog(cmd.Context(), commandName(cmd), topiclog.Options{CacheBytes: cache})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	for _, d := range n.Recovery().Damage {
		e.note("log: %s", d)
	}
	o.Store = store
	if o.Security.Access, err = n.Access(); err != nil {
		return err
	}
	s, err := kafkaproto.New(o)
	if err != nil {
		return exitcode.With(exitcode.Input, err)
	}
	n.Coordinate(s)
	// Without the right to it the server takes more processor time, no more.
	_ = sysmon.Relax()
	ended := make(chan error, len(f.kafka))
	listening := 0
	for _, addr := range f.kafka {
		var l net.Listener
		if l, err = listenKafka(addr); err != nil {
			break
		}
		listening++
		go func() { ended <- s.Serve(l) }()
		e.note("Kafka clients are served on %s", l.Addr())
	}
	if err == nil {
		select {
		case <-cmd.Context().Done():
			e.note("stopping: answering what was asked")
		case err = <-ended:
			listening--
		}
	}
	// cmd's context has ended; the drain has its own time.
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if drained := s.Shutdown(ctx); drained != nil {
		e.note("clients that took no answers for %v were cut off", drainTime)
	}
	for ; listening > 0; listening-- {
		if end := <-ended; err == nil && !errors.Is(end, kafkaproto.ErrServerClosed) {
			err = end
		}
	}
	return exitcode.With(exitcode.Environment, err)
}

// checkAddresses refuses what is no address, and one that strangers can reach while
// nobody asks who they are.
func checkAddresses(addrs []string, o *kafkaproto.Options) error {
	for _, addr := range addrs {
		if strings.HasPrefix(addr, "unix:") {
			continue
		}
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return usage("--kafka %s: write HOST:PORT or unix:PATH", addr)
		}
		tcp, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			return exitcode.With(exitcode.Input, fmt.Errorf("--kafka %s: %w", addr, err))
		}
		if err := o.Permits(tcp); err != nil {
			return exitcode.With(exitcode.Input, fmt.Errorf("%w: listen on 127.0.0.1, authenticate clients by --kafka-sasl or --kafka-tls-client-ca, or say --allow-unauthenticated", err))
		}
	}
	return nil
}

// openLog makes this process the owner of the data directory, and hands out its
// log.
func (e *Env) openLog(ctx context.Context, command string, o topiclog.Options) (*node.Node, *topiclog.Store, error) {
	var store *topiclog.Store
	n, err := e.openWith(ctx, command, func(log *client.Client, fsys vfs.FS) (*connector.Registry, error) {
		store = log.Store()
		return e.connectors(log, fsys)
	}, o)
	return n, store, err
}

// listenKafka listens on HOST:PORT or unix:PATH. A socket that a process left
// behind is replaced, one that answers is not.
func listenKafka(addr string) (net.Listener, error) {
	path, unix := strings.CutPrefix(addr, "unix:")
	if !unix {
		l, err := net.Listen("tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("listening for Kafka clients: %w", err)
		}
		return l, nil
	}
	if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSocket != 0 {
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
			return nil, fmt.Errorf("listening for Kafka clients: %s is in use", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing an abandoned socket: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening for Kafka clients: %w", err)
	}
	return l, nil
}
