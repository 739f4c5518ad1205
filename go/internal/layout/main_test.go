package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The accessors are those of the header as it is now.
func TestRecordIsGeneratedFromTheHeader(t *testing.T) {
	header, err := os.ReadFile("../../../bpf/record.h")
	if err != nil {
		t.Fatal(err)
	}
	expected, err := generate(string(header))
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../record.go")
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != string(expected) {
		t.Fatal("record.go is of another bpf/record.h: run go generate")
	}
}

// A member without a tag has its place, but no name that others can use, and the layout does not tell of it.
func TestWhatHasNoTagIsNotExported(t *testing.T) {
	header, err := os.ReadFile("../../../bpf/record.h")
	if err != nil {
		t.Fatal(err)
	}
	before := "struct fp_cgroup {\n"
	changed := strings.Replace(string(header), before, before+"\tu64 secret_key; /* Not for you. */\n", 1)
	generated, err := generate(changed)
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`\tsecretKey +uint64`).Match(generated) || strings.Contains(string(generated), "SecretKey") {
		t.Fatal("a member without a tag is exported, or has no place")
	}
	all, constants, err := parse(changed)
	if err != nil {
		t.Fatal(err)
	}
	layout := describe(all, constants)
	if strings.Contains(layout, "secret_key") || !strings.Contains(layout, "cgroup.id") {
		t.Fatal("the layout tells of a member without a tag")
	}
	if _, _, err := parse(strings.Replace(changed, "secret_key;", "secret_key FP_EVERYONE;", 1)); err == nil {
		t.Fatal("a tag that does not exist is taken for one")
	}
	if !find(all, "io").guarded() || !find(all, "layout").guarded() || find(all, "cpu").guarded() || find(all, "cgroup").guarded() {
		t.Fatal("groups are guarded by the tags of their members")
	}
}
