package fastproc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Builds the program of README.md, with the function below it, in a separate module with a copy of this one, as README.md describes.
func TestReadmeIsAProgramThatVendorsThisModule(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for i, block := range strings.Split(string(text), "```go\n")[1:] {
		program, _, _ := strings.Cut(block, "```\n")
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.go", i)), []byte(program), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(arguments ...string) {
		t.Helper()
		command := exec.Command("go", arguments...)
		command.Dir = folder
		// Nothing is downloaded, and settings of this module do not apply.
		command.Env = append(os.Environ(), "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", arguments, err, output)
		}
	}
	run("mod", "init", "example.org/program")
	run("mod", "edit", "-replace", "example.org/fastproc="+here)
	run("mod", "tidy")
	run("mod", "vendor")
	run("vet", "-mod=vendor", ".")
	run("build", "-mod=vendor", "-o", "program", ".")

	client := service(t)
	command := exec.Command(filepath.Join(folder, "program"))
	command.Env = append(os.Environ(), "FASTPROC_SOCKET="+client.connection.RemoteAddr().String())
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains("\n"+string(output), fmt.Sprintf("\n%d ", os.Getpid())) {
		t.Fatalf("process %d is not in\n%s", os.Getpid(), output)
	}
}
