package fastproc

import (
	"strings"
	"time"
)

// CgroupFields are groups of fields of cgroups, as bits.
type CgroupFields uint32

// Parts of a snapshot of the cgroups: docs/dev/protocol.md.
const (
	partCgroups   = 0
	partDevices   = 1
	partPaths     = 2
	partPathBytes = 3
	partStatNames = 4
)

// Cgroups has every cgroup of version 2 that the reader may see, at about one time, parents before their children.
type Cgroups struct {
	// The groups of fields in the records.
	Fields CgroupFields
	// Time since boot when reading began.
	BootTime time.Duration
	// Cgroups that were left out, with what is below them, because their paths have more than 1,024 bytes or 64 parts.
	LeftOut int

	records []CgroupRecord
	devices []CgroupDevice
	places  []uint64
	paths   []byte
	lines   map[string]int
}

// Cgroups makes a snapshot of all cgroups, or returns one that is no older than maxAge. It is lent like that of
// Processes: the next call of either empties it.
//
// The service shows a user the cgroups and groups of fields whose files that user may read. Client and service must have
// the same version; otherwise there is ErrLayout.
func (client *Client) Cgroups(fields CgroupFields, maxAge time.Duration) (*Cgroups, error) {
	answer, err := client.askApart(opCgroups, uint64(fields), maxAge)
	if err != nil {
		return nil, err
	}
	snapshot := &Cgroups{
		Fields: CgroupFields(answer.words[4]), BootTime: time.Duration(answer.words[8]), LeftOut: int(answer.words[10] >> 32),
		records: take[CgroupRecord](answer, partCgroups),
		devices: take[CgroupDevice](answer, partDevices),
		places:  take[uint64](answer, partPaths),
		paths:   take[byte](answer, partPathBytes),
		lines:   map[string]int{},
	}
	names := take[byte](answer, partStatNames)
	if answer.err != nil {
		return nil, answer.err
	}
	if len(snapshot.places) != len(snapshot.records) {
		return nil, errPart
	}
	for i, name := range strings.Split(strings.TrimSuffix(string(names), "\n"), "\n") {
		if name != "" {
			snapshot.lines[name] = i
		}
	}
	client.cgroups = snapshot
	return snapshot, nil
}

// Len is the number of cgroups.
func (cgroups *Cgroups) Len() int { return len(cgroups.records) }

// At returns the cgroup with this index, from 0.
func (cgroups *Cgroups) At(i int) CgroupView {
	place := cgroups.places[i]
	at, length := place&0xffffffff, place>>32
	view := CgroupView{record: &cgroups.records[i], snapshot: cgroups}
	if end := at + length; end <= uint64(len(cgroups.paths)) {
		view.path = cgroups.paths[at:end]
	}
	return view
}

// A CgroupView is a view of the record of a cgroup in the memory of the service.
type CgroupView struct {
	record   *CgroupRecord
	path     []byte
	snapshot *Cgroups
}

// Record returns the whole record. Identity.Groups has the groups that it contains in addition to Identity.
func (c CgroupView) Record() *CgroupRecord { return c.record }

// Identity returns what the cgroup is.
func (c CgroupView) Identity() *CgroupIdentity { return &c.record.Identity }

// Path returns the path below the mount of the hierarchy; "/" is the root.
func (c CgroupView) Path() string { return string(c.path) }

// MemoryStatLine returns the value of a line of memory.stat, as in "anon". False: it is not known.
func (c CgroupView) MemoryStatLine(name string) (uint64, bool) {
	stat := c.MemoryStat()
	line, ok := c.snapshot.lines[name]
	if stat == nil || !ok || line >= len(stat.Slots) {
		return 0, false
	}
	return stat.Slots[line], true
}

// Devices returns I/O by block device: the lines of io.stat.
func (c CgroupView) Devices() []CgroupDevice {
	io := c.IO()
	if io == nil {
		return nil
	}
	at, end := uint64(io.DevicesAt), uint64(io.DevicesAt)+uint64(io.Devices)
	if end > uint64(len(c.snapshot.devices)) {
		return nil
	}
	return c.snapshot.devices[at:end]
}
