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

func openFiles(t *testing.T, client *Client, fields FileFields) *Files {
	files, err := client.Files(fields, 0)
	if errors.Is(err, ErrGroups) {
		t.Skip("the service does not read open files by BPF here")
	}
	if err != nil {
		t.Fatal(err)
	}
	return files
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
	var client *Client
	if socket := os.Getenv(testSocket); socket == "" {
		client = service(t)
	} else {
		var err error
		if client, err = Connect(socket); err != nil {
			t.Fatal(err)
		}
		defer client.Close()
	}
	// tmpfs: stat(2) shows what the kernel keeps.
	file, err := os.CreateTemp("/dev/shm", "fastproc-go-\n")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err = file.WriteString("twelve bytes"); err == nil {
		err = os.Remove(file.Name())
	}
	if err != nil {
		t.Fatal(err)
	}
	named, err := syscall.Open("/dev/shm", oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(named)
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	local := netip.MustParseAddrPort(listener.Addr().String())
	connection, err := net.Dial("tcp", local.String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	name := fmt.Sprintf("\x00fastproc\n\xff%d", os.Getpid())
	unix, err := net.Listen("unix", "@"+name[1:])
	if err != nil {
		t.Fatal(err)
	}
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
		say, err := os.Readlink(link)
		if err == nil {
			err = syscall.Stat(link, &stat)
		}
		if err != nil {
			t.Fatal(err)
		}
		if string(one.Name()) != say {
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
			if say, err := os.Readlink("/proc/self/ns/net"); err != nil || say != fmt.Sprintf("net:[%d]", namespace) {
				t.Errorf("the namespace is %d, and should be %s", namespace, say)
			}
			// Nobody has accepted the connection.
			if hasPeer || !hasQueues || waiting != 1 || socket.UID() != uint32(os.Geteuid()) || socket.Protocol() != syscall.IPPROTO_TCP {
				t.Errorf("%+v", socket.record)
			}
		case there == local && here.String() == connection.LocalAddr().String() && socket.State() == TCPEstablished:
			connected++
		case string(socket.UnixName()) == name:
			unixes++
			if socket.Family() != syscall.AF_UNIX || socket.Type() != syscall.SOCK_STREAM || hasQueues {
				t.Errorf("%+v", socket.record)
			}
		}
	}
	if compared != 2 || listens != 1 || connected != 1 || unixes != 1 || held != 3 {
		t.Errorf("%d files, %d that listen, %d connections, %d unix sockets and %d without descriptor", compared, listens, connected, unixes, held)
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
		if err := os.Chmod(folder, 0o755); err != nil {
			t.Fatal(err)
		}
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
