//go:build services

package services

import (
	"context"
	"testing"
	"time"
)

func TestHDFSStarts(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	h, err := StartHDFS(ctx, HDFSOptions{Dir: t.TempDir(), DataNodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if err := h.Live(ctx, 0, 1); err != nil {
		t.Fatal(err)
	}
	h.NameNodes[0].Kill()
	if err := h.Live(ctx, 0, 1); err == nil {
		t.Fatal("a NameNode that was killed answers")
	}
	if err := h.NameNodes[0].Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := h.Await(ctx, 0, 1); err != nil {
		t.Fatal(err)
	}
}
