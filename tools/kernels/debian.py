"""Debian's packages by a private apt: other suites than the system's, and nothing of the system is changed.

The mirror is that of the system's own sources; no mirror is named here.
"""

import re
import subprocess
from pathlib import Path

# Backports have the newest kernels; security updates have the newest of each release.
SUITES = ["bullseye-security", "bookworm-security", "trixie-security", "trixie-backports"]
# The release of the libraries that programs for arm64 are linked with, and that their guests load.
LIBRARIES = "bookworm"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
# Builds of Debian's kernel: the mark behind the number of a series, the end of their releases, and Debian's architecture.
FLAVOURS = {
    "-16k-arm64": ("-arm64-16k", "arm64"),
    "-arm64": ("-cloud-arm64", "arm64"),
    "": ("-cloud-amd64", "amd64"),
}


class Failed(Exception):
    """Something that ends the run, in words for a person."""


def output(program: str, *arguments: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    """Run a program to its end, and return what it prints."""
    try:
        done = subprocess.run([program, *arguments], capture_output=True, text=True, cwd=cwd, env=env)
    except OSError as error:
        raise Failed(f"cannot run {program}: {error}") from error
    if done.returncode != 0:
        raise Failed(f"{program} {' '.join(map(str, arguments))}: {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def split(series: str) -> tuple[str, str]:
    """Split `6.12-arm64` into `6.12` and the mark of its flavour."""
    mark = next(mark for mark in FLAVOURS if series.endswith(mark))
    number = series.removesuffix(mark)
    if not re.fullmatch(r"newest|[1-9]\d*\.\d+", number):
        raise Failed(f"expected a kernel series such as 6.1, or “newest”, and -arm64 or -16k-arm64 behind it, not {series}")
    return number, mark


def architecture(series: str) -> str:
    """Debian's name of the architecture of a series."""
    return FLAVOURS[split(series)[1]][1]


def numbers(series: str) -> tuple[int, ...]:
    """Return what orders series: the numbers of a release."""
    return tuple(int(number) for number in split(series)[0].split("."))


def system_mirrors() -> tuple[str, str | None]:
    """Return the addresses of Debian's archive and of its security updates, according to the system's apt."""

    def listed() -> str:
        form = ("--format", "$(ORIGIN) $(RELEASE) $(REPO_URI)", "Identifier: Packages")
        return output("apt-get", "indextargets", *form)

    # Without lists the origin of an archive is not known.
    targets = listed() or (output("apt-get", "update", "-qq"), listed())[1]
    found: dict[bool, str] = {}
    for line in targets.splitlines():
        origin, release, address = line.split(" ", 2)
        if origin == "Debian" and not address.startswith("cdrom:"):
            found.setdefault(release.endswith(("-security", "/updates")), address)
    if False not in found:
        raise Failed("the system's apt sources name no Debian archive to fetch Debian's kernels from")
    return found[False], found.get(True)


class Apt:
    """A private apt for the packages of one architecture."""

    def __init__(self, cache: Path, arch: str, anew: bool = False) -> None:
        self.home = cache / ("apt" if arch == "amd64" else f"apt-{arch}")
        for folder in ("lists/partial", "archives/partial"):
            (self.home / folder).mkdir(parents=True, exist_ok=True)
        main, security = system_mirrors()
        signed = f" signed-by={KEYRING}" if KEYRING.exists() else ""
        lines = []
        for suite in [*SUITES, LIBRARIES]:
            address = security if suite.endswith("-security") else main
            if address is None:
                print(f"not looked in: {suite}, for which the system's apt sources have no mirror")
                continue
            # The lists of a release that is no longer maintained stay out of date.
            lines.append(f"deb [arch={arch} check-valid-until=no{signed}] {address} {suite} main\n")
        (self.home / "sources.list").write_text("".join(lines))
        (self.home / "status").write_text("")
        (self.home / "apt.conf").write_text(f"""\
Dir::Etc::SourceList "{self.home}/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
Dir::State "{self.home}";
Dir::State::Lists "{self.home}/lists";
Dir::State::Status "{self.home}/status";
Dir::Cache "{self.home}";
Dir::Cache::Archives "{self.home}/archives";
APT::Architecture "{arch}";
APT::Architectures "{arch}";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::Retries "3";
""")
        self.update(anew)

    def run(self, program: str, *arguments: str) -> str:
        """Run one of apt's programs."""
        environment = {"APT_CONFIG": str(self.home / "apt.conf"), "LC_ALL": "C.UTF-8", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
        return output(program, *arguments, cwd=self.home, env=environment)

    def update(self, anew: bool) -> None:
        """Read the archive's lists, unless the cache has them. A suite that cannot be read is reported."""
        stamp = self.home / "updated"
        sources = (self.home / "sources.list").read_text()
        # Another set of suites or mirrors needs other lists.
        if not anew and stamp.exists() and stamp.read_text() == sources:
            return
        print(f"reading the lists of {len(sources.splitlines())} suites", flush=True)
        try:
            self.run("apt-get", "update", "-qq", "--error-on=any")
            stamp.write_text(sources)
        except Failed as error:
            stamp.unlink(missing_ok=True)
            # Without that option apt uses the suites that are available.
            self.run("apt-get", "update", "-qq")
            if not self.packages("linux-image-"):
                raise Failed(f"no kernel can be fetched, so nothing was tested: {error}") from error
            print(f"ATTENTION: not every suite could be read: {error}")

    def packages(self, prefix: str) -> list[str]:
        """Return the names of all packages on the lists that start with `prefix`."""
        return self.run("apt-cache", "pkgnames", prefix).split()

    def unpack(self, package: str, folder: Path) -> None:
        """Download a package, and unpack it into a folder of the cache."""
        folder.mkdir(parents=True, exist_ok=True)
        for old in self.home.glob(f"{package}_*.deb"):
            old.unlink()
        self.run("apt-get", "download", "-qq", package)
        (archive,) = self.home.glob(f"{package}_*.deb")
        output("dpkg", "-x", archive, folder)
        archive.unlink()


def choose(wanted: str, packages: list[str]) -> tuple[str, str, str]:
    """Return the series, the release and the package of the newest kernel of a series, or of all of its flavour."""
    number, mark = split(wanted)
    ending = FLAVOURS[mark][0]
    offers = []
    for package in packages:
        # Others with this prefix are debugging symbols, unsigned images, and names that only point to a version.
        found = re.fullmatch(rf"linux-image-((\d+\.\d+)[.+-].*){ending}", package)
        if found and number in ("newest", found[2]):
            order = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", found[1])]
            offers.append((order, found[2] + mark, found[1] + ending))
    if not offers:
        raise Failed(f"no kernel of the series {wanted} is offered by the suites that were looked in")
    _, series, release = max(offers)
    # From 6.19 on the image's package is empty and the kernel is in another package.
    kinds = ("linux-binary-", "linux-image-")
    return series, release, next(kind + release for kind in kinds if kind + release in packages)


def fetch(cache: Path, wanted: list[str], anew: bool = False) -> list[tuple[str, str, Path]]:
    """Bring the newest kernel of each series into the cache; return series, release and path of each."""
    images: dict[str, tuple[str, str, Path]] = {}
    apts: dict[str, Apt] = {}
    for one in wanted:
        arch = architecture(one)
        if arch not in apts:
            apts[arch] = Apt(cache, arch, anew)
        apt = apts[arch]
        packages = apt.packages("linux-image-") + apt.packages("linux-binary-")
        series, release, package = choose(one, packages)
        image = cache / "images" / f"vmlinuz-{release}"
        if not image.exists():
            print(f"fetching {package}", flush=True)
            folder = cache / "unpacked" / release
            try:
                apt.unpack(package, folder)
            except Failed as error:
                # The archive changes, and removes what old lists offer.
                if anew:
                    raise
                print(f"{error}: trying again with new lists")
                return fetch(cache, wanted, anew=True)
            places = [folder / f"boot/vmlinuz-{release}", folder / f"usr/lib/modules/{release}/vmlinuz"]
            kernel = next((place for place in places if place.is_file()), None)
            if kernel is None:
                raise Failed(f"the package {package} holds no kernel")
            # Renaming is the last step, so that an image in the cache is complete.
            image.parent.mkdir(parents=True, exist_ok=True)
            kernel.rename(image)
            output("rm", "-r", folder)
        images[release] = (series, release, image)
    return list(images.values())


def busybox(cache: Path, arch: str) -> Path:
    """Bring the guests' shell and its commands into the cache."""
    folder = cache / f"busybox-{arch}"
    program = folder / "bin/busybox"
    if not program.exists():
        Apt(cache, arch).unpack("busybox-static", folder)
    return program
