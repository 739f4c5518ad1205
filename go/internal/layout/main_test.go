package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The accessors match the current headers.
func TestRecordsAreGeneratedFromTheHeaders(t *testing.T) {
	for _, one := range []struct {
		header, file string
		generate     func(string) ([]byte, error)
	}{{"record.h", "record.go", generate}, {"cgroup_record.h", "cgroup_record.go", generateCgroups}, {"files.h", "files_record.go", filesFrom("../../../bpf")}} {
		header, err := os.ReadFile("../../../bpf/" + one.header)
		if err != nil {
			t.Fatal(err)
		}
		expected, err := one.generate(string(header))
		if err != nil {
			t.Fatal(err)
		}
		have, err := os.ReadFile("../../" + one.file)
		if err != nil {
			t.Fatal(err)
		}
		if string(have) != string(expected) {
			t.Fatalf("%s is of another bpf/%s: run go generate", one.file, one.header)
		}
	}
}

// A member that no user may see keeps its place, but has no exported name, and the layout omits it. A member without a
// tag, or with an unknown one, is an error.
func TestTagsSayWhatIsExported(t *testing.T) {
	header, err := os.ReadFile("../../../bpf/record.h")
	if err != nil {
		t.Fatal(err)
	}
	before := "struct fp_cgroup {\n"
	with := func(member string) string {
		return strings.Replace(string(header), before, before+"\t"+member+" /* Not for you. */\n", 1)
	}
	changed := with("u64 secret_key FP_NOBODY FP_PROCESS;")
	generated, err := generate(changed)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`\tsecretKey +uint64`).Match(generated) || strings.Contains(string(generated), "SecretKey") {
		t.Fatal("what nobody may see is exported, or has no place")
	}
	all, constants, err := parse(changed)
	if err != nil {
		t.Fatal(err)
	}
	layout := describe(all, constants)
	if strings.Contains(layout, "secret_key") || !strings.Contains(layout, "cgroup.id") {
		t.Fatal("the layout tells of what nobody may see")
	}
	for _, wrong := range []string{"u64 key;", "u64 key FP_PROCESS;", "u64 key FP_EVERYONE FP_PROCESS;", "u64 key FP_PUBLIC FP_UNKNOWN(FP_NOTHING);"} {
		if _, _, err := parse(with(wrong)); err == nil {
			t.Fatalf("%q is understood", wrong)
		}
	}
	if !find(all, "io").guarded() || !find(all, "layout").guarded() || find(all, "cpu").guarded() || find(all, "cgroup").guarded() {
		t.Fatal("groups are guarded by the tags of their members")
	}
	text := string(generated)
	for _, method := range []string{
		"func (of *Credentials) UserNS() (uint32, bool)", "func (of *CPU) SumExecNS() (uint64, bool)", "func (of *ThreadRecord) SumExecNS() (uint64, bool)",
		"func (p Process) Wchan() (uint8, bool)", "func (p Process) ExitCode() (int32, bool)", "func (p Process) MmFlags() (uint64, bool)",
	} {
		if !strings.Contains(text, method) {
			t.Errorf("there is no %s", method)
		}
	}
}
