"""The engine's speed beside its targets, and beside other engines', in seconds of processor time.

    scripts/bench.sh engine

The pipeline is B branches, each a chain of ten stages that read and write one small file: `noop` cells for Provenir, `cat` for
the others, one at a time. Processor time is that of a command and of everything it started. What is measured again and again is
the median; a first run is done once.

Wall-clock time is printed where it tells something else: how long the disk was waited for. It depends on what else the machine
does, and decides nothing.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOOP = ROOT / "target/release/provenir-noop"
RIVALS = ROOT / ".deps/rivals/bin"
B3SUM = ROOT / ".deps/b3sum/bin/b3sum"

CHAIN = 10
HASHED = 1 << 30
# Nothing here may ask the network for news, or a terminal for colours.
QUIET = {"DVC_NO_ANALYTICS": "1", "NO_COLOR": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class Usage(NamedTuple):
    cpu: float
    wall: float
    # MB, of the largest process.
    peak: float


def once(command, folder, **more):
    """Runs a command to its end."""
    environment = {**os.environ, **QUIET, "PATH": f"{RIVALS}:{os.environ['PATH']}", **more}
    begin = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [str(word) for word in command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=said
        )
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        if status:
            said.seek(0)
            words = " ".join(str(word) for word in command)
            sys.exit(f"`{words}` failed in {folder}:\n{said.read().decode(errors='replace')[-2000:]}")
    return Usage(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def median(usages):
    return Usage(*(statistics.median(column) for column in zip(*usages)))


def again(times, command, folder, **more):
    return median([once(command, folder, **more) for _ in range(times)])


# --- the same pipeline in every engine's language ---------------------------------------------------------------------------


class Ours:
    name = "provenir"

    def __init__(self, folder, branches):
        self.folder = folder
        self.branches = branches
        folder.mkdir()
        self.write(branches)
        self.command = [NOOP, "run", "--quiet", "--cache", folder / "cache", folder / "pipeline.toml"]

    def write(self, last):
        """The value of the last branch is what changes."""
        values = ", ".join(str(value) for value in [*range(1, self.branches), last])
        text = f'format = 1\n[pipeline]\nname = "bench"\n[axes]\nbranch = [{values}]\n'
        text += '[stages.s0]\nkind = "noop"\nparams = { value = "${branch}" }\n'
        for stage in range(1, CHAIN):
            text += f'[stages.s{stage}]\nkind = "noop"\ninputs = {{ one = "s{stage - 1}" }}\nparams = {{ value = 1 }}\n'
        (self.folder / "pipeline.toml").write_text(text)


class Rival:
    def __init__(self, folder, branches):
        self.folder = folder
        self.branches = branches
        folder.mkdir()
        for branch in range(branches):
            (folder / f"in_{branch}").write_text(f"{branch}\n")
        self.prepare()

    def write(self, last):
        (self.folder / f"in_{self.branches - 1}").write_text(f"{last}\n")


class Doit(Rival):
    name = "doit"
    version = ["doit", "--version"]
    command = ["doit", "-v", "0"]

    def prepare(self):
        (self.folder / "dodo.py").write_text(
            f"def task_s():\n"
            f"    for b in range({self.branches}):\n"
            f"        for s in range({CHAIN}):\n"
            f"            source = f's{{s - 1}}_{{b}}' if s else f'in_{{b}}'\n"
            f"            target = f's{{s}}_{{b}}'\n"
            f"            yield dict(name=target, file_dep=[source], targets=[target], actions=[f'cat {{source}} > {{target}}'])\n"
        )


class Snakemake(Rival):
    name = "snakemake"
    version = ["snakemake", "--version"]
    command = ["snakemake", "--cores", "1", "--quiet", "all"]

    def prepare(self):
        text = f"rule all:\n    input: expand('s{CHAIN - 1}_{{b}}', b=range({self.branches}))\n"
        for stage in range(CHAIN):
            source = f"s{stage - 1}_{{b}}" if stage else "in_{b}"
            text += f"rule s{stage}:\n    input: '{source}'\n    output: 's{stage}_{{b}}'\n    shell: 'cat {{input}} > {{output}}'\n"
        (self.folder / "Snakefile").write_text(text)


class Dvc(Rival):
    name = "dvc"
    version = ["dvc", "--version"]
    command = ["dvc", "repro", "--quiet"]

    def prepare(self):
        once(["dvc", "init", "--no-scm", "--quiet"], self.folder)
        text = "stages:\n"
        for branch in range(self.branches):
            for stage in range(CHAIN):
                source = f"s{stage - 1}_{branch}" if stage else f"in_{branch}"
                target = f"s{stage}_{branch}"
                text += f"  {target}:\n    cmd: cat {source} > {target}\n    deps: [{source}]\n    outs: [{target}]\n"
        (self.folder / "dvc.yaml").write_text(text)


# --- the table ----------------------------------------------------------------------------------------------------------------


def shown(value, unit):
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f} {unit}"


def joined(*parts):
    return "; ".join(part for part in parts if part)


class Table:
    def __init__(self):
        self.missed = 0
        self.rows = []

    def row(self, name, ours, target, unit, beside="", least=False):
        met = ours >= target if least else ours <= target
        self.missed += not met
        bound = ("≥ " if least else "≤ ") + f"{target:,g} {unit}"
        self.rows.append((name, shown(ours, unit), bound, "yes" if met else "NO", beside))

    def print(self):
        head = ("", "ours", "target", "met", "beside it")
        widths = [max(len(row[column]) for row in [head, *self.rows]) for column in range(4)]
        for name, ours, target, met, beside in [head, *self.rows]:
            print(f"{name:{widths[0]}}  {ours:>{widths[1]}}  {target:>{widths[2]}}  {met:{widths[3]}}  {beside}".rstrip())
        print(f"{len(self.rows) - self.missed} of {len(self.rows)} targets met")


def progress(text):
    print(f"  … {text}", file=sys.stderr, flush=True)


class Beside:
    """What other engines were measured to take, by what was measured."""

    def __init__(self, scratch):
        self.scratch = scratch
        self.found = {}

    def measure(self):
        plans = [(Doit, 100), (Doit, 1000), (Snakemake, 100), (Snakemake, 1000), (Dvc, 100)]
        for engine, cells in plans:
            if not (RIVALS / engine.name).exists():
                progress(f"{engine.name} is not installed (scripts/setup.sh rivals)")
                continue
            progress(f"{engine.name}, {cells} stages")
            self.note("start-up", engine, 0, again(3, engine.version, self.scratch).cpu)
            pipeline = engine(self.scratch / f"{engine.name}-{cells}", cells // CHAIN)
            first = once(pipeline.command, pipeline.folder)
            noop = again(3, pipeline.command, pipeline.folder)
            self.note("cell", engine, cells, (first.cpu - noop.cpu) / cells)
            self.note("no-op", engine, cells, noop.cpu)
            pipeline.write("changed")
            self.note("branch", engine, cells, once(pipeline.command, pipeline.folder).cpu)
            self.note("peak", engine, cells, noop.peak)

    def note(self, what, engine, cells, value):
        self.found.setdefault(what, {})[(engine.name, cells)] = value

    def of(self, what, cells=None, unit="ms"):
        """What others took; where they were not measured at this size, at their largest."""
        told = []
        for name in dict.fromkeys(engine for engine, _ in self.found.get(what, {})):
            sizes = {size: value for (engine, size), value in self.found[what].items() if engine == name}
            size = cells if cells in sizes else max(sizes)
            value = sizes[size] * (1 if unit == "MB" else 1000)
            told.append(f"{name} {shown(value, unit)}" + (f" (at {size})" if size and size != cells else ""))
        return ", ".join(told)


def hashing(table, fast):
    """A source file of a gibibyte, hashed for a plan, beside b3sum."""
    if not B3SUM.exists():
        progress("b3sum is not installed (scripts/setup.sh rivals)")
        return
    progress("hashing")
    folder = fast / "hashing"
    folder.mkdir()
    block = os.urandom(1 << 20)
    with open(folder / "large", "wb") as file:
        for _ in range(HASHED >> 20):
            file.write(block)
    (folder / "small").write_bytes(b"x")
    for name in ["large", "small"]:
        (folder / f"{name}.toml").write_text(
            f'format = 1\n[pipeline]\nname = "hash"\n[stages.s]\nkind = "noop"\nparams = {{ file = "{name}" }}\n'
        )
    # In turns, so that both have the same machine. The store is not there, so that nothing is remembered.
    ours, empty, theirs = [], [], []
    for _ in range(5):
        ours.append(once([NOOP, "plan", "--cache", folder / "none", folder / "large.toml"], folder))
        empty.append(once([NOOP, "plan", "--cache", folder / "none", folder / "small.toml"], folder))
        theirs.append(once([B3SUM, folder / "large"], folder))
    ours, empty, theirs = median(ours), median(empty), median(theirs)
    cpu, wall = ours.cpu - empty.cpu, ours.wall - empty.wall
    table.row(
        "hashing, share of b3sum's bytes a CPU second",
        100 * theirs.cpu / cpu,
        80,
        "%",
        f"b3sum {HASHED / theirs.cpu / 1e9:.2f} GB/CPU s, ours {HASHED / cpu / 1e9:.2f}; wall {HASHED / theirs.wall / 1e9:.2f} and"
        f" {HASHED / wall / 1e9:.2f} GB/s; peak {theirs.peak:,.0f} and {ours.peak:,.0f} MB",
        least=True,
    )
    shutil.rmtree(folder)


def main():
    if not NOOP.exists():
        sys.exit(f"{NOOP} is not there: `cargo build --release --workspace` makes it")
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} cores, load {load:.1f} at the start; milliseconds of processor time unless another unit is given")
    table = Table()
    with tempfile.TemporaryDirectory(dir=ROOT / "target", prefix="bench-") as disk:
        disk = pathlib.Path(disk)
        # A file system in memory: what is synced there waits for nothing.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(dir=memory, prefix="provenir-bench-") as fast:
            run(table, disk, pathlib.Path(fast))
    table.print()


def run(table, disk, fast):
    beside = Beside(fast)
    beside.measure()
    progress("start-up")
    version = again(21, [NOOP, "--version"], disk)
    table.row("start-up (--version)", version.cpu * 1000, 5, "ms", beside.of("start-up"))

    pipelines = {}
    noops = {}
    for cells, target in [(1000, 20), (10_000, 150)]:
        progress(f"{cells:,} cells")
        durable = Ours(disk / f"ours-{cells}", cells // CHAIN)
        unsynced = Ours(fast / f"ours-{cells}", cells // CHAIN)
        first = {pipeline: once(pipeline.command, pipeline.folder) for pipeline in [unsynced, durable]}
        noops[cells] = noop = again(11, durable.command, durable.folder)
        table.row(f"no-op, {cells:,} cells", noop.cpu * 1000, target, "ms", beside.of("no-op", cells))
        pipelines[cells] = (unsynced, durable, first, noop)

    for cells, (unsynced, durable, first, noop) in pipelines.items():
        for pipeline, what, target in [(unsynced, "not synced", 1), (durable, "durable, in batches", 3)]:
            usage = first[pipeline]
            table.row(
                f"a noop cell of {cells:,}, {what}",
                1000 * (usage.cpu - noop.cpu) / cells,
                target,
                "ms",
                joined(f"{1000 * usage.wall / cells:.2f} ms wall", beside.of("cell", cells)),
            )

    progress("one branch of 100 changed")
    unsynced, durable, first, noop = pipelines[1000]
    changed = []
    for value in range(1001, 1008):
        durable.write(value)
        changed.append(once(durable.command, durable.folder))
    changed = median(changed)
    its_cells = CHAIN * (first[durable].cpu - noop.cpu) / 1000
    table.row(
        "one of 100 branches changed, without its 10 cells",
        1000 * (changed.cpu - its_cells),
        40,
        "ms",
        joined(f"with them {1000 * changed.cpu:.1f} ms", beside.of("branch", 1000)),
    )

    progress("100,000 cells planned")
    huge = Ours(fast / "ours-100000", 100_000 // CHAIN)
    planned = again(3, [NOOP, "plan", "--cache", huge.folder / "cache", huge.folder / "pipeline.toml"], huge.folder)
    table.row("100,000 cells planned", planned.cpu, 2, "s", f"{planned.wall:.2f} s wall, {planned.peak:,.0f} MB")

    _, _, first, noop = pipelines[10_000]
    peak = max(usage.peak for usage in [*first.values(), noop])
    others = beside.of("peak", 1000, "MB")
    table.row("peak memory, 10,000 cells", peak, 50, "MB", joined(f"no-op {noop.peak:.0f} MB", others and f"no-op of 1,000: {others}"))
    hashing(table, fast)


if __name__ == "__main__":
    main()
