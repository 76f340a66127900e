package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Redis is Debian's redis-server, behind a proxy, with an append-only file that is
// synced for each answer.
type Redis struct {
	*Process
	// Proxy is where clients connect.
	Proxy *Proxy
	port  int
}

// StartRedis starts a server whose data lie in dir; settings are more lines of its
// configuration.
func StartRedis(ctx context.Context, dir string, settings ...string) (*Redis, error) {
	return startRedis(ctx, dir, nil, append([]string{"save \"\"", "appendonly yes", "appendfsync always"}, settings...))
}

// startSentinel starts a server that is a Sentinel.
func startSentinel(ctx context.Context, dir string, settings ...string) (*Redis, error) {
	return startRedis(ctx, dir, []string{"--sentinel"}, settings)
}

func startRedis(ctx context.Context, dir string, flags, settings []string) (*Redis, error) {
	const server = "/usr/bin/redis-server"
	if err := Debian(ctx, server, "redis-server"); err != nil {
		return nil, err
	}
	ports, err := Ports(1)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of Redis: %w", err)
	}
	lines := append([]string{"bind 127.0.0.1", "port " + strconv.Itoa(ports[0]), "dir " + dir, "daemonize no"}, settings...)
	config := filepath.Join(dir, "redis.conf")
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		return nil, fmt.Errorf("configuring Redis: %w", err)
	}
	r := &Redis{port: ports[0]}
	r.Process, err = Launch(ctx, Command{Name: "redis", Dir: dir, Path: server, Args: append([]string{config}, flags...),
		Ready: func(ctx context.Context) error {
			// One that asks for a password, or is a node of a cluster, works, too.
			out, err := r.Ask(ctx, "PING")
			if err == nil && !strings.HasPrefix(out, "PONG") && !strings.HasPrefix(out, "NOAUTH") {
				err = errors.New(out)
			}
			return err
		}})
	if err != nil {
		return nil, err
	}
	if r.Proxy, err = StartProxy(fmt.Sprintf("127.0.0.1:%d", r.port)); err != nil {
		r.Kill()
		return nil, err
	}
	return r, nil
}

// Direct is the server's own address, past the proxy.
func (r *Redis) Direct() string { return fmt.Sprintf("127.0.0.1:%d", r.port) }

// URL is the server's database 0 in the form of option `url`.
func (r *Redis) URL() string { return "redis://" + r.Proxy.Addr() + "/0" }

// Ask runs a command, past the proxy, and gives redis-cli's answer.
func (r *Redis) Ask(ctx context.Context, command ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "redis-cli", append([]string{"-h", "127.0.0.1", "-p", strconv.Itoa(r.port)}, command...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("asking Redis: %w\n%s", err, tail(out, 2000))
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// Close ends the server and its proxy.
func (r *Redis) Close() {
	_ = r.Proxy.Close()
	r.Kill()
}
