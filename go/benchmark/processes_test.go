// Package benchmark compares reading all processes from the service with gopsutil.
//
//	go test -bench . -count 10
//
// It measures CPU time, including that of the service if FASTPROC_SERVICE_PID names it.
package benchmark

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"example.org/fastproc"

	"github.com/shirou/gopsutil/v4/process"
)

// The values that both read of every process.
type row struct {
	name         string
	rss, vms     uint64
	user, system float64
}

var rows []row

// cpuTime is the CPU time of this process and of the service, in nanoseconds.
func cpuTime(b *testing.B) int64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	sum := usage.Utime.Nano() + usage.Stime.Nano()
	if service := os.Getenv("FASTPROC_SERVICE_PID"); service != "" {
		threads, _ := filepath.Glob("/proc/" + service + "/task/*/schedstat")
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			var ns int64
			if err == nil {
				_, err = fmt.Sscan(string(text), &ns)
			}
			if err != nil {
				b.Fatal(err)
			}
			sum += ns
		}
	}
	return sum
}

// report reports the CPU time per process since start.
func report(b *testing.B, start int64) {
	b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N)/float64(len(rows)), "cpu-ns/process")
}

func BenchmarkFastproc(b *testing.B) {
	client, err := fastproc.Connect("")
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	b.ResetTimer()
	start := cpuTime(b)
	for n := 0; n < b.N; n++ {
		snapshot, err := client.Processes(fastproc.FieldsCPU|fastproc.FieldsMemory, 0)
		if err != nil {
			b.Fatal(err)
		}
		rows = rows[:0]
		for i := 0; i < snapshot.Len(); i++ {
			one := snapshot.At(i)
			memory, cpu := one.Memory(), one.CPU()
			rows = append(rows, row{one.Name(), memory.RSS(), memory.Vsize, float64(cpu.UtimeNS) / 1e9, float64(cpu.StimeNS) / 1e9})
		}
	}
	report(b, start)
}

func BenchmarkGopsutil(b *testing.B) {
	start := cpuTime(b)
	for n := 0; n < b.N; n++ {
		all, err := process.Processes()
		if err != nil {
			b.Fatal(err)
		}
		rows = rows[:0]
		for _, one := range all {
			name, err := one.Name()
			if err != nil {
				continue
			}
			memory, err := one.MemoryInfo()
			if err != nil {
				continue
			}
			times, err := one.Times()
			if err != nil {
				continue
			}
			rows = append(rows, row{name, memory.RSS, memory.VMS, times.User, times.System})
		}
	}
	report(b, start)
}
