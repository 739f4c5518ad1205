package fastproc

import (
	"sort"
	"strconv"
	"time"
)

// A Snapshot is every process at about one time, in the order of their ids.
type Snapshot struct {
	// What the records hold.
	Fields Fields
	// Time since boot when reading began.
	BootTime time.Duration
	// How long reading the records took from then on.
	ReadFor time.Duration

	records []Record
	threads []ThreadRecord
	pool    []uint64
	unsure  []uint32
}

// Len is the number of processes.
func (snapshot *Snapshot) Len() int { return len(snapshot.records) }

// At is the process at a place from 0 on.
func (snapshot *Snapshot) At(i int) Process {
	return Process{&snapshot.records[i], snapshot.pool}
}

// Process is the one with this id.
func (snapshot *Snapshot) Process(pid uint32) (Process, bool) {
	i := sort.Search(len(snapshot.records), func(i int) bool { return snapshot.records[i].Identity.Tgid >= pid })
	if i < len(snapshot.records) && snapshot.records[i].Identity.Tgid == pid {
		return snapshot.At(i), true
	}
	return Process{}, false
}

// Threads are all threads, if FieldsThreads was asked for.
func (snapshot *Snapshot) Threads() []ThreadRecord { return snapshot.threads }

// ThreadIO are the I/O counters of a thread of this snapshot; nil if they were not requested, or are not known.
func (snapshot *Snapshot) ThreadIO(thread *ThreadRecord) *IO {
	process, ok := snapshot.Process(thread.Tgid)
	if !ok || process.IO() == nil {
		return nil
	}
	return &thread.io
}

// Unsure are the ids of processes that are not in the snapshot, because the service cannot tell what the kernel would show
// this reader of them: who needs them reads /proc.
func (snapshot *Snapshot) Unsure() []uint32 { return snapshot.unsure }

// A Process is a view of a record in the memory of the service.
type Process struct {
	record *Record
	pool   []uint64
}

// Record is all of it. What it holds beside Identity and Name is said by Identity.Groups.
func (p Process) Record() *Record { return p.record }

// PID is the process id.
func (p Process) PID() uint32 { return p.record.Identity.Tgid }

// Identity is who it is and what it is doing.
func (p Process) Identity() *Identity { return &p.record.Identity }

// State is a letter as in proc(5).
func (p Process) State() byte {
	state := 0
	for bits := p.record.Identity.StateBits & 0xff; bits != 0; bits >>= 1 {
		state++
	}
	return "RSDTtXZPI"[state]
}

// SupplementaryGroups are in the order of the kernel.
func (p Process) SupplementaryGroups() []uint32 {
	credentials := p.Credentials()
	if credentials == nil {
		return nil
	}
	groups := make([]uint32, 0, credentials.Ngroups)
	for i := uint32(0); i < credentials.Ngroups; i++ {
		at := uint64(credentials.GroupsAt) + uint64(i/2)
		if at >= uint64(len(p.pool)) {
			break
		}
		groups = append(groups, uint32(p.pool[at]>>(32*(i%2))))
	}
	return groups
}

// Kinds and flags of names, as in bpf/record.h.
const (
	nameComm      = 0
	nameFull      = 1
	workerPool    = 1
	workerBusy    = 2
	workerHigh    = 4
	workerRescuer = 8
	nameSize      = 64
)

// Name is what /proc/PID/stat shows; for a worker of the kernel, with what it works on.
func (p Process) Name() string {
	name := &p.record.Name
	switch name.Kind {
	case nameComm:
		return untilNUL(p.record.Identity.Comm[:])
	case nameFull:
		return untilNUL(name.Text[:])
	}
	has := func(flag uint32) bool { return name.WorkerFlags&flag != 0 }
	number := func(n int32) string { return strconv.FormatInt(int64(n), 10) }
	var text string
	switch {
	case has(workerRescuer):
		text = "kworker/R-" + untilNUL(name.Text[nameSize/2:])
	case !has(workerPool):
		text = "kworker/dying"
	case name.PoolCPU >= 0:
		text = "kworker/" + number(name.PoolCPU) + ":" + number(name.WorkerID)
		if has(workerHigh) {
			text += "H"
		}
	default:
		text = "kworker/u" + number(name.PoolID) + ":" + number(name.WorkerID)
	}
	if description := untilNUL(name.Text[:nameSize/2]); has(workerPool) && description != "" {
		sign := "-"
		if has(workerBusy) {
			sign = "+"
		}
		text += sign + description
	}
	if len(text) >= nameSize {
		text = text[:nameSize-1]
	}
	return text
}

func untilNUL(bytes []byte) string {
	for i, b := range bytes {
		if b == 0 {
			return string(bytes[:i])
		}
	}
	return string(bytes)
}

// RSS is the resident memory in bytes.
func (memory *Memory) RSS() uint64 { return memory.RssAnon + memory.RssFile + memory.RssShmem }

// Shared is the resident memory that is not private by nature, in bytes.
func (memory *Memory) Shared() uint64 { return memory.RssFile + memory.RssShmem }
