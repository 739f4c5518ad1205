// Package fastproc reads the processes, cgroups and open files of a Linux machine from the resident service of fastproc, without cgo.
//
// The service makes a snapshot of all processes and lends its memory: nothing is copied for a process. It serves every
// user, and shows each user what the kernel would show.
//
//	client, err := fastproc.Connect("")
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer client.Close()
//	snapshot, err := client.Processes(fastproc.FieldsCPU|fastproc.FieldsMemory, 0)
//	if err != nil {
//		log.Fatal(err)
//	}
//	for i := 0; i < snapshot.Len(); i++ {
//		process := snapshot.At(i)
//		fmt.Println(process.PID(), process.Name(), process.Memory().RSS())
//	}
package fastproc

//go:generate sh -c "go run ./internal/layout ../bpf/record.h > record.go.new && mv record.go.new record.go"
//go:generate sh -c "go run ./internal/layout ../bpf/cgroup_record.h > cgroup_record.go.new && mv cgroup_record.go.new cgroup_record.go"
//go:generate sh -c "go run ./internal/layout ../bpf/files.h > files_record.go.new && mv files_record.go.new files_record.go"

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// DefaultSocket is the socket of the service, unless FASTPROC_SOCKET names another.
const DefaultSocket = "/run/fastproc/fastproc.sock"

// Fields are groups of fields, as bits, that a snapshot contains.
type Fields uint32

// Numbers of docs/dev/protocol.md.
const (
	version       = 1
	opSnapshot    = 2
	opCgroups     = 6
	opFiles       = 7
	requestWords  = 12
	answerWords   = 40
	flagBuffer    = 1
	buffersKept   = 4
	partRecords   = 0
	partThreads   = 1
	partPool      = 2
	partUnsure    = 3
	fcntlGetSeals = 1034
	sealShrink    = 2
)

// A StatusError is the reason why the service does not serve this reader.
type StatusError uint64

// Reasons of the service.
const (
	ErrVersion     StatusError = 1
	ErrRequest     StatusError = 2
	ErrGroups      StatusError = 3
	ErrNamespace   StatusError = 4
	ErrHidePID     StatusError = 5
	ErrCredentials StatusError = 6
	ErrNoPeer      StatusError = 7
	ErrNotYours    StatusError = 8
	ErrBusy        StatusError = 9
	ErrFailed      StatusError = 10
)

var statusTexts = map[StatusError]string{
	ErrVersion:     "the service speaks another version of the protocol; restart it after an upgrade",
	ErrRequest:     "the service does not understand the request",
	ErrGroups:      "the service does not collect these fields",
	ErrNamespace:   "this process has another mount, pid, user or time namespace, another cgroup namespace (for cgroups), or another root directory, than the service",
	ErrHidePID:     "/proc is mounted with hidepid, so the service serves only root",
	ErrCredentials: "the service cannot tell what the kernel would show this process",
	ErrNoPeer:      "this kernel cannot tell the service who has connected (Linux 6.5 can)",
	ErrNotYours:    "this connection was made by another process or user: connect again",
	ErrBusy:        "readers of this user hold or request too many snapshots",
	ErrFailed:      "the service cannot make a snapshot",
}

func (status StatusError) Error() string {
	if text, ok := statusTexts[status]; ok {
		return "fastproc: " + text
	}
	return fmt.Sprintf("fastproc: the service refuses for reason %d, which this version does not know", uint64(status))
}

// Other errors; returned errors wrap one of them, or the error of the system.
var (
	// ErrNotRunning: no service listens. Start it as root: fastproc serve --no-metrics --socket
	ErrNotRunning = errors.New("no service; start one as root: fastproc serve --no-metrics --socket")
	// ErrUntrusted: the service runs as neither root nor this user, and its socket is not in a folder that only root can
	// write.
	ErrUntrusted = errors.New("the service is run by another user, who could make up anything")
	// ErrLayout: the service has another layout of records than this package.
	ErrLayout = errors.New("the service is of another version, whose records are others: use this package in the version of the service")
	// ErrProtocol: an invalid answer.
	ErrProtocol = errors.New("the service does not keep to the protocol")
)

