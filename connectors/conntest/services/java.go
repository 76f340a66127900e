package services

import (
	"fmt"
	"os/exec"
)

// JavaPath is the java that servers run with. They need version 17.
func JavaPath() (string, error) {
	path, err := exec.LookPath("java")
	if err != nil {
		return "", fmt.Errorf("looking for java (apt-get install openjdk-17-jre-headless): %w", err)
	}
	return path, nil
}

// SmallJVM are the flags of a server for functional tests on few cores: one
// collector thread, the quick compiler alone, and a heap of heapMiB.
func SmallJVM(heapMiB int) []string {
	return []string{fmt.Sprintf("-Xmx%dm", heapMiB), "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
}
