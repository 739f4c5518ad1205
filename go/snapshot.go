package fastproc

import (
	"sort"
	"strconv"
	"time"
)

// A Snapshot has every process at about one time, in the order of pids.
type Snapshot struct {
	// The groups of fields in the records.
	Fields Fields
	// Time since boot when reading began.
	BootTime time.Duration
	// How long reading the records took.
	ReadFor time.Duration

	records []Record
	threads []ThreadRecord
	pool    []uint64
	unsure  []uint32
}

// Len is the number of processes.
func (snapshot *Snapshot) Len() int { return len(snapshot.records) }

// At returns the process with this index, from 0.
func (snapshot *Snapshot) At(i int) Process {
	return Process{&snapshot.records[i], snapshot.pool}
}

// Process returns the process with this id.
func (snapshot *Snapshot) Process(pid uint32) (Process, bool) {
	i := sort.Search(len(snapshot.records), func(i int) bool { return snapshot.records[i].Identity.Tgid >= pid })
	if i < len(snapshot.records) && snapshot.records[i].Identity.Tgid == pid {
		return snapshot.At(i), true
	}
	return Process{}, false
}

// Threads returns all threads, if FieldsThreads was requested.
func (snapshot *Snapshot) Threads() []ThreadRecord { return snapshot.threads }

// ThreadIO returns the I/O counters of a thread of this snapshot; nil if they were not requested, or are unknown.
func (snapshot *Snapshot) ThreadIO(thread *ThreadRecord) *IO {
	process, ok := snapshot.Process(thread.Tgid)
	if !ok || process.IO() == nil {
		return nil
	}
	return &thread.io
}

// Unsure returns the ids of processes that the snapshot lacks because the service does not know what the kernel would
// show this reader of them. Read /proc for these.
func (snapshot *Snapshot) Unsure() []uint32 { return snapshot.unsure }

// A Process is a view of a record in the memory of the service.
type Process struct {
	record *Record
	pool   []uint64
}

// Record returns the whole record. Identity.Groups has the groups that it contains in addition to Identity and Name.
func (p Process) Record() *Record { return p.record }

// PID returns the process id.
func (p Process) PID() uint32 { return p.record.Identity.Tgid }

// Identity returns the ids, the state and the flags of the process.
func (p Process) Identity() *Identity { return &p.record.Identity }

// State returns a letter as in proc(5).
func (p Process) State() byte {
	state := 0
	for bits := p.record.Identity.StateBits & 0xff; bits != 0; bits >>= 1 {
		state++
	}
	return "RSDTtXZPI"[state]
}

// SupplementaryGroups returns the groups in the order of the kernel.
func (p Process) SupplementaryGroups() []uint32 {
	credentials := p.Credentials()
	if credentials == nil {
		return nil
	}
	var words []uint64
	if at := uint64(credentials.GroupsAt); at < uint64(len(p.pool)) {
		words = p.pool[at:]
	}
	// The number may be wrong in memory that another process writes: it alone must not size an allocation.
	count := uint64(credentials.Ngroups)
	if most := 2 * uint64(len(words)); count > most {
		count = most
	}
	groups := make([]uint32, 0, count)
	for i := uint64(0); i < count; i++ {
		groups = append(groups, uint32(words[i/2]>>(32*(i%2))))
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

// Name returns the name in /proc/PID/stat; for a kernel worker it includes its current work.
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

// RSS returns the resident memory in bytes.
func (memory *Memory) RSS() uint64 { return memory.RssAnon + memory.RssFile + memory.RssShmem }

// Shared returns the resident memory that files or shared memory back, in bytes.
func (memory *Memory) Shared() uint64 { return memory.RssFile + memory.RssShmem }
