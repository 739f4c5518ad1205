package fastproc

import "time"

// A Baseline keeps the values of a snapshot that are needed to compute what every process did until a later one. Its
// zero value is empty.
type Baseline struct {
	bootTime  time.Duration
	processes map[key]times
}

// Identifies a process: pids are reused.
type key struct {
	pid     uint32
	startNS uint64
}

type times struct{ userNS, systemNS uint64 }

// A Change is what a process did since the baseline.
type Change struct {
	Process Process
	// Whether the baseline lacks it. Its share is then over the whole interval, as for the others.
	Born bool
	// CPU time used per time passed: 1.0 is one whole CPU. Nil without FieldsCPU.
	CPUShare *float64
}

func keyOf(process Process) key {
	// The kernel's text has start times in ticks, its structures exactly.
	return key{process.PID(), process.Identity().StartNS / 10_000_000}
}

// Set replaces the baseline by this snapshot.
func (baseline *Baseline) Set(snapshot *Snapshot) {
	baseline.bootTime = snapshot.BootTime
	baseline.processes = make(map[key]times, snapshot.Len())
	for i := 0; i < snapshot.Len(); i++ {
		process := snapshot.At(i)
		var used times
		if cpu := process.CPU(); cpu != nil {
			used = times{cpu.UtimeNS, cpu.StimeNS}
		}
		baseline.processes[keyOf(process)] = used
	}
}

// Changes returns what every process of the snapshot did since the baseline, in the order of pids.
func (baseline *Baseline) Changes(snapshot *Snapshot) []Change {
	changes := make([]Change, 0, snapshot.Len())
	for i := 0; i < snapshot.Len(); i++ {
		process := snapshot.At(i)
		before, known := baseline.processes[keyOf(process)]
		change := Change{Process: process, Born: !known}
		since := baseline.bootTime
		started := time.Duration(process.Identity().StartNS)
		// Its counters were zero when it started.
		if !known && (baseline.processes == nil || started < since) {
			since = started
		}
		// The first microseconds of a process would give a meaningless share.
		passed := snapshot.BootTime + snapshot.ReadFor - since
		if passed < 10*time.Millisecond {
			passed = 10 * time.Millisecond
		}
		if cpu := process.CPU(); cpu != nil {
			used := grown(cpu.UtimeNS, before.userNS) + grown(cpu.StimeNS, before.systemNS)
			share := float64(used) / float64(passed)
			change.CPUShare = &share
		}
		changes = append(changes, change)
	}
	return changes
}

// Gone returns the ids of processes that the baseline had and the snapshot lacks.
func (baseline *Baseline) Gone(snapshot *Snapshot) []uint32 {
	var gone []uint32
	for key := range baseline.processes {
		process, ok := snapshot.Process(key.pid)
		if !ok || keyOf(process) != key {
			gone = append(gone, key.pid)
		}
	}
	return gone
}

// The growth of a counter, at least 0: a rescaled one may decrease.
func grown(now, before uint64) uint64 {
	if now < before {
		return 0
	}
	return now - before
}
