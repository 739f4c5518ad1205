package main

import (
	"os"
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
