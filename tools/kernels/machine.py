"""The emulated machine of each scenario, and one run of it."""

import dataclasses
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from debian import Failed, architecture, numbers

EMULATORS = {
    "amd64": ("qemu-system-x86_64", "qemu-system-x86"),
    "arm64": ("qemu-system-aarch64", "qemu-system-arm"),
}
# The longest time without output. Between two lines the guest runs one program: for seconds on an idle host, and for minutes
# if the guest gets the CPUs last.
SILENCE = 600


@dataclass(frozen=True)
class Machine:
    """A machine, in qemu's terms."""

    cpus: int = 2
    # The number of CPUs that could be plugged in, if greater.
    cpus_at_most: int = 0
    memory: int = 1024
    # One thread of the host emulates all CPUs in turn.
    one_thread: bool = False
    # Room for more devices.
    large: bool = False
    # Disk controllers with 64 queues, each of which has its own interrupt.
    controllers: int = 0
    # MiB of a disk that keeps its data while the machine runs.
    disk: int = 0
    # Time is counted in instructions, so that measurements do not depend on the host.
    counted: bool = False
    # More words of the kernel's command line.
    words: str = ""
    # Seconds of the host's CPU time for each scenario after which it is given up: not the time of a busy host.
    patience: int = 300


SMALL = Machine(disk=64)
# Nothing may differ between runs, not even addresses.
COUNTED = Machine(cpus=1, one_thread=True, counted=True, words="nokaslr norandmaps")
COUNTED_CGROUPS = dataclasses.replace(COUNTED, cpus=2, memory=2048, patience=1200)
BIG = Machine(cpus=64, memory=4096, one_thread=True, large=True, controllers=6, patience=600)

# Scenarios with equal machines share one boot, in this order, but those that count instructions, and those that take the
# machine's memory. A lockdown cannot be undone, so it is the last of the small ones.
DAILY = {
    "conformance": SMALL,
    "tests": SMALL,
    "service": SMALL,
    "apparmor": SMALL,
    "namespaces": SMALL,
    "kptr_restrict": SMALL,
    "hidepid": SMALL,
    "cgroups": SMALL,
    "memory": SMALL,
    "lockdown": SMALL,
    "hotplug": Machine(cpus=4, patience=600),
    "cost": COUNTED,
    "big": BIG,
    # The kernel reserves room for the interrupts of every CPU that could be plugged in.
    "interrupts": Machine(cpus_at_most=255),
}
# These run only if they are named.
NAMED = {
    "glance": SMALL,
    "namespace_cost": COUNTED,
    "interrupts_cost": dataclasses.replace(COUNTED, cpus_at_most=255),
    "cgroup_cost": COUNTED_CGROUPS,
    "cgroup_cost_big": dataclasses.replace(COUNTED_CGROUPS, cpus=8),
    "cadvisor": Machine(disk=64, patience=600),
    # Time passes for all CPUs while one of them executes instructions, so there is one.
    "cadvisor_cost": dataclasses.replace(COUNTED, memory=2048, patience=2400),
    "namespace_storms": Machine(patience=1800),
    "cgroup_storms": Machine(disk=64, patience=6000),
    "cgroup_scale": Machine(memory=8192, patience=2400),
    "storms_32": Machine(cpus=32, memory=4096, one_thread=True, large=True, patience=3600),
    # The kernel starts four of them: 6.12 takes no CPU as possible that only could be plugged in.
    "storms_255": Machine(cpus=255, memory=4096, words="maxcpus=4", patience=3600),
}
SCENARIOS = NAMED | DAILY


def refuses(scenario: str, series: str, big: bool) -> str | None:
    """Say why a scenario makes no sense on a series, if so."""
    # The newest of Debian's releases whose AppArmor does not label sockets.
    if scenario == "apparmor" and series != "6.12":
        return "one kernel is enough"
    if scenario == "big" and not big:
        return "a machine of this size takes long: it is booted for one kernel alone, or --thorough"
    if scenario in ("big", "cgroups", "memory") and series.endswith("-16k-arm64"):
        return "this kernel has the driver of the machine's disks as a module, and guests load none"
    # From 6.9 on only CPUs that the firmware declares as pluggable get room; qemu's boards here declare none. On arm64
    # interrupts get their numbers on request.
    grows = architecture(series) == "amd64" and numbers(series) < (6, 9)
    if scenario in ("interrupts", "interrupts_cost") and not grows:
        return "this kernel makes no room for CPUs that are not there"
    return None