// A Client is a connection to the service. It is for one goroutine at a time.
type Client struct {
	// How long to wait for an answer. Default: FASTPROC_SERVICE_TIMEOUT_MS milliseconds, or 30 seconds.
	Timeout time.Duration

	connection *net.UnixConn
	buffers    []buffer
	generation uint64
	askedAgain bool
	snapshot   *Snapshot
	cgroups    *Cgroups
	files      *Files
}

// A buffer of the service, mapped into this process.
type buffer struct {
	id    uint64
	bytes []byte
}

// Connect connects to the service at path; if path is empty, at FASTPROC_SOCKET or at DefaultSocket.
func Connect(path string) (*Client, error) {
	if path == "" {
		path = variable("FASTPROC_SOCKET")
		if path == "" {
			path = DefaultSocket
		}
	}
	connection, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: path, Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("fastproc: %w (%v)", ErrNotRunning, err)
	}
	raw, err := connection.SyscallConn()
	var peer *syscall.Ucred
	if err == nil {
		var failed error
		err = raw.Control(func(fd uintptr) {
			peer, failed = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		})
		if err == nil {
			err = failed
		}
	}
	if err != nil {
		connection.Close()
		return nil, fmt.Errorf("fastproc: who runs the service is not known: %w", err)
	}
	if !isTrusted(path, peer.Uid) {
		connection.Close()
		return nil, fmt.Errorf("fastproc: %s: %w (uid %d)", path, ErrUntrusted, peer.Uid)
	}
	return &Client{Timeout: timeout(), connection: connection}, nil
}

// timeout is how long to wait for an answer by default.
func timeout() time.Duration {
	milliseconds, err := strconv.ParseUint(variable("FASTPROC_SERVICE_TIMEOUT_MS"), 10, 32)
	if err != nil || milliseconds == 0 {
		return 30 * time.Second
	}
	return time.Duration(milliseconds) * time.Millisecond
}

// variable is a variable of the environment; empty if this program has more rights than its caller.
func variable(name string) string {
	if moreRights {
		return ""
	}
	return os.Getenv(name)
}

// moreRights reports whether this program was executed with more rights than its caller has: set-user-ID, set-group-ID
// or file capabilities. It is determined at the start, since a program that has dropped rights may not be able to. It
// is true if it cannot be determined.
var moreRights = func() bool {
	auxv, err := os.ReadFile("/proc/self/auxv")
	return err != nil || isSecure(auxv)
}()

// isSecure reports whether this auxiliary vector, pairs of a type and a value, has AT_SECURE set.
func isSecure(auxv []byte) bool {
	const atSecure = 23
	word := func(bytes []byte) uint64 {
		if strconv.IntSize == 32 {
			return uint64(binary.NativeEndian.Uint32(bytes))
		}
		return binary.NativeEndian.Uint64(bytes)
	}
	const size = strconv.IntSize / 8
	for ; len(auxv) >= 2*size; auxv = auxv[2*size:] {
		if word(auxv) == atSecure {
			return word(auxv[size:]) != 0
		}
	}
	return true
}

// isTrusted reports whether to trust a service at path that runs as this user: root, this process's user, or any user
// if root has placed its socket.
func isTrusted(path string, uid uint32) bool {
	isOwn := uid == uint32(os.Geteuid()) && !mayBeAnybody(uid) && !moreRights
	return uid == 0 || isOwn || isPlacedByRoot(path, uid)
}

// isPlacedByRoot reports whether this user owns the socket, and only root can have put it there: root owns its folder
// and all above, and no other user can write to them.
func isPlacedByRoot(path string, uid uint32) bool {
	// Resolve links first: the folders that they lead to must be checked as well.
	path, err := filepath.EvalSymlinks(path)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil || !inInitialUserNamespace() {
		return false
	}
	var found syscall.Stat_t
	if syscall.Lstat(path, &found) != nil || found.Mode&syscall.S_IFMT != syscall.S_IFSOCK || found.Uid != uid {
		return false
	}
	for path != "/" {
		path = filepath.Dir(path)
		if syscall.Lstat(path, &found) != nil || found.Mode&syscall.S_IFMT != syscall.S_IFDIR || found.Uid != 0 || found.Mode&0o022 != 0 {
			return false
		}
	}
	return true
}

