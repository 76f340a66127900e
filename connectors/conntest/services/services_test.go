package services

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A server of the shell: it writes a file once it runs, and its argument to the log.
func launchShell(t *testing.T, script string) (*Process, error) {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return Launch(ctx, Command{
		Name: "shell", Dir: dir, Path: "/bin/sh", Args: []string{"-c", script},
		Env: []string{"READY=" + ready},
		Ready: func(context.Context) error {
			_, err := os.Stat(ready)
			return err
		},
	})
}

func TestServerIsKilledAndStartsAgain(t *testing.T) {
	p, err := launchShell(t, `echo up; touch "$READY"; sleep 1000 & wait`)
	if err != nil {
		t.Fatal(err)
	}
	done := p.Done()
	if _, rss, err := p.Usage(); err != nil || rss <= 0 {
		t.Fatalf("usage: %d bytes, %v", rss, err)
	}
	p.Kill()
	select {
	case <-done:
	default:
		t.Fatal("killed, yet not done")
	}
	if _, _, err := p.Usage(); err == nil {
		t.Fatal("a server that was killed still has a usage")
	}
	if err := os.Remove(filepath.Join(p.command.Dir, "ready")); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(context.Background()); err == nil {
		t.Fatal("one server started twice")
	}
	p.Kill()
	p.Kill()
	if got := strings.Count(p.Log(), "up\n"); got != 2 {
		t.Fatalf("the log says up %d times, want 2:\n%s", got, p.Log())
	}
}

func TestServerThatEndsBeforeItIsReadyShowsItsLog(t *testing.T) {
	_, err := launchShell(t, `echo the disk is on fire >&2; exit 3`)
	if err == nil || !strings.Contains(err.Error(), "the disk is on fire") {
		t.Fatalf("got %v, want the end of the server's log", err)
	}
}

func TestCachedFillsOnceAndKeepsNothingOfAFailure(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	ctx := context.Background()
	broken := errors.New("no network")
	if _, err := Cached(ctx, "a", "1", func(_ context.Context, dir string) error {
		return errors.Join(os.WriteFile(filepath.Join(dir, "half"), nil, 0o644), broken)
	}); !errors.Is(err, broken) {
		t.Fatalf("got %v, want the failure of the fetch", err)
	}
	fills := 0
	fill := func(_ context.Context, dir string) error {
		fills++
		return os.WriteFile(filepath.Join(dir, "whole"), nil, 0o644)
	}
	first, err := Cached(ctx, "a", "1", fill)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(first, "half")); err == nil {
		t.Fatal("what a failed fetch left is still there")
	}
	again, err := Cached(ctx, "a", "1", fill)
	if err != nil || again != first || fills != 1 {
		t.Fatalf("second use: %s after %s, %d fills, %v", again, first, fills, err)
	}
	if other, err := Cached(ctx, "a", "2", fill); err != nil || other == first || fills != 2 {
		t.Fatalf("other pins share %s: %v", other, err)
	}
}

func TestPortsAreDistinct(t *testing.T) {
	ports, err := Ports(5)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int]bool{}
	for _, p := range ports {
		seen[p] = true
	}
	if len(seen) != 5 {
		t.Fatalf("ports %v are not 5 different ones", ports)
	}
}
