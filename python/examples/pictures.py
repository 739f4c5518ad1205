"""Draws two pictures of this machine: memory by cgroup as a flame graph, and the CPU time of programs over time.

python pictures.py FOLDER [--filter CONDITION] [--seconds N]

Writes python-memory.svg and python-cpu.svg there. It needs only fastproc.
"""

from __future__ import annotations

import argparse
import html
import zlib
from collections import Counter, defaultdict
from pathlib import Path

import fastproc

WIDTH, LINE = 860, 22
STYLE = """
text { font: 12px ui-sans-serif, "DejaVu Sans", sans-serif; fill: #24292f } .in { fill: #24292f } rect { stroke: #ffffff }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .in { fill: #24292f } rect { stroke: #0d1117 } }
"""
MIB = 1 << 20


def color(name: str) -> str:
    return f"hsl({zlib.crc32(name.encode()) % 360} 55% 72%)"


def write(file: Path, height: float, body: list[str]) -> None:
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}">'
    file.write_text("\n".join([opening, f"<style>{STYLE}</style>", *body, "</svg>"]) + "\n", encoding="utf-8")
    print(f"written: {file}")


def memory(file: Path, condition: str | None) -> None:
    """A bar for each cgroup, as wide as the private memory of its processes; its parts and programs are below it."""
    table = fastproc.processes("cgroup,comm,rssanon", filter=condition)
    sizes: Counter[tuple[str, ...]] = Counter()
    for cgroup, comm, size in zip(*table.to_dict().values()):
        path = ("/", *(part for part in (cgroup or "").split("/") if part), comm)
        for depth in range(1, len(path) + 1):
            sizes[path[:depth]] += size or 0
    total = sizes[("/",)] or 1
    body = []
    ends: dict[tuple[str, ...], float] = defaultdict(float)
    # Parents first; among siblings the largest first.
    for path, size in sorted(sizes.items(), key=lambda item: (len(item[0]), -item[1])):
        width, parent = WIDTH * size / total, path[:-1]
        # A bar begins where its left neighbour ends, the first where its parent begins.
        x = ends.setdefault(parent, 0.0)
        ends[parent], ends[path] = x + width, x
        if width < 1:
            continue
        y = LINE * (len(path) - 1)
        label = f"{path[-1]} {size / MIB:.0f} MiB"
        shown = label if 7 * len(label) < width else path[-1] if 7 * len(path[-1]) < width else ""
        bar = f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{LINE}" fill="{color(path[-1])}"/>'
        text = f'<text class="in" x="{x + 4:.1f}" y="{y + 15}">{html.escape(shown)}</text>'
        title = html.escape(f"{'/'.join(path[1:]) or '/'}: {size / MIB:.1f} MiB")
        body.append(f"<g><title>{title}</title>{bar}{text}</g>")
    write(file, LINE * max(map(len, sizes), default=1), body)


def cpu(file: Path, condition: str | None, seconds: float, most: int = 7) -> None:
    """CPU time by program, stacked."""
    interval = 0.5
    shares: list[dict[str, float]] = []
    whole: dict[str, float] = defaultdict(float)
    for table in fastproc.Collector("comm,pcpu", filter=condition).watch(interval, max(2, round(seconds / interval))):
        moment: dict[str, float] = defaultdict(float)
        for comm, share in zip(*table.to_dict().values()):
            moment[comm] += share or 0.0
            whole[comm] += share or 0.0
        shares.append(moment)
    names = sorted(whole, key=lambda name: -whole[name])[:most]
    top = max(10.0, *(sum(moment[name] for name in names) for moment in shares))
    height, left, right = 220.0, 50.0, WIDTH - 150.0

    def place(at: int, share: float) -> str:
        return f"{left + (right - left) * at / (len(shares) - 1):.1f},{height - (height - 20) * share / top:.1f}"

    body = [f'<text x="2" y="{height}">0 %</text>', f'<text x="2" y="24">{top:.0f} %</text>']
    below = [0.0] * len(shares)
    for nth, name in enumerate(names):
        above = [low + moment[name] for low, moment in zip(below, shares)]
        line = [place(at, share) for at, share in enumerate(above)]
        line += [place(at, share) for at, share in reversed(list(enumerate(below)))]
        body.append(f'<polygon points="{" ".join(line)}" fill="{color(name)}"/>')
        y = 24 + LINE * nth
        body.append(f'<rect x="{right + 12}" y="{y - 11}" width="12" height="12" fill="{color(name)}"/>')
        body.append(f'<text x="{right + 30}" y="{y}">{html.escape(name)}</text>')
        below = above
    body.append(f'<text x="{left}" y="{height + 16}">0 s</text>')
    body.append(f'<text x="{right - 30}" y="{height + 16}">{interval * (len(shares) - 1):.0f} s</text>')
    write(file, height + 20, body)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--filter", help="which processes, as in \"cgroup =~ '^/system.slice'\"")
    parser.add_argument("--seconds", type=float, default=20, help="how long CPU time is watched")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    memory(arguments.folder / "python-memory.svg", arguments.filter)
    cpu(arguments.folder / "python-cpu.svg", arguments.filter, arguments.seconds)


if __name__ == "__main__":
    main()
