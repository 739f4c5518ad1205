// Writes the seccomp profile RuntimeDefault of containerd for a container with the capabilities that its arguments name, as the
// OCI runtime takes it.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/containerd/containerd/contrib/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
)

func main() {
	spec := &specs.Spec{Process: &specs.Process{Capabilities: &specs.LinuxCapabilities{Bounding: os.Args[1:]}}}
	if err := json.NewEncoder(os.Stdout).Encode(seccomp.DefaultProfile(spec)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
