package fastproc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// service starts a service with the program that FASTPROC_PROGRAM names, and connects to it.
func service(t testing.TB) *Client {
	program := os.Getenv("FASTPROC_PROGRAM")
	if program == "" {
		t.Skip("FASTPROC_PROGRAM names no fastproc to serve: make test-go does")
	}
	socket := filepath.Join(t.TempDir(), "fastproc.sock")
	command := exec.Command(program, "serve", "--socket", socket, "--no-metrics", "--cpu-of-user=1000")
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	var client *Client
	waitUntil(t, "the service", func() bool {
		var err error
		client, err = Connect(socket)
		if err != nil && !errors.Is(err, ErrNotRunning) {
			t.Fatal(err)
		}
		return err == nil
	})
	client.Timeout = guard
	t.Cleanup(func() { client.Close() })
	return client
}

// guard is longer than any wait on a machine that is only busy.
const guard = 2 * time.Minute

// waitUntil repeats a check until it succeeds.
func waitUntil(t testing.TB, what string, done func() bool) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		late := time.Since(start) > guard
		if done() {
			return
		}
		if late {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// sleeper starts an idle process of this name, which lives until the test ends.
func sleeper(t testing.TB, name string) int {
	program, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(program, link); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(link, "1000")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	pid := child.Process.Pid
	waitUntil(t, "sleep to rest", func() bool { return stat(t, pid)[0] == "S" })
	return pid
}

func processes(t testing.TB, client *Client, fields Fields) *Snapshot {
	snapshot, err := client.Processes(fields, 0)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// stat returns the fields of /proc/PID/stat after the name.
func stat(t testing.TB, pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+2:]))
}

func number(t *testing.T, text string) uint64 {
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestAProcessHasWhatProcSays(t *testing.T) {
	client := service(t)
	pid := sleeper(t, "sleep")
	const tick = 10_000_000
	judged := 0
	waitUntil(t, "six looks at a process that rests", func() bool {
		before := stat(t, pid)
		snapshot := processes(t, client, FieldsCPU|FieldsMemory|FieldsUsers|FieldsScheduling)
		process, ok := snapshot.Process(uint32(pid))
		if !ok {
			t.Fatal("the child is not there")
		}
		text := stat(t, pid)
		// The kernel may run it for a moment, or take a page from it.
		if strings.Join(before, " ") != strings.Join(text, " ") {
			return false
		}
		judged++
		for _, one := range []struct {
			what      string
			have, say uint64
		}{
			{"ppid", uint64(process.Identity().Ppid), number(t, text[1])},
			{"minflt", process.CPU().Minflt, number(t, text[7])},
			{"utime", process.CPU().UtimeNS / tick, number(t, text[11])},
			{"stime", process.CPU().StimeNS / tick, number(t, text[12])},
			{"num_threads", uint64(process.Identity().NumThreads), number(t, text[17])},
			{"starttime", process.Identity().StartNS / tick, number(t, text[19])},
			{"vsize", process.Memory().Vsize, number(t, text[20])},
			{"euid", uint64(process.Users().Euid), uint64(os.Geteuid())},
		} {
			if one.have != one.say {
				t.Errorf("%s is %d, and /proc says %d", one.what, one.have, one.say)
			}
		}
		if process.Name() != "sleep" || process.State() != 'S' {
			t.Errorf("%q is in state %c", process.Name(), process.State())
		}
		if process.IO() != nil || process.Layout() != nil {
			t.Error("what was not requested is there")
		}
		return judged == 6
	})
	if groups, err := os.Getgroups(); err == nil {
		snapshot := processes(t, client, FieldsCredentials)
		own, _ := snapshot.Process(uint32(os.Getpid()))
		if len(own.SupplementaryGroups()) != len(groups) {
			t.Errorf("groups are %v, and should be %v", own.SupplementaryGroups(), groups)
		}
	}
}

func TestDifferencesAreOverTheTimeBetween(t *testing.T) {
	client := service(t)
	var baseline Baseline
	baseline.Set(processes(t, client, FieldsCPU))
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	for start := used(t); used(t)-start < 50*time.Millisecond; {
	}
	later := processes(t, client, FieldsCPU)
	found := 0
	for _, change := range baseline.Changes(later) {
		switch change.Process.PID() {
		case uint32(os.Getpid()):
			found++
			if change.Born || change.CPUShare == nil || *change.CPUShare <= 0 {
				t.Error("this process has used no time")
			}
		case uint32(child.Process.Pid):
			found++
			if !change.Born {
				t.Error("the child was not born")
			}
		}
	}
	if found != 2 {
		t.Errorf("%d of 2 were found", found)
	}
	baseline.Set(later)
	_ = child.Process.Kill()
	_ = child.Wait()
	gone := false
	for _, pid := range baseline.Gone(processes(t, client, 0)) {
		gone = gone || pid == uint32(child.Process.Pid)
	}
	if !gone {
		t.Error("the child is not gone")
	}
}

// used is the CPU time of this process.
func used(t *testing.T) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func TestASnapshotIsLentUntilTheNext(t *testing.T) {
	client := service(t)
	first := processes(t, client, 0)
	if first.Len() == 0 {
		t.Fatal("no processes")
	}
	for i := 0; i < 100; i++ {
		processes(t, client, 0)
	}
	if first.Len() != 0 {
		t.Error("it could be read still")
	}
	if len(client.buffers) > buffersKept {
		t.Errorf("%d buffers are mapped", len(client.buffers))
	}
}

func TestWithoutAServiceTheErrorSaysHowToStartIt(t *testing.T) {
	_, err := Connect(filepath.Join(t.TempDir(), "nothing"))
	if !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), "fastproc serve --no-metrics --socket") {
		t.Error(err)
	}
}

