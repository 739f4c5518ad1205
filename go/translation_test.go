package fastproc

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unsafe"
)

// olderLayout returns the layout without these fields, and with all others moved by eight bytes.
func olderLayout(without ...string) string {
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(layoutText), "\n") {
		columns := strings.Split(line, "\t")
		isGone := false
		for _, path := range without {
			isGone = isGone || columns[1] == path
		}
		if isGone {
			continue
		}
		var number int
		if _, err := fmt.Sscan(columns[2], &number); err != nil {
			panic(err)
		}
		columns[2] = fmt.Sprint(number + 8)
		lines = append(lines, strings.Join(columns, "\t"))
	}
	return strings.Join(lines, "\n") + "\n"
}

func bytesOf[T any](value *T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value))
}

func TestRecordsOfAnotherLayoutAreReadByTheirNames(t *testing.T) {
	other, ok := translate(7, olderLayout("cpu.sum_exec_ns", "identity.on_cpu", "memory.swap"))
	if !ok || other.lacks != FieldsMemory || other.layout != 7 {
		t.Fatal(ok, other.lacks)
	}
	var theirs Record
	theirs.Identity.Tgid, theirs.Identity.Groups = 9, uint32(FieldsCPU|FieldsCredentials)
	theirs.CPU.UtimeNS, theirs.CPU.sumExecNS = 5, 6
	theirs.Credentials.userNS = 3
	old := append(make([]byte, 8), bytesOf(&theirs)...)
	memory := append(append([]byte{1, 2, 3, 4, 5, 6, 7, 8}, old...), old...)
	read, err := records[Record](memory, [3]uint64{8, 2, other.process.stride}, &other.process)
	if err != nil || len(read) != 2 {
		t.Fatal(err, len(read))
	}
	process := Process{&read[1], nil}
	if process.PID() != 9 || process.CPU().UtimeNS != 5 {
		t.Error(process.PID(), process.CPU().UtimeNS)
	}
	if _, known := process.CPU().SumExecNS(); known {
		t.Error("what the other layout does not have is known")
	}
	if _, known := process.Identity().OnCPU(); known {
		t.Error("what the other layout does not have is known")
	}
	if space, known := process.Credentials().UserNS(); !known || space != 3 {
		t.Error(space, known)
	}
	for _, wrong := range [][3]uint64{{8, 3, other.process.stride}, {8, 1, 8}, {^uint64(0), 1, other.process.stride}} {
		if _, err := records[Record](memory, wrong, &other.process); !errors.Is(err, ErrProtocol) {
			t.Errorf("%v is %v", wrong, err)
		}
	}
}

func TestALayoutWithoutWhatEveryRecordHasIsRefused(t *testing.T) {
	if _, ok := translate(7, olderLayout("identity.tgid")); ok {
		t.Error("records without an id are read")
	}
	if _, ok := translate(7, "structure\tprocess\t999999\nfield\tx\n"); ok {
		t.Error("records without anything are read")
	}
	if same, ok := translate(layoutID, layoutText); !ok || same.lacks != 0 {
		t.Error("this layout is not read")
	}
	if other, ok := translate(7, olderLayout("tid")); !ok || other.lacks != FieldsThreads {
		t.Error("threads without an id are read")
	}
}

func TestWhatIsHiddenIsNotZero(t *testing.T) {
	var record Record
	record.Identity.Groups = ^uint32(0)
	process := Process{&record, nil}
	if _, known := process.ExitCode(); !known {
		t.Error("what is shown is not known")
	}
	record.Identity.Masked = 1
	for name, known := range map[string]bool{
		"exit code": second(process.ExitCode()), "wchan": second(process.Wchan()), "flags": second(process.MmFlags()),
		"layout": process.Layout() != nil, "io": process.IO() != nil,
	} {
		if known {
			t.Errorf("the %s is known to whom it is hidden from", name)
		}
	}
	snapshot := Snapshot{records: []Record{record}, threads: []ThreadRecord{{}}}
	if snapshot.ThreadIO(&snapshot.threads[0]) != nil {
		t.Error("a thread's I/O is known to whom it is hidden from")
	}
}

func second[T any](_ T, known bool) bool { return known }

func TestAServiceOfAnotherVersionIsAskedForItsLayout(t *testing.T) {
	const another = 77
	words := make([]uint64, answerWords)
	words[0], words[2] = version, another
	answer := bytesOfWords(words)
	text := append(append([]byte{}, answer...), olderLayout("memory.swap")...)
	if _, err := answeringInTurn(t, answer, text).Processes(FieldsMemory, 0); !errors.Is(err, ErrLayout) {
		t.Error(err)
	}
	// The client understands its records: it asks again, and gets no buffer for them.
	client := answeringInTurn(t, answer, text, answer)
	if _, err := client.Processes(FieldsCPU, 0); !errors.Is(err, ErrProtocol) || client.layout(opSnapshot) != another {
		t.Error(err, client.layout(opSnapshot))
	}
}
