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
	"testing"
	"time"
	"unsafe"
)

// service starts the program that FASTPROC_PROGRAM names as a service, and connects.
func service(t testing.TB) *Client {
	program := os.Getenv("FASTPROC_PROGRAM")
	if program == "" {
		t.Skip("FASTPROC_PROGRAM names no fastproc to serve: make test-go does")
	}
	socket := filepath.Join(t.TempDir(), "fastproc.sock")
	command := exec.Command(program, "serve", "--socket", socket, "--no-metrics")
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		client, err := Connect(socket)
		if err == nil {
			t.Cleanup(func() { client.Close() })
			return client
		}
		if !errors.Is(err, ErrNotRunning) || time.Since(start) > 2*time.Minute {
			t.Fatal(err)
		}
	}
}

func processes(t testing.TB, client *Client, fields Fields) *Snapshot {
	snapshot, err := client.Processes(fields, 0)
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

// stat is what /proc/PID/stat has after the name.
func stat(t *testing.T, pid int) []string {
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
	child := exec.Command("sleep", "600")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	for stat(t, child.Process.Pid)[0] != "S" {
		time.Sleep(time.Millisecond)
	}
	const tick = 10_000_000
	for round := 0; round < 6; round++ {
		snapshot := processes(t, client, FieldsCPU|FieldsMemory|FieldsUsers|FieldsScheduling)
		process, ok := snapshot.Process(uint32(child.Process.Pid))
		if !ok {
			t.Fatal("the child is not there")
		}
		text := stat(t, child.Process.Pid)
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
			t.Error("what was not asked for is there")
		}
	}
	if groups, err := os.Getgroups(); err == nil {
		snapshot := processes(t, client, FieldsCredentials)
		own, _ := snapshot.Process(uint32(os.Getpid()))
		if len(own.SupplementaryGroups()) != len(groups) {
			t.Errorf("groups are %v, and should be %v", own.SupplementaryGroups(), groups)
		}
	}
}

func TestEveryProcessIsThereInOrder(t *testing.T) {
	client := service(t)
	snapshot := processes(t, client, FieldsThreads)
	names := 0
	for i := 0; i < snapshot.Len(); i++ {
		process := snapshot.At(i)
		if i > 0 && process.PID() <= snapshot.At(i-1).PID() {
			t.Fatal("they are not in order")
		}
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", process.PID()))
		if err == nil && strings.TrimSuffix(string(comm), "\n") == process.Name() {
			names++
		}
	}
	// Some are renamed or replaced meanwhile, and workers are named by what they work on.
	if 2*names < snapshot.Len() {
		t.Errorf("only %d of %d have the name that /proc says", names, snapshot.Len())
	}
	if len(snapshot.Threads()) == 0 {
		t.Error("no threads")
	}
	if _, ok := snapshot.Process(1 << 30); ok {
		t.Error("a process that there is not")
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
	for start := time.Now(); time.Since(start) < 200*time.Millisecond; {
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
	if !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), "fastproc serve --socket") {
		t.Error(err)
	}
}

// answering is a client of a service that gives these words.
func answering(t *testing.T, words ...uint64) *Client {
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
		if _, err := connection.Read(request); err != nil || len(words) == 0 {
			return
		}
		_, _ = connection.Write(unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), 8*len(words)))
	}()
	client, err := Connect(socket)
	if err != nil {
		t.Fatal(err)
	}
	client.Timeout = 10 * time.Second
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
