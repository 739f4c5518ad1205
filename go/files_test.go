package fastproc

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// testSocket names the service for this program when a test runs it again as another user.
const testSocket = "FASTPROC_TEST_SOCKET"

const oPath = 0o10000000

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func openFiles(t *testing.T, client *Client, fields FileFields) *Files {
	files, err := client.Files(fields, 0)
	if errors.Is(err, ErrGroups) {
		t.Skip("the service does not read open files by BPF here")
	}
	return must(files, err)
}

func holder(t *testing.T, files *Files, pid int) Holder {
	for i := 0; i < files.Len(); i++ {
		if files.At(i).PID() == uint32(pid) {
			return files.At(i)
		}
	}
	t.Fatalf("process %d is not among %d", pid, files.Len())
	return Holder{}
}

func TestOpenFilesAreWhatProcShows(t *testing.T) {
	socket := os.Getenv(testSocket)
	var client *Client
	if socket == "" {
		client = service(t)
	} else {
		client = must(Connect(socket))
		defer client.Close()
	}
	// tmpfs: stat(2) shows what the kernel keeps.
	file := must(os.CreateTemp("/dev/shm", "fastproc-go-\n"))
	defer file.Close()
	must(file.WriteString("twelve bytes"))
	must(0, os.Remove(file.Name()))
	named := must(syscall.Open("/dev/shm", oPath|syscall.O_CLOEXEC, 0))
	defer syscall.Close(named)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	defer listener.Close()
	local := netip.MustParseAddrPort(listener.Addr().String())
	connection := must(net.Dial("tcp", local.String()))
	defer connection.Close()
	accepted := must(listener.Accept())
	defer accepted.Close()
	must(connection.Write([]byte("unread")))
	raw := must(accepted.(*net.TCPConn).SyscallConn())
	must(0, raw.Read(func(fd uintptr) bool {
		n, _, _ := syscall.Recvfrom(int(fd), make([]byte, 6), syscall.MSG_PEEK)
		return n == 6
	}))
	name := fmt.Sprintf("\x00fastproc\n\xff%d", os.Getpid())
	unix := must(net.Listen("unix", "@"+name[1:]))
	defer unix.Close()

	all := openFiles(t, client, FileFieldsFiles|FileFieldsSockets|FileFieldsPaths)
	own := holder(t, all, os.Getpid())
	if own.IsHidden() || own.IsIncomplete() || own.UID() != uint32(os.Geteuid()) {
		t.Fatalf("%+v", own.record)
	}
	kinds := map[FileKind]uint32{}
	compared, listens, connected, unixes, held := 0, 0, 0, 0, 0
	for i := 0; i < own.Len(); i++ {
		one := own.At(i)
		if one.FD() >= FDCwd {
			held++
			continue
		}
		kinds[one.Kind()]++
		link := fmt.Sprintf("/proc/self/fd/%d", one.FD())
		var stat syscall.Stat_t
		if syscall.Stat(link, &stat) != nil {
			// An earlier test closes its connections in the background.
			continue
		}
		if say := must(os.Readlink(link)); string(one.Name()) != say {
			t.Errorf("the name of %d is %q, and should be %q", one.FD(), one.Name(), say)
		}
		device, known := one.Device()
		inode, _ := one.Inode()
		if known && (device != stat.Dev || inode != stat.Ino) {
			t.Errorf("%d is %x:%d, and should be %x:%d", one.FD(), device, inode, stat.Dev, stat.Ino)
		}
		flags, _ := one.Flags()
		reads, writes, _ := one.Mode()
		position, hasPosition := one.Position()
		switch int(one.FD()) {
		case int(file.Fd()):
			compared++
			size, _ := one.Size()
			if one.Kind() != FileKindFile || !known || size != 12 || position != 12 || !reads || !writes || flags&syscall.O_CLOEXEC == 0 {
				t.Errorf("%+v", one.record)
			}
		case named:
			compared++
			if one.Kind() != FileKindDirectory || reads || writes || hasPosition || flags&oPath == 0 {
				t.Errorf("%+v", one.record)
			}
		}
		socket, ok := one.Socket()
		if ok != (one.Kind() == FileKindSocket) {
			t.Errorf("%d of kind %v has a socket: %v", one.FD(), one.Kind(), ok)
		}
		if !ok {
			continue
		}
		here, _ := socket.Local()
		there, hasPeer := socket.Peer()
		waiting, _, hasQueues := socket.Queues()
		switch {
		case here == local && socket.State() == TCPListen:
			listens++
			namespace, _ := socket.NetworkNamespace()
			if say := must(os.Readlink("/proc/self/ns/net")); say != fmt.Sprintf("net:[%d]", namespace) {
				t.Errorf("the namespace is %d, and should be %s", namespace, say)
			}
			if hasPeer || !hasQueues || waiting != 0 || socket.UID() != uint32(os.Geteuid()) || socket.Protocol() != syscall.IPPROTO_TCP {
				t.Errorf("%+v", socket.record)
			}
		case here == local || there == local:
			connected++
			if (waiting == 6) != (here == local) || socket.State() != TCPEstablished {
				t.Errorf("%+v", socket.record)
			}
		case string(socket.UnixName()) == name:
			unixes++
			if socket.Family() != syscall.AF_UNIX || socket.Type() != syscall.SOCK_STREAM || hasQueues {
				t.Errorf("%+v", socket.record)
			}
		}
	}
	if compared != 2 || listens != 1 || connected != 2 || unixes != 1 || held != 3 {
		t.Errorf("%d files, %d that listen, %d ends of a connection, %d unix sockets and %d without descriptor", compared, listens, connected, unixes, held)
	}
	for kind, count := range kinds {
		if have, ok := own.Count(kind); !ok || have != count {
			t.Errorf("%d of kind %v, and should be %d", have, kind, count)
		}
	}
	// The service is root's, or this program was started by root.
	other := holder(t, all, os.Getppid())
	isUser := os.Geteuid() != 0
	_, hasCounts := other.Count(FileKindFile)
	if open, ok := other.Open(); other.IsHidden() != isUser || hasCounts == isUser || isUser && other.Len() != 0 || !ok || open == 0 {
		t.Errorf("of another user's process: %+v", other.record)
	}
	// The next call empties the snapshot.
	openFiles(t, client, 0)
	if all.Len() != 0 {
		t.Error("a snapshot outlives its memory")
	}
}

