// Writes containerd's seccomp profile RuntimeDefault for a container with the capabilities in the arguments, in the
// form of the OCI runtime.
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