// inInitialUserNamespace reports whether this process is in the namespace that has all users: PROC_USER_INIT_INO.
func inInitialUserNamespace() bool {
	namespace, err := os.Readlink("/proc/self/ns/user")
	return err == nil && namespace == "user:[4026531837]"
}

// mayBeAnybody reports whether this id stands for all users that our user namespace does not map; this process's user
// may be one.
func mayBeAnybody(uid uint32) bool {
	if inInitialUserNamespace() {
		return false
	}
	// The fallback is DEFAULT_OVERFLOWUID.
	overflow, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return uid == 65534
	}
	return strings.TrimSpace(string(overflow)) == strconv.FormatUint(uint64(uid), 10)
}

// Close returns the last snapshot, which must not be used any more, and disconnects.
func (client *Client) Close() error {
	client.end()
	for _, buffer := range client.buffers {
		_ = syscall.Munmap(buffer.bytes)
	}
	client.buffers = nil
	return client.connection.Close()
}

// end empties the last snapshot, since its memory will be overwritten.
func (client *Client) end() {
	if client.snapshot != nil {
		*client.snapshot = Snapshot{}
		client.snapshot = nil
	}
	if client.cgroups != nil {
		*client.cgroups = Cgroups{}
		client.cgroups = nil
	}
	if client.files != nil {
		*client.files = Files{}
		client.files = nil
	}
}

// Processes makes a snapshot of all processes, or returns one that is no older than maxAge. With 0 its walk begins
// after the call.
//
// The snapshot is lent until the next call or Close, which empty it; records from it must not be read after that. Copy
// what you keep.
func (client *Client) Processes(fields Fields, maxAge time.Duration) (*Snapshot, error) {
	client.end()
	request := [requestWords]uint64{version, opSnapshot, uint64(fields), uint64(maxAge.Nanoseconds()), client.generation}
	words, err := client.ask(request)
	if err != nil {
		return nil, err
	}
	answer := client.answer(words)
	snapshot := &Snapshot{
		Fields: Fields(words[4]), BootTime: time.Duration(words[8]), ReadFor: time.Duration(words[9]),
		records: take[Record](answer, partRecords),
		threads: take[ThreadRecord](answer, partThreads),
		pool:    take[uint64](answer, partPool),
		unsure:  take[uint32](answer, partUnsure),
	}
	if answer.err != nil {
		return nil, answer.err
	}
	client.generation = words[3]
	client.snapshot = snapshot
	return snapshot, nil
}

// askApart requests a snapshot of cgroups or of open files.
func (client *Client) askApart(operation, groups uint64, maxAge time.Duration) (*answer, error) {
	client.end()
	words, err := client.ask([requestWords]uint64{version, operation, groups, uint64(maxAge.Nanoseconds())})
	if errors.Is(err, ErrRequest) {
		return nil, fmt.Errorf("fastproc: %w (it does not know operation %d)", ErrLayout, operation)
	}
	if err != nil {
		return nil, err
	}
	return client.answer(words), nil
}

// An answer with the memory of its buffer, and the first error of taking parts of it.
type answer struct {
	words  [answerWords]uint64
	memory []byte
	err    error
}

func (client *Client) answer(words [answerWords]uint64) *answer {
	for _, buffer := range client.buffers {
		if buffer.id == words[6] {
			return &answer{words: words, memory: buffer.bytes}
		}
	}
	return &answer{words: words}
}

// take is a part of an answer.
func take[T any](from *answer, at int) []T {
	elements, err := part[T](from.memory, *(*[3]uint64)(from.words[16+3*at:]))
	if err != nil {
		from.err = err
	}
	return elements
}

// errPart: a part is outside of the buffer.
var errPart = fmt.Errorf("fastproc: %w: a part does not lie in the buffer", ErrProtocol)

// part is one part of the memory as elements of a type without pointers.
func part[T any](memory []byte, part [3]uint64) ([]T, error) {
	offset, count, stride := part[0], part[1], part[2]
	if count == 0 {
		return nil, nil
	}
	var element T
	size, align := uint64(unsafe.Sizeof(element)), uint64(unsafe.Alignof(element))
	length := uint64(len(memory))
	if stride != size || offset%align != 0 || offset > length || count > (length-offset)/size {
		return nil, errPart
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&memory[offset])), count), nil
}