func TestAUserSeesTheFilesOfOwnProcesses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("takes root")
	}
	client := service(t)
	openFiles(t, client, 0)
	socket := client.connection.RemoteAddr().String()
	for _, folder := range []string{filepath.Dir(socket), filepath.Dir(filepath.Dir(socket))} {
		must(0, os.Chmod(folder, 0o755))
	}
	child := exec.Command("/proc/self/exe", "-test.v", "-test.run=^TestOpenFilesAreWhatProcShows$")
	child.Dir = "/"
	child.Env = append(os.Environ(), testSocket+"="+socket)
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	output, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(output), "--- PASS") {
		t.Fatalf("%v\n%s", err, output)
	}
}

func TestWhatAServiceDoesNotKnowOfAFileIsUnknown(t *testing.T) {
	snapshot := &Files{texts: []byte("a")}
	of := func(record filesRecord) string {
		file := File{&record, snapshot}
		_, flags := file.Flags()
		_, position := file.Position()
		_, inode := file.Inode()
		_, socket := file.Socket()
		return fmt.Sprintf("%q %v %v %v %v", file.Name(), flags, position, inode, socket)
	}
	for expected, record := range map[string]filesRecord{
		`"a" true true true false`:            {magic: magicTmpfs, textLen: 1},
		`"a (deleted)" true true true false`:  {magic: magicTmpfs, textLen: 1, state: fileDeleted},
		`"/a (deleted)" true true true false`: {magic: magicTmpfs, textLen: 1, state: fileRootless},
		`"" false false false false`:          {magic: magicTmpfs, textLen: 1, state: fileTorn},
		`"" true true true false`:             {magic: magicTmpfs, textLen: 1, state: fileNoText},
		`"" true false true false`:            {magic: magicTmpfs, textLen: 2, flags: oPath},
		`"a" true true false false`:           {textLen: 1},
		`"" true true false false`:            {textLen: 1, state: fileRootless},
		`"a" false false true false`:          {magic: magicTmpfs, textLen: 1, fd: FDProgram},
		`"socket:[7]" true true true false`:   {magic: magicSockfs, ino: 7, socket: 1},
		`"a:[7]" true true true false`:        {magic: magicNsfs, ino: 7, textLen: 1},
		`"anon_inode:a" true true true false`: {magic: magicAnonInodeFs, textLen: 1, state: fileRootless},
		`"/dmabuf:a" true true false false`:   {magic: magicDmabuf, textLen: 1, state: fileRootless},
	} {
		if have := of(record); have != expected {
			t.Errorf("%+v is %s, and should be %s", record, have, expected)
		}
	}
	unsure := Holder{&filesProcess{state: holderHidden | holderUnsure, records: 1}, snapshot}
	if _, ok := unsure.Count(FileKindFile); ok || !unsure.IsUnsure() || unsure.Len() != 0 {
		t.Errorf("%+v", unsure)
	}
}

func TestAnAddressOfIPv6HasTheOrderOfTheNetwork(t *testing.T) {
	record := filesSocket{family: syscall.AF_INET6, saddr: [4]uint32{0xb80d0120, 0, 0, 0x01000000}, sport: 80}
	if local, ok := (Socket{&record, &Files{}}).Local(); !ok || local.String() != "[2001:db8::1]:80" {
		t.Error(local)
	}
}
