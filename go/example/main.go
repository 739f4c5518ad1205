// Example prints the processes that use the most memory, read from the resident service.
package main

import (
	"flag"
	"fmt"
	"os"
	"sort"
	"time"

	"example.org/fastproc"
)

func main() {
	top := flag.Int("top", 10, "how many")
	socket := flag.String("socket", "", "where the service listens")
	flag.Parse()
	if err := run(*socket, *top); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(socket string, top int) error {
	client, err := fastproc.Connect(socket)
	if err != nil {
		return err
	}
	defer client.Close()
	snapshot, err := client.Processes(fastproc.FieldsCPU|fastproc.FieldsMemory, time.Second)
	if err != nil {
		return err
	}
	processes := make([]fastproc.Process, snapshot.Len())
	for i := range processes {
		processes[i] = snapshot.At(i)
	}
	rss := func(process fastproc.Process) uint64 {
		if memory := process.Memory(); memory != nil {
			return memory.RSS()
		}
		return 0
	}
	sort.Slice(processes, func(i, j int) bool { return rss(processes[i]) > rss(processes[j]) })
	if top < len(processes) {
		processes = processes[:top]
	}
	for _, process := range processes {
		var cpu time.Duration
		if times := process.CPU(); times != nil {
			cpu = time.Duration(times.UtimeNS + times.StimeNS)
		}
		fmt.Printf("%8d %c %10d KiB %12s %q\n", process.PID(), process.State(), rss(process)>>10, cpu.Round(time.Millisecond), process.Name())
	}
	return nil
}
