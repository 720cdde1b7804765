"""Runs the fuzz targets of `fuzz/`, one after the other, and prints what was executed.

    scripts/fuzz.py                    all of them
    scripts/fuzz.py manifest table     some
    scripts/fuzz.py table FILE         what a target says of one input

FUZZ_SECONDS is the processor time that each is given (600), FUZZ_RUNS the least number of inputs (1,000,000), FUZZ_SANITIZER a
sanitizer (none; `address` also looks into what is unsafe in libraries). A find ends it: the input lies in fuzz/artifacts/.
What a target has learnt stays in fuzz/corpus/ for the next time.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FUZZ = ROOT / "fuzz"
TARGETS = ["manifest", "plan", "records", "table", "archive", "safetensors", "figure"]
# Longest input of each, in bytes.
LONGEST = {"manifest": 4096, "plan": 128, "records": 8192, "table": 8192, "archive": 16384, "safetensors": 4096, "figure": 4096}
# Comparisons as a further measure of progress cost twice the time: not where inputs are choices of a grammar, in which no number has
# to be hit.
WITHOUT_VALUES = {"plan"}
# Wall-clock seconds after which a target is started again: its inputs are reread, and what it leaves in memory goes.
SLICE = 120


def environment(**more):
    path = f"{ROOT / '.deps/cargo-fuzz/bin'}:{pathlib.Path.home() / '.cargo/bin'}:{os.environ['PATH']}"
    # The pinned compiler takes what sanitizers need when it is told to; the fuzz targets alone are built so.
    return {**os.environ, "PATH": path, "RUSTC_BOOTSTRAP": "1", "RAYON_NUM_THREADS": "1", **more}


def build(sanitizer):
    command = ["cargo", "fuzz", "build", "--fuzz-dir", str(FUZZ), "--sanitizer", sanitizer]
    if subprocess.run(command, cwd=ROOT, env=environment()).returncode:
        sys.exit("fuzz: the targets cannot be built")


def executable(target):
    return FUZZ / "target/x86_64-unknown-linux-gnu/release" / target


def prepare(target, scratch):
    """The folder of inputs, with the seeds in it."""
    corpus = FUZZ / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    (FUZZ / "artifacts" / target).mkdir(parents=True, exist_ok=True)
    seeding = environment(PROVENIR_FUZZ_SEEDS=str(corpus), TMPDIR=scratch)
    if subprocess.run([executable(target)], env=seeding).returncode:
        sys.exit(f"fuzz: {target} gives no seeds")
    return corpus


def fuzz(target, seconds, runs, scratch):
    """Fuzzes a target; gives executions, processor seconds and the number of inputs kept."""
    corpus = prepare(target, scratch)
    dictionary = FUZZ / "dictionaries" / f"{target}.dict"
    command = [
        executable(target),
        corpus,
        f"-artifact_prefix={FUZZ / 'artifacts' / target}/",
        f"-max_len={LONGEST[target]}",
        f"-max_total_time={SLICE}",
        "-timeout=20",
        "-rss_limit_mb=3072",
        "-print_final_stats=1",
        f"-use_value_profile={int(target not in WITHOUT_VALUES)}",
        *([f"-dict={dictionary}"] if dictionary.exists() else []),
    ]
    executed, cpu = 0, 0.0
    while cpu < seconds or executed < runs:
        with tempfile.TemporaryFile(mode="w+", errors="replace") as said, tempfile.TemporaryDirectory(dir=scratch) as files:
            process = subprocess.Popen(
                [str(word) for word in command], env=environment(TMPDIR=files), stdout=subprocess.DEVNULL, stderr=said
            )
            _, status, usage = os.wait4(process.pid, 0)
            said.seek(0)
            text = said.read()
        if status:
            print("\n".join(text.splitlines()[-40:]))
            sys.exit(f"fuzz: {target} found something after {executed:,} executions: `scripts/fuzz.py {target} FILE` shows it again")
        executed += int(re.search(r"stat::number_of_executed_units:\s*(\d+)", text)[1])
        cpu += usage.ru_utime + usage.ru_stime
        coverage = re.findall(r"cov: (\d+) ft: (\d+)", text)[-1]
        print(f"{target:12} {executed:>12,} executions {cpu:8.0f} s CPU, {coverage[0]} places", flush=True)
    return executed, cpu, sum(1 for _ in corpus.iterdir())


def main():
    names = sys.argv[1:]
    if any(name in ["-h", "--help"] for name in names):
        sys.exit(__doc__)
    sanitizer = os.environ.get("FUZZ_SANITIZER", "none")
    seconds, runs = float(os.environ.get("FUZZ_SECONDS", 600)), int(os.environ.get("FUZZ_RUNS", 1_000_000))
    is_one = len(names) == 2 and names[0] in TARGETS and names[1] not in TARGETS
    unknown = [name for name in names if name not in TARGETS and not is_one]
    if unknown:
        sys.exit(f"fuzz: no target `{unknown[0]}`; there are {', '.join(TARGETS)}")
    build(sanitizer)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    scratch = tempfile.mkdtemp(dir=memory, prefix="provenir-fuzz-")
    try:
        if is_one:
            sys.exit(subprocess.run([executable(names[0]), names[1]], env=environment(TMPDIR=scratch)).returncode)
        done = {}
        for target in names or TARGETS:
            done[target] = fuzz(target, seconds, runs, scratch)
        print(f"\n{'target':12} {'executions':>12} {'s CPU':>8} {'inputs':>7}")
        for target, (executed, cpu, kept) in done.items():
            print(f"{target:12} {executed:>12,} {cpu:>8.0f} {kept:>7,}")
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    main()