// ask sends a request and maps the buffer of the answer.
func (client *Client) ask(request [requestWords]uint64) ([answerWords]uint64, error) {
	answer, err := client.askOnce(request)
	if errors.Is(err, ErrNoPeer) && !client.askedAgain {
		// Before Linux 6.5 the service identifies the reader by its second request.
		client.askedAgain = true
		return client.askOnce(request)
	}
	return answer, err
}

func (client *Client) askOnce(request [requestWords]uint64) ([answerWords]uint64, error) {
	var answer [answerWords]uint64
	for i, buffer := range client.buffers {
		request[5+i] = buffer.id
	}
	broken := func(err error) ([answerWords]uint64, error) {
		return answer, fmt.Errorf("fastproc: the connection is broken; connect again: %w", err)
	}
	if err := client.connection.SetDeadline(time.Now().Add(client.Timeout)); err != nil {
		return broken(err)
	}
	if _, err := client.connection.Write((*[requestWords * 8]byte)(unsafe.Pointer(&request))[:]); err != nil {
		return broken(err)
	}
	oob := make([]byte, syscall.CmsgSpace(4*8))
	n, oobn, _, _, err := client.connection.ReadMsgUnix((*[answerWords * 8]byte)(unsafe.Pointer(&answer))[:], oob)
	if err != nil {
		return broken(err)
	}
	files, err := descriptors(oob[:oobn])
	defer func() {
		for _, file := range files {
			_ = syscall.Close(file)
		}
	}()
	switch {
	case err != nil:
		return broken(err)
	case n < 16, n%8 != 0:
		return broken(fmt.Errorf("%w: %d bytes", ErrProtocol, n))
	case answer[0] != version:
		return answer, ErrVersion
	case answer[1] != 0:
		return answer, StatusError(answer[1])
	case n >= 24 && answer[2] != layoutOf(request[1]):
		// Its records are not mapped.
		return answer, fmt.Errorf("fastproc: %w", ErrLayout)
	case n < answerWords*8:
		return broken(fmt.Errorf("%w: %d bytes", ErrProtocol, n))
	}
	return answer, client.remember(answer[6], answer[7], answer[5]&flagBuffer != 0, files)
}

// layoutOf is the id of the layout of records in the answer to this operation.
func layoutOf(operation uint64) uint64 {
	switch operation {
	case opCgroups:
		return cgroupLayoutID
	case opFiles:
		return filesLayoutID
	}
	return layoutID
}

// remember maps the buffer of an answer, and keeps the last ones.
func (client *Client) remember(id, size uint64, comes bool, files []int) error {
	for i, known := range client.buffers {
		if known.id == id {
			client.buffers = append(append(client.buffers[:i:i], client.buffers[i+1:]...), known)
			return nil
		}
	}
	if !comes || len(files) == 0 {
		return fmt.Errorf("fastproc: %w: a buffer did not come", ErrProtocol)
	}
	file := files[0]
	seals, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(file), fcntlGetSeals, 0)
	var stat syscall.Stat_t
	if err := syscall.Fstat(file, &stat); err != nil || errno != 0 || seals&sealShrink == 0 || size == 0 || uint64(stat.Size) < size {
		return fmt.Errorf("fastproc: %w: a buffer that could shrink", ErrProtocol)
	}
	bytes, err := syscall.Mmap(file, 0, int(size), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("fastproc: mapping a buffer: %w", err)
	}
	client.buffers = append(client.buffers, buffer{id, bytes})
	for len(client.buffers) > buffersKept {
		_ = syscall.Munmap(client.buffers[0].bytes)
		client.buffers = append([]buffer(nil), client.buffers[1:]...)
	}
	return nil
}

// descriptors returns the descriptors of a message.
func descriptors(oob []byte) ([]int, error) {
	messages, err := syscall.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, err
	}
	var all []int
	for i := range messages {
		files, err := syscall.ParseUnixRights(&messages[i])
		if err == nil {
			all = append(all, files...)
		}
	}
	return all, nil
}
