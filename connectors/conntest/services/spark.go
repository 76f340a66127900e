package services

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

//go:embed requirements-spark.txt
var sparkRequirements string

//go:embed spark.py
var sparkDriver string

// SparkPackages fetches Spark and returns the directory for PYTHONPATH.
func SparkPackages(ctx context.Context) (string, error) {
	return Cached(ctx, "spark", sparkRequirements, func(ctx context.Context, dir string) error {
		pins := filepath.Join(dir, "requirements.txt")
		if err := os.WriteFile(pins, []byte(sparkRequirements), 0o644); err != nil {
			return err
		}
		return runTool(ctx, dir, "python3", "apt-get install python3-pip", "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
			"--no-deps", "--require-hashes", "--root-user-action=ignore", "--target", dir, "-r", pins)
	})
}

// SparkOptions say what a Spark is to be like.
type SparkOptions struct {
	// Dir holds its log and what it spills.
	Dir string
	// Metastore is the one (2.3) whose tables it reads.
	Metastore *Metastore
	// Config is added to the session's.
	Config map[string]string
}

// Spark is a Spark SQL session in a process of its own, in UTC. It answers one
// query at a time.
type Spark struct {
	log string
	cmd *exec.Cmd

	mu  sync.Mutex
	in  io.WriteCloser
	out *bufio.Reader
}

// StartSpark starts a session; it takes ten seconds and more.
func StartSpark(ctx context.Context, o SparkOptions) (*Spark, error) {
	packages, err := SparkPackages(ctx)
	if err != nil {
		return nil, err
	}
	ports, err := Ports(2)
	if err != nil {
		return nil, err
	}
	config := map[string]string{
		"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1",
		"spark.driver.port": fmt.Sprint(ports[0]), "spark.blockManager.port": fmt.Sprint(ports[1]),
		"spark.sql.catalogImplementation": "hive", "spark.hadoop.hive.metastore.uris": o.Metastore.URI,
		"spark.sql.warehouse.dir": o.Metastore.Warehouse, "spark.driver.memory": "700m", "spark.sql.shuffle.partitions": "1",
		"spark.sql.session.timeZone": "UTC", "spark.local.dir": o.Dir,
		"spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Duser.timezone=UTC -Dderby.system.home=" + o.Dir,
	}
	for k, v := range o.Config {
		config[k] = v
	}
	settings, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	driver := filepath.Join(o.Dir, "spark.py")
	if err := writeFiles(map[string]string{driver: sparkDriver}); err != nil {
		return nil, err
	}
	s := &Spark{log: filepath.Join(o.Dir, "spark.log")}
	log, err := os.Create(s.log)
	if err != nil {
		return nil, fmt.Errorf("starting Spark: %w", err)
	}
	defer log.Close()
	s.cmd = exec.Command("python3", driver, string(settings))
	s.cmd.Dir, s.cmd.Stderr = o.Dir, log
	s.cmd.Env = append(os.Environ(), "PYTHONPATH="+packages, "PYTHONNOUSERSITE=1", "SPARK_LOCAL_IP=127.0.0.1", "TZ=UTC", "PYSPARK_PYTHON=python3")
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.out = bufio.NewReader(out)
	if _, err := startChild(s.cmd); err != nil {
		return nil, fmt.Errorf("starting Spark (apt-get install python3): %w", err)
	}
	if _, err := s.answer(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("starting Spark: %w", err)
	}
	return s, nil
}

// Query runs one statement and returns its rows: nil, bool, json.Number, string,
// []any, map[string]any. Decimals, dates and times are text, bytes "0x6d72".
func (s *Spark) Query(ctx context.Context, sql string) ([][]any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := json.Marshal(map[string]string{"sql": sql})
	if err != nil {
		return nil, err
	}
	if _, err := s.in.Write(append(b, '\n')); err != nil {
		return nil, fmt.Errorf("asking Spark: %w\n%s", err, s.tail())
	}
	rows, err := s.answer(ctx)
	if err != nil {
		return nil, fmt.Errorf("running %s in Spark: %w", sql, err)
	}
	return rows, nil
}

// answer reads one line; Spark is killed when ctx ends first.
func (s *Spark) answer(ctx context.Context) ([][]any, error) {
	stop := context.AfterFunc(ctx, s.kill)
	defer stop()
	line, err := s.out.ReadString('\n')
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("no answer: %w\n%s", err, s.tail())
	}
	var reply struct {
		Rows  [][]any
		Error string
	}
	d := json.NewDecoder(strings.NewReader(line))
	d.UseNumber()
	if err := d.Decode(&reply); err != nil {
		return nil, fmt.Errorf("reading the answer %.200q: %w", line, err)
	}
	if reply.Error != "" {
		return nil, errors.New(reply.Error)
	}
	return reply.Rows, nil
}

func (s *Spark) tail() string {
	b, err := os.ReadFile(s.log)
	if err != nil {
		return err.Error()
	}
	return string(tail(b, 6000))
}

func (s *Spark) kill() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) }

// Close ends the session.
func (s *Spark) Close() { s.kill() }
