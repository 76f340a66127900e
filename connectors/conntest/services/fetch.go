package services

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Jar is one Maven dependency. Exclusions are "group:artifact".
type Jar struct {
	Group, Artifact, Version string
	Classifier               string
	Exclusions               []string
}

// Jars fetches the jars with all that they need at run time and returns their
// directory, to be used as the class path entry dir + "/*".
func Jars(ctx context.Context, name string, jars ...Jar) (dir string, err error) {
	pom := pomOf(jars)
	return Cached(ctx, name, pom, func(ctx context.Context, dir string) error {
		file := filepath.Join(dir, "pom.xml")
		if err := os.WriteFile(file, []byte(pom), 0o644); err != nil {
			return err
		}
		return runTool(ctx, dir, "mvn", "apt-get install maven", "-q", "-B", "-f", file,
			"org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies",
			"-DoutputDirectory="+dir, "-DincludeScope=runtime")
	})
}

// pomOf is the smallest project that needs the jars.
func pomOf(jars []Jar) string {
	var b strings.Builder
	b.WriteString(`<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>` +
		`<groupId>millrace.services</groupId><artifactId>run</artifactId><version>1</version><packaging>pom</packaging><dependencies>` + "\n")
	for _, j := range jars {
		fmt.Fprintf(&b, "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version>", j.Group, j.Artifact, j.Version)
		if j.Classifier != "" {
			fmt.Fprintf(&b, "<classifier>%s</classifier>", j.Classifier)
		}
		if len(j.Exclusions) > 0 {
			b.WriteString("<exclusions>")
			for _, e := range j.Exclusions {
				group, artifact, _ := strings.Cut(e, ":")
				fmt.Fprintf(&b, "<exclusion><groupId>%s</groupId><artifactId>%s</artifactId></exclusion>", group, artifact)
			}
			b.WriteString("</exclusions>")
		}
		b.WriteString("</dependency>\n")
	}
	b.WriteString("</dependencies></project>\n")
	return b.String()
}

// NPM fetches one package of npm, without its install scripts, and returns the
// directory that has node_modules.
func NPM(ctx context.Context, pkg, version string) (dir string, err error) {
	name := "npm-" + strings.NewReplacer("@", "", "/", "-").Replace(pkg)
	return Cached(ctx, name, pkg+"@"+version, func(ctx context.Context, dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"name":"services","version":"1.0.0"}`), 0o644); err != nil {
			return err
		}
		return runTool(ctx, dir, "npm", "apt-get install npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", pkg+"@"+version)
	})
}

// Debian installs packages of Debian where a file of theirs, probe, is missing.
// It needs root. Services that the packages would start are kept from starting.
func Debian(ctx context.Context, probe string, packages ...string) error {
	if _, err := os.Stat(probe); err == nil {
		return nil
	}
	cache, err := CacheDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("making the cache of artefacts: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(cache, "debian.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(probe); err == nil {
		return nil
	}
	const policy = "/usr/sbin/policy-rc.d"
	if _, err := os.Stat(policy); errors.Is(err, os.ErrNotExist) {
		if err := os.WriteFile(policy, []byte("#!/bin/sh\nexit 101\n"), 0o755); err == nil {
			defer os.Remove(policy)
		}
	}
	for _, args := range [][]string{
		{"update", "-qq"},
		append([]string{"install", "-y", "-qq", "--no-install-recommends"}, packages...),
	} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if err := combined(cmd); err != nil {
			return fmt.Errorf("installing %s of Debian: %w", strings.Join(packages, ", "), err)
		}
	}
	if _, err := os.Stat(probe); err != nil {
		return fmt.Errorf("installing %s of Debian: %s is still missing", strings.Join(packages, ", "), probe)
	}
	return nil
}

// runTool runs a package manager's client in dir; install says how to get it.
func runTool(ctx context.Context, dir, tool, install string, args ...string) error {
	path, err := exec.LookPath(tool)
	if err != nil {
		return fmt.Errorf("needs %s (%s): %w", tool, install, err)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = dir
	return combined(cmd)
}

// combined runs cmd; its output is in the error only.
func combined(cmd *exec.Cmd) error {
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("running %s: %w\n%s", filepath.Base(cmd.Path), err, tail(out, 4000))
	}
	return nil
}

func tail(b []byte, n int) []byte {
	if len(b) > n {
		return b[len(b)-n:]
	}
	return b
}
