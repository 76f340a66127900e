package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/millrace/millrace/connectors/all"
	"github.com/millrace/millrace/jobs/control"
	"github.com/millrace/millrace/jobs/node"
	"github.com/millrace/millrace/jobs/spec"
	"github.com/millrace/millrace/runtime/connector"
	"github.com/millrace/millrace/storage/client"
	"github.com/millrace/millrace/storage/vfs"
)

// profiles runs each query in this process and writes what it spent its time on.
func (c *config) profiles(ctx context.Context) error {
	if err := os.MkdirAll(c.profile, 0o755); err != nil {
		return fmt.Errorf("making the directory of profiles: %w", err)
	}
	for _, n := range c.queries {
		if err := c.makeEvents(ctx, n); err != nil {
			return err
		}
		name := filepath.Join(c.profile, fmt.Sprintf("q%d.pprof", n))
		if err := c.profiled(ctx, n, name); err != nil {
			return fmt.Errorf("q%d: %w", n, err)
		}
		fmt.Println(name)
	}
	return nil
}

// profiled runs a query on a node of its own.
func (c *config) profiled(ctx context.Context, n int, path string) (err error) {
	data := filepath.Join(c.dir, "data")
	vars := c.vars(n)
	if err := errors.Join(os.RemoveAll(data), os.RemoveAll(vars["OUT"])); err != nil {
		return fmt.Errorf("removing old output: %w", err)
	}
	one, err := node.Open(ctx, node.Options{Dir: data, Connectors: func(log *client.Client, fsys vfs.FS) (*connector.Registry, error) {
		return all.Registry(all.Deps{Log: log, FS: fsys})
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, one.Close()) }()
	o := node.RunOptions{Vars: spec.Vars{Set: vars}, Path: filepath.Join(c.sql(), fmt.Sprintf("queries/q%d.sql", n)), MaxDead: -1}
	for _, name := range []string{filepath.Join(c.sql(), "source", c.source+".sql"), filepath.Join(c.sql(), "views.sql"), o.Path} {
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		o.Files = append(o.Files, control.SQLFile{Name: name, Text: string(b)})
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	r, err := one.Start(ctx, o)
	if err != nil {
		return err
	}
	return r.Wait(ctx)
}
