package fastproc

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// hierarchy returns where cgroups of version 2 are mounted.
func hierarchy(t *testing.T) string {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(mounts), "\n") {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		if strings.HasPrefix(after, "cgroup2 ") && fields[3] == "/" {
			return fields[4]
		}
	}
	t.Skip("the cgroup hierarchy of version 2 is not mounted here")
	return ""
}

// line returns the number after a name in a file of a cgroup.
func line(t *testing.T, folder, file, name string) uint64 {
	text, err := os.ReadFile(filepath.Join(folder, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return number(t, value)
		}
	}
	t.Fatalf("%s has no %s", file, name)
	return 0
}

func TestACgroupHasWhatItsFilesSay(t *testing.T) {
	mount := hierarchy(t)
	client := service(t)
	folder := filepath.Join(mount, "fastproc-go-"+strconv.Itoa(os.Getpid()))
	if err := os.MkdirAll(filepath.Join(folder, "below"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = os.Remove(filepath.Join(folder, "below"))
		_ = os.Remove(folder)
	})
	pid := sleeper(t, "sleep")
	if err := os.WriteFile(filepath.Join(folder, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		t.Fatal(err)
	}
	usage := line(t, folder, "cpu.stat", "usage_usec")
	cgroups, err := client.Cgroups(CgroupFieldsCPU|CgroupFieldsMemoryStat|CgroupFieldsIO, 0)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]CgroupView{}
	for i := 0; i < cgroups.Len(); i++ {
		seen[cgroups.At(i).Path()] = cgroups.At(i)
	}
	path := "/" + filepath.Base(folder)
	above, below := seen[path], seen[path+"/below"]
	if above.record == nil || below.record == nil || seen["/"].record == nil {
		t.Fatalf("%s is missing among %d cgroups", path, cgroups.Len())
	}
	if above.Identity().Populated != 1 || below.Identity().Populated != 0 || below.Identity().Parent != above.Identity().ID {
		t.Errorf("%+v above %+v", above.Identity(), below.Identity())
	}
	after := line(t, folder, "cpu.stat", "usage_usec")
	if cpu := above.CPU(); cpu == nil || cpu.UsageNS/1000 < usage || cpu.UsageNS/1000 > after {
		t.Errorf("%+v is not between %d and %d", cpu, usage, after)
	}
	if above.Pressure() != nil || above.Pids() != nil {
		t.Error("it has what was not requested")
	}
	if _, err := os.Stat(filepath.Join(folder, "memory.stat")); err == nil {
		value, ok := above.MemoryStatLine("pgfault")
		if expected := line(t, folder, "memory.stat", "pgfault"); !ok || value > expected {
			t.Errorf("%d page faults, and later %d", value, expected)
		}
	} else if _, ok := above.MemoryStatLine("anon"); ok {
		t.Error("it has values of a controller that is not there")
	}
	if len(above.Devices()) != 0 && above.IO() == nil {
		t.Error("it has devices without I/O")
	}
	// The next call empties the snapshot.
	processes(t, client, FieldsCPU)
	if cgroups.Len() != 0 {
		t.Error("a snapshot outlives its memory")
	}
}
