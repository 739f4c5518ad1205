package fastproc

import (
	"net/netip"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// FileFields are what to read of open files, as bits.
type FileFields uint32

// A FileKind is what a descriptor is open on.
type FileKind uint8

// String returns a word for it, as in "file".
func (kind FileKind) String() string {
	if int(kind) < len(fileKindNames) {
		return fileKindNames[kind]
	}
	return FileKindOther.String()
}

// Parts of a snapshot of open files: docs/dev/protocol.md.
const (
	partHolders = 0
	partFiles   = 1
	partSockets = 2
	partNames   = 3
)

// Files has the open files of every process, each record at about one time.
type Files struct {
	// Time since boot when reading began.
	BootTime time.Duration

	processes []filesProcess
	records   []filesRecord
	sockets   []filesSocket
	texts     []byte
}

// Files makes a snapshot of the open files of all processes, or returns one that is no older than maxAge. It is lent like
// that of Processes: the next call of any of them empties it.
//
// Without FileFieldsFiles, only those descriptors have records that the other fields are about. Client and service must have
// the same version; otherwise there is ErrLayout. A service that does not read by BPF returns ErrGroups. Sockets without a
// descriptor, and those of hidden processes, are only in /proc/net.
func (client *Client) Files(fields FileFields, maxAge time.Duration) (*Files, error) {
	answer, err := client.askApart(opFiles, uint64(fields), maxAge)
	if err != nil {
		return nil, err
	}
	snapshot := &Files{
		BootTime:  time.Duration(answer.words[8]),
		processes: take[filesProcess](answer, partHolders),
		records:   take[filesRecord](answer, partFiles),
		sockets:   take[filesSocket](answer, partSockets),
		texts:     take[byte](answer, partNames),
	}
	if answer.err != nil {
		return nil, answer.err
	}
	client.files = snapshot
	return snapshot, nil
}

// Len is the number of processes.
func (files *Files) Len() int { return len(files.processes) }

// At returns the process with this index, from 0.
func (files *Files) At(i int) Holder { return Holder{&files.processes[i], files} }

// text is a part of the texts; nil if it does not lie in them.
func (files *Files) text(at, length uint32) []byte { return within(files.texts, at, length) }

// within is a part of a slice; nil if it does not lie in it.
func within[T any](all []T, at, length uint32) []T {
	end := uint64(at) + uint64(length)
	if end > uint64(len(all)) {
		return nil
	}
	return all[at:end:end]
}

// A Holder is a process that has open files: a view of a record in the memory of the service.
type Holder struct {
	record   *filesProcess
	snapshot *Files
}

// PID returns the process id.
func (h Holder) PID() uint32 { return h.record.tgid }

// StartNS returns when it started: nanoseconds since boot, for users other than root in whole clock ticks.
func (h Holder) StartNS() uint64 { return h.record.startNS }

// UID returns the effective user id.
func (h Holder) UID() uint32 { return h.record.uid }

// Name returns the name in /proc/PID/comm, up to 15 bytes.
func (h Holder) Name() string { return untilNUL(h.record.comm[:]) }

// CgroupID returns the id of its cgroup of version 2. False: it is not known.
func (h Holder) CgroupID() (uint64, bool) { return h.record.cgroup, h.record.cgroup != 0 }

// Open returns the number of its open descriptors. False: the kernel hides it.
func (h Holder) Open() (uint32, bool) { return h.record.open, h.record.state&holderUncounted == 0 }

// Count returns the number of its open descriptors of this kind. False: the kernel hides it, or it is not known.
func (h Holder) Count(kind FileKind) (uint32, bool) {
	if h.IsHidden() || int(kind) >= len(h.record.kinds) {
		return 0, false
	}
	return h.record.kinds[kind], true
}

// IsHidden reports whether its files are not there because the kernel hides them, or may hide them: see IsUnsure.
func (h Holder) IsHidden() bool { return h.record.state&holderHidden != 0 }

// IsUnsure reports whether the service does not know what the kernel would show this reader of its files. Read /proc.
func (h Holder) IsUnsure() bool { return h.record.state&holderUnsure != 0 }

// IsOfThread reports whether the files are those of a thread because the leader has ended; /proc/PID/fd is empty then.
func (h Holder) IsOfThread() bool { return h.record.state&holderOfThread != 0 }

// IsIncomplete reports whether some files are missing: its table changed whenever it was read, or is too large.
func (h Holder) IsIncomplete() bool { return h.record.state&holderChanged != 0 }

func (h Holder) records() []filesRecord {
	return within(h.snapshot.records, h.record.first, h.record.records)
}

// Len is the number of its files that were requested.
func (h Holder) Len() int { return len(h.records()) }

// At returns its file with this index, from 0: descriptors by number, and then what it holds without one.
func (h Holder) At(i int) File { return File{&h.records()[i], h.snapshot} }

// A File is an open file of a process: a view of a record in the memory of the service.
type File struct {
	record   *filesRecord
	snapshot *Files
}

func (f File) isRead() bool { return f.record.state&fileTorn == 0 }

func (f File) isOpened() bool { return f.isRead() && f.record.fd < FDCwd }

// isStated reports whether the record has the numbers that stat(2) shows.
func (f File) isStated() bool {
	return f.isRead() && (f.record.state&fileStated != 0 || isAsStat[f.record.magic])
}

// FD returns the number of the descriptor, or FDCwd, FDRoot or FDProgram: its current directory, root directory or program.
func (f File) FD() uint32 { return f.record.fd }

// Kind returns what it is; FileKindOther if the descriptor changed whenever it was read.
func (f File) Kind() FileKind { return FileKind(f.record.kind) }

// Flags returns the flags of open(2), with O_CLOEXEC of this descriptor, as in /proc/PID/fdinfo/FD. False: it is no
// descriptor, or they are not known.
func (f File) Flags() (uint32, bool) { return f.record.flags, f.isOpened() }

// Mode reports whether it was opened to read, and to write: neither with O_PATH. False: as for Flags.
func (f File) Mode() (reads, writes, ok bool) {
	const oPath, both = 0o10000000, syscall.O_RDWR | syscall.O_WRONLY
	mode, isOpen := f.record.flags&syscall.O_ACCMODE, f.record.flags&oPath == 0 && f.record.flags&syscall.O_ACCMODE != both
	return isOpen && mode != syscall.O_WRONLY, isOpen && mode != syscall.O_RDONLY, f.isOpened()
}

// Position returns where the next read or write begins, in bytes. False: as for Flags, or with O_PATH.
func (f File) Position() (uint64, bool) {
	reads, writes, ok := f.Mode()
	return f.record.pos, ok && (reads || writes)
}

// Device returns the device of its file system, in the form of syscall.Stat_t.Dev. False: it is not known. On overlayfs,
// btrfs and others stat(2) shows other numbers than the kernel keeps in inodes; ask stat(2) of /proc/PID/fd/FD there.
func (f File) Device() (uint64, bool) {
	const minorBits = 20
	major, minor := uint64(f.record.dev)>>minorBits, uint64(f.record.dev)&(1<<minorBits-1)
	return minor&0xff | major<<8 | minor&^0xff<<12, f.isStated()
}

// Inode returns the inode number. False: as for Device.
func (f File) Inode() (uint64, bool) { return f.record.ino, f.isStated() }

// Size returns the size of a regular file in bytes. False: it is none, or as for Device.
func (f File) Size() (uint64, bool) {
	return f.record.size, f.isStated() && f.Kind() == FileKindFile
}

// Name returns what readlink(2) of /proc/PID/fd/FD says: a path, with " (deleted)" if it was removed, or as in "socket:[1]".
// It may have any bytes. Nil: it was not requested (FileFieldsPaths), or is not known.
func (f File) Name() []byte {
	text, rootless := f.snapshot.text(f.record.text, f.record.textLen), f.record.state&fileRootless != 0
	numbered := func(name string) []byte {
		return append(strconv.AppendUint([]byte(name+":["), f.record.ino, 10), ']')
	}
	join := func(before, after string) []byte { return append(append([]byte(before), text...), after...) }
	switch magic := f.record.magic; {
	case !f.isRead():
		return nil
	case magic == magicSockfs:
		return numbered("socket")
	case magic == magicPipefs:
		return numbered("pipe")
	case f.record.state&fileNoText != 0, len(text) == 0:
		return nil
	case magic == magicNsfs:
		return numbered(string(text))
	case magic == magicPidfs:
		return []byte("anon_inode:[pidfd]")
	case magic == magicAnonInodeFs:
		return join("anon_inode:", "")
	case rootless && magic == magicDmabuf:
		return join("/dmabuf:", "")
	case rootless && (magic == magicTmpfs || magic == magicHugetlbfs):
		return join("/", " (deleted)")
	case rootless:
		return nil
	case f.record.state&fileDeleted != 0:
		return join("", " (deleted)")
	}
	return join("", "")
}

// Socket returns the socket. False: it is none, or sockets were not requested (FileFieldsSockets).
func (f File) Socket() (Socket, bool) {
	at := uint64(f.record.socket)
	if at == 0 || at > uint64(len(f.snapshot.sockets)) {
		return Socket{}, false
	}
	return Socket{&f.snapshot.sockets[at-1], f.snapshot}, true
}

// A Socket is a view of the record of a socket in the memory of the service.
type Socket struct {
	record   *filesSocket
	snapshot *Files
}

// Family returns AF_*.
func (s Socket) Family() uint8 { return s.record.family }

// Type returns SOCK_*.
func (s Socket) Type() uint8 { return s.record.sockType }

// Protocol returns IPPROTO_*, or the protocol of another family.
func (s Socket) Protocol() uint32 { return s.record.protocol }

// States of sockets, of include/net/tcp_states.h.
const (
	TCPEstablished uint8 = 1
	TCPListen      uint8 = 10
)

// State returns TCP_* of include/net/tcp_states.h, which other protocols use as well.
func (s Socket) State() uint8 { return s.record.state }

// UID returns the user who made it.
func (s Socket) UID() uint32 { return s.record.uid }

// NetworkNamespace returns the inode number of its network namespace. False: it is not known.
func (s Socket) NetworkNamespace() (uint32, bool) { return s.record.netns, s.record.netns != 0 }

func (s Socket) isInet() bool { return s.Family() == syscall.AF_INET || s.Family() == syscall.AF_INET6 }

// Queues returns the bytes that the process has not read, and those that were not sent or acknowledged; of a TCP socket that
// listens, first the connections that were not accepted. False: the kernel keeps no such numbers.
func (s Socket) Queues() (receive, send uint32, ok bool) {
	switch s.record.protocol {
	case syscall.IPPROTO_TCP, syscall.IPPROTO_UDP, syscall.IPPROTO_UDPLITE, syscall.IPPROTO_ICMP, syscall.IPPROTO_ICMPV6:
		ok = true
	}
	return s.record.rxq, s.record.txq, s.isInet() && (ok || s.Type() == syscall.SOCK_RAW)
}

func (s Socket) address(words [4]uint32, port uint32) netip.AddrPort {
	address := netip.AddrFrom16(*(*[16]byte)(unsafe.Pointer(&words)))
	if s.Family() == syscall.AF_INET {
		address = netip.AddrFrom4(*(*[4]byte)(unsafe.Pointer(&words)))
	}
	return netip.AddrPortFrom(address, uint16(port))
}

// Local returns its own address and port. False: it is not of IPv4 or IPv6.
func (s Socket) Local() (netip.AddrPort, bool) {
	return s.address(s.record.saddr, s.record.sport), s.isInet()
}

// Peer returns the address and port of the other end. False: as for Local, or it is not connected.
func (s Socket) Peer() (netip.AddrPort, bool) {
	return s.address(s.record.daddr, s.record.dport), s.isInet() && (s.record.dport != 0 || s.record.daddr != [4]uint32{})
}

// UnixName returns the path that a unix socket is bound to, or a NUL and an abstract name. Nil: it has none.
func (s Socket) UnixName() []byte {
	name := s.snapshot.text(s.record.text, s.record.textLen)
	// The kernel counts the NUL that ends a path.
	if last := len(name) - 1; last > 0 && name[0] != 0 && name[last] == 0 {
		return name[:last]
	}
	return name
}

// UnixPeer returns the inode number of the other end of a unix socket. False: it is not connected.
func (s Socket) UnixPeer() (uint32, bool) { return s.record.peer, s.record.peer != 0 }