// answering is a client of a service that answers with these words.
func answering(t *testing.T, words ...uint64) *Client {
	if len(words) == 0 {
		return answeringInTurn(t)
	}
	return answeringInTurn(t, bytesOfWords(words))
}

func bytesOfWords(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words))
}

// answeringInTurn is a client of a service that gives these answers in their order.
func answeringInTurn(t *testing.T, answers ...[]byte) *Client {
	socket := filepath.Join(t.TempDir(), "socket")
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		defer connection.Close()
		request := make([]byte, 4096)
		for i := 0; ; i++ {
			if _, err := connection.Read(request); err != nil || i >= len(answers) {
				return
			}
			_, _ = connection.Write(answers[i])
		}
	}()
	client, err := Connect(socket)
	if err != nil {
		t.Fatal(err)
	}
	client.Timeout = guard
	t.Cleanup(func() { client.Close() })
	return client
}

func TestAnswersThatMakeNoSenseAreErrors(t *testing.T) {
	answer := func(change func(words []uint64)) []uint64 {
		words := make([]uint64, answerWords)
		words[0], words[2] = version, layoutID
		change(words)
		return words
	}
	for name, one := range map[string]struct {
		words []uint64
		err   error
	}{
		"refused":            {answer(func(words []uint64) { words[1] = uint64(ErrNamespace) }), ErrNamespace},
		"another version":    {answer(func(words []uint64) { words[0] = 2 }), ErrVersion},
		"another layout":     {answer(func(words []uint64) { words[2], words[5], words[6], words[7] = layoutID+1, 1, 7, 4096 }), ErrLayout},
		"cut":                {answer(func([]uint64) {})[:8], ErrProtocol},
		"without its buffer": {answer(func(words []uint64) { words[5], words[6], words[7] = 1, 7, 4096 }), ErrProtocol},
	} {
		if _, err := answering(t, one.words...).Processes(0, 0); !errors.Is(err, one.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := answering(t).Processes(0, 0); err == nil {
		t.Error("a connection that was closed is no error")
	}
}

func TestTheEnvironmentSaysHowLongToWait(t *testing.T) {
	for text, wanted := range map[string]time.Duration{"1500": 1500 * time.Millisecond, "": 30 * time.Second, "0": 30 * time.Second, "x": 30 * time.Second} {
		t.Setenv("FASTPROC_SERVICE_TIMEOUT_MS", text)
		if have := timeout(); have != wanted {
			t.Errorf("%q is %v", text, have)
		}
	}
}

func TestPartsLieWithinTheBuffer(t *testing.T) {
	memory := make([]uint64, 8)
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&memory[0])), 64)
	if have, err := part[uint64](bytes, [3]uint64{8, 7, 8}); err != nil || len(have) != 7 {
		t.Error(have, err)
	}
	for _, wrong := range [][3]uint64{{8, 8, 8}, {4, 1, 8}, {0, 1, 4}, {72, 1, 8}, {^uint64(0) - 7, 1, 8}, {0, ^uint64(0) / 4, 8}} {
		if _, err := part[uint64](bytes, wrong); !errors.Is(err, ErrProtocol) {
			t.Errorf("%v is %v", wrong, err)
		}
	}
}

// A socket of another user is trusted if only root can have placed it.
func TestASocketIsPlacedByRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("takes root")
	}
	const user = 65534
	folder, err := os.MkdirTemp("/run", "fastproc-go-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	socket := filepath.Join(folder, "socket")
	listener, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: socket, Net: "unixpacket"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	set := func(mode os.FileMode, owner, socketOwner int) {
		for _, err := range []error{os.Chmod(folder, mode), os.Chown(folder, owner, -1), os.Chown(socket, socketOwner, -1)} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, one := range []struct {
		mode               os.FileMode
		owner, socketOwner int
		expected           bool
	}{
		{0o755, 0, user, true},
		{0o757, 0, user, false},
		{0o775, 0, user, false},
		{0o777 | os.ModeSticky, 0, user, false},
		{0o755, user, user, false},
		{0o755, 0, user - 1, false},
	} {
		set(one.mode, one.owner, one.socketOwner)
		if isPlacedByRoot(socket, user) != one.expected {
			t.Errorf("%v is not as expected", one)
		}
	}
	set(0o755, 0, user)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(socket, link); err != nil {
		t.Fatal(err)
	}
	if !isPlacedByRoot(link, user) || isPlacedByRoot(filepath.Join(folder, "other"), user) {
		t.Error("a link is not what it leads to")
	}
}
