package fastproc

import "time"

// A Baseline keeps what it takes of a snapshot to tell what every process did until a later one. Its zero value knows nothing.
type Baseline struct {
	bootTime  time.Duration
	processes map[key]times
}

// A process: an id may be given away, but not at the same time.
type key struct {
	pid     uint32
	startNS uint64
}

type times struct{ userNS, systemNS uint64 }

// A Change is what a process did since the baseline.
type Change struct {
	Process Process
	// Whether the baseline did not have it. All that it did is then over the time between the two, as of the others.
	Born bool
	// CPU time used per time passed: 1.0 is one whole CPU. Nil without FieldsCPU.
	CPUShare *float64
}

func keyOf(process Process) key {
	// The kernel's text tells a start to a tick, its structures exactly.
	return key{process.PID(), process.Identity().StartNS / 10_000_000}
}

// Set keeps this snapshot instead of the last one.
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

// Changes are what every process of the snapshot did since, in the order of their ids.
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
		// What a process does in its first microseconds says nothing of a second.
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

// Gone are the ids of processes that the baseline had and the snapshot has not.
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

// What a counter has grown by: one that was scaled anew can seem to run backwards.
func grown(now, before uint64) uint64 {
	if now < before {
		return 0
	}
	return now - before
}
