"""Makes an OCI image of both architectures with one index, as a folder in a tar, as `podman load` and `skopeo copy` take it.

Its layers are the C library of Debian 12, unpacked from its package, and fastproc's commands. Nothing else is in it: no shell
and no package manager. Two runs make the same bytes.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What cargo, Debian and OCI call an architecture.
NAMES = {"x86_64": ("amd64", "amd64"), "aarch64": ("arm64", "arm64")}
EPOCH = int(os.environ["SOURCE_DATE_EPOCH"])
# Of the C library's package: conversions of character sets, and documentation, which no command uses.
LEFT_OUT = ("gconv", "share/doc", "share/lintian", "audit", "libmemusage", "libpcprofile", "etc/ld.so.conf.d")
MAXIMUM = 25 << 20


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def layer(files: dict[str, Path | bytes], links: dict[str, str], owners: dict[str, int]) -> bytes:
    """A tar of these files, under names without a leading slash."""
    out = io.BytesIO()
    folders = sorted({str(parent) for name in [*files, *links] for parent in Path(name).parents if str(parent) != "."})
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted({*folders, *files, *links}):
            entry = tarfile.TarInfo(name)
            entry.mtime, entry.mode = EPOCH, 0o755
            entry.uid = entry.gid = owners.get(name, 0)
            if name in links:
                entry.type, entry.linkname = tarfile.SYMTYPE, links[name]
                archive.addfile(entry)
            elif name in files:
                content = files[name]
                data = content if isinstance(content, bytes) else content.read_bytes()
                if isinstance(content, bytes) or not os.access(content, os.X_OK):
                    entry.mode = 0o644
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
            else:
                entry.type = tarfile.DIRTYPE
                archive.addfile(entry)
    return out.getvalue()


def c_library(architecture: str) -> bytes:
    fetch = [str(ROOT / "scripts/fetch"), f"libc-bookworm-{architecture}", "sh", "-c"]
    unpack = f"'{ROOT}/tools/procps/archive' packages bookworm {architecture} tree libc6 &&"
    unpack += " tar -c -f tree.tar -C tree . && rm -r tree"
    folder = Path(subprocess.run([*fetch, unpack], check=True, capture_output=True, text=True).stdout.strip())
    with tempfile.TemporaryDirectory() as temporary, tarfile.open(folder / "tree.tar") as tree:
        # Debian 12's Python has no filters, and extracts everything; later ones would leave links out.
        tree.extraction_filter = getattr(tarfile, "tar_filter", None)
        tree.extractall(temporary)
        files: dict[str, Path | bytes] = {}
        links: dict[str, str] = {}
        for path in Path(temporary).rglob("*"):
            name = str(path.relative_to(temporary))
            wanted = name.startswith(("lib", "usr/lib")) and not any(part in name for part in LEFT_OUT)
            if wanted and path.is_symlink():
                links[name] = str(path.readlink())
            elif wanted and path.is_file():
                files[name] = path
        files["etc/passwd"] = b"root:x:0:0::/:/sbin/nologin\nnobody:x:65534:65534::/:/sbin/nologin\n"
        files["etc/group"] = b"root:x:0:\nnogroup:x:65534:\n"
        files["etc/nsswitch.conf"] = b"passwd: files\ngroup: files\n"
        return layer(files, links, {})


class Layout:
    """The folder of an OCI image."""

    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}

    def add(self, kind: str, data: bytes) -> dict[str, object]:
        name = digest(data)
        self.blobs[name] = data
        return {"mediaType": f"application/vnd.oci.image.{kind}", "digest": name, "size": len(data)}

    def add_json(self, kind: str, value: object) -> dict[str, object]:
        return self.add(kind, json.dumps(value, sort_keys=True).encode())

    def write(self, path: Path, index: dict[str, object]) -> None:
        files: dict[str, Path | bytes] = {f"blobs/{name.replace(':', '/')}": data for name, data in self.blobs.items()}
        files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
        files["index.json"] = json.dumps(index, sort_keys=True).encode()
        path.write_bytes(layer(files, {}, {}))


def of_containerfile(name: str) -> list[str]:
    """What the image of the DaemonSet, which somebody builds, is run with."""
    lines = (ROOT / "packaging/kubernetes/Containerfile").read_text().splitlines()
    found: list[str] = json.loads(next(line.removeprefix(name) for line in lines if line.startswith(name + " ")))
    return found


def image(layout: Layout, arch: str, stage: Path, version: str) -> dict[str, object]:
    debian, oci = NAMES[arch]
    commands: dict[str, Path | bytes] = {f"usr/bin/{name}": stage / "bin" / name for name in ("fastproc", "fastproc-exporter")}
    for name in ("LICENSE-MIT", "LICENSE-APACHE", "THIRD-PARTY.txt"):
        commands[f"usr/share/doc/fastproc/{name}"] = stage / "share/doc/fastproc" / name
    layers = [c_library(debian), layer(commands, {}, {})]
    packed = [gzip.compress(data, 9, mtime=0) for data in layers]
    size = sum(map(len, packed))
    if size > MAXIMUM:
        raise SystemExit(f"the image for {arch} has {size} bytes, more than {MAXIMUM}")
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH))
    config = {
        "architecture": oci,
        "os": "linux",
        "created": created,
        "config": {
            "Entrypoint": of_containerfile("ENTRYPOINT"),
            "Cmd": of_containerfile("CMD"),
            "ExposedPorts": {"9256/tcp": {}},
            "Labels": {"org.opencontainers.image.title": "fastproc", "org.opencontainers.image.version": version},
        },
        "rootfs": {"type": "layers", "diff_ids": [digest(data) for data in layers]},
        "history": [{"created": created, "comment": comment} for comment in ("the C library of Debian 12", "fastproc")],
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": layout.add_json("config.v1+json", config),
        "layers": [layout.add("layer.v1.tar+gzip", data) for data in packed],
    }
    print(f"image for {arch}: {size / (1 << 20):.1f} MiB")
    return layout.add_json("manifest.v1+json", manifest) | {"platform": {"architecture": oci, "os": "linux"}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", required=True)
    parser.add_argument("--stage", type=Path, required=True, help="the folder with the staged trees")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("arch", nargs="+", choices=NAMES)
    args = parser.parse_args()
    layout = Layout()
    manifests = [image(layout, arch, args.stage / f"fastproc-{args.version}-{arch}-linux", args.version) for arch in args.arch]
    index = layout.add_json(
        "index.v1+json", {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests}
    )
    index["annotations"] = {"org.opencontainers.image.ref.name": args.version}
    layout.write(args.out / f"fastproc-{args.version}-image.oci.tar", {"schemaVersion": 2, "manifests": [index]})


if __name__ == "__main__":
    main()