def arguments(machine: Machine, arch: str, disk: Path) -> list[str]:
    """Return qemu's arguments that describe the machine."""
    if arch == "amd64":
        board, cpu = ("q35" if machine.large else "pc"), "qemu64"
    else:
        # The default controller of interrupts has room for eight CPUs. Pointer authentication of the architecture would take
        # half of the time, and that of the emulator does not.
        board, cpu = ("virt,gic-version=3" if machine.large else "virt"), "max,pauth-impdef=on"
    at_most = f",maxcpus={machine.cpus_at_most}" if machine.cpus_at_most else ""
    words = ["-machine", board, "-cpu", cpu, "-smp", f"{machine.cpus}{at_most}", "-m", f"{machine.memory}M"]
    words += ["-accel", "tcg,thread=single" if machine.one_thread else "tcg,thread=multi"]
    if machine.counted:
        words += ["-icount", "shift=1,sleep=off", "-rtc", "base=2026-01-01,clock=vm", "-seed", "1"]
    if machine.disk:
        words += ["-blockdev", f"driver=file,filename={disk},node-name=kept", "-device", "nvme,drive=kept,serial=kept"]
    for number in range(machine.controllers):
        words += ["-blockdev", f"driver=null-co,read-zeroes=on,size=1073741824,node-name=disk{number}"]
        words += ["-device", f"nvme,drive=disk{number},serial=disk{number},max_ioqpairs=64,msix_qsize=65"]
    return words


def command_line(machine: Machine, arch: str, scenarios: list[str]) -> str:
    """Return the kernel's command line. A kernel that panics restarts at once, which ends the emulator."""
    console = "ttyS0" if arch == "amd64" else "ttyAMA0"
    words = ["quiet", "loglevel=4", "panic=-1"]
    if arch == "amd64":
        # A busy host can make the emulated timer look dead, which makes old kernels panic. And the kernel finds its clock
        # unreliable, and rewrites code that another CPU is running, which the emulator does not always survive.
        words += ["no_timer_check", "tsc=reliable"]
    return " ".join([f"console={console}", *words, f"fastproc.scenarios={','.join(scenarios)}", machine.words]).strip()


@dataclass
class Boot:
    """A kernel with the scenarios that share its machine, and what came of it."""

    series: str
    release: str
    image: Path
    machine: Machine
    scenarios: list[str]
    # Why it was given up, if it was.
    given_up: str = ""
    # What follows the scenario's name in the names of its results.
    suffix: str = ""
    report: str = ""
    console: str = ""
    seconds: float = 0
    cpu: float = 0

    def run(self, initramfs: Path, results: Path) -> None:
        """Boot, and wait until the guest has ended in any way."""
        arch = architecture(self.series)
        program, package = EMULATORS[arch]
        name = self.scenarios[0] if len(self.scenarios) == 1 else "several"
        name += self.suffix
        report, console, disk = (results / f"{self.release}-{name}.{kind}" for kind in ("report", "console", "disk"))
        for path in (report, console):
            path.write_bytes(b"")
        if arch == "amd64":
            ports = ["-serial", f"file:{console}", "-serial", f"file:{report}"]
        else:
            ports = ["-serial", f"file:{console}", "-chardev", f"file,id=report,path={report}"]
            ports += ["-device", "pci-serial,chardev=report"]
        with disk.open("wb") as file:
            file.truncate(self.machine.disk << 20)
        words = [program, "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        words += arguments(self.machine, arch, disk) + ports + ["-kernel", str(self.image), "-initrd", str(initramfs)]
        words += ["-append", command_line(self.machine, arch, self.scenarios)]
        began = time.monotonic()
        try:
            emulator = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        except OSError as error:
            raise Failed(f"cannot run {program} (Debian: apt-get install {package}): {error}") from error
        try:
            self.wait(emulator, [report, console])
        finally:
            emulator.kill()
            errors = emulator.communicate()[1].decode(errors="replace")
            disk.unlink()
        self.seconds = time.monotonic() - began
        self.report = report.read_text(errors="replace")
        self.console = console.read_text(errors="replace") + errors

    def wait(self, emulator: subprocess.Popen[bytes], files: list[Path]) -> None:
        """Wait for the end, as long as there is progress and not too much CPU time was used."""
        patience = self.machine.patience * len(self.scenarios) * (1 if architecture(self.series) == "amd64" else 2)
        size, since = 0, time.monotonic()
        while emulator.poll() is None:
            times = Path(f"/proc/{emulator.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            self.cpu = sum(map(int, times)) / os.sysconf("SC_CLK_TCK")
            now = sum(path.stat().st_size for path in files)
            if now != size:
                size, since = now, time.monotonic()
            if self.cpu > patience:
                self.given_up = f"given up after {patience} s of CPU time"
            elif time.monotonic() - since > SILENCE:
                self.given_up = f"given up: no output for {SILENCE} s"
            if self.given_up:
                return
            time.sleep(0.1)
